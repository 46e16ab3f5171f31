//! A run: from settings to a trial, from its result to the report.

use super::follow::{Reporter, Shared, open_logs};
use super::options::{Length, Settings};
use super::report::{self, Report};
use super::scripts::{Loader, words};
use super::setup::{Books, OpenedDatabase, Tables, reach, set_up};
use super::{Exit, Refusal, VERSION, has_secret};
use dyno_core::{Address, Dialect, ErrorClass, Nanos, SECOND, counted};
use dyno_drivers::Database;
use dyno_drivers::target::TargetUrl;
use dyno_engine::{Control, DriveError, ErrorPolicy, ErrorSet, TrialEnd, TrialResult, TrialSpec};
use dyno_facts::{SeriesRow, TrialStatus};
use dyno_pgbench::DRIVE_ON;
use dyno_pgbench::run::{PgBench, PgbenchOptions, ScriptStatistics, Talk, VerboseErrors};
use dyno_pgbench::script::Script;
use dyno_runner::front_end::{JsonFile, SweepLevel};
use dyno_runner::{identity, kinds, output, summarize};
use dyno_store::HistogramLog;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Connecting has no separate limit: the target has one per connection.
const CONNECT_LIMIT: Nanos = 24 * 3_600 * SECOND;

const INCOMPLETE: &str = "pgbench: error: Run was aborted; the above results are incomplete.";

/// Runs the scripts and prints the report. `words` is the command line.
pub(super) fn run(
    settings: &Settings,
    loader: Loader,
    words: &[String],
) -> Result<(Exit, SweepLevel), Refusal> {
    let has_builtin = loader.has_builtin();
    let scripts = loader.into_scripts();
    let json = settings.json.as_deref().map(|path| JsonFile::create("dyno pgbench", path));
    let json = json.transpose()?;
    let opened = reach(settings, "setup")?;
    let OpenedDatabase { product, target, .. } = &opened;
    let name = match target.dialect {
        Dialect::Postgres => String::new(),
        Dialect::Mysql | Dialect::Sqlite => format!("{} ", product.name),
    };
    print(settings, &format!("pgbench ({VERSION}, server {name}{})\n", product.version));
    if settings.debug {
        output::talk_lines(&debug_line(settings, target));
    }
    let tables = set_up(&opened, settings, has_builtin)?;
    let command_line = words
        .iter()
        .map(|word| if has_secret(word) { target.to_string() } else { word.clone() })
        .collect();
    let job = Job { settings, tables, target, command_line };
    job.run(&opened.database, scripts, json)
}

/// Prints to stdout, or to stderr if the JSON has stdout.
fn print(settings: &Settings, text: &str) {
    if settings.json_to_stdout() {
        output::talk_lines(text.trim_end_matches('\n'));
    } else {
        output::data(text);
    }
}

fn debug_line(settings: &Settings, target: &TargetUrl) -> String {
    let (what, length) = match settings.length() {
        Length::Transactions(each) => ("nxacts", each),
        Length::Seconds(seconds) => ("duration", seconds),
    };
    let (host, port) = match target.hosts.0.first() {
        Some(Address::Tcp { host, port }) => (host.clone(), port.to_string()),
        Some(Address::Unix(path)) => {
            let folder = path.parent().unwrap_or(path).display().to_string();
            let port = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            (folder, port)
        }
        None => (String::new(), String::new()),
    };
    format!(
        "pgbench: pghost: {host} pgport: {port} nclients: {} {what}: {length} dbName: {}",
        settings.clients,
        target.database.as_deref().unwrap_or_default()
    )
}

struct Job<'a> {
    settings: &'a Settings,
    tables: Tables,
    target: &'a TargetUrl,
    command_line: Vec<String>,
}

