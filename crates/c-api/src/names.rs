//! Names: opening, listing, making, renaming and removing.

use crate::arguments::{Filled, Options, Out, Text, TextBuffer, extensible};
use crate::border::{Failure, exported};
use crate::errors::text;
use crate::handles::{ConnectionHandle, FileHandle, make};
use client::{
    Connection, Entry, EntryKind, File, InPlaceOptions, MountedName, NewFileOptions, Protection,
    Special, instance_name,
};
use interface::{ErrorKind, UserError};
use policy::BLOCK_BYTES_MAX;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;

/// Flags of `unisono_open`.
const CREATE: c_uint = 1;
const EXCL: c_uint = 2;
const TRUNC: c_uint = 4;
const IN_PLACE: c_uint = 8;

/// Attempts to open or create a file that others create and remove at the same time.
const ATTEMPTS_MAX: usize = 16;

extensible! {
    /// `unisono_layout_t`.
    struct LayoutView {
        size: usize,
        block_bytes: u64,
        protection: u32,
        reserved: u32,
    }
}

extensible! {
    /// `unisono_stat_t`.
    struct Stat {
        size: usize,
        bytes: u64,
        block_bytes: u64,
        made_at_s: u64,
        kind: u32,
        owner: u32,
        servers: u32,
        padding: u32,
        modified_ns: u64,
    }
}

impl LayoutView {
    /// The layout with another unit of striping.
    pub(crate) fn with_block_bytes(self, block_bytes: u64) -> Self {
        Self { block_bytes, ..self }
    }

    /// The layout with another protection.
    pub(crate) fn with_protection(self, protection: Protection) -> Self {
        let protection = match protection {
            Protection::None => PROTECTION_NONE,
            Protection::Mirror => PROTECTION_MIRROR,
            Protection::Parity { blocks: 0 } => PROTECTION_PARITY,
            Protection::Parity { blocks } => PROTECTION_ROWS + blocks.min(PROTECTION_ROWS - 1),
        };
        Self { protection, ..self }
    }

    /// Options of a new file.
    fn options(&self) -> Result<NewFileOptions, String> {
        let protection = match self.protection {
            0 => None,
            PROTECTION_NONE => Some(Protection::None),
            PROTECTION_MIRROR => Some(Protection::Mirror),
            PROTECTION_PARITY => Some(Protection::Parity { blocks: 0 }),
            rows if rows > PROTECTION_ROWS && rows < 2 * PROTECTION_ROWS => {
                Some(Protection::Parity { blocks: rows - PROTECTION_ROWS })
            }
            other => return Err(format!("has protection {other}, which does not exist")),
        };
        let block_bytes = Some(self.block_bytes).filter(|bytes| *bytes > 0);
        match block_bytes {
            Some(bytes) if bytes > BLOCK_BYTES_MAX => {
                Err(format!("has block_bytes {bytes}, more than {BLOCK_BYTES_MAX}"))
            }
            _ => Ok(NewFileOptions { block_bytes, protection }),
        }
    }
}

/// Protections of a layout.
const PROTECTION_NONE: u32 = 1;
const PROTECTION_MIRROR: u32 = 2;
const PROTECTION_PARITY: u32 = 3;
/// Parity with rows of as many blocks as the value is larger.
const PROTECTION_ROWS: u32 = 0x10000;

/// Kinds of entries.
const FILE: u32 = 1;
const DIRECTORY: u32 = 2;
const LINK: u32 = 3;
const FIFO: u32 = 4;
const SOCKET: u32 = 5;

impl From<&Entry> for Stat {
    fn from(entry: &Entry) -> Self {
        let made = Self {
            size: size_of::<Self>(),
            made_at_s: entry.made.at_s,
            modified_ns: entry.modified.as_ns(),
            owner: entry.made.owner,
            ..Self::default()
        };
        match &entry.kind {
            EntryKind::Directory(_) => Self { kind: DIRECTORY, ..made },
            EntryKind::Special(Special::Link { target }) => {
                Self { kind: LINK, bytes: target.len() as u64, ..made }
            }
            EntryKind::Special(Special::Fifo) => Self { kind: FIFO, ..made },
            EntryKind::Special(Special::Socket) => Self { kind: SOCKET, ..made },
            EntryKind::File(record) => Self {
                kind: FILE,
                bytes: record.bytes,
                block_bytes: record.stripe.block_bytes,
                servers: record.stripe.servers,
                ..made
            },
        }
    }
}

/// `unisono_entry_t *`.
pub(crate) type Each = extern "C" fn(*const c_char, *const Stat, *mut c_void) -> c_int;

/// Options by which the flags open an ordinary file.
fn in_place(flags: c_uint, options: NewFileOptions) -> InPlaceOptions {
    InPlaceOptions {
        create: flags & CREATE != 0,
        exclusive: flags & EXCL != 0,
        block_bytes: options.block_bytes,
    }
}

