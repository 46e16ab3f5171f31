//! Outcome of transactions with rows on several shards: each shard is queried by itself, and its
//! rows are compared with the ledger.
//!
//! A payment has its home part (warehouse, district, history) on one shard and its customer on another; an
//! order has stock on others. A shard commits its part whole or not at all. The part of a customer or of a row
//! of stock shows in its counters: they grow by more than the shard's own history and order lines explain.

use crate::check::derived;
use crate::ledger::{Across, Entry, LedgerPayment, LedgerWork, Recorded, SupplyKey};
use crate::settle::{Settlement, StoredOrders, rows, settle_part};
use crate::values::Timestamp;
use dyno_core::{AdminDriver, AdminSession, DbError, Dialect, ShardMap, ShardNode};
use dyno_facts::{CheckVerdict, CrossShardLosses, DataCheck, Message, say};
use dyno_load::doing;
use dyno_load::query::{answer_if_any, number};
use dyno_load::settings::adopt;
use dyno_runner::databases;
use dyno_runner::family::{Footprint, footprint};
use dyno_runner::signals;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

/// A counter that a part of a transaction moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CounterKey {
    /// Warehouse, district and number.
    Customer((u32, u32, u32)),
    Stock(SupplyKey),
}

/// A number of payments or lines, and their cents.
pub(crate) type Growth = (i64, i64);

/// Counters of a shard beyond what its own rows explain: the work of transactions of other shards.
pub(crate) type ForeignWork = HashMap<CounterKey, Growth>;

/// The growth of the counters since `before`.
fn growth_since(mut growth: ForeignWork, before: &ForeignWork) -> ForeignWork {
    for (key, (count, cents)) in before {
        let change = growth.entry(*key).or_default();
        (change.0, change.1) = (change.0 - count, change.1 - cents);
    }
    growth.retain(|_, change| *change != (0, 0));
    growth
}

/// Shards in the order of the map of their warehouses.
pub(crate) type MappedNodes<'a> = (&'a [ShardNode<AdminDriver<'a>>], &'a ShardMap);

/// A shard's part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardWork {
    pub(crate) foreign: ForeignWork,
    /// Payments of its warehouses by customers of other shards, by warehouse and district, and how often.
    pub(crate) payments: HashMap<(u32, u32, LedgerPayment), u32>,
    /// Orders of the ledger that are there, by warehouse, district and number.
    pub(crate) orders: HashMap<(u32, u32, u32), (i64, i64)>,
    /// Branches of transactions that are prepared, and neither committed nor rolled back.
    pub(crate) branches: u64,
}

/// Asks all shards at the same time, each in its own session.
///
/// # Errors
/// The first one, with the name of the shard.
pub(crate) fn on_each_shard<T: Send>(
    shards: &[ShardNode<AdminDriver<'_>>],
    ask: impl AsyncFn(usize, &mut AdminSession<'_>) -> Result<T, DbError> + Sync,
) -> Result<Vec<T>, DbError> {
    let query = |number: usize, node: &ShardNode<AdminDriver<'_>>| {
        let answer = databases::in_session(&node.driver, async |session| {
            adopt(session).await?;
            ask(number, session).await
        });
        let answer = databases::run(answer);
        answer.map_err(|error| DbError::workload(format!("node {}: {error}", node.name)))
    };
    std::thread::scope(|scope| {
        let query = &query;
        let numbered = shards.iter().enumerate();
        let threads: Vec<_> =
            numbered.map(|(number, node)| scope.spawn(move || query(number, node))).collect();
        let answers = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| {
                Err(DbError::workload("A thread that asked a shard broke down."))
            })
        });
        answers.collect()
    })
}

