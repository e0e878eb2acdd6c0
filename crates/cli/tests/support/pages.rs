//! Examples of pages: their blocks of commands, and what a page says of them.
//!
//! A comment on the line before a block of commands says what is done with it:
//!
//! ```text
//! (none)                     `readme.rs` runs it
//! <!-- fails: 1 -->          the same, and its exit code is 1
//! <!-- run with MPI -->      `mpi/tests/newcomer.rs` runs it
//! <!-- run in a Slurm job --> `mpi/tests/slurm.rs` submits it as a job script
//! <!-- not run: REASON -->   nothing runs it
//! ```
//!
//! Blocks of one page run in their order, in one shell. A comment before a block of text says what
//! it is:
//!
//! ```text
//! <!-- printed -->           what the commands before it print, with other numbers
//! <!-- printed exactly -->   the same, with these numbers
//! <!-- printed in part -->   lines of what they print, with other numbers
//! <!-- picture -->           nothing that is printed
//! <!-- not run: REASON -->   the output of something that nothing runs
//! ```

use std::path::Path;

/// Line that a script prints before the output of each block.
const MARK: &str = "== output of the block at line ";

/// Treatment of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// It is run, and ends with this exit code.
    Run(i32),
    /// It is run by a test that has MPI.
    RunWithMpi,
    /// It is a job script, which a test with Slurm submits.
    RunInJob,
    /// It is not run.
    NotRun,
}

/// A block of commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Example {
    /// Number of its first line in the page.
    pub(crate) line: usize,
    /// Commands for a shell.
    pub(crate) commands: String,
    /// Treatment of the block.
    pub(crate) how: How,
    /// Expected output.
    pub(crate) printed: Option<(String, Printed)>,
}

/// Relation of a text to the output of the commands before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Printed {
    /// It is the output, but for numbers.
    ButNumbers,
    /// It is the output.
    Exactly,
    /// The output holds it, but for numbers.
    InPart,
}

impl Printed {
    /// Relation of which a comment speaks, if it is one.
    fn of(said: &str, number: usize) -> Option<Self> {
        match said.split_once(": ") {
            _ if said == "printed" => Some(Self::ButNumbers),
            _ if said == "printed exactly" => Some(Self::Exactly),
            _ if said == "printed in part" => Some(Self::InPart),
            _ if said == "picture" => None,
            Some(("not run", reason)) if !reason.is_empty() => None,
            _ => panic!("line {number}: <!-- {said} --> is not understood"),
        }
    }
}

/// Reads the examples of a page.
///
/// # Panics
/// If a comment is not understood, a block of text has none, or text is printed by no block.
pub(crate) fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut lines = (1..).zip(page.lines());
    let mut before = "";
    while let Some((number, line)) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            let body: String = body.flat_map(|line| [line, "\n"]).collect();
            let said = before.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            match kind {
                "sh" => {
                    let how = said.map_or(How::Run(0), |said| how(said, number));
                    examples.push(Example { line: number, commands: body, how, printed: None });
                }
                "text" => {
                    let said = said.unwrap_or_else(|| panic!("line {number}: what is this text?"));
                    if let Some(relation) = Printed::of(said, number) {
                        let last = examples.last_mut();
                        let last =
                            last.unwrap_or_else(|| panic!("line {number}: printed by what?"));
                        last.printed = Some((body, relation));
                    }
                }
                _ => {}
            }
        }
        before = line;
    }
    examples
}

fn how(said: &str, number: usize) -> How {
    match said.split_once(": ") {
        _ if said == "run with MPI" => How::RunWithMpi,
        _ if said == "run in a Slurm job" => How::RunInJob,
        Some(("not run", reason)) if !reason.is_empty() => How::NotRun,
        Some(("fails", code)) => How::Run(code.parse().expect("an exit code is a number")),
        _ => panic!("line {number}: <!-- {said} --> is not understood"),
    }
}

/// Script that runs examples in one shell and ends at the first that fails.
pub(crate) fn script<'a>(examples: impl IntoIterator<Item = &'a Example>) -> String {
    let mut script = "exec 2>&1\nset -e\n".to_owned();
    for Example { line, commands, how, .. } in examples {
        script += &format!("echo '{MARK}{line}'\n");
        script += &match how {
            How::Run(code) if *code != 0 => {
                format!("code=0\n{{ {commands} }} || code=$?\ntest $code = {code}\n")
            }
            _ => commands.clone(),
        };
    }
    script
}

/// Proves that the output of a [`script`] holds what the page shows.
///
/// # Panics
/// If it does not.
#[track_caller]
pub(crate) fn assert_printed<'a>(
    page: &Path,
    examples: impl IntoIterator<Item = &'a Example>,
    output: &str,
) {
    for Example { line, printed, .. } in examples {
        let Some((expected, relation)) = printed else { continue };
        let (_, rest) = output.split_once(&format!("{MARK}{line}\n")).expect("the block was run");
        let found = rest.split(MARK).next().unwrap_or_default();
        let is_same = match relation {
            Printed::Exactly => found == expected,
            Printed::ButNumbers => without_numbers(found) == without_numbers(expected),
            Printed::InPart => without_numbers(found).contains(&without_numbers(expected)),
        };
        let page = page.display();
        assert!(is_same, "{page}:{line} prints\n{found}\nand the page says\n{expected}");
    }
}

/// Text in which each number is 0, and space is one blank.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        let is_of_number = |letter: &char| letter.is_ascii_digit() || *letter == '.';
        match letter {
            _ if letter.is_ascii_digit() => {
                while letters.next_if(is_of_number).is_some() {}
                out.push('0');
            }
            _ if letter.is_whitespace() => {
                while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
                out.push(' ');
            }
            _ => out.push(letter),
        }
    }
    // Short times have other units.
    ["0 ms", "0 us", "0 ns"].into_iter().fold(out, |out, time| out.replace(time, "0 s"))
}
