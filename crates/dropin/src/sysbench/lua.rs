//! Scripts of users' own: their commands, and `run`.

use super::SECRETS;
use super::command_line::{CommandLine, refused_by_test};
use super::fatal::{self, Console, Level, Place};
use super::intervals::ReportHooks;
use super::options::{self, list};
use super::run::{self, Job};
use dyno_core::options::{OptionValues, size};
use dyno_drivers::Secret;
use dyno_engine::TrialEnd;
use dyno_load::settings::ServerNeed;
use dyno_load::{LoadSessions, Unobserved};
use dyno_lua::{
    CommandError, CommandKind, CommandOutcome, LuaError, LuaScript, OptionValue, RANDOM_OPTIONS,
    ReportStat, ScriptSettings, SideState, side_state,
};
use dyno_runner::databases::Database;
use dyno_runner::failure::Exit;
use dyno_sysbench::{RandomOptions, SysbenchOptions, SysbenchTest};
use std::sync::{Mutex, PoisonError};

/// Does what a script and the command line say.
pub(super) fn execute(
    path: &str,
    line: &CommandLine,
    words: &[String],
    console: &mut Console,
) -> Exit {
    run_script(path, line, words, console).unwrap_or_else(|message| {
        console.fatal(message);
        Exit::Failed
    })
}

fn run_script(
    path: &str,
    line: &CommandLine,
    words: &[String],
    console: &mut Console,
) -> Result<Exit, String> {
    let script = LuaScript::read(path)?;
    let settings = script_settings(line, words)?;
    let command = line.command.as_deref().unwrap_or_default();
    let Some(database) = super::opened(&line.settings, console) else {
        return Ok(Exit::Failed);
    };
    Ok(match dyno_lua::begin(&database, &script, &settings, false) {
        Ok(CommandOutcome::Done) => Exit::Done,
        Ok(CommandOutcome::Run(main)) => run(&database, &script, &settings, (line, main), console),
        Ok(CommandOutcome::Parallel) => {
            // As in the original, one thread is not a crew.
            let threads = line.settings.threads;
            if threads > 1 {
                console.notice("Initializing worker threads...\n");
            }
            let console = Mutex::new(console);
            let report = |error: &LuaError| {
                let mut console = console.lock().unwrap_or_else(PoisonError::into_inner);
                print_failure(error, Some(Place::Command.function()), &mut console, line);
            };
            match dyno_lua::parallel(&database, &script, &settings, threads, command, &report) {
                Ok(_) => Exit::Done,
                Err(_) => Exit::Failed,
            }
        }
        Err(CommandError { kind, error }) => {
            let function = kind.map(|kind| match kind {
                CommandKind::Global => command,
                _ => Place::Command.function(),
            });
            print_failure(&error, function, console, line)
        }
    })
}

