//! Tells transactions apart that are whole, lost, half done or in doubt.

use super::look::{CounterKey, Growth, ShardWork};
use crate::ledger::{Across, Entry, LedgerWork};
use dyno_core::ShardMap;
use dyno_facts::{CrossShardLosses, Message, say};
use std::collections::{BTreeMap, HashMap};

/// Transactions that are named one by one.
const LISTED: usize = 3;

/// A transaction on several shards.
struct Spread<'a> {
    across: &'a Across,
    home: usize,
    is_home_there: bool,
    /// By shard: whether that part is there, and what it claims.
    parts: BTreeMap<usize, (bool, Vec<CounterKey>)>,
}

impl Spread<'_> {
    fn claim(&self) -> Growth {
        match &self.across.entry.work {
            LedgerWork::Payment(payment) => (1, i64::from(payment.cents)),
            LedgerWork::Order { .. } | LedgerWork::Delivery(_) => (1, 0),
        }
    }

    fn shards(&self) -> impl Iterator<Item = (usize, bool)> {
        let parts = self.parts.iter().map(|(shard, (is_there, _))| (*shard, *is_there));
        std::iter::once((self.home, self.is_home_there)).chain(parts)
    }

    fn is_order(&self) -> bool {
        matches!(self.across.entry.work, LedgerWork::Order { .. })
    }
}

/// What became of all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CrossShardWork {
    pub(crate) losses: CrossShardLosses,
    /// Acknowledged payments that the history of their own shard lacks.
    pub(crate) payments_away_from_home: u64,
    /// Acknowledged orders that are not on their own shard: whoever looks there only takes them for lost.
    pub(crate) orders_away_from_home: u64,
    /// Counters that moved, and no transaction of the ledger explains it.
    pub(crate) unexplained: u64,
    /// The first ones that are not whole.
    pub(crate) listed: Vec<Message>,
}

impl CrossShardWork {
    pub(crate) fn is_whole(&self) -> bool {
        let CrossShardLosses { lost, half_done, in_doubt, unknown_half_done, .. } = self.losses;
        lost + half_done + in_doubt + unknown_half_done + self.unexplained == 0
    }
}

/// Holds a ledger against what the shards hold, in the order of the map; `names` are theirs.
pub(crate) fn judge(
    recorded: &[Across],
    map: &ShardMap,
    found: &[ShardWork],
    names: &[&str],
) -> CrossShardWork {
    let mut spread = spread(recorded, map, found);
    let mut work =
        CrossShardWork { unexplained: place_parts(&mut spread, found), ..Default::default() };
    // Whoever was acknowledged, and is there in part, is the first to have a branch that is undecided.
    spread.sort_by_key(|one| {
        let is_mixed =
            one.shards().any(|(_, there)| there) && one.shards().any(|(_, there)| !there);
        (!one.across.is_acknowledged, !is_mixed)
    });
    let mut branches: Vec<u64> = found.iter().map(|shard| shard.branches).collect();
    work.losses.branches_left = Some(branches.iter().sum());
    for one in &spread {
        settle(one, &mut branches, &mut work, names);
    }
    work
}

/// The transactions that lie on several shards, with their parts where they were entered.
fn spread<'a>(recorded: &'a [Across], map: &ShardMap, found: &[ShardWork]) -> Vec<Spread<'a>> {
    let mut payments: Vec<_> = found.iter().map(|shard| shard.payments.clone()).collect();
    let mut ordered: Vec<&Across> = recorded.iter().collect();
    // Of two that look alike, what is there is the acknowledged one.
    ordered.sort_by_key(|across| !across.is_acknowledged);
    let mut spread = Vec::new();
    for across in ordered {
        let entry = &across.entry;
        let home = map.shard_of(entry.warehouse);
        let mut parts: BTreeMap<usize, (bool, Vec<CounterKey>)> = BTreeMap::new();
        let mut add = |warehouse: u32, key: CounterKey| {
            let shard = map.shard_of(warehouse);
            if shard != home {
                parts.entry(shard).or_default().1.push(key);
            }
        };
        let is_home_there = match &entry.work {
            LedgerWork::Order { order, away } => {
                away.iter().for_each(|key| add(key.0, CounterKey::Stock(*key)));
                let key = (entry.warehouse, entry.district, order.number);
                found[home].orders.get(&key)
                    == Some(&(i64::from(order.customer), i64::from(order.lines)))
            }
            LedgerWork::Payment(payment) => {
                let customer = (payment.warehouse, payment.district, payment.customer);
                add(payment.warehouse, CounterKey::Customer(customer));
                let key = (entry.warehouse, entry.district, *payment);
                let there = payments[home].get_mut(&key).filter(|count| **count > 0);
                there.map(|count| *count -= 1).is_some()
            }
            LedgerWork::Delivery(_) => continue,
        };
        if !parts.is_empty() {
            spread.push(Spread { across, home, is_home_there, parts });
        }
    }
    spread
}

