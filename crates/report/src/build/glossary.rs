//! The words of the paper.

use super::chapters::Family;
use crate::model::Experiment;
use crate::say;
use crate::text::Text;
use serde::Serialize;

/// A word and what it means here.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GlossaryRow {
    /// The word.
    pub word: Text,
    /// Its meaning.
    pub meaning: Text,
}

/// The words that these experiments need.
pub(super) fn rows(experiments: &[Experiment]) -> Vec<GlossaryRow> {
    let mut rows = common();
    if experiments.iter().any(|experiment| experiment.tpch.is_none()) {
        rows.extend(of_transactions());
    }
    if experiments.iter().any(|experiment| !experiment.node_tables.is_empty()) {
        rows.extend(of_clusters());
    }
    let has = |family: Family| experiments.iter().any(|e| Family::of(e) == family);
    if has(Family::Tpcc) {
        rows.extend([
            row(
                say!("tpmC"),
                say!("New-Order transactions per minute whose commit was acknowledged."),
            ),
            row(say!("terminal"), say!("A virtual client of TPC-C.")),
        ]);
    }
    if has(Family::Tpch) {
        rows.push(row(
            say!("degree"),
            say!("How many workers a server may use for one query; 0 or 1 means without parallel query."),
        ));
    }
    rows
}

fn of_clusters() -> [GlossaryRow; 4] {
    [
        row(
            say!("primary"),
            say!("The node of a target that takes writes; the others copy from it."),
        ),
        row(say!("read-only node"), say!("A node that copies from the primary and answers reads.")),
        row(say!("endpoint"), say!("A proxy that spreads what it takes over the other nodes.")),
        row(say!("replica lag"), say!("How far a copy is behind its primary, in seconds.")),
    ]
}

fn row(word: Text, meaning: Text) -> GlossaryRow {
    GlossaryRow { word, meaning }
}

fn common() -> Vec<GlossaryRow> {
    vec![
        row(say!("target"), say!("A database system under test, with all its nodes and settings.")),
        row(say!("load generator"), say!("The machine that makes the load and takes the times.")),
        row(say!("statement"), say!("One SQL command of a transaction.")),
        row(
            say!("load level"),
            say!("A workload on a target with a number of workers, an offered rate or a degree."),
        ),
        row(
            say!("trial"),
            say!("One timed execution of a load level; the unit of all statistics."),
        ),
        row(
            say!("window"),
            say!("The time in which is counted: after connecting, preparing and warm-up."),
        ),
        row(
            say!("95 % interval"),
            say!(
                "A range made so that it holds the true value in 95 of 100 repetitions of the whole measurement."
            ),
        ),
        row(
            say!("check"),
            say!(
                "A computed verdict on fairness or correctness. E: not usable for a claim; W: a caveat; I: disclosed."
            ),
        ),
    ]
}

/// Words of workloads whose transactions are counted.
fn of_transactions() -> Vec<GlossaryRow> {
    vec![
        row(
            say!("worker"),
            say!(
                "A virtual client with a session and a random stream of its own; a thread of sysbench, a client of pgbench."
            ),
        ),
        row(
            say!("transaction"),
            say!("The unit of a workload that is counted and timed, its retries included."),
        ),
        row(
            say!("closed loop"),
            say!(
                "A worker begins its next transaction when the last one has ended. Latency is service time, which hides stalls."
            ),
        ),
        row(
            say!("open loop"),
            say!(
                "Transactions fall due on a schedule. Latency is counted from the due time, so that stalls show in full."
            ),
        ),
        row(
            say!("95th percentile (p95)"),
            say!(
                "The latency that 95 % of the transactions do not exceed; not printed with fewer than 10 samples beyond it."
            ),
        ),
    ]
}
