//! E: the state of data, caches and machines.

use super::{Find, Rule, percent};
use crate::model::{Group, Level};

/// Of the load generator's CPU, taken by the hypervisor.
const STEAL: f64 = 0.01;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "steal",
    group: Group::E,
    level: Level::W,
    rule: "The hypervisor takes at most 1 % of the load generator's CPU for others.",
    meaning: "Other virtual machines disturbed the measurement.",
    advice: "Use a dedicated machine, or repeat at another time.",
    find: Find::Trial(|trial| {
        let share = trial.summary.generator.host.steal_share;
        (share > STEAL).then(|| percent(share))
    }),
}];
