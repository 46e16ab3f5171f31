//! Conditions that join rows of different warehouses, looked at without that join: the same verdict
//! on sound data and on every kind of broken data.

use dyno_core::{AnswerTable, Discard, Driver, Session};
use dyno_testkit::with_session;
use dyno_tpcc::check::{CONDITIONS, Condition, ConditionVerdict};

fn condition(id: &str) -> &'static Condition {
    CONDITIONS.iter().find(|condition| condition.id == id).unwrap()
}

/// Ways to break each condition on either side of its join, and to mend it again.
const BROKEN: [(&str, &str, &str, &str); 9] = [
    ("C10", "bmsql_customer", "c_balance", "c_w_id = 1 AND c_d_id = 6 AND c_id = 8"),
    ("C10", "bmsql_history", "h_amount", "hist_id = 7"),
    (
        "C10",
        "bmsql_order_line",
        "ol_amount",
        "ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 5 AND ol_number = 1",
    ),
    ("X1", "bmsql_stock", "s_order_cnt", "s_w_id = 2 AND s_i_id = 99"),
    (
        "X1",
        "bmsql_order_line",
        "ol_quantity",
        "ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 3001 AND ol_number = 1",
    ),
    ("X2", "bmsql_stock", "s_remote_cnt", "s_w_id = 2 AND s_i_id BETWEEN 90 AND 120"),
    ("X3", "bmsql_customer", "c_payment_cnt", "c_w_id = 2 AND c_d_id = 6 AND c_id = 8"),
    ("X3", "bmsql_history", "h_amount", "hist_id = 30007"),
    (
        "X6",
        "bmsql_order_line",
        "ol_amount",
        "ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 3001 AND ol_number <= 2",
    ),
];

fn change<D: Driver>(driver: &D, sql: &str) {
    with_session(driver, async |session: &mut D::Session| {
        let executed = session.query(sql, &mut Discard).await.unwrap();
        assert!(executed.affected > 0, "{sql}");
    });
}

/// Both ways say the same; returns what they say.
fn check_both_ways<D: Driver>(driver: &D, id: &str) -> ConditionVerdict {
    let joined = condition(id).examine(&driver.admin(), false).unwrap();
    let apart = condition(id).examine(&driver.admin(), true).unwrap();
    assert_eq!((joined.is_apart, apart.is_apart), (false, condition(id).joins_warehouses()));
    assert_eq!(apart.violations, joined.violations, "{id}");
    // The joined statements list violations in no order.
    if joined.violations <= 10 {
        let sort_keys = |verdict: &ConditionVerdict| {
            let mut keys = verdict.keys.clone();
            keys.sort();
            keys
        };
        assert_eq!(sort_keys(&apart), sort_keys(&joined), "{id}");
    }
    assert_eq!(apart.keys.len(), apart.violations.min(10) as usize, "{id}");
    apart
}

/// OL_DIST_INFO of a line that its own warehouse supplied, and of one that another did.
fn break_dist_info<D: Driver>(driver: &D, supplier: &str) {
    let sql = format!(
        "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_dist_info FROM bmsql_order_line WHERE \
         ol_o_id > 3000 AND {supplier} LIMIT 1"
    );
    let line = with_session(driver, async |session: &mut D::Session| {
        let mut answer = AnswerTable::default();
        session.query(&sql, &mut answer).await.unwrap();
        answer.rows.remove(0).into_iter().flatten().collect::<Vec<String>>()
    });
    let [w, d, o, number, info] = &line[..] else { panic!("{line:?}") };
    let set_info = |info: &str| {
        change(
            driver,
            &format!(
                "UPDATE bmsql_order_line SET ol_dist_info = '{info}' WHERE ol_w_id = {w} AND \
                 ol_d_id = {d} AND ol_o_id = {o} AND ol_number = {number}"
            ),
        );
    };
    set_info("another");
    let verdict = check_both_ways(driver, "X10");
    set_info(info);
    assert_eq!(
        verdict.keys,
        [format!("ol_w_id {w}, ol_d_id {d}, ol_o_id {o}, ol_number {number}")]
    );
}

/// Runs on two warehouses with orders and payments between them.
pub(crate) fn assert_both_ways_agree<D: Driver>(driver: &D) {
    let apart: Vec<&str> = CONDITIONS
        .iter()
        .filter(|condition| condition.joins_warehouses())
        .map(|condition| condition.id)
        .collect();
    assert_eq!(apart, ["C10", "X1", "X2", "X3", "X6", "X10"]);
    for id in apart {
        assert!(check_both_ways(driver, id).holds(), "{id}");
    }
    for (id, table, column, place) in BROKEN {
        let change_by =
            |sign| format!("UPDATE {table} SET {column} = {column} {sign} 1 WHERE {place}");
        change(driver, &change_by('+'));
        let verdict = check_both_ways(driver, id);
        change(driver, &change_by('-'));
        assert!(verdict.violations > 0, "{id}: {table}.{column}");
    }
    break_dist_info(driver, "ol_supply_w_id = ol_w_id");
    break_dist_info(driver, "ol_supply_w_id <> ol_w_id");
}

/// A server that refuses the join is requested both sides instead.
pub(crate) fn is_used_when_joins_are_refused<D: Driver>(driver: &D) {
    let unjoinable = Condition { body: "a_join_that_is_refused", ..*condition("C10") };
    let result = unjoinable.examine(&driver.admin(), false).unwrap();
    assert!(result.is_apart && result.holds(), "{result:?}");
}
