//! What a trial is asked to do, and who watches it.

use super::Answerer;
use crate::degree::DegreeRule;
use crate::facts::{CacheFacts, QueryFacts, RefreshFacts};
use crate::parameters::ParameterChoice;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TpchTest {
    /// Q1 to Q22 in order in one session, each timed whole.
    #[default]
    Queries,
    /// RF1, the queries in order 0, RF2 (clause 5.3.3).
    Power {
        /// False leaves the refresh functions out: there is no power metric then.
        refresh: bool,
    },
    /// Several streams of queries at once, and one that executes a pair of refresh functions for
    /// each of them (clause 5.3.4).
    Throughput {
        /// Streams of queries, from 1.
        streams: u32,
        /// False leaves the refresh stream out.
        refresh: bool,
    },
    /// Pairs of refresh functions alone.
    Refresh { pairs: u32 },
    /// Runs of a power test and, at once, a throughput test, both with refresh functions; the run with the lower
    /// composite counts (chapter 5).
    Performance {
        /// Streams of queries of each throughput test, from 1.
        streams: u32,
        /// Runs, from 1; the specification has 2.
        runs: u32,
    },
}

impl TpchTest {
    /// The name in results: `queries`, `power`, `throughput`, `refresh` or `performance`.
    pub fn name(self) -> &'static str {
        match self {
            TpchTest::Queries => "queries",
            TpchTest::Power { .. } => "power",
            TpchTest::Throughput { .. } => "throughput",
            TpchTest::Refresh { .. } => "refresh",
            TpchTest::Performance { .. } => "performance",
        }
    }

    /// Whether it executes refresh functions.
    pub fn refreshes(self) -> bool {
        self.pairs() > 0
    }

    /// Pairs of refresh functions that it executes.
    pub fn pairs(self) -> u32 {
        match self {
            TpchTest::Power { refresh: true } => 1,
            TpchTest::Throughput { streams, refresh: true } => streams,
            TpchTest::Refresh { pairs } => pairs,
            TpchTest::Performance { streams, runs } => runs * (1 + streams),
            _ => 0,
        }
    }

    /// Fewest streams of a throughput test at a scale factor (clause 5.3.4, table 11).
    pub fn least_streams(scale: f64) -> u32 {
        let steps = [10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5];
        2 + steps.iter().filter(|step| scale >= **step).count() as u32
    }
}

/// Whether plans are taken, in a separate pass after the timed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Plans {
    /// None.
    #[default]
    Off,
    /// As the planner estimates, without executing.
    Estimated,
    /// With an execution of each query where the product can, so that workers and pages are told.
    Executed,
}

/// What [`crate::run::run`] is asked to do.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Scale factor that the database must hold.
    pub scale: f64,
    pub test: TpchTest,
    /// Workers that may share a query; 0 is off.
    pub degree: u32,
    /// How the degree is set; `None` detects the product.
    pub rule: Option<DegreeRule>,
    /// Parameters of the queries. A seed is that of the power test; the streams of a throughput test
    /// get those that follow it (clause 2.1.3.3).
    pub parameters: ParameterChoice,
    /// Seconds after which a query is cancelled; `None` is no bound.
    pub timeout_s: Option<f64>,
    pub plans: Plans,
    /// Folder in which the first trial of a run leaves its answers, for those at scales and
    /// parameters without stored answers; `None` keeps none.
    pub answers: Option<PathBuf>,
    pub who: Answerer,
    /// What was done to the caches before; goes into the result.
    pub cache: CacheFacts,
}

#[derive(Clone, Copy, Debug)]
pub struct PlanFile<'a> {
    /// Query, 1 to 22.
    pub query: u8,
    /// `json` or `txt`.
    pub extension: &'a str,
    /// The plan as the server wrote it.
    pub text: &'a str,
}

/// Follows a trial. Called from one thread, never between two timed queries of a stream.
pub trait TrialWatch {
    /// All sessions are open and the clock starts.
    fn started(&self) {}
    /// A query is sent. `stream` is 0 where there is one.
    fn sent(&self, _stream: u32, _query: u8) {}
    /// A query has ended and its answer, where there is something to hold it against, is compared.
    /// For what must survive a crash of dyno.
    fn query(&self, _facts: &QueryFacts) {}
    /// A refresh function has ended.
    fn refresh(&self, _facts: &RefreshFacts) {}
    /// A plan was taken. Returns the name of the file in the run folder that keeps it, empty when
    /// none does.
    fn plan(&self, _plan: PlanFile<'_>) -> String {
        String::new()
    }
    /// Something the user should know, in one sentence.
    fn note(&self, _text: &str) {}
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl TrialWatch for Unwatched {}
