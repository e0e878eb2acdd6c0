//! Edges between the files of one crate, read from the paths in code outside tests.
//!
//! - A path through a re-export leads to the file that defines the name.
//! - The use of a child by a relative path, and any re-export of it, is no edge: the two are one
//!   thing. A path from `crate` or `super` is an edge.
//! - The import of a module is no use of it; a path through the module is.
//! - Names behind globs, and methods of a type that is never named, are not seen.

use super::bare::{self, is_word};
use super::tree::{File, Tree};
use std::collections::BTreeMap;

/// Highest number of re-exports that a path is followed through.
const REEXPORTS_MAX: usize = 8;

/// The use of one file by another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    /// Path of the file that uses.
    pub(super) from: String,
    /// Path of the file that is used.
    pub(super) to: String,
    /// Line of the first use, from 1.
    pub(super) line: usize,
    /// Code in that line.
    pub(super) code: String,
}

/// Returns the edges between the files of a crate, one for a pair, in the order of their paths.
pub(super) fn edges(tree: &Tree, crate_name: &str) -> Vec<Edge> {
    let modules = Modules::of(tree, crate_name);
    let mut edges = BTreeMap::new();
    for (here, module) in &modules.0 {
        for (line, to) in modules.uses(here, module) {
            let (from, to) = (module.file.path.clone(), modules.0[&to].file.path.clone());
            let code = module.file.text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
            let pair = (from.clone(), to.clone());
            edges.entry(pair).or_insert(Edge { from, to, line, code });
        }
    }
    edges.into_values().collect()
}

/// The modules of a crate by their paths, such as `a::b`; the root has the empty path.
struct Modules<'a>(BTreeMap<String, Module<'a>>);

impl<'a> Modules<'a> {
    /// Takes the files under `src` that code outside tests declares.
    fn of(tree: &'a Tree, crate_name: &str) -> Self {
        let mut modules = BTreeMap::new();
        for file in tree.rust().filter(|file| file.crate_name() == Some(crate_name)) {
            if let Some(path) = module_path(&file.path) {
                modules.entry(path).or_insert_with(|| Module::of(file));
            }
        }
        let is_test = |path: &str| {
            let (parent, name) = split(path)?;
            let parent: Option<&Module> = modules.get(parent);
            (!parent?.declares(name)).then(|| path.to_owned())
        };
        let tests: Vec<String> = modules.keys().filter_map(|path| is_test(path)).collect();
        modules.retain(|path, _| !tests.contains(path));
        Self(modules)
    }

    /// Returns the modules that a module uses, with the lines of its code.
    fn uses(&self, here: &str, module: &Module) -> Vec<(usize, String)> {
        let imports = module.imports.iter();
        let imports = imports.map(|import| (import.line, &import.path, import.is_public));
        let names = paths(&module.tokens);
        let names = names.iter().map(|(line, path)| (*line, path, false));
        let mut uses = Vec::new();
        for (line, path, is_public) in imports.chain(names) {
            let Some(to) = self.resolve(here, path, REEXPORTS_MAX) else { continue };
            let is_own = (is_public || module.is_relative(path)) && is_below(here, &to);
            if to != here && !is_own {
                uses.push((line, to));
            }
        }
        uses.sort();
        uses
    }

    /// Returns the module that defines the name at the end of `path`, as the module `here` says it.
    ///
    /// `None` for a module, for a name of another crate, and for a bare name of `here`.
    fn resolve(&self, here: &str, path: &[String], reexports_max: usize) -> Option<String> {
        let mut at = here.to_owned();
        for (done, name) in path.iter().enumerate() {
            let after = &path[done + 1..];
            let import = self.0.get(&at).and_then(|module| module.import(name));
            let child = Some(join(&at, name)).filter(|child| self.0.contains_key(child));
            at = match (name.as_str(), child, import) {
                ("crate", ..) => String::new(),
                ("self", ..) => at,
                ("super", ..) => split(&at)?.0.to_owned(),
                (_, Some(child), None) => child,
                (_, Some(child), _) if !after.is_empty() => child,
                (_, _, Some(import)) => {
                    let path = [&import.path, after].concat();
                    return self.resolve(&at, &path, reexports_max.checked_sub(1)?);
                }
                (_, _, None) => return (done > 0).then_some(at),
            };
        }
        None
    }
}

