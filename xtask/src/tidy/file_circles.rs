//! Files of one crate, and the C files of the MPI libraries, do not use one another in a circle.

use super::c_uses;
use super::imports::{self, Edge};
use super::tree::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The files of each circle that may stay, and the reason.
const PERMITTED: [(&[&str], &str); 2] = [
    (
        &[
            "crates/c-api/src/arguments.rs",
            "crates/c-api/src/border.rs",
            "crates/c-api/src/errors.rs",
        ],
        "the border keeps the error of a call, and the calls that return errors pass the border",
    ),
    (
        &[
            "crates/c-api/src/handles.rs",
            "crates/c-api/src/operations.rs",
            "crates/c-api/src/parts.rs",
        ],
        "a handle is declared with the type behind it, and calls on that type take the handle",
    ),
];
const _: () = assert!(PERMITTED.len() <= 2, "two circles at most may stay");

/// Folder of C files.
const C_FOLDER: &str = "mpi/src/";

/// Files that reach one another.
type Circle = BTreeSet<String>;

/// Looks for circles in each crate, and among the C files.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_against(tree, &PERMITTED)
}

fn check_against(tree: &Tree, permitted: &[(&[&str], &str)]) -> Vec<Finding> {
    let mut permitted: BTreeSet<Circle> = permitted
        .iter()
        .map(|(files, _)| files.iter().map(|file| (*file).to_owned()).collect())
        .collect();
    let crates: BTreeSet<&str> = tree.rust().filter_map(|file| file.crate_name()).collect();
    let mut findings = Vec::new();
    let of_crates = crates.iter().map(|name| imports::edges(tree, name));
    for edges in of_crates.chain([c_uses::edges(tree, C_FOLDER)]) {
        for circle in circles(&edges) {
            if !permitted.remove(&circle) {
                findings.push(finding(&circle, &edges));
            }
        }
    }
    let unused = permitted.into_iter().filter_map(|circle| circle.into_iter().next());
    findings.extend(unused.map(|path| Finding {
        path,
        line: 1,
        wrong: "a permitted circle does not exist".to_owned(),
        help: "correct the table in xtask/src/tidy/file_circles.rs".to_owned(),
    }));
    findings
}

/// Returns the largest sets of files that reach one another.
fn circles(edges: &[Edge]) -> BTreeSet<Circle> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in edges {
        next.entry(&edge.from).or_default().push(&edge.to);
    }
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for start in next.keys() {
        let files = reached.entry(start).or_default();
        let mut unseen = vec![*start];
        while let Some(file) = unseen.pop() {
            let after = next.get(file).into_iter().flatten();
            unseen.extend(after.filter(|file| files.insert(file)));
        }
    }
    let returns = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let circle = |file: &str| -> Circle {
        let others = reached[file].iter().filter(|other| returns(other, file));
        others.map(|other| (*other).to_owned()).collect()
    };
    reached.keys().map(|file| circle(file)).filter(|circle| !circle.is_empty()).collect()
}

/// A finding with a line for each edge inside the circle.
fn finding(circle: &Circle, edges: &[Edge]) -> Finding {
    let is_inside = |edge: &&Edge| circle.contains(&edge.from) && circle.contains(&edge.to);
    let inside: Vec<&Edge> = edges.iter().filter(is_inside).collect();
    let mut help = "move the shared items to a file of their own".to_owned();
    for edge in &inside {
        let (_, to) = edge.to.split_once("/src/").unwrap_or(("", &edge.to));
        help += &format!("\n    {}:{}: {to}: `{}`", edge.from, edge.line, edge.code);
    }
    let (path, line) = (inside[0].from.clone(), inside[0].line);
    Finding { path, line, wrong: format!("a circle of {} files", circle.len()), help }
}

#[cfg(test)]
mod tests {
    //! Proves: each circle is found once, with its edges, unless the table has just its files.
    use super::*;

    const ROOT: (&str, &str) = ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;");
    const A: (&str, &str) = ("crates/x/src/a.rs", "use super::b::B;");
    const B: (&str, &str) = ("crates/x/src/b.rs", "\nuse super::c::C;");
    const C: (&str, &str) = ("crates/x/src/c.rs", "fn c() { super::a::a() }");

    #[test]
    fn a_circle_is_found_once_with_its_edges() {
        let found = check_against(&Tree::of(&[ROOT, A, B, C]), &[]);
        let edges = "crates/x/src/a.rs:1: a circle of 3 files: \
            move the shared items to a file of their own\
            \n    crates/x/src/a.rs:1: b.rs: `use super::b::B;`\
            \n    crates/x/src/b.rs:2: c.rs: `use super::c::C;`\
            \n    crates/x/src/c.rs:1: a.rs: `fn c() { super::a::a() }`";
        assert_eq!(found.iter().map(Finding::to_string).collect::<Vec<_>>(), [edges]);
    }

    #[test]
    fn c_files_are_in_circles_too() {
        let header = ("mpi/src/a.h", "int a(void);\nint b(void);");
        let a = ("mpi/src/a.c", "#include \"a.h\"\nint a(void)\n{\n    return b();\n}");
        let b = ("mpi/src/b.c", "#include \"a.h\"\nint b(void)\n{\n    return a();\n}");
        let found = check_against(&Tree::of(&[header, a, b]), &[]);
        let edges = "mpi/src/a.c:4: a circle of 2 files: \
            move the shared items to a file of their own\
            \n    mpi/src/a.c:4: b.c: `return b();`\
            \n    mpi/src/b.c:4: a.c: `return a();`";
        assert_eq!(found.iter().map(Finding::to_string).collect::<Vec<_>>(), [edges]);
        let b = ("mpi/src/b.c", "#include \"a.h\"\nint b(void)\n{\n    return 1;\n}");
        assert_eq!(check_against(&Tree::of(&[header, a, b]), &[]), []);
    }

    #[test]
    fn a_line_of_files_is_no_circle() {
        assert_eq!(check_against(&Tree::of(&[ROOT, A, B]), &[]), []);
    }

    #[test]
    fn the_table_permits_a_circle_of_just_its_files() {
        let row = [(&[A.0, B.0, C.0][..], "two halves of one protocol")];
        assert_eq!(check_against(&Tree::of(&[ROOT, A, B, C]), &row), []);
        assert_eq!(check_against(&Tree::of(&[ROOT, A, B]), &row).len(), 1, "a row must go");
        let row = [(&[A.0, B.0][..], "two halves of one protocol")];
        assert_eq!(check_against(&Tree::of(&[ROOT, A, B, C]), &row).len(), 2);
    }
}