impl Job<'_> {
    /// Runs the scripts and prints the report.
    fn run(
        &self,
        database: &Database,
        scripts: Vec<(Script, u32)>,
        json: Option<JsonFile>,
    ) -> Result<(Exit, SweepLevel), Refusal> {
        let settings = self.settings;
        let dialect = database.dialect();
        // Sessions that block have a loop each.
        let threads = if database.blocks() { settings.clients } else { settings.threads };
        let shared = Shared::new();
        let logs = open_logs(settings, threads, &shared)?;
        let books = Books::open(database, settings, &scripts)?;
        let options = PgbenchOptions {
            logs,
            threads,
            scale: self.tables.scale,
            ..workload_options(settings, scripts)
        };
        let workload =
            PgBench::new(options, dialect, Box::new(print_talk)).map_err(Refusal::error)?;
        let hdr = self.histograms(&workload)?;
        let spec = trial_spec(settings, dialect);
        let (is_running, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let survives = spec.survives_refusals();
        let control = Arc::new(Control::following(Box::new({
            let (is_running, refused) = (Arc::clone(&is_running), Arc::clone(&refused));
            move |number, error| {
                let _ = refused.set(number);
                if survives || is_running.load(Ordering::Relaxed) {
                    let refusal = Refusal::unconnected(error, dialect);
                    let problem = format!("client {number} aborted while establishing connection");
                    output::talk_lines(refusal.with("error", problem).to_string().trim_end());
                }
            }
        })));
        if let Err(error) = dyno_runner::signals::stop_on_interrupt(Arc::clone(&control)) {
            output::talk(&format!("pgbench: warning: Ctrl-C will not print a report: {error}"));
        }
        let mut reporter = Reporter::new(settings, &spec, &shared, &is_running, hdr);
        let driven = DRIVE_ON(database, &workload, &spec, &control, &mut reporter);
        let rows = reporter.rows;
        let result = driven.map_err(|error| self.not_begun(error, refused.get()))?;
        let written = json.map(|json| self.write_json(json, &workload, &spec, &result, rows));
        let exit = self.ended(&workload, &result, shared.late.load(Ordering::Relaxed));
        written.transpose()?;
        if let Some(books) = books {
            books.close(database)?;
        }
        // Its log files end with it.
        drop(workload);
        let exit = match exit {
            Exit::Done if shared.has_lost_lines.load(Ordering::Relaxed) => Exit::Failed,
            exit => exit,
        };
        Ok((exit, SweepLevel::from_result(settings.clients, &result)))
    }

    /// Creates the file of `--hdr`, if it is requested.
    fn histograms(&self, workload: &PgBench) -> Result<Option<HistogramLog>, Refusal> {
        let Some(path) = &self.settings.hdr else { return Ok(None) };
        let log = HistogramLog::create(path, &kinds(workload)).map_err(|error| {
            format!("could not open file \"{}\": {}", path.display(), words(&error))
        })?;
        Ok(Some(log))
    }

    fn not_begun(&self, error: DriveError, number: Option<&u32>) -> Refusal {
        match error {
            DriveError::Connect(error) => {
                let client =
                    number.map(|number| format!("could not create connection for client {number}"));
                Refusal::unconnected(&error, self.target.dialect).with_any("error", client)
            }
            DriveError::Interrupted => Refusal::error("stopped before all clients were connected"),
            DriveError::System(error) => {
                Refusal::error(format_args!("the system refused what a run needs: {error}"))
            }
        }
    }

    fn write_json(
        &self,
        json: JsonFile,
        workload: &PgBench,
        spec: &TrialSpec,
        result: &TrialResult,
        rows: Vec<SeriesRow>,
    ) -> Result<(), Refusal> {
        let kinds = kinds(workload);
        let identity = identity(kinds.join(", "), spec);
        let mut summary = summarize(identity, &kinds, spec, result, false);
        let stopped = stopped(result);
        if stopped > 0 {
            summary.status = TrialStatus::Failed(
                format!("{} stopped after an error.", counted(stopped, "client")).into(),
            );
        }
        let percentiles = &self.settings.percentiles;
        Ok(json.write(&self.command_line, summary, &result.total, percentiles, rows)?)
    }

    /// Prints the report and decides the exit code.
    fn ended(&self, workload: &PgBench, result: &TrialResult, late: u64) -> Exit {
        let settings = self.settings;
        let total = workload.statistics().total();
        let scripts = report::scripts(workload, settings.report_per_command);
        let report = Report::new(settings, self.tables, result, (&total, &scripts), late);
        print(settings, &report.to_string());
        if let Some(note) = result.scan_note() {
            output::talk_lines(&format!("pgbench: warning: {note}"));
        }
        let stopped = stopped(result);
        if result.ended == TrialEnd::Interrupted {
            if result.unfinished > 0 {
                output::talk_lines(&cut_line(settings, result));
            }
            output::talk(INCOMPLETE);
            return Exit::Interrupted;
        }
        if stopped == 0
            && let Some(why) = result.ended.failure()
        {
            output::talk_lines(&format!("pgbench: error: {why}"));
            return Exit::Aborted;
        }
        if stopped > 0 {
            output::talk_lines(&stopped_line(settings, stopped, total.total()));
            output::talk(INCOMPLETE);
            return Exit::Aborted;
        }
        if total.processed() + total.failed() == 0 {
            output::talk_lines("pgbench: error: No transaction was executed.");
            output::talk_lines(
                "pgbench: hint: Run longer (-T), or raise the rate (-R) or the limit (-L).",
            );
            return Exit::Failed;
        }
        if let Some(error) = first_of_nothing_but_errors(result, &total) {
            output::talk_lines(&format!(
                "pgbench: error: No transaction succeeded. The first error was: {error}\n\
                 pgbench: hint: Correct the script; --verbose-errors prints every error."
            ));
            return Exit::Failed;
        }
        Exit::Done
    }
}

