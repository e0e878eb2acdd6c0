//! Notes on the agreement of each experiment: how independent of the published figures it is, and
//! what is fitted, chosen or not explained.
//!
//! Invariants:
//! - Prose is in the files of `notes/`; it repeats no figure that a row has.
//! - A note names an experiment of the catalogue.

/// Independence of a simulation from the published figures that it is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Constants are fitted on the figures, or derived from them.
    Calibration,
    /// A rule of the preset was chosen after a comparison, or the costs are from the same cases.
    Related,
    /// Nothing was fitted or chosen.
    Independent,
}

impl Standing {
    /// Every standing, from the weakest to the strongest evidence.
    pub(crate) const ALL: [Self; 3] = [Self::Calibration, Self::Related, Self::Independent];

    /// Returns the standing of an experiment.
    pub(crate) fn of(experiment: &str) -> Self {
        match experiment {
            "tr94-table4" | "cai-table2" => Self::Calibration,
            "tocs-fig4" | "tocs-fig5" | "tocs-fig6" | "tocs-fig7" | "tocs-table3" => Self::Related,
            _ => Self::Independent,
        }
    }

    /// Returns the word in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Related => "related",
            Self::Independent => "independent",
        }
    }

    /// Returns the meaning for readers.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Calibration => {
                "[constants](decisions/0038-processor-costs-are-data.md) are fitted on these \
                 figures\n  or derived from them; agreement is weak evidence."
            }
            Self::Related => {
                "no constant is fitted on these figures, but a rule of the preset was chosen after \
                 a\n  comparison with them, or the costs were fitted on the same cases of another \
                 paper."
            }
            Self::Independent => "nothing was fitted on these figures or chosen after them.",
        }
    }
}

/// Notes by experiment, in the order of the papers.
const NOTES: [(&str, &str); 7] = [
    ("tr94-table4", include_str!("../notes/tr94-table4.md")),
    ("cai-table2", include_str!("../notes/cai-table2.md")),
    ("tocs-fig4", include_str!("../notes/tocs-fig4.md")),
    ("tocs-table3", include_str!("../notes/tocs-table3.md")),
    ("tocs-fig8", include_str!("../notes/tocs-fig8.md")),
    ("tocs-fig10", include_str!("../notes/tocs-fig10.md")),
    ("tocs-fig11", include_str!("../notes/tocs-fig11.md")),
];

/// Returns the notes on an experiment as a Markdown list; empty if there are none.
pub(crate) fn notes(experiment: &str) -> &'static str {
    NOTES.iter().find(|(name, _)| *name == experiment).map_or("", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    //! Proves: notes are about experiments, and are a list of short lines.
    use super::*;
    use crate::select::experiment_names;

    #[test]
    fn notes_name_experiments() {
        for (name, text) in NOTES {
            assert!(experiment_names().contains(&name), "{name}");
            assert!(text.starts_with("- ") && text.ends_with('\n'), "{name}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{name}");
        }
    }
}
