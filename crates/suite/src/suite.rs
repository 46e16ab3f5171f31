//! A suite file as it is written, and the suites that every dyno carries with it.

use crate::compare::Compare;
use crate::parse::read_file;
use crate::reader::{Problem, Reader, Sheet, Source, Span, SuiteError};
use dyno_core::nearest;
use dyno_core::offer::{DataSizing, UsualPace, WorkloadOffer};
use dyno_facts::{ExperimentFacts, Role, Route, SecretUrl, SuiteFacts, TargetFacts};

#[derive(Clone, Debug, PartialEq)]
pub struct WithSpan<T> {
    pub value: T,
    /// Bytes of the file's text.
    pub span: Span,
}

impl<T> WithSpan<T> {
    /// Drops the places.
    pub(crate) fn values(list: Vec<Self>) -> Vec<T> {
        list.into_iter().map(|item| item.value).collect()
    }
}

/// A suite file as it is written: every key is known, of the right type and in its range, and
/// every name it refers to exists. [`Plan::build`](crate::Plan::build) expands it.
#[derive(Clone, Debug)]
pub struct Suite {
    pub facts: SuiteFacts,
    /// The seed of all random streams; 1 if not given.
    pub seed: u64,
    /// Set if the activity of servers is sampled each second of a trial.
    pub sample_servers: bool,
    /// Checks whose findings end the run with exit code 4.
    pub deny: Vec<WithSpan<String>>,
    pub allow: Vec<WithSpan<String>>,
    /// Repeats of a starved trial of an experiment that does not state them.
    pub(crate) retry_starved: Option<u32>,
    pub targets: Vec<SuiteTarget>,
    pub experiments: Vec<SuiteExperiment>,
    pub(crate) text: Source,
    /// Scripts that are not files alongside the suite: names and texts.
    pub(crate) script_texts: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct SuiteTarget {
    /// `NAME` of `[target.NAME]`.
    pub name: WithSpan<String>,
    pub product: Option<String>,
    pub facts: TargetFacts,
    /// The nodes; a target with `url` has one of role primary.
    pub nodes: Vec<Node>,
    /// Route of the load to the nodes; without it, that of [`Route::default_for`].
    pub route: Option<WithSpan<Route>>,
    pub(crate) nodes_span: Span,
}

impl SuiteTarget {
    /// The keys by which rows of published figures can be matched with targets.
    pub const KEYS: [&str; 4] = ["class", "product", "vcpu", "memory_gib"];

