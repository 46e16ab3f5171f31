//! The durable ledger on real databases: what two runs have written is found, and what is taken away
//! from the database by hand is missed.

use dyno_core::{AdminSession, Discard, Driver, Session};
use dyno_testkit::with_session;
use dyno_tpcc::ledger::{Recorded, read};
use dyno_tpcc::settle::{Instead, Settlement, settle};
use std::path::Path;

/// Settles after changes that are undone.
fn after<D: Driver>(driver: &D, recorded: &Recorded, changes: &[&str]) -> Settlement {
    with_session(driver, async |session: &mut D::Session| {
        session.query("BEGIN", &mut Discard).await.unwrap();
        for sql in changes {
            let done = session.query(sql, &mut Discard).await.unwrap();
            assert!(done.affected > 0, "{sql}");
        }
        let settlement = settle(&mut AdminSession::lent(session), recorded, |_| {}).await.unwrap();
        session.query("ROLLBACK", &mut Discard).await.unwrap();
        settlement
    })
}

/// `acknowledged` are the orders of all runs with the ledger at `path`.
pub(crate) fn proves<D: Driver>(driver: &D, path: &Path, runs: u32, acknowledged: u64) {
    let recorded = read(path).unwrap();
    assert_eq!((recorded.runs, recorded.is_ended), (runs, true));
    assert_eq!((recorded.acknowledged(), recorded.unknown()), (acknowledged, 0));
    let sound = after(driver, &recorded, &[]);
    assert!(sound.is_durable(), "{sound:?}");
    assert_eq!((sound.acknowledged, sound.grown as u64), (acknowledged, acknowledged));

    let at = "o_w_id = 1 AND o_d_id = 3 AND o_id = 3001";
    let order = format!("DELETE FROM bmsql_oorder WHERE {at}");
    let lost = after(driver, &recorded, &[&order]);
    assert!(!lost.is_durable());
    assert_eq!((lost.lost, lost.problems.len()), (1, 0));
    let text = lost.listed[0].message().to_string();
    assert_eq!(text, "o_w_id 1, o_d_id 3, o_id 3001 does not exist");

    let line = "DELETE FROM bmsql_order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 3001 \
                AND ol_number = 2";
    let cut = after(driver, &recorded, &[line]);
    let lines = cut.listed[0].order.lines;
    assert_eq!(cut.listed[0].instead, Instead::Lines(u64::from(lines) - 1));

    // The number was given out again: another customer's order is there.
    let other = format!("UPDATE bmsql_oorder SET o_c_id = o_c_id % 3000 + 1 WHERE {at}");
    let replaced = after(driver, &recorded, &[&other]);
    assert_eq!((replaced.lost, replaced.listed[0].instead), (1, Instead::Other));

    let district = "UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND \
                    d_id = 3";
    let grown = after(driver, &recorded, &[district]);
    // Another client's order, as far as the counts can tell: nothing is lost.
    assert_eq!((grown.lost, grown.others, grown.problems.len()), (0, 1, 0), "{grown:?}");
    let shrunk = after(driver, &recorded, &[&district.replace("+ 1", "- 1")]);
    assert_eq!((shrunk.lost, shrunk.problems.len()), (0, 1), "{shrunk:?}");
    assert!(grown.is_durable() && !shrunk.is_durable());
    let all = after(driver, &recorded, &["DELETE FROM bmsql_oorder WHERE o_id > 3000"]);
    assert_eq!((all.lost, all.listed.len()), (acknowledged, 100.min(acknowledged as usize)));
    unknown(driver, path);
}

/// Orders whose acknowledgements are taken out of the ledger are found, one by one.
fn unknown<D: Driver>(driver: &D, path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut left_out = 0;
    let keep = |line: &&str| {
        let is_out = line.starts_with("a 1 ") && left_out < 5;
        left_out += u32::from(is_out);
        !is_out
    };
    let lines: Vec<&str> = text.lines().filter(keep).collect();
    // One that was never committed, and one whose number another order has been given.
    let sent = lines.iter().find(|line| line.starts_with("s 1 ")).unwrap();
    let mut words: Vec<String> = sent.split(' ').map(str::to_owned).collect();
    words[4] = (words[4].parse::<u32>().unwrap() % 3_000 + 1).to_string();
    let same_number = words.join(" ");
    let copy = path.with_extension("unknown");
    std::fs::write(&copy, format!("{}\ns 1 1 9999 7 10\n{same_number}\n", lines.join("\n")))
        .unwrap();
    let recorded = read(&copy).unwrap();
    assert_eq!(recorded.unknown(), 7);
    let settled = after(driver, &recorded, &[]);
    assert_eq!((settled.unknown, settled.committed), (7, 5), "{settled:?}");
    assert!(settled.is_durable(), "{settled:?}");
}
