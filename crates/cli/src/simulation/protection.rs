//! `sim protection`: calls on protected files, and filling a lost server again, on a modelled
//! machine.

use crate::arguments::SimProtection;
use crate::output::present;
use interface::{Protection, ReplacementPolicies, UserError, mib_s};
use serde_json::{Value, json};
use simulate::{
    OwnModels, ProtectedCall, ProtectedCase, ProtectedOutcome, Scenario, SimulationPlan,
    simulate_protected,
};

/// Calls of the simulation that are shown, in the units of the table.
struct Row {
    call: ProtectedCall,
    /// Results, one for each protection; `None` where nothing else has what was lost.
    outcomes: Vec<Option<ProtectedOutcome>>,
}

pub(crate) fn run(
    arguments: &SimProtection,
    policies: &ReplacementPolicies,
    models: &OwnModels,
) -> Result<(), UserError> {
    let base = &arguments.base;
    let mut settings = base.settings();
    settings.extend(base.parameters()?);
    let plan = SimulationPlan::resolve(base.scenario.as_deref(), settings, policies, models)?;
    let plan = plan.with_default_trials(1);
    let scenario = plan.scenarios().into_iter().next();
    let scenario = scenario.map(even).ok_or_else(|| {
        let help = "give the scenario a pattern, or leave --scenario out";
        UserError::usage("there is nothing to simulate", "the scenario has no case", help)
    })?;
    let protections = match &arguments.protect[..] {
        [] => vec![Protection::None, Protection::Mirror, Protection::Parity { blocks: 0 }],
        some => some.to_vec(),
    };
    let rows = ProtectedCall::ALL.into_iter().map(|call| {
        let outcomes = protections.iter().map(|protection| {
            let scenario = Scenario { protection: *protection, ..scenario.clone() };
            if call.loses_server() && *protection == Protection::None {
                return Ok(None);
            }
            let seed = scenario.seed;
            simulate_protected(&ProtectedCase { scenario, call }, seed).map(Some)
        });
        Ok(Row { call, outcomes: outcomes.collect::<Result<_, UserError>>()? })
    });
    let rows = rows.collect::<Result<Vec<Row>, UserError>>()?;
    match arguments.json {
        true => present::json(&as_json(&scenario, &protections, &rows)),
        false => as_table(&scenario, &protections, &rows),
    }
}

/// The scenario with a file of which every client has a whole number of turns.
fn even(scenario: Scenario) -> Scenario {
    let turn = ProtectedCall::turn_bytes(scenario.clients, scenario.block_bytes);
    Scenario { file_bytes: (scenario.file_bytes / turn).max(1) * turn, ..scenario }
}

fn as_json(scenario: &Scenario, protections: &[Protection], rows: &[Row]) -> Value {
    let cell = |(protection, outcome): (&Protection, &Option<ProtectedOutcome>)| {
        let outcome = outcome.as_ref()?;
        Some(json!({
            "protection": protection.to_string(), "seconds": outcome.seconds,
            "bytes": outcome.bytes, "mib_s": mib_s(outcome.bytes, outcome.seconds),
        }))
    };
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            let cells = protections.iter().zip(&row.outcomes).filter_map(cell);
            json!({ "call": row.call.to_string(), "results": cells.collect::<Vec<Value>>() })
        })
        .collect();
    json!({
        "schema": "unisono.sim-protection/1", "clients": scenario.clients,
        "servers": scenario.servers, "file_bytes": scenario.file_bytes,
        "block_bytes": scenario.block_bytes, "rows": rows,
    })
}

fn as_table(
    scenario: &Scenario,
    protections: &[Protection],
    rows: &[Row],
) -> Result<(), UserError> {
    let Scenario { clients, servers, file_bytes, .. } = scenario;
    let (files, name) = (file_bytes >> 20, format_args!("{:<26}", "call"));
    present::line(&format!("{clients} clients, {servers} servers, a file of {files} MiB"))?;
    let columns: String = protections.iter().map(|it| format!("{:>22}", it.to_string())).collect();
    present::line(&format!("{name}{columns}"))?;
    rows.iter().try_for_each(|row| {
        let cell = |outcome: &Option<ProtectedOutcome>| match outcome {
            Some(ProtectedOutcome { seconds, bytes, .. }) => {
                format!("{seconds:>9.3} s {:>5.0} MiB/s", mib_s(*bytes, *seconds))
            }
            None => format!("{:>22}", "-"),
        };
        let cells: Vec<String> =
            row.outcomes.iter().map(cell).map(|it| format!("{it:>22}")).collect();
        present::line(&format!("{:<26}{}", row.call, cells.concat()))
    })
}
