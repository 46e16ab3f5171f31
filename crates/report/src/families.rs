//! What families of workloads add to a paper: their checks, their sections, their words.

use crate::blocks::{Blocks, PaperTable};
use crate::evidence::{Experiment, GlossaryRow, Paper, Point, Trial};
use crate::findings::checks::Rule;
use crate::text::{Lang, Message};
use dyno_facts::{PublishedTable, TrialStatus, TrialSummary};
use dyno_statistics::Metric;
use dyno_statistics::ratio::FigureBound;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

/// A family of workloads in papers. What generic sections need of its trials are the few facts in front; all that
/// only its readers need it says by itself, from the trials and points of an experiment.
pub trait FamilyPaper: Sync {
    /// The name of the workload in suites, which its records have too.
    fn name(&self) -> &'static str;

    /// The heading of its chapter.
    fn title(&self) -> Message;

    /// Parts of the names of its tests: by them experiments are known that have recorded nothing of the family.
    fn tests(&self) -> &'static [&'static str] {
        &[]
    }

    /// The benchmark of the TPC that a test of it is derived from.
    fn derived_from(&self, _test: &str) -> Option<&'static str> {
        None
    }

    /// Whether the tables of a test are known: else what is recorded of tables is of all in the database.
    fn knows_tables(&self, _test: &str) -> bool {
        true
    }

    /// True where a trial is a pass over statements that are timed one by one: it has no transactions.
    fn is_pass(&self) -> bool {
        false
    }

    /// What ranks its points, where that is not transactions per second.
    fn throughput(&self) -> Option<Metric> {
        None
    }

    /// What an hour's price is held against beside transactions.
    fn priced(&self) -> Option<Metric> {
        self.throughput()
    }

    /// What comparisons of its trials judge, the one that decides first.
    fn judged(&self) -> Option<&'static [Metric]> {
        None
    }

    /// Generic checks that its own rules replace.
    fn replaced(&self) -> &'static [&'static str] {
        &[]
    }

    /// What tells its load levels apart beside workers and rate.
    fn level(&self, _: &TrialSummary) -> Option<FamilyLevel> {
        None
    }

    /// Fills in what follows from what a trial that was cut off has recorded.
    fn complete(&self, _: &mut TrialSummary) {}

    /// What a figure of its trials is where it was not measured to its end.
    fn bound(&self, _: &TrialSummary, _: Metric) -> Option<FigureBound> {
        None
    }

    /// Whether a trial without a window has measured something.
    fn is_measured(&self, _: &TrialSummary) -> bool {
        false
    }

    /// Whether sessions are idle by design.
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

    /// How far a trial came that was cut off, where that is no stretch of time.
    fn progress(&self, _: &TrialSummary) -> Option<Message> {
        None
    }

    /// Whether its own rules look at this check of the data.
    fn judges(&self, _data_check: &str) -> bool {
        false
    }

    /// Its checks; they are made in papers with trials that have facts of the family.
    fn rules(&self) -> &'static [Rule] {
        &[]
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
    fn summary(&self, _: &Paper) -> Option<PaperTable> {
        None
    }

    /// Its trials one by one, where they are no transactions.
    fn trials(&self, _: &Paper) -> Option<PaperTable> {
        None
    }

    /// What an experiment reached, in sentences, where that is no throughput.
    fn reached(&self, _: &Paper, _: &Experiment) -> Vec<Message> {
        Vec::new()
    }

    /// What the best point of an experiment reached, where that is not said as of all transactions.
    fn best(&self, _: &Paper, _: &Experiment, _: &Point) -> Option<Message> {
        None
    }

    /// Whether the section shows a published table already.
    fn shows(&self, _: &Experiment, _: &PublishedTable) -> bool {
        false
    }

    /// Whether the section tells of failures that no table of errors has.
    fn has_failures(&self, _: &Paper, _: &Experiment) -> bool {
        false
    }

    /// Words that only its readers need.
    fn glossary(&self) -> Vec<GlossaryRow> {
        Vec::new()
    }
}

