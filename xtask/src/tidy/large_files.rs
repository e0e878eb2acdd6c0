//! Rule: no file of the repository is larger than a clone should carry.

use super::tree::{Finding, Tree};

const BYTES_MAX: u64 = 1_000_000;

/// Checks the size of every file that git does not ignore.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let large = tree.files.iter().filter(|file| file.bytes >= BYTES_MAX);
    let finding = |file: &super::tree::File| {
        let wrong = format!("{} bytes, {BYTES_MAX} or more", file.bytes);
        file.finding(1, wrong, "generate the file, or reduce it to the part that a reader needs")
    };
    large.map(finding).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: the limit holds at its exact value, in any folder.
    use super::*;

    #[test]
    fn the_limit_is_exact() {
        let mut tree = Tree::of(&[("docs/picture.png", "")]);
        tree.files[0].bytes = BYTES_MAX - 1;
        assert_eq!(check(&tree), []);
        tree.files[0].bytes = BYTES_MAX;
        assert_eq!(check(&tree).len(), 1);
    }
}
