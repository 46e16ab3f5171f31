//! The commands `run`, `prepare`, `prewarm` and `cleanup`.

use super::fatal::{self, Console, Level, Place};
use super::intervals::{Intervals, ReportHooks, report_stat, with_latency};
use super::options::{DbDriver, Settings};
use super::report::{Figures, fairness, fatal_errors, histogram, notes_block, outage};
use super::target::{error_policy, target};
use dyno_core::{AdminSession, DbError, Dialect, Nanos, SECOND};
use dyno_drivers::Database;
use dyno_drivers::dry::DryDriver;
use dyno_engine::record::MeasuredInterval;
use dyno_engine::{
    Control, DriveError, DueArrivals, Observer, TrialEnd, TrialResult, TrialSpec, WorkerStats,
    drive,
};
use dyno_facts::{Message, SeriesRow};
use dyno_load::{
    LoadError, LoadErrorKind, LoadObserver, LoadReport, LoadSessions, Unobserved, doing,
    while_doing,
};
use dyno_lua::{LuaScript, ReportStat};
use dyno_reactor::monotonic_now;
use dyno_runner::failure::Exit;
use dyno_runner::front_end::{JsonFile, SweepLevel};
use dyno_runner::progress::LoadProgress;
use dyno_runner::{identity, lock_holder, lock_tables, shared_warning, summarize};
use dyno_sysbench::check::{MissingRows, check_prepared, first_free_unique, preflight};
use dyno_sysbench::{DRIVE_ON, OFFER, Sysbench, SysbenchOptions, cleanup, prepare, prewarm};
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) struct Job<'a> {
    pub(super) settings: &'a Settings,
    /// The name of the test or script.
    pub(super) test: String,
    pub(super) command_line: &'a [String],
    /// A connection is replaced after this many events; 0 never.
    pub(super) reconnect_every: u64,
    /// A script of the user's own.
    pub(super) script: Option<&'a LuaScript>,
}

/// Runs a built-in test; without a database its statements go nowhere.
pub(super) fn run(
    database: Option<&Database>,
    mut options: SysbenchOptions,
    job: &Job<'_>,
    console: &mut Console,
) -> Result<Exit, Exit> {
    let json = begin(job, console)?;
    let seed = job.seed();
    if let Some(database) = database {
        look_before(database, &mut options, job, console)?;
    }
    let workload = Sysbench::new(options, database.map_or(Dialect::Mysql, Database::dialect));
    Ok(trial(job, json, seed, (console, None), |spec, control, observer| match database {
        Some(database) => DRIVE_ON(database, &workload, spec, control, observer),
        None => drive(
            &workload,
            &DryDriver { dialect: Dialect::Mysql, blocks: true },
            spec,
            control,
            observer,
        ),
    }))
}

/// Prints the lines that precede a run, and makes sure that its result can be written.
pub(super) fn begin(job: &Job<'_>, console: &mut Console) -> Result<Option<JsonFile>, Exit> {
    let json = job.settings.json.as_deref().map(|path| JsonFile::create("dyno sysbench", path));
    let json = json.transpose().map_err(|message| {
        console.fatal(message);
        Exit::Failed
    })?;
    console.text(Level::Notice, header(job.settings));
    Ok(json)
}

