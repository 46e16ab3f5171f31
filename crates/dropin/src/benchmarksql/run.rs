//! `dyno benchmarksql run`.

use super::console::{
    Console, WallClock, check_lines, committed, memory_mb, print_closing, run_details,
    running_average,
};
use super::properties::{Properties, redacted};
use super::results::{Request, Results, next_run};
use super::settings::{Length, Place, Reader, Run};
use super::{PropertiesSource, warn};
use dyno_core::{AdminDriver, Dialect, Driver, ErrorClass, Nanos, SECOND};
use dyno_engine::record::{MeasuredInterval, Phase, Window};
use dyno_engine::{Control, ErrorPolicy, Observer, TrialEnd, TrialResult, TrialSpec};
use dyno_facts::{
    CheckVerdict, DataCheck, FamilyFacts, SeriesRow, TrialIdentity, TrialStatus, TrialSummary,
};
use dyno_runner::databases::{Database, ReachedDatabase, reach_target};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{ask, check_settings};
use dyno_runner::front_end::JsonFile;
use dyno_runner::{identity, kinds, lock_holder, shared_warning, summarise};
use dyno_runner::{output, signals};
use dyno_tpcc::family::{
    Before, Need, facts, is_missing, look_after, look_before, not_made, preflight, tpmc_limit,
    trial_needs,
};
use dyno_tpcc::ledger::LedgerFile;
use dyno_tpcc::load::{TpccDatabase, loaded};
use dyno_tpcc::options::{CheckTime, OFFER};
use dyno_tpcc::profile::Profile;
use dyno_tpcc::{DRIVE_ON, Isolation, Tpcc, TpccOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Time limit for connecting and preparing all terminals.
const CONNECT_LIMIT: Nanos = 600 * SECOND;
const MINUTE: Nanos = 60 * SECOND;

/// What `run` takes.
#[derive(Debug)]
pub struct BenchmarksqlRun {
    pub source: PropertiesSource,
    /// `None` is the default of the dialect.
    pub isolation: Option<Isolation>,
    /// Seed of all that is random; drawn and printed unless given.
    pub seed: Option<u64>,
    /// A profile that the file does not ask for.
    pub profile: Option<&'static Profile>,
    pub checks: CheckTime,
    /// Where every order is recorded durably.
    pub ledger: Option<PathBuf>,
    /// Where the result is written as JSON; `-` is standard output.
    pub json: Option<PathBuf>,
}

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
    let seed = arguments.seed.unwrap_or_else(clock_seed);
    output::talk(&format!("seed: {seed}"));
    let reached = reach_target(place.target.clone(), None)?;
    let ReachedDatabase { database, facts, .. } = &reached;
    output::talk(&format!("server: {} {}", facts.product, facts.version));
    let job = Job { arguments, properties: &properties, place: &place, settings: &settings, seed };
    job.run((database, &database.admin()), &mut console, clock, json)
}

fn clock_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}

/// What the original says first: every key but the password.
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

struct Over<'a> {
    workload: &'a Tpcc,
    loaded: &'a TpccDatabase,
    spec: &'a TrialSpec,
    result: &'a TrialResult,
}

