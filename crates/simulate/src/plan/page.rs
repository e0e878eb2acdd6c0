//! The page docs/scenarios.md, made from the table of keys.

use super::key::{Key, Owner, PARAMETERS, Table};
use super::keys::keys;
use super::simulation_plan::SimulationPlan;
use crate::machine::Machine;
use crate::names::MachineName;
use std::fmt::Write;

const HEAD: &str = "\
# Scenario files

`unisono sim --scenario FILE.toml` simulates the scenario in a file. A key that is not in the file
has its default. Options of the command line override the file. `unisono sim --explain` combines
presets, file and options, and prints the result as such a file, without simulating it. The output
has the meaning of each key and the origin of its value. With `--json`, the output is JSON.

```toml
# Would four buffers help the machine of TOCS 1997, if its processors were more regular?
machine = \"tocs97\"
layout = \"random-blocks\"
pattern = [\"rb\", \"rc\"]
strategy = \"disk-directed\"
trials = 3

[parameters]
buffers-per-disk = 4
variation-percent = 0
```

An unknown key, an invalid value and an impossible machine are refused, with the file and the line.
`--set KEY=VALUE` also changes a parameter. Results list the changes from the preset: `changed` in
JSON.

**Limits.** A trial is refused before it takes memory if it may take more than 4 GiB, with the
largest part of the memory and the keys that it follows from; `--jobs` trials run at the same time.
The estimate has 10 KiB for each client and server, 2 KiB for a disk, 1 KiB for a client and a
server that are connected, 640 bytes for a block in a cache and 1 KiB for a request under way:
[memory.rs](../crates/simulate/src/memory.rs). A machine of 4,096 clients and 512 servers fits with
every strategy. There are at most 1,048,576 clients and servers together, as many disks, 65,536
clients, 16,777,216 pairs of a client and a server, 4,096 cases and 1,048,576 trials of all cases.
The same estimate is made of each point of `what-if`, with the bytes of the files that the program
of the trace moves.

This page is made from the same table as `--explain`. `cargo x scenarios-page` writes it again, and
a test fails when it is out of date. Papers are named as in [validation.md](validation.md).
";

/// Returns the text of docs/scenarios.md.
pub fn scenarios_page() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## At the top\n");
    section(&mut out, Table::Top);
    let _ = writeln!(out, "\n## In `[{PARAMETERS}]`\n");
    out.push_str(
        "Parameters of a machine and of the file system on it. The values of the presets are in\n\
         [presets.rs](../crates/simulate/src/presets.rs), with their reasons. Processor times are\n\
         those of the papers' 50 MHz processor.\n",
    );
    section(&mut out, Table::Parameters);
    out
}

fn section(out: &mut String, table: Table) {
    for key in keys().filter(|key| key.table == table) {
        let _ = writeln!(out, "\n### `{}`\n\n{}\n", key.name, key.meaning);
        let _ = writeln!(out, "- takes {}", key.kind.expected());
        let _ = writeln!(out, "- {}", defaults(key));
        if !key.option.is_empty() {
            let _ = writeln!(out, "- option `{}`", key.option);
        }
        if !key.source.is_empty() {
            let _ = writeln!(out, "- source: {}", key.source);
        }
    }
}

/// Formats the default value of a key, for each preset if the presets differ.
fn defaults(key: &Key) -> String {
    let of = |plan: &SimulationPlan| match key.get(plan) {
        Some(value) => format!("`{}`", key.kind.in_toml(&value)),
        None => "none".to_owned(),
    };
    if key.owner == Owner::Case {
        return format!("default {}", of(&SimulationPlan::default()));
    }
    let presets = [MachineName::Tr94, MachineName::Tocs97, MachineName::Ideal];
    let of_preset = presets
        .map(|name| format!("{name} {}", of(&SimulationPlan::of_machine(Machine::of(name)))));
    of_preset.join(", ")
}
