//! The whole in a paragraph and a table.

use super::notes;
use crate::blocks::{Blocks, Cell, Rows, Span, Style, link, spread};
use crate::evidence::{KeyRow, Paper};
use crate::families::FAMILIES;
use crate::format::Format::{Ms, Short, Whole};
use crate::text::{Lang, Message};
use dyno_facts::Purpose;
use dyno_facts::say;

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("1", say!(summary), "summary");
    let found = paper.checks.iter().filter(|check| !check.findings.is_empty()).count();
    let made = paper.checks.len().to_string();
    let mut sentences = paper.summary.clone();
    sentences.push(match found {
        0 => say!(none_of_checks_found_anything_to, made = made),
        _ => say!(of_checks_found_something_to_remark, found = found.to_string(), made = made),
    });
    let lead = vec![
        Span::plain(Message::sentences(&sentences)),
        Span::plain(" "),
        link(say!(all_checks), "#checks"),
    ];
    blocks.styled(Style::Lead, lead);
    blocks.extend(super::verdict::blocks(paper, lang));
    blocks.table(best(paper));
    FAMILIES.into_iter().filter_map(|f| f.summary(paper)).for_each(|own| blocks.table(own));
    blocks
}

/// The best point of each experiment and target.
pub(super) fn best(paper: &Paper) -> Rows<&KeyRow> {
    let has_tpmc = paper.experiments.iter().any(|experiment| experiment.tpcc.is_some());
    let title = say!(the_load_level_with_the_most);
    Rows::new(title, &paper.key_rows)
        .text(say!(experiment), |row| {
            let to = format!("#experiment-{}", row.experiment_index + 1);
            let again = row.point.purpose == Purpose::Confirm;
            Cell::from(link(&row.experiment, to))
                .with_if(again, || vec![Span::plain(say!(measured_again))])
        })
        .text(say!(target_2), |row| &row.point.target)
        .when(has_tpmc, |table| {
            table
                .col("tpmC", Short, |row| {
                    row.point.tpcc.as_ref().map(|tpcc| spread(tpcc.tpmc, row.point.repeats))
                })
                .class("strong")
        })
        .col(say!(workers), Whole, |row| row.point.workers)
        .col(say!(transactions_per_s), Short, |row| spread(row.point.tps, row.point.repeats))
        .class("strong")
        .col(say!(statements_per_s), Short, |row| spread(row.point.qps, 1))
        .col(say!(mean_ms), Ms, |row| row.point.mean_us.map(|us| spread(us, 1)))
        .col(say!(p95_ms), Ms, |row| row.point.p95_us.map(|us| spread(us, row.point.repeats)))
        .col(say!(p99_ms), Ms, |row| row.point.p99_us.map(|us| spread(us, row.point.repeats)))
        .col(say!(errors), Whole, |row| row.point.errors)
        .text(say!(notes), |row| notes(paper, &row.point.checks))
}
