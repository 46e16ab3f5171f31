//! An experiment: charts, load levels, data, statements, nodes, load generators.

use super::{fleet, nodes, notes, target_of};
use crate::blocks::{Blocks, Cell, PaperRows, Span, TextLine, code, spread};
use crate::charts;
use crate::evidence::NodeScaling;
use crate::evidence::{Experiment, Paper, Point, statements};
use crate::families::family_of;
use crate::format::NumberFormat::{Bytes, Ms, Percent, Short, Text as Words, Whole};
use crate::format::unique;
use crate::text::{Lang, Message};
use dyno_facts::{Metric, Purpose, StatementLatency, say};

pub(super) fn blocks(paper: &Paper, experiment: &Experiment, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    super::publisher::paragraphs(&mut blocks, &experiment.description.render(lang));
    let left_out = left_out(paper, experiment);
    if !left_out.is_empty() {
        let all: Vec<Message> = [say!(left_out)].into_iter().chain(left_out).collect();
        blocks.fine(Message::sentences(&all));
    }
    match family_of(experiment).and_then(|family| family.section(paper, experiment, lang)) {
        Some(own) => blocks.extend(own),
        None => blocks.figures(charts::of_experiment(paper, experiment, lang)),
    }
    of_transactions(paper, experiment, &mut blocks);
    if experiment.points.is_empty() {
        let none = say!(no_figures_no_trial_of_this);
        blocks.paragraph(none);
    }
    blocks.figures(nodes::figures(paper, experiment, lang));
    nodes::blocks(paper, experiment, &mut blocks);
    fleet::blocks(paper, experiment, &mut blocks);
    blocks
}

/// The steps that were skipped and why, repeats told once.
fn left_out(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let skipped = paper.runs.iter().flat_map(|run| &run.header.skipped);
    let own = skipped.filter_map(|(id, why)| {
        let step = id.strip_prefix(&experiment.name)?.strip_prefix('/')?;
        let step = step.split("/repeat=").next().unwrap_or(step).replace('/', ", ");
        Some(say!(what_why, what = step, why = why))
    });
    unique(own.collect())
}

/// What a terminal shows of an experiment.
pub(super) fn terminal(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    blocks.heading(4, "", &experiment.title, "");
    let own = family_of(experiment).and_then(|family| family.terminal(paper, experiment));
    blocks.extend(own.unwrap_or_default());
    of_transactions(paper, experiment, blocks);
    nodes::blocks(paper, experiment, blocks);
    fleet::blocks(paper, experiment, blocks);
}

fn of_transactions(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let points = &experiment.points;
    if points.is_empty() || experiment.is_pass() {
        return;
    }
    blocks.table(levels(paper, experiment));
    blocks.table(scaling_of(experiment));
    let described = points.iter().filter(|point| point.data.is_some());
    blocks.table(data(described.collect()));
    if points.iter().any(|point| point.data.is_some()) {
        blocks.fine(Message::sentences(&access(paper, experiment)));
    }
    blocks.table(of_statements(&statements::rows(paper.trials_in(experiment))));
    if points.iter().any(|point| point.p999_us.is_none()) {
        let why = say!(fewer_than_10_samples_lie_beyond);
        blocks.fine(vec![Span::plain("– "), Span::plain(why)]);
    }
}

fn levels<'a>(paper: &'a Paper, experiment: &'a Experiment) -> PaperRows<&'a Point> {
    let test = if experiment.test.is_empty() { &experiment.name } else { &experiment.test };
    let title = match experiment.points.iter().any(|point| point.repeats > 1) {
        true => say!(load_levels_medians_of_the_repeats, test = test),
        false => say!(test_load_levels, test = test),
    };
    let latency = match (experiment.is_open_loop, experiment.has_terminals()) {
        (true, _) => say!(latency_from_the_due_time_ms),
        (false, true) => say!(response_time_of_all_kinds_ms),
        (false, false) => say!(service_time_ms),
    };
    let is_known = |metric: &Metric| experiment.points.iter().any(|p| p.costs.contains_key(metric));
    let costs = Metric::costs().filter(is_known);
    PaperRows::new(title, &experiment.points)
        .text(say!(target_2), |p| {
            let again = match p.purpose {
                Purpose::Confirm => say!(measured_again),
                Purpose::Search => say!(step_of_the_search),
                Purpose::Measure => Message::default(),
            };
            Cell::from(target_of(&p.target, p.status)).with(again)
        })
        .col(say!(workers), Whole, |p| p.workers)
        .when(experiment.is_open_loop, |table| {
            table.col(say!(offered_per_s), Short, |p| p.rate_per_s)
        })
        .group(say!(per_second), |table| {
            table.col(say!(transactions), Short, |p| spread(p.tps, p.repeats)).class("strong").col(
                say!(statements),
                Short,
                |p| spread(p.qps, 1),
            )
        })
        .group(latency, |table| {
            table
                .col(say!(mean), Ms, |p| p.mean_us.map(|us| spread(us, 1)))
                .col("p50", Ms, |p| p.p50_us.map(|us| spread(us, 1)))
                .col("p95", Ms, |p| p.p95_us.map(|us| spread(us, p.repeats)))
                .col("p99", Ms, |p| p.p99_us.map(|us| spread(us, p.repeats)))
                .col("p99.9", Ms, |p| p.p999_us.map(|us| spread(us, 1)))
                .col(say!(max), Ms, |p| p.max_us)
        })
        .col(say!(errors), Whole, |p| p.errors)
        .col(say!(retries), Whole, |p| p.retries)
        .col(say!(reconnects), Whole, |p| p.reconnects)
        .col(say!(generator_cpu_s_per_statement), Short, |p| spread(p.cpu_us_per_statement, 1))
        .metrics(costs, |p, metric| p.costs.get(&metric).map(|cost| spread(*cost, p.repeats)))
        .text(say!(notes), |p| notes(paper, &p.checks))
}