/// Opens a file as the flags say.
fn open(
    connection: &Connection,
    name: &str,
    flags: c_uint,
    options: NewFileOptions,
) -> Result<File, UserError> {
    let mut last = None;
    for _ in 0..ATTEMPTS_MAX {
        if flags & EXCL == 0 {
            match connection.open_file(name) {
                Err(error) if error.kind == ErrorKind::NotFound && flags & CREATE != 0 => {}
                other => return other,
            }
        }
        match connection.create_by_default(name, options) {
            Err(error) if error.kind == ErrorKind::AlreadyExists && flags & EXCL == 0 => {
                last = Some(error);
            }
            other => return other,
        }
    }
    Err(last.unwrap_or_else(|| UserError::usage("cannot open a file", "no attempt", "try again")))
}

exported! {
    /// Tells which name a word of a user means.
    fn unisono_name(word: Text, name: TextBuffer, bytes: usize) -> i64 {
        let meant = instance_name(word.required("word")?);
        name.fill(&meant, bytes, "name")?;
        Ok(meant.len() as u64)
    }

    /// Tells which file of which instance a local path below a mount means.
    fn unisono_mounted(
        path: Text,
        instance: TextBuffer,
        instance_bytes: usize,
        name: TextBuffer,
        name_bytes: usize,
    ) -> i64 {
        let Some(found) = MountedName::of_path(path.path("path")?)? else { return Ok(0) };
        let directory = found.instance.to_str();
        let directory = directory
            .ok_or_else(|| Failure::argument("path", "lies in an instance that is not UTF-8"))?;
        for (text, room, argument) in
            [(directory, instance_bytes, "instance_bytes"), (&found.name, name_bytes, "name_bytes")]
        {
            if text.len() >= room {
                return Err(Failure::argument(argument, format!("is {room}, too few for {text}")));
            }
        }
        instance.fill(directory, instance_bytes, "instance")?;
        name.fill(&found.name, name_bytes, "name")?;
        Ok(directory.len() as u64)
    }

    /// Opens a file.
    fn unisono_open(
        connection: ConnectionHandle,
        name: Text,
        flags: c_uint,
        layout: Options<LayoutView>,
        file: Out<FileHandle>,
    ) -> c_int {
        make(&file, "file", || {
            let connection = connection.get("connection")?;
            let name = name.required("name")?;
            let known = CREATE | EXCL | TRUNC | IN_PLACE;
            if flags & !known != 0 || flags & (CREATE | EXCL) == EXCL {
                return Err(Failure::argument("flags", format!("is {flags:#x}")));
            }
            let options = layout.read("layout")?.options();
            let options = options.map_err(|cause| Failure::argument("layout", cause))?;
            let opened = match flags & IN_PLACE {
                0 => open(connection, name, flags, options)?,
                _ => connection.open_in_place(Path::new(name), in_place(flags, options))?,
            };
            if flags & TRUNC != 0
                && let Err(error) = opened.set_size(0)
            {
                // The first error is the one to report.
                let _ = opened.close();
                return Err(error.into());
            }
            Ok(opened)
        })
    }

    /// Looks at a name.
    fn unisono_stat(connection: ConnectionHandle, name: Text, stat: Filled<Stat>) -> c_int {
        let slot = stat.slot("stat")?;
        let connection = connection.get("connection")?;
        let entry = connection.stat(name.required("name")?)?;
        slot.fill(&Stat::from(&entry));
        Ok(())
    }

    /// Lists a directory.
    fn unisono_list(
        connection: ConnectionHandle,
        directory: Text,
        each: Option<Each>,
        context: *mut c_void,
    ) -> c_int {
        let each = each.ok_or_else(|| Failure::argument("each", "is NULL"))?;
        let connection = connection.get("connection")?;
        let entries = connection.list(directory.required("directory")?)?;
        for entry in &entries {
            let (name, stat) = (text(&entry.name), Stat::from(entry));
            if each(name.as_ptr(), &raw const stat, context) != 0 {
                break;
            }
        }
        Ok(())
    }

    /// Makes a directory.
    fn unisono_mkdir(connection: ConnectionHandle, name: Text, parents: c_int) -> c_int {
        let connection = connection.get("connection")?;
        Ok(connection.make_directory(name.required("name")?, parents != 0)?)
    }

    /// Renames a file or a directory.
    fn unisono_rename(connection: ConnectionHandle, from: Text, to: Text, replace: c_int) -> c_int {
        let connection = connection.get("connection")?;
        let (from, to) = (from.required("from")?, to.required("to")?);
        Ok(connection.rename(from, to, replace != 0)?)
    }

    /// Removes a file or an empty directory.
    fn unisono_remove(connection: ConnectionHandle, name: Text) -> c_int {
        let connection = connection.get("connection")?;
        Ok(connection.remove(name.required("name")?)?)
    }
}
