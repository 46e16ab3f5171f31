//! Results alongside published ones: over all experiments that share a published table, and each alongside its row with
//! the conditions that differ; and what the work costs.

use crate::evidence::{
    Evidence, Experiment, Paper, PaperTarget, Point, Published, Spread, counterpart,
};
use crate::families::find_family;
use crate::format::{bytes, plain, unique, whole};
use dyno_facts::statistics::Metric;
use dyno_facts::{Message, Price, PublishedRow, say};

/// A published figure, and what was measured in its place.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub row: &'a PublishedRow,
    /// The counted metric, by its name.
    pub metric: &'a str,
    /// The name of its target.
    target: &'a str,
    pub point: Option<&'a Point>,
}

impl<'a> Pair<'a> {
    /// The published figure; `None` if the row doesn't state this metric.
    pub fn published(&self) -> Option<f64> {
        self.row.metrics.get(self.metric).copied()
    }

    /// `None` when no trial of it ended well.
    pub fn measured(&self) -> Option<Spread> {
        self.point?.metric(self.metric)
    }

    /// Median of what was measured, by what was published.
    pub fn ratio(&self) -> Option<f64> {
        let published = self.published().filter(|published| *published > 0.0)?;
        Some(self.measured()?.median / published)
    }

    /// Trials that it rests on.
    pub(crate) fn repeats(&self) -> usize {
        self.point.map_or(0, |point| point.repeats)
    }

    /// Numbers of the checks that found something.
    pub(crate) fn checks(&self) -> &'a [usize] {
        self.point.map_or(&[], |point| &point.checks)
    }

    /// The name of its target in the paper.
    fn label(&self) -> &'a str {
        self.point.map_or(self.target, |point| &point.target)
    }
}

/// A published table and what was measured in its place.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    pub published: &'a Published,
    /// The name of the load level: `Workers` or `Terminals`.
    pub load: Message,
    /// The counts of the columns, in a sentence; empty if the titles say it.
    pub counts: Message,
    /// Names of the conditions that differ between rows of the same label.
    pub conditions: Vec<&'a str>,
    /// Titles of the measured quantities: the metric and what tells apart the columns of one row.
    pub columns: Vec<Message>,
    /// Sorted in the order of the publication.
    pub rows: Vec<ComparisonRow<'a>>,
}

/// One published row with a counterpart.
#[derive(Clone, Debug)]
pub struct ComparisonRow<'a> {
    /// The first of its pairs.
    pub first: Pair<'a>,
    /// Label of the target that was measured.
    pub target: &'a str,
    /// The row's other conditions.
    pub description: String,
    /// Values of the conditions, in their order; empty if the row doesn't state one.
    pub conditions: Vec<String>,
    /// Sorted in the order of the columns.
    pub pairs: Vec<Option<Pair<'a>>>,
}

/// A result alongside a published one.
#[derive(Clone, Debug)]
pub struct BesidePublished<'a> {
    pub experiment: &'a Experiment,
    pub target: &'a PaperTarget,
    /// Its point is known.
    pub pair: Pair<'a>,
    /// Set if the suite names the row as the target's counterpart; else it is the nearest one.
    pub is_named: bool,
    /// Virtual CPUs of the target, and of the published system where both are stated.
    pub vcpu: Option<[f64; 2]>,
    /// Conditions that differ, as far as both sides state them.
    pub differences: Vec<Message>,
}

/// The cost of an experiment's work on a target.
#[derive(Clone, Debug)]
pub struct CostRow<'a> {
    pub experiment: &'a Experiment,
    pub target: &'a PaperTarget,
    /// Price of the whole target, as stated.
    pub price: &'a Price,
    /// For example `per million transactions`.
    pub quantity: Message,
    /// The cost in the currency of the target's price.
    pub amount: f64,
}

/// The metrics that are compared with published ones, in this order.
const METRICS: [&str; 4] = ["tps", "qps", "data_qps", "tpmc"];

