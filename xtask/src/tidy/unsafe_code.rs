//! Rule: `unsafe` stands only in the files of one table.

use super::core_std::has_word;
use super::tree::{Finding, Tree};

/// Files that may be unsafe, each with its reason.
const PERMITTED: [(&str, &str); 25] = [
    ("crates/c-api/src/arguments.rs", "pointers that C programs give"),
    ("crates/c-api/src/border.rs", "names that C programs link"),
    ("crates/world-real/src/arena.rs", "a file in memory that other processes see"),
    ("crates/cli/tests/collectives.rs", "memory of a test during a call"),
    ("crates/client/src/library/at_exit.rs", "a function that the system calls at the exit"),
    ("crates/client/src/library/buffer.rs", "bytes of a pool that the program sees as its own"),
    ("crates/client/src/library/io_thread.rs", "the signal mask of the I/O thread"),
    ("crates/client/src/library/user_memory.rs", "memory of the program during a call"),
    ("crates/trace/src/format/output.rs", "a file that is mapped, so that it outlives its process"),
    ("crates/python/src/memory.rs", "memory of a Python object during a call"),
    ("crates/world-real/src/copy.rs", "strided copies between memories that others may write"),
    ("crates/world-real/src/disk/extents.rs", "the system call that tells where a file lies"),
    ("crates/world-real/src/huge.rs", "mappings at huge pages"),
    ("crates/world-real/src/memory.rs", "memory shared with disks, sockets and other processes"),
    ("crates/world-real/src/memory_disk/memory.rs", "parts of memory that outlives the process"),
    ("crates/world-real/src/memory_disk/memory_disk.rs", "parts that an earlier process left"),
    ("crates/world-real/src/memory_disk/part.rs", "parts of that memory as memories"),
    ("crates/world-real/src/memory_disk/reserve.rs", "new memory for disks"),
    ("crates/world-real/src/memory_disk/table.rs", "words of memory that outlives the process"),
    ("crates/world-real/src/network/borrowed.rs", "a mapping of a peer's shared memory"),
    ("crates/world-real/src/network/process.rs", "reads and writes of another process's memory"),
    ("crates/world-real/src/network/socket.rs", "sockets that stay registered and are borrowed"),
    ("crates/world-real/src/network/transfer.rs", "direct copies between processes"),
    ("crates/world-real/src/pool.rs", "aligned blocks for direct I/O, used again"),
    (
        "crates/world-simulated/src/engine/prefetch.rs",
        "prefetches, which the language has no safe word for",
    ),
];

/// Checks all code, tests too.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_against(tree, &PERMITTED)
}

fn check_against(tree: &Tree, permitted: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let is_permitted = permitted.iter().any(|(path, _)| *path == file.path);
        let lines: Vec<usize> =
            file.lines().filter(|(_, line)| is_unsafe(line)).map(|(number, _)| number).collect();
        if is_permitted && lines.is_empty() {
            let wrong = "the file is in the table of unsafe code and has none".to_owned();
            findings.push(file.finding(
                1,
                wrong,
                "remove the file from \
                                                  xtask/src/tidy/unsafe_code.rs",
            ));
        }
        for number in lines.into_iter().filter(|_| !is_permitted) {
            let help = "use safe code, or add the file with its reason to \
                        xtask/src/tidy/unsafe_code.rs";
            findings.push(file.finding(number, "unsafe code".to_owned(), help));
        }
    }
    findings
}

/// True when a line has unsafe code: the word with a block, a function, a trait, an `extern` or an
/// attribute after it.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let forms = ["{", "fn", "impl", "trait", "extern", "("];
    has_word(code, "unsafe")
        && code.split("unsafe").skip(1).any(|rest| {
            let rest = rest.trim_start();
            rest.is_empty() || forms.iter().any(|form| rest.starts_with(form))
        })
}

#[cfg(test)]
mod tests {
    //! Proves: each form of unsafe code is found outside the table, and text about it is not.
    use super::*;

    /// Keyword in two parts, so that this file does not contain unsafe code.
    const WORD: &str = concat!("un", "safe");

    #[test]
    fn each_form_is_found() {
        let forms = ["{ a() }", "fn a() {}", "impl A for B {}", "extern \"C\" {}", "(no_mangle)"];
        for form in forms {
            let tree = Tree::of(&[("crates/x/src/a.rs", &format!("let a = {WORD} {form};"))]);
            assert_eq!(check_against(&tree, &[]).len(), 1, "{form}");
            let table = [("crates/x/src/a.rs", "the platform")];
            assert_eq!(check_against(&tree, &table), []);
        }
    }

    #[test]
    fn talk_is_not_found() {
        let text = "#![deny(unsafe_code)]\n// unsafe { a() }\n/// An unsafe function.\n";
        let tree = Tree::of(&[("crates/x/src/a.rs", text)]);
        assert_eq!(check_against(&tree, &[]), []);
        let found = check_against(&tree, &[("crates/x/src/a.rs", "nothing any more")]);
        assert_eq!(found.len(), 1, "a row for a safe file must go");
    }
}
