//! `dyno run`, and `--continue RUN`: a comparison until decided continues where an earlier run has left it.

use super::compare::{self, EndLength, refuse_mistakes};
use super::fleet::{NatsArguments, versions};
use super::runs::{LISTEN, RUNS, RunsFolder, find_run, serve_alongside};
use super::suites;
use crate::CommandResult;
use crate::terminal::human_time;
use dyno_core::counted;
use dyno_engine::Control;
use dyno_facts::{
    Design, EarlierSession, ExperimentFacts, RunHeader, RunStatus, SecretUrl, StepAction,
    TargetFacts, TrialStatus, has_secret, mask_secrets,
};
use dyno_fleet::{FleetOptions, WAIT};
use dyno_judge::findings::verdict::continued_sessions;
use dyno_runner as runner;
use dyno_runner::calibration::Calibration;
use dyno_runner::databases::{add_target, are_costs_readable};
use dyno_runner::failure::{Failure, exit_code};
use dyno_runner::front_end::{LevelSuite, TARGET};
use dyno_runner::{TableSharing, output, signals};
use dyno_store::Run;
use dyno_suite::{ComparisonWay, Overrides, Plan, Suite, Versus, WantedStop};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/run.txt").trim_ascii_end())]
pub(crate) struct Arguments {
    /// A suite file, or the name of a bundled suite (`dyno suites` lists them).
    suite: String,
    /// Set or replace the URL of a target of the suite. NAME:ROLE=URL, once for each node, gives its nodes
    /// (roles: primary, read_only, endpoint, shard); NAME=cluster:FOLDER those of a cluster of `dyno cluster`.
    #[arg(long = "target", value_name = "NAME=URL")]
    targets: Vec<String>,
    /// Scale data and durations down to this share, above 0 and at most 1.
    #[arg(long, value_name = "F")]
    shrink: Option<f64>,
    /// Scale data and durations down so that the whole run takes about this long, such as 10m or 2h.
    #[arg(long, value_name = "TIME", conflicts_with = "shrink", value_parser = parse_seconds)]
    budget: Option<f64>,
    /// Print the steps, their sizes and seconds, and which tables are made and dropped; execute nothing.
    #[arg(long)]
    plan: bool,
    /// Cap every number of workers.
    #[arg(long, value_name = "N")]
    max_workers: Option<u32>,
    /// Replace the suite's seed.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    comparing: Comparing,
    /// End with exit code 4 when this check finds something.
    #[arg(long, value_name = "ID")]
    deny: Vec<String>,
    /// Accept what this check finds; it is shown as accepted.
    #[arg(long, value_name = "ID")]
    allow: Vec<String>,
    #[command(flatten)]
    runs: RunsFolder,
    /// Let all users of this machine read the run folder, as far as the umask does.
    #[arg(long)]
    share: bool,
    /// Begin a new run even if there is an interrupted one to continue with.
    #[arg(long)]
    new: bool,
    /// Serve a page on which the run can be watched, as `dyno serve` does; on a free port of this
    /// machine unless an address is given.
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true, default_missing_value = LISTEN)]
    serve: Option<String>,
    /// Measure even while another run works on the same tables of a target; the paper says so.
    #[arg(long)]
    share_target: bool,
    /// Print all tables at the end, as `dyno show` does.
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    fleet: FleetArguments,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Several load generators")]
struct FleetArguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Load generators (`dyno generator`) that make the load together; needs --nats.
    #[arg(long, value_name = "N", requires = "nats", value_parser = clap::value_parser!(u32).range(1..=1000))]
    generators: Option<u32>,
    /// Seconds to wait until all load generators are there.
    #[arg(long, value_name = "S", requires = "nats", default_value_t = WAIT.as_secs())]
    wait: u64,
}

impl FleetArguments {
    /// Returns how load generators are gathered; `None` without `--nats`.
    fn options(&self) -> Result<Option<FleetOptions>, Failure> {
        Ok(self.nats.options()?.map(|nats| FleetOptions {
            nats,
            fleet: self.nats.fleet.clone(),
            generators: self.generators.unwrap_or(1),
            versions: versions(),
            wait: Duration::from_secs(self.wait),
        }))
    }
}

