//! Resolution of a plan from a scenario file and options.

use super::file;
use super::keys::keys;
use super::setting::Setting;
use super::simulation_plan::SimulationPlan;
use crate::own_models::OwnModels;
use interface::UserError;
use policy::ReplacementPolicies;
use std::path::Path;

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
        let settings = file.map_or_else(|| Ok(Vec::new()), file::read)?;
        let name = file.map(|path| path.display().to_string());
        Self::make(name.as_deref(), settings, options, policies, models)
    }

    /// Makes the plan of the text of a scenario file, which errors call `name`, and of options that
    /// override it.
    ///
    /// # Errors
    /// Fails when something in the text or in the options makes no sense.
    pub fn of_text(name: &str, text: &str, options: Vec<Setting>) -> Result<Self, UserError> {
        let settings = file::settings(name, text)?;
        let (policies, models) = (ReplacementPolicies::default(), OwnModels::default());
        Self::make(Some(name), settings, options, &policies, &models)
    }

    /// Makes the plan of options alone.
    ///
    /// # Errors
    /// Fails when something in the options makes no sense.
    pub fn of_options(options: Vec<Setting>) -> Result<Self, UserError> {
        let (policies, models) = (ReplacementPolicies::default(), OwnModels::default());
        Self::make(None, Vec::new(), options, &policies, &models)
    }

    fn make(
        file: Option<&str>,
        mut settings: Vec<Setting>,
        options: Vec<Setting>,
        policies: &ReplacementPolicies,
        models: &OwnModels,
    ) -> Result<Self, UserError> {
        settings.extend(options);
        let mut plan = Self::default();
        plan.base.policies = policies.clone();
        plan.base.models = models.clone();
        // The machine is set first, because it gives the other keys their defaults.
        for key in keys() {
            for setting in settings.iter().filter(|it| it.key.name == key.name) {
                key.set(&mut plan, &setting.value).map_err(|cause| setting.refuse(cause))?;
                plan.origins.insert(key.name, setting.origin.clone());
            }
        }
        plan.check().map_err(|error| match file {
            Some(name) => UserError { error: format!("{name}: {}", error.error), ..error },
            None => error,
        })?;
        Ok(plan)
    }
}
