//! The plan of a run, and its continuation: is it the same plan, and which part of it is left?

use crate::compare::Versus;
use crate::reader::{Problem, Span, SuiteError, hint_of_known};
use crate::size::PassTimes;
use crate::suite::{OptionPart, Suite, SuiteExperiment, SuiteTarget, WithSpan};
use crate::targets::{check_data, plan_targets, redirect, redirect_to_nodes, usual_name};
use crate::{compare, figures, publication, size, steps, targets};
use dyno_core::offer::UsualPace;
use dyno_facts::format::grouped;
use dyno_facts::{
    ExperimentFacts, FaultPlan, Message, PlanStep, Role, RunHeader, RunPlan, SecretUrl, StepAction,
    TargetFacts, TargetNode, mask_secrets, say,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// URLs by names of targets: they set or replace those of the suite.
    pub targets: Vec<(String, SecretUrl)>,
    /// Nodes by names of targets, where each node was given, or a cluster of `dyno cluster`: they replace
    /// those of the suite.
    pub nodes: Vec<(String, Vec<TargetNode>)>,
    /// Scales data and durations, in (0, 1]. `suites/README.md` has the rules.
    pub shrink: Option<f64>,
    /// Instead of `shrink`: the size at which the run takes about this many seconds, full size at most.
    pub budget_s: Option<f64>,
    pub max_workers: Option<u32>,
    pub seed: Option<u64>,
    /// Two targets that are compared in all experiments, instead of what these say themselves.
    pub compare: Option<Versus>,
    /// Gates that all experiments get alongside their own.
    pub gates: Vec<String>,
    /// Checks whose findings end the run with exit code 4, alongside those of the suite.
    pub deny: Vec<String>,
    /// Checks whose findings are accepted, alongside those of the suite.
    pub allow: Vec<String>,
    /// Several load generators make the load.
    pub by_fleet: bool,
    /// True if the CPU time per transaction of both compared targets can be read. Comparisons without an explicit rule
    /// then start with the cost.
    pub costs_are_readable: bool,
}

impl Overrides {
    /// Adds a target given as `NAME=URL`, or one of its nodes given as `NAME:ROLE=URL`.
    ///
    /// # Errors
    /// There is no `=`, nothing before or after it, or no such role.
    pub fn add_target(&mut self, text: &str) -> Result<(), Problem> {
        let parts = text.split_once('=').filter(|(name, url)| !name.is_empty() && !url.is_empty());
        let (name, url) = parts.ok_or_else(|| nameless_target(text))?;
        let url = SecretUrl::new(url);
        match name.split_once(':') {
            Some((name, role)) if !role.contains('/') => self.add_node(name, role, &url),
            None if !name.contains('/') => {
                self.targets.push((name.to_string(), url));
                Ok(())
            }
            _ => Err(nameless_target(text)),
        }
    }

    fn add_node(&mut self, target: &str, role: &str, url: &SecretUrl) -> Result<(), Problem> {
        let Some(role) = Role::parse(role) else {
            let message = format!("`--target {target}:{role}=...` names no role of a node.");
            return Err(Problem::new(message).hint(hint_of_known(
                role,
                "Roles",
                &Role::ALL.map(Role::name),
            )));
        };
        let index = self.nodes.iter().position(|(name, _)| name == target).unwrap_or_else(|| {
            self.nodes.push((target.to_owned(), Vec::new()));
            self.nodes.len() - 1
        });
        let nodes = &mut self.nodes[index].1;
        nodes.push(TargetNode::new("", role, url.clone()));
        let roles: Vec<Role> = nodes.iter().map(|node| node.role).collect();
        for (index, node) in nodes.iter_mut().enumerate() {
            node.name = usual_name(&roles, index);
        }
        Ok(())
    }
}

