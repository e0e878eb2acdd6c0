//! Edges between C files, read from the functions and variables that they use.
//!
//! - A source uses another one when it names a function or a variable that the other defines, and
//!   that a header which both include declares. A field or a member of that name is no use.
//! - A macro or an inline function of a header stands for the names in its body.
//! - A header uses the headers that it includes.
//! - A type belongs to the header that defines it, so its use is no edge between sources.
//! - Functions found at run time, by a pointer or `dlsym`, are not seen.

use super::bare::{bare, is_word};
use super::imports::Edge;
use super::tree::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the edges between the C files below `folder`, one for a pair, in the order of their
/// paths.
pub(super) fn edges(tree: &Tree, folder: &str) -> Vec<Edge> {
    let units: BTreeMap<&str, Unit> = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with(folder))
        .filter(|file| [".c", ".h"].iter().any(|end| file.path.ends_with(end)))
        .map(|file| (file.path.as_str(), Unit::of(file)))
        .collect();
    let mut edges = BTreeMap::new();
    for (&from, unit) in &units {
        let uses = if from.ends_with(".h") { unit.headers(&units) } else { unit.uses(&units) };
        for (line, to) in uses {
            let code = unit.file.text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
            let pair = (from.to_owned(), to.to_owned());
            let edge = Edge { from: pair.0.clone(), to: pair.1.clone(), line, code };
            edges.entry(pair).or_insert(edge);
        }
    }
    edges.into_values().collect()
}

/// One file, read.
struct Unit<'a> {
    file: &'a File,
    /// Paths of the files that it includes in quotes, with their lines.
    includes: Vec<(usize, String)>,
    /// Names in the code, with their lines.
    words: Vec<(usize, String)>,
    /// Names of functions and variables that it declares.
    declared: BTreeSet<String>,
    /// Names of functions and variables that it defines for other files.
    defined: BTreeSet<String>,
    /// Names in the bodies of macros and inline functions.
    bodies: BTreeMap<String, Vec<String>>,
}

impl<'a> Unit<'a> {
    fn of(file: &'a File) -> Self {
        let code = bare(&file.text);
        let (plain, directives) = split_directives(&code);
        let mut unit = Self {
            file,
            includes: includes(file),
            words: words(&code),
            declared: BTreeSet::new(),
            defined: BTreeSet::new(),
            bodies: directives.iter().filter_map(|directive| macro_body(directive)).collect(),
        };
        for item in items(&plain) {
            unit.add(&item);
        }
        unit
    }

    /// Adds a declaration or a definition at the top of the file.
    fn add(&mut self, item: &Item) {
        let Some(name) = item.name() else { return };
        let body = || words(&item.body).into_iter().map(|(_, word)| word).collect();
        match (item.is_function(), item.body.is_empty()) {
            (true, false) if item.has("static") => {
                self.bodies.insert(name, body());
            }
            (true, true) => {
                self.declared.insert(name);
            }
            (false, _) if item.has("extern") => {
                self.declared.insert(name);
            }
            _ if item.has("static") => {}
            _ => {
                self.defined.insert(name);
            }
        }
    }

    /// Returns the headers that the file includes, with the lines.
    fn headers<'u>(&self, units: &BTreeMap<&'u str, Unit>) -> Vec<(usize, &'u str)> {
        let known = self.includes.iter().filter_map(|(line, path)| {
            units.get_key_value(path.as_str()).map(|(path, _)| (*line, *path))
        });
        known.collect()
    }

    /// Returns the headers that the file includes, also by other headers.
    fn all_headers<'u>(&self, units: &BTreeMap<&'u str, Unit>) -> BTreeSet<&'u str> {
        let mut all = BTreeSet::new();
        let mut unread = self.headers(units);
        while let Some((_, path)) = unread.pop() {
            if all.insert(path) {
                unread.extend(units[path].headers(units));
            }
        }
        all
    }

    /// Returns the sources whose functions and variables this one names, with the lines.
    fn uses<'u>(&self, units: &BTreeMap<&'u str, Unit>) -> Vec<(usize, &'u str)> {
        let headers = self.all_headers(units);
        let mut seen = BTreeSet::new();
        let mut unread: Vec<(usize, &str)> =
            self.words.iter().rev().map(|(line, word)| (*line, word.as_str())).collect();
        let mut uses = Vec::new();
        while let Some((line, word)) = unread.pop() {
            if !seen.insert(word) {
                continue;
            }
            for header in headers.iter().map(|path| (*path, &units[path])) {
                if let Some(body) = header.1.bodies.get(word) {
                    unread.extend(body.iter().map(|word| (line, word.as_str())));
                }
                if header.1.declared.contains(word) {
                    uses.extend(definers(units, word, header.0).map(|path| (line, path)));
                }
            }
        }
        uses.retain(|(_, path)| *path != self.file.path);
        uses.sort_unstable();
        uses
    }
}

