//! One trial of TPC-H, stored query by query.

use super::cache::bring;
use super::generator::Generator;
use crate::failure::{Failure, sentence};
use crate::family::ask;
use crate::nodes::{Sampling, sampled};
use crate::output;
use crate::progress::PassProgress;
use crate::tpch::answers_check;
use crate::trial::{Done, Job, deny, tell_checks};
use dyno_core::{Driver, Nanos, SECOND};
use dyno_engine::Control;
use dyno_facts::{FamilyFacts, PlanStep, PlannedTrial, TrialIdentity, TrialStatus, TrialSummary};
use dyno_reactor::monotonic_now;
use dyno_record::Window;
use dyno_store::{Moment, StoreError, TrialWriter};
use dyno_tpch::facts::{DegreeFacts, QueryFacts, QueryOutcome, RefreshFacts, TpchFacts};
use dyno_tpch::load::LoadError;
use dyno_tpch::options::TpchSettings;
use dyno_tpch::run::{Answerer, PlanFile, RunError, RunOptions, Test, Watch, run};
use dyno_tpch::state::{Loaded, loaded};
use std::cell::{Cell, RefCell};

/// Runs one trial and stores it.
///
/// # Errors
/// When it can't begin, or can't be stored.
pub(super) fn trial<D: Driver>(
    options: &TpchSettings,
    driver: &D,
    job: Job<'_>,
) -> Result<Done, Failure> {
    let Job { step, planned, purpose, nodes, run: folder, control, .. } = job;
    let degree = planned.degree.unwrap_or(0);
    let place = format!("{} on {}", step.experiment, step.target);
    let found = look(driver.primary(), options.scale).map_err(|failure| failure.at(&place))?;
    let cache = bring(driver, &step.target, &options.cache, control)
        .map_err(|failure| failure.at(&place))?;
    let Some(cache) = cache else { return Ok(Done::INTERRUPTED) };
    if control.is_stopped() {
        return Ok(Done::INTERRUPTED);
    }
    let asked = RunOptions {
        scale: options.scale,
        test: options.test,
        degree,
        rule: options.rule.clone(),
        parameters: options.parameters(planned.seed),
        q15_view: false,
        timeout_s: options.timeout_s,
        plans: options.plans,
        answers: Some(folder.path().join("answers")),
        who: Answerer { target: step.target.clone(), degree },
        cache,
    };
    let identity = identity(step, planned, &asked, found);
    let mut writer = folder.begin_trial(TrialIdentity { purpose, ..identity })?;
    let looked = nodes.look();
    writer.server(Moment::Before, &nodes.facts(&looked))?;
    let series = writer.node_series()?;
    let title = format!("{place}, {} at degree {degree}", asked.test.name());
    let progress = PassProgress::new(&title, length(asked.test));
    let sampling = Sampling::default();
    let storing = Storing::new(&mut writer, progress, &sampling, control);
    let (ran, seen) = sampled(&nodes, series, &sampling, || {
        let ran = run(driver, &asked, &storing, &|| control.is_stopped());
        storing.over();
        ran
    });
    let Storing { progress, error, generator, .. } = storing;
    if let Some(error) = error.into_inner() {
        return Err(error.into());
    }
    let facts = match ran {
        Ok(facts) => facts,
        Err(_) if control.is_stopped() => return Ok(Done::INTERRUPTED),
        Err(error) => return Err(run_failure(&error).at(&place)),
    };
    for event in sampling.take_events() {
        writer.event(event)?;
    }
    let looked_again = nodes.look_again(&seen);
    writer.server(Moment::After, &nodes.facts(&looked_again))?;
    let status = status(&facts, asked.test, control);
    let mut summary = writer.identity().clone().summary(status);
    facts.set_totals(&mut summary);
    generator.into_inner().store(&mut summary);
    nodes.surround(driver.dialect(), (&looked, &looked_again), &seen, None, &mut summary);
    summary.checks = answers_check(&summary).into_iter().collect();
    let is_denied = deny(&mut summary);
    progress.finish(&headline(&summary));
    tell_checks(&summary, &place);
    let status = summary.status.clone();
    writer.finish(summary)?;
    Ok(Done::Ended { status, is_denied })
}

