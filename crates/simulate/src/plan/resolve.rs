//! Resolution of a plan from a scenario file and options.

use super::file;
use super::keys::keys;
use super::setting::Setting;
use super::simulation_plan::SimulationPlan;
use crate::own_models::OwnModels;
use crate::scenario::{NODES_MAX, Scenario};
use interface::UserError;
use policy::ReplacementPolicies;
use std::path::Path;

const CLIENTS_PER_SERVER: &str = "clients-per-server";

const RATIO_HELP: &str =
    "leave out one of clients, servers and clients-per-server, which follows from the other two";

/// A scenario file, read once, and the policies and models of a program: all that plans with
/// different options share.
#[derive(Default)]
pub(crate) struct PlanTemplate {
    /// Name of the file in errors.
    name: Option<String>,
    settings: Vec<Setting>,
    policies: ReplacementPolicies,
    models: OwnModels,
}

impl PlanTemplate {
    /// Reads the scenario file, if there is one.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or is no scenario.
    pub(crate) fn read(
        file: Option<&Path>,
        policies: &ReplacementPolicies,
        models: &OwnModels,
    ) -> Result<Self, UserError> {
        let settings = file.map_or_else(|| Ok(Vec::new()), file::read)?;
        let name = file.map(|path| path.display().to_string());
        Ok(Self { name, settings, policies: policies.clone(), models: models.clone() })
    }

    /// Makes the plan of the file and of options that override it.
    ///
    /// # Errors
    /// Fails when something in the file or in the options makes no sense.
    pub(crate) fn plan(&self, options: Vec<Setting>) -> Result<SimulationPlan, UserError> {
        // Settings apply to the defaults, not to the plan of the file alone: an option may choose
        // the machine, whose defaults the file overrides, or the ratio that a number follows from.
        let settings: Vec<_> = self.settings.iter().cloned().chain(options).collect();
        let mut plan = SimulationPlan::default();
        plan.base.policies = self.policies.clone();
        plan.base.models = self.models.clone();
        // The machine is set first, because it gives the other keys their defaults.
        for key in keys() {
            for setting in settings.iter().filter(|it| it.key.name == key.name) {
                key.set(&mut plan, &setting.value).map_err(|cause| setting.refuse(cause))?;
                plan.origins.insert(key.name, setting.origin.clone());
            }
        }
        plan.apply_ratio().map_err(|cause| {
            let given = settings.iter().rfind(|it| it.key.name == CLIENTS_PER_SERVER);
            let refused = given.expect("a ratio must be set to be refused").refuse(cause);
            UserError { help: RATIO_HELP.to_owned(), ..refused }
        })?;
        plan.check().map_err(|error| match &self.name {
            Some(name) => UserError { error: format!("{name}: {}", error.error), ..error },
            None => error,
        })?;
        Ok(plan)
    }
}

impl SimulationPlan {
    /// Makes the plan of a scenario file, if there is one, and of options, in a program with these
    /// replacement policies and own models. Options override the file.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or something in it or in the options makes no sense.
    pub fn resolve(
        file: Option<&Path>,
        options: Vec<Setting>,
        policies: &ReplacementPolicies,
        models: &OwnModels,
    ) -> Result<Self, UserError> {
        PlanTemplate::read(file, policies, models)?.plan(options)
    }

    /// Makes the plan of the text of a scenario file, which errors call `name`, and of options that
    /// override it.
    ///
    /// # Errors
    /// Fails when something in the text or in the options makes no sense.
    pub fn of_text(name: &str, text: &str, options: Vec<Setting>) -> Result<Self, UserError> {
        let (name, settings) = (Some(name.to_owned()), file::settings(name, text)?);
        PlanTemplate { name, settings, ..PlanTemplate::default() }.plan(options)
    }

    /// Makes the plan of options alone.
    ///
    /// # Errors
    /// Fails when something in the options makes no sense.
    pub fn of_options(options: Vec<Setting>) -> Result<Self, UserError> {
        PlanTemplate::default().plan(options)
    }

    /// Derives the number of clients or servers from their ratio, if it is given. The error is the
    /// contradiction.
    fn apply_ratio(&mut self) -> Result<(), String> {
        let Some(ratio) = self.clients_per_server else { return Ok(()) };
        let Scenario { clients, servers, .. } = self.base;
        let is_given = |key| self.origins.contains_key(key);
        let derived = match (is_given("clients"), is_given("servers")) {
            (true, true) if u64::from(servers) * u64::from(ratio) != u64::from(clients) => {
                let cause = format!("there are {clients} clients and {servers} servers");
                return Err(cause);
            }
            (true, true) => return Ok(()),
            (true, false) if clients % ratio != 0 => {
                return Err(format!("{clients} clients are no multiple of it"));
            }
            (true, false) => {
                self.base.servers = clients / ratio;
                "servers"
            }
            (false, _) => {
                let clients = servers.checked_mul(ratio).filter(|it| u64::from(*it) <= NODES_MAX);
                let too_many =
                    || format!("{servers} servers would have more than {NODES_MAX} clients");
                self.base.clients = clients.ok_or_else(too_many)?;
                "clients"
            }
        };
        if let Some(origin) = self.origins.get(CLIENTS_PER_SERVER).cloned() {
            self.origins.insert(derived, origin);
        }
        Ok(())
    }
}
