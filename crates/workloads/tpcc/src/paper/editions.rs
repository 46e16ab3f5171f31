//! Editions of a database beside each other: what each carries at how many terminals, and what that costs.

use super::rows::crossing;
use super::{TpccPoint, tpcc_of, words};
use dyno_facts::{Lang, Message, Metric, NodeConditions, PublishedRow, say};
use dyno_report::blocks::{Blocks, Cell, PaperRows, spread};
use dyno_report::charts::{self, Drawing};
use dyno_report::format::{
    self,
    NumberFormat::{Percent, Plain, Short, Whole},
};
use dyno_report::svg::{Axis, AxisScale, BarColumn, BarColumns, BarGroup};
use dyno_report::{Experiment, Paper, Point, Spread, Trial};

/// An edition at a number of terminals: measured, published, or both.
struct EditionRow<'a> {
    name: Message,
    vcpu: Option<f64>,
    measured: Option<Measured<'a>>,
    terminals: f64,
    warehouses: Option<f64>,
    published: Option<f64>,
    /// The checks that forbid what was measured.
    marks: String,
}

struct Measured<'a> {
    point: &'a Point,
    own: TpccPoint<'a>,
    trials: Vec<&'a Trial>,
}

/// The table and the charts, in the section of the first experiment that has some of them; nothing where there is one
/// edition only.
pub(super) fn blocks(paper: &Paper, experiment: &Experiment, lang: Lang, blocks: &mut Blocks) {
    let rows = rows(paper, experiment);
    if !rows.is_empty() {
        blocks.table(table(&rows));
        blocks.fine(say!(an_edition_is_a_target));
        blocks.figures(figure(&rows, lang));
    }
}

/// What a terminal shows of it.
pub(super) fn terminal(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let rows = rows(paper, experiment);
    if !rows.is_empty() {
        blocks.table(table(&rows));
    }
}

fn measured<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Vec<Measured<'a>> {
    let of = |point: &'a Point| {
        Some(Measured { point, own: tpcc_of(paper, point)?, trials: paper.trials_of(point) })
    };
    experiment.points.iter().filter(|point| !point.has_fault).filter_map(of).collect()
}

/// Experiments without pauses are about the same thing: what a database can carry.
fn is_alike(measured: &Measured<'_>) -> bool {
    measured.own.facts.tpmc_limit.is_none()
}