#[derive(Debug, clap::Args)]
struct Comparing {
    /// Compare two targets in all experiments, in pairs: ratios are B by A. Names that the suite
    /// doesn't know need a --target each; the same name twice measures the noise.
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    compare: Option<Vec<String>>,
    /// With --compare: measure both at once, with the same arrivals at one rate, for what a transaction costs each.
    #[arg(long, requires = "compare")]
    together: bool,
    /// With --compare: pairs, or the fewest and the most, such as 6..20.
    #[arg(long, value_name = "N..M", requires = "compare", value_parser = parse_pairs)]
    pairs: Option<(u32, u32)>,
    /// With --compare: stop when the 95% interval is as narrow as this to each side, such as 2%.
    #[arg(long, value_name = "SHARE", requires = "compare", value_parser = parse_share)]
    half_width: Option<f64>,
    /// With --compare: ratios that differ from 1 by less are equivalent; 3% unless given.
    #[arg(long, value_name = "SHARE", requires = "compare", value_parser = parse_share)]
    equivalence: Option<f64>,
    /// With --compare: stop when the verdict is certain. The verdict stays valid however often you look, stop and
    /// continue.
    #[arg(long, requires = "compare", conflicts_with = "half_width")]
    until_decided: bool,
    /// Continue an earlier run of the same comparison, even on another day: its pairs count, and so do those of the
    /// runs that it continued. Both runs need --until-decided and the same suite, targets and options.
    #[arg(id = "earlier", long = "continue", value_name = "RUN")]
    earlier: Option<String>,
    /// With --compare: begin no further pair after this time of an experiment, such as 30m or 2h.
    #[arg(long, value_name = "TIME", requires = "compare", value_parser = parse_seconds)]
    pair_budget: Option<f64>,
    /// A condition on the results of all experiments, such as 'tps.ratio.low > 0.97'.
    #[arg(long = "gate", value_name = "GATE")]
    gates: Vec<String>,
}

/// Executes `dyno run`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    refuse_mistakes(&arguments.comparing.gates)?;
    let mut overrides = Overrides {
        shrink: arguments.shrink,
        budget_s: arguments.budget,
        max_workers: arguments.max_workers,
        seed: arguments.seed,
        compare: arguments.comparing.versus(),
        gates: arguments.comparing.gates.clone(),
        deny: arguments.deny.clone(),
        allow: arguments.allow.clone(),
        by_fleet: arguments.fleet.nats.nats.is_some(),
        ..Overrides::default()
    };
    for target in &arguments.targets {
        add_target(&mut overrides, target)?;
    }
    let suite = Suite::open(&arguments.suite, &crate::offers())?;
    overrides.costs_are_readable = are_costs_readable(&suite, &overrides);
    if arguments.plan {
        return suites::show_plan(&suite, &overrides);
    }
    let earlier = arguments.comparing.earlier.as_deref();
    let continued = earlier.map(|name| read_continued(&arguments.runs.dir, name)).transpose()?;
    if let Some(continued) = &continued {
        // Another one than those of the sessions before: each draws its orders again.
        overrides.seed = overrides.seed.or(Some(continued.header.seed + 1));
    }
    let listen = arguments.serve.as_deref();
    let _page = listen.map(|listen| serve_alongside(&arguments.runs.dir, listen)).transpose()?;
    let sharing =
        if arguments.share_target { TableSharing::Allowed } else { TableSharing::OnRequest };
    let settings = RunSettings {
        dir: arguments.runs.dir.clone(),
        is_shared: arguments.share,
        new: arguments.new,
        fleet: arguments.fleet.options()?,
        sharing,
        continued,
        length: if arguments.long { EndLength::Long } else { EndLength::Answer },
        ..RunSettings::default()
    };
    run_suite(&suite, &overrides, &settings)
}

/// Reads a length of time.
pub(super) fn parse_seconds(text: &str) -> Result<f64, &'static str> {
    dyno_suite::seconds(text).ok_or("it takes a length of time such as 90s, 30m or 2h")
}

pub(super) fn parse_share(text: &str) -> Result<f64, &'static str> {
    dyno_suite::share(text).ok_or("it takes a share such as 2%, from 0.01% to 50%")
}

