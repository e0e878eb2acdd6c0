//! `layout get`, `layout set`: placement of files on servers, and their buffering there.

use crate::arguments::{InstanceOnly, Layout, LayoutGet, LayoutSet};
use crate::instances::servers::{check_protection, instance};
use crate::output::format::{plural, show_size};
use crate::output::present;
use client::{
    Buffering, Declared, EntryKind, FileDefaults, FileRecord, Protection, ServerId, Session,
    instance_name,
};
use interface::UserError;
use serde_json::{Value, json};

pub(crate) fn run(arguments: &Layout) -> Result<(), UserError> {
    match arguments {
        Layout::Get(get) => show(&get.which, &get.what),
        Layout::Set(set) => say(&set.which, &set.what),
    }
}

fn show(which: &InstanceOnly, arguments: &LayoutGet) -> Result<(), UserError> {
    let name = instance_name(arguments.name.as_deref().unwrap_or(""));
    let entry = Session::new(instance(which)).look_at(&name)?;
    match &entry.kind {
        EntryKind::File(record) => show_file(record, arguments.blocks, which.json),
        EntryKind::Directory(defaults) => show_directory(&name, defaults, which.json),
        EntryKind::Special(_) => {
            let fault = entry.into_file().err();
            fault.map_or(Ok(()), |fault| Err(UserError::of_fault("there is no layout", &fault)))
        }
    }
}

fn say(which: &InstanceOnly, arguments: &LayoutSet) -> Result<(), UserError> {
    let name = instance_name(&arguments.name);
    let session = Session::new(instance(which));
    // What is not there is told below.
    if let Ok(entry) = session.look_at(&name)
        && let EntryKind::File(record) = &entry.kind
    {
        return protect_file(&session, record, arguments, which.json);
    }
    let defaults = FileDefaults {
        block_bytes: arguments.block,
        servers: arguments.servers,
        pool: arguments.pool.iter().copied().map(ServerId).collect(),
        map: arguments.map.iter().copied().map(ServerId).collect(),
        buffering: Buffering {
            declared: arguments.declare,
            replacement: arguments.replacement,
            prefetch: None,
            blocks_min: arguments.min_blocks,
            blocks_max: arguments.max_blocks,
        },
        protection: arguments.protect,
    };
    let servers = session.servers()?;
    check_protection(arguments.protect, Some(servers))?;
    let mut named = arguments.pool.iter().chain(&arguments.map);
    if let Some(strange) = named.find(|server| **server >= servers) {
        return Err(UserError::usage(
            format!("cannot place files on server {strange}"),
            format!("the instance has servers 0 to {}", servers - 1),
            "use the server numbers that `unisono status` shows",
        ));
    }
    session.set_defaults(&name, defaults.clone())?;
    match which.json {
        true => show_directory(&name, &defaults, true),
        false => Ok(()),
    }
}

/// Changes the protection of a file, which is all of its layout that can be changed.
fn protect_file(
    session: &Session,
    record: &FileRecord,
    arguments: &LayoutSet,
    as_json: bool,
) -> Result<(), UserError> {
    let LayoutSet { block, servers, pool, map, declare, replacement, .. } = arguments;
    let (min, max) = (arguments.min_blocks, arguments.max_blocks);
    let is_else = block.is_some()
        || servers.is_some()
        || !pool.is_empty()
        || !map.is_empty()
        || *declare != Declared::default()
        || replacement.is_some()
        || (min, max) != (0, 0);
    let Some(protection) = arguments.protect.filter(|_| !is_else) else {
        return Err(UserError::usage(
            format!("cannot change the layout of {:?}", record.name),
            "it is a file, of which only --protect can be set",
            "set the layout of its directory, and copy it into a new file: unisono cp",
        ));
    };
    session.protect_file(record, protection)?;
    let is_new = record.protection != protection;
    match (as_json, protection) {
        (true, _) => show_file(&FileRecord { protection, ..record.clone() }, 0, true),
        (false, Protection::Mirror) if is_new => {
            present::line("its copies are being written: see unisono status")
        }
        (false, Protection::Parity { .. }) if is_new => {
            present::line("its parity is being written: see unisono status")
        }
        (false, _) => Ok(()),
    }
}