impl Job<'_> {
    fn run(
        &self,
        (database, driver): (&Database, &AdminDriver<'_>),
        console: &mut Console<'_>,
        clock: &WallClock,
        json: Option<JsonFile>,
    ) -> Result<u8, Failure> {
        let spec = self.spec();
        let loaded = self.loaded(driver, &spec)?;
        let before = look_before(driver, self.arguments.checks, self.place.warehouses)?;
        let control = Arc::new(Control::new());
        let results = self.results(console, *clock, (&loaded, &spec), &control)?;
        let workload = self.workload(driver.dialect(), &loaded, &before, results.as_ref())?;
        console.line(&format!("C value for C_LAST during load: {}", loaded.c_last));
        let c_last = workload.constants().c_last;
        console.line(&format!("C value for C_LAST this run:    {c_last}"));
        console.line("");
        if let Err(error) = signals::stop_on_interrupt(Arc::clone(&control)) {
            output::talk(&format!("warning: Ctrl-C will end it without results: {error}"));
        }
        let keeps = json.is_some();
        let mut follower = Follower::new(console, keeps, results.as_ref());
        let driven = DRIVE_ON(database, &workload, &spec, &control, &mut follower);
        let Follower { rows, failure, .. } = follower;
        let result = driven?;
        console.end();
        print_closing(console, clock, &result);
        let limit = tpmc_limit(&workload, self.settings.terminals);
        let written = results.map_or(Ok(()), |results| results.finish(result.length(), limit));
        let written = written.and(failure.map_or(Ok(()), Err));
        let over = Over { workload: &workload, loaded: &loaded, spec: &spec, result: &result };
        // What stops for a full disk has not been interrupted by anybody.
        let is_checked = result.ended != TrialEnd::Interrupted || written.is_err();
        let json = json.map(|json| (json, rows));
        let code = self.judge(driver, &over, (&before, is_checked), json)?;
        written?;
        match workload.ledger_file().map(LedgerFile::close) {
            // The run was aborted for it, and has said so.
            Some(Err(error)) if code == 0 => Err(error),
            _ => Ok(code),
        }
    }

    /// Prints what dyno has to say, checks the data unless the run was interrupted, and writes the
    /// JSON. Returns the exit code.
    fn judge(
        &self,
        driver: &AdminDriver<'_>,
        over: &Over<'_>,
        (before, is_checked): (&Before, bool),
        json: Option<(JsonFile, Vec<SeriesRow>)>,
    ) -> Result<u8, Failure> {
        let &Over { workload, loaded, spec, result } = over;
        let mut summary = self.summary(workload, spec, result);
        let mut facts = facts(workload, loaded, spec, &summary.kinds, summary.window_s);
        output::talk_lines(&run_details(&summary, &facts));
        warn(result.scan_note().as_slice());
        let left = workload.deliveries_left();
        if left > 0 {
            output::talk(&format!(
                "{left} Deliveries were queued and not executed when the run ended"
            ));
        }
        let findings = match is_checked {
            true => look_after(driver, workload, before),
            false => not_made(before, &"The run was interrupted.".into()),
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

    fn workload(
        &self,
        dialect: Dialect,
        loaded: &TpccDatabase,
        before: &Before,
        results: Option<&Results>,
    ) -> Result<Tpcc, Failure> {
        let pauses = self.settings.pauses;
        let options = TpccOptions {
            warehouses: self.place.warehouses,
            isolation: self.arguments.isolation,
            keying_multiplier: pauses.map_or(1.0, |pauses| pauses.keying),
            think_multiplier: pauses.map_or(1.0, |pauses| pauses.think),
            ..TpccOptions::new(self.settings.profile, loaded, self.seed)
        };
        let mut workload = Tpcc::new(options, loaded, dialect).map_err(Failure::usage)?;
        if let Some(path) = &self.arguments.ledger {
            let target = self.place.target.to_string();
            let ledger = LedgerFile::open(path, &target, loaded, self.seed, before.books())?;
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
        clock: WallClock,
        (loaded, spec): (&TpccDatabase, &TrialSpec),
        control: &Arc<Control>,
    ) -> Result<Option<Results>, Failure> {
        let Some(template) = &self.settings.result_directory else { return Ok(None) };
        let run = next_run(Path::new("."))?;
        let request = Request {
            template,
            properties: self.properties.text(),
            run,
            delivery: self.settings.profile.delivery,
            db: &self.place.db,
            run_info: self.run_info(loaded, spec),
            clock,
        };
        let results = Results::create(request, control)?;
        let path = results.path().display();
        console.line(&format!("copied {} to {path}/run.properties", self.properties.file));
        console.line(&format!("created {path}/data/runInfo.csv for runID {run}"));
        console.line(&format!("writing per transaction results to {path}/data/result.csv"));
        console.line("");
        Ok(Some(results))
    }

    /// The columns of `runInfo.csv` behind the start of the session.
    fn run_info(&self, loaded: &TpccDatabase, spec: &TrialSpec) -> String {
        let Run { length, limit_per_min, pauses, .. } = *self.settings;
        let run_mins = match length {
            Length::Mins(mins) => mins,
            Length::TxnsPerTerminal(_) => 0,
        };
        let (think, keying) = pauses.map_or((0.0, 0.0), |pauses| (pauses.think, pauses.keying));
        format!(
            "{run_mins},{},{},{},{},{think:?},{keying:?}",
            loaded.warehouses,
            self.place.warehouses,
            spec.workers,
            limit_per_min.unwrap_or(0)
        )
    }

    /// What the database says of its load, and whether it can be run on.
    fn loaded(&self, driver: &AdminDriver<'_>, spec: &TrialSpec) -> Result<TpccDatabase, Failure> {
        let isolation = self.arguments.isolation;
        let need = Need { sessions: spec.workers, isolation, foreign_keys: None };
        check_settings(driver, trial_needs(need.isolation))?;
        let found = ask(driver, async |session| {
            if let Some(who) = lock_holder(session, OFFER.name).await? {
                warn(&[shared_warning(&who)]);
            }
            let loaded = loaded(session).await?;
            let (asked, has) = (self.place.warehouses, loaded.warehouses);
            if has < asked {
                return Err(Failure::usage(format!(
                    "numWarehouses cannot be greater than the warehouses loaded in the database: \
                     {asked} were asked for, {has} are loaded."
                ))
                .with_hint("lower warehouses, or destroy the database and build it again"));
            }
            preflight(session, loaded, &need).await
        })?;
        warn(&found.warnings);
        Ok(found.loaded)
    }

    fn spec(&self) -> TrialSpec {
        let Run { terminals, length, limit_per_min, report_interval_s, pauses, .. } =
            *self.settings;
        let (duration, each) = match length {
            Length::Mins(mins) => (Some(u64::from(mins) * MINUTE), None),
            Length::TxnsPerTerminal(each) => (None, Some(u64::from(each))),
        };
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
                events_per_worker: each,
                finish_begun: true,
                rate_per_s: limit_per_min.map(|limit| f64::from(limit) / 60.0),
                even_rate: true,
                ..common
            },
            Some(pauses) => TrialSpec {
                workers: self.sessions(pauses.sut_threads),
                terminals: Some(terminals),
                // Sessions are no terminals: what all of them do is counted together.
                events: each.map(|each| each * u64::from(terminals)),
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

    fn summary(&self, workload: &Tpcc, spec: &TrialSpec, result: &TrialResult) -> TrialSummary {
        let target = self.place.target.to_string();
        let identity = TrialIdentity { target, ..identity(self.settings.profile.name, spec) };
        // A limit that is not reached is no rate that was missed.
        let unlimited = TrialSpec { rate_per_s: None, ..spec.clone() };
        summarise(identity, &kinds(workload), &unlimited, result, false)
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

/// Shows the running average, and keeps the intervals where they are asked for.
struct Follower<'a, 'b> {
    console: &'a mut Console<'b>,
    keeps: bool,
    rows: Vec<SeriesRow>,
    results: Option<&'a Results>,
    /// An error of the result directory.
    failure: Option<Failure>,
    committed: u64,
}

impl<'a, 'b> Follower<'a, 'b> {
    fn new(console: &'a mut Console<'b>, keeps: bool, results: Option<&'a Results>) -> Self {
        Follower { console, keeps, rows: Vec::new(), results, failure: None, committed: 0 }
    }
}

impl Observer for Follower<'_, '_> {
    fn released(&mut self, window: &Window) {
        self.failure = self.results.and_then(|results| results.opened(window.opens).err());
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        if self.keeps {
            self.rows.push(SeriesRow::from(interval));
        }
        let committed = committed(&interval.frame);
        if interval.phase == Phase::Measured {
            self.committed += committed;
        }
        let elapsed_s = interval.begins_s + interval.length_s;
        if !self.console.is_watched() || elapsed_s <= 0.0 || interval.length_s <= 0.0 {
            return;
        }
        let average = self.committed as f64 * 60.0 / elapsed_s;
        let current = (committed as f64 * 60.0 / interval.length_s).round() as u64;
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
    let count = |classes: &[ErrorClass]| -> u64 {
        let errors = result.total.errors.0.iter();
        errors.filter(|error| classes.contains(&error.class)).map(|error| error.count).sum()
    };
    // Conflicts are only failures when all retries are used up; each lost connection failed once.
    count(&[ErrorClass::Other, ErrorClass::Constraint]) > 0
        || result.total.counts().failed > count(&[ErrorClass::ConnectionLost])
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