fn identity(
    step: &PlanStep,
    planned: &PlannedTrial,
    asked: &RunOptions,
    found: Loaded,
) -> TrialIdentity {
    TrialIdentity {
        step: step.id.clone(),
        experiment: step.experiment.clone(),
        target: step.target.clone(),
        test: asked.test.name().to_owned(),
        workers: streams(asked.test),
        repeat: planned.repeat,
        seed: planned.seed,
        loops: sessions(asked.test),
        own: Some(FamilyFacts::new(&known(asked, found))),
        ..TrialIdentity::default()
    }
}

/// What the database says of its load.
fn look<D: Driver>(driver: &D, scale: f64) -> Result<Loaded, Failure> {
    let found = ask(driver, async |session| {
        loaded(session).await.map_err(|error| match &error {
            LoadError::Data { .. } => Failure::from(&error).with_hint(unprepared(scale)),
            _ => Failure::from(&error),
        })
    })?;
    match found {
        Some(loaded) if loaded.scale == scale => Ok(loaded),
        Some(loaded) => Err(Failure::new(format!(
            "The tables have scale factor {}, but {scale} is asked for.",
            loaded.scale
        ))
        .with_hint(format!("Ask for scale {}, or load other tables.", loaded.scale))),
        None => {
            Err(Failure::new("The database holds no tables of TPC-H.").with_hint(unprepared(scale)))
        }
    }
}

/// The remedy for tables that are missing or not complete.
fn unprepared(scale: f64) -> String {
    format!(
        "Load them with `dyno tpch load --scale {scale}`; a suite does it itself where \
         `prepare = false` is left out."
    )
}

/// Streams of queries at once.
fn streams(test: Test) -> u32 {
    match test {
        Test::Throughput { streams, .. } => streams,
        Test::Queries | Test::Power { .. } | Test::Refresh { .. } => 1,
    }
}

/// Sessions at once, each with a thread: the streams, and the one that refreshes.
fn sessions(test: Test) -> u32 {
    match test {
        Test::Throughput { streams, refresh } => streams + u32::from(refresh),
        Test::Queries | Test::Power { .. } | Test::Refresh { .. } => 1,
    }
}

/// Queries and refresh functions of a test.
fn length(test: Test) -> u64 {
    match test {
        Test::Queries => 22,
        Test::Power { refresh } => 22 + 2 * u64::from(refresh),
        Test::Throughput { streams, refresh } => u64::from(streams) * (22 + 2 * u64::from(refresh)),
        Test::Refresh { pairs } => 2 * u64::from(pairs),
    }
}

/// What is known before the trial begins: for a trial that is killed.
fn known(asked: &RunOptions, found: Loaded) -> TpchFacts {
    TpchFacts {
        scale: asked.scale,
        test: asked.test.name().to_owned(),
        parameters: asked.parameters.message(),
        degree: DegreeFacts { asked: asked.degree, ..DegreeFacts::default() },
        cache: asked.cache.clone(),
        timeout_s: asked.timeout_s,
        load: Some(found.load),
        ..TpchFacts::default()
    }
}

fn status(facts: &TpchFacts, test: Test, control: &Control) -> TrialStatus {
    let outcomes: Vec<&QueryOutcome> = facts
        .queries
        .iter()
        .map(|query| &query.outcome)
        .chain(facts.refreshes.iter().map(|refresh| &refresh.outcome))
        .collect();
    let is_whole = outcomes.len() as u64 >= length(test);
    if outcomes.contains(&&QueryOutcome::Interrupted) || (control.is_stopped() && !is_whole) {
        return TrialStatus::Interrupted;
    }
    let queries = facts.queries.iter().map(|query| (format!("Q{}", query.query), &query.outcome));
    let refreshes =
        facts.refreshes.iter().map(|refresh| (format!("RF{}", refresh.function), &refresh.outcome));
    let failed: Vec<String> = queries
        .chain(refreshes)
        .filter_map(|(name, outcome)| match outcome {
            QueryOutcome::Failed(why) => Some(format!("{name} failed: {}", sentence(why))),
            _ => None,
        })
        .collect();
    match failed.as_slice() {
        [] if is_whole => TrialStatus::Complete,
        [] => TrialStatus::Failed("Not all queries were executed.".into()),
        [one] => TrialStatus::Failed(one.into()),
        [first, more @ ..] => {
            TrialStatus::Failed(format!("{first} {} more failed.", more.len()).into())
        }
    }
}

