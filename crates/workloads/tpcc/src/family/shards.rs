//! Shards, each of them asked by itself: what they hold, and what became of transactions that lie on several.

use crate::across::{
    CrossShardWork, ForeignWork, foreign_work, judge, look, on_each_shard, prepared_branches,
};
use crate::ledger::Recorded;
use crate::settle::{Settlement, settle_part};
use dyno_core::{AdminDriver, DbError, ShardMap, ShardNode};
use dyno_facts::{CheckVerdict, DataCheck, Message, say};
use dyno_runner::family::{Footprint, footprint};
use dyno_runner::signals;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long branches that are prepared may take until somebody decides them: a coordinator gives those up that
/// it knows nothing of, once the longest transaction must have ended.
const DECIDED_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EACH: Duration = Duration::from_millis(500);

/// What each shard has of transactions of the others, for the ledger.
pub(super) fn foreign_before(
    shards: &[ShardNode<AdminDriver<'_>>],
) -> Result<Vec<ForeignWork>, DbError> {
    on_each_shard(shards, async |_, session| foreign_work(session).await)
}

/// How large the data of all shards are beside their memory: a coordinator holds none of them.
pub(super) fn footprint_of_shards(
    shards: &[ShardNode<AdminDriver<'_>>],
) -> Result<Footprint, DbError> {
    let each = on_each_shard(shards, async |_, session| footprint(session, "bmsql@_%").await)?;
    let sum = |of: fn(&Footprint) -> Option<u64>| each.iter().map(of).sum::<Option<u64>>();
    Ok(Footprint {
        size_bytes: sum(|own| own.size_bytes),
        memory_setting: each.first().map_or("", |own| own.memory_setting),
        memory_bytes: sum(|own| own.memory_bytes),
    })
}

/// Says which shards no warehouse lies on: they take no part in the load.
pub(super) fn shards_without_rows(
    shards: &[ShardNode<AdminDriver<'_>>],
    map: &ShardMap,
    warehouses: u32,
) -> Option<Message> {
    let used: BTreeSet<usize> = (1..=warehouses).map(|warehouse| map.shard_of(warehouse)).collect();
    let idle = shards.iter().enumerate().filter(|(number, _)| !used.contains(number));
    let idle: Vec<&str> = idle.map(|(_, node)| node.name.as_str()).collect();
    (!idle.is_empty()).then(|| {
        say!(
            shards_without_warehouses,
            idle = idle.join(", "),
            warehouses = warehouses,
            used = used.len(),
            all = shards.len()
        )
    })
}

/// Branches that were prepared when the load had ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Branches {
    first: Option<u64>,
    waited: Duration,
}

/// Waits until no branch is undecided: whoever coordinates them may have to come back first.
pub(super) fn wait_for_branches(shards: &[ShardNode<AdminDriver<'_>>]) -> Branches {
    let begin = Instant::now();
    let mut found = Branches::default();
    loop {
        let asked = on_each_shard(shards, async |_, session| prepared_branches(session).await);
        let Ok(asked) = asked else { return found };
        let Some(count) = asked.into_iter().sum::<Option<u64>>() else { return found };
        found.first.get_or_insert(count);
        found.waited = begin.elapsed();
        if count == 0 || found.waited > DECIDED_WITHIN || signals::has_come() {
            return found;
        }
        std::thread::sleep(LOOK_EACH);
    }
}

/// Holds the ledger against all shards: what was acknowledged, and what became of it where it lies on several.
pub(super) fn settle_on_shards(
    (shards, map): (&[ShardNode<AdminDriver<'_>>], &ShardMap),
    recorded: &Recorded,
    before: &[ForeignWork],
    branches: Branches,
) -> Result<(Settlement, CrossShardWork), DbError> {
    let found = on_each_shard(shards, async |number, session| {
        let is_here = |warehouse| map.shard_of(warehouse) == number;
        let settled = settle_part(session, recorded, is_here, |_| {}).await?;
        Ok((settled, look(session, (recorded, map), number, &before[number]).await?))
    })?;
    let (settled, found): (Vec<Settlement>, Vec<_>) = found.into_iter().unzip();
    let mut settlement = Settlement::default();
    settled.into_iter().for_each(|part| settlement.add(part));
    let names: Vec<&str> = shards.iter().map(|node| node.name.as_str()).collect();
    let mut work = judge(&recorded.across, map, &found, &names);
    work.losses.branches = branches.first;
    work.losses.branches_s = branches.first.map(|_| branches.waited.as_secs_f64());
    Ok((settlement, work))
}

/// Whether every transaction on several shards is whole on all of them, or nowhere.
pub(super) fn across_check(work: &CrossShardWork) -> DataCheck {
    let losses = &work.losses;
    let (acknowledged, unknown) = (losses.acknowledged, losses.unknown);
    let (verdict, mut said) = match work.is_whole() {
        true => {
            let there = losses.unknown_committed;
            let whole = say!(across_whole, n = acknowledged, unknown = unknown, there = there);
            (CheckVerdict::Passed, vec![whole])
        }
        false => {
            let broken = say!(
                across_broken,
                n = acknowledged,
                lost = losses.lost,
                half = losses.half_done,
                doubt = losses.in_doubt,
                unknown = unknown,
                there = losses.unknown_committed,
                unknown_half = losses.unknown_half_done
            );
            (CheckVerdict::Failed, vec![broken])
        }
    };
    if !work.listed.is_empty() {
        let which = Message::joined(&work.listed, "; ", "；");
        said.push(say!(across_first, which = which));
    }
    if work.unexplained > 0 {
        said.push(say!(across_unexplained, n = work.unexplained));
    }
    if let Some(first) = losses.branches.filter(|first| *first > 0) {
        let seconds = format!("{:.1}", losses.branches_s.unwrap_or(0.0));
        let left = losses.branches_left.unwrap_or(0);
        said.push(say!(across_branches, n = first, left = left, seconds = seconds));
    }
    let evidence = Message::sentences(&said);
    DataCheck { name: DataCheck::ACROSS.to_owned(), verdict, evidence }
}