impl Paper {
    /// Published tables of which at least two experiments measure some row. A table of one experiment
    /// belongs to that alone, unless its family is ranked by its own metric: there a row is a whole benchmark.
    pub fn comparisons(&self) -> Vec<Comparison<'_>> {
        let mut tables: Vec<(&Published, Vec<&Experiment>, Vec<Pair<'_>>)> = Vec::new();
        // The tables of families have the rows of passes.
        for experiment in self.experiments.iter().filter(|experiment| !experiment.is_pass()) {
            for published in &experiment.published {
                let listed = tables
                    .iter_mut()
                    .find(|(other, ..)| other.table.title == published.table.title);
                match listed {
                    Some((_, users, pairs)) => {
                        users.push(experiment);
                        pairs.extend(published_pairs(experiment, published));
                    }
                    None => {
                        let pairs = published_pairs(experiment, published).collect();
                        tables.push((published, vec![experiment], pairs));
                    }
                }
            }
        }
        tables.retain(|(_, users, pairs)| {
            let has_whole_benchmarks = users.iter().any(|user| user.ranked_by() != Metric::Tps);
            let is_shared =
                users.iter().any(|user| user.name != users[0].name) || has_whole_benchmarks;
            is_shared && pairs.iter().any(|pair| pair.point.is_some())
        });
        tables.into_iter().map(|(table, _, pairs)| compare(table, &pairs)).collect()
    }

    /// Every target of every experiment alongside its rows: those that the suite names, else the nearest one.
    /// Seconds of statements are in the tables of their families.
    pub fn beside(&self) -> Vec<BesidePublished<'_>> {
        let mut results = Vec::new();
        for experiment in self.experiments.iter().filter(|experiment| !experiment.is_pass()) {
            for target in &self.targets {
                let tables = experiment.published.iter();
                let tables = tables.flat_map(|table| METRICS.map(|metric| (table, metric)));
                for (published, metric) in tables {
                    let rows = published.table.rows.iter();
                    let rows = rows.filter(|row| row.metrics.get(metric).is_some_and(|v| *v > 0.0));
                    let rows: Vec<&PublishedRow> = rows.collect();
                    let mut counterparts = rows.clone();
                    counterparts.retain(|row| row.targets.contains(&target.facts.name));
                    let is_named = !counterparts.is_empty();
                    if !is_named {
                        counterparts.extend(nearest_row(self, experiment, target, &rows));
                    }
                    results.extend(counterparts.into_iter().filter_map(|row| {
                        beside_row(self, experiment, target, row, metric, is_named)
                    }));
                }
            }
        }
        results
    }

    /// The costs of the work of each experiment on each target with a price.
    pub fn costs(&self) -> Vec<CostRow<'_>> {
        const SECONDS_OF_HOUR: f64 = 3600.0;
        let key_rows = self.key_rows();
        let mut costs = Vec::new();
        for (index, experiment) in self.experiments.iter().enumerate() {
            for target in &self.targets {
                let price = target.facts.price.as_ref();
                let Some(price) = price.filter(|price| price.per_hour > 0.0) else { continue };
                let key = key_rows
                    .iter()
                    .find(|row| row.index == index && row.point.target == target.label);
                if let Some(tps) = key.map(|key| key.point.tps.median).filter(|tps| *tps > 0.0) {
                    let amount = price.per_hour / (tps * SECONDS_OF_HOUR) * 1e6;
                    let quantity = say!(per_million_transactions);
                    costs.push(CostRow { experiment, target, price, quantity, amount });
                }
                // Passes have no best point: each may have the figure.
                let points = experiment.points.iter().filter(|point| point.target == target.label);
                let points: Vec<&Point> = match key {
                    Some(key) => vec![key.point],
                    None => points.filter(|_| experiment.is_pass()).collect(),
                };
                let metric = find_family(experiment).and_then(|family| family.priced());
                let Some(metric) = metric else { continue };
                let medians = points.into_iter().filter_map(|point| {
                    let trials = self.point_trials(point).into_iter();
                    let figures = trials.filter_map(|trial| trial.summary.figure(metric));
                    Spread::from_values(figures.collect()).map(|spread| spread.median)
                });
                if let Some(best) = medians.reduce(f64::max).filter(|best| *best > 0.0) {
                    let quantity = match metric {
                        Metric::Qphh => say!(hourly_price_per_1_000_qphh),
                        _ => say!(hourly_price_per_thousand, metric = metric.title()),
                    };
                    let amount = price.per_hour / best * 1e3;
                    costs.push(CostRow { experiment, target, price, quantity, amount });
                }
            }
        }
        costs
    }
}

