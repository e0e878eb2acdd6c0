//! Processes of the ranks, as their parent sees them.

use super::spec::{Answer, Order, RankSpec, Work};
use crate::orders;
use cluster::{Child, Program as Executable};
use interface::{ExitCode, UserError};
use std::process::Stdio;

/// Variable with settings of the C library; one that the user has set stays.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Has the C library ask for huge pages for large memory, as NumPy does for its arrays.
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=1";

/// Processes that carry out one program together, by rank. Dropping them ends them.
pub(crate) struct Ranks {
    children: Vec<Child>,
    /// Words for a rank in errors.
    describe: fn(u32) -> String,
}

impl Ranks {
    /// Starts a process for each rank, and waits until all are ready for an order.
    ///
    /// # Errors
    /// The first failure of one.
    pub(crate) fn start(
        executable: &Executable,
        describe: fn(u32) -> String,
        specs: impl Iterator<Item = RankSpec>,
    ) -> Result<Self, UserError> {
        let mut ranks = Self { children: Vec::new(), describe };
        for spec in specs {
            let mut command = executable.command(&["rank".to_owned()]);
            if matches!(spec.work, Work::Cases { .. }) && std::env::var_os(TUNABLES).is_none() {
                command.env(TUNABLES, HUGE_PAGES);
            }
            ranks.children.push(Child::start(command, Stdio::inherit())?);
            ranks.send(spec.rank, &spec)?;
        }
        ranks.receive_all(|_| Some(Ok(())))?;
        Ok(ranks)
    }

    /// Orders each rank to do something. Returns what `take` makes of their answers, by rank; it
    /// returns `None` for an answer that belongs to another order.
    ///
    /// # Errors
    /// The first failure of a rank or of `take`, as [`orders::receive_all`] finds it.
    pub(crate) fn order<T>(
        &mut self,
        order: impl Fn(u32) -> Order,
        take: impl FnMut(Answer) -> Option<Result<T, UserError>>,
    ) -> Result<Vec<T>, UserError> {
        for rank in 0..self.children.len() as u32 {
            self.send(rank, &order(rank))?;
        }
        self.receive_all(take)
    }

    /// Ends the processes.
    pub(crate) fn end(&mut self) {
        self.children.clear();
    }

    fn send(&mut self, rank: u32, what: &impl serde::Serialize) -> Result<(), UserError> {
        let sent = orders::send(&mut self.children[rank as usize], what);
        sent.map_err(|cause| lost(&(self.describe)(rank), &cause))
    }

    fn receive_all<T>(
        &mut self,
        mut take: impl FnMut(Answer) -> Option<Result<T, UserError>>,
    ) -> Result<Vec<T>, UserError> {
        let describe = self.describe;
        orders::receive_all(&mut self.children, |child, rank| {
            let lost = |cause: &str| lost(&describe(rank), cause);
            match orders::receive(child).map_err(|cause| lost(&cause))? {
                Answer::Failed(failure) => Err(failure.into()),
                answer => take(answer).unwrap_or_else(|| Err(lost("its answer is to no order"))),
            }
        })
    }
}

fn lost(rank: &str, cause: &str) -> UserError {
    UserError::new(
        ExitCode::Collective,
        format!("{rank} ended before it had finished"),
        cause,
        "see its standard error output above; the servers continue to run",
    )
}
