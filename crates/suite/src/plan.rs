//! What will be executed.

use dyno_facts::StoredPlan;
use serde::{Deserialize, Serialize};

use crate::compare::{self, PlannedComparison, Restore, Search};
use crate::fault::Fault;
use crate::nodes::{PlannedNode, usual_name};
use crate::problem::{Problem, SuiteError, hint_of_known};
use crate::published::{self, PublishedSeries};
use crate::resume;
use crate::scale_out;
use crate::scripts::{self, PlannedScript};
use crate::secret::SecretUrl;
use crate::shrink;
use crate::source::{Source, Span};
use crate::state;
use crate::steps::{self, Step};
use crate::suite::{Experiment, OptionPart, Role, Route, Suite, Target, Written};
use crate::targets::{PlannedTarget, check_data, plan_targets};
use crate::versus::{self, Versus};

/// Version of the stored form of a [`Plan`].
pub const PLAN_FORMAT: u32 = 1;

/// What the user said beside the suite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// URLs by names of targets: they set or replace those of the suite.
    pub targets: Vec<(String, SecretUrl)>,
    /// Nodes by names of targets, where each node was given, or a cluster of `dyno cluster`: they replace
    /// those of the suite.
    pub nodes: Vec<(String, Vec<PlannedNode>)>,
    /// Scales data and durations, in (0, 1]. `suites/README.md` has the rules.
    pub shrink: Option<f64>,
    /// Caps every number of workers.
    pub max_workers: Option<u32>,
    /// Replaces the suite's seed.
    pub seed: Option<u64>,
    /// Two targets that are compared in all experiments, instead of what these say themselves.
    pub compare: Option<Versus>,
    /// Gates that all experiments get beside their own.
    pub gates: Vec<String>,
    /// Checks whose findings end the run with exit code 4, beside those of the suite.
    pub deny: Vec<String>,
    /// Checks whose findings are accepted, beside those of the suite.
    pub allow: Vec<String>,
}

impl Overrides {
    /// Adds a target given as `NAME=URL`, or one of its nodes given as `NAME:ROLE=URL`.
    ///
    /// # Errors
    /// There is no `=`, nothing before or after it, or no such role.
    pub fn add_target(&mut self, text: &str) -> Result<(), Problem> {
        let name = text.split_once('=').map(|(name, _)| name.split_once(':'));
        if let (Some(Some((name, role))), Some((_, url))) = (name, text.split_once('='))
            && !role.contains('/')
            && !url.is_empty()
        {
            return self.add_node(name, role, &SecretUrl::new(url));
        }
        match text.split_once('=') {
            Some((name, url))
                if !name.contains([':', '/']) && !name.is_empty() && !url.is_empty() =>
            {
                self.targets.push((name.to_string(), SecretUrl::new(url)));
                Ok(())
            }
            _ => {
                let text = SecretUrl::new(text);
                Err(Problem::new(format!("`--target {text}` does not name a target."))
                    .hint("Write `--target NAME=URL`, NAME being a target of the suite."))
            }
        }
    }

    fn add_node(&mut self, target: &str, role: &str, url: &SecretUrl) -> Result<(), Problem> {
        let Some(role) = Role::parse(role) else {
            let message = format!("`--target {target}:{role}=...` names no role of a node.");
            return Err(Problem::new(message).hint(hint_of_known(role, "Roles", &Role::NAMES)));
        };
        let at = self.nodes.iter().position(|(name, _)| name == target).unwrap_or_else(|| {
            self.nodes.push((target.to_owned(), Vec::new()));
            self.nodes.len() - 1
        });
        let nodes = &mut self.nodes[at].1;
        nodes.push(PlannedNode::new("", role, url));
        let roles: Vec<Role> = nodes.iter().map(|node| node.role).collect();
        for (index, node) in nodes.iter_mut().enumerate() {
            node.name = usual_name(&roles, index);
        }
        Ok(())
    }
}