/// Clients that an error ended before the others.
fn stopped(result: &TrialResult) -> u32 {
    match result.ended {
        TrialEnd::Aborted(_) => result.retired.max(1),
        _ => result.retired,
    }
}

/// The first error that is not a conflict between clients, where such errors left no success.
fn first_of_nothing_but_errors<'a>(
    result: &'a TrialResult,
    total: &ScriptStatistics,
) -> Option<&'a str> {
    if total.processed() > 0 || total.other_failures == 0 {
        return None;
    }
    let conflicts = [ErrorClass::Serialization, ErrorClass::Deadlock, ErrorClass::LockTimeout];
    let mut errors = result.total.errors.0.iter();
    let first = errors.find(|error| !conflicts.contains(&error.class))?;
    Some(&first.message)
}

/// The warning that clients stopped, with the number of executed transactions.
fn stopped_line(settings: &Settings, stopped: u32, executed: u64) -> String {
    let clients = settings.clients;
    let total_suffix = match settings.length() {
        Length::Transactions(each) => {
            format!(" of {}", u64::from(each) * u64::from(clients))
        }
        Length::Seconds(_) => String::new(),
    };
    format!(
        "pgbench: warning: {stopped} of {clients} clients stopped after an error; \
         {executed}{total_suffix} transactions were executed"
    )
}

/// The warning that Ctrl-C did not wait for transactions.
fn cut_line(settings: &Settings, result: &TrialResult) -> String {
    format!(
        "pgbench: warning: {} of {} clients were cut off within a transaction, which is not \
         counted; the longest took at least {:.3} s",
        result.unfinished,
        settings.clients,
        result.longest_in_flight as f64 / 1e9
    )
}

fn print_talk(talk: Talk<'_>) {
    match talk {
        Talk::Error(text) => output::talk_lines(&format!("pgbench: error: {text}")),
        Talk::Info(text) => output::talk_lines(&format!("pgbench: {text}")),
        Talk::Debug(text) => output::talk_lines(text),
    }
}

fn late_limit(settings: &Settings) -> Option<Nanos> {
    (settings.late_limit_us > 0).then_some(settings.late_limit_us * 1_000)
}

fn workload_options(settings: &Settings, scripts: Vec<(Script, u32)>) -> PgbenchOptions {
    let verbose =
        VerboseErrors { max_tries: settings.max_tries, latency_limit: late_limit(settings) };
    PgbenchOptions {
        clients: settings.clients,
        defines: settings.variables.clone(),
        statement_latencies: settings.report_per_command,
        continue_on_error: settings.continue_on_error,
        debug: settings.debug,
        verbose_errors: settings.verbose_errors.then_some(verbose),
        ..PgbenchOptions::new(scripts, settings.mode, settings.seed)
    }
}

