//! What each node of a target and each load generator of a fleet did.

use super::sum_or;
use crate::blocks::{Blocks, Rows};
use crate::evidence::Experiment;
use crate::evidence::{FleetTable, FreshnessRow, GeneratorLoad, NodeLoad, NodeTable};
use crate::format::Format::{Ms, Percent, Short, Whole};
use crate::text::Message;
use dyno_facts::say;

pub(super) fn blocks(experiment: &Experiment, blocks: &mut Blocks) {
    for table in experiment.node_tables.iter().filter(|table| table.is_best) {
        blocks.table(nodes(table));
        blocks.paragraph(Message::sentences(&table.words));
    }
    let others = experiment.node_tables.iter().filter(|table| !table.is_best);
    blocks.table(shares(others.filter(|table| !table.words.is_empty()).collect()));
    if !experiment.node_tables.is_empty() {
        blocks.fine(say!(statements_and_commits_are_counted_by));
    }
    if !experiment.freshness.is_empty() {
        blocks.table(freshness(&experiment.freshness));
        blocks.fine(say!(a_read_is_stale_when_it));
    }
    for table in &experiment.fleet {
        blocks.table(generators(table));
        blocks.paragraph(Message::sentences(&table.words));
    }
    if !experiment.fleet.is_empty() {
        blocks.fine(say!(times_of_starts_clocks_and_percentiles));
    }
}

fn nodes(table: &NodeTable) -> Rows<&NodeLoad> {
    let title = say!(what_each_node_of_did, target = &table.target, load = &table.load);
    Rows::new(title, table.nodes.iter().chain([&table.sum]))
        .text(say!(node), |node| sum_or(&node.node, say!(all_nodes)))
        .text(say!(role), |node| &node.role_words)
        .col(say!(reads), Whole, |node| node.reads)
        .col(say!(share_percent), Percent, |node| node.read_share)
        .class("strong")
        .col(say!(writes), Whole, |node| node.writes)
        .col(say!(share_percent), Percent, |node| node.write_share)
        .class("strong")
        .col(say!(all_statements), Whole, |node| node.statements)
        .col(say!(commits), Whole, |node| node.commits)
        .col(say!(statements_per_s), Short, |node| node.qps)
        .class("strong")
        .col(say!(machine_busy_percent_2), Percent, |node| node.cpu_share)
        .col(say!(lag_p95_s), Short, |node| node.lag_p95_s)
        .col(say!(largest_lag_s), Short, |node| node.lag_max_s)
}

fn shares(tables: Vec<&NodeTable>) -> Rows<&NodeTable> {
    Rows::new(say!(who_executed_what_at_the_other), tables)
        .text(say!(target_2), |table| &table.target)
        .text(say!(load), |table| &table.load)
        .text(say!(shares_of_the_nodes), |table| Message::sentences(&table.words))
        .col(say!(largest_lag_s), Short, |table| table.sum.lag_max_s)
}

fn freshness(rows: &[FreshnessRow]) -> Rows<&FreshnessRow> {
    Rows::new(say!(reads_right_after_writes_through_the), rows)
        .text(say!(target_2), |row| &row.target)
        .text(say!(load), |row| &row.load)
        .col(say!(read_by_the_session_that_wrote), Whole, |row| row.asked)
        .col(say!(of_these_stale), Whole, |row| row.stale)
        .class("strong")
        .col(say!(read_by_another_session), Whole, |row| row.asked_other)
        .col(say!(of_these_stale), Whole, |row| row.stale_other)
        .class("strong")
        .col(say!(longest_stale_ms), Short, |row| row.stale_max_ms)
}

fn generators(table: &FleetTable) -> Rows<&GeneratorLoad> {
    let title = say!(what_each_load_generator_did_on, target = &table.target, load = &table.load);
    Rows::new(title, table.generators.iter().chain([&table.sum]))
        .text(say!(load_generator_2), |one| sum_or(&one.name, say!(all_together)))
        .text(say!(machine), |one| &one.host)
        .when(table.has_nodes, |rows| rows.text(say!(nodes_driven), |one| one.nodes.join(", ")))
        .col(say!(workers), Whole, |one| one.workers)
        .col(say!(committed_2), Whole, |one| one.committed)
        .col(say!(statements_per_s), Short, |one| one.qps)
        .class("strong")
        .col(say!(share_percent), Percent, |one| one.share)
        .col(say!(p95_ms), Ms, |one| one.p95_us)
        .col(say!(p99_ms), Ms, |one| one.p99_us)
        .col(say!(started_late_ms), Short, |one| one.late_ms)
        .col(say!(clock_known_to_ms), Short, |one| one.clock_bound_ms)
        .col(say!(calendar_ahead_ms), Short, |one| one.clock_skew_ms)
        .col(say!(cpu_of_loops_s), Short, |one| one.cpu_s)
        .col(say!(machine_busy_percent_2), Percent, |one| one.cpu_share)
}
