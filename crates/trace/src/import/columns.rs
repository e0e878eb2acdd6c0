//! Columns of a table of segments, found by the names in its header.
//!
//! Darshan's releases print different columns, in this order:
//!
//! ```text
//! 3.1, MPI-IO:  # Module  Rank  Wt/Rd  Segment  Length  Start(s)  End(s)
//! 3.2 to 3.5:   # Module  Rank  Wt/Rd  Segment  Offset  Length  Start(s)  End(s)
//! on Lustre:    the same, then [OST]
//! after 3.5:    the same, then Pthread-ID
//! ```
//!
//! A column of another name is ignored. A column in brackets has any number of values, also none,
//! and each is in brackets: `[  3]  [  4]`.

/// Name of a column that is read, as its header has it, and what its values are.
const READ: [(&str, &str); 8] = [
    ("Module", "module"),
    ("Rank", "rank"),
    ("Wt/Rd", "direction"),
    ("Segment", "number of the segment"),
    ("Offset", "offset"),
    ("Length", "length"),
    ("Start(s)", "begin"),
    ("End(s)", "end"),
];
const MODULE: usize = 0;
const RANK: usize = 1;
const DIRECTION: usize = 2;
const SEGMENT: usize = 3;
const OFFSET: usize = 4;
const LENGTH: usize = 5;
const BEGIN: usize = 6;
const END: usize = 7;

/// Largest number of columns, those in brackets not counted.
const COLUMNS_MAX: usize = 64;

/// Columns of a table.
#[derive(Debug)]
pub(super) struct Columns {
    /// For each column that has one value, its place in [`READ`]; `None` if it is not read.
    columns: Vec<Option<usize>>,
}

impl Columns {
    /// True if `comment` is the header of a table.
    pub(super) fn are_in(comment: &str) -> bool {
        let mut words = comment.split_whitespace();
        words.next() == Some(READ[MODULE].0) && words.next() == Some(READ[RANK].0)
    }

    /// Columns of the table with the header `comment`.
    pub(super) fn read(comment: &str) -> Result<Self, String> {
        let names: Vec<&str> =
            comment.split_whitespace().filter(|name| !name.starts_with('[')).collect();
        if names.len() > COLUMNS_MAX {
            return Err(format!("there are more than {COLUMNS_MAX} columns"));
        }
        for (place, (name, _)) in READ.iter().enumerate() {
            let count = names.iter().filter(|other| *other == name).count();
            if count > 1 || (count == 0 && place != OFFSET) {
                return Err(format!("{count} columns are named {name}"));
            }
        }
        let place = |name: &&str| READ.iter().position(|(read, _)| read == name);
        Ok(Self { columns: names.iter().map(place).collect() })
    }

    /// Values of a line of the table.
    pub(super) fn values<'a>(&self, line: &'a str) -> Result<Values<'a>, String> {
        let mut values = [None; READ.len()];
        let mut columns = self.columns.iter();
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            if word.starts_with('[') {
                let mut last = Some(word);
                while last.is_some_and(|last| !last.ends_with(']')) {
                    last = words.next();
                }
                last.ok_or("a bracket is not closed")?;
                continue;
            }
            match columns.next() {
                Some(Some(place)) => values[*place] = Some(word),
                Some(None) => {}
                None => return Err(format!("{word} follows the last column")),
            }
        }
        let has_offset = self.columns.contains(&Some(OFFSET));
        Ok(Values { values, has_offset })
    }
}

/// Values of a line.
pub(super) struct Values<'a> {
    values: [Option<&'a str>; READ.len()],
    has_offset: bool,
}

impl<'a> Values<'a> {
    pub(super) fn module(&self) -> Result<&'a str, String> {
        self.value(MODULE)
    }

    pub(super) fn rank(&self) -> Result<&'a str, String> {
        self.value(RANK)
    }

    /// `read` or `write`.
    pub(super) fn direction(&self) -> Result<&'a str, String> {
        self.value(DIRECTION)
    }

    /// Number of the segment among those of its table with the same direction.
    pub(super) fn segment(&self) -> Result<&'a str, String> {
        self.value(SEGMENT)
    }

    /// Offset in the file, if the table has a column of it.
    pub(super) fn offset(&self) -> Result<Option<&'a str>, String> {
        if self.has_offset { self.value(OFFSET).map(Some) } else { Ok(None) }
    }

    /// Number of bytes.
    pub(super) fn length(&self) -> Result<&'a str, String> {
        self.value(LENGTH)
    }

    /// Begin, in seconds.
    pub(super) fn begin(&self) -> Result<&'a str, String> {
        self.value(BEGIN)
    }

    /// End, in seconds.
    pub(super) fn end(&self) -> Result<&'a str, String> {
        self.value(END)
    }

    fn value(&self, place: usize) -> Result<&'a str, String> {
        self.values[place].ok_or_else(|| format!("it has no {}", READ[place].1))
    }
}