/// The refusal of a `--target` without a name or a URL; it holds no password.
fn nameless_target(text: &str) -> Problem {
    let text = SecretUrl::new(text);
    Problem::new(format!("`--target {text}` does not name a target."))
        .hint("Write `--target NAME=URL`, NAME being a target of the suite.")
}

/// A validated suite, expanded into steps in the order of execution.
///
/// Its serialized form holds no passwords. The same suite and overrides give the same plan with the
/// same hash, whatever the passwords are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub facts: RunPlan,
    pub seed: u64,
    pub targets: Vec<TargetFacts>,
    pub experiments: Vec<ExperimentFacts>,
    /// Checks whose findings end the run with exit code 4.
    pub denied: Vec<String>,
    pub allowed: Vec<String>,
    /// The file that errors point to; a plan that was read back has none.
    #[serde(skip)]
    written: Option<Box<Suite>>,
}

impl Deref for Plan {
    type Target = RunPlan;

    fn deref(&self) -> &RunPlan {
        &self.facts
    }
}

/// Before the first row.
const CONNECTING_S: f64 = 1.0;

/// Returns true if rows pass a proxy or go to shards: how fast they are taken shows when the load has begun.
fn is_behind(target: &TargetFacts) -> bool {
    let mut roles = target.nodes.iter().map(|node| node.role).chain([target.role]);
    roles.any(|role| matches!(role, Role::Endpoint | Role::Shard))
}

/// Pace at which the data of an experiment are loaded and queried on a target.
fn pace(
    suite: &Suite,
    targets: &[TargetFacts],
    planned: &ExperimentFacts,
    target: &str,
) -> UsualPace {
    let mut written = suite.experiments.iter();
    let written = written.find(|written| written.name.value == planned.name);
    let pace = written.map_or(UsualPace::loading(f64::INFINITY), |written| written.pace);
    let rows = planned.data.map_or(0, |size| size.tables.saturating_mul(size.rows_per_table));
    let target = targets.iter().find(|known| known.name == target);
    target.map_or(pace, |target| pace.at(target.url.expose(), rows))
}

impl Plan {
    /// Copies the plan into the header of its run.
    pub fn store(&self, header: &mut RunHeader) {
        header.title.clone_from(&self.suite.title);
        header.plan = Some(self.facts.clone());
        header.targets.clone_from(&self.targets);
        header.experiments.clone_from(&self.experiments);
        header.denied.clone_from(&self.denied);
        header.allowed.clone_from(&self.allowed);
    }

    /// The plan of a run; `None` if a drop-in front end ran.
    pub fn from_header(header: &RunHeader) -> Option<Plan> {
        Some(Plan {
            facts: header.plan.clone()?,
            seed: header.seed,
            targets: header.targets.clone(),
            experiments: header.experiments.clone(),
            denied: header.denied.clone(),
            allowed: header.allowed.clone(),
            written: None,
        })
    }

    /// Expands a suite.
    ///
    /// # Errors
    /// An override is wrong, no target has a URL, or the suite asks for what this version of dyno can't do.
    pub fn build(suite: &Suite, overrides: &Overrides) -> Result<Plan, SuiteError> {
        match overrides.budget_s {
            Some(budget_s) => size::fit(suite, overrides, budget_s),
            None => Plan::build_at_size(suite, overrides, &PassTimes::new()),
        }
    }

    /// The smallest that `--budget` could choose, even if it takes longer than the budget: it shows what is long.
    pub fn smallest(suite: &Suite, overrides: &Overrides) -> Option<Plan> {
        size::smallest(suite, overrides)
    }

