//! How a node of a target looks to who waits for it.

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

/// What a look at a node of the target has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSight {
    pub name: String,
    pub health: NodeHealth,
    /// Goes on with a sentence that begins with the name: `answers a new connection`.
    pub evidence: String,
}
