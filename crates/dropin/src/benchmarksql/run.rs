//! `dyno benchmarksql run`, and its output: the console's lines as log4j writes them in BenchmarkSQL, and dyno's
//! additions.

use super::properties::{Properties, redacted};
use super::results::{ResultFormat, Results, next_run};
use super::settings::{Place, Reader, Run};
use super::{BenchmarksqlRun, warn};
use dyno_core::{AdminDriver, Dialect, ErrorClass, MILLISECOND, Nanos, SECOND, in_one_line};
use dyno_engine::record::{Frame, MeasuredInterval, Phase, Window};
use dyno_engine::{Control, ErrorPolicy, Observer, TrialEnd, TrialResult, TrialSpec};
use dyno_facts::format::short;
use dyno_facts::{
    CheckVerdict, DataCheck, FamilyFacts, Lang, SeriesRow, TrialIdentity, TrialStatus,
    TrialSummary, text_table,
};
use dyno_reactor::monotonic_now;
use dyno_runner::databases::{Database, ReachedDatabase, reach_target};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{ask, check_settings};
use dyno_runner::front_end::JsonFile;
use dyno_runner::{identity, kinds, lock_holder, output, shared_warning, signals, summarize};
use dyno_tpcc::facts::TpccFacts;
use dyno_tpcc::family::{
    Before, facts, is_missing, look_after, look_before, not_made, preflight, trial_needs,
};
use dyno_tpcc::ledger::LedgerFile;
use dyno_tpcc::load::{TpccDatabase, loaded};
use dyno_tpcc::options::{CheckTime, OFFER};
use dyno_tpcc::profile::TpccTransaction;
use dyno_tpcc::{DRIVE_ON, Isolation, Tpcc, TpccOptions};
use std::path::Path;
use std::sync::Arc;
use time::{Duration, OffsetDateTime, UtcOffset};

/// Time limit for connecting and preparing all terminals.
const CONNECT_LIMIT: Nanos = 600 * SECOND;
const MINUTE: Nanos = 60 * SECOND;

/// Runs and prints. Returns the exit code.
pub(super) fn run(arguments: &BenchmarksqlRun, clock: &WallClock) -> Result<u8, Failure> {
    let properties = arguments.source.read()?;
    let mut reader = Reader::new(&properties);
    let place = reader.place()?;
    let settings = reader.run(&place, arguments.profile)?;
    let json = arguments.json.as_deref();
    let json = json.map(|path| JsonFile::create("dyno benchmarksql run", path)).transpose();
    let json = json.map_err(Failure::new)?;
    let is_json_output = arguments.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let mut console = Console::new(clock, is_json_output);
    echo(&console, &properties);
    warn(&reader.warnings);
    let seed = arguments.seed.unwrap_or_else(crate::time_as_seed);
    output::talk(&format!("seed: {seed}"));
    let ReachedDatabase { database, facts, .. } = &reach_target(place.target.clone(), None)?;
    output::talk(&format!("server: {} {}", facts.product, facts.version));
    let job = Job { arguments, properties: &properties, place: &place, settings: &settings, seed };
    job.run(database, &mut console, json)
}

/// Prints the first lines of the original: every key but the password.
fn echo(console: &Console<'_>, properties: &Properties) {
    let rule = "+-------------------------------------------------------------+";
    let name = concat!("     BenchmarkSQL 5.0 by dyno ", env!("CARGO_PKG_VERSION"));
    for line in ["", rule, name, rule, ""] {
        console.line(line);
    }
    for entry in properties.entries.iter().filter(|entry| !entry.key.starts_with("//")) {
        if !entry.key.to_ascii_lowercase().contains("pass") {
            console.line(&format!("{}={}", entry.key, redacted(&entry.key, &entry.value)));
        }
    }
    console.line("");
}

struct Job<'a> {
    arguments: &'a BenchmarksqlRun,
    properties: &'a Properties,
    place: &'a Place,
    settings: &'a Run,
    seed: u64,
}