    /// The plan at the size that `shrink` says. Experiments with a time in `passes` repeat theirs until it is over,
    /// where the suite leaves their number open.
    pub(crate) fn build_at_size(
        suite: &Suite,
        overrides: &Overrides,
        passes: &PassTimes,
    ) -> Result<Plan, SuiteError> {
        let mut notes = Vec::new();
        let extended = suite.targets.is_empty().then(|| compare::take_targets(suite, overrides));
        let extended = extended.transpose()?;
        let suite = extended.as_ref().unwrap_or(suite);
        let versus = overrides.compare.clone();
        let versus = versus.or_else(|| extended.as_ref().and_then(compare::pair));
        let versus = versus
            .map(|versus| compare::apply(suite, &versus, overrides, &mut notes))
            .transpose()?;
        let suite = versus.as_ref().unwrap_or(suite);
        check_overrides(suite, overrides)?;
        let (mut targets, left_out) = plan_targets(suite, overrides)?;
        if let (Some(name), true) = (left_out.first(), overrides.compare.is_some()) {
            let message = format!("`--compare` names the target `{name}`, which has no URL.");
            let hint = format!("Give it: `--target {name}=mysql://USER@HOST:3306/DATABASE`.");
            return Err(Problem::new(message).hint(hint).into());
        }
        if !left_out.is_empty() {
            notes.push(say!(targets_without_url, targets = left_out.join(", ")));
        }
        let experiments = plan_experiments(suite, overrides, passes, &mut targets, &mut notes)?;
        notes.extend(size::size_notes(suite, overrides, &experiments));
        let seed = overrides.seed.unwrap_or(suite.seed);
        let steps = experiments.iter().flat_map(|planned| {
            steps::expand(
                planned,
                |target| pace(suite, &targets, planned, target),
                seed,
                |name| {
                    let target = targets.iter().find(|target| target.name == name);
                    target.map_or(name, |target| target.owner()).to_owned()
                },
            )
        });
        let mut steps: Vec<PlanStep> = steps.collect();
        let mut number = 0;
        for step in &mut steps {
            let mut targets = targets.iter();
            match &mut step.action {
                StepAction::Prepare
                    if targets.any(|target| target.name == step.target && is_behind(target)) =>
                {
                    step.estimated_s = CONNECTING_S;
                }
                StepAction::Trial(trial) => {
                    number += 1;
                    trial.number = number;
                }
                StepAction::Prepare | StepAction::Cleanup => {}
            }
        }
        let estimates: Vec<_> = steps.iter().map(|step| (step, step.estimated_s)).collect();
        let estimated_s = steps::estimate(&experiments, &estimates, |_| 0.0);
        let facts = RunPlan {
            hash: String::new(),
            suite: suite.facts.clone(),
            sample_servers: suite.sample_servers,
            shrink: overrides.shrink.unwrap_or(1.0),
            budget_s: overrides.budget_s,
            estimated_s,
            steps,
            notes,
        };
        let mut plan = Plan {
            facts,
            seed,
            targets,
            experiments,
            denied: names(&suite.deny, &overrides.deny, &overrides.allow),
            allowed: names(&suite.allow, &overrides.allow, &overrides.deny),
            written: Some(Box::new(suite.clone())),
        };
        plan.facts.hash = hash(&plan);
        Ok(plan)
    }

