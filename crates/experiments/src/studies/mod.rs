//! Studies: comparisons of variants of a system whose published figures are pictures. The claims of
//! the paper about their order are checked as inequalities, row by row.

mod claims;
mod definition;
mod piosim_caches;
mod row;
mod study;
mod study_text;

pub use claims::ClaimResult;
pub use row::{StudyCell, StudyRow};
pub use study::{STUDY_SCHEMA, Study, StudyReport, run_studies, study_names};
pub use study_text::study_text;