/// Executes a trial and prints its report, or has the hooks do so.
pub(super) fn trial(
    job: &Job<'_>,
    json: Option<JsonFile>,
    seed: u64,
    (console, hooks): (&mut Console, Option<&mut dyn ReportHooks>),
    drive: impl FnOnce(&TrialSpec, &Control, &mut dyn Observer) -> Result<TrialResult, DriveError>,
) -> Exit {
    let settings = job.settings;
    let spec = TrialSpec { reconnect_every: job.reconnect_every, ..trial_spec(settings, seed) };
    let (verbosity, json_to_stdout) = (settings.verbosity, settings.json_to_stdout());
    // Before the first event, which may print something itself.
    let control = Arc::new(Control::starting(Box::new(move |now| {
        Console::new(verbosity, json_to_stdout).notice("Threads started!\n");
        Some(now)
    })));
    if let Err(error) = dyno_runner::signals::stop_on_interrupt(Arc::clone(&control)) {
        console.warning(format_args!("Ctrl-C will not print a report: {error}."));
    }
    let mut intervals = Intervals::new(settings);
    intervals.arrivals = DueArrivals::new(&spec);
    let (rows, length) = (Vec::new(), spec.interval);
    let mut reporter = Reporter { console, intervals, length, rows, hooks, job, has_failed: false };
    let start = monotonic_now();
    let driven = drive(&spec, &control, &mut reporter);
    let Reporter { mut intervals, rows, hooks, has_failed, .. } = reporter;
    intervals.uses_database = job.uses_database();
    let result = match driven {
        Ok(result) => result,
        Err(error) => {
            let too_late = job.is_too_late(start);
            return not_begun(error, too_late, job, console);
        }
    };
    if let (TrialEnd::Aborted(error), false) = (&result.ended, has_failed) {
        job.print(console, error, Place::ThreadRun);
    }
    let outage = outage(&result, &rows);
    let is_out = outage.is_some();
    let test = &job.test;
    let mut summary =
        summarize(identity(test, &spec), std::slice::from_ref(test), &spec, &result, false);
    let held_up =
        |script: &LuaScript| script.held_up(spec.workers, &summary.generator, summary.window_s);
    let notes: Vec<String> = outage.into_iter().chain(job.script.and_then(held_up)).collect();
    let written = json.map(|json| {
        summary.notes.extend(notes.iter().map(Message::from));
        json.write(job.command_line, summary, &result.total, &settings.percentiles, rows)
    });
    let exit = ended(&result, &intervals, job, (&notes, is_out), (&mut *console, hooks));
    if let Some(Err(message)) = written {
        console.fatal(message);
        return Exit::Failed;
    }
    exit
}

/// The lines before the first measurement, blank ones included.
fn header(settings: &Settings) -> String {
    let mut lines = vec![
        "Running the test with following options:".to_owned(),
        format!("Number of threads: {}", settings.threads),
    ];
    if settings.rate_per_s > 0 {
        lines.push(format!("Target transaction rate: {}/sec", settings.rate_per_s));
    }
    if settings.report_interval_s > 0 {
        let seconds = settings.report_interval_s;
        lines.push(format!("Report intermediate results every {seconds} second(s)"));
    }
    if !settings.report_checkpoints_s.is_empty() {
        let times: Vec<_> = settings.report_checkpoints_s.iter().map(u64::to_string).collect();
        lines.push(format!("Report checkpoint(s) at {} seconds", times.join(", ")));
    }
    if settings.warmup_s > 0 {
        lines.push(format!("Warming up for {} second(s) before measuring", settings.warmup_s));
    }
    if settings.debug {
        lines.extend(["Debug mode enabled.".to_owned(), String::new()]);
    }
    if settings.validate {
        lines.extend(["Validation checks: on.".to_owned(), String::new()]);
    }
    lines.push(match settings.rand_seed {
        0 => "Initializing random number generator from current time".to_owned(),
        seed => format!("Initializing random number generator from seed ({seed})."),
    });
    lines.push(String::new());
    match settings.grace_s().filter(|_| settings.time_s > 0) {
        Some(grace_s) => {
            let seconds = settings.time_s + grace_s;
            lines.extend([format!("Forcing shutdown in {seconds} seconds"), String::new()]);
        }
        None => lines.push(String::new()),
    }
    lines.extend(["Initializing worker threads...".to_owned(), String::new(), String::new()]);
    lines.join("\n")
}

/// Bounds the look before a run by the time in which workers have to be ready: a server that says nothing is given up.
struct LookBefore {
    due: Nanos,
}

impl LoadObserver for LookBefore {
    fn is_canceled(&self) -> bool {
        monotonic_now() >= self.due
    }
}