impl Job<'_> {
    fn run(
        &self,
        database: &Database,
        console: &mut Console<'_>,
        json: Option<JsonFile>,
    ) -> Result<u8, Failure> {
        let driver = &database.admin();
        let spec = self.spec();
        let (loaded, isolation) = self.loaded(driver, &spec)?;
        let before = look_before(driver, self.checks(), self.place.warehouses)?;
        let control = Arc::new(Control::new());
        let results = self.results(console, (&loaded, &spec), &control)?;
        let options = self.options(&loaded, isolation);
        let workload =
            self.workload(options, driver.dialect(), &loaded, &before, results.as_ref())?;
        console.line(&format!("C value for C_LAST during load: {}", loaded.c_last));
        let c_last = workload.constants.c_last;
        console.line(&format!("C value for C_LAST this run:    {c_last}"));
        console.line("");
        if let Err(error) = signals::stop_on_interrupt(Arc::clone(&control)) {
            output::talk(&format!("warning: Ctrl-C will end it without results: {error}"));
        }
        let keeps = json.is_some();
        let mut follower = Follower {
            console,
            keeps,
            rows: Vec::new(),
            results: results.as_ref(),
            failure: None,
            completed: 0,
        };
        let driven = DRIVE_ON(database, &workload, &spec, &control, &mut follower);
        let Follower { rows, failure, .. } = follower;
        let result = driven?;
        console.end();
        print_closing(console, &result);
        let written = results.map_or(Ok(()), Results::finish);
        let written = written.and(failure.map_or(Ok(()), Err));
        // What stops for a full disk has not been interrupted by anybody.
        let is_checked = result.ended != TrialEnd::Interrupted || written.is_err();
        let json = json.map(|json| (json, rows));
        let code =
            self.judge(driver, (&workload, &loaded, &spec, &result), (&before, is_checked), json)?;
        written?;
        match workload.ledger_file().map(LedgerFile::close) {
            // The run was aborted for it, and has said so.
            Some(Err(error)) if code == 0 => Err(error),
            _ => Ok(code),
        }
    }

    /// When the consistency conditions are checked.
    fn checks(&self) -> CheckTime {
        let warehouses = self.place.warehouses;
        let unasked = CheckTime::unasked(warehouses);
        if self.arguments.checks.is_none() && unasked == CheckTime::Never {
            output::talk(&format!(
                "The consistency conditions won't be checked: --checks after does that, in about {} min for {warehouses} \
                 warehouses.",
                CheckTime::minutes(warehouses)
            ));
        }
        self.arguments.checks.unwrap_or(unasked)
    }

    /// Prints what dyno has to say, checks the data unless the run was interrupted, and writes the
    /// JSON. Returns the exit code.
    fn judge(
        &self,
        driver: &AdminDriver<'_>,
        (workload, loaded, spec, result): (&Tpcc, &TpccDatabase, &TrialSpec, &TrialResult),
        (before, is_checked): (&Before, bool),
        json: Option<(JsonFile, Vec<SeriesRow>)>,
    ) -> Result<u8, Failure> {
        let target = self.place.target.to_string();
        let identity = TrialIdentity { target, ..identity(self.settings.profile.name, spec) };
        // A limit that is not reached is not a rate that was missed.
        let unlimited = TrialSpec { rate_per_s: None, ..spec.clone() };
        let mut summary = summarize(identity, &kinds(workload), &unlimited, result, false);
        let mut facts = facts(workload, loaded, spec, &summary.kinds, summary.window_s);
        output::talk_lines(&run_details(&summary, &facts));
        warn(result.scan_note().as_slice());
        let queued = workload.deliveries_left();
        if queued > 0 {
            output::talk(&format!(
                "{queued} Deliveries were queued and not executed when the run ended"
            ));
        }
        let findings = if is_checked {
            look_after(driver, workload, before)
        } else {
            not_made(before, &"The run was interrupted.".into())
        };
        facts.conditions = findings.conditions;
        (summary.checks, summary.own) = (findings.checks, Some(FamilyFacts::new(&facts)));
        let verdict = RunVerdict::new(result, &summary.checks);
        output::talk_lines(&check_lines(&summary, &verdict));
        if let TrialEnd::Aborted(error) = &result.ended
            && let Some(hint) = error.hint()
        {
            output::talk(&format!("hint: {hint}"));
        }
        if let Some((json, rows)) = json {
            self.write_json(json, summary, &verdict, result, rows)?;
        }
        Ok(verdict.code)
    }

    /// Returns the workload's options for the database as it is loaded.
    fn options(&self, loaded: &TpccDatabase, isolation: Option<Isolation>) -> TpccOptions {
        let pauses = self.settings.pauses;
        TpccOptions {
            warehouses: self.place.warehouses,
            isolation,
            keying_multiplier: pauses.map_or(1.0, |pauses| pauses.keying),
            think_multiplier: pauses.map_or(1.0, |pauses| pauses.think),
            ..TpccOptions::new(self.settings.profile, loaded, self.seed)
        }
    }

    /// Returns the workload, which writes a ledger and results if they are requested.
    fn workload(
        &self,
        options: TpccOptions,
        dialect: Dialect,
        loaded: &TpccDatabase,
        before: &Before,
        results: Option<&Results>,
    ) -> Result<Tpcc, Failure> {
        let mut workload = Tpcc::new(options, loaded, dialect).map_err(Failure::usage)?;
        if let Some(path) = &self.arguments.ledger {
            let target = self.place.target.to_string();
            let ledger = LedgerFile::open(path, &target, loaded, self.seed, &before.books)?;
            workload = workload.with_ledger(ledger);
        }
        Ok(match results {
            Some(results) => workload.with_log(results.log()),
            None => workload,
        })
    }

    /// Makes the result directory, where the file names one.
    fn results(
        &self,
        console: &Console<'_>,
        (loaded, spec): (&TpccDatabase, &TrialSpec),
        control: &Arc<Control>,
    ) -> Result<Option<Results>, Failure> {
        let Some(template) = &self.settings.result_directory else { return Ok(None) };
        let run = next_run(Path::new("."))?;
        let format = ResultFormat { run, delivery: self.settings.profile.delivery };
        let run_info = self.run_info(run, loaded, spec);
        let properties = self.properties.text();
        let results =
            Results::create(template, properties, format, run_info, *console.clock, control)?;
        let path = results.path().display();
        console.line(&format!("copied {} to {path}/run.properties", self.properties.file));
        console.line(&format!("created {path}/data/runInfo.csv for runID {run}"));
        console.line(&format!("writing per transaction results to {path}/data/result.csv"));
        console.line("");
        Ok(Some(results))
    }

    /// The columns of `runInfo.csv` before and behind the start of the session.
    fn run_info(&self, run: u32, loaded: &TpccDatabase, spec: &TrialSpec) -> [String; 2] {
        let Run { mins, limit_per_min, pauses, .. } = *self.settings;
        let (think, keying) = pauses.map_or((0.0, 0.0), |pauses| (pauses.think, pauses.keying));
        let after = format!(
            "{mins},{},{},{},{},{think:?},{keying:?}",
            loaded.warehouses,
            self.place.warehouses,
            spec.workers,
            limit_per_min.unwrap_or(0)
        );
        [format!("{run},dyno,{},{},", env!("CARGO_PKG_VERSION"), self.place.db), after]
    }

    /// The load that the database states, if a run can use it.
    /// With the isolation that sessions ask for.
    fn loaded(
        &self,
        driver: &AdminDriver<'_>,
        spec: &TrialSpec,
    ) -> Result<(TpccDatabase, Option<Isolation>), Failure> {
        let isolation = self.arguments.isolation;
        check_settings(driver, trial_needs(isolation))?;
        let (loaded, found) = ask(driver, async |session| {
            if let Some(who) = lock_holder(session, OFFER.name).await? {
                warn(&[shared_warning(&who)]);
            }
            let loaded = loaded(session).await?;
            let (asked, has) = (self.place.warehouses, loaded.warehouses);
            if has < asked {
                return Err(Failure::usage(format!(
                    "numWarehouses cannot be greater than the warehouses loaded in the database: \
                     {asked} were requested, {has} are loaded."
                ))
                .with_hint("lower warehouses, or destroy the database and build it again"));
            }
            Ok((loaded, preflight(session, spec.workers, isolation, false).await?))
        })?;
        warn(&found.warnings);
        Ok((loaded, found.isolation))
    }

    /// Returns the trial that the properties ask for.
    fn spec(&self) -> TrialSpec {
        let Run {
            terminals,
            mins,
            txns_per_terminal,
            limit_per_min,
            report_interval_s,
            pauses,
            ..
        } = *self.settings;
        let duration = (mins > 0).then_some(u64::from(mins) * MINUTE);
        let events_each = (txns_per_terminal > 0).then_some(u64::from(txns_per_terminal));
        let common = TrialSpec {
            duration,
            interval: u64::from(report_interval_s) * SECOND,
            seed: self.seed,
            errors: ErrorPolicy::enduring(),
            connect_limit: CONNECT_LIMIT,
            ..TrialSpec::closed(terminals)
        };
        match pauses {
            None => TrialSpec {
                events_per_worker: events_each,
                finish_begun: true,
                rate_per_s: limit_per_min.map(|limit| f64::from(limit) / 60.0),
                even_rate: true,
                ..common
            },
            Some(pauses) => TrialSpec {
                workers: self.sessions(pauses.sut_threads),
                terminals: Some(terminals),
                // Sessions are not terminals: what all of them do is counted together.
                events: events_each.map(|events| events * u64::from(terminals)),
                warmup: u64::from(pauses.rampup_mins) * MINUTE,
                ..common
            },
        }
    }

    /// Sessions under terminals with pauses.
    fn sessions(&self, asked: Option<u32>) -> u32 {
        let loaded = TpccDatabase { warehouses: self.place.warehouses, c_last: 0 };
        let options = TpccOptions::new(self.settings.profile, &loaded, self.seed);
        asked.map_or(options.staff(None).workers, |asked| asked.min(self.settings.terminals))
    }

    fn write_json(
        &self,
        json: JsonFile,
        mut summary: TrialSummary,
        verdict: &RunVerdict,
        result: &TrialResult,
        rows: Vec<SeriesRow>,
    ) -> Result<(), Failure> {
        if let (TrialStatus::Complete, false) = (&summary.status, verdict.problems.is_empty()) {
            summary.status = TrialStatus::Failed(verdict.problems.join(" ").into());
        }
        let file = self.properties.file.clone();
        let words = ["dyno", "benchmarksql", "run"].map(str::to_owned);
        let replaced = self.arguments.source.overrides.chunks_exact(2).flat_map(|pair| {
            let hidden = redacted(&pair[0].to_ascii_lowercase(), &pair[1]);
            [pair[0].clone(), hidden]
        });
        let command_line: Vec<String> = words.into_iter().chain([file]).chain(replaced).collect();
        let percentiles = [50.0, 90.0, 95.0, 99.0];
        json.write(&command_line, summary, &result.total, &percentiles, rows).map_err(Failure::new)
    }
}

