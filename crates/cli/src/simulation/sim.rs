//! `sim`: simulates transfers, and explains scenarios.

use super::calibrate;
use super::demerit;
use super::protection;
use super::trace_output;
use crate::arguments::{Sim, SimCommand};
use crate::output::present;
use interface::{ReplacementPolicies, Report, UserError};
use simulate::{OwnModels, Setting, SimulationPlan};
use std::ops::ControlFlow;

pub(crate) fn run(
    arguments: &Sim,
    policies: &ReplacementPolicies,
    models: &OwnModels,
) -> Result<(), UserError> {
    match &arguments.command {
        Some(SimCommand::Calibrate(calibrate)) => return calibrate::run(calibrate),
        Some(SimCommand::Demerit(demerit)) => return demerit::run(demerit, models),
        Some(SimCommand::Protection(calls)) => return protection::run(calls, policies, models),
        None => {}
    }
    let file = arguments.scenario.as_deref();
    let plan = SimulationPlan::resolve(file, options(arguments)?, policies, models)?;
    if arguments.explain {
        return explain(&plan, arguments.cases.json);
    }
    let report = match trace_output::Wanted::of(arguments) {
        // One trial can be looked at.
        Some(wanted) => {
            let results = trace_output::run(&plan.with_default_trials(1).scenarios(), &wanted)?;
            Report { schema: interface::SIM_SCHEMA.to_owned(), limits: None, results }
        }
        None => simulate::simulate_all(&plan.scenarios(), None, &|_| ControlFlow::Continue(()))?,
    };
    present::report(&report, arguments.cases.json)
}

fn explain(plan: &SimulationPlan, as_json: bool) -> Result<(), UserError> {
    match as_json {
        true => present::json(&plan.explain_as_json()),
        false => present::line(plan.explain().trim_end()),
    }
}

/// Settings that the options make.
fn options(arguments: &Sim) -> Result<Vec<Setting>, UserError> {
    let cases = &arguments.cases;
    let text = |number: Option<u32>| number.map(|it| it.to_string());
    let long = |number: Option<u64>| number.map(|it| it.to_string());
    let flag = |flag: Option<bool>| flag.map(|it| it.to_string());
    let said = [
        ("machine", arguments.machine.clone()),
        ("disk", arguments.disk.clone()),
        ("network", arguments.network.clone()),
        ("layout", arguments.layout.clone()),
        ("order", arguments.order.clone()),
        ("declared", arguments.declare.clone()),
        ("replacement", arguments.replacement.clone()),
        ("read-ahead", arguments.read_ahead.clone()),
        ("payload", arguments.payload.clone()),
        ("node-group-size", text(cases.node_group_size)),
        ("clients", text(arguments.clients)),
        ("servers", text(arguments.servers)),
        ("clients-per-server", text(arguments.clients_per_server)),
        ("disks-per-server", text(arguments.disks)),
        ("buffers-per-disk", text(arguments.buffers)),
        ("trials", text(arguments.trials)),
        ("size", long(arguments.size)),
        ("block", long(arguments.block)),
        ("seed", long(arguments.seed)),
        ("protect", arguments.protect.map(|it| it.to_string())),
        ("sync", flag(arguments.sync)),
        ("availability", flag(arguments.availability)),
    ];
    let said = said.into_iter().chain(arguments.client_cache.settings());
    let setting = |(key, value): (&str, Option<String>)| Some(Setting::option(key, &value?));
    let mut settings: Vec<Setting> = said.filter_map(setting).collect();
    let records: Vec<String> = cases.record.iter().map(u64::to_string).collect();
    let distribution = cases.distribution.as_ref().map(|_| "--distribution");
    let lists = [
        (distribution.unwrap_or("--pattern"), "pattern", cases.patterns()),
        ("--record", "record", records),
        ("--strategy", "strategy", cases.strategy.clone()),
    ];
    for (option, key, values) in lists {
        if !values.is_empty() {
            settings.push(Setting::list(option, key, &values));
        }
    }
    for assignment in &arguments.set {
        settings.push(Setting::parameter(assignment)?);
    }
    Ok(settings)
}
