//! The state of a node as seen by work that waits for it.

crate::named! {
    /// From good to bad.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NodeHealth {
        /// It answers, or uses the CPU.
        Works = "works",
        /// It does not answer, is frozen, or has no memory left.
        Stuck = "stuck",
        /// Its log says so.
        OutOfMemory = "out of memory",
        /// Its process is gone.
        Dead = "dead",
    }
}

/// The health of a node, with evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSight {
    pub name: String,
    pub health: NodeHealth,
    /// The predicate of a sentence whose subject is the name: `answers a new connection`.
    pub evidence: String,
}
