//! Targets that stand beside each other, and what is known of each: read from the server, or stated by
//! the suite.

use super::Case;
use crate::evidence::{Experiment, PaperTarget, Trial, nodes_of, settings};
use crate::families::KnownFamily;
use crate::format;
use crate::text::Message;
use dyno_facts::{NodeConditions, StatementCounts, TargetFacts, say};
use dyno_statistics::median;

/// Two targets that an experiment measured.
pub(crate) struct TargetPair<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) baseline: TargetSide<'a>,
    pub(super) candidate: TargetSide<'a>,
}

/// Of the reads: what a server writes by itself, such as its own statistics, is less.
const OWN_WRITES: f64 = 0.01;

impl<'a> TargetPair<'a> {
    pub(super) fn labels(&self) -> [&'a str; 2] {
        [self.baseline.label(), self.candidate.label()]
    }

    /// Whether the experiment wrote nothing on both sides.
    pub(super) fn only_reads(&self) -> bool {
        let all = self.baseline.trials.iter().chain(&self.candidate.trials);
        let mut measured = all.filter(|trial| trial.summary.statements.total() > 0).peekable();
        let asks_servers = !self.experiment.is_pass() && has_unknown_statements(self.experiment);
        measured.peek().is_some() && measured.all(|trial| wrote_nothing(trial, asks_servers))
    }
}

/// Returns true if the user wrote its statements: a function may write and answer with rows as a query does.
pub(super) fn has_unknown_statements(experiment: &Experiment) -> bool {
    let is_own = |family: KnownFamily| family.knows_tables(&experiment.test);
    !experiment.scripts.is_empty() || !experiment.family.is_some_and(is_own)
}

/// As the client counts, and the servers where the client can't know. Servers count the writes of other clients too, and
/// PostgreSQL those of a load until its statistics have arrived. A pass has too few statements to be told from these.
fn wrote_nothing(trial: &Trial, asks_servers: bool) -> bool {
    let (done, wasted) = (trial.summary.statements, trial.summary.wasted);
    let is_read_only =
        |of: StatementCounts| of.writes == 0 && of.misses == 0 && of.rows_written == 0;
    let most = OWN_WRITES * done.reads as f64;
    let mut of_servers = nodes_of(trial).filter_map(|(_, node)| node.writes.max(node.rows_written));
    done.reads > 0
        && is_read_only(done)
        && is_read_only(wasted)
        && (!asks_servers || of_servers.all(|written| written as f64 <= most))
}

/// A target in an experiment.
pub(super) struct TargetSide<'a> {
    pub(super) target: &'a PaperTarget,
    facts: Option<&'a TargetFacts>,
    /// Its trials in that experiment.
    pub(super) trials: Vec<&'a Trial>,
}

/// How much data a target has.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataAmount {
    pub(super) tables: usize,
    /// As servers estimate or count them, all tables together.
    pub(super) rows: u64,
    /// Size of the database.
    pub(super) bytes: Option<u64>,
}

/// Something that is known of a target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) value: String,
    /// True when nobody has checked it.
    pub(super) is_stated: bool,
}

impl Fact {
    fn read(value: impl Into<String>) -> Fact {
        Fact { value: value.into(), is_stated: false }
    }

    fn stated(value: impl Into<String>) -> Fact {
        Fact { value: value.into(), is_stated: true }
    }

    pub(super) fn text(&self) -> Message {
        match self.is_stated {
            true => say!(value_stated, value = &self.value),
            false => Message::verbatim(&self.value),
        }
    }

    /// Equal whatever the spelling: `READ-COMMITTED`, `read committed`.
    fn is_same(&self, other: &Fact) -> bool {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_'], " ");
        plain(&self.value) == plain(&other.value)
    }
}

/// What differs, such as `isolation: read committed against repeatable read`; `None` where it is the
/// same or unknown on one side.
pub(super) fn difference(name: Message, a: Option<Fact>, b: Option<Fact>) -> Option<Message> {
    let (a, b) = (a?, b?);
    (!a.is_same(&b)).then(|| say!(name_a_against_b, name = name, a = a.text(), b = b.text()))
}