/// What a family says of how it is measured.
pub enum Method {
    /// Everything.
    Whole(Vec<Message>),
    /// How transactions arrive, and what their latency means.
    Arrival(Vec<Message>),
}

/// What tells apart the load levels of a family beside workers and rate. Trials that differ in any of it are not
/// held against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyLevel {
    /// What stands beside every number.
    pub setup: Message,
    /// Levels are listed from the smallest to the largest.
    pub size: f64,
    /// In comparisons, such as `5 warehouses, 10 terminals`.
    pub words: Message,
    /// The same in names, which are alike in all languages.
    pub name: String,
    /// The load alone, such as `10 terminals`.
    pub load: Message,
    /// Users whose work the workers execute by turns; `None` where each worker is a user.
    pub terminals: Option<u32>,
    pub scale: Option<FamilyScale>,
}

/// The size of the data that a load level works on.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyScale {
    /// Among the conditions of published figures.
    pub name: &'static str,
    /// What is counted, in the plural.
    pub label: Message,
    pub value: f64,
}

/// A registered family.
#[derive(Clone, Copy)]
pub struct KnownFamily(&'static dyn FamilyPaper);

impl KnownFamily {
    /// The family whose facts a trial has recorded.
    pub(crate) fn of(summary: &TrialSummary) -> Option<KnownFamily> {
        let own = summary.own.as_ref()?;
        families().find(|family| family.name() == own.family)
    }

    /// That of an experiment: facts decide before names, as a script of pgbench may be called oltp, and the first
    /// family before the others.
    pub(crate) fn of_experiment(trials: &[&Trial], test: &str) -> Option<KnownFamily> {
        let test = test.to_ascii_lowercase();
        let is_named = |family: &KnownFamily| family.tests().iter().any(|part| test.contains(part));
        let of_facts = trials.iter().find_map(|trial| KnownFamily::of(&trial.summary));
        of_facts.or_else(|| families().find(is_named))
    }
}

impl Deref for KnownFamily {
    type Target = dyn FamilyPaper;

    fn deref(&self) -> &Self::Target {
        self.0
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

/// A family that adds nothing but its name.
pub struct NamedPaper {
    pub name: &'static str,
    /// The heading of its chapter.
    pub title: &'static str,
    /// Parts of the names of its tests.
    pub tests: &'static [&'static str],
    /// Parts of the names of tests that are derived from a benchmark of the TPC, and that benchmark.
    pub derived_from: &'static [(&'static str, &'static str)],
    /// Parts of the names of tests that work on tables of the user's own.
    pub own_tables: &'static [&'static str],
}

impl FamilyPaper for NamedPaper {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> Message {
        self.title.into()
    }

    fn tests(&self) -> &'static [&'static str] {
        self.tests
    }

    fn derived_from(&self, test: &str) -> Option<&'static str> {
        let derived = self.derived_from.iter().find(|(part, _)| test.contains(part));
        derived.map(|(_, benchmark)| *benchmark)
    }

    fn knows_tables(&self, test: &str) -> bool {
        !self.own_tables.iter().any(|part| test.contains(part))
    }
}

/// The families of a process, in the order of their chapters.
pub type FamilyPapers = &'static [&'static dyn FamilyPaper];

static FAMILIES: OnceLock<FamilyPapers> = OnceLock::new();

/// Registers the families of this process; those of the first call stay. Trials of a family that is not registered
/// are shown as those of any workload.
pub fn register(families: FamilyPapers) {
    let _ = FAMILIES.set(families);
}

pub(crate) fn families() -> impl Iterator<Item = KnownFamily> {
    FAMILIES.get().copied().unwrap_or_default().iter().copied().map(KnownFamily)
}

/// A summary with all that follows from what was recorded; a store can't tell that of a trial that was cut off.
pub fn completed(summary: &TrialSummary) -> TrialSummary {
    let mut summary = summary.clone();
    if let (TrialStatus::Interrupted, Some(family)) = (&summary.status, KnownFamily::of(&summary)) {
        family.complete(&mut summary);
    }
    summary.measures = summary.figures();
    summary
}