/// The figures of a table that name targets.
fn published_pairs<'a>(
    experiment: &'a Experiment,
    published: &'a Published,
) -> impl Iterator<Item = Pair<'a>> {
    let rows = published.table.rows.iter();
    let targets = rows.flat_map(|row| row.targets.iter().map(move |target| (row, target)));
    targets.flat_map(move |(row, target)| {
        let point = counterpart(experiment, row, target);
        row.metrics.keys().map(move |metric| Pair { row, metric, target, point })
    })
}

/// Returns a published table with the pairs as its cells: a row for each target and row of the publication.
fn compare<'a>(published: &'a Published, pairs: &[Pair<'a>]) -> Comparison<'a> {
    // Between results printed in the same row they name columns; between rows of the same label they have separate
    // columns. The others describe the label.
    let splitting = differing_conditions(pairs, |pair, other| {
        pair.row.number == other.row.number && pair.row.label == other.row.label
    });
    let mut conditions =
        differing_conditions(pairs, |pair, other| pair.row.label == other.row.label);
    conditions.retain(|name| !splitting.contains(name));
    conditions.sort_unstable();
    let columns = unique(pairs.iter().map(|pair| column_title(pair, &splitting)).collect());
    let mut rows: Vec<ComparisonRow<'_>> = Vec::new();
    for pair in pairs {
        let place = columns.iter().position(|name| *name == column_title(pair, &splitting));
        let entry = rows.iter_mut().find(|entry| {
            let row = entry.first.row;
            (entry.target, &row.label, row.number)
                == (pair.label(), &pair.row.label, pair.row.number)
        });
        if let Some(row) = entry {
            row.pairs[place.unwrap_or(0)] = Some(*pair);
            continue;
        }
        let mut row_pairs = vec![None; columns.len()];
        row_pairs[place.unwrap_or(0)] = Some(*pair);
        let values = conditions.iter().map(|name| pair.row.conditions.get(*name));
        let values =
            values.map(|value| value.map_or(String::new(), |value| group_thousands(value)));
        let further = pair.row.conditions.iter().filter(|(name, value)| {
            let has_column =
                [&splitting, &conditions].iter().any(|names| names.contains(&name.as_str()));
            **value != pair.row.label && !has_column
        });
        let further = further.map(|(name, value)| format!("{name} {}", group_thousands(value)));
        rows.push(ComparisonRow {
            first: *pair,
            target: pair.label(),
            description: further.collect::<Vec<_>>().join(", "),
            conditions: values.collect(),
            pairs: row_pairs,
        });
    }
    rows.sort_by_key(|row| row.first.row.number);
    let [has_tpmc, has_data_qps] =
        ["tpmc", "data_qps"].map(|metric| pairs.iter().any(|pair| pair.metric == metric));
    Comparison {
        published,
        load: if has_tpmc { say!(terminals) } else { say!(workers) },
        counts: match (has_tpmc, has_data_qps) {
            (true, _) => say!(tpmc_are_new_orders_per_minute),
            (_, true) => say!(qps_counts_the_statements_that_read),
            _ => Message::default(),
        },
        conditions,
        columns,
        rows,
    }
}

/// Returns the names of conditions in which pairs differ from others for which `are_alike` holds.
fn differing_conditions<'a>(
    pairs: &[Pair<'a>],
    are_alike: impl Fn(&Pair<'a>, &Pair<'a>) -> bool,
) -> Vec<&'a str> {
    let pairs = pairs.iter().flat_map(|pair| pairs.iter().map(move |other| (pair, other)));
    let alike = pairs.filter(|(pair, other)| are_alike(pair, other));
    let differing = alike.flat_map(|(pair, other)| {
        let conditions = pair.row.conditions.iter();
        conditions.filter(|(name, value)| other.row.conditions.get(*name) != Some(*value))
    });
    unique(differing.map(|(name, _)| name.as_str()).collect())
}

fn column_title(pair: &Pair<'_>, splitting: &[&str]) -> Message {
    let values = splitting.iter().filter_map(|name| pair.row.conditions.get(*name).cloned());
    let values: Vec<String> = values.collect();
    let metric = published_metric(pair.metric);
    if values.is_empty() {
        metric
    } else {
        Message::joined(&[Message::verbatim(values.join(", ")), metric], ", ", "，")
    }
}