/// Executes the command `run` of a script.
fn run(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    (line, main): (&CommandLine, Box<dyn SideState + '_>),
    console: &mut Console,
) -> Exit {
    let mut main = match Reports::new(database, script, settings, (line, main)) {
        Ok(main) => main,
        Err(error) => return print_failure(&error, Some("init"), console, line),
    };
    let job = Job {
        settings: &line.settings,
        test: script.name().to_owned(),
        command_line: &settings.words,
        reconnect_every: 0,
        script: Some(script),
    };
    let json = match run::begin(&job, console) {
        Ok(json) => json,
        Err(exit) => return exit,
    };
    let seed = settings.seed.into();
    let hooks = &mut main as &mut dyn ReportHooks;
    let (mut has_begun, mut late_error, mut refusal) = (false, None, None);
    let exit = run::trial(&job, json, seed, (console, Some(hooks)), |spec, control, observer| {
        let driven = dyno_lua::drive(database, script, settings, spec, control, observer);
        has_begun = driven.is_ok();
        driven.map(|(mut result, error)| {
            late_error = error;
            // A COMMIT that begins a transaction looks like one that the server has not executed.
            if let TrialEnd::Uncommitted(_) = result.ended {
                refusal = LoadSessions::new(&database.admin(), &Unobserved, 1)
                    .needing(&[ServerNeed::WHOLE_ANSWERS])
                    .one(async |_| Ok(()))
                    .err();
                if refusal.is_some() {
                    result.ended = TrialEnd::Time;
                }
            }
            result
        })
    });
    if let Some(error) = refusal {
        run::print_load_error(console, &error, &line.settings);
        return Exit::Failed;
    }
    // As in the original: a run in which a thread_init() fails has no done().
    if !has_begun {
        return exit;
    }
    let exit = match late_error {
        Some((function, error)) => print_failure(&error, Some(function), console, line),
        None => exit,
    };
    match main.finish(console) {
        Err(error) => print_failure(&error, Some("done"), console, line),
        Ok(()) => exit,
    }
}

const INTERMEDIATE: &str = "report_intermediate";
const CUMULATIVE: &str = "report_cumulative";

/// The states of a run alongside its workers', as the original has them: one for `init`, `done` and the last report,
/// one for the reports before it.
struct Reports<'a> {
    main: Box<dyn SideState + 'a>,
    /// The state that executes report hooks, if the script has any.
    reporter: Option<Box<dyn SideState + 'a>>,
    reports_intermediate: bool,
    reports_cumulative: bool,
    line: &'a CommandLine,
    /// Errors of hooks that are to be printed.
    failures: Vec<(&'static str, LuaError)>,
}

impl<'a> Reports<'a> {
    /// Executes `init`.
    fn new(
        database: &'a Database,
        script: &'a LuaScript,
        settings: &'a ScriptSettings,
        (line, mut main): (&'a CommandLine, Box<dyn SideState + 'a>),
    ) -> Result<Self, LuaError> {
        main.step("init", "")?;
        let reports_intermediate = main.step("has", INTERMEDIATE)?.is_some();
        let reports_cumulative = main.step("has", CUMULATIVE)?.is_some();
        // The original's thread for reports comes after the workers.
        let reporter = if reports_intermediate || reports_cumulative {
            Some(side_state(database, script, settings, line.settings.threads)?)
        } else {
            None
        };
        let failures = Vec::new();
        Ok(Reports { main, reporter, reports_intermediate, reports_cumulative, line, failures })
    }

    fn record_failure(&mut self, function: &'static str, ended: Result<(), LuaError>) {
        self.failures.extend(ended.err().map(|error| (function, error)));
    }

    /// Executes `done`.
    fn finish(mut self, console: &mut Console) -> Result<(), LuaError> {
        self.close_reporter();
        self.print_failures(console);
        self.main.step("done", "")?;
        self.main.step("close", "").map(drop)
    }

    fn close_reporter(&mut self) {
        if let Some(mut reporter) = self.reporter.take() {
            let ended = reporter.step("close", "").map(drop);
            self.record_failure(INTERMEDIATE, ended);
        }
    }
}

impl ReportHooks for Reports<'_> {
    fn intermediate(&mut self, stat: &ReportStat) -> bool {
        if !self.reports_intermediate {
            return false;
        }
        if let Some(reporter) = &mut self.reporter {
            let ended = reporter.report(INTERMEDIATE, stat);
            self.record_failure(INTERMEDIATE, ended);
        }
        true
    }

    fn checkpoint(&mut self, heading: &str, stat: &ReportStat) -> bool {
        if !self.reports_cumulative {
            return false;
        }
        let settings = &self.line.settings;
        Console::new(settings.verbosity, settings.json_to_stdout()).text(Level::Notice, heading);
        if let Some(reporter) = &mut self.reporter {
            let ended = reporter.report(CUMULATIVE, stat);
            self.record_failure(CUMULATIVE, ended);
        }
        true
    }

    fn last(&mut self, stat: &ReportStat) -> bool {
        self.close_reporter();
        if !self.reports_cumulative {
            return false;
        }
        let ended = self.main.report(CUMULATIVE, stat);
        self.record_failure(CUMULATIVE, ended);
        true
    }

    fn print_failures(&mut self, console: &mut Console) {
        for (function, error) in std::mem::take(&mut self.failures) {
            print_failure(&error, Some(function), console, self.line);
        }
    }
}