/// Shows the running average, and keeps the intervals if they are requested.
struct Follower<'a, 'b> {
    console: &'a mut Console<'b>,
    keeps: bool,
    rows: Vec<SeriesRow>,
    results: Option<&'a Results>,
    /// An error of the result directory.
    failure: Option<Failure>,
    completed: u64,
}

impl Observer for Follower<'_, '_> {
    fn released(&mut self, window: &Window) {
        self.failure = self.results.and_then(|results| results.opened(window.opens).err());
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        if self.keeps {
            self.rows.push(SeriesRow::from(interval));
        }
        let completed = count_completed(&interval.frame);
        if interval.phase == Phase::Measured {
            self.completed += completed;
        }
        let elapsed_s = interval.begins_s + interval.length_s;
        if !self.console.is_watched() || elapsed_s <= 0.0 || interval.length_s <= 0.0 {
            return;
        }
        let average = self.completed as f64 * 60.0 / elapsed_s;
        let current = (completed as f64 * 60.0 / interval.length_s).round() as u64;
        self.console.running(&running_average(average, current, memory_mb()));
    }
}

/// Reasons not to use a run, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunVerdict {
    /// Sentences.
    pub(super) problems: Vec<String>,
    pub(super) code: u8,
}

/// Returns true if transactions failed for anything but a lost connection: a server that was restarted, or
/// another one that has taken over. Terminals connect again, and such a run has passed.
fn has_failures(result: &TrialResult) -> bool {
    // Conflicts are only failures when all retries are used up; each lost connection failed once.
    count_errors(result, &[ErrorClass::Other, ErrorClass::Constraint]) > 0
        || result.total.counts().failed > count_errors(result, &[ErrorClass::ConnectionLost])
}

