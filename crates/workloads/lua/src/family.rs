//! Scripts in suites: `workload = "lua"` and `script = "my.lua"`.

use crate::commands::{CommandOutcome, begin, missing_command, parallel};
use crate::machine::LuaError;
use crate::script::{LuaScript, OptionValue, RANDOM_OPTIONS, ScriptSettings};
use crate::worker::LuaCommon;
use crate::worker::{Side, SideState};
use crate::workload::LuaWorkload;
use dyno_core::offer::{TestOffer, UsualPace, WorkloadOffer};
use dyno_core::options::{OptionRow, OptionValues, describe};
use dyno_core::{Dialect, Driver};
use dyno_drivers::{Database, with_driver};
use dyno_engine::{
    Control, DriveError, ErrorPolicy, ErrorSet, Observer, TrialResult, TrialSpec, drive,
};
use dyno_facts::{ExperimentFacts, Message, PlannedTrial};
use dyno_load::default_sessions;
use dyno_report::NamedPaper;
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{
    After, Assist, Driven, EndedTrial, Family, FamilyEntry, Job, Left, LoadOrder, Ready, TrialDone,
    Trials, drive_part, drive_trial, given, refused,
};
use dyno_runner::progress::LoadProgress;
use dyno_suite::Plan;
use dyno_sysbench::{RandomOptions, SysbenchOptions, SysbenchTest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub static FAMILY: FamilyEntry =
    FamilyEntry::new(OFFER, &[], |plan, planned| Ok(Box::new(LuaFamily::new(plan, planned)?)));

/// Its chapter of papers.
pub const PAPER: NamedPaper = NamedPaper {
    tests: &["lua"],
    own_tables: &["lua"],
    ..NamedPaper::new("lua", "sysbench scripts")
};

pub const OFFER: WorkloadOffer = WorkloadOffer {
    pace: UsualPace::loading(f64::INFINITY),
    ..WorkloadOffer::new("lua", &[TestOffer { name: "script", size: None }], || describe(OPTIONS))
};

/// All other names are the script's own.
const OPTIONS: &[OptionRow<()>] = &[
    OptionRow::new(
        "scripts",
        "",
        OptionValues::List(|_, _| {}),
        "the script, a file in the folder of the suite, or below it; as a key of the experiment it is `script`. Its text \
         is stored with the run. All other options are the script's own",
    ),
    OptionRow::new(
        "commands",
        "",
        OptionValues::List(|_, _| {}),
        "commands of the script's own that are executed after its `prepare`, in this order; also a key of the experiment",
    ),
];

/// The names of a script's tables are unknown: they count as one.
const ITS_TABLES: &str = "what the script's prepare makes";

struct LuaFamily {
    script: LuaScript,
    /// The script's own options.
    given: Vec<(String, Option<String>)>,
    /// Executed after `prepare`, in this order.
    commands: Vec<String>,
    random: RandomOptions,
    prepares: bool,
}

impl LuaFamily {
    /// The settings of a state; outside of trials `planned` is `None`.
    fn settings(
        &self,
        dialect: Dialect,
        command: &str,
        planned: Option<&PlannedTrial>,
    ) -> ScriptSettings {
        let driver = match dialect {
            Dialect::Mysql => "mysql",
            Dialect::Postgres => "pgsql",
            Dialect::Sqlite => "sqlite",
        };
        let number = OptionValue::Number;
        let ps_mode = if self.prepares { "auto" } else { "disable" };
        let threads = planned.map_or(default_sessions(), |planned| planned.workers);
        let general = [
            ("threads", number(f64::from(threads))),
            ("time", number(planned.and_then(|planned| planned.duration_s).unwrap_or(0.0))),
            ("events", number(planned.and_then(|planned| planned.events).unwrap_or(0) as f64)),
            ("rate", number(planned.and_then(|planned| planned.rate).unwrap_or(0.0))),
            ("report_interval", number(0.0)),
            ("percentile", number(95.0)),
            ("verbosity", number(3.0)),
            ("db_driver", OptionValue::Text(driver.to_owned())),
            ("db_ps_mode", OptionValue::Text(ps_mode.to_owned())),
            ("rand_type", OptionValue::Text(self.random.distribution.name().to_owned())),
        ];
        let seed = planned.map_or(1, |planned| planned.seed as u32);
        ScriptSettings {
            driver,
            command: Some(command.to_owned()),
            words: vec![self.script.path.clone(), command.to_owned()],
            general: general.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            given: self.given.clone(),
            random: self.random,
            prepares: self.prepares,
            seed: seed.max(1),
            memory_max: 0,
            is_dry: false,
            prints_to_stderr: false,
        }
    }

    /// Executes a command of the script, if it has it.
    fn command(&self, database: &Database, name: &str) -> Result<(), Failure> {
        let settings = self.settings(database.dialect(), name, None);
        let command = begin(database, &self.script, &settings, true);
        let outcome = match command.map_err(|error| failure(error.error))? {
            CommandOutcome::Parallel => {
                parallel(database, &self.script, &settings, default_sessions(), name, &|_| {})
            }
            CommandOutcome::Done | CommandOutcome::Run(_) => Ok(()),
        };
        outcome.map_err(failure)
    }
}

/// The error of a script with a remedy, if one is known.
fn failure(error: LuaError) -> Failure {
    let hint = if error.is_refusal {
        "The script declares its options in `sysbench.cmdline.options`."
    } else if error.message.contains("already exists") {
        "An earlier run may have left it there: `prepare = false` uses what is there. Or drop it, by `dyno sysbench \
         SCRIPT cleanup`, and have `cleanup = true` do so after each run."
    } else {
        "the script failed there"
    };
    let trace = if error.trace.is_empty() { String::new() } else { format!("\n{}", error.trace) };
    Failure::new(sentence(&error.message)).with_hint(format!("{hint}{trace}"))
}

impl LuaFamily {
    fn new(plan: &Plan, experiment: &ExperimentFacts) -> Result<Self, Failure> {
        let [written] = &experiment.scripts[..] else {
            let hint = "Write `script = \"my.lua\"`: a file in the suite's folder.".to_owned();
            let message = "An experiment of `lua` has one script.";
            return Err(plan.experiment_error(&experiment.name, message, Some(hint)).into());
        };
        let (mut script_options, mut random) = (Vec::new(), Vec::new());
        let mut commands = BTreeMap::new();
        for (name, value) in given(experiment).filter(|(name, _)| !name.starts_with("scripts.")) {
            if let Some(number) = name.strip_prefix("commands.") {
                commands.insert(number.parse::<u32>().unwrap_or(u32::MAX), value.to_owned());
                continue;
            }
            if RANDOM_OPTIONS.contains(&name.replace('_', "-").as_str()) {
                random.push((name.to_owned(), value.to_owned()));
            } else {
                script_options.push((name.to_owned(), Some(value.to_owned())));
            }
        }
        let options = SysbenchOptions::from_pairs(SysbenchTest::PointSelect, &random);
        let options = options.map_err(|error| refused(plan, experiment, error))?;
        let folder = Path::new(&plan.suite.file).parent().unwrap_or(Path::new(""));
        let path = folder.join(&written.name).display().to_string();
        let script = LuaScript::from_text(&path, written.text.clone().into_bytes());
        script
            .parses()
            .map_err(|error| plan.experiment_error(&experiment.name, error.message, None))?;
        Ok(LuaFamily {
            script,
            given: script_options,
            commands: commands.into_values().collect(),
            random: options.random,
            prepares: options.prepared,
        })
    }
}

impl Family for LuaFamily {
    fn load(&self, database: &Database, _order: &LoadOrder<'_>) -> Result<Message, Failure> {
        let settings = self.settings(database.dialect(), "prepare", None);
        let missing = missing_command(database, &self.script, &settings, &self.commands);
        if let Some(name) = missing.map_err(failure)? {
            let message = format!("The script {} has no command `{name}`.", self.script.path);
            let hint = "`commands` names functions in `sysbench.cmdline.commands`.";
            return Err(Failure::new(message).with_hint(hint));
        }
        self.command(database, "prepare")?;
        self.commands.iter().try_for_each(|name| self.command(database, name))?;
        let executed: Vec<&str> =
            ["prepare"].into_iter().chain(self.commands.iter().map(String::as_str)).collect();
        Ok(Message::verbatim(format!("{} {}", self.script.name(), executed.join(", "))))
    }

    fn tables(&self) -> Vec<String> {
        vec![ITS_TABLES.to_owned()]
    }

    fn keeps_existing(&self) -> bool {
        false
    }

    fn idle_tables(&self) -> Vec<&'static str> {
        vec![ITS_TABLES]
    }

    fn existing(&self, _database: &Database) -> Result<BTreeSet<String>, Failure> {
        Ok(BTreeSet::new())
    }

    fn remove(
        &self,
        database: &Database,
        _tables: &[String],
        _observer: &LoadProgress,
    ) -> Result<(), Failure> {
        self.command(database, "cleanup")
    }
}