/// A metric of published figures, in columns and alongside one's own.
pub(crate) fn published_metric(name: &str) -> Message {
    match name {
        "tps" => say!(transactions_s),
        "qps" => say!(statements_s),
        "data_qps" => Message::from("QPS"),
        "tpmc" => Message::from("tpmC"),
        other => Message::from(other),
    }
}

/// A condition of published figures, as the head of a column.
pub(crate) fn condition_name(name: &str) -> Message {
    match name {
        "class" => say!(condition_class),
        "edition" => say!(condition_edition),
        "vcpu" | "compute_vcpu" => say!(condition_vcpu),
        "memory_gib" | "compute_memory_gib" => say!(condition_memory),
        "rows" => say!(rows),
        "hot_rows" => say!(hot_rows),
        "clients" => say!(condition_clients),
        "threads" => say!(condition_threads),
        "workers" => say!(workers),
        "duration_s" => say!(condition_duration),
        "scale" => say!(condition_scale),
        "warehouses" => say!(condition_warehouses),
        "load_generators" => say!(condition_load_generators),
        "terminals_per_generator" => say!(condition_terminals_each),
        "max_connections" => say!(condition_max_connections),
        "storage_nodes" => say!(condition_storage_nodes),
        "storage_vcpu" => say!(condition_storage_vcpu),
        "storage_memory_gib" => say!(condition_storage_memory),
        "iops" => Message::from("IOPS"),
        other => Message::from(other.replace('_', " ")),
    }
}

/// Large numbers with thousands set apart.
fn group_thousands(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 => whole(number),
        _ => value.to_owned(),
    }
}

/// The point that a row is held against: the row's own load level, else the target's best.
fn point_beside<'a>(
    experiment: &'a Experiment,
    target: &PaperTarget,
    row: Option<&PublishedRow>,
) -> Option<&'a Point> {
    let stated_point = row.and_then(|row| counterpart(experiment, row, &target.facts.name));
    let points = experiment.points.iter().filter(|point| point.target == target.label);
    let usable = points.filter(|point| point.status == "complete" && !point.has_fault);
    let best = usable.max_by(|a, b| a.throughput().median.total_cmp(&b.throughput().median));
    stated_point.filter(|point| point.target == target.label).or(best)
}

/// The row with the nearest size: virtual CPUs count first, then memory, then workers.
fn nearest_row<'a>(
    evidence: &Evidence,
    experiment: &Experiment,
    target: &PaperTarget,
    rows: &[&'a PublishedRow],
) -> Option<&'a PublishedRow> {
    let point = point_beside(experiment, target, None)?;
    let vcpu = vcpu(evidence, target);
    let distances = rows.iter().map(|row| {
        100.0 * log_ratio(vcpu, row.vcpu())
            + 10.0 * log_ratio(target.facts.memory_gib, row.number("memory_gib"))
            + log_ratio(Some(point.load()), row.workers())
    });
    let nearest = distances.zip(rows).min_by(|(a, _), (b, _)| a.total_cmp(b));
    nearest.map(|(_, row)| *row)
}

/// The distance of two sizes on a logarithmic scale; 0 unless both are known and above 0.
fn log_ratio(measured: Option<f64>, published: Option<f64>) -> f64 {
    match (measured, published) {
        (Some(a), Some(b)) if a > 0.0 && b > 0.0 => (a / b).ln().abs(),
        _ => 0.0,
    }
}

fn beside_row<'a>(
    evidence: &Evidence,
    experiment: &'a Experiment,
    target: &'a PaperTarget,
    row: &'a PublishedRow,
    metric: &'a str,
    is_named: bool,
) -> Option<BesidePublished<'a>> {
    let point = point_beside(experiment, target, Some(row))?;
    point.metric(metric)?;
    let vcpu = vcpu(evidence, target);
    Some(BesidePublished {
        experiment,
        target,
        pair: Pair { row, metric, target: &target.facts.name, point: Some(point) },
        is_named,
        vcpu: vcpu.zip(row.vcpu()).map(<[f64; 2]>::from),
        differences: differences(experiment, target, point, row, vcpu),
    })
}

/// The virtual CPUs of a target: those that are stated; of one that shares the load generator's
/// machine, that machine's.
fn vcpu(evidence: &Evidence, target: &PaperTarget) -> Option<f64> {
    let vcpu = target.facts.vcpu.or_else(|| {
        let run = evidence.runs.iter().find(|run| run.number == target.run)?;
        target.facts.same_host.then_some(run.header.environment.cores as f64)
    });
    vcpu.filter(|vcpu| *vcpu > 0.0)
}

