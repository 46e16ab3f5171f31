//! Looks at the load generator's machine and at servers, before, while and after they are measured.

mod host;
pub mod proc;
mod server;

dyno_facts::catalog!();

pub use host::{HostSampler, ServerProcess, ServerUsage, environment, governor, machine};
pub use server::{
    Asked, LOCK_CLASS, LogPosition, NodeLook, NodeState, Questions, Sample, ServerWindow,
    commits_grown, follows, glance, has_reached, look, node_conditions, position, read_facts,
    server_restarted, standstill, was_alone,
};
