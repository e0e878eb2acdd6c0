//! Gathered writes of a process that exits without closing its files.
#![allow(unsafe_code)]

use super::connection::{Connection, Inner};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

/// Connections that gather writes.
static GATHERING: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Has the gathered writes of a connection sent when the process exits, though the program does not
/// close its files.
pub(super) fn settle_at_exit(connection: &Connection) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: `settle_all` is a function of this library, which is not unloaded: it has a
        // thread. A failure, for want of memory, leaves the process as without it.
        let _ = unsafe { libc::atexit(settle_all) };
    });
    let mut connections = GATHERING.lock().unwrap_or_else(PoisonError::into_inner);
    connections.retain(|known| known.strong_count() > 0);
    let own = Arc::downgrade(&connection.0);
    if !connections.iter().any(|known| known.ptr_eq(&own)) {
        connections.push(own);
    }
}

extern "C" fn settle_all() {
    // A thread that exits in the middle of a call may have it locked.
    let Ok(connections) = GATHERING.try_lock() else { return };
    let connections: Vec<Arc<Inner>> = connections.iter().filter_map(Weak::upgrade).collect();
    for connection in connections {
        if !connection.thread.is_of_this_process() || connection.thread.is_here() {
            // Its end would wait for the I/O thread.
            std::mem::forget(connection);
            continue;
        }
        let connection = Connection(connection);
        let what = || "cannot send gathered writes".to_owned();
        let settled = connection.begin(what, false, async move |shared| {
            shared.client.settle_all().await;
            Ok(())
        });
        // Whoever wants to know of an error closes the file.
        let _ = settled.wait();
        std::mem::forget(connection);
    }
}
