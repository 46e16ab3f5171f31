//! D: same for same. Targets that are compared differ in nothing else.
//!
//! Four of these rules are the PolarDB white paper's own (chapter 7): the same node class, the same
//! major version, no single statement, equal durability.

use super::*;

/// Round trips that differ by less are alike: the smallest difference between two hosts of one rack,
/// and what a median of some hundred round trips moves by.
const ROUND_TRIP_US: f64 = 50.0;
const ROUND_TRIP_SHARE: f64 = 0.20;
/// InnoDB and PostgreSQL estimate rows from samples; loads of the same size differ by less.
const ROWS_TIMES: f64 = 1.10;
/// PostgreSQL counts rows twice for a while that it has just loaded; samples err alongside.
pub(super) const ROWS_TIMES_OF_ESTIMATES: f64 = 2.5;
/// Mean lengths of a hundred and more rows of the same generator are within a few percent of each other.
const ROW_BYTES_TIMES: f64 = 1.25;
/// Number of differing columns, indexes and settings that are named.
const MAX_NAMED: usize = 12;
/// Statements of one transaction: more than this is not a single statement.
const SINGLE_STATEMENT: f64 = 1.5;
/// A round trip within a zone takes well below a millisecond: from this median latency on it dominates nothing.
const FAR_ABOVE_A_ROUND_TRIP_US: f64 = 50_000.0;

pub(super) const RULES: &[Rule] = &[
    Rule::case(Group::D, Level::E, checks::durability, |case| {
        find_if_written(case, unlike_promises)
    }),
    Rule::pair(Group::D, Level::W, checks::node_class, class_difference),
    Rule::pair(Group::D, Level::W, checks::major_version, major_versions),
    Rule::experiment(Group::D, Level::W, checks::single_statement, single_statement),
    Rule::pair(Group::D, Level::W, checks::isolation, |pair| {
        pair.difference(say!(isolation_level), TargetSide::isolation)
    }),
    Rule::case(Group::D, Level::W, checks::binary_log, |case| {
        // MySQL and MariaDB write one; other products have none.
        let log =
            |side: &TargetSide<'_>| side.target.all_settings.get("log_bin").map(Fact::from_server);
        find_if_written(case, |pair| pair.difference(say!(binary_log), log))
    }),
    Rule::pair(Group::D, Level::W, checks::transport, |pair| {
        let connection =
            |side: &TargetSide<'_>| side.read_or_stated("transport", |node| node.transport.clone());
        let texts = [
            pair.difference(say!(connection), connection),
            pair.difference(say!(proxy), |side| side.stated_fact("proxy")),
        ];
        parts(texts.into_iter().flatten())
    }),
    Rule::pair(Group::D, Level::W, checks::round_trip, round_trips),
    Rule::pair(Group::D, Level::W, checks::schema, schema_difference),
    Rule::pair(Group::D, Level::W, checks::rows, row_difference),
    Rule::target_of_case(Group::D, Level::W, checks::data_repaired, |case, target| {
        let is_one_sided = case.measured_targets().any(|other| repair(case, other).is_none());
        repair(case, target).filter(|_| is_one_sided).cloned()
    }),
    Rule::trial(Group::D, Level::W, checks::no_statistics, |trial| {
        each_node(trial, |node| commas(&node.tables_without_statistics))
    }),
    Rule::trial(Group::D, Level::W, checks::query_cache, |trial| {
        each_node(trial, |node| node.query_cache?.then(|| say!(query_cache_enabled)))
    }),
    Rule::evidence(Group::D, Level::W, checks::settings_differ, settings_differ),
    Rule::evidence(Group::D, Level::I, checks::other_settings, other_settings),
    Rule::case(Group::D, Level::W, checks::generators_differ, generators_differ),
    Rule::target(Group::D, Level::I, checks::weak_durability, weak_settings),
    Rule::target_of_case(Group::D, Level::W, checks::unsafe_tables, |case, target| {
        let mut trials = case.evidence.trials.iter().filter(|trial| trial.target == target.label);
        let has_written = trials.any(|trial| trial.summary.statements.writes > 0);
        let engine = target.settings.iter().find(|row| row.name == settings::ENGINE);
        engine.filter(|_| has_written).map(|row| Message::verbatim(&row.value))
    }),
    Rule::trial(Group::D, Level::E, checks::durability_changed, |trial| {
        let is_undisturbed = trial.summary.fault.is_none() && trial.summary.statements.writes > 0;
        each_node(trial, |node| {
            let has_changed = is_undisturbed && node.commit_settings.len() > 1;
            parts(node.commit_settings.iter().filter(|_| has_changed).map(Message::from))
        })
    }),
    Rule::trial(Group::D, Level::W, checks::settings_reloaded, |trial| {
        let is_undisturbed = trial.summary.fault.is_none();
        each_node(trial, |node| {
            (is_undisturbed && node.was_reloaded).then(|| say!(reloaded_meanwhile))
        })
    }),
    Rule::case(Group::D, Level::E, checks::target_changed, |case| {
        repetition::each_comparison(case, |comparison| {
            Some((target_changed(case, comparison)?, VetoReach::AnyFar))
        })
    }),
];

