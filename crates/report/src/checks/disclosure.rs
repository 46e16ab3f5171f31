//! H: disclosure.

use super::{Find, Rule};
use crate::model::{Finding, Group, Level, RunFacts, Spot};
use crate::say;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "full-size",
        group: Group::H,
        level: Level::W,
        rule: "A suite runs in full size.",
        meaning: "Data and durations are smaller than those of the suite: a rehearsal, whose figures can't be compared with published ones.",
        advice: "Leave out --shrink for figures that count.",
        find: Find::Paper(|paper| paper.runs.iter().filter_map(shrunk).collect()),
    },
    Rule {
        id: "damaged-folder",
        group: Group::H,
        level: Level::W,
        rule: "Nothing in the run folder is damaged or missing.",
        meaning: "Some of what was measured could not be read.",
        advice: "Copy the run folder again from where it was measured, or repeat the trial.",
        find: Find::Paper(|paper| {
            let of_run = |run: &RunFacts| -> Vec<Finding> {
                let place = Spot::run(&run.folder);
                let finding = |value| Finding { place: place.clone(), value };
                run.warnings.iter().cloned().map(finding).collect()
            };
            paper.runs.iter().flat_map(of_run).collect()
        }),
    },
];

/// The share of the suite's size that was executed, where that is less than the whole.
fn shrunk(run: &RunFacts) -> Option<Finding> {
    let share = run.header.plan.get("shrink")?.as_f64().filter(|share| *share < 1.0)?;
    let value = say!("shrunk to {share} of its data and durations", share = share.to_string());
    Some(Finding { place: Spot::run(&run.folder), value })
}
