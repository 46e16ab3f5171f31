//! Contributions of families of workloads to a paper: their sections, their words.

use crate::blocks::{Blocks, PaperTable};
use crate::evidence::{Experiment, GlossaryRow, Paper, Point, Trial};
use dyno_facts::statistics::Metric;
use dyno_facts::{Lang, Message, PublishedTable};
use dyno_judge::JudgedFamily;
use std::sync::OnceLock;

/// A family of workloads in papers, alongside how it is judged: all that only its readers need it says by itself, from
/// the trials and points of an experiment.
pub trait FamilyPaper: JudgedFamily {
    /// The heading of its chapter.
    fn title(&self) -> Message;

    /// The metric that an hour's price is compared with besides transactions.
    fn priced(&self) -> Option<Metric> {
        self.throughput()
    }

    /// Arrival and timing of its transactions.
    fn method(&self, _: &[&Trial]) -> Option<Method> {
        None
    }

    /// Blocks of an experiment besides, or instead of, the charts of load levels.
    fn section(&self, _: &Paper, _: &Experiment, _: Lang) -> Option<Blocks> {
        None
    }

    /// Its table in the summary of a paper.
    fn summary(&self, _: &Paper) -> Option<PaperTable> {
        None
    }

    /// Its trials one by one, if they are not transactions.
    fn trials(&self, _: &Paper) -> Option<PaperTable> {
        None
    }

    /// The result of an experiment in sentences, if it is not a throughput.
    fn reached(&self, _: &Paper, _: &Experiment) -> Vec<Message> {
        Vec::new()
    }

    /// The result of the best point of an experiment, if it is not that of all transactions.
    fn best(&self, _: &Paper, _: &Experiment, _: &Point) -> Option<Message> {
        None
    }

    /// Returns true if the section shows a published table already.
    fn shows(&self, _: &Experiment, _: &PublishedTable) -> bool {
        false
    }

    /// Returns true if the section tells of failures that no table of errors has.
    fn has_failures(&self, _: &Paper, _: &Experiment) -> bool {
        false
    }

    /// Words that only its readers need.
    fn glossary(&self) -> Vec<GlossaryRow> {
        Vec::new()
    }
}

/// A family's sentences on the method of measurement.
pub enum Method {
    /// Everything.
    Whole(Vec<Message>),
    /// Arrival of transactions, and the meaning of their latency.
    Arrival(Vec<Message>),
}

/// A family that adds little more than its name.
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
    /// Like [`JudgedFamily::statements`].
    pub statements: fn(&Experiment, &str, &str) -> Option<f64>,
    /// All that [`FamilyPaper::section`] says.
    pub table: fn(&Paper, &Experiment) -> Option<PaperTable>,
}

impl NamedPaper {
    pub const fn new(name: &'static str, title: &'static str) -> Self {
        NamedPaper {
            name,
            title,
            tests: &[],
            derived_from: &[],
            own_tables: &[],
            statements: |_, _, _| None,
            table: |_, _| None,
        }
    }
}

impl JudgedFamily for NamedPaper {
    fn name(&self) -> &'static str {
        self.name
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

    fn statements(&self, experiment: &Experiment, test: &str, kind: &str) -> Option<f64> {
        (self.statements)(experiment, test, kind)
    }
}

impl FamilyPaper for NamedPaper {
    fn title(&self) -> Message {
        self.title.into()
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, _: Lang) -> Option<Blocks> {
        let mut blocks = Blocks::default();
        blocks.table((self.table)(paper, experiment)?);
        Some(blocks)
    }
}

/// The families of a process, in the order of their chapters.
pub type FamilyPapers = &'static [&'static dyn FamilyPaper];

static FAMILIES: OnceLock<FamilyPapers> = OnceLock::new();

/// Registers the families of this process, also as they are judged; those of the first call stay. Trials of a family
/// that is not registered are shown as those of any workload.
pub fn register(families: FamilyPapers) {
    let _ = FAMILIES.set(families);
    dyno_judge::register(families.iter().map(|family| *family as &dyn JudgedFamily).collect());
}

/// The registered families, in the order of their chapters; none before [`register`].
pub(crate) fn families() -> impl Iterator<Item = &'static dyn FamilyPaper> {
    FAMILIES.get().copied().unwrap_or_default().iter().copied()
}

/// The family of an experiment.
pub(crate) fn find_family(experiment: &Experiment) -> Option<&'static dyn FamilyPaper> {
    let name = experiment.family?.name();
    families().find(|family| family.name() == name)
}

impl PartialEq for dyn FamilyPaper {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}
