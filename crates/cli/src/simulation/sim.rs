//! `sim`: simulates transfers, and explains scenarios.

use super::calibrate;
use super::demerit;
use super::protection;
use super::trace_output;
use crate::arguments::{Sim, SimBase, SimCommand};
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
    let file = arguments.base.scenario.as_deref();
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
        ("disk", arguments.disk.clone()),
        ("network", arguments.network.clone()),
        ("layout", arguments.layout.clone()),
        ("order", arguments.order.clone()),
        ("declared", arguments.declare.clone()),
        ("replacement", arguments.replacement.clone()),
        ("read-ahead", arguments.read_ahead.clone()),
        ("payload", arguments.payload.clone()),
        ("node-group-size", text(cases.node_group_size)),
        ("clients-per-server", text(arguments.clients_per_server)),
        ("disks-per-server", text(arguments.disks)),
        ("buffers-per-disk", text(arguments.buffers)),
        ("trials", text(arguments.trials)),
        ("seed", long(arguments.seed)),
        ("protect", arguments.protect.map(|it| it.to_string())),
        ("sync", flag(arguments.sync)),
        ("availability", flag(arguments.availability)),
    ];
    let said = said.into_iter().chain(arguments.client_cache.settings());
    let setting = |(key, value): (&str, Option<String>)| Some(Setting::option(key, &value?));
    let mut settings = arguments.base.settings();
    settings.extend(said.filter_map(setting));
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
    settings.extend(arguments.base.parameters()?);
    Ok(settings)
}

impl SimBase {
    /// Settings that the options make, but for parameters.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let number = |number: Option<u32>| number.map(|it| it.to_string());
        let bytes = |bytes: Option<u64>| bytes.map(|it| it.to_string());
        let said = [
            ("machine", self.machine.clone()),
            ("clients", number(self.clients)),
            ("servers", number(self.servers)),
            ("size", bytes(self.size)),
            ("block", bytes(self.block)),
        ];
        let setting = |(key, value): (&str, Option<String>)| Some(Setting::option(key, &value?));
        said.into_iter().filter_map(setting).collect()
    }

    /// Parameters of the machine, which count last.
    pub(super) fn parameters(&self) -> Result<Vec<Setting>, UserError> {
        self.set.iter().map(|assignment| Setting::parameter(assignment)).collect()
    }
}
