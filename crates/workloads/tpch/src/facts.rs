//! Facts of a TPC-H trial beyond those of every trial.

use dyno_engine::record::Latencies;
use dyno_facts::{
    CheckVerdict, Counts, FamilyFacts, FamilyRecord, Message, StatementCounts, TrialSummary,
};
use serde::{Deserialize, Serialize};

/// A pass through the 22 queries, a power test or a throughput test, at one parallel degree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TpchFacts {
    /// Scale factor: 1 is about a gigabyte.
    pub scale: f64,
    /// `queries` (Q1 to Q22 in order), `power` or `throughput`.
    pub test: String,
    /// Parameters of the queries, such as `validation defaults` or `seed 1122063000`.
    pub parameters: Message,
    /// The parallel degree.
    pub degree: DegreeFacts,
    /// Content of the caches at its beginning.
    pub cache: CacheFacts,
    /// Seconds after which a query is given up; `None` is not a bound.
    pub timeout_s: Option<f64>,
    /// The executions in the order in which they ended; a query that was given up or failed is among them.
    pub queries: Vec<QueryFacts>,
    /// The refresh functions in the order in which they ended.
    pub refreshes: Vec<RefreshFacts>,
    /// The metrics of the execution times; `None` if a query is missing or failed.
    pub metrics: Option<TpchMetrics>,
    /// Time and steps of the load; `None` if the database does not say.
    pub load: Option<TpchLoad>,
    /// Differences of the queries' texts from the specification's, in sentences.
    pub rewrites: Vec<Message>,
    /// Points in which the trial departs from the specification, in sentences.
    pub deviations: Vec<Message>,
}

/// Parallel degree of the queries, requested and reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DegreeFacts {
    /// The degree asked for; 0 is off.
    pub asked: u32,
    /// The rule by which it was set, such as `postgres`; empty if the product has no degree.
    pub rule: String,
    /// The statements that set it.
    pub statements: Vec<String>,
    /// Most workers that a plan of these queries had at work, as the plans say; `None` where plans
    /// were not taken or do not tell.
    pub got: Option<u32>,
    /// Remark on it, in a sentence: no such product, no effect, fewer than asked.
    pub remark: Option<Message>,
}

/// Content of the caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheFacts {
    /// `warm`, `cold` or `as found`.
    pub state: String,
    /// The preparation of the caches and its proof, in sentences.
    pub evidence: Vec<Message>,
    /// Outcome of the proof; `None` if the server tells nothing of its caches.
    pub verdict: Option<CheckVerdict>,
}

/// End of an execution of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryOutcome {
    /// All rows were received.
    #[default]
    Answered,
    /// Was given up at the bound; its time is that of the bound.
    TimedOut,
    /// The server answered with an error.
    Failed(String),
    /// The user has ended the trial.
    Interrupted,
}

/// One execution of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueryFacts {
    /// 1 to 22.
    pub query: u8,
    /// Number of the stream; 0 if there is one.
    pub stream: u32,
    /// Its parameters in the order of clause 2.4.
    pub parameters: Vec<String>,
    /// When it was sent, seconds from the begin of the trial.
    pub began_s: f64,
    /// From its first character sent to its last row received, seconds.
    pub seconds: f64,
    /// When the session was free again, seconds from the begin of the trial: later than its time says
    /// if it was given up and the server took long to stop.
    pub ended_s: f64,
    /// Rows received.
    pub rows: u64,
    pub outcome: QueryOutcome,
    /// Its answer against the one it is held against; `None` if there is none.
    pub answer: Option<AnswerFacts>,
    /// Its plan; `None` if none was taken.
    pub plan: Option<PlanFacts>,
}

impl QueryFacts {
    /// The verdict on its answer, `NotMade` if it was not compared; `None` if it has none.
    pub(crate) fn verdict(&self) -> Option<CheckVerdict> {
        let verdict = self.answer.as_ref().map_or(CheckVerdict::NotMade, |answer| answer.verdict);
        (self.outcome == QueryOutcome::Answered).then_some(verdict)
    }
}

/// An answer held against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerFacts {
    /// Passed if all rows agree.
    pub verdict: CheckVerdict,
    /// The source of the expected answer, such as `the reference at scale factor 1`.
    pub against: Message,
    /// The rows that differ, in sentences; at most the first ten and how many more there are.
    pub differences: Vec<Message>,
}

/// A plan, taken apart from the timed execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanFacts {
    /// File within the run folder.
    pub file: String,
    /// Names the plan's shape: two plans with the same nodes, relations and indexes have the same.
    pub shape: String,
    /// Most workers at work at once as the plan says; `None` if it does not.
    pub workers: Option<u32>,
}

/// One execution of a refresh function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshFacts {
    /// 1 inserts, 2 deletes.
    pub function: u8,
    /// Number of the pair, from 1.
    pub pair: u32,
    /// When it began, seconds from the begin of the trial.
    pub began_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Rows inserted or deleted in orders and lineitem together.
    pub rows: u64,
    pub outcome: QueryOutcome,
}