/// Two numbers are alike if they differ by less than this share: memory of 15.6 GiB is sold as 16.
const ALIKE: f64 = 0.05;

/// Conditions that both sides state and that differ, the product in front.
fn differences(
    experiment: &Experiment,
    target: &PaperTarget,
    point: &Point,
    row: &PublishedRow,
    vcpu: Option<f64>,
) -> Vec<Message> {
    let facts = point.data.as_ref().map(|data| &data.facts);
    let option = |name: &str| {
        // sysbench writes its options with underscores as well as with dashes.
        let options = &experiment.options;
        let value = options.get(name).or_else(|| options.get(&name.replace('_', "-")))?;
        value.parse::<f64>().ok()
    };
    let load: fn(String, String) -> Message = match point.terminals() {
        Some(_) => |a, b| say!(different_terminals, n = a, there = b),
        None => |a, b| say!(different_workers, n = a, there = b),
    };
    type ComparedCondition = (Option<f64>, Option<f64>, fn(String, String) -> Message);
    let memory = row.number("memory_gib").or_else(|| row.number("compute_memory_gib"));
    let [rows, hot_rows] = [facts.map(|data| data.rows), facts.and_then(|data| data.hot_rows)]
        .map(|rows| rows.map(|rows| rows as f64));
    let compared: [ComparedCondition; 8] = [
        (vcpu, row.vcpu(), |a, b| say!(different_vcpu, here = a, there = b)),
        (target.facts.memory_gib, memory, |a, b| say!(different_memory, here = a, there = b)),
        (Some(point.load()), row.workers(), load),
        (experiment.shortest_window_s, row.number("duration_s"), |a, b| {
            say!(s_measured_instead_of_s, here = a, there = b)
        }),
        (option("tables"), row.number("tables"), |a, b| say!(different_tables, n = a, there = b)),
        (option("table_size"), row.number("table_size"), |a, b| {
            say!(different_rows_per_table, here = a, there = b)
        }),
        (rows, row.number("rows"), |a, b| say!(different_rows, here = a, there = b)),
        (hot_rows, row.number("hot_rows"), |a, b| say!(different_hot_rows, here = a, there = b)),
    ];
    let differences = compared.into_iter().filter_map(|(measured, published, words)| {
        let (measured, published) = measured.zip(published).filter(|(a, b)| is_unlike(*a, *b))?;
        Some(words(number(measured), number(published)))
    });
    let product = Some(&target.product).filter(|product| !product.is_empty());
    let generators = row.number("load_generators").filter(|count| *count > 1.0);
    let scale = point.scale().and_then(|scale| {
        let published = row.number(scale.name).filter(|value| is_unlike(scale.value, *value))?;
        let (measured, published) = (number(scale.value), number(published));
        Some(say!(different_scale, here = measured, there = published, scale = &scale.label))
    });
    // The sizes show whether data are in memory here and were on the disk there, or the other way round.
    let size = facts.filter(|_| row.number("memory_gib").is_some()).and_then(|data| {
        let (size, memory) = (bytes(data.size_bytes? as f64), bytes(data.memory_bytes? as f64));
        let setting = &data.memory_setting;
        Some(say!(size_of_data_setting_memory, size, setting, memory))
    });
    let caveats = [
        row.vcpu().filter(|_| vcpu.is_none()).map(|_| say!(vcpu_not_stated)),
        generators.map(|count| say!(single_load_generator, there = number(count))),
        point.is_paced.then(|| say!(keying_and_think_times)),
        experiment.is_open_loop.then(|| say!(transactions_on_a_schedule)),
        scale,
        size,
        target.facts.same_host.then(|| say!(shared_machine_difference)),
    ];
    let product = product.map(|product| say!(measured_on_product, product)).into_iter();
    product.chain(differences).chain(caveats.into_iter().flatten()).collect()
}

fn is_unlike(a: f64, b: f64) -> bool {
    (a - b).abs() > ALIKE * a.abs().max(b.abs())
}

/// Formats a whole number without decimals, any other as [`plain`] does.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { whole(value) } else { plain(value) }
}