pub(crate) async fn foreign_work(session: &mut AdminSession<'_>) -> Result<ForeignWork, DbError> {
    doing("adding up what other shards' transactions did here");
    let sql = format!(
        "SELECT c_w_id, c_d_id, c_id, c_payment_cnt - coalesce(n, 0), c_ytd_payment - coalesce(h, 0) FROM \
         bmsql_customer LEFT JOIN {} p ON w = c_w_id AND d = c_d_id AND c = c_id WHERE c_payment_cnt <> \
         coalesce(n, 0) OR c_ytd_payment <> coalesce(h, 0)",
        derived("{PY}")
    );
    let customers = rows(session, &sql, [0, 0, 0, 0, 2]).await?.into_iter();
    let customers = customers.map(|[w, d, c, count, cents]| {
        (CounterKey::Customer((w as u32, d as u32, c as u32)), (count, cents))
    });
    let sql = "SELECT s_w_id, s_i_id, s_remote_cnt - coalesce(r, 0) FROM bmsql_stock LEFT JOIN (SELECT \
               ol_supply_w_id w, ol_i_id i, count(*) r FROM bmsql_order_line WHERE ol_supply_w_id <> ol_w_id AND \
               ol_o_id > 3000 GROUP BY ol_supply_w_id, ol_i_id) t ON w = s_w_id AND i = s_i_id WHERE \
               s_remote_cnt <> coalesce(r, 0)";
    let stock = rows(session, sql, [0, 0, 0]).await?.into_iter();
    let stock = stock.map(|[w, i, count]| (CounterKey::Stock((w as u32, i as u32)), (count, 0)));
    Ok(customers.chain(stock).collect())
}

/// Inspects shard `number`, except for the orders. There must be no writers meanwhile.
pub(crate) async fn inspect_shard(
    session: &mut AdminSession<'_>,
    (recorded, map): (&Recorded, &ShardMap),
    number: usize,
    before: &ForeignWork,
) -> Result<ShardWork, DbError> {
    let mut work = ShardWork {
        branches: prepared_branches(session).await?.unwrap_or(0),
        foreign: growth_since(foreign_work(session).await?, before),
        ..ShardWork::default()
    };
    // Servers may keep whole seconds only. The load pays at home.
    let begin = Timestamp(recorded.begun_ms - 1_000).text();
    let sql = format!(
        "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM bmsql_history WHERE h_w_id <> h_c_w_id \
         AND h_date >= '{}'",
        String::from_utf8_lossy(&begin)
    );
    for row in rows(session, &sql, [0, 0, 0, 0, 0, 2]).await? {
        let [home, home_district, warehouse, district, customer, cents] =
            row.map(|number| number as u32);
        if map.shard_of(warehouse) != number {
            let payment = LedgerPayment { warehouse, district, customer, cents };
            *work.payments.entry((home, home_district, payment)).or_default() += 1;
        }
    }
    Ok(work)
}

/// Number of branches of transactions that are prepared and undecided; `None` if the server doesn't say.
pub(crate) async fn prepared_branches(
    session: &mut AdminSession<'_>,
) -> Result<Option<u64>, DbError> {
    match session.dialect() {
        Dialect::Mysql => {
            let answer = answer_if_any(session, "XA RECOVER").await?;
            Ok(answer.map(|answer| answer.rows.len() as u64))
        }
        Dialect::Postgres => number(session, "SELECT count(*) FROM pg_prepared_xacts").await,
        Dialect::Sqlite => Ok(None),
    }
}

/// Transactions that are named one by one.
const LISTED: usize = 3;

/// A transaction on several shards.
struct Spread<'a> {
    across: &'a Across,
    home: usize,
    is_home_there: bool,
    /// Per shard: whether that part is there, and what it claims.
    parts: BTreeMap<usize, (bool, Vec<CounterKey>)>,
}

impl Spread<'_> {
    fn claimed_growth(&self) -> Growth {
        match &self.across.entry.work {
            LedgerWork::Payment(payment) => (1, i64::from(payment.cents)),
            LedgerWork::Order { .. } | LedgerWork::Delivery(_) => (1, 0),
        }
    }

    fn shards_with_presence(&self) -> impl Iterator<Item = (usize, bool)> {
        let parts = self.parts.iter().map(|(shard, (is_present, _))| (*shard, *is_present));
        std::iter::once((self.home, self.is_home_there)).chain(parts)
    }

    /// The shards that have its parts, or that lack them.
    fn shards_with(&self, is_present: bool) -> Vec<usize> {
        self.shards_with_presence()
            .filter(|(_, present)| *present == is_present)
            .map(|(shard, _)| shard)
            .collect()
    }
}

/// Outcome of all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CrossShardWork {
    pub(crate) losses: CrossShardLosses,
    /// Acknowledged payments that are missing in the history of their home shard.
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
        !self.losses.is_torn() && self.unexplained == 0
    }
}