fn weak_settings(target: &PaperTarget) -> Option<Message> {
    let weak = target.settings.iter().filter(|setting| setting.is_weak);
    commas(weak.map(|row| format!("{} = {}", row.name, row.value)))
}

/// The note of a load that made keys or indexes of complete tables again.
fn repair<'a>(case: &Case<'a>, target: &PaperTarget) -> Option<&'a Message> {
    let step = format!("/{}/prepare", target.facts.name);
    let mut events = case.run(target.run)?.events.iter();
    let repair = events.find(|event| {
        let is_load = event.prepared.as_ref().is_some_and(|id| id.ends_with(&step));
        is_load && event.text.has_key("load.indexes_made")
    });
    repair.map(|event| &event.text)
}

/// Durability settings cost nothing if nothing is written. For targets of which some experiments only
/// read, the others are named.
fn find_if_written(
    case: &Case<'_>,
    find: impl Fn(&TargetPair<'_>) -> Option<Message>,
) -> Vec<Finding> {
    let pairs = pairs(case);
    let mut findings = Vec::new();
    for pair in pairs.iter().filter(|pair| !pair.only_reads()) {
        let Some(value) = find(pair) else { continue };
        let mut same_targets = pairs.iter().filter(|other| other.labels() == pair.labels());
        let places = if same_targets.any(TargetPair::only_reads) {
            pair_places(case, pair)
        } else {
            vec![Spot::targets(pair.labels())]
        };
        findings.extend(places.into_iter().map(|place| Finding::new(place, value.clone())));
    }
    // Once for all experiments in which it is the same.
    format::unique(findings)
}

/// The comparisons of two targets in an experiment, or the experiment as a whole if it compares nothing.
fn pair_places(case: &Case<'_>, pair: &TargetPair<'_>) -> Vec<Spot> {
    let labels = pair.labels();
    let comparisons = case.verdicts.comparisons.iter().filter(|comparison| {
        comparison.experiment == pair.experiment.name
            && labels.contains(&comparison.baseline.as_str())
            && labels.contains(&comparison.candidate.as_str())
    });
    let mut places: Vec<Spot> =
        comparisons.map(|comparison| SpotKind::Comparison.at(&comparison.name)).collect();
    if places.is_empty() {
        places.push(SpotKind::Experiment.at(&pair.experiment.name));
    }
    places
}

fn unlike_promises(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let disks = a.is_on_disk().zip(b.is_on_disk()).filter(|(a, b)| a != b);
    let disks = disks.map(|_| [a, b].map(disk_promise));
    let copies = a.copies().zip(b.copies()).filter(|(a, b)| a.0 != b.0);
    let copies = copies.map(|(a, b)| [a.1.text(), b.1.text()]);
    parts(
        disks
            .into_iter()
            .chain(copies)
            .map(|[of_a, of_b]| say!(promises_of_sides, a = a.label(), of_a, b = b.label(), of_b)),
    )
}

/// Tells if a commit is on disk when it is acknowledged, with the settings that say otherwise.
fn disk_promise(side: &TargetSide<'_>) -> Message {
    match weak_settings(side.target) {
        Some(settings) => say!(not_on_disk_at_commit, settings),
        None => say!(on_disk),
    }
}

fn class_difference(pair: &TargetPair<'_>) -> Option<Message> {
    let mut texts = vec![
        pair.difference(Message::verbatim("vCPU"), |side| {
            Some(Fact::from_suite(format::plain(side.facts?.vcpu?)))
        }),
        pair.difference(say!(memory_gib), |side| {
            Some(Fact::from_suite(format::plain(side.facts?.memory_gib?)))
        }),
    ];
    if texts.iter().all(Option::is_none) {
        texts.push(pair.difference(say!(node_class), |side| {
            let class = Some(&side.target.facts.class).filter(|class| !class.is_empty());
            class.map(Fact::from_suite)
        }));
    }
    let names = [("cpu_model", say!(cpu_model)), ("disk", say!(disk)), ("zone", say!(zone))];
    texts.extend(names.map(|(name, title)| pair.difference(title, |side| side.stated_fact(name))));
    parts(texts.into_iter().flatten())
}

fn major_versions(pair: &TargetPair<'_>) -> Option<Message> {
    let product = Message::verbatim(pair.baseline.product());
    let difference = pair.difference(product, TargetSide::major_version);
    difference.filter(|_| pair.baseline.product() == pair.candidate.product())
}

fn single_statement(experiment: &Experiment) -> Option<Message> {
    if experiment.is_pass() {
        return None;
    }
    let short_points = experiment
        .points
        .iter()
        .filter(|point| point.p50_us.is_none_or(|p50| p50.median < FAR_ABOVE_A_ROUND_TRIP_US));
    let committing_points = short_points.filter(|point| point.tps.median > 0.0);
    let statements =
        committing_points.map(|point| point.qps.median / point.tps.median).reduce(f64::max)?;
    (statements < SINGLE_STATEMENT)
        .then(|| say!(statements_per_transaction, statements = format!("{statements:.1}")))
}

fn round_trips(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (pair.baseline.round_trip_us()?, pair.candidate.round_trip_us()?);
    let difference = (a - b).abs();
    (difference > ROUND_TRIP_US && difference > ROUND_TRIP_SHARE * a.min(b))
        .then(|| say!(s_against_s, a = format::whole(a), b = format::whole(b)))
}

fn schema_difference(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    // Products and versions describe the same table in different words.
    let is_comparable = a.product() == b.product() && a.major_version() == b.major_version();
    let checksums =
        pair.difference(say!(checksum), TargetSide::schema).filter(|_| is_comparable)?;
    let parts = parts_that_differ(&a.target.schema, &b.target.schema, |name, [a, b]| {
        say!(name_a_against_b, name, a, b)
    });
    Some(parts.unwrap_or(checksums))
}

/// Columns, indexes and triggers that only one side has, or that are defined otherwise.
fn parts_that_differ(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
    describe: fn(&String, [Message; 2]) -> Message,
) -> Option<Message> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differ: Vec<&String> =
        names.into_iter().filter(|name| a.get(*name) != b.get(*name)).collect();
    let texts = differ.iter().map(|name| {
        let sides = [a, b].map(|side| side.get(*name));
        let sides = sides.map(|part| part.map_or_else(|| say!(is_missing), Message::from));
        describe(name, sides)
    });
    parts_up_to(texts, MAX_NAMED)
}