/// Returns the sources that define a name and include the header which declares it.
fn definers<'u, 't>(
    units: &'t BTreeMap<&'u str, Unit>,
    name: &'t str,
    header: &'t str,
) -> impl Iterator<Item = &'u str> + 't {
    let defines =
        move |unit: &Unit| unit.defined.contains(name) && unit.all_headers(units).contains(header);
    units.iter().filter(move |(_, unit)| defines(unit)).map(|(path, _)| *path)
}

/// Returns the paths that a file includes in quotes, from the root of the repository.
fn includes(file: &File) -> Vec<(usize, String)> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Vec::new();
    for (line, text) in file.lines() {
        let Some(rest) = text.trim_start().strip_prefix("#include \"") else { continue };
        let Some((path, _)) = rest.split_once('"') else { continue };
        let mut parts: Vec<&str> = folder.split('/').collect();
        for part in path.split('/') {
            match part {
                ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        found.push((line, parts.join("/")));
    }
    found
}

/// Returns the names in code with their lines, but not those of fields and members.
fn words(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(code.lines()) {
        let mut rest = text;
        while let Some(start) = rest.find(is_word) {
            let before = rest[..start].trim_end();
            let is_field = before.ends_with("->") || before.ends_with('.');
            let length = rest[start..].find(|letter| !is_word(letter));
            let end = length.map_or(rest.len(), |length| start + length);
            if !is_field {
                found.push((line, rest[start..end].to_owned()));
            }
            rest = &rest[end..];
        }
    }
    found
}

/// Separates the lines of the preprocessor from other code, whose lines stay.
fn split_directives(code: &str) -> (String, Vec<String>) {
    let (mut plain, mut directives) = (String::new(), Vec::<String>::new());
    let mut goes_on = false;
    for line in code.lines() {
        let begins = !goes_on && line.trim_start().starts_with('#');
        match directives.last_mut() {
            Some(directive) if goes_on => directive.push_str(line),
            _ if begins => directives.push(line.trim_start().to_owned()),
            _ => plain.push_str(line),
        }
        goes_on = (begins || goes_on) && line.trim_end().ends_with('\\');
        plain.push('\n');
    }
    (plain, directives)
}

/// Returns the name of a macro and the names in its body.
fn macro_body(directive: &str) -> Option<(String, Vec<String>)> {
    let definition = directive.strip_prefix("#define ")?;
    let mut names = words(definition).into_iter().map(|(_, word)| word);
    Some((names.next()?, names.collect()))
}

/// One declaration or definition at the top of a file.
#[derive(Default)]
struct Item {
    /// Code before the body or the `;`. Calls of macros that define something are in it too.
    head: String,
    /// Code between the braces.
    body: String,
}

impl Item {
    /// True for a word outside parentheses, such as `static`.
    fn has(&self, word: &str) -> bool {
        words(&self.outside().concat()).iter().any(|(_, found)| found == word)
    }

    fn is_function(&self) -> bool {
        let declarator = self.head.split('=').next().unwrap_or_default();
        declarator.contains('(') && !self.has("typedef")
    }

    /// Returns the name that the item declares or defines; `None` for a type.
    fn name(&self) -> Option<String> {
        if self.is_function() {
            // The last parentheses have the parameters.
            let outside = self.outside();
            let before = outside.iter().rev().nth(1)?;
            return words(before).pop().map(|(_, word)| word);
        }
        let (_, first) = words(&self.head).into_iter().next()?;
        if ["typedef", "struct", "union", "enum"].contains(&first.as_str()) {
            return None;
        }
        words(self.head.split(['=', '[']).next()?).pop().map(|(_, word)| word)
    }

    /// Returns the parts of the head before, between and behind parentheses.
    fn outside(&self) -> Vec<String> {
        let (mut parts, mut depth) = (vec![String::new()], 0_usize);
        for letter in self.head.chars() {
            match letter {
                '(' => depth += 1,
                ')' if depth == 1 => parts.push(" ".to_owned()),
                _ if depth == 0 => parts.last_mut().unwrap_or(&mut String::new()).push(letter),
                _ => {}
            }
            depth -= usize::from(letter == ')' && depth > 0);
        }
        parts
    }
}

/// Cuts code without lines of the preprocessor into its items.
fn items(plain: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut item = Item::default();
    let mut depth = 0_usize;
    for letter in plain.chars() {
        depth += usize::from(letter == '{');
        let is_head = depth == 0 && letter != ';';
        if depth > 0 {
            item.body.push(letter);
        } else if is_head {
            item.head.push(letter);
        }
        let closes = letter == '}' && depth == 1;
        depth -= usize::from(letter == '}' && depth > 0);
        if (letter == ';' && depth == 0) || (closes && item.is_function()) {
            items.push(std::mem::take(&mut item));
        }
    }
    items
}

#[cfg(test)]
mod tests {
    //! Proves: uses of functions, variables, macros and inline functions are edges; fields, types,
    //! static names and names of other headers are none.
    use super::*;

    const HEADER: (&str, &str) = (
        "m/src/a.h",
        "#define TWICE(x) \\\n    (one(x) + one(x))\nstruct s { int (*two)(int); };\n\
         int one(int x);\nextern int count;\nvoid each(int (*f)(int), int x);\n\
         static inline int three(int x)\n{\n    return one(x);\n}\n",
    );
    const DEFINITION: (&str, &str) = (
        "m/src/one.c",
        "#include \"a.h\"\nint count = 3, *p;\nint one(int x)\n{\n    return x;\n}\n",
    );

    fn edges_of(files: &[(&str, &str)]) -> Vec<String> {
        let edges = edges(&Tree::of(files), "m/src/");
        let short = |path: &str| path.trim_start_matches("m/src/").to_owned();
        edges.iter().map(|e| format!("{}>{}:{}", short(&e.from), short(&e.to), e.line)).collect()
    }

    /// Edges of a source with this code, which includes the header in its first line.
    fn uses(code: &str) -> Vec<String> {
        let user = format!("#include \"a.h\"\n{code}");
        edges_of(&[HEADER, DEFINITION, ("m/src/user.c", &user)])
    }

    #[test]
    fn functions_and_variables_of_other_sources_are_used() {
        assert_eq!(uses("int f(void)\n{\n    return one(1);\n}"), ["user.c>one.c:4"]);
        assert_eq!(uses("int *f = &count;"), ["user.c>one.c:2"]);
        assert_eq!(uses("table_t t = {.call = one};"), ["user.c>one.c:2"]);
    }

    #[test]
    fn macros_and_inline_functions_stand_for_their_bodies() {
        assert_eq!(uses("int f(int x) { return TWICE(x); }"), ["user.c>one.c:2"]);
        assert_eq!(uses("\nint f(int x) { return three(x); }"), ["user.c>one.c:3"]);
    }

    #[test]
    fn other_names_are_no_uses() {
        let nothing = [] as [&str; 0];
        assert_eq!(uses("/* one */ struct s s; char *c = \"one\";"), nothing);
        assert_eq!(uses("int f(s_t *s) { return s->one + s->t.count; }"), nothing);
        assert_eq!(uses("t_t t = {.one = 1};"), nothing);
    }

    #[test]
    fn a_name_is_that_of_a_header_which_both_include() {
        let user = ("m/src/user.c", "int f(int one)\n{\n    return one;\n}");
        assert_eq!(edges_of(&[HEADER, DEFINITION, user]), [] as [&str; 0]);
        let other = ("m/src/b/a.h", "int one(int x);");
        let second = ("m/src/b/one.c", "#include \"a.h\"\nint one(int x) { return x; }");
        let user = ("m/src/b/user.c", "#include \"a.h\"\nint f(void) { return one(1); }");
        let edges = edges_of(&[HEADER, DEFINITION, other, second, user]);
        assert_eq!(edges, ["b/user.c>b/one.c:2"]);
        let user = ("m/src/b/user.c", "#include \"../a.h\"\nint f(void) { return one(1); }");
        let edges = edges_of(&[HEADER, DEFINITION, other, second, user]);
        assert_eq!(edges, ["b/user.c>one.c:2"]);
    }

    #[test]
    fn a_function_is_found_behind_macros_and_attributes() {
        let code = "#include \"a.h\"\nDEFINE(read, )\nDEFINE(write, int)\n\
                    __attribute__((cold)) int one(int (*f)(int), int x)\n{\n    return x;\n}\n";
        let user = ("m/src/user.c", "#include \"a.h\"\nint f(void) { return one(1); }");
        assert_eq!(edges_of(&[HEADER, ("m/src/one.c", code), user]), ["user.c>one.c:2"]);
    }

    #[test]
    fn static_functions_belong_to_their_file() {
        let code = "#include \"a.h\"\nstatic int one(int x)\n{\n    return x;\n}";
        let user = ("m/src/user.c", "#include \"a.h\"\nint f(void) { return one(1); }");
        assert_eq!(edges_of(&[HEADER, ("m/src/one.c", code), user]), [] as [&str; 0]);
    }

    #[test]
    fn headers_use_the_headers_that_they_include() {
        let first = ("m/src/b.h", "\n#include \"c/d.h\"\n");
        let second = ("m/src/c/d.h", "#include \"../b.h\"\n");
        assert_eq!(edges_of(&[first, second]), ["b.h>c/d.h:2", "c/d.h>b.h:1"]);
    }
}