impl Trials for LuaFamily {
    fn trial(&self, database: &Database, job: Job<'_>) -> Result<TrialDone, Failure> {
        let settings = self.settings(database.dialect(), "run", Some(job.planned));
        let policy = error_policy();
        let (family, settings, policy) = (self, &settings, &policy);
        with_driver!(database, driver => {
            drive_trial(&DrivenScript { family, driver, settings, policy }, database, job)
        })
    }

    fn takes_fleet(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn assist(&self, database: &Database, part: Assist<'_>) -> Result<Option<Left>, Failure> {
        part.check_scripts()?;
        let settings = self.settings(database.dialect(), "run", Some(part.planned()));
        let policy = error_policy();
        let (family, settings, policy) = (self, &settings, &policy);
        with_driver!(database, driver => {
            drive_part(&DrivenScript { family, driver, settings, policy }, database, part)
        })
    }
}

fn error_policy() -> ErrorPolicy {
    let mut policy = ErrorPolicy::resilient();
    policy.retry.sqlstates.push(dyno_sysbench::DUPLICATE_KEY.to_owned());
    policy
}

/// A script for one trial: its workers open further connections by the driver.
struct DrivenScript<'a, D> {
    family: &'a LuaFamily,
    driver: &'a D,
    settings: &'a ScriptSettings,
    /// The errors after which an event begins again.
    policy: &'a ErrorPolicy,
}

