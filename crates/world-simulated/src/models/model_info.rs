//! Name and help text of a model: the words by which a user chooses it.

/// Name and help text of one model. The file of the model defines them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelInfo {
    /// Word in scenario files and options.
    pub name: &'static str,
    /// One sentence for help texts and manuals.
    pub help: &'static str,
}