/// Finds out which parts are there: at first each is taken to share the fate of its home, then those are
/// turned over that explain how the counters differ from that. Returns how many counters stay unexplained.
fn place_parts(spread: &mut [Spread<'_>], found: &[ShardWork]) -> u64 {
    let mut left: HashMap<CounterKey, Growth> = HashMap::new();
    found.iter().for_each(|shard| left.extend(&shard.foreign));
    let mut claimants: HashMap<CounterKey, Vec<(usize, usize)>> = HashMap::new();
    for (number, one) in spread.iter_mut().enumerate() {
        let (claim, is_there) = (one.claim(), one.is_home_there);
        for (shard, (part, keys)) in &mut one.parts {
            *part = is_there;
            for key in keys {
                claimants.entry(*key).or_default().push((number, *shard));
                if is_there {
                    take(&mut left, *key, claim, 1);
                }
            }
        }
    }
    left.retain(|_, growth| *growth != (0, 0));
    // First those that explain their counters in full; then whatever brings the numbers nearer.
    for is_exact in [true, false] {
        let mut keys: Vec<CounterKey> = left.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            let Some(mut able) = claimants.get(&key).cloned() else { continue };
            // What nobody was told of is the likelier one to be torn.
            able.sort_by_key(|(number, _)| spread[*number].across.is_acknowledged);
            for (number, shard) in able {
                turn(&mut spread[number], shard, &mut left, is_exact);
            }
        }
    }
    left.values().filter(|growth| **growth != (0, 0)).count() as u64
}

/// Turns a part over where that explains its counters.
fn turn(
    one: &mut Spread<'_>,
    shard: usize,
    left: &mut HashMap<CounterKey, Growth>,
    is_exact: bool,
) {
    let claim = one.claim();
    let Some((is_there, keys)) = one.parts.get_mut(&shard) else { return };
    // A part that is there and leaves, or one that comes.
    let sign = if *is_there { -1 } else { 1 };
    let mut after: HashMap<CounterKey, Growth> =
        keys.iter().map(|key| (*key, left.get(key).copied().unwrap_or_default())).collect();
    let before: i64 = after.values().map(|growth| growth.0.abs()).sum();
    for key in keys.iter() {
        take(&mut after, *key, claim, sign);
    }
    let rest: i64 = after.values().map(|growth| growth.0.abs()).sum();
    let is_explained = match is_exact {
        true => before > 0 && after.values().all(|growth| *growth == (0, 0)),
        false => rest < before,
    };
    if is_explained {
        *is_there = !*is_there;
        left.extend(after);
    }
}

fn take(left: &mut HashMap<CounterKey, Growth>, key: CounterKey, claim: Growth, sign: i64) {
    let growth = left.entry(key).or_default();
    (growth.0, growth.1) = (growth.0 - sign * claim.0, growth.1 - sign * claim.1);
}

/// Counts one transaction. `branches` are those of each shard that no other transaction has taken.
fn settle(one: &Spread<'_>, branches: &mut [u64], work: &mut CrossShardWork, names: &[&str]) {
    let is_acknowledged = one.across.is_acknowledged;
    let losses = &mut work.losses;
    match is_acknowledged {
        true => losses.acknowledged += 1,
        false => losses.unknown += 1,
    }
    if is_acknowledged && !one.is_home_there {
        match one.is_order() {
            true => work.orders_away_from_home += 1,
            false => work.payments_away_from_home += 1,
        }
    }
    let missing: Vec<usize> =
        one.shards().filter(|(_, there)| !there).map(|(shard, _)| shard).collect();
    let is_somewhere = one.shards().any(|(_, there)| there);
    if missing.is_empty() {
        losses.unknown_committed += u64::from(!is_acknowledged);
        return;
    }
    if !is_acknowledged && !is_somewhere {
        return;
    }
    let is_undecided = missing.iter().all(|shard| branches[*shard] > 0);
    let fate = if is_undecided {
        missing.iter().for_each(|shard| branches[*shard] -= 1);
        losses.in_doubt += 1;
        say!(across_in_doubt)
    } else if !is_somewhere {
        losses.lost += 1;
        say!(across_lost)
    } else if is_acknowledged {
        losses.half_done += 1;
        say!(across_half_done)
    } else {
        losses.unknown_half_done += 1;
        say!(across_unknown_half_done)
    };
    if work.listed.len() < LISTED {
        let named = |is_wanted: bool| {
            let shards = one.shards().filter(|(_, there)| *there == is_wanted);
            let list: Vec<&str> = shards.map(|(shard, _)| names[shard]).collect();
            if list.is_empty() { "-".to_owned() } else { list.join(", ") }
        };
        work.listed.push(say!(
            across_one,
            what = describe(&one.across.entry),
            there = named(true),
            missing = named(false),
            fate = fate
        ));
    }
}

fn describe(entry: &Entry<'_>) -> Message {
    let (warehouse, district) = (entry.warehouse.to_string(), entry.district.to_string());
    match &entry.work {
        LedgerWork::Order { order, .. } => say!(
            across_order,
            number = order.number.to_string(),
            district = district,
            warehouse = warehouse
        ),
        LedgerWork::Payment(payment) => say!(
            across_payment,
            amount = format!("{}.{:02}", payment.cents / 100, payment.cents % 100),
            customer = payment.customer.to_string(),
            of_district = payment.district.to_string(),
            of_warehouse = payment.warehouse.to_string(),
            district = district,
            warehouse = warehouse
        ),
        LedgerWork::Delivery(_) => Message::default(),
    }
}
