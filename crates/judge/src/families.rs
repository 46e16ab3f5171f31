//! Contributions of families of workloads to evidence and checks: their figures, their load levels, their rules.

use crate::evidence::{Experiment, Trial};
use crate::findings::checks::Rule;
use dyno_facts::statistics::Metric;
use dyno_facts::statistics::ratio::FigureBound;
use dyno_facts::{Message, TrialStatus, TrialSummary};
use std::fmt;
use std::sync::OnceLock;

/// A family of workloads as its trials are judged.
pub trait JudgedFamily: Sync {
    /// The name of the workload in suites, which its records have too.
    fn name(&self) -> &'static str;

    /// Parts of the names of its tests: by them experiments are known that have recorded nothing of the family.
    fn tests(&self) -> &'static [&'static str] {
        &[]
    }

    /// The benchmark of the TPC that a test of it is derived from.
    fn derived_from(&self, _test: &str) -> Option<&'static str> {
        None
    }

    /// Returns true if the tables of a test are known: else what is recorded of tables is of all in the database.
    fn knows_tables(&self, _test: &str) -> bool {
        true
    }

    /// Returns true if a trial is a pass over statements that are timed one by one: it has no transactions.
    fn is_pass(&self) -> bool {
        false
    }

    /// The metric that ranks its points, if that is not transactions per second.
    fn throughput(&self) -> Option<Metric> {
        None
    }

    /// The metrics that comparisons of its trials judge, the deciding one first.
    fn judged_metrics(&self) -> Option<&'static [Metric]> {
        None
    }

    /// Generic checks that its own rules replace.
    fn replaced(&self) -> &'static [&'static str] {
        &[]
    }

    /// The family's part of its load levels, besides workers and rate.
    fn level(&self, _: &TrialSummary) -> Option<FamilyLevel> {
        None
    }

    /// Fills in what follows from what a trial that was cut off has recorded.
    fn complete(&self, _: &mut TrialSummary) {}

    /// Direction of a figure of its trials that was not measured to its end.
    fn bound(&self, _: &TrialSummary, _: Metric) -> Option<FigureBound> {
        None
    }

    /// Returns true if a trial without a window has measured something.
    fn is_measured(&self, _: &TrialSummary) -> bool {
        false
    }

    /// Returns true if sessions are idle by design.
    fn is_paced(&self, _: &TrialSummary) -> bool {
        false
    }

    /// The isolation level that its sessions asked for.
    fn isolation(&self, _: &TrialSummary) -> Option<String> {
        None
    }

    /// The planned weight of a kind of transaction.
    fn weight(&self, _: &TrialSummary, _kind: &str) -> Option<f64> {
        None
    }

    /// Statements of a transaction of this kind as the options of the experiment ask for; `None` if that is not
    /// known, and of experiments of others. The test is as the trial names it.
    fn statements(&self, _: &Experiment, _test: &str, _kind: &str) -> Option<f64> {
        None
    }

    /// Progress of a trial that was cut off, if that is not a stretch of time.
    fn progress(&self, _: &TrialSummary) -> Option<Message> {
        None
    }

    /// Returns true if its own rules look at this check of the data.
    fn judges(&self, _data_check: &str) -> bool {
        false
    }

    /// Its checks; they are made in papers with trials that have facts of the family.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }
}

/// The family's part of a load level, besides workers and rate. Trials that differ in it are not
/// held against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyLevel {
    /// The conditions printed with every number.
    pub setup: Message,
    /// Levels are listed from the smallest to the largest.
    pub size: f64,
    /// The words of comparisons, such as `5 warehouses, 10 terminals`.
    pub words: Message,
    /// The words as names, which are alike in all languages.
    pub name: String,
    /// The load alone, such as `10 terminals`.
    pub load: Message,
    /// Users whose work the workers execute by turns; `None` if each worker is a user.
    pub terminals: Option<u32>,
    pub scale: Option<FamilyScale>,
}

/// The size of the data that a load level works on.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyScale {
    /// Among the conditions of published figures.
    pub name: &'static str,
    /// The name of the counted things, in the plural.
    pub label: Message,
    pub value: f64,
}

/// A registered family.
pub type KnownFamily = dyn JudgedFamily;

impl KnownFamily {
    /// The family whose facts a trial has recorded.
    pub fn from_summary(summary: &TrialSummary) -> Option<&'static KnownFamily> {
        let facts = summary.own.as_ref()?;
        families().find(|family| family.name() == facts.family)
    }

    /// The family of an experiment: facts decide before names, as a script of pgbench may be called oltp, and the first
    /// family before the others.
    pub fn for_experiment(trials: &[&Trial], test: &str) -> Option<&'static KnownFamily> {
        let test = test.to_ascii_lowercase();
        let is_named =
            |family: &&KnownFamily| family.tests().iter().any(|part| test.contains(part));
        let recorded = trials.iter().find_map(|trial| KnownFamily::from_summary(&trial.summary));
        recorded.or_else(|| families().find(is_named))
    }
}

impl PartialEq for KnownFamily {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for KnownFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

static FAMILIES: OnceLock<Vec<&'static KnownFamily>> = OnceLock::new();

/// Registers the families of this process; those of the first call stay. Trials of a family that is not registered
/// are judged as those of any workload.
pub fn register(families: Vec<&'static KnownFamily>) {
    let _ = FAMILIES.set(families);
}

/// The registered families, in their order.
pub fn families() -> impl Iterator<Item = &'static KnownFamily> {
    FAMILIES.get().into_iter().flatten().copied()
}

/// A summary with all that follows from what was recorded; a store can't tell that of a trial that was cut off.
pub fn completed(summary: &TrialSummary) -> TrialSummary {
    let mut summary = summary.clone();
    if let (TrialStatus::Interrupted, Some(family)) =
        (&summary.status, KnownFamily::from_summary(&summary))
    {
        family.complete(&mut summary);
    }
    summary.measures = summary.figures();
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain;

    impl JudgedFamily for Plain {
        fn name(&self) -> &'static str {
            "plain"
        }
    }

    #[test]
    fn a_family_that_says_nothing_is_judged_as_any_workload() {
        let summary = TrialSummary::default();
        assert_eq!((Plain.tests().len(), Plain.replaced().len(), Plain.rules().len()), (0, 0, 0));
        assert!(Plain.knows_tables("x"));
        let is = [
            Plain.is_pass(),
            Plain.is_measured(&summary),
            Plain.is_paced(&summary),
            Plain.judges("x"),
            Plain.throughput().is_some(),
            Plain.judged_metrics().is_some(),
            Plain.level(&summary).is_some(),
            Plain.progress(&summary).is_some(),
            Plain.bound(&summary, Metric::Tps).is_some(),
        ];
        assert_eq!(is, [false; 9]);
        assert_eq!((Plain.isolation(&summary), Plain.weight(&summary, "x")), (None, None));
        assert_eq!(Plain.derived_from("x"), None);
    }
}