    /// The planned experiment of that name.
    pub fn experiment(&self, name: &str) -> Option<&ExperimentFacts> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }

    /// The planned target of that name, also a twin or a part.
    pub fn target(&self, name: &str) -> Option<&TargetFacts> {
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
        let experiment = self.written_experiment(experiment);
        let mut entries = experiment.into_iter().flat_map(|experiment| &experiment.options);
        let span = entries.find(|entry| entry.name == name).map(|entry| match part {
            OptionPart::Name => &entry.key_span,
            OptionPart::Value => &entry.value_span,
        });
        self.located_error(span, message, hint)
    }

    /// An error about an experiment as a whole; points to its `test`.
    pub fn experiment_error(
        &self,
        experiment: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let span = self.written_experiment(experiment).map(|experiment| &experiment.test.span);
        self.located_error(span, message, hint)
    }

    /// An error about a check that is denied or allowed; points to it, unless it was given alongside the suite.
    pub fn check_error(
        &self,
        id: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let checks = self.written.iter().flat_map(|suite| suite.deny.iter().chain(&suite.allow));
        let span = checks.filter(|check| check.value == id).map(|check| &check.span).next();
        self.located_error(span, message, hint)
    }

    /// Targets whose loads are not in the estimate.
    pub fn measured_loads(&self) -> Vec<&str> {
        let loads: Vec<&PlanStep> =
            self.steps.iter().filter(|step| step.action == StepAction::Prepare).collect();
        let targets = self.targets.iter().filter(|target| is_behind(target));
        let names = targets.map(|target| target.name.as_str());
        names.filter(|name| loads.iter().any(|step| step.target == *name)).collect()
    }

    /// Returns true if a half-width or the end of a search may end it sooner than estimated.
    pub fn may_end_sooner(&self) -> bool {
        let mut comparisons =
            self.experiments.iter().filter_map(|experiment| experiment.comparison.as_ref());
        comparisons.any(|comparison| comparison.stop.may_end_sooner())
    }

    fn located_error(
        &self,
        span: Option<&Span>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> SuiteError {
        let problem = Problem::new(message).maybe_hint(hint);
        match self.written.as_ref().zip(span) {
            Some((suite, span)) => problem.at(&suite.text, span).into(),
            None => problem.into(),
        }
    }

    fn written_experiment(&self, name: &str) -> Option<&SuiteExperiment> {
        self.written.as_ref()?.experiments.iter().find(|experiment| experiment.name.value == name)
    }
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
    let given_names: Vec<&String> = with_url.chain(with_nodes).collect();
    for (index, name) in given_names.iter().enumerate() {
        if !names.contains(&name.as_str()) {
            let problem = if overrides.compare.is_some() {
                let targets = names.join("` and `");
                Problem::new(format!("`--compare` names `{targets}`, `--target` names `{name}`."))
                    .hint("Correct the one that is misspelt, or leave out what is not compared.")
            } else {
                Problem::new(format!("The suite `{}` has no target `{name}`.", suite.facts.name))
                    .hint(hint_of_known(name, "Its targets", &names))
            };
            return Err(problem.into());
        }
        if given_names[..index].contains(name) {
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
    passes: &PassTimes,
    targets: &mut Vec<TargetFacts>,
    notes: &mut Vec<Message>,
) -> Result<Vec<ExperimentFacts>, SuiteError> {
    let mut experiments = Vec::new();
    let (mut without_target, mut capped) = (Vec::new(), Vec::new());
    for experiment in &suite.experiments {
        let mut facts = plan_experiment(suite, experiment, targets, overrides);
        if facts.targets.is_empty() {
            without_target.push(Message::verbatim(facts.name));
            continue;
        }
        if facts.workers != experiment.facts.workers {
            let [most, full] = [&facts.workers, &experiment.facts.workers]
                .map(|workers| workers.iter().copied().max().unwrap_or(0));
            capped.push(say!(worker_cap, name = &facts.name, most, full));
        }
        let titles = filled_title(&facts, &facts.title)
            .and_then(|title| Ok((title, filled_title(&facts, &facts.title_zh)?)));
        (facts.title, facts.title_zh) =
            titles.map_err(|problem| problem.at(&suite.text, &experiment.title_span))?;
        facts.scripts = publication::read_scripts(suite, experiment)?;
        compare::plan(experiment, &mut facts, targets, notes).map_err(|problem| {
            let place = experiment.compare.as_ref().map(|compare| &compare.design.span);
            SuiteError::from(problem.at(&suite.text, place.unwrap_or(&experiment.name.span)))
        })?;
        if let Some(seconds) = passes.get(&facts.name) {
            size::repeat(experiment, &mut facts, *seconds);
        }
        facts.retry_starved = compare::retries(experiment, &facts, overrides);
        targets::plan_parts(&suite.text, experiment, &mut facts, targets, notes)?;
        check_data(suite, experiment, &facts, targets)?;
        experiments.push(facts);
    }
    if !without_target.is_empty() {
        let n = without_target.len();
        notes.push(say!(experiments_without_target, n, names = Message::list(&without_target)));
    }
    if !capped.is_empty() {
        notes.push(say!(fewer_workers, capped = Message::list(&capped)));
    }
    Ok(experiments)
}

/// The title with what is planned instead of `{workers}` and of options (`{warehouses}`).
fn filled_title(planned: &ExperimentFacts, text: &str) -> Result<String, Problem> {
    let mut tail = text;
    let mut title = String::new();
    while let Some((before, (name, after))) =
        tail.split_once('{').and_then(|(before, tail)| Some((before, tail.split_once('}')?)))
    {
        let value = match (name, planned.options.get(name)) {
            ("workers", _) => range(&planned.workers),
            (_, Some(value)) => value.parse::<u64>().map_or(value.clone(), grouped),
            (_, None) => {
                let place = &planned.name;
                let message = format!(
                    "The title of the experiment `{place}` names `{{{name}}}`, which is not among its options."
                );
                let hint = "Write `{workers}` or an option that the experiment gives.";
                return Err(Problem::new(message).hint(hint));
            }
        };
        title.extend([before, &value]);
        tail = match value.as_str() {
            "1" => {
                let (noun, after) = singular(after);
                title.push_str(noun);
                after
            }
            _ => after,
        };
    }
    Ok(title + tail)
}

/// The noun behind a number of one without the `s` of its plural, and what follows it: ` warehouse` and ` more`
/// of ` warehouses more`. Other languages and short words stay as they are.
fn singular(text: &str) -> (&str, &str) {
    const SHORTEST: usize = 5;
    let noun = text.strip_prefix(' ').unwrap_or_default();
    let noun = &noun[..noun.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(noun.len())];
    match noun.strip_suffix('s') {
        Some(singular) if noun.len() >= SHORTEST && !singular.ends_with('s') => {
            (&text[..=singular.len()], &text[noun.len() + 1..])
        }
        _ => ("", text),
    }
}

/// `16 to 256`.
fn range(numbers: &[u32]) -> String {
    match (numbers.iter().min(), numbers.iter().max()) {
        (Some(min), Some(max)) if min < max => {
            format!("{} to {}", grouped(min), grouped(max))
        }
        (_, max) => max.map_or(String::new(), grouped),
    }
}

fn plan_experiment(
    suite: &Suite,
    experiment: &SuiteExperiment,
    targets: &[TargetFacts],
    overrides: &Overrides,
) -> ExperimentFacts {
    let shrink = overrides.shrink.unwrap_or(1.0);
    // A twin belongs to the comparison that has made it, a part to the experiment.
    let owners = targets.iter().filter(|target| target.owner() == target.name);
    let names: Vec<String> = owners
        .map(|target| target.name.clone())
        .filter(|name| is_measured_on(experiment, name))
        .collect();
    let measured: Vec<&SuiteTarget> = names.iter().filter_map(|name| suite.target(name)).collect();
    let full = &experiment.facts;
    let mut options = full.options.clone();
    let sizing = experiment.sizing.as_ref();
    if let Some(sizing) = sizing.filter(|_| shrink < 1.0 && size::is_loaded(suite, experiment)) {
        size::data(sizing, &mut options, shrink, overrides.budget_s.is_some());
    }
    // In full size it is the workload that refuses too many.
    let data_limit =
        sizing.filter(|_| shrink < 1.0).and_then(|sizing| size::workers_max(sizing, &options));
    let max_workers = [overrides.max_workers, data_limit].into_iter().flatten().min();
    let duration_s = full.duration_s.map(|duration| size::seconds(duration, shrink));
    // Where both end the window, the count must not end it sooner than it did in full size.
    let shorter = match (full.duration_s, duration_s) {
        (Some(full_s), Some(shrunk_s)) => shrunk_s / full_s,
        _ => shrink,
    };
    ExperimentFacts {
        data: sizing.and_then(|sizing| size::data_size(sizing, &options)),
        options,
        targets: names,
        workers: size::cap_workers(&full.workers, max_workers),
        warmup_s: size::seconds(full.warmup_s, shrink),
        duration_s,
        stage_s: full.stage_s.filter(|stage_s| {
            *stage_s > 0.0 && duration_s.is_some_and(|duration_s| duration_s > *stage_s)
        }),
        events: full.events.map(|events| size::events(events, shorter)),
        interval_s: full.interval_s.min(duration_s.unwrap_or(f64::INFINITY)),
        gates: [&full.gates[..], &overrides.gates].concat(),
        fault: full.fault.as_ref().map(|fault| size::fault(fault, shorter)),
        published: experiment
            .published
            .iter()
            .filter_map(|link| figures::published_table(experiment, link, &measured))
            .collect(),
        ..full.clone()
    }
}

fn is_measured_on(experiment: &SuiteExperiment, target: &str) -> bool {
    match (&experiment.targets, &experiment.compare) {
        (Some(list), _) => list.iter().any(|listed| listed.value == target),
        (None, Some(compare)) => {
            let mut compared = compare.candidates.iter().chain([&compare.baseline]);
            compared.any(|other| other.value == target)
        }
        (None, None) => true,
    }
}

/// The checks `written` in the suite without those that the command line gives to the opposite list, then those that
/// are `given` for this one.
fn names(written: &[WithSpan<String>], given: &[String], opposite: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let written = written.iter().map(|name| &name.value).filter(|name| !opposite.contains(name));
    for name in written.chain(given) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// FNV-1a over bytes, finished by a mix: the low bits of FNV alone are weak. Stable for ever, as
/// stored plans are compared by it; not meant to withstand anybody.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Hash of all that decides what is executed: addresses without passwords, loads, the steps without the guesses of
/// their length.
fn hash(plan: &Plan) -> String {
    let targets = plan.targets.iter().map(|target| {
        let nodes = target.nodes.iter().map(|node| (&node.name, node.role, &node.url));
        let rule = target.shard_rule.as_ref().map(ToString::to_string);
        json!((&target.name, &target.url, target.route, nodes.collect::<Vec<_>>(), rule))
    });
    let experiments = plan.experiments.iter().map(|facts| {
        let options: BTreeMap<_, _> =
            facts.options.iter().map(|(name, value)| (name, mask_secrets(value))).collect();
        let load = (&facts.workload, &facts.test, options, &facts.scripts);
        let fault = facts.fault.as_ref().map(|fault| {
            // What may be lost decides an exit code, and nothing that is executed.
            FaultPlan { allow_lost: Vec::new(), ..fault.clone() }
        });
        let lengths = (facts.stage_s, facts.repeats_s);
        json!((&facts.name, load, &facts.comparison, &facts.search, &facts.restore, fault, lengths))
    });
    let steps = plan.steps.iter().map(|step| json!((&step.id, &step.action)));
    let identity = json!({
        "suite": plan.suite.name,
        "seed": plan.seed,
        "targets": targets.collect::<Vec<_>>(),
        "experiments": experiments.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
    });
    format!("{:016x}", fnv1a(identity.to_string().as_bytes()))
}

impl Plan {
    /// The steps that are left when those with ids in `done` are complete, in order.
    ///
    /// A trial is left until it is done. Data are loaded again only if a trial that needs them
    /// is left and they have been removed meanwhile; they are removed if they may still exist.
    /// A plan may also load only.
    pub fn remaining(&self, done: &BTreeSet<String>) -> Vec<&PlanStep> {
        let mut remaining = vec![false; self.steps.len()];
        for target in self.targets.iter().filter(|target| target.owner() == target.name) {
            // What is measured under a second name needs the same data.
            let steps = self.steps.iter().enumerate();
            let steps = steps.filter(|(_, step)| self.owner(&step.target) == target.name.as_str());
            for lifetime in data_lifetimes(steps.collect()) {
                mark_remaining(&lifetime, done, &mut remaining);
            }
        }
        let steps = self.steps.iter().zip(&remaining);
        steps.filter(|(_, remaining)| **remaining).map(|(step, _)| step).collect()
    }

    /// The name under which the database of a target is known: that of the target whose twin or part it is, or its own.
    pub fn owner<'a>(&'a self, target: &'a str) -> &'a str {
        self.target(target).map_or(target, |target| target.owner())
    }

    /// The name of the target that is connected to for a target's trials.
    pub fn reached_as<'a>(&'a self, target: &'a str) -> &'a str {
        self.target(target).map_or(target, |target| target.reached_as())
    }

    /// This plan on other addresses of its targets, or other nodes, under its own hash.
    ///
    /// # Errors
    /// The plan has no target of such a name, or the nodes don't have its route.
    pub fn redirected(mut self, given: &Overrides) -> Result<Plan, SuiteError> {
        for (name, url) in &given.targets {
            self.change_targets(name, |target| redirect(target, url))?;
        }
        for (name, nodes) in &given.nodes {
            self.change_targets(name, |target| redirect_to_nodes(target, nodes))?;
        }
        self.facts.hash = hash(&self);
        Ok(self)
    }

    /// Changes the target of a name, its twins and its parts.
    fn change_targets(
        &mut self,
        name: &str,
        change: impl Fn(&mut TargetFacts) -> Result<(), Problem>,
    ) -> Result<(), SuiteError> {
        let names: Vec<String> = self.targets.iter().map(|target| target.name.clone()).collect();
        let mut is_found = false;
        let targets = self.targets.iter_mut();
        for target in targets.filter(|target| target.name == *name || target.owner() == name) {
            change(target)?;
            is_found = true;
        }
        if is_found {
            return Ok(());
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("The plan has no target `{name}`.");
        let hint = hint_of_known(name, "Its targets", &names);
        Err(Problem::new(message).hint(hint).into())
    }
}

type Numbered<'a> = (usize, &'a PlanStep);

/// Cuts the steps of one target into the lives of its data: from a prepare, or from the start, to
/// the next cleanup or prepare. Experiments may share data, so a life may span several.
fn data_lifetimes(steps: Vec<Numbered<'_>>) -> Vec<Vec<Numbered<'_>>> {
    let mut lifetimes: Vec<Vec<Numbered<'_>>> = vec![Vec::new()];
    let mut ended = false;
    for (index, step) in steps {
        if ended || step.action == StepAction::Prepare {
            lifetimes.push(Vec::new());
        }
        ended = step.action == StepAction::Cleanup;
        if let Some(lifetime) = lifetimes.last_mut() {
            lifetime.push((index, step));
        }
    }
    lifetimes
}

fn mark_remaining(lifetime: &[Numbered<'_>], done: &BTreeSet<String>, remaining: &mut [bool]) {
    let [is_loaded, is_removed] = [StepAction::Prepare, StepAction::Cleanup].map(|action| {
        lifetime.iter().any(|(_, step)| step.action == action && done.contains(&step.id))
    });
    let trials_left = lifetime
        .iter()
        .any(|(_, step)| matches!(step.action, StepAction::Trial(_)) && !done.contains(&step.id));
    let is_load_only = lifetime.iter().all(|(_, step)| step.action == StepAction::Prepare);
    let load = (trials_left || is_load_only) && (!is_loaded || is_removed);
    for (index, step) in lifetime {
        let is_missing = !done.contains(&step.id);
        remaining[*index] = match step.action {
            StepAction::Prepare => load,
            StepAction::Trial(_) => is_missing,
            StepAction::Cleanup => load || is_missing,
        };
    }
}
