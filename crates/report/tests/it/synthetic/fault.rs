//! A run in which primaries are killed: nothing is lost on one target, something on the other.

use super::two_targets;
use dyno_facts::{ErrorSummary, FaultFacts, FaultPlan, FaultStep, Message};
use dyno_store::RunData;

/// A run of two targets, the second of which loses commits.
pub(crate) fn fault() -> RunData {
    let mut run = two_targets(&[8], 2, 30);
    // The last one is of another experiment.
    run.trials.pop();
    let plan = FaultPlan {
        node: "primary".to_owned(),
        at_s: 10.0,
        promote: Some(String::new()),
        ..FaultPlan::default()
    };
    for experiment in &mut run.header.experiments {
        experiment.fault = Some(plan.clone());
    }
    let first = run.header.targets[0].name.clone();
    for trial in &mut run.trials {
        let is_durable = trial.summary.target == first;
        trial.summary.fault = Some(facts(if is_durable { 0 } else { 12 }));
    }
    run
}

/// A primary that was killed; this many acknowledged commits were lost.
fn facts(lost: u64) -> FaultFacts {
    let steps = [
        (10.0, "n1 was killed.", "n1 已被强制终止。"),
        (11.1, "n2 was promoted.", "n2 已提升为主节点。"),
        (11.2, "n2 takes writes.", "n2 接受写入。"),
    ];
    FaultFacts {
        action: "kill".to_owned(),
        node: "n1".to_owned(),
        at_s: 10.0,
        heal_asked_at_s: None,
        healed_at_s: None,
        shard: None,
        promoted: Some("n2".to_owned()),
        promoted_at_s: Some(11.2),
        resolution_s: 0.1,
        noticed_s: 0.2,
        tps_before: 500.0,
        tps_after: (lost == 0).then_some(480.0),
        first_success_after_s: Some(1.4),
        recovered_after_s: (lost == 0).then_some(2.6),
        errors: vec![ErrorSummary {
            class: "connection_lost".to_owned(),
            errno: 0,
            sqlstate: "08006".to_owned(),
            message: "the server closed the connection".into(),
            count: 40,
        }],
        acknowledged: Some(12_345),
        lost: Some(lost),
        unknown: Some(8),
        across_shards: None,
        evidence: Message::both(
            "Every acknowledged order was looked for on the node that takes writes. Orders whose commit was never answered: 8; of these 3 are there.",
            "在接受写入的节点上查找了每个已确认的订单。提交从未得到答复的订单：8 个；其中 3 个存在。",
        ),
        steps: steps.map(|(at_s, en, zh)| FaultStep { at_s, what: Message::both(en, zh) }).into(),
    }
}
