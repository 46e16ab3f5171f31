//! The results, chapter by chapter.

use super::{experiment, notes, yes_or_no};
use crate::blocks::{Blocks, Rows, link, spread};
use crate::evidence::Capacity;
use crate::evidence::Paper;
use crate::findings::published::{Cost, CostRow};
use crate::format::{
    self,
    Format::{Plain, Right, Short},
};
use crate::text::Lang;
use dyno_facts::say;

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("6", say!(results), "results");
    let mut number = 0;
    let mut next = || {
        number += 1;
        format!("6.{number}")
    };
    for (place, chapter) in paper.chapters.iter().enumerate() {
        let anchor = format!("chapter-{}", place + 1);
        blocks.heading(3, &next(), chapter.title.clone(), &anchor);
        blocks.listed();
        for index in &chapter.experiments {
            let own = &paper.experiments[*index];
            blocks.heading(4, "", &own.title, &format!("experiment-{}", index + 1));
            blocks.extend(experiment::blocks(paper, own, lang));
        }
    }
    if !paper.capacity.is_empty() {
        blocks.heading(3, &next(), say!(capacity), "capacity");
        blocks.listed();
        blocks.table(capacity(paper));
        blocks.fine(say!(vcpu_are_those_of_one_node));
    }
    if !paper.costs.is_empty() {
        blocks.table(costs(paper));
        blocks.fine(say!(prices_are_stated_in_the_suite));
    }
    if !paper.faults.is_empty() {
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

fn capacity(paper: &Paper) -> Rows<&Capacity> {
    Rows::new(say!(the_most_that_each_target_did), &paper.capacity)
        .text(say!(experiment), |row| {
            link(&row.experiment, format!("#experiment-{}", row.experiment_index + 1))
        })
        .text(say!(target_2), |row| &row.target)
        .text(say!(load), |row| &row.load)
        .col(say!(throughput), Short, |row| spread(row.throughput, row.repeats))
        .class("strong")
        .text(say!(unit), |row| &row.unit)
        .col(say!(vcpu), Plain, |row| row.vcpu)
        .col(say!(per_vcpu), Short, |row| row.per_vcpu)
        .text(say!(objective), |row| row.objective.as_ref())
        .text(say!(measured_again_2), |row| yes_or_no(row.is_confirmed))
        .text(say!(notes), |row| notes(paper, &row.checks))
}

fn costs(paper: &Paper) -> Rows<(&Cost, &CostRow)> {
    let of = |cost| move |row| (cost, row);
    let rows = paper.costs.iter().flat_map(|cost| cost.rows.iter().map(of(cost)));
    let title = say!(cost_from_the_stated_price_of);
    Rows::new(title, rows)
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
