//! A trial that no engine drives: its family executes it, one thing after the other, and tells what has
//! ended.

use crate::databases::Database;
use crate::failure::{Failure, sentence};
use crate::family::After;
use crate::fleet::FleetShare;
use crate::nodes::{Sampling, sampled};
use crate::output;
use crate::progress::ProgressBar;
use crate::summary::resident_mib;
use crate::trial::{Job, LOOK_BEFORE, TrialDone, TrialParts, store};
use crate::watch;
use dyno_core::{Nanos, SECOND};
use dyno_engine::Control;
use dyno_engine::record::{Window, process_cpu};
use dyno_engine::{GeneratorWatch, run_delay_of_process};
use dyno_facts::{
    Conditions, GeneratorConditions, GeneratorSummary, HostSample, TrialIdentity, TrialStart,
    TrialSummary,
};
use dyno_observe::HostSampler;
use dyno_reactor::monotonic_now;
use dyno_store::{Moment, StoreError, TrialWriter};
use serde::Serialize;
use std::cell::{Cell, RefCell};

pub struct Pass<'a> {
    /// The identity as far as the family knows it: test, workers, and its own facts.
    pub identity: TrialIdentity,
    /// Sessions at once, each with a thread.
    pub loops: u32,
    /// What is shown beside experiment and target.
    pub title: &'a str,
    pub length: u64,
}

/// Has a family execute a trial, and stores it. What `execute` returns says what was measured, and the rest.
pub fn drive_pass<T: FnOnce(TrialStart) -> (TrialSummary, After)>(
    database: &Database,
    job: Job<'_>,
    pass: Pass<'_>,
    execute: impl FnOnce(&PassWatch<'_, '_>) -> Result<T, Failure>,
) -> Result<TrialDone, Failure> {
    let (place, identity) = (job.place(), job.identity(pass.identity));
    let Job { nodes, starving, run, control, .. } = job;
    let start = TrialStart { identity, loops: pass.loops, ..TrialStart::default() };
    let mut writer = run.begin_trial(start)?;
    let looked = watch::watching(&place, LOOK_BEFORE, &nodes.watched, || nodes.look());
    writer.server(Moment::Before, &nodes.facts(&looked))?;
    let series = writer.node_series()?;
    let progress = ProgressBar::new(&format!("{place}, {}", pass.title), pass.length, "queries");
    let sampling = Sampling::default();
    let watch = PassWatch {
        writer: RefCell::new(&mut writer),
        sampling: &sampling,
        progress,
        length: pass.length,
        control,
        generator: RefCell::new(OwnWatch::begin()),
        ended: Cell::new(0),
        error: RefCell::new(None),
    };
    let (passed, seen) = sampled(&nodes, series, &sampling, || {
        let passed = watch::guarded(&place, "the pass", &nodes.watched, || {
            let passed = execute(&watch)?;
            // What has ended is stored, and a pass that lost its server counts for nothing.
            match watch::given_up() {
                Some(lost) => Err(Failure::new(sentence(&lost))),
                None => Ok(passed),
            }
        });
        watch.over();
        passed
    });
    let PassWatch { progress, error, generator, .. } = watch;
    if let Some(error) = error.into_inner() {
        return Err(error.into());
    }
    let measured = match passed {
        Ok(measured) => measured,
        Err(_) if control.is_stopped() => return Ok(TrialDone::INTERRUPTED),
        Err(failure) => return Err(failure.at(&place)),
    };
    for event in sampling.take_events() {
        writer.event(event)?;
    }
    let looked_again = nodes.look_again(&seen, None);
    writer.server(Moment::After, &nodes.facts(&looked_again))?;
    let (measured, after) = measured(writer.start().clone());
    let measured = generator.into_inner().added(measured);
    let looks = (&looked[..], &looked_again[..]);
    let surroundings = nodes.surround(database.dialect(), looks, &seen, None, &measured);
    let fleet = FleetShare::default();
    let parts = TrialParts {
        measured,
        headroom: None,
        surroundings,
        gone: None,
        fleet,
        fault: None,
        after,
        starving,
    };
    store(writer, parts, progress, &place)
}