/// Looks whether the database fits the options, so that a mistake is one sentence.
fn look_before(
    database: &Database,
    options: &mut SysbenchOptions,
    job: &Job<'_>,
    console: &mut Console,
) -> Result<(), Exit> {
    let threads = job.settings.threads;
    let start = monotonic_now();
    // A second more for each ten tables, which are looked at one after another.
    let bounded = LookBefore { due: job.due(start) + u64::from(options.tables) / 10 * SECOND };
    let findings = LoadSessions::new(&database.admin(), &bounded, 1)
        .needing(options.trial_needs())
        .one(async |session| inspect_tables(session, options, threads).await);
    match findings {
        Ok((notes, holder)) => {
            notes.iter().for_each(|note| console.warning(note));
            if let Some(who) = holder {
                let warning = format!("warning: {}\n", shared_warning(&who));
                console.talk(Level::Warning, warning);
            }
            return Ok(());
        }
        Err(error)
            if error.kind == LoadErrorKind::Canceled
                || error.kind == LoadErrorKind::Session && job.is_too_late(start) =>
        {
            job.say_too_late(console);
            return Err(Exit::Aborted);
        }
        Err(LoadError { error: Some(error), .. }) => {
            job.print(console, &error, Place::ThreadInit);
        }
        Err(error) => print_load_error(console, &error, job.settings),
    }
    Err(Exit::Failed)
}

/// Warnings, and the run that has locked the tables.
async fn inspect_tables(
    session: &mut AdminSession<'_>,
    options: &mut SysbenchOptions,
    threads: u32,
) -> Result<(Vec<String>, Option<String>), LoadError> {
    const LOOKING: &str = "looking at the tables of the test";
    let holder = lock_holder(session, OFFER.name).await.map_err(while_doing(LOOKING))?;
    doing(LOOKING);
    check_prepared(session, options, threads).await?;
    let notes = preflight(session, options, threads, MissingRows::Noted).await?;
    if options.test.is_insert() && !options.auto_inc {
        let free = first_free_unique(session, options).await;
        options.unique_start = free.map_err(while_doing(LOOKING))?;
    }
    Ok((notes, holder))
}

impl Job<'_> {
    /// Returns the seed: that of `--rand-seed`, or one from the time.
    fn seed(&self) -> u64 {
        match self.settings.rand_seed {
            0 => crate::time_as_seed(),
            seed => seed,
        }
    }

    /// Returns false if no statement can have been counted.
    fn uses_database(&self) -> bool {
        self.script.is_none_or(LuaScript::uses_database)
    }

    /// When workers that were begun at this moment have to be ready.
    fn due(&self, begun: Nanos) -> Nanos {
        begun + self.settings.thread_init_timeout_s * SECOND
    }

    fn is_too_late(&self, begun: Nanos) -> bool {
        monotonic_now() >= self.due(begun)
    }

    fn say_too_late(&self, console: &mut Console) {
        console.fatal(format_args!(
            "Worker threads could not be connected to {} and prepared within {} seconds \
             (--thread-init-timeout)",
            target(self.settings, |_| None).hosts,
            self.settings.thread_init_timeout_s
        ));
    }

    /// Prints an error as the driver of sysbench does.
    fn print(&self, console: &mut Console, error: &DbError, place: Place) {
        fatal::print(console, error, place, self.settings.db_driver);
    }
}

fn trial_spec(settings: &Settings, seed: u64) -> TrialSpec {
    TrialSpec {
        loops: (settings.loops > 0).then_some(settings.loops),
        warmup: settings.warmup_s * SECOND,
        duration: (settings.time_s > 0).then_some(settings.time_s * SECOND),
        events: (settings.events > 0).then_some(settings.events),
        finish_begun: true,
        rate_per_s: (settings.rate_per_s > 0).then_some(settings.rate_per_s as f64),
        interval: Intervals::length(settings),
        watch_workers: !settings.report_checkpoints_s.is_empty(),
        seed,
        errors: error_policy(settings),
        drain: settings.grace_s().map_or(Nanos::MAX, |seconds| seconds.saturating_mul(SECOND)),
        connect_limit: settings.thread_init_timeout_s * SECOND,
        ..TrialSpec::closed(settings.threads)
    }
}

/// Prints what sysbench prints while a test runs.
struct Reporter<'a, 's, 'h> {
    console: &'a mut Console,
    intervals: Intervals<'s>,
    length: Nanos,
    rows: Vec<SeriesRow>,
    hooks: Option<&'h mut (dyn ReportHooks + 'h)>,
    job: &'a Job<'s>,
    /// The error of a worker is printed.
    has_failed: bool,
}

