//! Name and help text of a model: the words by which a user chooses it.

/// Name and help text of one model. The file of the model defines them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelInfo {
    /// Word in scenario files and options.
    pub name: &'static str,
    /// Explanation for help texts and manuals: a phrase without a full stop.
    pub help: &'static str,
}

impl ModelInfo {
    /// Returns the help text of several models: `name: help` of each, separated by full stops.
    pub fn help_of(infos: impl IntoIterator<Item = Self>) -> String {
        let phrases = infos.into_iter().map(|info| format!("{}: {}", info.name, info.help));
        phrases.collect::<Vec<_>>().join(". ")
    }
}