/// A validated suite, expanded into steps in the order of execution.
///
/// Its serialised form holds no passwords and is stored with the run. The same suite and
/// overrides give the same plan with the same [`Plan::hash`], whatever the passwords are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_FORMAT`].
    pub format: u32,
    /// 16 hexadecimal digits over all that decides what is executed: targets without passwords,
    /// experiments, options, steps, seed. Titles and published figures do not change it.
    pub hash: String,
    /// Which suite.
    pub suite: SuiteFacts,
    /// The seed of all random streams.
    pub seed: u64,
    /// Whether servers are asked each second of a trial what they do.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub sample_servers: bool,
    /// 1, or the share of the suite's data and durations that is executed.
    pub shrink: f64,
    /// The targets that are measured, in the order of the suite.
    pub targets: Vec<PlannedTarget>,
    /// The experiments that are executed, in the order of the suite.
    pub experiments: Vec<PlannedExperiment>,
    /// Checks whose findings end the run with exit code 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Checks whose findings are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// A guess of the whole time in seconds: windows and warm-ups as stated, loading at 100,000
    /// rows/s, counted windows at 1,000 transactions/s; comparisons as long as they may take.
    pub estimated_s: f64,
    /// What the user should know, in sentences: what was left out, capped or shrunk.
    pub notes: Vec<String>,
    #[serde(skip)]
    check_spans: Vec<(String, Span)>,
    #[serde(skip)]
    source: Source,
}

fn yes() -> bool {
    true
}

/// What a run says about its suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteFacts {
    /// Short name.
    pub name: String,
    /// One line.
    pub title: String,
    /// Paragraphs, or empty.
    pub description: String,
    /// The published paper that is reproduced.
    pub paper: Option<String>,
    /// Where that paper is to be found.
    pub source: Option<String>,
    /// The file as the user named it, or `bundled:NAME.toml`; empty where there is none.
    pub file: String,
}

/// An experiment with everything a runner and a report need.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedExperiment {
    /// Unique in the plan.
    pub name: String,
    /// One line.
    pub title: String,
    /// Such as `sysbench`.
    pub workload: String,
    /// Such as `oltp_read_only`.
    pub test: String,
    /// The workload's options, already shrunk, in the order of the suite.
    pub options: Vec<PlannedOption>,
    /// The scripts that the options name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<PlannedScript>,
    /// The size of the data that the options state, if the test has one.
    pub data: Option<DataSize>,
    /// Names of the targets that are measured.
    pub targets: Vec<String>,
    /// Numbers of workers, already capped; empty if a trial is a pass over queries.
    pub threads: Vec<u32>,
    /// Parallel degrees of a pass over queries; 0 is off. Empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degrees: Vec<u32>,
    /// Offered rates in transactions per second; empty means a closed loop.
    pub rates: Vec<f64>,
    /// Seconds before the measured window.
    pub warmup_s: f64,
    /// Seconds of the measured window.
    pub duration_s: Option<f64>,
    /// The window ends after this many transactions.
    pub events: Option<u64>,
    /// Trials per point.
    pub repeats: u32,
    /// Seconds between two lines of the interval series.
    pub interval_s: f64,
    /// The data are loaded before the first trial.
    pub prepare: bool,
    /// The data are removed after the last trial.
    pub cleanup: bool,
    /// Percentiles of the latency, in (0, 100].
    pub percentiles: Vec<f64>,
    /// What is compared with what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PlannedComparison>,
    /// Conditions on the results, as they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The search for the highest rate that an objective allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// How often the best point of a sweep is measured again, or the result of a search.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub confirm: u32,
    /// How the data come back to their first state before each trial.
    #[serde(default, skip_serializing_if = "Restore::is_none")]
    pub restore: Restore,
    /// What is done to a node in each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Published figures to stand beside the results.
    pub published: Vec<PublishedSeries>,
    #[serde(skip)]
    test_span: Option<Span>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl PlannedExperiment {
    /// What the data are like before each trial: `untouched`, `reloaded`, `grows`, or the command that
    /// restores them.
    pub fn data_state(&self) -> String {
        state::of(self)
    }
}

/// One option of a workload as it would stand on a command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedOption {
    /// The name with underscores, without leading dashes.
    pub name: String,
    /// The value; `on` or `off` for what is true or false.
    pub value: String,
    #[serde(skip)]
    name_span: Option<Span>,
    #[serde(skip)]
    value_span: Option<Span>,
}

impl PlannedOption {
    pub(crate) fn new(name: impl Into<String>, value: String) -> Self {
        PlannedOption { name: name.into(), value, name_span: None, value_span: None }
    }
}

/// The size of an experiment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSize {
    /// Number of tables.
    pub tables: u64,
    /// Rows of each.
    pub rows_per_table: u64,
}

/// The steps of a plan in a run folder; none where it can't be read.
pub fn stored_steps(stored: &StoredPlan) -> Vec<Step> {
    #[derive(Deserialize)]
    struct Steps {
        steps: Vec<Step>,
    }
    Steps::deserialize(&stored.whole).map(|plan| plan.steps).unwrap_or_default()
}