impl Observer for Reporter<'_, '_, '_> {
    fn workers(&mut self, workers: &[WorkerStats]) {
        self.intervals.workers = workers.to_vec();
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        let is_complete = interval.length_s > self.length as f64 / 1e9 - 1e-6;
        self.intervals.uses_database = self.job.uses_database();
        let text = self.intervals.add_interval(interval, is_complete, self.hooks.as_deref_mut());
        self.console.text(Level::Notice, text);
        if let Some(hooks) = &mut self.hooks {
            hooks.print_failures(self.console);
        }
        self.rows.push(SeriesRow::from(interval));
    }

    fn failed(&mut self, error: &DbError) {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.job.print(self.console, error, Place::ThreadRun);
        }
    }
}

/// No worker began: says why.
fn not_begun(error: DriveError, too_late: bool, job: &Job<'_>, console: &mut Console) -> Exit {
    match error {
        DriveError::Connect(_) if too_late => {
            job.say_too_late(console);
            Exit::Aborted
        }
        DriveError::Connect(error) => {
            job.print(console, &error, Place::ThreadInit);
            Exit::Failed
        }
        DriveError::Interrupted => Exit::Interrupted,
        DriveError::System(error) => {
            console.fatal(format_args!("The system refused what a run needs: {error}"));
            Exit::Failed
        }
    }
}

/// Prints the report of a trial and decides the exit code. `is_out`: lost connections could not be opened again.
fn ended(
    result: &TrialResult,
    intervals: &Intervals<'_>,
    job: &Job<'_>,
    (said, is_out): (&[String], bool),
    (console, mut hooks): (&mut Console, Option<&mut dyn ReportHooks>),
) -> Exit {
    let settings = job.settings;
    console.measured = Some(SweepLevel::from_result(settings.threads, result));
    let notes = notes_block(result, settings.errors, said);
    match &result.ended {
        // As in sysbench there is no report on stdout when a worker failed: scripts would take it for a result.
        TrialEnd::Aborted(_) => {
            if result.total.counts().committed > 0 {
                let measured =
                    bars(result, intervals, settings) + &report(result, intervals, settings, false);
                console.complain(format_args!("INCOMPLETE: measured until the error:\n{measured}"));
                console.talk(Level::Notice, notes);
            }
            return Exit::Failed;
        }
        TrialEnd::Time => console.info("Time limit exceeded, exiting..."),
        TrialEnd::Events => console.info("Event limit exceeded, exiting..."),
        _ => {}
    }
    let forced = result.unfinished > 0 && result.ended != TrialEnd::Interrupted;
    if forced {
        console.fatal("The --max-time limit has expired, forcing shutdown...");
    } else {
        console.info("Done.\n");
    }
    console.text(Level::Notice, bars(result, intervals, settings));
    if !hooks.as_mut().is_some_and(|hooks| hooks.last(&last_stat(result, intervals, settings))) {
        console.text(Level::Notice, report(result, intervals, settings, forced));
    }
    if let Some(hooks) = hooks {
        hooks.print_failures(console);
    }
    if settings.debug {
        per_thread(result, console);
    }
    console.talk(Level::Notice, notes);
    if result.ended == TrialEnd::Interrupted {
        return Exit::Interrupted;
    }
    if let Some(why) = result.ended.failure() {
        console.complain(format_args!("FATAL: {why}"));
        return Exit::Failed;
    }
    if forced {
        return Exit::Aborted;
    }
    if is_out && result.total.counts().committed == 0 {
        console.fatal("Nothing was executed: the lost connections could not be opened again");
        return Exit::Failed;
    }
    // A script may count events that execute no transaction, and handle its errors.
    let errors = result.total.errors.0.last().filter(|_| job.script.is_none());
    if let (0, Some(last)) = (result.total.counts().committed, errors) {
        console.fatal(format_args!(
            "No transaction was executed: all attempts met errors that are ignored, such as: {}",
            last.message
        ));
        return Exit::Failed;
    }
    if let Some(share) = result.missed_rate() {
        console.fatal(format_args!(
            "Only {:.1}% of the {} transactions that --rate={} asked for were done in time: the \
             rate was missed",
            share * 100.0,
            result.offered.unwrap_or(0),
            settings.rate_per_s
        ));
        console.hint("lower --rate, or raise --threads if the server has capacity left");
        return Exit::Failed;
    }
    Exit::Done
}

