//! Published figures that stand beside one's own, in what the measurements differ, and what throughput costs.

use super::comparison::published_metric;
use super::{
    BesidePublished, Cost, CostRow, Evidence, Experiment, PaperTarget, PerVcpu, Point, Spread,
    counterpart, figure_of,
};
use crate::families::family_of;
use crate::format::{bytes, plain, whole};
use crate::text::Message;
use dyno_facts::statistics::Metric;
use dyno_facts::{Price, PublishedRow, say};

/// The metrics that are told beside published ones, in this order.
const METRICS: [&str; 4] = ["tps", "qps", "data_qps", "tpmc"];

/// Every target of every experiment beside its rows. Seconds of statements stand in tables of their families.
pub(crate) fn beside(evidence: &Evidence) -> Vec<BesidePublished> {
    let mut found = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for target in evidence.targets.iter().filter(|target| is_in(experiment, target)) {
            let side = PublishedSide { evidence, index, experiment, target };
            found.extend(side.rows());
        }
    }
    found
}

fn is_in(experiment: &Experiment, target: &PaperTarget) -> bool {
    !experiment.is_pass() && experiment.points.iter().any(|p| p.target == target.label)
}

/// One target in one experiment.
struct PublishedSide<'a> {
    evidence: &'a Evidence,
    index: usize,
    experiment: &'a Experiment,
    target: &'a PaperTarget,
}

impl<'a> PublishedSide<'a> {
    fn rows(&self) -> Vec<BesidePublished> {
        let mut found = Vec::new();
        for published in &self.experiment.published {
            for metric in METRICS {
                let rows = published.table.rows.iter();
                let rows: Vec<&PublishedRow> =
                    rows.filter(|row| row.metrics.get(metric).is_some_and(|v| *v > 0.0)).collect();
                let named = |row: &&&PublishedRow| row.targets.contains(&self.target.facts.name);
                let mut own: Vec<&PublishedRow> = rows.iter().filter(named).copied().collect();
                let is_named = !own.is_empty();
                if !is_named {
                    own.extend(self.nearest(&rows));
                }
                let one = |row| self.one(&published.table.title, row, metric, is_named);
                found.extend(own.into_iter().filter_map(one));
            }
        }
        found
    }

