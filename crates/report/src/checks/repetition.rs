//! C: repetition and statistics.

use super::{Find, Rule};
use crate::model::{Group, Level};
use crate::text::Text;

/// Fewer repeats than this can't carry a verdict (four pairs: the smallest p is 0.029).
const REPEATS_FOR_A_VERDICT: usize = 4;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "few-repeats",
    group: Group::C,
    level: Level::I,
    rule: "Every point is measured at least 4 times.",
    meaning: "Differences between points may be chance; no verdict on which is faster is given.",
    advice: "Repeat each point 6 times or more (repeats), the targets by turns.",
    find: Find::Experiment(|experiment| {
        let fewest = experiment.points.iter().map(|point| point.repeats).min()?;
        (fewest < REPEATS_FOR_A_VERDICT)
            .then(|| Text::count(fewest as u64, "{n} trial per point", "{n} trials per point"))
    }),
}];