/// The first of them, and how many more there are.
fn parts_up_to(texts: impl ExactSizeIterator<Item = Message>, max: usize) -> Option<Message> {
    let n = texts.len().saturating_sub(max) as u64;
    let remaining = (n > 0).then(|| say!(and_more_differences, n));
    parts(texts.take(max).chain(remaining))
}

fn row_difference(pair: &TargetPair<'_>) -> Option<Message> {
    let experiment = pair.experiment;
    if experiment.family.is_some_and(|family| !family.knows_tables(&experiment.test)) {
        return None;
    }
    let (a, b) = (pair.baseline.amount()?, pair.candidate.amount()?);
    if a.tables != b.tables || has_more_rows(a, b) || has_more_rows(b, a) {
        let [a, b] =
            [a, b].map(|amount| say!(tables_with_rows, n = amount.tables, rows = amount.rows));
        return Some(say!(a_against_b, a, b));
    }
    row_lengths(pair)
}

/// Tables of the same columns whose rows are shorter on one side.
fn row_lengths(pair: &TargetPair<'_>) -> Option<Message> {
    let sides = [&pair.baseline, &pair.candidate];
    let [a, b] = sides.map(|side| {
        let nodes = side.trials.iter().flat_map(|trial| nodes_of(trial));
        nodes.map(|(_, node)| &node.row_bytes).find(|lengths| !lengths.is_empty())
    });
    let (lengths_a, lengths_b) = a.zip(b).filter(|_| sides[0].schema() == sides[1].schema())?;
    let differences = lengths_a.iter().filter_map(|(table, a)| {
        let (a, b) = (*a, *lengths_b.get(table)?);
        (a.max(b) > ROW_BYTES_TIMES * a.min(b))
            .then(|| say!(bytes_a_row_against, table, a = format::whole(a), b = format::whole(b)))
    });
    parts(differences.take(MAX_NAMED))
}