/// Prints an error of the script itself, or what is wrong with the words of the command line.
fn print_failure(
    error: &LuaError,
    function: Option<&str>,
    console: &mut Console,
    line: &CommandLine,
) -> Exit {
    if error.is_refusal {
        console.complain(&error.message);
        return Exit::Failed;
    }
    let driver = line.settings.db_driver;
    let statement = error.failure.as_ref().and_then(|error| error.statement.as_deref());
    for said in fatal::lines_of_script(function, &error.message, statement, driver) {
        console.fatal(said);
    }
    if !error.trace.is_empty() {
        console.complain(&error.trace);
    }
    if let Some(hint) = fatal::remedy_of_script(&error.message) {
        console.hint(hint);
    }
    Exit::Failed
}

fn script_settings(line: &CommandLine, words: &[String]) -> Result<ScriptSettings, String> {
    let mut script_options = Vec::new();
    let mut pairs = Vec::new();
    for (name, value) in &line.script_options {
        if RANDOM_OPTIONS.contains(&name.replace('_', "-").as_str()) {
            pairs.push((name.clone(), value.clone().unwrap_or_default()));
        } else {
            script_options.push((name.clone(), value.clone()));
        }
    }
    let options = SysbenchOptions::from_pairs(SysbenchTest::PointSelect, &pairs)
        .map_err(|error| refused_by_test(error).message.to_string())?;
    let driver = line.settings.db_driver;
    let seed = match line.settings.rand_seed {
        0 => crate::time_as_seed() as u32,
        seed => seed as u32,
    };
    Ok(ScriptSettings {
        driver: driver.name(),
        command: line.command.clone(),
        words: super::without_secrets(words),
        general: general_options(line, &options.random, options.prepared),
        given: script_options,
        random: options.random,
        prepares: options.prepared,
        seed: seed.max(1),
        memory_max: usize::try_from(line.settings.lua_memory).unwrap_or(usize::MAX),
        is_dry: line.settings.is_dry(),
        prints_to_stderr: line.settings.json_to_stdout(),
    })
}

/// The general options as scripts see them.
fn general_options(
    line: &CommandLine,
    random: &RandomOptions,
    prepares: bool,
) -> Vec<(String, OptionValue)> {
    let mut options: Vec<(String, OptionValue)> = options::rows()
        .map(|row| {
            let option = line.given.iter().rev().find(|(name, _)| *name == row.name);
            let text = option.map_or(row.default, |(_, text)| text.as_str());
            let value = match &row.kind {
                OptionValues::Flag(_) => OptionValue::Switch(["on", "true", "1"].contains(&text)),
                OptionValues::Whole(..) | OptionValues::Long(_) => {
                    OptionValue::Number(text.parse().unwrap_or_default())
                }
                OptionValues::Size(_) => OptionValue::Number(size(text).unwrap_or_default() as f64),
                _ if SECRETS.contains(&row.name) => OptionValue::Password(Secret::new(text)),
                _ if row.metavariable() == options::LIST => {
                    OptionValue::List(list(text).map(str::to_owned).collect())
                }
                _ => OptionValue::Text(text.to_owned()),
            };
            (row.name.replace('-', "_"), value)
        })
        .collect();
    let ps_mode = if prepares { "auto" } else { "disable" };
    let numbers = [
        ("rand_spec_iter", random.iterations.into()),
        ("rand_spec_pct", random.hot_width_percent.into()),
        ("rand_spec_res", random.hot_share_percent.into()),
        ("rand_pareto_h", random.pareto_h),
    ];
    options.extend(numbers.map(|(name, value)| (name.to_owned(), OptionValue::Number(value))));
    let texts = [("rand_type", random.distribution.name()), ("db_ps_mode", ps_mode)];
    options.extend(texts.map(|(name, text)| (name.to_owned(), OptionValue::Text(text.to_owned()))));
    options
}
