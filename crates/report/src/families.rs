//! What families of workloads add to a paper: their checks, their sections, their words. The registry is the only
//! place that names them all.

use crate::blocks::{Blocks, Table};
use crate::evidence::GlossaryRow;
use crate::evidence::{Experiment, Paper, Point, Trial};
use crate::findings::checks::Rule;
use crate::text::{Lang, Message};
use crate::{tpcc, tpch};
use dyno_facts::{TrialStatus, TrialSummary, say};
use dyno_statistics::Metric;

/// The families in the order of their chapters.
pub(crate) const FAMILIES: [&dyn FamilyPaper; 4] = [
    &Named { title: || say!(sysbench_oltp), tests: &["sysbench", "oltp"] },
    &Named { title: || "pgbench".into(), tests: &["pgbench"] },
    &tpcc::TpccPaper,
    &tpch::TpchPaper,
];

/// A family of workloads.
pub(crate) trait FamilyPaper: Sync {
    /// The heading of its chapter.
    fn title(&self) -> Message;

    /// Whether an experiment belongs to it.
    fn has(&self, experiment: &Experiment) -> bool;

    /// Fills in what follows from what a trial that was cut off has recorded.
    fn complete(&self, _: &mut TrialSummary) {}

    /// Whether a trial is a pass over statements that are timed one by one: it has no transactions.
    fn is_pass(&self, _: &TrialSummary) -> bool {
        false
    }

    /// A figure that only this family's trials have.
    fn figure(&self, _: &TrialSummary, _: Metric) -> Option<f64> {
        None
    }

    /// What comparisons of this family's trials judge, the one that decides first.
    fn judged(&self, _: &TrialSummary) -> Option<&'static [Metric]> {
        None
    }

    /// Its checks; they are made where an experiment has facts of the family.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    /// Whether an experiment has facts that only this family records.
    fn has_facts(&self, _: &Experiment) -> bool {
        false
    }

    /// How its transactions are made and timed.
    fn method(&self, _: &[&Trial]) -> Option<Method> {
        None
    }

    /// What an experiment says beside, or instead of, the charts of load levels.
    fn section(&self, _: &Paper, _: &Experiment, _: Lang) -> Option<Blocks> {
        None
    }

    /// What a terminal shows of that.
    fn terminal(&self, _: &Paper, _: &Experiment) -> Option<Blocks> {
        None
    }

    /// Its table in the summary of a paper.
    fn summary(&self, _: &Paper) -> Option<Table> {
        None
    }

    /// Its trials one by one, where they are no transactions.
    fn trials(&self, _: &Paper) -> Option<Table> {
        None
    }

    /// What an experiment reached, in sentences, where that is no throughput.
    fn reached(&self, _: &Experiment) -> Vec<Message> {
        Vec::new()
    }

    /// What the best point of an experiment reached, where that is not said as of all transactions.
    fn best(&self, _experiment: &str, _: &Point) -> Option<Message> {
        None
    }

    /// Whether the section shows a published table already.
    fn shows(&self, _: &Experiment, _title: &Message) -> bool {
        false
    }

    /// Whether the section tells of failures that no table of errors has.
    fn has_failures(&self, _: &Experiment) -> bool {
        false
    }

    /// Words that only its readers need.
    fn glossary(&self) -> Vec<GlossaryRow> {
        Vec::new()
    }
}

/// What a family says of how it is measured.
pub(crate) enum Method {
    /// Everything.
    Whole(Vec<Message>),
    /// How transactions arrive, and what their latency means.
    Arrival(Vec<Message>),
}

/// A family that adds nothing but its name.
struct Named {
    title: fn() -> Message,
    /// Parts of the names of its tests.
    tests: &'static [&'static str],
}

impl FamilyPaper for Named {
    fn title(&self) -> Message {
        (self.title)()
    }

    fn has(&self, experiment: &Experiment) -> bool {
        named(experiment, self.tests)
    }
}

/// Whether the name of an experiment's test has one of these parts.
pub(crate) fn named(experiment: &Experiment, parts: &[&str]) -> bool {
    let test = experiment.test.to_ascii_lowercase();
    parts.iter().any(|part| test.contains(part))
}

/// A summary with all that follows from what was recorded; a store can't tell that of a trial that was cut off.
pub fn completed(summary: &TrialSummary) -> TrialSummary {
    let mut summary = summary.clone();
    if summary.status == TrialStatus::Interrupted {
        FAMILIES.iter().for_each(|family| family.complete(&mut summary));
    }
    summary
}

/// Whether a trial is a pass over statements that are timed one by one: it has no transactions.
pub(crate) fn is_pass(summary: &TrialSummary) -> bool {
    FAMILIES.iter().any(|family| family.is_pass(summary))
}

/// What the family of an experiment says; `None` where it says nothing.
pub(crate) fn said<T>(of: impl Fn(&dyn FamilyPaper) -> Option<T>) -> Option<T> {
    FAMILIES.into_iter().find_map(of)
}