/// Returns the number of errors of these classes.
fn count_errors(result: &TrialResult, classes: &[ErrorClass]) -> u64 {
    let errors = result.total.errors.0.iter();
    errors.filter(|error| classes.contains(&error.class)).map(|error| error.count).sum()
}

impl RunVerdict {
    fn new(result: &TrialResult, checks: &[DataCheck]) -> Self {
        let mut problems = Vec::new();
        let counts = result.total.counts();
        match &result.ended {
            TrialEnd::Aborted(error) => {
                problems.push(format!("The run was aborted: {}", sentence(&error.to_string())));
            }
            ended if ended.failure().is_some() => problems.extend(ended.failure()),
            _ if counts.failed > 0 && has_failures(result) => {
                problems.push(format!("{} transactions failed with an error.", counts.failed));
            }
            _ if counts.committed == 0 => problems.push("No transaction was committed.".to_owned()),
            _ => {}
        }
        let is_interrupted = result.ended == TrialEnd::Interrupted;
        // Nothing is compared after Ctrl-C.
        let unknown = checks.iter().filter(|check| is_missing(check) && !is_interrupted);
        problems.extend(unknown.map(|check| {
            format!("The check {} could not be made: {}", check.name, check.evidence)
        }));
        let is_denied = checks.iter().any(|check| check.verdict == CheckVerdict::Failed);
        let code = match (is_denied, is_interrupted) {
            (true, _) => 4,
            (false, true) => signals::exit_code(),
            (false, false) => u8::from(!problems.is_empty()),
        };
        let denied = checks.iter().filter(|check| check.verdict == CheckVerdict::Failed);
        problems.extend(denied.map(|check| format!("The check {} failed.", check.name)));
        RunVerdict { problems, code }
    }
}

