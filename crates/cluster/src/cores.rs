//! Processor cores on which this process and its threads may run.

use interface::{CoreList, ExitCode, UserError};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the cores that the calling thread may use: those of its machine that neither a control
/// group nor a binding takes away.
///
/// # Errors
/// Fails when the system does not tell, as on machines with more than 1024 cores.
pub fn allowed_cores() -> Result<CoreList, UserError> {
    let unknown = |cause: String| {
        UserError::new(
            ExitCode::Failed,
            "cannot tell which cores this process may use",
            cause,
            "start servers without --server-cores",
        )
    };
    let set = sched_getaffinity(None).map_err(|error| unknown(error.to_string()))?;
    let allowed = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    CoreList::new(allowed.map(|core| core as u32).collect()).map_err(unknown)
}

/// Refuses cores that the calling thread may not use.
pub(crate) fn check_cores(cores: &CoreList) -> Result<(), UserError> {
    let allowed = allowed_cores()?;
    let Some(refused) = cores.without(&allowed) else { return Ok(()) };
    let (core, it) = match refused.cores() {
        [core] => (format!("core {core}"), "it"),
        _ => (format!("cores {refused}"), "them"),
    };
    Err(UserError::usage(
        format!("cannot run servers on {core}"),
        format!(
            "a server may use cores {allowed} only: the machine lacks {it}, or a job hides {it}"
        ),
        format!("name some of the cores {allowed} with --server-cores"),
    ))
}

/// Pins the calling thread, and all that it starts from now on, to some cores.
///
/// # Errors
/// Fails when it may not use one of them.
pub fn pin_thread(cores: &CoreList) -> Result<(), UserError> {
    check_cores(cores)?;
    let mut set = CpuSet::new();
    cores.cores().iter().for_each(|core| set.set(*core as usize));
    sched_setaffinity(None, &set).map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot run on cores {cores}"),
            error.to_string(),
            "name other cores, or leave out --server-cores",
        )
    })
}

#[cfg(test)]
mod tests {
    //! Proves: a thread that is pinned may use its cores only, and what it starts too; cores that
    //! it may not use are refused with those that it may.
    use super::*;

    #[test]
    fn threads_are_pinned() {
        let own = std::thread::spawn(|| {
            let allowed = allowed_cores().unwrap();
            let last =
                CoreList::new(allowed.cores().last().copied().into_iter().collect()).unwrap();
            pin_thread(&last).unwrap();
            assert_eq!(allowed_cores().unwrap(), last);
            assert_eq!(std::thread::spawn(|| allowed_cores().unwrap()).join().unwrap(), last);
            let refused = pin_thread(&"1022-1023".parse().unwrap()).unwrap_err();
            assert_eq!(refused.code, ExitCode::Usage);
            assert_eq!(refused.error, "cannot run servers on cores 1022-1023");
            assert!(refused.cause.contains(&format!("cores {last} only")), "{refused}");
            assert_eq!(allowed_cores().unwrap(), last);
        });
        own.join().unwrap();
    }
}
