//! The trial that runs, or the last one that ran.

use super::Update;
use super::tail::Tail;
use super::view::{QueryView, RowView, TrialView};
use dyno_facts::{NodeRow, SeriesRow};
use dyno_store::{read_nodes, read_series};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Rows that are kept: a day of seconds.
const MOST_ROWS: usize = 100_000;

/// What the intervals of a trial add up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) committed: u64,
    pub(crate) rolled_back: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) retries: u64,
    pub(crate) reconnects: u64,
    pub(crate) errors: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) others: u64,
    pub(crate) loops_cpu_s: f64,
}

impl Totals {
    fn add(&mut self, row: &SeriesRow) {
        self.committed += row.committed;
        self.rolled_back += row.rolled_back;
        self.failed += row.failed;
        self.skipped += row.skipped;
        self.retries += row.retries;
        self.reconnects += row.reconnects;
        self.errors += row.errors;
        self.reads += row.reads;
        self.writes += row.writes;
        self.others += row.others;
        self.loops_cpu_s += row.loops_cpu_s;
    }
}

/// A trial and the files that grow with it.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) view: TrialView,
    /// When it began to connect, RFC 3339.
    pub(crate) began_at: String,
    pub(crate) rows: Vec<RowView>,
    pub(crate) nodes: Vec<NodeRow>,
    pub(crate) queries: Vec<QueryView>,
    pub(crate) totals: Totals,
    /// Of the measured window alone, and its seconds so far.
    measured: (Totals, f64),
    /// The last interval, whatever its phase.
    pub(crate) last: Option<SeriesRow>,
    series: Tail,
    node_series: Tail,
    executed: Tail,
}

#[derive(Debug, Serialize)]
pub(crate) struct Stored {
    rows: Vec<RowView>,
    nodes: Vec<NodeRow>,
    queries: Vec<QueryView>,
}

pub(crate) fn stored(run: &Path, number: u32) -> Stored {
    let view = TrialView { number, ..TrialView::default() };
    let mut trial = Current::new(run, view, String::new());
    trial.poll();
    Stored { rows: trial.rows, nodes: trial.nodes, queries: trial.queries }
}

/// A line of `trials/<n>.executed.jsonl`; refresh functions are not shown.
#[derive(Deserialize)]
struct Executed {
    queries: Option<QueryView>,
}

impl Current {
    pub(crate) fn new(run: &Path, view: TrialView, began_at: String) -> Self {
        let stem = view.number;
        let tail =
            |extension: &str| Tail::new(run.join("trials").join(format!("{stem}.{extension}")));
        Current {
            view,
            began_at,
            rows: Vec::new(),
            nodes: Vec::new(),
            queries: Vec::new(),
            totals: Totals::default(),
            measured: (Totals::default(), 0.0),
            last: None,
            series: tail("csv"),
            node_series: tail("nodes.csv"),
            executed: tail("executed.jsonl"),
        }
    }

    /// What was added to its files since the last call.
    pub(crate) fn poll(&mut self) -> Vec<Update> {
        let mut updates = Vec::new();
        if let Some(text) = self.series.table() {
            // A damaged line is left out: there is nobody to be told while it runs.
            let (rows, _) = read_series(&text);
            let views: Vec<RowView> = rows.iter().map(RowView::from).collect();
            for row in &rows {
                self.totals.add(row);
                if row.phase == "measured" {
                    self.measured.0.add(row);
                    self.measured.1 += row.length_s;
                }
            }
            self.last = rows.into_iter().next_back().or(self.last.take());
            extend(&mut self.rows, &views);
            updates.push(Update::Rows(views));
        }
        if let Some(text) = self.node_series.table() {
            let (rows, _) = read_nodes(&text);
            extend(&mut self.nodes, &rows);
            updates.push(Update::Nodes(rows));
        }
        let text = self.executed.lines();
        let ended =
            text.lines().filter_map(|line| serde_json::from_str::<Executed>(line).ok()?.queries);
        let queries: Vec<QueryView> = ended.collect();
        if !queries.is_empty() {
            extend(&mut self.queries, &queries);
            updates.push(Update::Queries(queries));
        }
        updates
    }

    /// Its writer was killed: there will be no summary but what its intervals add up to. Percentiles don't
    /// add up.
    pub(crate) fn cut_off(&mut self) {
        let (totals, seconds) = &self.measured;
        let per_s = |count: u64| if *seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        self.view.status = "interrupted";
        self.view.tps = per_s(totals.committed);
        self.view.qps = per_s(totals.reads + totals.writes + totals.others);
        self.view.errors = totals.errors;
        self.view.failed = totals.failed;
        self.view.retries = totals.retries;
    }
}

fn extend<T: Clone>(known: &mut Vec<T>, new: &[T]) {
    known.extend_from_slice(new);
    let surplus = known.len().saturating_sub(MOST_ROWS);
    known.drain(..surplus);
}