fn rows<'a>(paper: &'a Paper, experiment: &Experiment) -> Vec<EditionRow<'a>> {
    let all: Vec<(&Experiment, Vec<Measured<'_>>)> = paper
        .experiments
        .iter()
        .map(|own| (own, measured(paper, own).into_iter().filter(is_alike).collect()))
        .filter(|(_, points): &(_, Vec<Measured<'_>>)| !points.is_empty())
        .collect();
    let is_first = all.first().is_some_and(|(first, _)| first.name == experiment.name);
    let names = all.iter().flat_map(|(_, points)| points).map(|it| it.point.target.as_str());
    if !is_first || format::unique(names.collect()).len() < 2 {
        return Vec::new();
    }
    let tables = || all.iter().flat_map(|(own, _)| &own.published);
    let published: Vec<&PublishedRow> = {
        let rows = tables().flat_map(|table| &table.table.rows);
        format::unique(rows.filter(|row| row.metrics.contains_key("tpmc")).collect())
    };
    let place = |target: &str| paper.targets.iter().position(|known| known.label == target);
    let mut points: Vec<Measured<'_>> = all.into_iter().flat_map(|(_, points)| points).collect();
    points.sort_by_key(|one| place(&one.point.target));
    let is_of = |row: &PublishedRow, target: &str| row.targets.iter().any(|own| own == target);
    let mut rows: Vec<EditionRow<'_>> = points
        .into_iter()
        .map(|one| {
            let target = paper.targets.iter().find(|known| known.label == one.point.target);
            let name = target.map_or("", |target| target.facts.name.as_str());
            let counterpart = published.iter().find(|row| is_of(row, name));
            EditionRow {
                name: Message::from(&one.point.target),
                vcpu: target.and_then(|target| target.facts.vcpu),
                terminals: one.own.facts.terminals.into(),
                warehouses: Some(one.own.facts.warehouses.into()),
                published: counterpart.map(|row| row.metrics["tpmc"]),
                marks: charts::forbidding(paper, &one.point.checks),
                measured: Some(one),
            }
        })
        .collect();
    let is_shown =
        |row: &PublishedRow| paper.targets.iter().any(|target| is_of(row, &target.facts.name));
    rows.extend(published.iter().filter(|row| !is_shown(row)).map(|row| EditionRow {
        name: say!(published_edition, edition = &row.label),
        vcpu: row.vcpu(),
        measured: None,
        terminals: row.workers().unwrap_or_default(),
        warehouses: row.number("warehouses"),
        published: Some(row.metrics["tpmc"]),
        marks: String::new(),
    }));
    rows
}

fn table<'a>(rows: &'a [EditionRow<'a>]) -> PaperRows<&'a EditionRow<'a>> {
    let own = |row: &'a EditionRow<'a>| row.measured.as_ref();
    let shown = |row: &'a EditionRow<'a>, of: fn(&TpccPoint<'_>) -> Spread| -> Option<Cell> {
        own(row).map(|one| spread(of(&one.own), one.point.repeats))
    };
    PaperRows::new(say!(editions_beside_each_other), rows)
        .text(say!(edition), |row| &row.name)
        .col(say!(shards), Whole, |row| own(row).and_then(|one| one.own.facts.shards))
        .col(say!(vcpu_stated), Plain, |row| row.vcpu)
        .col(say!(warehouses_used), Whole, |row| row.warehouses)
        .col(say!(terminals), Whole, |row| row.terminals)
        .col("tpmC", Short, move |row| {
            let marks = Message::verbatim(row.marks.trim());
            shown(row, |own| own.tpmc).map(|cell| cell.with(marks))
        })
        .class("strong")
        .col("tpmTOTAL", Short, move |row| shown(row, |own| own.tpm_total))
        .col(say!(published_tpmc), Short, |row| row.published)
        .class("theirs")
        .col(say!(across_shards_percent), Percent, |row| {
            own(row).and_then(|one| crossing(&one.trials))
        })
        .col(say!(busiest_shard_by_an_even_one), Short, |row| {
            own(row).and_then(|one| unevenness(&one.trials))
        })
        .col(say!(server_cpu_us_2), Short, |row| {
            own(row).and_then(|one| one.point.costs.get(&Metric::ServerCpuUs)).map(|us| us.median)
        })
        .col(say!(of_it_the_proxys_us), Short, |row| own(row).and_then(|one| proxy_us(&one.trials)))
}

fn nodes<'a>(trials: &[&'a Trial], role: &str) -> Vec<(&'a Trial, Vec<&'a NodeConditions>)> {
    let of = |trial: &'a Trial| {
        let nodes = trial.summary.conditions.nodes.values();
        (trial, nodes.filter(|node| node.role.as_deref() == Some(role)).collect())
    };
    trials.iter().map(|trial| of(trial)).collect()
}

/// CPU of the endpoints for a transaction, the median of the trials.
fn proxy_us(trials: &[&Trial]) -> Option<f64> {
    let of = |(trial, nodes): (&Trial, Vec<&NodeConditions>)| {
        let of_node =
            |node: &&NodeConditions| trial.summary.cost_of(&node.measures, Metric::ServerCpuUs);
        nodes.iter().map(of_node).sum::<Option<f64>>().filter(|_| !nodes.is_empty())
    };
    let found: Vec<f64> = nodes(trials, "endpoint").into_iter().filter_map(of).collect();
    Spread::of(found).map(|spread| spread.median)
}

/// The work of the busiest shard by that of an even part: statements that write, else commits, else CPU.
fn unevenness(trials: &[&Trial]) -> Option<f64> {
    let of_trial = |(_, nodes): (&Trial, Vec<&NodeConditions>)| {
        let ways: [fn(&NodeConditions) -> Option<f64>; 3] = [
            |node| node.writes.map(|count| count as f64),
            |node| node.commits.map(|count| count as f64),
            |node| node.measures.get(Metric::CpuS),
        ];
        let work = ways
            .into_iter()
            .find_map(|of| nodes.iter().map(|node| of(node)).collect::<Option<Vec<f64>>>())?;
        let (most, sum) = (work.iter().copied().reduce(f64::max)?, work.iter().sum::<f64>());
        (sum > 0.0).then(|| most * work.len() as f64 / sum)
    };
    let found: Vec<f64> = nodes(trials, "shard").into_iter().filter_map(of_trial).collect();
    Spread::of(found).map(|spread| spread.median)
}

