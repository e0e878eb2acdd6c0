//! Core crates keep no global state: nodes in one process share only what they are given.

use super::bare;
use super::core_std::has_word;
use super::crate_edges::CORE;
use super::tree::{Finding, Tree};

/// Type of a static that holds no state: functions, by whose one address wakers are recognised.
const STATELESS: &str = "RawWakerVTable";

/// Looks at the code of core crates outside tests; `thread_local!` has a `static` in it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let help = "put the state in a node or pass it as an argument; make a constant value a `const`";
    let is_core = |name: Option<&str>| name.is_some_and(|name| CORE.contains(&name));
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| is_core(file.crate_name())) {
        for (number, line) in bare::code(file) {
            if has_word(&line, "static") && !has_word(&line, STATELESS) {
                findings.push(file.finding(number, "global state in core".to_owned(), help));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! Proves: each form of global is found, in code of core crates only, and no other word is.
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn each_form_is_found() {
        for name in CORE {
            let path = format!("crates/{name}/src/a.rs");
            assert_eq!(found(&path, "pub(crate) static A: u8 = 1;"), 1);
            assert_eq!(found(&path, "fn a() {\n    static mut A: u8 = 1;\n}"), 1);
            let local = "thread_local! {\n    static A: u8 = 1;\n    static B: u8 = 1;\n}";
            assert_eq!(found(&path, local), 2);
        }
    }

    #[test]
    fn constants_lifetimes_talk_and_tests_are_free() {
        let path = "crates/policy/src/a.rs";
        assert_eq!(found(path, "const A: &'static str = \"static\"; // static"), 0);
        assert_eq!(found(path, "#[cfg(test)]\nstatic A: u8 = 1;\n"), 0);
        assert_eq!(found("crates/policy/tests/a.rs", "static A: u8 = 1;"), 0);
        assert_eq!(found("crates/launch/src/a.rs", "static A: u8 = 1;"), 0);
        assert_eq!(found(path, &format!("static A: {STATELESS} = a();")), 0);
    }
}