fn trial_spec(settings: &Settings, dialect: Dialect) -> TrialSpec {
    let (duration, events_per_worker) = match settings.length() {
        Length::Seconds(seconds) => (Some(u64::from(seconds) * SECOND), None),
        Length::Transactions(each) => (None, Some(u64::from(each))),
    };
    TrialSpec {
        loops: Some(settings.threads),
        warmup: u64::from(settings.warmup_s) * SECOND,
        duration,
        events_per_worker,
        finish_begun: true,
        connect_each: settings.connect_each,
        late_limit: late_limit(settings),
        rate_per_s: settings.rate_per_s,
        // Each thread of pgbench draws arrivals for its clients.
        rate_each_loop: true,
        interval: u64::from(settings.progress_s.unwrap_or(1)) * SECOND,
        seed: settings.seed,
        errors: error_policy(settings, dialect),
        drain: Nanos::MAX,
        connect_limit: CONNECT_LIMIT,
        ..TrialSpec::closed(settings.clients)
    }
}

/// Conflicts are tried again, as often as `--max-tries` says; any other error ends its client.
fn error_policy(settings: &Settings, dialect: Dialect) -> ErrorPolicy {
    let mut classes = vec![ErrorClass::Serialization, ErrorClass::Deadlock];
    if dialect != Dialect::Postgres {
        // Where a conflict between two writers is a lock that isn't granted.
        classes.push(ErrorClass::LockTimeout);
    }
    ErrorPolicy {
        retry: ErrorSet { classes, ..ErrorSet::default() },
        max_retries: settings.max_tries.checked_sub(1),
        tolerate: ErrorSet { all: settings.continue_on_error, ..ErrorSet::default() },
        reconnect: false,
        retire: !settings.exit_on_abort,
        pause: 0,
        ..ErrorPolicy::resilient()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::DbError;
    use dyno_engine::Action;

    fn server_error(class: ErrorClass) -> DbError {
        DbError::server(class, 0, *b"00000", "words")
    }

    /// The reaction to an error of PostgreSQL's.
    fn action(settings: &Settings, error: &DbError, attempt: u32) -> Action {
        error_policy(settings, Dialect::Postgres).action(error, attempt)
    }

    #[test]
    fn only_conflicts_are_tried_again() {
        let mut settings = Settings::new(1);
        let deadlock = server_error(ErrorClass::Deadlock);
        let constraint = server_error(ErrorClass::Constraint);
        assert_eq!(action(&settings, &deadlock, 0), Action::Fail);
        assert_eq!(action(&settings, &constraint, 0), Action::Retire);
        settings.max_tries = 3;
        assert_eq!(action(&settings, &deadlock, 1), Action::Retry);
        assert_eq!(action(&settings, &deadlock, 2), Action::Fail);
        settings.max_tries = 0;
        assert_eq!(action(&settings, &deadlock, 1_000_000), Action::Retry);
        settings.exit_on_abort = true;
        assert_eq!(action(&settings, &constraint, 0), Action::Abort);
        settings.continue_on_error = true;
        assert_eq!(action(&settings, &constraint, 0), Action::Fail);
        assert_eq!(action(&settings, &DbError::lost("gone"), 0), Action::Abort);
        let sqlite = error_policy(&Settings::new(1), Dialect::Sqlite);
        assert_eq!(sqlite.action(&server_error(ErrorClass::LockTimeout), 0), Action::Fail);
    }

    #[test]
    fn lengths_are_per_client_or_end_when_what_had_begun_is_done() {
        let mut settings = Settings::new(1);
        let spec = super::trial_spec(&settings, Dialect::Postgres);
        assert_eq!((spec.duration, spec.events_per_worker, spec.events), (None, Some(10), None));
        settings.seconds = Some(3);
        settings.late_limit_us = 1_500;
        let spec = super::trial_spec(&settings, Dialect::Postgres);
        assert_eq!((spec.duration, spec.events_per_worker), (Some(3 * SECOND), None));
        assert_eq!((spec.late_limit, spec.finish_begun), (Some(1_500_000), true));
    }

    #[test]
    fn what_stopped_is_told_with_what_was_done() {
        let mut settings = Settings { clients: 4, transactions: Some(100), ..Settings::new(1) };
        let line = stopped_line(&settings, 2, 98);
        let start = "pgbench: warning: 2 of 4 clients stopped after an error; 98";
        assert_eq!(line, format!("{start} of 400 transactions were executed"));
        settings = Settings { transactions: None, seconds: Some(1), ..settings };
        let line = stopped_line(&settings, 2, 98);
        assert_eq!(line, format!("{start} transactions were executed"));
    }
}