/// Holds a ledger against what the shards hold, in the order of the map; `names` are theirs.
pub(crate) fn judge(
    recorded: &[Across],
    map: &ShardMap,
    shard_work: &[ShardWork],
    names: &[&str],
) -> CrossShardWork {
    let mut spread = spread(recorded, map, shard_work);
    let mut work =
        CrossShardWork { unexplained: place_parts(&mut spread, shard_work), ..Default::default() };
    // Whoever was acknowledged, and is there in part, is the first to have a branch that is undecided.
    spread.sort_by_key(|transaction| {
        let is_mixed =
            [true, false].iter().all(|is_present| !transaction.shards_with(*is_present).is_empty());
        (!transaction.across.is_acknowledged, !is_mixed)
    });
    let mut branches: Vec<u64> = shard_work.iter().map(|shard| shard.branches).collect();
    work.losses.branches_left = Some(branches.iter().sum());
    for transaction in &spread {
        count_outcome(transaction, &mut branches, &mut work, names);
    }
    work
}

/// The transactions that lie on several shards, with their parts at the place of their entry.
fn spread<'a>(recorded: &'a [Across], map: &ShardMap, shard_work: &[ShardWork]) -> Vec<Spread<'a>> {
    let mut payments: Vec<_> = shard_work.iter().map(|shard| shard.payments.clone()).collect();
    let mut ordered: Vec<&Across> = recorded.iter().collect();
    // If two look alike, the one that is there is the acknowledged one.
    ordered.sort_by_key(|across| !across.is_acknowledged);
    let mut spread = Vec::new();
    for across in ordered {
        let entry = &across.entry;
        let home = map.shard_of(entry.warehouse);
        let mut keys: Vec<(u32, CounterKey)> = Vec::new();
        let is_home_there = match &entry.work {
            LedgerWork::Order { order, away } => {
                keys.extend(away.iter().map(|key| (key.0, CounterKey::Stock(*key))));
                let key = (entry.warehouse, entry.district, order.number);
                shard_work[home].orders.get(&key)
                    == Some(&(i64::from(order.customer), i64::from(order.lines)))
            }
            LedgerWork::Payment(payment) => {
                let customer = (payment.warehouse, payment.district, payment.customer);
                keys.push((payment.warehouse, CounterKey::Customer(customer)));
                let key = (entry.warehouse, entry.district, *payment);
                let stored = payments[home].get_mut(&key).filter(|count| **count > 0);
                stored.map(|count| *count -= 1).is_some()
            }
            LedgerWork::Delivery(_) => continue,
        };
        let mut parts: BTreeMap<usize, (bool, Vec<CounterKey>)> = BTreeMap::new();
        for (warehouse, key) in keys {
            let shard = map.shard_of(warehouse);
            if shard != home {
                parts.entry(shard).or_default().1.push(key);
            }
        }
        if !parts.is_empty() {
            spread.push(Spread { across, home, is_home_there, parts });
        }
    }
    spread
}