/// Parses the smallest and the largest number of pairs of a comparison: `20` is both, `6..20` is the two.
fn parse_pairs(text: &str) -> Result<(u32, u32), &'static str> {
    dyno_suite::pairs(text).ok_or("it takes a number from 1 to 1000, or two, such as 6..20")
}

impl Comparing {
    /// Returns the comparison that `--compare` asks for.
    fn versus(&self) -> Option<Versus> {
        let [baseline, candidate] = self.compare.as_deref()? else { return None };
        let stop = WantedStop {
            pairs: self.pairs,
            half_width: self.half_width,
            is_until_decided: self.until_decided,
            budget_s: self.pair_budget,
        };
        let (baseline, candidate) = (baseline.clone(), candidate.clone());
        let design = if self.together { Design::Together } else { Design::InTurn };
        let ways = if self.together || stop != WantedStop::default() {
            vec![ComparisonWay { design, stop, ..ComparisonWay::default() }]
        } else {
            Vec::new()
        };
        Some(Versus { baseline, candidate, control: None, ways, equivalence: self.equivalence })
    }
}

pub(crate) fn run_suite(
    suite: &Suite,
    overrides: &Overrides,
    settings: &RunSettings,
) -> CommandResult {
    let plan = Plan::build(suite, overrides)?;
    let stored = run_and_store(&plan, settings)?;
    stored.verdict
}

pub(crate) fn run_plan(plan: &Plan, dir: &Path, new: bool) -> CommandResult {
    run_and_store(plan, &RunSettings { dir: dir.to_owned(), new, ..RunSettings::default() })?
        .verdict
}

/// The folder of a run, the run that it continues, and how it is executed and printed.
#[derive(Default)]
pub(crate) struct RunSettings {
    pub(crate) dir: PathBuf,
    pub(crate) is_shared: bool,
    pub(crate) new: bool,
    pub(crate) reproduces: Option<String>,
    /// The run whose pairs count alongside those of this one.
    pub(crate) continued: Option<ContinuedRun>,
    /// The load generators that make the load, if it isn't this process.
    pub(crate) fleet: Option<FleetOptions>,
    /// Permission of other runs to work on the same tables.
    pub(crate) sharing: TableSharing,
    /// Set for `dyno bench`, which has no `--new` and leaves nothing behind if it fails.
    pub(crate) is_bench: bool,
    /// Length of the output at its end.
    pub(crate) length: EndLength,
}

pub(crate) struct StoredRun {
    pub(crate) path: PathBuf,
    /// Its end, gates and checks judged.
    pub(crate) verdict: CommandResult,
}

pub(crate) fn run_and_store(plan: &Plan, settings: &RunSettings) -> Result<StoredRun, Failure> {
    compare::refuse_unknown_checks(plan)?;
    let plan = &mut plan.clone();
    runner::check_options(crate::families(), plan)?;
    if let Some(continued) = &settings.continued {
        continued.refuse_mismatch(plan)?;
        for change in compare::environment_changes(&continued.header) {
            output::talk(&format!("warning: {change}"));
        }
    }
    for note in &plan.notes {
        output::talk(&format!("note: {note}"));
    }
    // Before the folder of the run exists, so that an interruption from here on is reported.
    let control = Arc::new(Control::new());
    let stopped = Arc::clone(&control);
    signals::end_on_interrupt("what was loaded and measured is kept", move || stopped.stop())
        .map_err(|error| Failure::new(format!("Signals can't be handled: {error}.")))?;
    let mut fleet = None;
    if let Some(options) = &settings.fleet {
        runner::refuse_fleet(crate::families(), plan)?;
        fleet = runner::fleet::gather(options, plan, &control)?;
        if fleet.is_none() {
            let message = "Stopped before there were enough load generators.";
            return Err(Failure::interrupted(message));
        }
    }
    let (run, begins) = open_run(plan, settings)?;
    let (sharing, drops_when_failed) = (settings.sharing, settings.is_bench);
    let terms = runner::RunTerms { fleet, sharing, drops_when_failed, begins };
    let outcome = runner::execute(crate::families(), plan, run, &control, terms)?;
    let path = outcome.path.clone();
    Ok(StoredRun { path, verdict: compare::report(outcome, settings.length, settings.is_bench)? })
}