/// Returns true if one side has more rows by more than an estimate may err, or by less and the bytes say so too: by
/// half as much, as not all of them are rows.
fn has_more_rows(more: DataAmount, less: DataAmount) -> bool {
    let (bytes, less_bytes) = more.bytes.zip(less.bytes).unwrap_or((1, 1));
    let [rows, bytes] = [(more.rows, less.rows), (bytes, less_bytes)]
        .map(|(more, less)| more as f64 / less.max(1) as f64);
    rows > ROWS_TIMES_OF_ESTIMATES || rows > ROWS_TIMES && bytes - 1.0 > (rows - 1.0) / 2.0
}

/// Settings that decide durability, memory, plans or logging, and versions.
fn settings_differ(evidence: &Evidence) -> Vec<Finding> {
    compare_products(evidence, |first, target| {
        let versions = (first.product != target.product)
            .then(|| say!(a_against_b, a = &first.product, b = &target.product));
        parts(versions.into_iter().chain(setting_differences(first, target, settings::matters)))
    })
}

/// All other settings, as far as they name no place.
fn other_settings(evidence: &Evidence) -> Vec<Finding> {
    compare_products(evidence, |first, target| {
        let settings = setting_differences(first, target, |name| !settings::matters(name));
        parts_up_to(settings.into_iter(), MAX_NAMED)
    })
}

/// The settings that both servers state with different values, among those that are `is_included`.
fn setting_differences(
    first: &PaperTarget,
    target: &PaperTarget,
    is_included: fn(&str) -> bool,
) -> Vec<Message> {
    settings_that_differ(&first.all_settings, &target.all_settings, |name, [a, b]| {
        is_included(name).then(|| say!(setting_is_a_against_b, setting = name, a, b))
    })
}

/// Settings that both have with different values, as far as they name no place.
fn settings_that_differ(
    first: &BTreeMap<String, String>,
    other: &BTreeMap<String, String>,
    describe: impl Fn(&String, [String; 2]) -> Option<Message>,
) -> Vec<Message> {
    let differences = other.iter().filter_map(|(name, value)| {
        let before = first.get(name).filter(|before| *before != value)?;
        let values = [before, value].map(|value| settings::readable(name, value));
        describe(name, values).filter(|_| !settings::is_host_specific(name))
    });
    differences.collect()
}