/// The figures of the last report.
fn last_stat(result: &TrialResult, intervals: &Intervals<'_>, settings: &Settings) -> ReportStat {
    let total_s = result.length() as f64 / 1e9;
    let (frame, covered_s) = intervals.since_checkpoint().unwrap_or((&result.total, total_s));
    with_latency(report_stat(frame, covered_s, total_s, 0, settings.percentile), frame)
}

/// The histogram, if it is requested. As in the original a script's own report does not replace it.
fn bars(result: &TrialResult, intervals: &Intervals<'_>, settings: &Settings) -> String {
    if !settings.histogram {
        return String::new();
    }
    let frame = intervals.since_checkpoint().map_or(&result.total, |(frame, _)| frame);
    histogram(&frame.latency())
}

/// Returns the report of a trial, from its last checkpoint on; `forced` if it was cut off.
fn report(
    result: &TrialResult,
    intervals: &Intervals<'_>,
    settings: &Settings,
    forced: bool,
) -> String {
    let (frame, fairness) = match intervals.since_checkpoint() {
        Some((frame, _)) => (frame, intervals.fairness(&result.workers)),
        None => (&result.total, fairness(&result.workers)),
    };
    let mut stat = last_stat(result, intervals, settings);
    if let TrialEnd::Aborted(error) = &result.ended {
        stat.errors -= fatal_errors(frame, error);
    }
    let figures = Figures::new(stat, frame, settings, fairness);
    let unfinished = forced.then_some(result.unfinished);
    Figures { unfinished, uses_database: intervals.uses_database, ..figures }.to_string()
}

fn per_thread(result: &TrialResult, console: &mut Console) {
    console.debug("Verbose per-thread statistics:\n");
    for (number, worker) in result.workers.iter().enumerate() {
        let mean_s = worker.busy as f64 / 1e9 / worker.transactions.max(1) as f64;
        console.debug(format_args!(
            "    thread #{number:>3}: avg: {mean_s:.4}s  events: {}",
            worker.transactions
        ));
        let busy_s = worker.busy as f64 / 1e9;
        console.debug(format_args!(
            "                 total time taken by event execution: {busy_s:.4}s"
        ));
    }
    console.text(Level::Debug, "\n");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadCommand {
    Prepare,
    Prewarm,
    Cleanup,
}

/// Prints the original's lines, and the progress of what takes long.
struct Lines<'a> {
    console: Mutex<&'a mut Console>,
    progress: LoadProgress,
}

impl Lines<'_> {
    fn print_line(&self, line: impl Display) {
        self.progress.suspend(|| {
            self.console.lock().unwrap_or_else(PoisonError::into_inner).notice(line);
        });
    }
}

impl LoadObserver for Lines<'_> {
    fn table_mark(&self) -> Option<&str> {
        self.progress.table_mark()
    }

    fn rows_planned(&self, rows: u64) {
        self.progress.rows_planned(rows);
    }

    fn creating_table(&self, table: &str) {
        self.print_line(format_args!("Creating table '{table}'..."));
    }

    fn inserting(&self, rows: u64, table: &str) {
        self.print_line(format_args!("Inserting {rows} records into '{table}'"));
    }

    fn rows_done(&self, rows: u64) {
        self.progress.rows_done(rows);
    }

    fn creating_index(&self, table: &str) {
        self.print_line(format_args!("Creating a secondary index on '{table}'..."));
        self.progress.creating_index(table);
    }

    fn prewarming_table(&self, table: &str) {
        self.print_line(format_args!("Prewarming table {table}"));
    }

    fn dropping_table(&self, table: &str) {
        self.print_line(format_args!("Dropping table '{table}'..."));
    }

    fn note(&self, text: &str) {
        self.progress.note(text);
    }
}