impl Plan {
    /// The form in which a run folder keeps the plan.
    ///
    /// # Errors
    /// When it can't be written as JSON.
    pub fn stored(&self) -> Result<StoredPlan, serde_json::Error> {
        let whole = serde_json::to_value(self)?;
        Ok(StoredPlan { hash: self.hash.clone(), shrink: self.shrink, whole })
    }

    /// The plan that a run folder keeps.
    ///
    /// # Errors
    /// When it was written by another version of dyno, or damaged.
    pub fn from_stored(stored: &StoredPlan) -> Result<Plan, serde_json::Error> {
        Plan::deserialize(&stored.whole)
    }

    /// Expands a suite.
    ///
    /// # Errors
    /// An override is wrong, no target has a URL, or the suite asks for what this version of dyno
    /// can't do.
    pub fn build(suite: &Suite, overrides: &Overrides) -> Result<Plan, SuiteError> {
        let mut notes = Vec::new();
        let versus = match &overrides.compare {
            Some(versus) => Some(versus::apply(suite, versus, &mut notes)?),
            None => None,
        };
        let suite = versus.as_ref().unwrap_or(suite);
        check_overrides(suite, overrides)?;
        let shrink = overrides.shrink.unwrap_or(1.0);
        let (mut targets, left_out) = plan_targets(suite, overrides)?;
        if let (Some(name), true) = (left_out.first(), overrides.compare.is_some()) {
            let message = format!("`--compare` names the target `{name}`, which has no URL.");
            let hint = format!("Give it: `--target {name}=mysql://USER@HOST:3306/DATABASE`.");
            return Err(Problem::new(message).hint(hint).into());
        }
        if !left_out.is_empty() {
            notes.push(format!(
                "No URL is given for {}: left out. `--target NAME=URL` adds one.",
                left_out.join(", ")
            ));
        }
        notes.extend(targets.iter().filter_map(|target| unused_route(suite, target)));
        let experiments = plan_experiments(suite, overrides, &mut targets, &mut notes)?;
        if shrink < 1.0 {
            notes.push(format!(
                "Data and durations are shrunk by {shrink}: the results can't be compared with \
                 published figures."
            ));
        }
        let seed = overrides.seed.unwrap_or(suite.seed);
        let owner = |name: &str| {
            let found = targets.iter().find(|target| target.name == name);
            found.map_or(name, |target| target.owner()).to_owned()
        };
        let steps: Vec<Step> = experiments
            .iter()
            .flat_map(|experiment| steps::expand(experiment, seed, owner))
            .collect();
        let steps = steps::numbered(steps);
        let mut plan = Plan {
            format: PLAN_FORMAT,
            hash: String::new(),
            suite: SuiteFacts {
                name: suite.name.clone(),
                title: suite.title.clone(),
                description: suite.description.clone(),
                paper: suite.paper.clone(),
                source: suite.source.clone(),
                file: suite.text.file.clone(),
            },
            seed,
            sample_servers: suite.sample_servers,
            shrink,
            targets,
            estimated_s: steps::estimate(&experiments, &steps),
            experiments,
            denied: names(&suite.deny, &overrides.deny, &overrides.allow),
            allowed: names(&suite.allow, &overrides.allow, &overrides.deny),
            check_spans: suite
                .deny
                .iter()
                .chain(&suite.allow)
                .map(|check| (check.value.clone(), check.span.clone()))
                .collect(),
            steps,
            notes,
            source: suite.text.clone(),
        };
        plan.hash = resume::hash(&plan);
        Ok(plan)
    }