/// What is compared: as the suite says, or else the first target of an experiment with all others.
pub(super) fn pairs<'a>(case: &Case<'a>) -> Vec<TargetPair<'a>> {
    let mut pairs = Vec::new();
    for experiment in case.measured() {
        let has_points = |target: &&PaperTarget| {
            experiment.points.iter().any(|point| point.target == target.label)
        };
        let targets: Vec<&PaperTarget> = case.evidence.targets.iter().filter(has_points).collect();
        let planned = case.planned(experiment);
        let is_baseline = |target: &&&PaperTarget| {
            let mut comparisons = planned.iter().filter_map(|facts| facts.comparison.as_ref());
            comparisons.any(|comparison| comparison.baseline == target.facts.name)
        };
        let Some(first) = targets.iter().find(is_baseline).or_else(|| targets.first()) else {
            continue;
        };
        for other in targets.iter().filter(|target| target.label != first.label) {
            let side = |target| TargetSide::of(case, experiment, target);
            pairs.push(TargetPair { experiment, baseline: side(first), candidate: side(other) });
        }
    }
    pairs
}

impl<'a> TargetSide<'a> {
    fn of(case: &Case<'a>, experiment: &Experiment, target: &'a PaperTarget) -> TargetSide<'a> {
        let mut trials = case.trials(experiment);
        trials.retain(|trial| trial.target == target.label);
        TargetSide { target, facts: case.facts(target), trials }
    }

    pub(super) fn label(&self) -> &'a str {
        &self.target.label
    }

    /// Product without version.
    pub(super) fn product(&self) -> &'a str {
        self.target.product.split(' ').next().unwrap_or_default()
    }

    /// The part of the version that decides how a server behaves: `8.0` of MySQL, `10.11` of MariaDB,
    /// `15` of PostgreSQL from 10 on.
    pub(super) fn major_version(&self) -> Option<Fact> {
        self.target.major_version().map(Fact::read)
    }

    /// What the suite states of a fact.
    pub(super) fn stated(&self, name: &str) -> Option<Fact> {
        let value = self.facts?.stated.get(name).filter(|value| !value.is_empty())?;
        Some(Fact::stated(value))
    }

    /// What a node of the first trial that knows it says of a fact; else what the suite states.
    fn told(&self, name: &str, read: fn(&NodeConditions) -> Option<String>) -> Option<Fact> {
        let mut nodes = self.trials.iter().flat_map(|trial| nodes_of(trial));
        let found = nodes.find_map(|(_, node)| read(node)).map(Fact::read);
        found.or_else(|| self.stated(name))
    }

    pub(super) fn vcpu(&self) -> Option<Fact> {
        self.facts?.vcpu.map(|vcpu| Fact::stated(format::plain(vcpu)))
    }

    pub(super) fn memory_gib(&self) -> Option<Fact> {
        self.facts?.memory_gib.map(|memory| Fact::stated(format::plain(memory)))
    }

    pub(super) fn class(&self) -> Option<Fact> {
        let class = Some(&self.target.facts.class).filter(|class| !class.is_empty())?;
        Some(Fact::stated(class))
    }

    /// The isolation level of sessions: as a workload asked for it, or as the server gives it.
    pub(super) fn isolation(&self) -> Option<Fact> {
        let asked = self.trials.iter().find_map(|trial| {
            KnownFamily::of(&trial.summary)?.isolation(&trial.summary).map(Fact::read)
        });
        let of_settings = || settings::isolation(self.target).map(Fact::read);
        asked.or_else(|| self.told("isolation", |node| node.isolation.clone())).or_else(of_settings)
    }

    /// Whether MySQL or MariaDB writes one; other products have none.
    pub(super) fn binary_log(&self) -> Option<Fact> {
        self.target.all_settings.get("log_bin").map(Fact::read)
    }

    pub(super) fn transport(&self) -> Option<Fact> {
        self.told("transport", |node| node.transport.clone())
    }

    pub(super) fn schema(&self) -> Option<Fact> {
        self.told("schema", |node| node.schema_checksum.clone())
    }

    /// What its servers say of the tables before the first trial that knows it.
    pub(super) fn amount(&self) -> Option<DataAmount> {
        let known = |trial: &&&Trial| nodes_of(trial).any(|(_, node)| !node.table_rows.is_empty());
        let trial = self.trials.iter().find(known)?;
        let nodes = || nodes_of(trial).filter(|(_, node)| !node.table_rows.is_empty());
        // Shards hold a part each; all others hold everything.
        let shards: Vec<_> =
            nodes().filter(|(_, node)| node.role.as_deref() == Some("shard")).collect();
        let holders = if shards.is_empty() { nodes().take(1).collect() } else { shards };
        Some(DataAmount {
            tables: holders.iter().map(|(_, node)| node.table_rows.len()).max()?,
            rows: holders.iter().flat_map(|(_, node)| node.table_rows.values()).sum(),
            bytes: holders.iter().map(|(_, node)| node.data_bytes).sum(),
        })
    }

    /// Median over the trials of the longest round trip to a node, microseconds.
    pub(super) fn round_trip_us(&self) -> Option<f64> {
        let longest = |trial: &&Trial| {
            let trips = nodes_of(trial).filter_map(|(_, node)| node.round_trip_us);
            trips.reduce(f64::max)
        };
        let trips: Vec<f64> = self.trials.iter().filter_map(longest).collect();
        let stated = || self.stated("round_trip_us")?.value.parse().ok();
        median(&trips).or_else(stated)
    }

    /// Whether a commit is on disk when it is acknowledged, as far as settings tell; `None` where they
    /// could not be read.
    pub(super) fn is_on_disk(&self) -> Option<bool> {
        let settings = &self.target.settings;
        (!settings.is_empty()).then(|| !settings.iter().any(|setting| setting.is_weak))
    }

    /// Whether another copy has a commit when it is acknowledged, and who says so how.
    pub(super) fn copies(&self) -> Option<(bool, Fact)> {
        let mut nodes = self.trials.iter().flat_map(|trial| nodes_of(trial));
        if let Some(wait) = nodes.find_map(|(_, node)| node.acknowledged_by.as_ref()) {
            return Some((wait.has_copy(), Fact::read(wait.words().to_string())));
        }
        let durability = || self.facts?.durability.as_ref().map(Fact::stated);
        let stated = self.stated("acknowledged_by").or_else(durability);
        let fact = stated.or_else(|| self.stated("durability"))?;
        Some((has_copy(&fact.value)?, fact))
    }
}