/// The interrupted run of the same plan, or a new one, and the lines that are printed when it begins.
fn open_run(plan: &Plan, settings: &RunSettings) -> Result<(Run, Vec<String>), Failure> {
    if !settings.new
        && let Some(path) = find_unfinished(plan, settings)?
    {
        let mut run = Run::open(&path)?;
        let next = match run.last_trial() {
            0 => String::new(),
            last => format!(" from trial {}", last + 1),
        };
        let begins = format!("Resuming {}{next}.", path.display());
        // What does not decide what is executed may have changed: gates, titles, accepted checks.
        run.update(|header| fill_header(header, plan, settings))?;
        return Ok((run, vec![begins]));
    }
    let loads = plan.measured_loads();
    let load_note = if loads.is_empty() {
        String::new()
    } else {
        format!(", and the load of {}: it is timed when it has begun", loads.join(", "))
    };
    for command in compare::commands(plan).iter().filter(|command| has_secret(command)) {
        output::talk(&format!(
            "warning: a command holds a password, which the process list shows: {}",
            mask_secrets(command)
        ));
        output::talk("hint: give it in a file such as ~/.my.cnf or ~/.pgpass");
    }
    let length = if plan.steps.is_empty() {
        suites::NOTHING_LEFT.to_owned()
    } else {
        let at_most = if plan.may_end_sooner() { "at most " } else { "" };
        let steps = counted(plan.steps.len() as u64, "step");
        format!("{at_most}{steps}, about {}{load_note}", human_time(plan.estimated_s))
    };
    let mut begins = vec![format!("{}: {length}.", plan.suite.title)];
    let refusal = dyno_reactor::chosen_io().refusal.as_ref();
    begins.extend(refusal.map(|reason| {
        format!("note: loops use epoll, which costs more CPU: io_uring is refused: {reason}.")
    }));
    let environment = dyno_observe::environment();
    let mut header = RunHeader {
        effects: Calibration::for_environment(&environment)
            .map(|calibration| calibration.effects)
            .unwrap_or_default(),
        environment,
        ..RunHeader::new(&plan.suite.name, command_line(), plan.seed)
    };
    fill_header(&mut header, plan, settings);
    Ok((Run::create(&settings.dir, header, settings.is_shared)?, begins))
}

/// Stores the plan in the header, with the runs that this one continues or reproduces.
fn fill_header(header: &mut RunHeader, plan: &Plan, settings: &RunSettings) {
    plan.store(header);
    // A run that is taken up again keeps what it began with.
    if let Some(continued) = &settings.continued
        && header.continues.is_empty()
    {
        header.continues = continued.sessions.clone();
    }
    header.reproduces.clone_from(&settings.reproduces);
}

/// The interrupted run of the same plan.
///
/// # Errors
/// The run is being executed.
pub(crate) fn find_unfinished(
    plan: &Plan,
    settings: &RunSettings,
) -> Result<Option<PathBuf>, Failure> {
    let sessions = settings.continued.as_ref().map_or(&[][..], |continued| &continued.sessions);
    for entry in dyno_store::list(&settings.dir)?.iter().rev() {
        let is_same_run = entry.header.as_ref().is_ok_and(|header| {
            header.plan.as_ref().is_some_and(|stored| stored.hash == plan.hash)
                && header.reproduces == settings.reproduces
                && last_folder(&header.continues) == last_folder(sessions)
        });
        if is_same_run && entry.is_growing && settings.sharing != TableSharing::Allowed {
            let message = format!("The same run is being executed, in {}.", entry.path.display());
            let alternative =
                if settings.is_bench { "" } else { " `--new` begins another run alongside it." };
            let hint = "Wait for its end, or stop it and give the command again, which resumes it.";
            return Err(Failure::new(message).with_hint(format!("{hint}{alternative}")));
        }
        let is_unfinished = is_same_run
            && match entry.status() {
                Some(RunStatus::Interrupted) => true,
                Some(RunStatus::Failed(_)) => {
                    let is_owed = entry.header.as_ref().is_ok_and(|header| !header.owed.is_empty());
                    is_owed || ended_early(plan, &entry.path)?
                }
                _ => false,
            };
        if is_unfinished {
            return Ok(Some(entry.path.clone()));
        }
    }
    Ok(None)
}