/// Tells local time of any moment of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    /// When the clock of the loops was 0, in local time.
    zero: OffsetDateTime,
}

impl WallClock {
    /// Reads both clocks. To be called before there are other threads: with them the zone can't be
    /// read, and times are UTC.
    pub(super) fn read() -> Self {
        let offset = UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC);
        let now = OffsetDateTime::now_utc().to_offset(offset);
        WallClock { zero: now - Duration::nanoseconds(monotonic_now() as i64) }
    }

    /// Local time at a moment of the loops' clock.
    pub(super) fn at(&self, moment: Nanos) -> OffsetDateTime {
        self.zero + Duration::nanoseconds(moment as i64)
    }

    /// Returns the wall-clock time of this moment.
    pub(super) fn now(&self) -> OffsetDateTime {
        self.at(monotonic_now())
    }
}

pub(super) struct Console<'a> {
    clock: &'a WallClock,
    /// Lines are talk where standard output is for something else.
    to_stderr: bool,
    thread: &'static str,
    /// Bytes of the running average that are on the terminal.
    shown: usize,
}

impl<'a> Console<'a> {
    pub(super) fn new(clock: &'a WallClock, to_stderr: bool) -> Self {
        Console { clock, to_stderr, thread: "main", shown: 0 }
    }

    /// From now on, lines are those of the thread that ends a run.
    pub(super) fn end(&mut self) {
        self.thread = "Thread-1";
        if self.shown > 0 {
            self.put("\n");
            self.shown = 0;
        }
    }