/// Whether a suite's words such as `quorum 2 of 3`, `1 semi-sync replica`, `local` or `asynchronous replica`
/// say that a commit waits for another copy; `None` where they say neither.
pub(super) fn has_copy(words: &str) -> Option<bool> {
    let words = words.to_lowercase();
    let words: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let is_quorum =
        has(&["quorum", "majority", "semi", "semisync", "semisynchronous", "paxos", "raft"])
            || words.windows(2).any(|pair| pair == ["shared", "storage"])
            || (has(&["any", "first", "all"]) && has(&["of", "replicas", "standbys"]));
    let is_local = has(&["local", "nothing", "async", "asynchronous", "none", "single", "alone"]);
    let is_sync =
        has(&["sync", "synchronous"]) && has(&["replica", "replicas", "standby", "standbys"]);
    match (is_quorum || (is_sync && !is_local), is_local) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_and_a_semi_synchronous_replica_are_alike() {
        let copy = [
            "shared storage, written to a quorum of three copies",
            "primary and a semi-synchronous replica, as the comparison demands",
            "1 semi-sync replica",
            "any 2 of 3",
            "1 sync standby",
            "synchronous_commit on, full_page_writes off, shared storage",
        ];
        for words in copy {
            assert_eq!(has_copy(words), Some(true), "{words}");
        }
        for words in [
            "local",
            "asynchronous replica",
            "async",
            "a single node, flushed",
            "nothing (synchronous_commit = off)",
        ] {
            assert_eq!(has_copy(words), Some(false), "{words}");
        }
        for words in ["", "flushed at each commit", "synchronous_commit on"] {
            assert_eq!(has_copy(words), None, "{words}");
        }
    }

    #[test]
    fn spelling_is_no_difference() {
        let fact = |value: &str| Some(Fact::read(value));
        let name = || Message::verbatim("isolation");
        assert_eq!(difference(name(), fact("READ-COMMITTED"), fact("read committed")), None);
        assert_eq!(difference(name(), fact("read committed"), None), None);
        let found = difference(name(), fact("a"), Some(Fact::stated("b")));
        assert_eq!(found.expect("they differ"), "isolation: a against b (stated)");
    }
}