/// One file, read.
struct Module<'a> {
    file: &'a File,
    imports: Vec<Import>,
    /// The code without its imports.
    tokens: Vec<Token>,
}

/// One name in a `use`.
struct Import {
    line: usize,
    name: String,
    path: Vec<String>,
    is_public: bool,
}

/// A word, `::`, `..`, or any other character.
struct Token {
    line: usize,
    text: String,
}

impl<'a> Module<'a> {
    fn of(file: &'a File) -> Self {
        let mut module = Self { file, imports: Vec::new(), tokens: Vec::new() };
        let mut rest = tokens(file).into_iter().peekable();
        while let Some(token) = rest.next() {
            // `use<…>` is a bound.
            if token.text != "use" || rest.peek().is_some_and(|next| next.text == "<") {
                module.tokens.push(token);
                continue;
            }
            let before = module.tokens.last().map(|token| token.text.as_str());
            let is_public = before == Some("pub") || before == Some(")");
            let tree: Vec<Token> = rest.by_ref().take_while(|token| token.text != ";").collect();
            module.add_imports(tree, is_public);
            module.tokens.push(Token { line: token.line, text: ";".to_owned() });
        }
        module
    }

    /// Adds the names in the tree of a `use`.
    fn add_imports(&mut self, tree: Vec<Token>, is_public: bool) {
        let mut groups = vec![0];
        let mut path: Vec<String> = Vec::new();
        let mut alias = None;
        let mut is_alias = false;
        let end = Token { line: tree.last().map_or(1, |last| last.line), text: ",".to_owned() };
        for Token { line, text } in tree.into_iter().chain([end]) {
            match text.as_str() {
                "::" | "as" => {}
                "{" => groups.push(path.len()),
                "," | "}" => {
                    if groups.last().is_some_and(|start| path.len() > *start) {
                        path.pop_if(|last| last == "self");
                        let name = alias.take().or(path.last().cloned()).unwrap_or_default();
                        self.imports.push(Import { line, name, path: path.clone(), is_public });
                    }
                    groups.pop_if(|_| text == "}");
                    path.truncate(groups.last().copied().unwrap_or_default());
                }
                _ if is_alias => alias = Some(text.clone()),
                _ => path.push(text.clone()),
            }
            is_alias = text == "as";
        }
    }

    fn import(&self, name: &str) -> Option<&Import> {
        self.imports.iter().find(|import| import.name == name)
    }

    /// True for a path that begins neither at the root nor at a parent, not even through an import.
    fn is_relative(&self, path: &[String]) -> bool {
        match (path[0].as_str(), self.import(&path[0])) {
            ("crate" | "super", _) => false,
            (first, Some(import)) => import.path[0] == first || self.is_relative(&import.path),
            _ => true,
        }
    }

    fn declares(&self, name: &str) -> bool {
        let is_declaration = |words: &[Token]| words[0].text == "mod" && words[1].text == name;
        self.tokens.windows(2).any(is_declaration)
    }
}

/// Returns the path of the module in a file: `a::b` for `src/a/b.rs` and `src/a/b/mod.rs`.
fn module_path(file: &str) -> Option<String> {
    let path = file.split_once("/src/")?.1.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    Some(if path == "lib" || path == "main" { String::new() } else { path.replace('/', "::") })
}

/// Returns parent and name of a module; `None` for the root.
fn split(path: &str) -> Option<(&str, &str)> {
    (!path.is_empty()).then(|| path.rsplit_once("::").unwrap_or(("", path)))
}

/// True for the modules under a module.
fn is_below(module: &str, other: &str) -> bool {
    let rest = other.strip_prefix(module);
    rest.is_some_and(|rest| !rest.is_empty() && (module.is_empty() || rest.starts_with("::")))
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}::{name}") }
}

fn tokens(file: &File) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (line, code) in bare::code(file) {
        let mut rest = code.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
            } else if rest.starts_with("::") || rest.starts_with("..") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(Token { line, text: rest[..length].to_owned() });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Returns each path in code, also of one name, with its line.