fn headline(summary: &TrialSummary) -> String {
    let Some(facts) = summary.own::<TpchFacts>() else { return String::new() };
    let answered = summary.counts.committed;
    let mut text = match &facts.metrics {
        Some(metrics) => format!(
            "{answered} executed, {:.2} s in all, geometric mean {:.3} s",
            metrics.total_s, metrics.geometric_mean_s
        ),
        None => format!("{answered} executed in {:.2} s", summary.window_s),
    };
    if let Some(remark) = &facts.degree.remark {
        text.push_str(&format!("; {}", remark.to_string().trim_end_matches('.')));
    }
    match &summary.status {
        TrialStatus::Complete => text,
        TrialStatus::Interrupted => format!("interrupted; until then {text}"),
        TrialStatus::Failed(why) => format!("failed: {why} Measured: {text}"),
    }
}

pub(super) fn run_failure(error: &RunError) -> Failure {
    Failure::new(sentence(&error.to_string())).hinted(error.hint())
}

/// Stores what has ended, and shows it.
struct Storing<'a, 'run> {
    writer: RefCell<&'a mut TrialWriter<'run>>,
    sampling: &'a Sampling,
    progress: PassProgress,
    control: &'a Control,
    generator: RefCell<Generator>,
    ended: Cell<u64>,
    error: RefCell<Option<StoreError>>,
}

impl<'a, 'run> Storing<'a, 'run> {
    fn new(
        writer: &'a mut TrialWriter<'run>,
        progress: PassProgress,
        sampling: &'a Sampling,
        control: &'a Control,
    ) -> Self {
        Storing {
            writer: RefCell::new(writer),
            sampling,
            progress,
            control,
            generator: RefCell::new(Generator::begin()),
            ended: Cell::new(0),
            error: RefCell::new(None),
        }
    }

    /// Keeps the first error and stops the trial: nothing of it could be stored any more.
    fn stored<T: Default>(&self, stored: Result<T, StoreError>) -> T {
        stored.unwrap_or_else(|error| {
            let mut first = self.error.borrow_mut();
            if first.is_none() {
                output::talk(
                    "The run folder can't be written any more; the trial is being stopped.",
                );
                *first = Some(error);
                self.control.stop();
            }
            T::default()
        })
    }

    /// All that is timed has ended.
    fn over(&self) {
        self.generator.borrow_mut().end();
        self.sampling.end();
    }

    fn ended(&self, what: &str) {
        for event in self.sampling.take_events() {
            self.stored(self.writer.borrow_mut().event(event));
        }
        self.ended.set(self.ended.get() + 1);
        self.progress.ended(self.ended.get(), what);
    }
}

impl Watch for Storing<'_, '_> {
    fn started(&self) {
        *self.generator.borrow_mut() = Generator::begin();
        let now = monotonic_now();
        // It closes with the last query.
        let window = Window { released: now, opens: now, closes: Nanos::MAX, interval: SECOND };
        self.sampling.released(window);
    }

    fn query(&self, facts: &QueryFacts) {
        self.stored(self.writer.borrow_mut().executed("queries", facts));
        self.ended(&format!("Q{} took {:.2} s", facts.query, facts.seconds));
    }

    fn refresh(&self, facts: &RefreshFacts) {
        self.stored(self.writer.borrow_mut().executed("refreshes", facts));
        self.ended(&format!("RF{} took {:.2} s", facts.function, facts.seconds));
    }

    fn plan(&self, plan: PlanFile<'_>) -> String {
        // Plans are taken when all that is timed has ended.
        self.over();
        let name = format!("q{:02}.{}", plan.query, plan.extension);
        self.progress.planned(plan.query);
        self.stored(self.writer.borrow().plan(&name, plan.text))
    }

    fn note(&self, text: &str) {
        self.progress.note(text);
    }
}