/// Findings of `find` for each target besides the first one of its product.
fn compare_products(
    evidence: &Evidence,
    find: impl Fn(&PaperTarget, &PaperTarget) -> Option<Message>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, target) in evidence.targets.iter().enumerate() {
        let product = target.product.split(' ').next();
        let mut earlier = evidence.targets[..index].iter();
        let Some(first) = earlier.find(|first| first.product.split(' ').next() == product) else {
            continue;
        };
        let place = Spot::targets([&first.label, &target.label]);
        findings.extend(find(first, target).map(|value| Finding::new(place, value)));
    }
    findings
}

/// Facts that a server reported differently before a trial of a comparison than before its first one, also if that
/// belongs to an earlier session, and before which.
fn target_changed(case: &Case<'_>, comparison: &PairedComparison) -> Option<Message> {
    parts([0, 1].into_iter().filter_map(|side| {
        let pairs = case.evidence.pairs(comparison);
        let trials = pairs.map(|(a, b)| if side == 0 { a } else { b }).filter_map(|trial| {
            let mut trials = case.run(trial.run)?.trials.iter();
            Some((trial, trials.find(|data| data.summary.trial == trial.summary.trial)?))
        });
        let mut trials: Vec<_> = trials.collect();
        trials.sort_by_key(|(trial, _)| (trial.run, trial.summary.trial));
        let (first_trial, first_data) = *trials.first()?;
        let sessions = &case.run(first_trial.run)?.header.continues;
        let target = &first_trial.summary.target;
        let mut earlier = sessions.iter().filter_map(|session| session.looks.get(target));
        let first = earlier.next().unwrap_or(&first_data.before);
        if let Some(value) = earlier.find_map(|nodes| describe_change(first, nodes)) {
            return Some(say!(changed_between_sessions, target = &first_trial.target, value));
        }
        trials.iter().find_map(|(trial, data)| {
            let snapshots = [&data.before, &data.after];
            let value = snapshots.into_iter().find_map(|nodes| describe_change(first, nodes))?;
            Some(say!(changed_by_trial, target = &trial.target, trial = &trial.label, value))
        })
    }))
}

/// The first node's differences from its earlier facts, in a sentence.
fn describe_change(first: &NodeFacts, nodes: &NodeFacts) -> Option<Message> {
    let mut nodes = nodes.iter();
    nodes.find_map(|(name, facts)| server_changed(first.get(name)?, facts))
}

/// Differences of a server from its earlier facts, in a sentence: settings of durability, memory, plans and logging,
/// and the tables. `None` if these are the same.
pub fn server_changed(first: &ServerFacts, now: &ServerFacts) -> Option<Message> {
    let mut differences = settings_that_differ(&first.settings, &now.settings, |name, [a, b]| {
        settings::matters(name).then(|| say!(setting_was_a_is_b, setting = name, a, b))
    });
    let is_known = !first.schema.is_empty() && !now.schema.is_empty();
    if is_known {
        differences.extend(parts_that_differ(&first.schema, &now.schema, |name, [a, b]| {
            say!(setting_was_a_is_b, setting = name, a, b)
        }));
    }
    parts_up_to(differences.into_iter(), MAX_NAMED)
}

/// A fact of a load generator: its name, and how it is read.
type GeneratorFact = (Message, fn(&Environment) -> String);

fn generators_differ(case: &Case<'_>) -> Vec<Finding> {
    let Some((first, others)) = case.runs.split_first() else { return Vec::new() };
    let generator_facts: [GeneratorFact; 6] = [
        (say!(host_name), |machine| machine.host.clone()),
        (say!(kernel_version), |machine| machine.kernel.clone()),
        (say!(loops_io), |machine| machine.loops_io.clone()),
        (say!(cpu_model), |machine| machine.cpu_model.clone()),
        (say!(cores), |machine| machine.cores.to_string()),
        (say!(program), |machine| machine.binary_sha256.chars().take(12).collect()),
    ];
    let mut findings = Vec::new();
    for (index, other) in others.iter().enumerate() {
        let differences = generator_facts.iter().filter_map(|(name, get)| {
            let (a, b) = (get(&first.header.environment), get(&other.header.environment));
            (a != b).then(|| say!(name_a_against_b, name, a, b))
        });
        let place = SpotKind::Run.at(&case.evidence.runs[index + 1].folder);
        findings.extend(parts(differences).map(|value| Finding::new(place, value)));
    }
    findings
}