    /// The experiment of this name.
    pub fn experiment(&self, name: &str) -> Option<&PlannedExperiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }

    /// The target of this name.
    pub fn target(&self, name: &str) -> Option<&PlannedTarget> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// An error about an option of an experiment, with its place in the suite file if the plan
    /// was built from one and the option is written there.
    pub fn option_error(
        &self,
        experiment: &str,
        option: &str,
        part: OptionPart,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let name = option.trim_start_matches('-').replace('-', "_");
        let entry = self
            .experiment(experiment)
            .and_then(|experiment| experiment.options.iter().find(|entry| entry.name == name));
        let span = entry.and_then(|entry| match part {
            OptionPart::Name => entry.name_span.as_ref(),
            OptionPart::Value => entry.value_span.as_ref(),
        });
        self.error(span, message, hint)
    }

    /// An error about an experiment as a whole; points to its `test`.
    pub fn experiment_error(
        &self,
        experiment: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let span = self.experiment(experiment).and_then(|found| found.test_span.as_ref());
        self.error(span, message, hint)
    }

    /// An error about a target; points to its URL, unless that was given beside the suite.
    pub fn target_error(
        &self,
        target: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let span = self.target(target).and_then(|found| found.span.as_ref());
        self.error(span, message, hint)
    }

    /// An error about a check that is denied or allowed; points to it, unless it was given beside the
    /// suite.
    pub fn check_error(
        &self,
        id: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let found = self.check_spans.iter().find(|(written, _)| written == id);
        self.error(found.map(|(_, span)| span), message, hint)
    }

    /// True where a half-width or the end of a search may end it sooner than estimated.
    pub fn may_end_sooner(&self) -> bool {
        self.experiments.iter().any(|experiment| {
            let stop = experiment.comparison.as_ref().map(|comparison| comparison.stop);
            stop.is_some_and(|stop| stop.pairs_least < stop.pairs_most)
        })
    }

    fn error(
        &self,
        span: Option<&Span>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let problem = Problem::new(message).maybe_hint(hint);
        match span {
            Some(span) => problem.at(&self.source, span).into(),
            None => problem.into(),
        }
    }
}

/// Who gives one URL for a target of several nodes should know that it is all there is.
fn unused_route(suite: &Suite, planned: &PlannedTarget) -> Option<String> {
    let route = suite.target(&planned.name)?.route.as_ref()?.value;
    let needs_more = matches!(route, Route::Split | Route::Spread);
    (needs_more && planned.nodes.is_empty()).then(|| {
        format!(
            "The target `{}` is reached by one URL, so its route `{}` does not apply.",
            planned.name,
            route.name()
        )
    })
}

fn check_overrides(suite: &Suite, overrides: &Overrides) -> Result<(), SuiteError> {
    let shrink = overrides.shrink.unwrap_or(1.0);
    if !(shrink > 0.0 && shrink <= 1.0) {
        let message = format!("`--shrink {shrink}` is not a share of the whole.");
        return Err(Problem::new(message).hint("Give a number above 0, at most 1.").into());
    }
    if overrides.max_workers == Some(0) {
        let hint = "Give at least 1.";
        return Err(Problem::new("`--max-workers 0` leaves no worker.").hint(hint).into());
    }
    let names: Vec<&str> = suite.targets.iter().map(|target| target.name.value.as_str()).collect();
    let with_url = overrides.targets.iter().map(|(name, _)| name);
    let with_nodes = overrides.nodes.iter().map(|(name, _)| name);
    let given: Vec<&String> = with_url.chain(with_nodes).collect();
    for (index, name) in given.iter().enumerate() {
        if !names.contains(&name.as_str()) {
            let message = format!("The suite `{}` has no target `{name}`.", suite.name);
            let hint = hint_of_known(name, "Its targets", &names);
            return Err(Problem::new(message).hint(hint).into());
        }
        if given[..index].contains(name) {
            let message = format!("`--target {name}=...` is given twice.");
            let hint = "Give one URL per target, or one for each node: `--target NAME:ROLE=URL`.";
            return Err(Problem::new(message).hint(hint).into());
        }
    }
    Ok(())
}

/// The experiments that have a target; twins and parts are added to the targets.
fn plan_experiments(
    suite: &Suite,
    overrides: &Overrides,
    targets: &mut Vec<PlannedTarget>,
    notes: &mut Vec<String>,
) -> Result<Vec<PlannedExperiment>, SuiteError> {
    let mut experiments = Vec::new();
    let (mut without, mut capped) = (Vec::new(), Vec::new());
    for experiment in &suite.experiments {
        let mut planned = plan_experiment(suite, experiment, targets, overrides);
        if planned.targets.is_empty() {
            without.push(planned.name);
            continue;
        }
        if planned.threads != experiment.workers {
            capped.push(planned.name.clone());
        }
        planned.scripts = scripts::read(suite, experiment)?;
        compare::plan(experiment, &mut planned, targets, notes);
        scale_out::plan(&suite.text, experiment, &mut planned, targets, notes)?;
        check_data(suite, experiment, &planned, targets)?;
        experiments.push(planned);
    }
    match without.as_slice() {
        [] => {}
        [name] => notes.push(format!("The experiment `{name}` has no target: left out.")),
        names => notes.push(format!(
            "{} experiments have no target and are left out: {}.",
            names.len(),
            some_of(names)
        )),
    }
    if !capped.is_empty() {
        let (cap, names) = (overrides.max_workers, some_of(&capped));
        let at =
            cap.map_or("what the shrunk data take".to_string(), |cap| format!("{cap} workers"));
        notes.push(format!("Capped at {at}: {names}."));
    }
    Ok(experiments)
}

