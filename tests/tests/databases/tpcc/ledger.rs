//! The durable ledger on real databases: what two runs have written is found, and what is taken away
//! from the database by hand is missed.

use dyno_core::{AdminSession, Discard, Driver, Session};
use dyno_testkit::with_session;
use dyno_tpcc::ledger::{Recorded, read};
use dyno_tpcc::settle::{OrderMismatch, Settlement, settle};
use std::path::Path;

/// Settles after changes that are undone.
fn settle_after<D: Driver>(driver: &D, recorded: &Recorded, changes: &[&str]) -> Settlement {
    with_session(driver, async |session: &mut D::Session| {
        session.query("BEGIN", &mut Discard).await.unwrap();
        for sql in changes {
            let executed = session.query(sql, &mut Discard).await.unwrap();
            assert!(executed.affected > 0, "{sql}");
        }
        let settlement = settle(&mut AdminSession::lent(session), recorded, |_| {}).await.unwrap();
        session.query("ROLLBACK", &mut Discard).await.unwrap();
        settlement
    })
}

/// `acknowledged` are the orders of all runs with the ledger at `path`.
pub(crate) fn assert_ledger_proves<D: Driver>(
    driver: &D,
    path: &Path,
    runs: u32,
    acknowledged: u64,
) {
    let recorded = read(path).unwrap();
    assert_eq!((recorded.runs, recorded.is_ended), (runs, true));
    assert_eq!((recorded.acknowledged(), recorded.unknown()), (acknowledged, 0));
    let sound = settle_after(driver, &recorded, &[]);
    assert!(sound.is_durable(), "{sound:?}");
    assert_eq!((sound.acknowledged, sound.grown as u64), (acknowledged, acknowledged));

    let at = "o_w_id = 1 AND o_d_id = 3 AND o_id = 3001";
    let order = format!("DELETE FROM bmsql_oorder WHERE {at}");
    let deleted = settle_after(driver, &recorded, &[&order]);
    assert!(!deleted.is_durable());
    assert_eq!((deleted.lost, deleted.problems.len()), (1, 0));
    let text = deleted.listed[0].message().to_string();
    assert_eq!(text, "o_w_id 1, o_d_id 3, o_id 3001 does not exist");

    let line = "DELETE FROM bmsql_order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 3001 \
                AND ol_number = 2";
    let cut = settle_after(driver, &recorded, &[line]);
    let lines = cut.listed[0].order.lines;
    assert_eq!(cut.listed[0].instead, OrderMismatch::Lines(u64::from(lines) - 1));

    // The number was given out again: another customer's order is there.
    let swap_customer = format!("UPDATE bmsql_oorder SET o_c_id = o_c_id % 3000 + 1 WHERE {at}");
    let replaced = settle_after(driver, &recorded, &[&swap_customer]);
    assert_eq!((replaced.lost, replaced.listed[0].instead), (1, OrderMismatch::Other));

    let district = "UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND \
                    d_id = 3";
    let grown = settle_after(driver, &recorded, &[district]);
    // Another client's order, as far as the counts can tell: nothing is lost.
    assert_eq!((grown.lost, grown.others, grown.problems.len()), (0, 1, 0), "{grown:?}");
    let shrunk = settle_after(driver, &recorded, &[&district.replace("+ 1", "- 1")]);
    assert_eq!((shrunk.lost, shrunk.problems.len()), (0, 1), "{shrunk:?}");
    assert!(grown.is_durable() && !shrunk.is_durable());
    let all_deleted =
        settle_after(driver, &recorded, &["DELETE FROM bmsql_oorder WHERE o_id > 3000"]);
    assert_eq!(
        (all_deleted.lost, all_deleted.listed.len()),
        (acknowledged, 100.min(acknowledged as usize))
    );
    assert_unknown_orders_are_found(driver, path);
}

/// Orders whose acknowledgements are taken out of the ledger are found, one by one.
fn assert_unknown_orders_are_found<D: Driver>(driver: &D, path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut left_out = 0;
    let keep = |line: &&str| {
        let is_out = line.starts_with("a 1 ") && left_out < 5;
        left_out += u32::from(is_out);
        !is_out
    };
    let lines: Vec<&str> = text.lines().filter(keep).collect();
    // One that was never committed, and one whose number another order has been given.
    let sent_line = lines.iter().find(|line| line.starts_with("s 1 ")).unwrap();
    let mut words: Vec<String> = sent_line.split(' ').map(str::to_owned).collect();
    words[4] = (words[4].parse::<u32>().unwrap() % 3_000 + 1).to_string();
    let same_number = words.join(" ");
    let copy = path.with_extension("unknown");
    std::fs::write(&copy, format!("{}\ns 1 1 9999 7 10\n{same_number}\n", lines.join("\n")))
        .unwrap();
    let recorded = read(&copy).unwrap();
    assert_eq!(recorded.unknown(), 7);
    let settled = settle_after(driver, &recorded, &[]);
    assert_eq!((settled.unknown, settled.committed), (7, 5), "{settled:?}");
    assert!(settled.is_durable(), "{settled:?}");
}