/// Two targets that an experiment measured.
pub(crate) struct TargetPair<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) baseline: TargetSide<'a>,
    pub(super) candidate: TargetSide<'a>,
}

/// Share of the reads: a server's own writes, such as its statistics, are less.
const OWN_WRITES: f64 = 0.01;

impl<'a> TargetPair<'a> {
    /// The labels of both targets, baseline first.
    pub(super) fn labels(&self) -> [&'a str; 2] {
        [self.baseline.label(), self.candidate.label()]
    }

    /// The difference of a fact in words; `None` if it is equal or unknown on one side.
    fn difference(
        &self,
        name: Message,
        fact: impl Fn(&TargetSide<'a>) -> Option<Fact>,
    ) -> Option<Message> {
        difference(name, fact(&self.baseline), fact(&self.candidate))
    }

    /// Returns true if the experiment wrote nothing on both sides.
    pub(super) fn only_reads(&self) -> bool {
        let trials = self.baseline.trials.iter().chain(&self.candidate.trials);
        let mut measured = trials.filter(|trial| trial.summary.statements.total() > 0).peekable();
        let asks_servers = !self.experiment.is_pass() && has_unknown_statements(self.experiment);
        measured.peek().is_some() && measured.all(|trial| wrote_nothing(trial, asks_servers))
    }
}

/// Returns true if the user wrote its statements: a function may write and answer with rows as a query does.
pub(super) fn has_unknown_statements(experiment: &Experiment) -> bool {
    !experiment.scripts.is_empty()
        || !experiment.family.is_some_and(|family| family.knows_tables(&experiment.test))
}

/// Counts of the client, and of the servers if the client can't know. Servers count the writes of other clients too,
/// and PostgreSQL those of a load until its statistics have arrived. A pass has too few statements to distinguish them
/// from these.
fn wrote_nothing(trial: &Trial, asks_servers: bool) -> bool {
    let (done, wasted) = (trial.summary.statements, trial.summary.wasted);
    let is_read_only = [done, wasted]
        .iter()
        .all(|counts| counts.writes == 0 && counts.misses == 0 && counts.rows_written == 0);
    let max_writes = OWN_WRITES * done.reads as f64;
    let mut server_writes =
        nodes_of(trial).filter_map(|(_, node)| node.writes.max(node.rows_written));
    done.reads > 0
        && is_read_only
        && (!asks_servers || server_writes.all(|writes| writes as f64 <= max_writes))
}

/// A target in an experiment.
pub(super) struct TargetSide<'a> {
    pub(super) target: &'a PaperTarget,
    facts: Option<&'a TargetFacts>,
    pub(super) trials: Vec<&'a Trial>,
}

/// Amount of data of a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataAmount {
    pub(super) tables: usize,
    /// The servers' estimate or count, all tables together.
    pub(super) rows: u64,
    /// Size of the database.
    pub(super) bytes: Option<u64>,
}

/// Something that is known of a target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) value: String,
    /// Set if no one has checked it.
    pub(super) is_stated: bool,
}

impl Fact {
    fn from_server(value: impl Into<String>) -> Fact {
        Fact { value: value.into(), is_stated: false }
    }

    fn from_suite(value: impl Into<String>) -> Fact {
        Fact { value: value.into(), is_stated: true }
    }

    /// The value, marked if it is only stated.
    pub(super) fn text(&self) -> Message {
        if self.is_stated {
            say!(value_stated, value = &self.value)
        } else {
            Message::verbatim(&self.value)
        }
    }

    /// Equal whatever the spelling: `READ-COMMITTED`, `read committed`.
    fn equals(&self, other: &Fact) -> bool {
        let [a, b] = [self, other].map(|fact| fact.value.to_lowercase().replace(['-', '_'], " "));
        a == b
    }
}