impl<'a, D: Driver> Driven for DrivenScript<'a, D> {
    type Workload = LuaWorkload<'a, D>;
    type Before = Side<'a, D>;
    type Kept = ();

    fn takes_fleet(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn drive(
        &self,
        _database: &Database,
        workload: &LuaWorkload<'a, D>,
        spec: &TrialSpec,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<TrialResult, DriveError> {
        drive(workload, self.driver, spec, control, observer)
    }

    // The script decides which errors are ignored; those that are not have another cause.
    fn tune(&self, spec: &mut TrialSpec) {
        spec.errors.retry = ErrorSet { all: true, ..ErrorSet::default() };
        spec.errors.reconnect = true;
    }

    fn look_before(
        &self,
        _database: &Database,
        spec: &TrialSpec,
        _stem: &Path,
    ) -> Result<Ready<Self>, Failure> {
        let script = &self.family.script;
        let mut side = Side::new(self.driver, script, self.settings, 0).map_err(failure)?;
        side.step("init", "").map_err(failure)?;
        Ok(Ready::new(script.name(), LuaWorkload::new(self.common(), spec), side))
    }

    fn part(
        &self,
        _database: &Database,
        spec: &TrialSpec,
        _stem: &Path,
    ) -> Result<LuaWorkload<'a, D>, Failure> {
        Ok(LuaWorkload::new(self.common(), spec))
    }

    fn look_after(
        &self,
        _database: &Database,
        workload: &LuaWorkload<'a, D>,
        mut side: Side<'a, D>,
        ran: &EndedTrial<'_>,
    ) -> After {
        let hook_error = side.step("done", "").err().map(|error| sentence(&error.message));
        let summary = ran.summary;
        let script = &self.family.script;
        let held_up = script.held_up(ran.spec.workers, &summary.generator, summary.window_s);
        let late_error = workload.take_late_error();
        let late_error = late_error
            .map(|(name, error)| format!("{name}() has failed: {}", sentence(&error.message)));
        let notes = late_error.into_iter().chain(hook_error).chain(held_up);
        let notes = notes.map(Message::verbatim).collect();
        After { notes, ..After::default() }
    }
}

impl<'a, D: Driver> DrivenScript<'a, D> {
    /// The parts that commands and trials share.
    fn common(&self) -> LuaCommon<'a, D> {
        LuaCommon::new(self.driver, &self.family.script, self.settings, self.policy)
    }
}