fn show_file(record: &FileRecord, blocks_max: u64, as_json: bool) -> Result<(), UserError> {
    let stripe = &record.stripe;
    let pool: Vec<u32> = record.servers().map(|server| server.0).collect();
    let map = stripe.map().map(|map| {
        let server = |place: &u32| record.pool.server(ServerId(*place)).0;
        map.servers().iter().map(server).collect::<Vec<u32>>()
    });
    let blocks = blocks_max.min(record.bytes.div_ceil(stripe.block_bytes));
    let places = (0..blocks).map(|block| (block, record.server_of(block).0, stripe.locate(block)));
    if as_json {
        let places: Vec<Value> = places
            .map(|(block, server, at)| {
                json!({ "block": block, "server": server, "disk": at.disk.0, "slot": at.slot })
            })
            .collect();
        return present::json(&json!({
            "schema": "unisono.layout/1", "name": record.name, "type": "file",
            "block_bytes": stripe.block_bytes, "servers": stripe.servers, "pool": pool,
            "disks_per_server": stripe.disks_per_server, "map": map, "blocks": places,
            "buffering": buffering_json(&record.buffering),
            "protection": record.protection.to_string(),
        }));
    }
    present::line(&format!(
        "{}  blocks of {}, dealt to {} of {} {}",
        record.name,
        show_size(stripe.block_bytes),
        plural(stripe.disks_per_server, "disk"),
        if stripe.servers == 1 { "server" } else { "each of servers" },
        match &map {
            Some(map) => format!("{} and so on", numbers(map)),
            None => numbers(&pool),
        }
    ))?;
    present::line(&format!("  {}", buffering_line(&record.buffering)))?;
    if let Some(line) = protection_line(record.protection) {
        present::line(&line)?;
    }
    places.into_iter().try_for_each(|(block, server, at)| {
        let (disk, slot) = (at.disk.0, at.slot);
        present::line(&format!("  block {block:>8}  server {server}  disk {disk}  slot {slot}"))
    })
}

fn show_directory(name: &str, defaults: &FileDefaults, as_json: bool) -> Result<(), UserError> {
    let of = |servers: &[ServerId]| servers.iter().map(|server| server.0).collect::<Vec<u32>>();
    let (pool, map) = (of(&defaults.pool), of(&defaults.map));
    if as_json {
        return present::json(&json!({
            "schema": "unisono.layout/1", "name": name, "type": "directory",
            "block_bytes": defaults.block_bytes, "servers": defaults.servers, "pool": pool,
            "map": map, "buffering": buffering_json(&defaults.buffering),
            "protection": defaults.protection.map(|protection| protection.to_string()),
        }));
    }
    let block = defaults.block_bytes.map_or_else(|| "1 MiB".to_owned(), show_size);
    let servers = match defaults.servers {
        Some(most) => format!("at most {}", plural(most, "server")),
        None => "a number of servers that suits its size".to_owned(),
    };
    let place = match (&pool[..], &map[..]) {
        ([], []) => servers,
        (pool, []) => format!("{servers} out of {}", numbers(pool)),
        (_, map) => format!("servers {} and so on", numbers(map)),
    };
    present::line(&format!("{name}/  a new file gets blocks of {block}, on {place}"))?;
    present::line(&format!("  {}", buffering_line(&defaults.buffering)))?;
    match protection_line(defaults.protection.unwrap_or_default()) {
        Some(line) => present::line(&line),
        None => Ok(()),
    }
}

fn protection_line(protection: Protection) -> Option<String> {
    let mirrored = "  mirrored: the next server has a copy of what a server holds";
    match protection {
        Protection::None => None,
        Protection::Mirror => Some(mirrored.to_owned()),
        Protection::Parity { blocks: 0 } => {
            Some("  parity: each row of blocks has a parity block on a further server".to_owned())
        }
        Protection::Parity { blocks } => Some(format!(
            "  parity: each row of {blocks} blocks has a parity block on a further server"
        )),
    }
}

fn numbers(servers: &[u32]) -> String {
    servers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn buffering_line(buffering: &Buffering) -> String {
    let Buffering { declared, blocks_min, blocks_max, .. } = buffering;
    let access = match declared {
        Declared::Unknown => "access not declared".to_owned(),
        declared => format!("access declared {declared}"),
    };
    let kept = match (blocks_min, blocks_max) {
        (0, 0) => "any number of".to_owned(),
        (min, 0) => format!("at least {min} of"),
        (0, max) => format!("at most {max} of"),
        (min, max) => format!("{min} to {max} of"),
    };
    let order = buffering.replacement();
    format!("{access}; eviction order {order}; a server's cache keeps {kept} its blocks")
}

fn buffering_json(buffering: &Buffering) -> Value {
    json!({
        "declared": buffering.declared.to_string(),
        "replacement": buffering.replacement().to_string(),
        "min_blocks": buffering.blocks_min,
        "max_blocks": buffering.blocks_max,
    })
}