    /// The value of one of [`SuiteTarget::KEYS`], as published figures write it; `None` if it is not given.
    pub fn value(&self, key: &str) -> Option<String> {
        match key {
            "class" => Some(self.facts.class.clone()).filter(|class| !class.is_empty()),
            "product" => self.product.clone(),
            "vcpu" => self.facts.vcpu.map(|vcpu| vcpu.to_string()),
            "memory_gib" => self.facts.memory_gib.map(|memory| memory.to_string()),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    /// Its name; without one, its role and number.
    pub name: Option<WithSpan<String>>,
    pub role: Role,
    /// Its URL; absent if the user has to give it.
    pub url: Option<WithSpan<SecretUrl>>,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct SuiteExperiment {
    pub name: WithSpan<String>,
    /// The facts in the file, in full size. Targets, comparisons, scripts and published figures are stored
    /// alongside it: a plan takes those of the targets that have a URL.
    pub facts: ExperimentFacts,
    /// Place of the name if there is no title.
    pub(crate) title_span: Span,
    pub(crate) test: WithSpan<String>,
    /// The options that say how much data the test has.
    pub sizing: Option<DataSizing>,
    pub(crate) pace: UsualPace,
    /// Names of targets; `None` means all.
    pub targets: Option<Vec<WithSpan<String>>>,
    /// Numbers of read-only nodes: the load goes to the first N of each target. Empty means that all are.
    pub read_only: Vec<WithSpan<u64>>,
    /// The workload's options in the order of the file; `NAME.KEY` is an entry of a table, `NAME.1` of a list.
    pub options: Vec<OptionEntry>,
    pub compare: Option<Compare>,
    pub(crate) retry_starved: Option<u32>,
    pub published: Vec<Link>,
}

#[derive(Clone, Debug)]
pub struct OptionEntry {
    /// The name with underscores; with a dot and a key where the option is a table or a list.
    pub name: String,
    /// The value as it would be written on a command line: `true` is `on`.
    pub value: String,
    pub(crate) key_span: Span,
    pub(crate) value_span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionPart {
    /// The name: it is unknown or does not fit.
    Name,
    Value,
}

#[derive(Clone, Debug)]
pub struct Link {
    pub figure: WithSpan<String>,
    /// Only rows in which these columns or conditions have these values.
    pub filter: Vec<(WithSpan<String>, String)>,
    /// A row is the counterpart of a target if these columns equal the target's keys.
    pub matching: Vec<WithSpan<String>>,
    /// Targets that all these rows are the counterpart of.
    pub targets: Vec<WithSpan<String>>,
}

impl Suite {
    /// Opens a suite: the bundled one if `name` is the name of one, otherwise the file at that
    /// path. `offers` are the workloads that it may name.
    ///
    /// # Errors
    /// There is no such suite, the file can't be read, or what [`Suite::parse`] says.
    pub fn open(name: &str, offers: &[WorkloadOffer]) -> Result<Suite, SuiteError> {
        if let Some(suite) = bundled().iter().find(|suite| suite.name == name) {
            return Suite::parse(&format!("{BUNDLED_PREFIX}{name}.toml"), suite.text, offers);
        }
        match std::fs::read_to_string(name) {
            Ok(text) => Suite::parse(name, &text, offers),
            Err(error) => {
                let names: Vec<&str> = bundled().iter().map(|suite| suite.name).collect();
                let hint = match nearest(name, names.iter().copied()) {
                    Some(near) => format!("Did you mean the bundled suite `{near}`?"),
                    None => format!("Bundled suites: {}.", names.join(", ")),
                };
                let message = format!("The suite `{name}` can't be read: {error}.");
                Err(Problem::new(message).hint(hint).into())
            }
        }
    }

    /// Reads the text of a suite. `file` is what error messages call it; without a name they say no
    /// places: the text was made of something else. `offers` are the workloads that it may name.
    pub fn parse(file: &str, text: &str, offers: &[WorkloadOffer]) -> Result<Suite, SuiteError> {
        let source = Source { file: file.to_string(), text: text.to_string() };
        let root = source.parse()?;
        let sheet = Sheet::new(&source, offers);
        let suite = read_file(&sheet, Reader::new(&sheet, "The file", 0..0, root.get_ref()));
        let problems = sheet.into_problems();
        match suite {
            Some(mut suite) if problems.is_empty() => {
                suite.facts.file.clone_from(&source.file);
                Ok(Suite { text: source, ..suite })
            }
            _ => Err(SuiteError { problems }),
        }
    }

    /// Gives it the texts of scripts by their names: they are not read from files.
    pub fn with_scripts(mut self, texts: &[(String, String)]) -> Suite {
        self.script_texts = texts.to_vec();
        self
    }

    /// The target of that name.
    pub fn target(&self, name: &str) -> Option<&SuiteTarget> {
        self.targets.iter().find(|target| target.name.value == name)
    }
}

/// The handbook for authors of suites: the format, key by key.
pub const HANDBOOK: &str = include_str!("../../../suites/README.md");

#[derive(Clone, Copy, Debug)]
pub struct BundledSuite {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! suites {
    ($($name:literal),* $(,)?) => {
        &[$(BundledSuite {
            name: $name,
            text: include_str!(concat!("../../../suites/", $name, ".toml")),
        }),*]
    };
}

/// The prefix of the names of bundled suites where others have a path.
pub(crate) const BUNDLED_PREFIX: &str = "bundled:";

/// Files of bundled suites, relative to these, and their texts.
pub(crate) fn bundled_scripts() -> &'static [(&'static str, &'static str)] {
    macro_rules! scripts {
        ($($name:literal),*) => {
            &[$(($name, include_str!(concat!("../../../suites/", $name)))),*]
        };
    }
    scripts!["pgbench/read-only.sql", "pgbench/read-write.sql"]
}

/// The bundled suites, in the order in which they are listed to users.
pub fn bundled() -> &'static [BundledSuite] {
    suites![
        "quickstart",
        "mixed",
        "ci",
        "oltp",
        "pgbench",
        "tpcc",
        "tpch",
        "rds-mysql-5.6",
        "polardb-2018",
        "polardb-mysql-oltp",
        "polardb-mysql-scaleout",
        "polardb-mysql-tpch",
        "polardb-oracle-pgbench",
        "polardb-x-tpcc",
        "failover",
    ]
}