    /// The point that a row is held against: the row's own load level, else the target's best.
    fn point(&self, row: Option<&PublishedRow>) -> Option<&'a Point> {
        let of_row = row.and_then(|row| {
            let point = counterpart(self.experiment, row, &self.target.facts.name)?;
            (point.target == self.target.label).then_some(point)
        });
        let own = self.experiment.points.iter();
        let is_usable = |p: &&Point| p.status == "complete" && !p.has_fault;
        let own = own.filter(|p| p.target == self.target.label).filter(is_usable);
        of_row
            .or_else(|| own.max_by(|a, b| a.throughput().median.total_cmp(&b.throughput().median)))
    }

    /// The row with the nearest size: virtual CPUs count first, then memory, then workers.
    fn nearest(&self, rows: &[&'a PublishedRow]) -> Option<&'a PublishedRow> {
        let point = self.point(None)?;
        let vcpu = vcpu(self.evidence, self.target);
        let distance = |row: &PublishedRow| {
            let far = |here: Option<f64>, there: Option<f64>| match (here, there) {
                (Some(here), Some(there)) if here > 0.0 && there > 0.0 => (here / there).ln().abs(),
                _ => 0.0,
            };
            100.0 * far(vcpu, row.vcpu())
                + 10.0 * far(self.target.facts.memory_gib, row.number("memory_gib"))
                + far(Some(point.load()), row.workers())
        };
        rows.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn one(
        &self,
        table: &Message,
        row: &PublishedRow,
        metric: &str,
        is_named: bool,
    ) -> Option<BesidePublished> {
        let point = self.point(Some(row))?;
        let published = *row.metrics.get(metric)?;
        let measured = point.metric(metric)?;
        let own_vcpu = vcpu(self.evidence, self.target);
        let per_vcpu = own_vcpu.zip(row.vcpu()).map(|(here, there)| {
            let (measured, published) = (measured.median / here, published / there);
            let ratio = measured / published;
            PerVcpu { vcpu_here: here, vcpu_there: there, measured, published, ratio }
        });
        let here = Here {
            experiment: self.experiment,
            target: self.target,
            point,
            vcpu: own_vcpu,
            window_s: self.experiment.shortest_window_s,
        };
        Some(BesidePublished {
            experiment_index: self.index,
            experiment: self.experiment.title.clone(),
            target: self.target.label.clone(),
            table: table.clone(),
            row: row.label.clone(),
            is_named,
            metric: published_metric(metric),
            measured,
            repeats: point.repeats,
            published,
            ratio: measured.median / published,
            per_vcpu,
            differences: differences(&here, row),
            checks: point.checks.clone(),
        })
    }
}

/// The virtual CPUs of a target: those that are stated; of one that shares the load generator's
/// machine, that machine's.
fn vcpu(evidence: &Evidence, target: &PaperTarget) -> Option<f64> {
    let machine = || {
        let run = evidence.runs.iter().find(|run| run.number == target.run)?;
        target.facts.same_host.then_some(run.header.environment.cores as f64)
    };
    target.facts.vcpu.or_else(machine).filter(|vcpu| *vcpu > 0.0)
}

/// How something was measured here.
struct Here<'a> {
    experiment: &'a Experiment,
    target: &'a PaperTarget,
    point: &'a Point,
    vcpu: Option<f64>,
    window_s: Option<f64>,
}

/// Two numbers are alike where they differ by less than this share: memory of 15.6 GiB is sold as 16.
const ALIKE: f64 = 0.05;

/// Those that both sides state, the product in front.
fn differences(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let mut told = Vec::new();
    if !here.target.product.is_empty() {
        told.push(say!(measured_on_product, product = &here.target.product));
    }
    told.extend(of_machines(here, row));
    told.extend(of_load(here, row));
    told.extend(of_data(here, row));
    if here.target.facts.same_host {
        told.push(say!(load_generator_and_server_share_a));
    }
    told
}

/// Both numbers where they differ.
fn unlike(here: Option<f64>, there: Option<f64>) -> Option<(String, String)> {
    let (here, there) = (here?, there?);
    let is_unlike = (here - there).abs() > ALIKE * here.abs().max(there.abs());
    is_unlike.then(|| (number(here), number(there)))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { whole(value) } else { plain(value) }
}

fn of_machines(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let vcpu = match here.vcpu {
        Some(vcpu) => unlike(Some(vcpu), row.vcpu())
            .map(|(here, there)| say!(vcpu_instead_of, here = here, there = there)),
        None => row.vcpu().map(|_| say!(vcpu_not_stated)),
    };
    let memory = row.number("memory_gib").or_else(|| row.number("compute_memory_gib"));
    let memory = unlike(here.target.facts.memory_gib, memory)
        .map(|(here, there)| say!(gib_of_memory_instead_of, here = here, there = there));
    let generators = row.number("load_generators").filter(|count| *count > 1.0);
    let generators =
        generators.map(|there| say!(n_1_load_generator_instead_of, there = number(there)));
    [vcpu, memory, generators].into_iter().flatten().collect()
}

fn of_load(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let workers = unlike(Some(here.point.load()), row.workers()).map(|(own, there)| {
        match here.point.terminals() {
            Some(_) => say!(terminals_instead_of, n = own, there = there),
            None => say!(workers_instead_of, n = own, there = there),
        }
    });
    let length = unlike(here.window_s, row.number("duration_s"))
        .map(|(here, there)| say!(s_measured_instead_of_s, here = here, there = there));
    let pauses = here.point.is_paced.then(|| say!(keying_and_think_times));
    let schedule = here.experiment.is_open_loop.then(|| say!(transactions_on_a_schedule));
    [workers, length, pauses, schedule].into_iter().flatten().collect()
}

fn of_data(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let data = here.point.data.as_ref().map(|data| &data.facts);
    let count = |rows: u64| Some(rows as f64);
    let scale = here.point.scale().and_then(|scale| {
        let (here, there) = unlike(Some(scale.value), row.number(scale.name))?;
        Some(say!(scale_instead_of, here = here, there = there, scale = &scale.label))
    });
    let option = |name: &str| {
        // sysbench writes its options with underscores as well as with dashes.
        let options = &here.experiment.options;
        let value = options.get(name).or_else(|| options.get(&name.replace('_', "-")))?;
        value.parse::<f64>().ok()
    };
    let told = [
        scale,
        unlike(option("tables"), row.number("tables"))
            .map(|(here, there)| say!(tables_instead_of, n = here, there = there)),
        unlike(option("table_size"), row.number("table_size"))
            .map(|(here, there)| say!(rows_per_table_instead_of, here = here, there = there)),
        unlike(data.and_then(|data| count(data.rows)), row.number("rows"))
            .map(|(here, there)| say!(rows_instead_of, here = here, there = there)),
        unlike(data.and_then(|data| count(data.hot_rows?)), row.number("hot_rows"))
            .map(|(here, there)| say!(hot_rows_instead_of, here = here, there = there)),
        memory_for_data(here, row),
    ];
    told.into_iter().flatten().collect()
}

/// Where data lie in memory that lay on the disk there, or the other way round, is told by sizes.
fn memory_for_data(here: &Here<'_>, row: &PublishedRow) -> Option<Message> {
    let data = here.point.data.as_ref()?;
    let (size, memory) = (data.facts.size_bytes?, data.facts.memory_bytes?);
    row.number("memory_gib")?;
    Some(say!(
        size_of_data_setting_memory,
        size = bytes(size as f64),
        setting = &data.facts.memory_setting,
        memory = bytes(memory as f64)
    ))
}

/// One for each target with a price and each experiment with a result of it.
pub(crate) fn costs(evidence: &Evidence) -> Vec<Cost> {
    let priced = || evidence.targets.iter().filter_map(|target| Some((target, price(target)?)));
    let mut found = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for (target, price) in priced() {
            let key = evidence
                .key_rows()
                .into_iter()
                .find(|row| row.index == index && row.point.target == target.label);
            let transactions = key.and_then(|key| of_transactions(price, key.point));
            let own = experiment.points.iter().filter(|point| point.target == target.label);
            // Passes have no best point: each may have the figure.
            let points = match key {
                Some(key) => vec![key.point],
                None => own.filter(|_| experiment.is_pass()).collect(),
            };
            let metric = family_of(experiment).and_then(|family| family.priced());
            let priced = metric.and_then(|metric| of_metric(evidence, price, metric, &points));
            let rows: Vec<CostRow> = transactions.into_iter().chain(priced).collect();
            if !rows.is_empty() {
                found.push(Cost {
                    experiment_index: index,
                    experiment: experiment.title.clone(),
                    target: target.label.clone(),
                    price: price.clone(),
                    rows,
                });
            }
        }
    }
    found
}