/// The difference, such as `isolation: read committed against repeatable read`; `None` if it is
/// equal or unknown on one side.
fn difference(name: Message, a: Option<Fact>, b: Option<Fact>) -> Option<Message> {
    let (a, b) = (a?, b?);
    (!a.equals(&b)).then(|| say!(name_a_against_b, name, a = a.text(), b = b.text()))
}

/// The compared pairs: as the suite says, or the first target of an experiment with all others.
pub(super) fn pairs<'a>(case: &Case<'a>) -> Vec<TargetPair<'a>> {
    let mut pairs = Vec::new();
    for experiment in case.measured_experiments() {
        let targets =
            case.evidence.targets.iter().filter(|target| {
                experiment.points.iter().any(|point| point.target == target.label)
            });
        let targets: Vec<&PaperTarget> = targets.collect();
        let plans = case.plans(experiment);
        let baseline = targets.iter().find(|target| {
            let mut comparisons = plans.iter().filter_map(|facts| facts.comparison.as_ref());
            comparisons.any(|comparison| comparison.baseline == target.facts.name)
        });
        let Some(first) = baseline.or_else(|| targets.first()) else { continue };
        for other in targets.iter().filter(|target| target.label != first.label) {
            let [baseline, candidate] =
                [first, other].map(|target| TargetSide::new(case, experiment, target));
            pairs.push(TargetPair { experiment, baseline, candidate });
        }
    }
    pairs
}

impl<'a> TargetSide<'a> {
    fn new(case: &Case<'a>, experiment: &Experiment, target: &'a PaperTarget) -> TargetSide<'a> {
        let mut trials = case.trials(experiment);
        trials.retain(|trial| trial.target == target.label);
        TargetSide { target, facts: case.facts(target), trials }
    }

    /// The label of its target.
    pub(super) fn label(&self) -> &'a str {
        &self.target.label
    }

    /// The product without its version.
    pub(super) fn product(&self) -> &'a str {
        self.target.product.split(' ').next().unwrap_or_default()
    }

    /// The part of the version that decides how a server behaves: `8.0` of MySQL, `10.11` of MariaDB,
    /// `15` of PostgreSQL from 10 on.
    pub(super) fn major_version(&self) -> Option<Fact> {
        self.target.major_version().map(Fact::from_server)
    }

    pub(super) fn stated_fact(&self, name: &str) -> Option<Fact> {
        let value = self.facts?.stated.get(name).filter(|value| !value.is_empty())?;
        Some(Fact::from_suite(value))
    }

    /// A fact as a node of the first trial that knows it reports it; else as the suite states it.
    fn read_or_stated(
        &self,
        name: &str,
        read: fn(&NodeConditions) -> Option<String>,
    ) -> Option<Fact> {
        let mut nodes = self.trials.iter().flat_map(|trial| nodes_of(trial));
        let fact = nodes.find_map(|(_, node)| read(node)).map(Fact::from_server);
        fact.or_else(|| self.stated_fact(name))
    }

    /// The checksum of its tables and indexes.
    fn schema(&self) -> Option<Fact> {
        self.read_or_stated("schema", |node| node.schema_checksum.clone())
    }

    /// The isolation level of sessions: as a workload asked for it, or as the server gives it.
    pub(super) fn isolation(&self) -> Option<Fact> {
        let requested = self.trials.iter().find_map(|trial| {
            KnownFamily::from_summary(&trial.summary)?
                .isolation(&trial.summary)
                .map(Fact::from_server)
        });
        requested
            .or_else(|| self.read_or_stated("isolation", |node| node.isolation.clone()))
            .or_else(|| settings::isolation(self.target).map(Fact::from_server))
    }

    /// The amount of data that its servers report before the first trial that knows it.
    pub(super) fn amount(&self) -> Option<DataAmount> {
        let mut trials = self.trials.iter().map(|trial| {
            nodes_of(trial).filter(|(_, node)| !node.table_rows.is_empty()).collect::<Vec<_>>()
        });
        let mut holders = trials.find(|nodes| !nodes.is_empty())?;
        // Shards hold a part each; all others hold everything.
        let mut shards = holders.clone();
        shards.retain(|(_, node)| node.role.as_deref() == Some("shard"));
        if shards.is_empty() {
            holders.truncate(1);
        } else {
            holders = shards;
        }
        Some(DataAmount {
            tables: holders.iter().map(|(_, node)| node.table_rows.len()).max()?,
            rows: holders.iter().flat_map(|(_, node)| node.table_rows.values()).sum(),
            bytes: holders.iter().map(|(_, node)| node.data_bytes).sum(),
        })
    }

    /// Median over the trials of the longest round trip to a node, microseconds.
    pub(super) fn round_trip_us(&self) -> Option<f64> {
        let longest_trips = self.trials.iter().filter_map(|trial| {
            nodes_of(trial).filter_map(|(_, node)| node.round_trip_us).reduce(f64::max)
        });
        median(&longest_trips.collect::<Vec<f64>>())
            .or_else(|| self.stated_fact("round_trip_us")?.value.parse().ok())
    }

    /// Returns true if a commit is on disk when it is acknowledged, as far as settings tell; `None` if they
    /// could not be read.
    pub(super) fn is_on_disk(&self) -> Option<bool> {
        let settings = &self.target.settings;
        (!settings.is_empty()).then(|| !settings.iter().any(|setting| setting.is_weak))
    }

    /// Returns whether another copy has a commit when it is acknowledged, and the source of that fact.
    pub(super) fn copies(&self) -> Option<(bool, Fact)> {
        let mut nodes = self.trials.iter().flat_map(|trial| nodes_of(trial));
        if let Some(wait) = nodes.find_map(|(_, node)| node.acknowledged_by.as_ref()) {
            return Some((wait.has_copy(), Fact::from_server(wait.words().to_string())));
        }
        let fact = self.stated_fact("acknowledged_by");
        let fact = fact.or_else(|| self.facts?.durability.as_ref().map(Fact::from_suite));
        let fact = fact.or_else(|| self.stated_fact("durability"))?;
        Some((has_copy(&fact.value)?, fact))
    }
}