fn plan_experiment(
    suite: &Suite,
    experiment: &Experiment,
    targets: &[PlannedTarget],
    overrides: &Overrides,
) -> PlannedExperiment {
    let shrink = overrides.shrink.unwrap_or(1.0);
    let named = |name: &str| match (&experiment.targets, &experiment.beyond.compare) {
        (Some(list), _) => list.iter().any(|target| target.value == name),
        (None, Some(compare)) => {
            compare.candidates.iter().chain([&compare.baseline]).any(|other| other.value == name)
        }
        (None, None) => true,
    };
    // A twin belongs to the comparison that has made it, a part to the experiment.
    let own = targets.iter().filter(|target| target.owner() == target.name);
    let names: Vec<String> =
        own.map(|target| target.name.clone()).filter(|name| named(name)).collect();
    let measured: Vec<&Target> = names.iter().filter_map(|name| suite.target(name)).collect();
    let mut options: Vec<PlannedOption> = experiment
        .options
        .iter()
        .map(|entry| PlannedOption {
            name: entry.name.clone(),
            value: entry.value.clone(),
            name_span: Some(entry.key_span.clone()),
            value_span: Some(entry.value_span.clone()),
        })
        .collect();
    let sizing = experiment.sizing.as_ref();
    if let Some(sizing) = sizing.filter(|_| shrink < 1.0) {
        shrink::data(sizing, &mut options, shrink);
    }
    // In full size it is the workload that refuses too many.
    let of_data =
        sizing.filter(|_| shrink < 1.0).and_then(|sizing| shrink::workers_max(sizing, &options));
    let mut gates: Vec<String> =
        experiment.beyond.gates.iter().map(|gate| gate.value.clone()).collect();
    gates.extend(overrides.gates.iter().cloned());
    let most_workers = [overrides.max_workers, of_data].into_iter().flatten().min();
    let duration_s = experiment.duration_s.map(|duration| shrink::seconds(duration, shrink));
    // Where both end the window, the count must not end it sooner than it did in full size.
    let shorter = match (experiment.duration_s, duration_s) {
        (Some(full), Some(shrunk)) => shrunk / full,
        _ => shrink,
    };
    PlannedExperiment {
        name: experiment.name.value.clone(),
        title: experiment.title.clone(),
        workload: experiment.workload.clone(),
        test: experiment.test.value.clone(),
        data: sizing.and_then(|sizing| shrink::data_size(sizing, &options)),
        options,
        scripts: Vec::new(),
        targets: names,
        threads: cap_workers(experiment, most_workers),
        degrees: experiment.degrees.clone(),
        rates: experiment.rates.clone(),
        warmup_s: shrink::seconds(experiment.warmup_s, shrink),
        duration_s,
        events: experiment.events.map(|events| shrink::events(events, shorter)),
        repeats: experiment.repeats,
        interval_s: experiment.interval_s.min(duration_s.unwrap_or(f64::INFINITY)),
        prepare: experiment.prepare,
        cleanup: experiment.cleanup,
        percentiles: experiment.percentiles.clone(),
        comparison: None,
        gates,
        search: experiment.beyond.search.clone(),
        confirm: experiment.beyond.confirm,
        restore: experiment.beyond.restore.clone(),
        fault: experiment.fault.as_ref().map(|fault| fault.shrunk(shorter)),
        published: experiment
            .published
            .iter()
            .filter_map(|link| published::series(link, &measured))
            .collect(),
        test_span: Some(experiment.test.span.clone()),
    }
}

/// Those of the suite, unless the opposite was said beside it, then those that were given beside it.
fn names(written: &[Written<String>], given: &[String], opposite: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let written = written.iter().map(|name| &name.value).filter(|name| !opposite.contains(name));
    for name in written.chain(given) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn cap_workers(experiment: &Experiment, cap: Option<u32>) -> Vec<u32> {
    let cap = cap.unwrap_or(u32::MAX);
    let mut workers = Vec::new();
    for &wanted in &experiment.workers {
        let kept = wanted.min(cap);
        if !workers.contains(&kept) {
            workers.push(kept);
        }
    }
    workers
}

/// The first names of a list, and how many more there are.
fn some_of(names: &[String]) -> String {
    const MOST: usize = 6;
    match names.get(MOST..).map_or(0, <[String]>::len) {
        0 | 1 => names.join(", "),
        more => format!("{} and {more} more", names[..MOST].join(", ")),
    }
}
