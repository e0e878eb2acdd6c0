//! Hints of one file, as MPI programs give them.

use crate::arguments::{Filled, Handle, Out, Text};
use crate::border::{Failure, exported};
use crate::collectives::CollectiveView;
use crate::errors::text;
use crate::handles::{ConnectionHandle, make};
use crate::names::LayoutView;
use client::Hints;
use std::ffi::{CString, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Key under which rejected hints are reported.
const REJECTED: &str = "unisono_hints_rejected";

/// `unisono_hints_t *`.
pub(crate) type HintsHandle = Handle<Mutex<FileHints>>;

/// Handles are used by any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Mutex<FileHints>>();
};

/// The hints of a file, with the texts that C was shown.
pub(crate) struct FileHints {
    hints: Hints,
    /// Key and value of each entry.
    shown: Vec<(CString, CString)>,
}

impl FileHints {
    fn new(hints: Hints) -> Self {
        let mut new = Self { hints, shown: Vec::new() };
        new.show();
        new
    }

    /// Makes the texts anew.
    fn show(&mut self) {
        let in_force = self.hints.in_force();
        let all = in_force.into_iter().chain(self.hints.rejected().map(|line| (REJECTED, line)));
        self.shown = all.map(|(key, value)| (text(key), text(&value))).collect();
    }
}

fn lock<'a>(hints: &'a HintsHandle) -> Result<MutexGuard<'a, FileHints>, Failure> {
    Ok(hints.get("hints")?.lock().unwrap_or_else(PoisonError::into_inner))
}

exported! {
    /// Hints of the environment for a file.
    fn unisono_hints_new(
        connection: ConnectionHandle,
        file_name: Text,
        hints: Out<HintsHandle>,
    ) -> c_int {
        make(&hints, "hints", || {
            let servers = connection.get("connection")?.servers();
            let name = file_name.required("file_name")?;
            let hints = Hints::from_environment(Some(servers), name)?;
            Ok(Mutex::new(FileHints::new(hints)))
        })
    }

    /// Sets a hint.
    fn unisono_hints_set(hints: HintsHandle, key: Text, value: Text) -> c_int {
        let (key, value) = (key.required("key")?, value.required("value")?);
        let mut hints = lock(&hints)?;
        let set = hints.hints.set(key, value);
        hints.show();
        set?;
        Ok(())
    }

    /// Number of entries.
    fn unisono_hints_count(hints: HintsHandle) -> usize {
        Ok(lock(&hints)?.shown.len())
    }

    /// An entry.
    fn unisono_hints_get(
        hints: HintsHandle,
        index: usize,
        key: Out<*const c_char>,
        value: Out<*const c_char>,
    ) -> c_int {
        let (key, value) = (key.slot("key")?, value.slot("value")?);
        let hints = lock(&hints)?;
        let count = hints.shown.len();
        let beyond = || Failure::argument("index", format!("is {index}, of {count} entries"));
        let (own_key, own_value) = hints.shown.get(index).ok_or_else(beyond)?;
        key.set(own_key.as_ptr());
        value.set(own_value.as_ptr());
        Ok(())
    }

    /// Puts hints into the arguments of other calls.
    fn unisono_hints_apply(
        hints: HintsHandle,
        options: Filled<CollectiveView>,
        layout: Filled<LayoutView>,
        is_independent: Out<c_int>,
    ) -> c_int {
        let options = options.optional("options")?;
        let layout = layout.optional("layout")?;
        let is_independent = is_independent.optional("is_independent")?;
        let hints = lock(&hints)?;
        if let Some(options) = options {
            let chosen = hints.hints.collective_options();
            options.fill(&options.value("options")?.with(&chosen));
        }
        if let Some(layout) = layout {
            let mut filled = layout.value("layout")?;
            if let Some(block_bytes) = hints.hints.block_bytes() {
                filled = filled.with_block_bytes(block_bytes);
            }
            if let Some(protection) = hints.hints.protection() {
                filled = filled.with_protection(protection);
            }
            layout.fill(&filled);
        }
        if let Some(is_independent) = is_independent {
            is_independent.set(c_int::from(hints.hints.is_independent()));
        }
        Ok(())
    }

    /// Frees hints.
    fn unisono_hints_free(hints: HintsHandle) {
        hints.take("hints").map(drop)
    }
}
