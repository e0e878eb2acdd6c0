//! Exit codes of commands.

/// Exit code of a command. The numbers are part of the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ExitCode {
    /// The command did what was asked.
    Done = 0,
    /// The command failed in a way that no other code names.
    Failed = 1,
    /// The request makes no sense.
    Usage = 2,
    /// No instance exists, or a server cannot be reached.
    NoServer = 3,
    /// Data is not what it should be.
    DataCheck = 4,
    /// A collective was not completed by all its clients.
    Collective = 5,
    /// No space is left.
    NoSpace = 6,
    /// Files were not staged out; the error names the place of the data.
    NotStagedOut = 7,
}
