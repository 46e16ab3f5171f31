//! The options of an experiment with scripts of pgbench.

use super::super::{flag, refuse_unknown, whole, wrong_value};
use crate::failure::Failure;
use dyno_pgbench::init::SCALE_MAX;
use dyno_pgbench::script::{QueryMode, Script, find_builtin};
use dyno_suite::{OptionPart, Plan, PlannedExperiment, PlannedOption};

/// The names of all options; `define` and `scripts` have more behind a dot.
const NAMES: [&str; 7] = ["scripts", "scale", "define", "mode", "jobs", "vacuum", "check"];

/// What happens to the tables before each trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vacuum {
    /// Nothing: pgbench's `-n`.
    None,
    /// Branches and tellers are vacuumed, the history is emptied: what pgbench does unasked.
    Some,
    /// Accounts too: pgbench's `-v`.
    All,
}

/// Valid options.
pub(super) struct Options {
    pub(super) test: String,
    pub(super) scripts: Vec<(Script, u32)>,
    texts: Vec<String>,
    pub(super) mode: QueryMode,
    pub(super) scale: u32,
    pub(super) defines: Vec<(String, String)>,
    pub(super) jobs: Option<u32>,
    pub(super) vacuum: Vacuum,
    pub(super) check: bool,
}

/// What is wrong with a value: what it takes.
type Wrong = String;

impl Options {
    /// Reads the options of an experiment.
    ///
    /// # Errors
    /// The first wrong one, with its place in the suite file.
    pub(super) fn new(plan: &Plan, experiment: &PlannedExperiment) -> Result<Self, Failure> {
        let mut options = Options {
            test: experiment.test.clone(),
            scripts: Vec::new(),
            texts: Vec::new(),
            mode: QueryMode::Simple,
            scale: 1,
            defines: Vec::new(),
            jobs: None,
            vacuum: Vacuum::None,
            check: true,
        };
        refuse_unknown(plan, experiment, &NAMES)?;
        for option in &experiment.options {
            options.set(option).map_err(|wanted| wrong_value(plan, experiment, option, &wanted))?;
        }
        options.read_scripts(plan, experiment)?;
        Ok(options)
    }

    fn set(&mut self, option: &PlannedOption) -> Result<(), Wrong> {
        let value = option.value.as_str();
        if let Some(name) = option.name.strip_prefix("define.") {
            self.defines.push((name.to_owned(), option.value.clone()));
            return Ok(());
        }
        match option.name.as_str() {
            "scale" => self.scale = whole(value, SCALE_MAX)?,
            "jobs" => self.jobs = Some(whole(value, 10_000)?),
            "mode" => {
                let found = QueryMode::ALL.into_iter().find(|mode| mode.name() == value);
                self.mode = found.ok_or("simple, extended or prepared")?;
            }
            "vacuum" => {
                self.vacuum = match value {
                    "none" => Vacuum::None,
                    "some" => Vacuum::Some,
                    "all" => Vacuum::All,
                    _ => return Err("none, some or all".to_owned()),
                }
            }
            "check" => self.check = flag(value)?,
            "define" => return Err("a table: `define = { NAME = VALUE }`".to_owned()),
            // The suite has read the scripts.
            _ => {}
        }
        Ok(())
    }

    fn read_scripts(&mut self, plan: &Plan, experiment: &PlannedExperiment) -> Result<(), Failure> {
        if experiment.scripts.is_empty() {
            let refuse = |message: String| {
                Failure::from(plan.experiment_error(&experiment.name, message, None))
            };
            // Prefixes are for command lines; a suite names the test in full.
            let builtin = find_builtin(&experiment.test)
                .ok()
                .filter(|builtin| builtin.name == experiment.test)
                .ok_or_else(|| refuse(format!("`{}` is no test of pgbench.", experiment.test)))?;
            let script = builtin.script(self.mode).map_err(|error| refuse(error.to_string()))?;
            self.scripts.push((script, 1));
            self.texts.push(builtin.text.to_owned());
            return Ok(());
        }
        for (number, planned) in (1..).zip(&experiment.scripts) {
            let script = Script::parse(planned.text.as_bytes(), &planned.name, self.mode).map_err(
                |error| {
                    Failure::from(plan.option_error(
                        &experiment.name,
                        &format!("scripts.{number}"),
                        OptionPart::Value,
                        error.to_string(),
                        None,
                    ))
                },
            )?;
            self.scripts.push((script, planned.weight));
            self.texts.push(planned.text.clone());
        }
        Ok(())
    }

    /// The texts of the scripts that run.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let weights = self.scripts.iter().map(|(_, weight)| *weight);
        self.texts.iter().zip(weights).filter(|(_, weight)| *weight > 0).map(|(text, _)| &**text)
    }

    /// The texts of all scripts, in their order.
    pub(super) fn all_texts(&self) -> &[String] {
        &self.texts
    }

    /// The value of a variable that is an integer before the scripts run.
    pub(super) fn variable(&self, name: &str) -> Option<i64> {
        let defined = self.defines.iter().find(|(other, _)| other == name);
        match defined {
            Some((_, value)) => value.parse().ok(),
            None => (name == "scale").then(|| i64::from(self.scale)),
        }
    }
}