/// What more read-only nodes bring.
pub(super) fn scaling_of(experiment: &Experiment) -> PaperRows<&NodeScaling> {
    PaperRows::new(say!(scaling_with_read_only_nodes_at), &experiment.node_scaling)
        .text(say!(target_2), |row| &row.target)
        .col(say!(read_only_nodes_3), Whole, |row| {
            Cell::from(row.nodes).with_if(row.is_stated, || vec![Span::plain(say!(stated))])
        })
        .col(say!(workers), Whole, |row| row.workers)
        .col(say!(statements_per_s), Short, |row| row.qps.median)
        .class("strong")
        .col(say!(for_each_node), Short, |row| row.qps_per_node)
        .col(say!(speed_up), Short, |row| row.speedup)
        .col(say!(efficiency_percent), Percent, |row| row.efficiency)
}

fn data(points: Vec<&Point>) -> PaperRows<&Point> {
    let title = say!(data_and_the_range_that_keys);
    let facts = |p: &'_ Point| p.data.clone();
    PaperRows::new(title, points)
        .text(say!(target_2), |p| &p.target)
        .col(say!(workers), Whole, |p| p.workers)
        .col(say!(rows), Whole, |p| facts(p).map(|data| data.facts.rows))
        .col(say!(hot_rows), Whole, |p| facts(p).and_then(|data| data.facts.hot_rows))
        .col(say!(hot_share_percent), Percent, |p| facts(p).and_then(|data| data.hot_share))
        .class("strong")
        .col(say!(size_of_the_data), Bytes, |p| facts(p).and_then(|data| data.facts.size_bytes))
        .col(say!(memory_for_data), Bytes, |p| facts(p).and_then(|data| data.facts.memory_bytes))
        .col(say!(its_setting), Words, |p| facts(p).map(|data| code(data.facts.memory_setting)))
        .col(say!(data_to_memory), Short, |p| facts(p).and_then(|data| data.size_to_memory))
        .class("strong")
        .col(say!(reads_and_writes_per_s), Short, |p| spread(p.data_qps, p.repeats))
}

/// How keys are drawn, each way once.
fn access(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let data = paper.trials_in(experiment).filter_map(|trial| trial.summary.data.as_ref());
    unique(data.map(|data| data.access.clone()).filter(|text| !text.is_empty()).collect())
}

type Level<'a> = &'a (&'a str, u32, StatementLatency);

fn of_statements<'a>(rows: &'a [(&'a str, u32, StatementLatency)]) -> PaperRows<Level<'a>> {
    let first = rows.first().map(|row| &row.2.script);
    let is_one = rows.iter().all(|row| Some(&row.2.script) == first);
    let title = match first.filter(|_| is_one) {
        Some(script) => say!(statement_by_statement, script = script),
        None => say!(statement_by_statement_2),
    };
    let text = |row: Level<'_>| row.2.text.split_whitespace().collect::<Vec<_>>().join(" ");
    PaperRows::new(title, rows)
        .text(say!(target_2), |row| row.0)
        .col(say!(workers), Whole, |row| row.1)
        .when(!is_one, |table| table.text(say!(script), |row| &row.2.script))
        .text(say!(statement_2), |row| -> TextLine { vec![code(text(row))] })
        .class("sql")
        .col(say!(executions), Whole, |row| row.2.count)
        .col(say!(mean_ms), Ms, |row| row.2.mean_us)
        .class("strong")
        .col(say!(min_ms), Ms, |row| row.2.min_us)
        .col(say!(max_ms), Ms, |row| row.2.max_us)
        .col(say!(failures), Whole, |row| row.2.failures)
        .col(say!(retries), Whole, |row| row.2.retries)
}