/// Returns true if a suite's words such as `quorum 2 of 3`, `1 semi-sync replica`, `local` or `asynchronous replica`
/// say that a commit waits for another copy; `None` if they say neither.
pub(super) fn has_copy(words: &str) -> Option<bool> {
    let words = words.to_lowercase();
    let words: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let [is_quorum, is_number, is_group, is_local, is_sync, is_copy] = [
        &["quorum", "majority", "semi", "semisync", "semisynchronous", "paxos", "raft"][..],
        &["any", "first", "all"],
        &["of", "replicas", "standbys"],
        &["local", "nothing", "async", "asynchronous", "none", "single", "alone"],
        &["sync", "synchronous"],
        &["replica", "replicas", "standby", "standbys"],
    ]
    .map(|known| words.iter().any(|word| known.contains(word)));
    let is_shared = words.windows(2).any(|pair| pair == ["shared", "storage"]);
    let is_quorum = is_quorum || is_shared || (is_number && is_group);
    let is_sync = is_sync && is_copy;
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

    fn server_fact(value: &str) -> Option<Fact> {
        Some(Fact::from_server(value))
    }

    #[test]
    fn spelling_is_no_difference() {
        let sides = [server_fact("READ-COMMITTED"), server_fact("read committed")];
        for [a, b] in [sides, [server_fact("read committed"), None]] {
            assert_eq!(difference(Message::verbatim("isolation"), a, b), None);
        }
        let sides = (server_fact("a"), Some(Fact::from_suite("b")));
        let difference = difference(Message::verbatim("isolation"), sides.0, sides.1);
        assert_eq!(difference.expect("they differ"), "isolation: a against b (stated)");
    }
}
