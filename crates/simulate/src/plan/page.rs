//! The page docs/scenarios.md, made from the table of keys.

use super::key::{Key, Owner, PARAMETERS, Table};
use super::keys::keys;
use super::simulation_plan::SimulationPlan;
use crate::machine::Machine;
use crate::names::MachineName;
use std::fmt::Write;

const HEAD: &str = "\
# Scenario files

`unisono sim --scenario FILE.toml` simulates what a file describes. A key that the file does not
have keeps its default; an option of the command line comes before the file.
`unisono sim --explain` prints the scenario that comes of presets, file and options as such a file,
with what each key means and where its value is from, and simulates nothing; with `--json`, the same
as JSON.

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

A key that does not exist, a value that it cannot have, and a machine that cannot be are refused
with the file and the line. A parameter can also be changed by `--set KEY=VALUE`. Results name what
is not as in the preset: `changed` in JSON.

This page is made of the same table as `--explain`: `cargo x scenarios-page` writes it anew, and a
test fails when it is stale. Papers are named as in [validation.md](validation.md).
";

/// Returns the text of docs/scenarios.md.
pub fn scenarios_page() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## At the top\n");
    section(&mut out, Table::Top);
    let _ = writeln!(out, "\n## In `[{PARAMETERS}]`\n");
    out.push_str(
        "What makes up a machine and the file system on it. The presets' values, with the reasons \
         for each,\nstand in [presets.rs](../crates/simulate/src/presets.rs). Processor \
         times are those of the\npapers' 50 MHz processor.\n",
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
