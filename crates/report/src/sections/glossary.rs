//! The words of the paper.

use super::nodes;
use crate::evidence::Paper;
use crate::families::{FamilyPaper, families, family_of};
use crate::text::Message;
use dyno_facts::say;

type Term = (Message, Message);

/// The words that these experiments need, with their meanings.
pub(super) fn terms(paper: &Paper) -> Vec<Term> {
    let mut terms = vec![
        (say!(target), say!(a_database_system_under_test_with)),
        (say!(load_generator), say!(the_machine_that_makes_the_load)),
        (say!(statement), say!(one_sql_command_of_a_transaction)),
        (say!(load_level), say!(a_workload_on_a_target_with)),
        (say!(trial), say!(one_timed_execution_of_a_load)),
        (say!(window), say!(the_time_in_which_is_counted)),
        (say!(n_95_percent_interval), say!(a_range_made_so_that_it)),
        (say!(check), say!(a_computed_verdict_on_fairness_or)),
    ];
    let experiments = || paper.experiments.iter();
    if experiments().any(|experiment| !experiment.is_pass()) {
        terms.extend([
            (say!(worker), say!(a_virtual_client_with_a_session)),
            (say!(transaction), say!(the_unit_of_a_workload_that)),
            (say!(closed_loop), say!(a_worker_begins_its_next_transaction)),
            (say!(open_loop), say!(transactions_fall_due_on_a_schedule)),
            (say!(n_95th_percentile_p95), say!(the_latency_that_95_percent_of)),
        ]);
    }
    if nodes::has_clusters(paper) {
        terms.extend([
            (say!(primary), say!(the_node_of_a_target_that)),
            (say!(read_only_node), say!(a_node_that_copies_from_the)),
            (say!(endpoint), say!(a_proxy_that_spreads_what_it)),
            (say!(replica_lag), say!(how_far_a_copy_is_behind)),
        ]);
    }
    let is_there = |family: &&'static dyn FamilyPaper| {
        experiments().any(|own| family_of(own) == Some(*family))
    };
    terms.extend(families().filter(is_there).flat_map(|family| family.glossary()));
    terms
}
