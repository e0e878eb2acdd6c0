//! Choices that users make by name. Each choice has one table of its values, names and help texts.
//!
//! Invariant: commands, scenario files, error messages and help texts are made of these tables.

/// Value of a choice, with its name and its help text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice<T> {
    /// Value that the name stands for.
    pub(crate) value: T,
    /// Word for the value in commands and scenario files.
    pub(crate) name: &'static str,
    /// Explanation of the value: a phrase without a full stop.
    pub(crate) help: &'static str,
}

/// Returns the names of a table, in its order.
pub(crate) const fn names<T, const N: usize>(choices: &[Choice<T>; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = choices[index].name;
        index += 1;
    }
    names
}

/// Returns the value that `word` names. `noun` is what the choice is called in the error.
pub(crate) fn parse<T: Copy>(word: &str, choices: &[Choice<T>], noun: &str) -> Result<T, String> {
    let found = choices.iter().find(|choice| choice.name == word);
    found.map(|choice| choice.value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
        format!("{word:?} is not a known {noun}; use one of {}", names.join(", "))
    })
}

/// Returns the name of `value`; empty if the table does not have it.
pub(crate) fn name_of<T: PartialEq>(value: &T, choices: &[Choice<T>]) -> &'static str {
    choices.iter().find(|choice| choice.value == *value).map_or("", |choice| choice.name)
}

/// Makes one constant text of a table: the first text, then `name: help` of each value separated by
/// semicolons, then the last text.
macro_rules! help_text {
    ($first:expr, $choices:expr, $last:expr) => {{
        const LENGTH: usize = $crate::choice::help_bytes::<_, _, 0>($first, &$choices, $last).1;
        const BYTES: [u8; LENGTH] =
            $crate::choice::help_bytes::<_, _, LENGTH>($first, &$choices, $last).0;
        match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("texts that are joined must stay texts"),
        }
    }};
}
pub(crate) use help_text;

/// Returns the first `ROOM` bytes of the text that [`help_text`] makes, and its whole length.
pub(crate) const fn help_bytes<T, const N: usize, const ROOM: usize>(
    first: &str,
    choices: &[Choice<T>; N],
    last: &str,
) -> ([u8; ROOM], usize) {
    let mut text = append(([0; ROOM], 0), first);
    let mut index = 0;
    while index < N {
        text = append(text, if index == 0 { "" } else { "; " });
        text = append(text, choices[index].name);
        text = append(text, ": ");
        text = append(text, choices[index].help);
        index += 1;
    }
    append(text, last)
}

const fn append<const ROOM: usize>(
    (mut bytes, mut length): ([u8; ROOM], usize),
    part: &str,
) -> ([u8; ROOM], usize) {
    let mut index = 0;
    while index < part.len() {
        if length < ROOM {
            bytes[length] = part.as_bytes()[index];
        }
        length += 1;
        index += 1;
    }
    (bytes, length)
}

#[cfg(test)]
mod tests {
    //! Proves: names, values and help texts are those of the table.
    use super::*;

    const TABLE: [Choice<u8>; 2] = [
        Choice { value: 3, name: "three", help: "more than two" },
        Choice { value: 1, name: "one", help: "a single one" },
    ];

    #[test]
    fn a_table_is_all_that_a_choice_needs() {
        assert_eq!(names(&TABLE), ["three", "one"]);
        assert_eq!(parse("one", &TABLE, "number"), Ok(1));
        let error = parse("two", &TABLE, "number").expect_err("the table does not have it");
        assert_eq!(error, "\"two\" is not a known number; use one of three, one");
        assert_eq!((name_of(&3, &TABLE), name_of(&2, &TABLE)), ("three", ""));
        const HELP: &str = help_text!("Some: ", TABLE, ".");
        assert_eq!(HELP, "Some: three: more than two; one: a single one.");
    }
}