///
/// Methods, fields and names that are being declared are none.
fn paths(tokens: &[Token]) -> Vec<(usize, Vec<String>)> {
    let mut paths: Vec<(usize, Vec<String>)> = Vec::new();
    let mut before = "";
    let mut is_open = false;
    let is_no_path = |before: &str| [".", "::", "mod", "fn", "let"].contains(&before);
    for Token { line, text } in tokens {
        let is_name = text.starts_with(is_word);
        if text == ":" && is_open {
            paths.pop_if(|(_, path)| path.len() == 1);
        }
        match paths.last_mut() {
            Some((_, path)) if is_name && is_open && before == "::" => path.push(text.clone()),
            _ if is_name && !is_no_path(before) => {
                paths.push((*line, vec![text.clone()]));
                is_open = true;
            }
            _ => is_open &= text == "::",
        }
        before = text;
    }
    paths
}

#[cfg(test)]
mod tests {
    //! Proves: each form of path is an edge to the file that defines the name, and nothing else is.
    use super::*;

    /// Edges as `from>to:line` in a crate whose `lib.rs` declares `a`, `b` and `c`.
    fn edges_of(files: &[(&str, &str)]) -> Vec<String> {
        let path = |name: &str| format!("crates/x/src/{name}.rs");
        let root = ("lib", "mod a;\nmod b;\nmod c;");
        let files: Vec<(String, &str)> =
            files.iter().chain([&root]).map(|(name, text)| (path(name), *text)).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let short = |path: &str| module_path(path).unwrap();
        edges(&Tree::of(&files), "x")
            .iter()
            .map(|edge| format!("{}>{}:{}", short(&edge.from), short(&edge.to), edge.line))
            .collect()
    }

    #[test]
    fn each_form_of_path_is_an_edge() {
        for text in [
            "use crate::b::B;",
            "use super::b::B;",
            "use crate::{c, b::B as D};",
            "use super::b::*;",
            "pub(crate) use crate::b::B;",
            "use units::A; fn a() { crate::b::b(0..1) }",
            "fn a(b: &super::b::B) {}",
            "use super::b; fn a() { b::b::<u8>() }",
            "use super::{b::{self as d, e}}; fn a(a: d::B) {}",
            "macro_rules! a { () => { $crate::b::b() } }",
        ] {
            assert_eq!(edges_of(&[("a", text), ("b", ""), ("c", "")]), ["a>b:1"], "{text}");
        }
    }

    #[test]
    fn other_names_are_no_edge() {
        for text in [
            "use super::b;",
            "use b::B;",
            "use self::A; use crate::a::A;",
            "// crate::b::b()",
            "fn a() { \"crate::b::b()\".b() }",
            "fn a(b: impl B + use<'_>) { a.b::c() }",
            "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
        ] {
            assert_eq!(edges_of(&[("a", text), ("b", "")]), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn a_path_leads_through_re_exports() {
        let text = "use super::b::D; fn a() { super::b::e() }";
        let parent = "mod d; pub use d::D; pub use units::e;";
        assert_eq!(edges_of(&[("a", text), ("b/mod", parent), ("b/d", "")]), ["a>b::d:1"]);
        let circle = "pub use super::a::B;";
        let own = "pub use super::b::B;";
        assert_eq!(edges_of(&[("a", own), ("b", circle)]), [] as [&str; 0]);
    }

    #[test]
    fn a_parent_uses_children_that_it_names_from_the_root() {
        let edges = |parent: &str| edges_of(&[("a", parent), ("a/d", "")]);
        assert_eq!(edges("mod d;\npub use d::D;\nfn a(d: D) {}"), [] as [&str; 0]);
        assert_eq!(edges("mod d;\nuse d::D;\nfn a() { d::d() }"), [] as [&str; 0]);
        assert_eq!(edges("mod d;\npub use crate::a::d::D;"), [] as [&str; 0]);
        assert_eq!(edges("mod d;\npub use d::E;\nuse crate::a::d::D;"), ["a>a::d:3"]);
        assert_eq!(edges("mod d;\nuse super::a::d;\nfn a() { d::d() }"), ["a>a::d:3"]);
    }

    #[test]
    fn a_child_uses_what_its_parent_defines() {
        let edges = edges_of(&[("a", "mod d;"), ("a/d", "use super::A;")]);
        assert_eq!(edges, ["a::d>a:1"]);
    }

    #[test]
    fn files_that_only_tests_declare_are_left_out() {
        let parent = "#[cfg(test)]\nmod d;";
        let edges = edges_of(&[("a", parent), ("a/d", "use super::A;")]);
        assert_eq!(edges, [] as [&str; 0]);
    }
}