fn last_folder(sessions: &[EarlierSession]) -> Option<&str> {
    sessions.last().map(|session| session.folder.as_str())
}

/// Returns true if trials of the plan are left, those that failed among them.
fn ended_early(plan: &Plan, path: &Path) -> Result<bool, Failure> {
    let data = dyno_store::read(path)?;
    // Failed trials are repeated, and so are failed stages: the trial is their sum.
    let trials = data.trials.iter().map(|trial| &trial.summary);
    let complete =
        trials.filter(|trial| trial.status == TrialStatus::Complete && trial.stage.is_none());
    let complete: BTreeSet<&str> = complete.map(|trial| trial.step.as_str()).collect();
    let settled = plan.settled(&BTreeSet::new(), &data.header.skipped.keys().cloned().collect());
    let mut trials = plan.steps.iter().filter(|step| matches!(step.action, StepAction::Trial(_)));
    Ok(trials.any(|step| !complete.contains(step.id.as_str()) && !settled.contains(&step.id)))
}

/// The command as it was given, passwords masked.
fn command_line() -> Vec<String> {
    let words = std::env::args().map(|argument| match argument.split_once('=') {
        Some((name, url)) if url.contains("://") => {
            format!("{name}={}", SecretUrl::new(url).redacted())
        }
        _ if argument.contains("://") => SecretUrl::new(argument).redacted(),
        _ => mask_secrets(&argument),
    });
    words.collect()
}

#[derive(Debug, clap::Args)]
pub(crate) struct QuickstartArguments {
    #[command(flatten)]
    runs: RunsFolder,
    /// Scale data and durations down to this share, above 0 and at most 1.
    #[arg(long, value_name = "F")]
    shrink: Option<f64>,
    /// Print every step and all tables, as `dyno run --long` does.
    #[arg(long)]
    long: bool,
}

/// Executes `dyno quickstart`.
pub(crate) fn quickstart(arguments: &QuickstartArguments) -> CommandResult {
    let overrides = Overrides { shrink: arguments.shrink, ..Overrides::default() };
    let mut settings =
        RunSettings { dir: arguments.runs.dir.clone(), new: true, ..RunSettings::default() };
    if !arguments.long {
        output::hide_steps();
    }
    settings.length = if arguments.long { EndLength::Long } else { EndLength::Screen };
    run_suite(&Suite::open("quickstart", &crate::offers())?, &overrides, &settings)?;
    compare::next_steps();
    Ok(())
}

/// `--paper` of the drop-ins: their command line is run as a suite.
pub(crate) fn run_levels(levels: &LevelSuite) -> ExitCode {
    exit_code(run_recorded(levels).map(|()| 0))
}

fn run_recorded(levels: &LevelSuite) -> CommandResult {
    let suite = Suite::parse("", &levels.text(), &crate::offers())?.with_scripts(&levels.scripts);
    let url = SecretUrl::new(levels.target.reveal().reveal());
    let overrides = Overrides {
        targets: vec![(TARGET.to_owned(), url)],
        seed: levels.seed,
        ..Overrides::default()
    };
    let plan = Plan::build(&suite, &overrides)?;
    let settings = RunSettings { dir: RUNS.into(), ..RunSettings::default() };
    run_and_store(&plan, &settings)?.verdict
}

/// An earlier run that a new one continues with.
pub(crate) struct ContinuedRun {
    folder: String,
    header: RunHeader,
    /// And those that it continues with itself, the oldest first.
    sessions: Vec<EarlierSession>,
}

/// Reads the run of a name.
///
/// # Errors
/// When there is none, somebody writes to it, or it has no pairs that can count.
fn read_continued(dir: &Path, name: &str) -> Result<ContinuedRun, Failure> {
    let data = dyno_store::read(&find_run(dir, name)?)?;
    let folder = data.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if data.status() == RunStatus::Running {
        let message = format!("{folder} is still being written, so it can't be continued yet.");
        return Err(Failure::usage(message).with_hint("Wait for its end, or stop it by Ctrl-C."));
    }
    for warning in &data.warnings {
        output::talk(&format!("warning: {warning}"));
    }
    let sessions = continued_sessions(&data).map_err(Failure::usage)?;
    let comparisons = sessions.last().map_or(&[][..], |session| &session.comparisons);
    let metrics = comparisons.iter().flat_map(|comparison| comparison.metrics.values());
    let max_pairs = metrics.map(Vec::len).max();
    if max_pairs.unwrap_or(0) < 2 {
        let message =
            format!("{folder} has no two complete pairs, so there is nothing to continue.");
        return Err(Failure::usage(message).with_hint(
            "To resume an interrupted run, repeat the command. To start a comparison, omit `--continue`.",
        ));
    }
    Ok(ContinuedRun { folder, header: data.header, sessions })
}

