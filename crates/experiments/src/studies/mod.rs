//! Studies: comparisons of variants of a system whose published figures are pictures. The claims of
//! the paper about their order are checked as inequalities, row by row.

mod claims;
mod definition;
mod piosim_btio;
mod piosim_btio_deviations;
mod piosim_caches;
mod piosim_caches_deviations;
mod piosim_matmul;
mod piosim_matmul_deviations;
mod program_study;
mod program_study_text;
mod protection;
mod record_study;
mod records;
mod report;
mod row;
mod study;
mod study_text;
mod table_study;

pub use claims::ClaimResult;
pub use program_study::{ProgramStudy, ProgramStudyCell, ProgramStudyRow};
pub use protection::{ProtectionStudy, ProtectionStudyCell, ProtectionStudyRow};
pub use record_study::{RecordStudy, RecordStudyCell, RecordStudyRow};
pub use report::{STUDY_SCHEMA, StudyReport, run_studies, study_names};
pub use row::{StudyCell, StudyRow};
pub use study::Study;
pub use table_study::TableStudy;