pub struct PassWatch<'a, 'run> {
    writer: RefCell<&'a mut TrialWriter<'run>>,
    sampling: &'a Sampling,
    progress: ProgressBar,
    length: u64,
    control: &'a Control,
    generator: RefCell<OwnWatch>,
    ended: Cell<u64>,
    error: RefCell<Option<StoreError>>,
}

impl PassWatch<'_, '_> {
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
    pub fn over(&self) {
        self.generator.borrow_mut().end();
        self.sampling.end();
    }

    pub fn started(&self) {
        *self.generator.borrow_mut() = OwnWatch::begin();
        let now = monotonic_now();
        // It closes with the last execution.
        let window = Window { released: now, opens: now, closes: Nanos::MAX, interval: SECOND };
        self.sampling.released(window);
    }

    /// An element of a list of the family's facts has ended; `what` is shown of it.
    pub fn ended<T: Serialize>(&self, list: &str, element: &T, what: &str) {
        self.stored(self.writer.borrow_mut().executed(list, element));
        for event in self.sampling.take_events() {
            self.stored(self.writer.borrow_mut().event(event));
        }
        self.ended.set(self.ended.get() + 1);
        self.progress.at(self.ended.get(), self.length, what);
    }

    /// Stores a plan of the database; returns where.
    pub fn plan(&self, name: &str, text: &str, what: &str) -> String {
        self.progress.at(self.length, self.length, what);
        self.stored(self.writer.borrow().plan(name, text))
    }

    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }
}

struct OwnWatch {
    sampler: HostSampler,
    watch: GeneratorWatch,
    cpu_ns: u64,
    run_delay_ns: Option<u64>,
    ended: Option<OwnUse>,
}

#[derive(Default)]
struct OwnUse {
    host: HostSample,
    conditions: GeneratorConditions,
    cpu_ns: u64,
}

impl OwnWatch {
    fn begin() -> Self {
        let now = monotonic_now();
        OwnWatch {
            sampler: HostSampler::new(now),
            watch: GeneratorWatch::new(now),
            cpu_ns: process_cpu(),
            run_delay_ns: run_delay_of_process(),
            ended: None,
        }
    }

    /// All that is timed has ended; what comes later does not count.
    fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let now = monotonic_now();
        let mut conditions = self.watch.close(now);
        // Threads that have ended meanwhile are not in it: streams wait for the server, hardly for a
        // CPU.
        let waited = run_delay_of_process().zip(self.run_delay_ns);
        conditions.run_delay_s =
            waited.map(|(after, before)| after.saturating_sub(before) as f64 / 1e9);
        self.ended = Some(OwnUse {
            host: self.sampler.sample(now),
            conditions,
            cpu_ns: process_cpu().saturating_sub(self.cpu_ns),
        });
    }

    /// Adds what is known of the load generator. The CPU of the whole process stands for that of its busiest
    /// loop: it is never less.
    fn added(self, measured: TrialSummary) -> TrialSummary {
        let OwnUse { host, conditions, cpu_ns } = self.ended.unwrap_or_default();
        let statements = measured.statements.total().max(1) as f64;
        let generator = GeneratorSummary {
            loops: measured.generator.loops,
            loops_cpu_s: cpu_ns as f64 / 1e9,
            busiest_loop_share: (cpu_ns as f64 / 1e9 / measured.window_s.max(1e-9)).min(1.0),
            cpu_us_per_statement: cpu_ns as f64 / 1e3 / statements,
            resident_mib: resident_mib(),
            host,
            ..GeneratorSummary::default()
        };
        let conditions = Conditions { generator: conditions, ..Conditions::default() };
        TrialSummary { generator, conditions, ..measured }
    }
}