impl ContinuedRun {
    /// Checks that pairs of this plan may count together with those of the run.
    ///
    /// # Errors
    /// The verdict of both would not be valid.
    fn refuse_mismatch(&self, plan: &Plan) -> CommandResult {
        const SAME: &str = "Give the same suite, targets and options as that run had.";
        let (earlier, current) = (&self.header.suite, &plan.suite.name);
        if earlier != current {
            return self.refuse(&format!("its suite was {earlier:?}, not {current:?}"), SAME);
        }
        let sides = [("this command", &plan.experiments), ("it", &self.header.experiments)];
        for (subject, experiments) in sides {
            let mismatch = experiments.iter().find(|experiment| {
                let comparison = experiment.comparison.as_ref();
                comparison.is_none_or(|comparison| !comparison.stop.is_until_decided)
            });
            if let Some(experiment) = mismatch {
                let name = &experiment.name;
                let reason = format!("{subject} does not compare `{name}` until decided");
                return self.refuse(&reason, "Only `--until-decided` stays valid over sessions.");
            }
        }
        let mut experiments = plan.experiments.iter();
        if let Some(experiment) = experiments.find(|experiment| experiment.pairs_per_unit() > 1) {
            let name = &experiment.name;
            let reason = format!("several pairs of `{name}` share a restart or a load");
            return self.refuse(&reason, "`restart_each = \"pair\"` can be continued.");
        }
        let earlier = comparable_values(&self.header.experiments, &self.header.targets);
        let current = comparable_values(&plan.experiments, &plan.targets);
        let mut names = earlier.keys().chain(current.keys());
        match names.find(|name| earlier.get(*name) != current.get(*name)) {
            None => Ok(()),
            Some(name) => {
                let [was, is] = [&earlier, &current].map(|values| match values.get(name) {
                    None => "none".to_owned(),
                    Some(value) => value.to_string(),
                });
                self.refuse(&format!("{name} was {was}, not {is}"), SAME)
            }
        }
    }

    /// Fails with the reason why the run can't be continued.
    fn refuse(&self, reason: &str, hint: &str) -> CommandResult {
        let message = format!("{} can't be continued: {reason}.", self.folder);
        Err(Failure::usage(message).with_hint(hint))
    }
}

/// The values that decide what experiments measure and how they are judged, and how targets are reached, by the names
/// of messages; not what ends an experiment.
fn comparable_values(
    experiments: &[ExperimentFacts],
    targets: &[TargetFacts],
) -> BTreeMap<String, Value> {
    const OTHER: &str = "name title title_zh description description_zh gates published prepare cleanup \
                         repeats repeats_s pairs_least pairs_most half_width is_until_decided budget_s";
    const ADDRESS: &str = "url role nodes route shard_rule twin_of part_of";
    let experiments =
        experiments.iter().map(|facts| ("experiment", &facts.name, json!(facts), OTHER, false));
    let targets = targets.iter().map(|facts| ("target", &facts.name, json!(facts), ADDRESS, true));
    let mut named_values = BTreeMap::new();
    for (kind, name, facts, keys, are_wanted) in experiments.chain(targets) {
        let Value::Object(mut values) = facts else { continue };
        if let Some(Value::Object(comparison)) = values.remove("comparison") {
            values.extend(comparison);
        }
        let counting = values.into_iter().filter(|(key, value)| {
            keys.split(' ').any(|known| known == key.as_str()) == are_wanted && !value.is_null()
        });
        named_values.extend(
            counting.map(|(key, value)| (format!("`{key}` of its {kind} `{name}`"), value)),
        );
    }
    named_values
}