    /// Prints a line with the original's time and thread before the text.
    pub(super) fn line(&self, text: &str) {
        let at = line_time(self.clock.now());
        self.put(&format!("{at} [{}] INFO   jTPCC : Term-00, {text}\n", self.thread));
    }

    /// Prints to stdout, or to stderr if the JSON has stdout.
    fn put(&self, text: &str) {
        if self.to_stderr {
            output::talk_lines(text.trim_end_matches('\n'));
        } else {
            output::data(text);
        }
    }

    /// Returns true if stdout is a terminal: a file gets no running average.
    pub(super) fn is_watched(&self) -> bool {
        !self.to_stderr && output::is_watched()
    }

    /// Shows the running average in place of the one before.
    pub(super) fn running(&mut self, text: &str) {
        output::redraw(std::mem::replace(&mut self.shown, text.len()), text);
    }
}

/// The line that the original shows once a second: transactions per minute since the begin and within the last
/// interval, and the memory of this process, now and at most.
pub(super) fn running_average(average: f64, current: u64, (used, most): (u64, u64)) -> String {
    format!(
        "Term-00, Running Average tpmTOTAL: {average:.2}    Current tpmTOTAL: {current}    Memory Usage: \
         {used}MB / {most}MB          "
    )
}

/// Memory of this process, now and at most, MB; 0 if the system doesn't say.
pub(super) fn memory_mb() -> (u64, u64) {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let numbers = ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) / 1_024
    });
    numbers.into()
}

/// The time of a line: `19:34:45,042`.
fn line_time(at: OffsetDateTime) -> String {
    let (hour, minute, second, ms) = at.to_hms_milli();
    format!("{hour:02}:{minute:02}:{second:02},{ms:03}")
}

/// Begin or end of a session: `2026-11-21 19:34:45`.
pub(super) fn session_time(at: OffsetDateTime) -> String {
    let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}", u8::from(month))
}

