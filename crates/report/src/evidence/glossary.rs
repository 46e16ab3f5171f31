//! The words of the paper.

use crate::evidence::Experiment;
use crate::families::{FAMILIES, FamilyPaper};
use crate::text::Message;
use dyno_facts::say;

/// A word and what it means here.
#[derive(Clone, Debug, PartialEq)]
pub struct GlossaryRow {
    pub word: Message,
    pub meaning: Message,
}

/// The words that these experiments need.
pub(super) fn rows(experiments: &[Experiment]) -> Vec<GlossaryRow> {
    let mut rows = common();
    if experiments.iter().any(|experiment| experiment.tpch.is_none()) {
        rows.extend(of_transactions());
    }
    if experiments.iter().any(|experiment| !experiment.node_tables.is_empty()) {
        rows.extend(of_clusters());
    }
    let is_there = |family: &dyn FamilyPaper| experiments.iter().any(|own| family.has(own));
    rows.extend(FAMILIES.into_iter().filter(|f| is_there(*f)).flat_map(FamilyPaper::glossary));
    rows
}

fn of_clusters() -> [GlossaryRow; 4] {
    [
        row(say!(primary), say!(the_node_of_a_target_that)),
        row(say!(read_only_node), say!(a_node_that_copies_from_the)),
        row(say!(endpoint), say!(a_proxy_that_spreads_what_it)),
        row(say!(replica_lag), say!(how_far_a_copy_is_behind)),
    ]
}

pub(crate) fn row(word: Message, meaning: Message) -> GlossaryRow {
    GlossaryRow { word, meaning }
}

fn common() -> Vec<GlossaryRow> {
    vec![
        row(say!(target), say!(a_database_system_under_test_with)),
        row(say!(load_generator), say!(the_machine_that_makes_the_load)),
        row(say!(statement), say!(one_sql_command_of_a_transaction)),
        row(say!(load_level), say!(a_workload_on_a_target_with)),
        row(say!(trial), say!(one_timed_execution_of_a_load)),
        row(say!(window), say!(the_time_in_which_is_counted)),
        row(say!(n_95_percent_interval), say!(a_range_made_so_that_it)),
        row(say!(check), say!(a_computed_verdict_on_fairness_or)),
    ]
}

/// Words of workloads whose transactions are counted.
fn of_transactions() -> Vec<GlossaryRow> {
    vec![
        row(say!(worker), say!(a_virtual_client_with_a_session)),
        row(say!(transaction), say!(the_unit_of_a_workload_that)),
        row(say!(closed_loop), say!(a_worker_begins_its_next_transaction)),
        row(say!(open_loop), say!(transactions_fall_due_on_a_schedule)),
        row(say!(n_95th_percentile_p95), say!(the_latency_that_95_percent_of)),
    ]
}