/// Finds out which parts are there: those that the counters have room for. Returns how many counters stay unexplained.
fn place_parts(spread: &mut [Spread<'_>], shard_work: &[ShardWork]) -> u64 {
    let mut unclaimed: HashMap<CounterKey, Growth> = HashMap::new();
    shard_work.iter().for_each(|shard| unclaimed.extend(&shard.foreign));
    // A part shares the fate of its home, as a rule. A part of unknown outcome is the likelier one to be torn. A larger
    // amount fits into fewer sums.
    spread.sort_by_key(|transaction| {
        (
            !transaction.is_home_there,
            !transaction.across.is_acknowledged,
            Reverse(transaction.claimed_growth().1),
        )
    });
    for transaction in spread {
        let (count, cents) = transaction.claimed_growth();
        for (is_present, keys) in transaction.parts.values_mut() {
            let mut after: HashMap<CounterKey, Growth> = HashMap::new();
            for key in keys {
                let growth = unclaimed.get(key).copied().unwrap_or_default();
                let growth = after.entry(*key).or_insert(growth);
                *growth = (growth.0 - count, growth.1 - cents);
            }
            *is_present = after.values().all(|growth| growth.0 >= 0 && growth.1 >= 0);
            if *is_present {
                unclaimed.extend(after);
            }
        }
    }
    unclaimed.values().filter(|growth| **growth != (0, 0)).count() as u64
}

/// Counts one transaction. `branches` are those of each shard that no other transaction has taken.
fn count_outcome(
    transaction: &Spread<'_>,
    branches: &mut [u64],
    work: &mut CrossShardWork,
    names: &[&str],
) {
    let is_acknowledged = transaction.across.is_acknowledged;
    let losses = &mut work.losses;
    let (missing, present) = (transaction.shards_with(false), transaction.shards_with(true));
    if !is_acknowledged {
        losses.unknown += 1;
        losses.unknown_committed += u64::from(missing.is_empty());
        if present.is_empty() {
            return;
        }
    } else {
        losses.acknowledged += 1;
        if !transaction.is_home_there {
            match transaction.across.entry.work {
                LedgerWork::Order { .. } => work.orders_away_from_home += 1,
                _ => work.payments_away_from_home += 1,
            }
        }
    }
    if missing.is_empty() {
        return;
    }
    let is_undecided = missing.iter().all(|shard| branches[*shard] > 0);
    let (count, fate) = if is_undecided {
        missing.iter().for_each(|shard| branches[*shard] -= 1);
        (&mut losses.in_doubt, say!(across_in_doubt))
    } else if present.is_empty() {
        (&mut losses.lost, say!(across_lost))
    } else if is_acknowledged {
        (&mut losses.half_done, say!(across_half_done))
    } else {
        (&mut losses.unknown_half_done, say!(across_unknown_half_done))
    };
    *count += 1;
    if work.listed.len() < LISTED {
        work.listed.push(say!(
            across_one,
            what = describe_entry(&transaction.across.entry),
            there = join_shard_names(&present, names),
            missing = join_shard_names(&missing, names),
            fate
        ));
    }
}

/// `n1, n2`, or `-` for no shards.
fn join_shard_names(shards: &[usize], names: &[&str]) -> String {
    let list: Vec<&str> = shards.iter().map(|shard| names[*shard]).collect();
    if list.is_empty() { "-".to_owned() } else { list.join(", ") }
}

fn describe_entry(entry: &Entry<'_>) -> Message {
    let (warehouse, district) = (entry.warehouse.to_string(), entry.district.to_string());
    match &entry.work {
        LedgerWork::Order { order, .. } => {
            say!(across_order, number = order.number.to_string(), district, warehouse)
        }
        LedgerWork::Payment(payment) => say!(
            across_payment,
            amount = format!("{}.{:02}", payment.cents / 100, payment.cents % 100),
            customer = payment.customer.to_string(),
            of_district = payment.district.to_string(),
            of_warehouse = payment.warehouse.to_string(),
            district,
            warehouse
        ),
        LedgerWork::Delivery(_) => Message::default(),
    }
}

/// Longest time until somebody decides prepared branches: a coordinator gives those up that
/// it knows nothing of, once the longest transaction must have ended.
const DECIDED_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EACH: Duration = Duration::from_millis(500);

/// The transactions of other shards on each shard, for the ledger.
pub(crate) fn foreign_before(
    shards: &[ShardNode<AdminDriver<'_>>],
) -> Result<Vec<ForeignWork>, DbError> {
    on_each_shard(shards, async |_, session| foreign_work(session).await)
}

/// Size of the data of all shards and of their memory: a coordinator holds none of them.
pub(crate) fn footprint_of_shards(
    shards: &[ShardNode<AdminDriver<'_>>],
) -> Result<Footprint, DbError> {
    let footprints =
        on_each_shard(shards, async |_, session| footprint(session, "bmsql@_%").await)?;
    let size_bytes = footprints.iter().map(|shard| shard.size_bytes).sum::<Option<u64>>();
    let memory_bytes = footprints.iter().map(|shard| shard.memory_bytes).sum::<Option<u64>>();
    Ok(Footprint { size_bytes, memory_bytes, ..Footprint::default() })
}

/// Says which shards no warehouse lies on: they take no part in the load.
pub(crate) fn shards_without_rows(
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
            warehouses,
            used = used.len(),
            all = shards.len()
        )
    })
}