/// A rate per minute of the closing lines: cut to two decimals, not rounded.
pub(super) fn per_minute(count: u64, elapsed_ms: u64) -> String {
    let hundredths = u128::from(count) * 6_000_000 / u128::from(elapsed_ms.max(1));
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Transactions that were committed, and New-Orders rolled back for an unused item, which the original counts alike.
/// The terminal's part of a Delivery is its count: kinds beyond the five are parts of these.
fn count_completed(frame: &Frame) -> u64 {
    frame.kinds.iter().take(TpccTransaction::ALL.len()).map(|kind| kind.counts.completed()).sum()
}

/// The closing lines, byte for byte.
pub(super) fn print_closing(console: &Console<'_>, result: &TrialResult) {
    let kinds = &result.total.kinds;
    let orders =
        kinds.get(TpccTransaction::NewOrder.index()).map_or(0, |kind| kind.counts.completed());
    let total = count_completed(&result.total);
    let elapsed_ms = result.length() / MILLISECOND;
    let begin = session_time(console.clock.at(result.window.opens));
    let end = session_time(console.clock.at(result.window.closes));
    console.line("");
    console.line("");
    console.line(&format!("Measured tpmC (NewOrders) = {}", per_minute(orders, elapsed_ms)));
    console.line(&format!("Measured tpmTOTAL = {}", per_minute(total, elapsed_ms)));
    console.line(&format!("Session Start     = {begin}"));
    console.line(&format!("Session End       = {end}"));
    console.line(&format!("Transaction Count = {total}"));
}

/// The conditions of the run, and the results of each kind of transaction.
pub(super) fn run_details(summary: &TrialSummary, facts: &TpccFacts) -> String {
    let isolation = facts.isolation.as_deref().unwrap_or("the server's own");
    let mut text = format!(
        "profile {}, isolation {isolation}, {} {}, {} terminals over {} sessions, {} s\n",
        facts.profile,
        facts.warehouses,
        if facts.warehouses == 1 { "warehouse" } else { "warehouses" },
        facts.terminals,
        facts.sessions,
        short(summary.window_s),
    );
    text.push_str(&kinds_table(summary, facts));
    let counts = &summary.counts;
    text.push_str(&format!(
        "{} retries, {} reconnects, {} in flight at the end; New-Orders of unknown outcome: {}\n",
        counts.retries, counts.reconnects, summary.in_flight, facts.orders_unknown
    ));
    if let Some(limit) = facts.tpmc_limit {
        let share = 100.0 * facts.tpmc / limit;
        text.push_str(&format!(
            "tpmC is {share:.1}% of the {} that keying and think times allow\n",
            short(limit)
        ));
    }
    for error in &summary.errors {
        let (count, class, message) = (error.count, &error.class, error.message.line(Lang::En));
        text.push_str(&format!("{count} x {class} {}: {message}\n", error.sqlstate));
    }
    if let Some(lateness) = &summary.lateness {
        let p99_ms = lateness.p99_us / 1e3;
        text.push_str(&format!("99% of the transactions began at most {p99_ms:.1} ms late\n"));
    }
    for note in &summary.notes {
        text.push_str(&format!("{}\n", note.line(Lang::En)));
    }
    text.push_str("This is TPC-C-like: not comparable with published TPC results.");
    text
}

/// The results of the checks, and reasons not to use the run, if any.
pub(super) fn check_lines(summary: &TrialSummary, verdict: &RunVerdict) -> String {
    let checks = summary.checks.iter().map(|check| {
        let evidence = check.evidence.line(Lang::En);
        format!("check {}: {}: {evidence}", check.name, check.verdict.name())
    });
    let problems =
        verdict.problems.iter().map(|problem| format!("error: {}", in_one_line(problem)));
    checks.chain(problems).collect::<Vec<_>>().join("\n")
}

fn kinds_table(summary: &TrialSummary, facts: &TpccFacts) -> String {
    let header = [
        "transaction",
        "committed",
        "rolled back",
        "failed",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "limit p90 ms",
        "",
    ];
    let rows = summary.kinds.iter().zip(&facts.kinds).map(|(kind, held)| {
        let limit_us = held.limit_p90_s * 1e6;
        let verdict = match kind.latency.count {
            0 => "-",
            _ if kind.latency.p90_us <= limit_us => "kept",
            _ => "exceeded",
        };
        let counts = [kind.counts.committed, kind.counts.rolled_back, kind.counts.failed];
        let latency = &kind.latency;
        let times_us = [latency.p50_us, latency.p90_us, latency.p99_us, latency.max_us, limit_us];
        let mut row = vec![kind.name.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.extend(times_us.map(|us| short(us / 1e3)));
        row.push(verdict.to_owned());
        row
    });
    text_table(&header, &rows.collect::<Vec<_>>(), |place| place >= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_original_does() {
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_795_289_685_042_900_000);
        let at = at.expect("a point in time");
        assert_eq!(line_time(at), "19:34:45,042");
        assert_eq!(session_time(at), "2026-11-21 19:34:45");
    }

    #[test]
    fn rates_are_cut_to_two_decimals() {
        assert_eq!(per_minute(19_392, 60_110), "19356.51");
        assert_eq!(per_minute(1, 7_000), "8.57");
        assert_eq!(per_minute(2, 3_000), "40.00");
        assert_eq!(per_minute(7, 0), "420000.00");
    }

    #[test]
    fn the_running_average_has_the_originals_shape() {
        assert_eq!(
            running_average(1_234.567, 1_200, (12, 34)),
            "Term-00, Running Average tpmTOTAL: 1234.57    Current tpmTOTAL: 1200    Memory \
             Usage: 12MB / 34MB          "
        );
    }
}
