//! What one shard holds of transactions that lie on several.

use crate::books::rows;
use crate::check::derived;
use crate::ledger::{LedgerPayment, LedgerWork, Recorded, SupplyKey};
use crate::settle::stored_orders;
use crate::text::Timestamp;
use dyno_core::{AdminDriver, AdminSession, DbError, Dialect, Session, ShardMap, ShardNode};
use dyno_load::doing;
use dyno_load::query::{answer_if_any, number};
use dyno_load::settings::adopt;
use dyno_runner::databases;
use std::collections::{BTreeMap, HashMap};

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
fn since(mut now: ForeignWork, before: &ForeignWork) -> ForeignWork {
    for (key, (count, cents)) in before {
        let now = now.entry(*key).or_default();
        (now.0, now.1) = (now.0 - count, now.1 - cents);
    }
    now.retain(|_, grown| *grown != (0, 0));
    now
}

/// What a shard holds of a run.
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

/// Asks all shards at the same time, in sessions of their own.
///
/// # Errors
/// The first one, with the name of the shard.
pub(crate) fn on_each_shard<T: Send>(
    shards: &[ShardNode<AdminDriver<'_>>],
    ask: impl AsyncFn(usize, &mut AdminSession<'_>) -> Result<T, DbError> + Sync,
) -> Result<Vec<T>, DbError> {
    let ask = &ask;
    let asked = |number: usize| {
        let node = &shards[number];
        let answer = databases::in_session(&node.driver, async |session| {
            adopt(session).await?;
            ask(number, session).await
        });
        databases::run(answer)
            .map_err(|error| DbError::workload(format!("node {}: {error}", node.name)))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..shards.len()).map(|number| scope.spawn(move || asked(number))).collect();
        let broken = || DbError::workload("A thread that asked a shard broke down.");
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(broken()))).collect()
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
    let customers = rows(session, &sql, &[0, 0, 0, 0, 2]).await?;
    let customer = |row: Vec<i64>| {
        let place = (row[0] as u32, row[1] as u32, row[2] as u32);
        (CounterKey::Customer(place), (row[3], row[4]))
    };
    let sql = "SELECT s_w_id, s_i_id, s_remote_cnt - coalesce(r, 0) FROM bmsql_stock LEFT JOIN (SELECT \
               ol_supply_w_id w, ol_i_id i, count(*) r FROM bmsql_order_line WHERE ol_supply_w_id <> ol_w_id AND \
               ol_o_id > 3000 GROUP BY ol_supply_w_id, ol_i_id) t ON w = s_w_id AND i = s_i_id WHERE \
               s_remote_cnt <> coalesce(r, 0)";
    let stock = rows(session, sql, &[0, 0, 0]).await?;
    let line = |row: Vec<i64>| (CounterKey::Stock((row[0] as u32, row[1] as u32)), (row[2], 0));
    Ok(customers.into_iter().map(customer).chain(stock.into_iter().map(line)).collect())
}

/// Looks at shard `number`. Nobody may write meanwhile.
pub(crate) async fn look(
    session: &mut AdminSession<'_>,
    (recorded, map): (&Recorded, &ShardMap),
    number: usize,
    before: &ForeignWork,
) -> Result<ShardWork, DbError> {
    let mut found = ShardWork {
        branches: prepared_branches(session).await?.unwrap_or(0),
        foreign: since(foreign_work(session).await?, before),
        ..ShardWork::default()
    };
    // Servers may keep whole seconds only. The load pays at home.
    let begin = Timestamp(recorded.begun_ms - 1_000).text();
    let sql = format!(
        "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM bmsql_history WHERE h_w_id <> h_c_w_id \
         AND h_date >= '{}'",
        String::from_utf8_lossy(&begin)
    );
    for row in rows(session, &sql, &[0, 0, 0, 0, 0, 2]).await? {
        let [home, of, warehouse, district, customer, cents] =
            [0, 1, 2, 3, 4, 5].map(|at| row[at] as u32);
        if map.shard_of(warehouse) != number {
            let payment = LedgerPayment { warehouse, district, customer, cents };
            *found.payments.entry((home, of, payment)).or_default() += 1;
        }
    }
    let mut wanted: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for entry in recorded.across.iter().map(|across| &across.entry) {
        if let LedgerWork::Order { order, .. } = &entry.work
            && map.shard_of(entry.warehouse) == number
        {
            wanted.entry((entry.warehouse, entry.district)).or_default().push(order.number);
        }
    }
    for (place, mut numbers) in wanted {
        numbers.sort_unstable();
        let stored = stored_orders(session, place, &numbers).await?;
        let there = numbers.iter().filter_map(|number| Some((*number, stored.get(number)?)));
        found
            .orders
            .extend(there.map(|(number, order)| ((place.0, place.1, number), order.identity())));
    }
    Ok(found)
}

/// How many branches of transactions are prepared and undecided; `None` where the server doesn't say.
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
