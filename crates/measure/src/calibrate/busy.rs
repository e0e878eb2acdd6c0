//! Threads that keep the processors from idling.
//!
//! To wake an idle processor takes a virtual machine 5 us and more, which counts as time of whoever
//! wakes it. Where servers and ranks share processors, these do not idle. The threads have the
//! lowest priority, so that any other interrupts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Name of the threads.
pub(super) const BUSY: &str = "busy";

/// Lowest priority of a thread.
const NICE: i32 = 19;

/// One thread for each processor, until it is dropped.
pub(super) struct BusyProcessors {
    has_ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyProcessors {
    /// Starts `count` threads; fewer if the system permits no more.
    pub(super) fn start(count: u32) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let thread = |_| {
            let has_ended = Arc::clone(&has_ended);
            let name = std::thread::Builder::new().name(BUSY.to_owned());
            name.spawn(move || {
                // In Linux a priority is that of the calling thread.
                let _ = rustix::process::setpriority_process(None, NICE);
                while !has_ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
            .ok()
        };
        let threads = (0..count).filter_map(thread).collect();
        Self { has_ended, threads }
    }
}

impl Drop for BusyProcessors {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