/// Metrics of the execution times. None of these is a TPC result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TpchMetrics {
    /// Sum of the times of the queries, seconds; of a throughput test from its begin to its end.
    pub total_s: f64,
    /// Geometric mean of the times of the queries, seconds.
    pub geometric_mean_s: f64,
    /// 3600 * SF / (product of the 22 query and 2 refresh times)^(1/24); `None` without refresh
    /// functions.
    pub power: Option<f64>,
    /// Streams * 22 * 3600 * SF / seconds; `None` unless it is a throughput test.
    pub throughput: Option<f64>,
    /// Square root of power times throughput; `None` unless both were measured on the same load.
    pub qphh: Option<f64>,
    /// Formula of each, with its numbers, in lines.
    pub formulas: Vec<Message>,
    /// Queries that count with a penalty because they were given up.
    pub penalized: Vec<u8>,
}

/// The load of the data, as the database itself remembers it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TpchLoad {
    /// RFC 3339, UTC: when it was complete.
    pub finished_at: String,
    /// The steps in order.
    pub steps: Vec<LoadStep>,
    /// Seconds in which at least one step but the warm-up was being done: less than their sum where steps overlapped.
    /// `None` if the database does not say.
    pub seconds: Option<f64>,
    /// Data and indexes, bytes; `None` if the server does not say.
    pub size_bytes: Option<u64>,
    /// Pairs of refresh functions applied since: answers are only valid at 0.
    pub refresh_pairs: u32,
    /// Number of attempts at the load: more than 1 says that it was interrupted, and that the seconds
    /// of its steps leave out the work that was lost. 0 if the database does not say.
    pub attempts: u32,
}

/// One step of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadStep {
    /// `create`, `load`, `primary-keys`, `foreign-keys`, `indexes`, `analyze`, `warm-up`, or one of
    /// these, a slash and the name of a table.
    pub name: String,
    pub seconds: f64,
    /// Rows it stored; 0 if it stored none.
    pub rows: u64,
}

impl LoadStep {
    /// Returns true for the part of a step that concerns one table.
    pub(crate) fn is_part(&self) -> bool {
        self.name.contains('/')
    }
}

impl FamilyRecord for TpchFacts {
    const FAMILY: &'static str = "tpch";
    const IS_PASS: bool = true;
}

impl TpchFacts {
    /// Fills what follows from the executions, and keeps them. An execution counts as a transaction
    /// of one statement; those that were interrupted are in flight.
    pub fn set_totals(&self, summary: &mut TrialSummary) {
        let mut latency = Latencies::new();
        let mut statements = StatementCounts::default();
        for query in self.queries.iter().filter(|query| query.outcome == QueryOutcome::Answered) {
            latency.record((query.seconds * 1e9) as u64);
            statements.rows_read += query.rows;
        }
        let queries =
            self.queries.iter().map(|query| (query.began_s + query.seconds, &query.outcome));
        let refreshes = self
            .refreshes
            .iter()
            .map(|refresh| (refresh.began_s + refresh.seconds, &refresh.outcome));
        let mut counts = Counts::default();
        summary.window_s = 0.0;
        for (ended_s, outcome) in queries.chain(refreshes) {
            summary.window_s = summary.window_s.max(ended_s);
            counts.started += 1;
            match outcome {
                QueryOutcome::Answered => counts.committed += 1,
                QueryOutcome::TimedOut | QueryOutcome::Failed(_) => counts.failed += 1,
                QueryOutcome::Interrupted => {}
            }
        }
        statements.reads = latency.count();
        statements.writes = counts.committed - statements.reads;
        statements.rows_written = self.refreshes.iter().map(|refresh| refresh.rows).sum();
        summary.in_flight = counts.in_flight();
        summary.tps = counts.committed as f64 / summary.window_s.max(1e-9);
        summary.qps = summary.tps;
        (summary.counts, summary.statements) = (counts, statements);
        summary.latency = (&latency).into();
        summary.own = Some(FamilyFacts::new(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{TrialIdentity, TrialStatus};

    fn new_query(query: u8, began_s: f64, outcome: QueryOutcome) -> QueryFacts {
        QueryFacts { query, began_s, seconds: 0.5, rows: 10, outcome, ..QueryFacts::default() }
    }

    #[test]
    fn totals_of_a_trial_that_was_cut_off_follow_from_what_had_ended() {
        let refresh = RefreshFacts { function: 1, seconds: 0.25, rows: 70, ..<_>::default() };
        let queries = vec![
            new_query(14, 0.25, QueryOutcome::Answered),
            new_query(2, 0.75, QueryOutcome::TimedOut),
            new_query(9, 1.25, QueryOutcome::Failed("out of memory".to_owned())),
        ];
        let facts = TpchFacts { queries, refreshes: vec![refresh], ..TpchFacts::default() };
        let mut summary = TrialIdentity::default().summary(TrialStatus::Interrupted);
        facts.set_totals(&mut summary);
        let counts = summary.counts;
        assert_eq!(
            (counts.started, counts.committed, counts.failed, summary.in_flight),
            (4, 2, 2, 0)
        );
        assert_eq!((summary.statements.rows_read, summary.statements.rows_written), (10, 70));
        assert!((summary.window_s - 1.75).abs() < 1e-9, "{}", summary.window_s);
        assert_eq!(summary.own::<TpchFacts>(), Some(&facts));
    }
}