fn price(target: &PaperTarget) -> Option<&Price> {
    target.facts.price.as_ref().filter(|price| price.per_hour > 0.0)
}

fn of_transactions(price: &Price, point: &Point) -> Option<CostRow> {
    const PER_HOUR: f64 = 3600.0;
    let tps = point.tps.median;
    (tps > 0.0).then(|| CostRow {
        what: say!(per_million_transactions),
        amount: price.per_hour / (tps * PER_HOUR) * 1e6,
    })
}

/// The hourly price of a thousand of what is done in each unit of time, at the best of these points.
fn of_metric(
    evidence: &Evidence,
    price: &Price,
    metric: Metric,
    points: &[&Point],
) -> Option<CostRow> {
    let median = |point: &&Point| {
        let trials = evidence.trials_of(point).into_iter();
        let figures = trials.filter_map(|trial| figure_of(&trial.summary, metric));
        Spread::of(figures.collect()).map(|spread| spread.median)
    };
    let best = points.iter().filter_map(median).reduce(f64::max).filter(|best| *best > 0.0)?;
    let what = match metric {
        Metric::Qphh => say!(hourly_price_per_1_000_qphh),
        _ => say!(hourly_price_per_1_000, metric = metric.title()),
    };
    Some(CostRow { what, amount: price.per_hour / best * 1e3 })
}
