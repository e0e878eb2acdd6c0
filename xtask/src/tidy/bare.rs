//! Code without comments, literals and lifetimes, so that rules may search for words and braces.

use super::tree::File;

/// Lines of code outside tests, bare, with their numbers from 1.
pub(super) fn code(file: &File) -> Vec<(usize, String)> {
    let text = bare(&file.text);
    let lines: Vec<&str> = text.lines().collect();
    file.code_lines().map(|(number, _)| (number, lines[number - 1].to_owned())).collect()
}

/// Replaces each character of a comment, literal or lifetime by a space; lines stay.
pub(super) fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hidden =
            hidden_bytes(rest, out.chars().next_back().is_some_and(is_word)).min(rest.len());
        if hidden == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let blank = |letter| if letter == '\n' { '\n' } else { ' ' };
            out.extend(rest[..hidden].chars().map(blank));
            rest = &rest[hidden..];
        }
    }
    out
}

/// True for a character of names and numbers.
pub(super) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Length in bytes of the comment, literal or lifetime at the start of `rest`; 0 for other code.
fn hidden_bytes(rest: &str, after_word: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_bytes(rest);
    }
    if let Some(inner) = rest.strip_prefix('"') {
        return 1 + string_bytes(inner);
    }
    if let Some(inner) = rest.strip_prefix('\'') {
        return 1 + quoted_bytes(inner);
    }
    let prefixed = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'));
    let Some(opening) = prefixed.filter(|_| !after_word) else { return 0 };
    let inner = opening.trim_start_matches('#');
    if !inner.starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(opening.len() - inner.len()));
    let length = inner[1..].find(&end).map_or(inner.len(), |at| 1 + at + end.len());
    rest.len() - inner.len() + length
}

/// Length of a block comment, with those in it.
fn block_comment_bytes(rest: &str) -> usize {
    let mut depth = 0;
    for (at, _) in rest.char_indices() {
        if rest[at..].starts_with("/*") {
            depth += 1;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
        }
        if depth == 0 {
            return at + 2;
        }
    }
    rest.len()
}

/// Length of a string after its opening quote.
fn string_bytes(inner: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in inner.char_indices() {
        if letter == '"' && !escaped {
            return at + 1;
        }
        escaped = letter == '\\' && !escaped;
    }
    inner.len()
}

/// Length of a character or of a lifetime after its quote.
fn quoted_bytes(inner: &str) -> usize {
    let mut letters = inner.chars();
    let first = letters.next().map_or(0, char::len_utf8);
    if inner.starts_with('\\') {
        let end = inner.get(2..).and_then(|tail| tail.find('\''));
        return end.map_or(inner.len(), |at| 2 + at + 1);
    }
    if letters.next() == Some('\'') {
        return first + 1;
    }
    inner.find(|letter| !is_word(letter)).unwrap_or(inner.len())
}

#[cfg(test)]
mod tests {
    //! Proves: each kind of comment, literal and lifetime is blanked; code and lines stay.
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn only_code_stays() {
        let words = |text: &str| bare(text).split_whitespace().collect::<Vec<_>>().join(" ");
        for (text, expected) in [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"a("b \" // c", d)"#, "a( , d)"),
            (r##"a(r#"b " c"#, br"d\", e)"##, "a( , , e)"),
            (r"a('b', '\'', '\\', '\u{41}', '{', c)", "a( , , , , , c)"),
            ("a<'b>(&'b str, r#type, for_r)", "a< >(& str, r#type, for_r)"),
            ("\"never closed", ""),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        assert_eq!(bare("a \"b\nc\" /*\n*/ d").lines().count(), 3);
    }

    #[test]
    fn tests_and_comments_are_left_out() {
        let text = "a;\n// b\n#[cfg(test)]\nc;\nd(\"e\");\n";
        let tree = Tree::of(&[("crates/x/src/a.rs", text)]);
        let lines = [(1, "a;".to_owned()), (5, "d(   );".to_owned())];
        assert_eq!(code(&tree.files[0]), lines);
    }
}
