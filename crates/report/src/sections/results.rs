//! The results, chapter by chapter.

use super::{experiment, notes, yes_or_no};
use crate::blocks::{Blocks, PaperRows, link, spread};
use crate::charts;
use crate::evidence::{Cost, CostRow};
use crate::evidence::{Experiment, KeyRow, Paper};
use crate::families::{FamilyPaper, families, family_of};
use crate::format::{
    self,
    NumberFormat::{Plain, Right, Short},
};
use crate::text::{Lang, Message};
use dyno_facts::{Purpose, Role, Route, say};

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("6", say!(results), "results");
    let mut number = 0;
    let mut next = || {
        number += 1;
        format!("6.{number}")
    };
    for (place, (title, experiments)) in chapters(paper).into_iter().enumerate() {
        blocks.heading(3, &next(), title, &format!("chapter-{}", place + 1));
        blocks.listed();
        blocks.figures(charts::cover::totals(paper, &experiments, lang));
        for (index, own) in experiments {
            blocks.heading(4, "", &own.title, &format!("experiment-{}", index + 1));
            blocks.extend(experiment::blocks(paper, own, lang));
        }
    }
    if !paper.result_rows().is_empty() {
        blocks.heading(3, &next(), say!(capacity), "capacity");
        blocks.listed();
        blocks.table(capacity(paper));
        blocks.fine(say!(vcpu_are_those_of_one_node));
    }
    if !paper.costs.is_empty() {
        blocks.table(costs(paper));
        blocks.fine(say!(prices_are_stated_in_the_suite));
    }
    if !paper.faults().is_empty() {
        blocks.heading(3, &next(), say!(failover_and_durability), "failover");
        blocks.listed();
        blocks.extend(super::fault::blocks(paper, lang));
    }
    let title = say!(scaling_steadiness_errors_and_gaps);
    blocks.heading(3, &next(), title, "disturbances");
    blocks.listed();
    blocks.extend(super::steady::blocks(paper));
    blocks
}

/// The chapters that have experiments, each with their places in the paper; what belongs to no family comes last.
pub(super) fn chapters(paper: &Paper) -> Vec<(Message, Vec<(usize, &Experiment)>)> {
    let of = |wanted: Option<&'static dyn FamilyPaper>| -> Vec<(usize, &Experiment)> {
        paper.experiments.iter().enumerate().filter(|(_, own)| family_of(own) == wanted).collect()
    };
    let named = families().map(|family| (family.title(), of(Some(family))));
    let all = named.chain([(say!(other_workloads), of(None))]);
    all.filter(|(_, experiments)| !experiments.is_empty()).collect()
}

/// The virtual CPUs of a node, as stated; of all read-only nodes where the load is spread over these.
fn vcpu(paper: &Paper, row: KeyRow<'_>) -> Option<f64> {
    let target = paper.targets.iter().find(|target| target.label == row.point.target)?;
    let readers = target.facts.nodes.iter().filter(|node| node.role == Role::ReadOnly).count();
    // Nothing of the load is done by other nodes, and all of it by these.
    let nodes = if target.facts.route == Route::Spread { readers.max(1) } else { 1 };
    target.facts.vcpu.map(|vcpu| vcpu * nodes as f64).filter(|vcpu| *vcpu > 0.0)
}

/// One row per experiment and target with figures of throughput.
fn capacity(paper: &Paper) -> PaperRows<KeyRow<'_>> {
    PaperRows::new(say!(the_most_that_each_target_did), paper.result_rows())
        .text(say!(experiment), |row| {
            link(&row.experiment.title, format!("#experiment-{}", row.index + 1))
        })
        .text(say!(target_2), |row| &row.point.target)
        .text(say!(load), |row| row.point.load_words())
        .col(say!(throughput), Short, |row| spread(row.point.throughput(), row.point.repeats))
        .class("strong")
        .text(say!(unit), |row| match row.point.main {
            Some((metric, _)) => metric.title(),
            None => say!(transactions_s),
        })
        .col(say!(vcpu), Plain, |row| vcpu(paper, row))
        .col(say!(per_vcpu), Short, |row| {
            vcpu(paper, row).map(|vcpu| row.point.throughput().median / vcpu)
        })
        .text(say!(objective), |row| row.experiment.objective.as_ref())
        .text(say!(measured_again_2), |row| yes_or_no(row.point.purpose == Purpose::Confirm))
        .text(say!(notes), |row| notes(paper, &row.point.checks))
}

pub(super) fn costs(paper: &Paper) -> PaperRows<(&Cost, &CostRow)> {
    let of = |cost| move |row| (cost, row);
    let rows = paper.costs.iter().flat_map(|cost| cost.rows.iter().map(of(cost)));
    let title = say!(cost_from_the_stated_price_of);
    PaperRows::new(title, rows)
        .text(say!(experiment), |(cost, _)| &cost.experiment)
        .text(say!(target_2), |(cost, _)| &cost.target)
        .col(say!(price_of_an_hour), Right, |(cost, _)| {
            format!("{} {}", format::plain(cost.price.per_hour), cost.price.currency)
        })
        .text(say!(cost), |(_, row)| &row.what)
        .col(say!(amount), Right, |(cost, row)| {
            format!("{} {}", format::short(row.amount), cost.price.currency)
        })
        .class("strong")
}
