//! What load generators and servers used.

use crate::blocks::{Blocks, Cell, Rows};
use crate::charts;
use crate::evidence::{NodeUse, Use};
use crate::evidence::{Paper, Target, Trial};
use crate::format::{
    self, Format,
    Format::{Bytes, Ms, Percent, Right, Short, Whole},
};
use crate::text::Lang;
use dyno_facts::say;

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("7", say!(resource_use), "resources");
    let of_transactions = super::trials::of_transactions(paper);
    if !of_transactions.is_empty() {
        blocks.table(generator(of_transactions));
        let is_known = |trial: &&Trial| trial.summary.conditions.generator.hiccup_p999_us.is_some();
        blocks.table(disturbances(paper.trials.iter().filter(is_known).collect()));
    }
    if paper.resources.nodes.is_empty() && !paper.trials.is_empty() {
        blocks.paragraph(say!(the_servers_were_not_asked_while));
    }
    blocks.table(servers(&paper.resources.nodes));
    blocks.grid(charts::resources::figures(paper, lang));
    paper.targets.iter().for_each(|target| counters(paper, target, &mut blocks));
    blocks
}

fn generator(trials: Vec<&Trial>) -> Rows<&Trial> {
    Rows::new(say!(the_load_generator_during_each_measured), trials)
        .text(say!(trial_2), |t| &t.label)
        .col(say!(window_s), Short, |t| t.summary.window_s)
        .col(say!(connecting_s), Short, |t| t.summary.connect_s)
        .col(say!(loops), Whole, |t| t.summary.generator.loops)
        .col(say!(cpu_of_loops_s), Short, |t| t.summary.generator.loops_cpu_s)
        .col(say!(busiest_loop_percent), Percent, |t| t.summary.generator.busiest_loop_share)
        .col(say!(machine_busy_percent_2), Percent, |t| t.summary.generator.host.cpu_share)
        .col(say!(stolen_percent), Percent, |t| t.summary.generator.host.steal_share)
        .col(say!(s_per_statement), Short, |t| t.summary.generator.cpu_us_per_statement)
        .col(say!(memory_mib), Short, |t| t.summary.generator.resident_mib)
        .col(say!(transactions_per_worker), Short, |t| t.summary.generator.worker_transactions_mean)
        .col(say!(their_standard_deviation), Short, |t| {
            t.summary.generator.worker_transactions_stddev
        })
}

fn disturbances(trials: Vec<&Trial>) -> Rows<&Trial> {
    let rows = trials.into_iter();
    let of = |t: &'_ Trial| t.summary.conditions.generator.clone();
    Rows::new(say!(what_disturbed_the_load_generator), rows)
        .text(say!(trial_2), |t| &t.label)
        .col(say!(waiting_for_cpu_percent), Percent, |t| of(t).cpu_pressure_share)
        .col(say!(waiting_for_memory_percent), Percent, |t| of(t).memory_pressure_share)
        .col(say!(waiting_for_disk_percent), Percent, |t| of(t).io_pressure_share)
        .col(say!(run_queue_delay_s), Short, |t| of(t).run_delay_s)
        .col(say!(hiccups_p99_9_ms), Ms, |t| of(t).hiccup_p999_us)
        .col(say!(largest_hiccup_ms), Ms, |t| of(t).hiccup_max_us)
        .col(say!(network_percent), Percent, |t| of(t).network_share)
        .col(say!(sent_again_percent), Percent, |t| of(t).retransmitted_share)
        .col(say!(pages_swapped), Whole, |t| of(t).swapped_pages)
        .col(say!(throttled_percent), Percent, |t| of(t).throttled_share)
        .text(say!(governor), |t| of(t).governor)
        .col(say!(proven_head_room), Right, |t| {
            of(t).headroom.map(|times| format!("{}×", format::short(times)))
        })
}

fn servers(rows: &[NodeUse]) -> Rows<&NodeUse> {
    let both = |own: Option<Use>, format: Format| {
        own.map(|own| Cell::from(own.mean).with(format.show(own.max)))
    };
    let title = say!(the_servers_during_each_measured_window_mean);
    Rows::new(title, rows)
        .text(say!(trial_2), |node| &node.trial)
        .text(say!(target_node), |node| format!("{}, {}", node.target, node.node))
        .col(say!(samples), Whole, |node| node.samples)
        .col(say!(machine_busy_percent_2), Percent, |node| both(node.cpu_share, Percent))
        .col(say!(sessions_at_work), Short, |node| both(node.active_sessions, Short))
        .col(say!(sessions_waiting_for_locks), Short, |node| both(node.waiting_sessions, Short))
        .col(say!(pages_read_per_s), Short, |node| both(node.pages_read_per_s, Short))
        .col(say!(pages_written_per_s), Short, |node| both(node.pages_written_per_s, Short))
        .col(say!(log_per_s), Bytes, |node| both(node.log_bytes_per_s, Bytes))
        .col(say!(dirty_memory_percent), Percent, |node| both(node.dirty_share, Percent))
        .col(say!(replica_lag_s), Short, |node| both(node.lag_s, Short))
}

fn counters(paper: &Paper, target: &Target, blocks: &mut Blocks) {
    let is_own = |trial: &&Trial| trial.target == target.label && !trial.counters.is_empty();
    let trials: Vec<&Trial> = paper.trials.iter().filter(is_own).collect();
    let Some(first) = trials.first().copied() else { return };
    let title = say!(growth_of_the_servers_counters_on, target = &target.label);
    let rows = Rows::new(title, trials).text(say!(trial_2), |t| &t.label);
    blocks.table(first.counters.iter().fold(rows, |rows, wanted| {
        let growth = |trial: &Trial| {
            let same = trial.counters.iter().find(|counter| counter.name == wanted.name);
            same.map(|counter| counter.growth)
        };
        rows.col(&wanted.name, Whole, growth).class("wrap")
    }));
}