/// Executes `prepare`, `cleanup` or `prewarm`.
pub(super) fn load(
    database: &Database,
    command: LoadCommand,
    settings: &Settings,
    options: &SysbenchOptions,
    console: &mut Console,
) -> Exit {
    if command == LoadCommand::Prewarm && settings.db_driver == DbDriver::Pgsql {
        let function = Place::Command.function();
        let reason = "prewarm is currently MySQL only";
        console.fatal(format_args!("`{function}' function failed: {reason}"));
        return Exit::Failed;
    }
    let lock = (command != LoadCommand::Prewarm)
        .then(|| lock_tables(database, OFFER.name, &Unobserved))
        .transpose();
    if let Err(error) = &lock {
        print_load_error(console, error, settings);
        return Exit::Failed;
    }
    // The original makes the tables of bulk_insert one after the other.
    let is_parallel = command != LoadCommand::Cleanup && !options.test.is_bulk_insert();
    if settings.threads > 1 && is_parallel {
        console.notice("Initializing worker threads...\n");
    }
    let lines =
        Lines { console: Mutex::new(console), progress: LoadProgress::new(options.test.name()) };
    let threads = settings.threads;
    let admin = database.admin();
    let report = match command {
        LoadCommand::Prepare => {
            prepare(&admin, options, threads, settings.rand_seed, &lines).map(Some)
        }
        LoadCommand::Prewarm => prewarm(&admin, options, threads, &lines).map(|()| None),
        LoadCommand::Cleanup => cleanup(&admin, options, threads, &lines).map(|()| None),
    };
    let Lines { console, progress } = lines;
    let console = console.into_inner().unwrap_or_else(PoisonError::into_inner);
    match report {
        Ok(Some(report)) if console.prints(Level::Notice) => {
            progress.finish(&load_summary(&report.rows));
            Exit::Done
        }
        Ok(_) => {
            progress.clear();
            Exit::Done
        }
        Err(error) => {
            progress.clear();
            print_load_error(console, &error, settings);
            Exit::Failed
        }
    }
}

fn load_summary(report: &LoadReport) -> String {
    let method = report.method.map_or(String::new(), |method| format!(" by {}", method.name()));
    let existing = match report.rows_found {
        0 => String::new(),
        rows => format!(", {rows} were there before"),
    };
    format!("{} rows loaded{method}{existing}", report.rows_loaded)
}

/// An error of what is done as a load is.
pub(super) fn print_load_error(console: &mut Console, error: &LoadError, settings: &Settings) {
    match &error.error {
        Some(db_error) => {
            let LoadError { problem: doing, sql, remedy, .. } = error;
            let error = match sql {
                Some(sql) => db_error.clone().with_statement(sql.as_str()),
                None => db_error.clone(),
            };
            if !error.is_connect() && sql.is_none() {
                console.fatal(format_args!("{doing} failed"));
            }
            fatal::print(console, &error, Place::Command, settings.db_driver);
            if let (None, Some(hint)) = (error.hint(), remedy) {
                console.hint(hint);
            }
        }
        None => {
            console.fatal(error);
            if let Some(hint) = error.hint() {
                console.hint(hint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysbench::command_line::read;

    fn settings(words: &[&str]) -> Settings {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read(&words).expect("a good command line").settings
    }

    /// Printed by sysbench 1.0.20 with the options below.
    const ORIGINAL: &str = include_str!("../../golden/sysbench/header.txt");

    #[test]
    fn the_header_is_the_originals() {
        let settings = settings(&[
            "--threads=2",
            "--rate=100",
            "--report-interval=1",
            "--report-checkpoints=1,2",
            "--debug",
            "--forced-shutdown=3",
            "--time=1",
        ]);
        assert_eq!(header(&settings), ORIGINAL);
    }

    #[test]
    fn limits_of_zero_are_none() {
        let spec = trial_spec(&settings(&["--time=0", "--events=5"]), 1);
        assert_eq!((spec.duration, spec.events, spec.drain), (None, Some(5), Nanos::MAX));
        let spec = super::trial_spec(&settings(&["--time=10", "--forced-shutdown=20%"]), 1);
        assert_eq!((spec.duration, spec.drain), (Some(10 * SECOND), 2 * SECOND));
        assert_eq!((spec.events, spec.rate_per_s, spec.loops), (None, None, None));
    }
}