/// Waits until no branch is undecided: their coordinator may have to come back first. Returns the number of
/// branches that were prepared when the load had ended, and how long that took.
pub(crate) fn wait_for_branches(shards: &[ShardNode<AdminDriver<'_>>]) -> Option<(u64, Duration)> {
    let begin = Instant::now();
    let mut branches = None;
    loop {
        let counts = on_each_shard(shards, async |_, session| prepared_branches(session).await);
        let count = counts.ok().and_then(|counts| counts.into_iter().sum::<Option<u64>>());
        let Some(count) = count else { return branches };
        let waited = begin.elapsed();
        branches = Some((branches.map_or(count, |(first, _)| first), waited));
        if count == 0 || waited > DECIDED_WITHIN || signals::has_come() {
            return branches;
        }
        std::thread::sleep(LOOK_EACH);
    }
}

/// Warehouse, district and number of an order.
fn order_key(across: &Across) -> Option<(u32, u32, u32)> {
    match &across.entry.work {
        LedgerWork::Order { order, .. } => {
            Some((across.entry.warehouse, across.entry.district, order.number))
        }
        _ => None,
    }
}

/// Compares the ledger with all shards: what was acknowledged, and what became of it if it lies on several.
pub(crate) fn settle_on_shards(
    (shards, map): MappedNodes<'_>,
    recorded: &Recorded,
    before: &[ForeignWork],
    branches: Option<(u64, Duration)>,
) -> Result<(Settlement, CrossShardWork), DbError> {
    let across: HashSet<(u32, u32, u32)> = recorded.across.iter().filter_map(order_key).collect();
    let results = on_each_shard(shards, async |number, session| {
        let mut orders = HashMap::new();
        let settled = settle_part(
            session,
            recorded,
            |warehouse| map.shard_of(warehouse) == number,
            |_: &Settlement, (w, d): (u32, u32), stored: &StoredOrders| {
                let identities =
                    stored.iter().map(|(number, order)| ((w, d, *number), order.identity()));
                orders.extend(identities.filter(|(key, _)| across.contains(key)));
            },
        );
        let settled = settled.await?;
        let work = inspect_shard(session, (recorded, map), number, &before[number]).await?;
        Ok((settled, ShardWork { orders, ..work }))
    })?;
    let (settled, shard_work): (Vec<Settlement>, Vec<_>) = results.into_iter().unzip();
    let mut settlement = Settlement::default();
    settled.into_iter().for_each(|part| settlement.add(part));
    let names: Vec<&str> = shards.iter().map(|node| node.name.as_str()).collect();
    let mut work = judge(&recorded.across, map, &shard_work, &names);
    (work.losses.branches, work.losses.branches_s) =
        branches.map(|(first, waited)| (first, waited.as_secs_f64())).unzip();
    Ok((settlement, work))
}

/// Checks that every transaction on several shards is whole on all of them, or nowhere.
pub(crate) fn across_check(work: &CrossShardWork) -> DataCheck {
    let losses = &work.losses;
    let (acknowledged, unknown) = (losses.acknowledged, losses.unknown);
    let committed = losses.unknown_committed;
    let (verdict, counts) = if work.is_whole() {
        let counts = say!(across_whole, n = acknowledged, unknown, there = committed);
        (CheckVerdict::Passed, counts)
    } else {
        let counts = say!(
            across_broken,
            n = acknowledged,
            lost = losses.lost,
            half = losses.half_done,
            doubt = losses.in_doubt,
            unknown,
            there = committed,
            unknown_half = losses.unknown_half_done
        );
        (CheckVerdict::Failed, counts)
    };
    let mut sentences = vec![counts];
    if !work.listed.is_empty() {
        let which = Message::joined(&work.listed, "; ", "；");
        sentences.push(say!(across_first, which));
    }
    if work.unexplained > 0 {
        sentences.push(say!(across_unexplained, n = work.unexplained));
    }
    if let Some(first) = losses.branches.filter(|first| *first > 0) {
        let seconds = format!("{:.1}", losses.branches_s.unwrap_or(0.0));
        let left_count = losses.branches_left.unwrap_or(0);
        sentences.push(say!(across_branches, n = first, left = left_count, seconds));
    }
    DataCheck {
        name: DataCheck::ACROSS.to_owned(),
        verdict,
        evidence: Message::sentences(&sentences),
    }
}

#[cfg(test)]
mod tests;
