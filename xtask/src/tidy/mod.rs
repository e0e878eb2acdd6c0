//! `cargo x tidy`: rules of the tree that no compiler checks, one file a rule.
//!
//! Every rule is a pure function from the tree to findings, so that its tests can prove that it can
//! fail. A finding has a place, a defect, and what to do.

mod bare;
mod c_uses;
mod core_globals;
mod core_std;
mod crate_edges;
mod decisions;
mod doc_openings;
mod fast_paths;
mod file_circles;
mod function_length;
mod header;
mod imports;
mod large_files;
mod length;
mod links;
mod machine_paths;
mod metadata;
mod superseded;
mod tree;
mod unfinished;
mod unsafe_code;
mod unwrap;
mod width;

use std::path::Path;
use tree::{Finding, Tree};

/// Rules about files.
const FILE_RULES: [fn(&Tree) -> Vec<Finding>; 17] = [
    core_globals::check,
    core_std::check,
    decisions::check,
    doc_openings::check,
    fast_paths::check,
    file_circles::check,
    function_length::check,
    header::check,
    large_files::check,
    length::check,
    links::check,
    machine_paths::check,
    superseded::check,
    unfinished::check,
    unsafe_code::check,
    unwrap::check,
    width::check,
];

/// Checks the tree at `root`; prints the findings and returns false when there is any.
pub(crate) fn run(root: &Path) -> bool {
    let read = Tree::read(root).and_then(|tree| Ok((metadata::read(root)?, tree)));
    let (packages, tree) = match read {
        Ok(read) => read,
        Err(cause) => {
            eprintln!(
                "error: tidy cannot read the tree\ncause: {cause}\nhelp:  repair the cause, \
                       then run tidy again"
            );
            return false;
        }
    };
    let mut findings: Vec<Finding> = FILE_RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.extend(crate_edges::check(&packages, &tree));
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", tree.files.len(), findings.len());
    findings.is_empty()
}
