//! Arguments of `reproduce`.

use super::value_parsers::count;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Reproduce {
    /// Experiments: tr94-table4, tr94-table3, cai-table2, cai-table3, cai-fig2, cai-fig3, tocs-fig4
    /// to tocs-fig15, tocs-table3, tocs-layouts, or all. Or studies, whose claims are checked:
    /// piosim-synthetic, piosim-matmul, piosim-btio-full, piosim-btio-servers,
    /// piosim-btio-ranking, records-select, records-deliver, protection.
    #[arg(required = true, value_name = "EXPERIMENT")]
    pub(crate) experiments: Vec<String>,
    /// Number of trials of each case. Trial n has seed n in every case.
    #[arg(long, default_value = "5", value_parser = count)]
    pub(crate) trials: u32,
    /// Write EXPERIMENT.csv and EXPERIMENT.parquet, with every trial, and report.html, with plots,
    /// into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write a Markdown page that compares simulated with published figures to this file; with
    /// `all`, docs/validation.md.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Only these rows: patterns, or patterns with a record size in bytes such as rc:8192,
    /// separated by commas.
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    pub(crate) only: Vec<experiments::Only>,
    /// Trials that run in parallel (default: one for each processor).
    #[arg(long, value_parser = count)]
    pub(crate) jobs: Option<u32>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