/// Editions on one axis, a bar for each number of terminals; tpmC, and tpmTOTAL below.
fn figure(rows: &[EditionRow<'_>], lang: Lang) -> Option<Drawing> {
    let measured = || rows.iter().filter(|row| row.measured.is_some());
    let mut levels: Vec<u32> = measured().map(|row| row.terminals as u32).collect();
    levels.sort_unstable();
    levels.dedup();
    let tpmc = chart(rows, &levels, say!(new_orders_per_minute_tpmc), true, |own| own.tpmc, lang)?;
    let total = chart(
        rows,
        &levels,
        say!(transactions_per_minute_tpmtotal),
        false,
        |own| own.tpm_total,
        lang,
    )?;
    let mut note = vec![say!(bars_are_measured_a_bar_for_each)];
    if tpmc.y.scale.is_log() {
        note.push(say!(the_axis_of_tpmc_is_logarithmic));
    }
    Some(Drawing {
        caption: say!(tpmc_and_tpmtotal_by_edition).render(lang),
        note: Message::sentences(&note).render(lang),
        svgs: vec![tpmc.svg(), total.svg()],
        ..Drawing::default()
    })
}

fn chart(
    rows: &[EditionRow<'_>],
    levels: &[u32],
    label: Message,
    has_published: bool,
    of: fn(&TpccPoint<'_>) -> Spread,
    lang: Lang,
) -> Option<BarColumns> {
    let mut groups: Vec<BarGroup> = Vec::new();
    for same in rows.chunk_by(|a, b| a.name == b.name) {
        let column = |terminals: &u32| {
            let at = |row: &&EditionRow<'_>| row.terminals == f64::from(*terminals);
            let row = same.iter().find(at);
            let value = row.and_then(|row| Some(of(&row.measured.as_ref()?.own)));
            let marks = row.map_or("", |row| row.marks.as_str());
            let text = value.map_or(String::new(), |value| format::short(value.median) + marks);
            BarColumn {
                value: value.map(|value| value.median).filter(|median| *median > 0.0),
                low_high: value.filter(|value| value.min > 0.0).map(|value| (value.min, value.max)),
                text,
                title: words::terminals(*terminals).render(lang),
                ..BarColumn::default()
            }
        };
        let published = same.iter().find_map(|row| row.published).filter(|_| has_published);
        if same[0].measured.is_some() || published.is_some() {
            groups.push(BarGroup {
                name: same[0].name.render(lang),
                detail: String::new(),
                columns: levels.iter().map(column).collect(),
                marks: if has_published { vec![published] } else { Vec::new() },
            });
        }
    }
    let y = axis(&groups, label.clone(), lang)?;
    let has_marks = groups.iter().any(|group| group.marks.iter().any(Option::is_some));
    let mark_names = has_marks.then(|| say!(published_tpmc).render(lang));
    Some(BarColumns {
        width: charts::WIDE.0,
        height: charts::WIDE.1 - 60.0,
        description: label.render(lang),
        class: "s0".to_owned(),
        base: y.scale.ends().0,
        y,
        limit: None,
        bound_name: String::new(),
        names: levels.iter().map(|level| words::terminals(*level).render(lang)).collect(),
        mark_names: mark_names.into_iter().collect(),
        groups,
    })
}

/// Logarithmic where the values span more than a factor of 30.
fn axis(groups: &[BarGroup], label: Message, lang: Lang) -> Option<Axis> {
    let ends = |column: &BarColumn| {
        column
            .value
            .into_iter()
            .chain(column.low_high.into_iter().flat_map(|(low, high)| [low, high]))
    };
    let of = |group: &BarGroup| -> Vec<f64> {
        let marks = group.marks.iter().copied().flatten();
        group.columns.iter().flat_map(ends).chain(marks).collect()
    };
    let values: Vec<f64> = groups.iter().flat_map(of).filter(|value| *value > 0.0).collect();
    let (low, high) =
        (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    if high <= 30.0 * low {
        return Some(charts::linear_axis(label.render(lang).as_str(), values.into_iter(), 5));
    }
    // A bar of the lowest value has some length, too.
    let scale = AxisScale::round_log(low / 2.0, high);
    let label = say!(logarithmic_axis, axis = label).render(lang);
    Some(Axis::of(label, scale, scale.ticks(7)))
}
