use super::*;
use crate::load::TpccDatabase;
use crate::settle::Books;
use dyno_testkit::Scratch;
use std::fs::{self, OpenOptions};
use std::io::Write;

const LOADED: TpccDatabase = TpccDatabase { warehouses: 2, c_last: 100 };

fn new_order(number: u32) -> LedgerOrder {
    LedgerOrder { number, customer: 17, lines: 10 }
}

fn new_entry(warehouse: u32, district: u32, work: LedgerWork<'_>) -> Entry<'_> {
    Entry { warehouse, district, work }
}

fn order_entry(warehouse: u32, district: u32, number: u32, away: &[SupplyKey]) -> Entry<'_> {
    new_entry(
        warehouse,
        district,
        LedgerWork::Order { order: new_order(number), away: away.into() },
    )
}

fn home_order(number: u32) -> Entry<'static> {
    order_entry(1, 1, number, &[])
}

#[test]
fn a_commit_is_pending_until_it_is_answered() {
    let ledger = Ledger::new(1);
    let order = order_entry(1, 4, 3_001, &[]);
    for _ in 0..3 {
        ledger.record(Step::Sent, &order).unwrap();
    }
    assert_eq!(ledger.districts().nth(3).unwrap().orders, Counted { acknowledged: 0, unknown: 3 });
    ledger.record(Step::Acknowledged, &order).unwrap();
    ledger.record(Step::Refused, &order).unwrap();
    let books = ledger.total().orders;
    assert_eq!(books, Counted { acknowledged: 1, unknown: 1 });
    assert!(!books.allows(0) && books.allows(1) && books.allows(2) && !books.allows(3));
    let payment = LedgerPayment { cents: 250, ..LedgerPayment::default() };
    let payment = new_entry(1, 10, LedgerWork::Payment(payment));
    ledger.record(Step::Sent, &payment).unwrap();
    ledger.record(Step::Acknowledged, &payment).unwrap();
    assert_eq!(
        ledger.districts().nth(9).unwrap().paid_cents,
        Counted { acknowledged: 250, unknown: 0 }
    );
    assert_eq!(ledger.districts().nth(9).unwrap().payments.acknowledged, 1);
    ledger.record(Step::Sent, &new_entry(1, 1, LedgerWork::Delivery(10))).unwrap();
    assert_eq!(ledger.total().delivered, Counted { acknowledged: 0, unknown: 10 });
}

fn books_before(next: i64) -> Books {
    Books::at(2, next)
}

fn open_ledger(path: &Path, next: i64) -> Result<LedgerFile, Failure> {
    LedgerFile::open(path, "postgres://me@db/tpcc", &LOADED, 7, &books_before(next))
}

/// A ledger of one order of each fate in the first district.
fn written(path: &Path) {
    let file = open_ledger(path, 3_001).unwrap();
    for number in [3_001, 3_002, 3_003] {
        file.record(Step::Sent, &home_order(number)).unwrap();
    }
    file.record(Step::Acknowledged, &home_order(3_002)).unwrap();
    file.record(Step::Refused, &home_order(3_003)).unwrap();
    file.record(Step::Sent, &order_entry(2, 4, 3_001, &[])).unwrap();
    file.record(Step::Acknowledged, &order_entry(2, 4, 3_001, &[])).unwrap();
    file.close().unwrap();
}

fn append_text(path: &Path, text: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text).unwrap();
}

#[test]
fn what_was_written_is_read() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    written(&path);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\ns 1 1 3001 17 10\n"), "{text}");
    assert!(text.contains("\na 2 4 3001 17 10\n"), "{text}");
    let recorded = read(&path).unwrap();
    assert_eq!((recorded.acknowledged(), recorded.unknown(), recorded.refused), (2, 1, 1));
    assert_eq!((recorded.runs, recorded.is_ended, recorded.torn), (1, true, 0));
    assert_eq!(recorded.target, "postgres://me@db/tpcc");
    let first = recorded.district(1, 1).unwrap();
    assert_eq!(first.before, 3_001);
    assert_eq!(
        (&first.acknowledged[..], &first.unknown[..]),
        (&[new_order(3_002)][..], &[new_order(3_001)][..])
    );
    assert_eq!(recorded.district(2, 4).unwrap().acknowledged, [new_order(3_001)]);
    assert_eq!(recorded.districts().count(), 20);
}

#[test]
fn the_parts_of_load_generators_make_one_ledger() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    let ledger = open_ledger(&path, 3_001).unwrap();
    for (name, district, away) in [("one", 1, &[(2, 77)][..]), ("two", 2, &[][..])] {
        let part = LedgerFile::create_part(&scratch.file(name)).unwrap();
        let answered = order_entry(1, district, 3_001, away);
        part.record(Step::Sent, &answered).unwrap();
        part.record(Step::Acknowledged, &answered).unwrap();
        part.record(Step::Sent, &order_entry(1, district, 3_002, &[])).unwrap();
        let payment = LedgerPayment { warehouse: 2, district: 3, customer: 4, cents: 500 };
        part.record(Step::Sent, &new_entry(1, district, LedgerWork::Payment(payment))).unwrap();
        ledger.absorb(&part.steps().unwrap()).unwrap();
    }
    // What was there of an earlier trial is not of this one.
    ledger
        .absorb(&LedgerFile::create_part(&scratch.file("one")).unwrap().steps().unwrap())
        .unwrap();
    for wrong in ["end 1\n", "run 1 2 3 4 x\n", "s 1 1 3003 1 5"] {
        assert!(ledger.absorb(wrong).is_err(), "{wrong}");
    }
    ledger.close().unwrap();
    let recorded = read(&path).unwrap();
    assert_eq!((recorded.acknowledged(), recorded.unknown(), recorded.torn), (2, 2, 0));
    assert_eq!(recorded.across.len(), 3, "{:?}", recorded.across);
    assert!(recorded.is_ended);
}

#[test]
fn a_line_that_was_cut_off_does_not_count_also_when_the_ledger_is_continued() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    written(&path);
    // Without its end the line of order 3,001 looks like that of another customer or order.
    for tail in [&b"a 1 1 3001 17 1"[..], b"a 1 1 300", b"a", b"\0\0\0\0"] {
        let content = fs::read(&path).unwrap();
        append_text(&path, tail);
        let recorded = read(&path).unwrap();
        assert_eq!((recorded.acknowledged(), recorded.unknown(), recorded.torn), (2, 1, 1));
        fs::write(&path, content).unwrap();
    }
    append_text(&path, b"a 1 1 3001 17 1");
    // One order of the first district of both warehouses is what the ledger knows at most.
    let mut books = books_before(3_001);
    books.set(1, 1, 3_002);
    books.set(2, 4, 3_002);
    let file = LedgerFile::open(&path, "postgres://me@db/tpcc", &LOADED, 8, &books).unwrap();
    file.record(Step::Sent, &home_order(3_002)).unwrap();
    file.close().unwrap();
    let recorded = read(&path).unwrap();
    assert_eq!((recorded.runs, recorded.torn, recorded.acknowledged()), (2, 1, 2));
    assert_eq!(recorded.district(1, 1).unwrap().unknown, [new_order(3_001), new_order(3_002)]);
    assert_eq!(recorded.district(1, 1).unwrap().before, 3_001, "of the first run");
}

#[test]
fn a_run_that_never_began_is_no_run() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    fs::write(&path, "dyno-tpcc-ledger 3\nrun 5 2 100 7 x\nbefore 1 1 30").unwrap();
    assert_eq!(read(&path).unwrap().runs, 0);
    written(&path);
    let recorded = read(&path).unwrap();
    assert_eq!((recorded.runs, recorded.acknowledged(), recorded.torn), (1, 2, 1));
}

/// The message of a failure, with its hint.
fn describe_failure(error: Failure) -> String {
    format!("{} {}", error.message, error.hint.unwrap_or_default())
}

#[test]
fn only_the_own_database_is_continued_with() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    written(&path);
    let other_database = TpccDatabase { warehouses: 2, c_last: 99 };
    let error = LedgerFile::open(&path, "x", &other_database, 7, &books_before(3_001)).unwrap_err();
    assert!(describe_failure(error).contains("that of another database"));
    let error = describe_failure(open_ledger(&path, 3_001).unwrap_err());
    assert!(error.contains("1 acknowledged orders of district 1 of warehouse 1"), "{error}");
    assert!(error.contains("orders were lost"), "{error}");
    let growth = describe_failure(open_ledger(&path, 3_004).unwrap_err());
    assert!(growth.contains("others have entered orders"), "{growth}");
    for (content, words) in
        [("", "begins with"), ("hello\n", "isn't a ledger"), ("dyno-tpcc-ledger 9\n", "version 9")]
    {
        fs::write(&path, content).unwrap();
        let error = describe_failure(read(&path).unwrap_err());
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn damage_inside_is_named_by_its_line() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    written(&path);
    let lines = fs::read_to_string(&path).unwrap().lines().count();
    for damage in ["a 1 1 x 17 10\n", "a 1 11 3001 17 10\n", "a 9 1 3001 17 10\n", "q\n"] {
        let content = fs::read(&path).unwrap();
        append_text(&path, damage.as_bytes());
        append_text(&path, b"end 5\n");
        let error = read(&path).unwrap_err().message.to_string();
        assert!(error.starts_with(&format!("Line {} of the ledger", lines + 1)), "{error}");
        fs::write(&path, content).unwrap();
    }
}

#[test]
fn two_runs_can_not_share_a_ledger() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    let first = open_ledger(&path, 3_001).unwrap();
    assert!(
        open_ledger(&path, 3_001)
            .unwrap_err()
            .message
            .to_string()
            .contains("in use by another run")
    );
    drop(first);
    assert!(read(&path).unwrap().is_ended);
    open_ledger(&path, 3_001).unwrap();
}

#[test]
fn a_full_disk_ends_the_run() {
    let path = Path::new("/dev/full");
    let file = LedgerFile::from_file(path, OpenOptions::new().append(true).open(path).unwrap());
    let error = file.record(Step::Sent, &home_order(3_001)).unwrap_err();
    assert_eq!(error.cause(), dyno_core::Cause::Workload, "no policy survives it");
    assert!(error.message().contains("/dev/full can't be written any more"), "{error}");
    assert!(error.message().contains("No space left on device"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("Free some space")));
    let again = file.record(Step::Sent, &home_order(3_002)).unwrap_err();
    assert_eq!(again, error, "the first failure is reported again");
    assert!(file.close().is_err());
}

#[test]
fn what_lies_on_several_warehouses_is_read_with_its_outcome() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");
    let file = open_ledger(&path, 3_001).unwrap();
    let away = [(2, 50), (2, 60)];
    let payment = LedgerPayment { warehouse: 2, district: 3, customer: 7, cents: 1_250 };
    file.record(Step::Sent, &order_entry(1, 4, 3_001, &away)).unwrap();
    file.record(Step::Acknowledged, &order_entry(1, 4, 3_001, &away)).unwrap();
    // Refused ones are none, nor are those that stay at home.
    file.record(Step::Sent, &order_entry(1, 4, 3_002, &away)).unwrap();
    file.record(Step::Refused, &order_entry(1, 4, 3_002, &away)).unwrap();
    file.record(Step::Sent, &order_entry(1, 4, 3_003, &[])).unwrap();
    for step in [Step::Sent, Step::Acknowledged, Step::Sent] {
        file.record(step, &new_entry(1, 4, LedgerWork::Payment(payment))).unwrap();
    }
    file.close().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines = "\ns 1 4 3001 17 10 2:50 2:60\na 1 4 3001 17 10 2:50 2:60\n";
    assert!(text.contains(lines), "{text}");
    assert!(text.contains("\nS 1 4 2 3 7 1250\n"), "{text}");
    let recorded = read(&path).unwrap();
    let paid = new_entry(1, 4, LedgerWork::Payment(payment));
    let work = LedgerWork::Order { order: new_order(3_001), away: away.to_vec().into() };
    let entered = new_entry(1, 4, work);
    let expected = [(entered, true), (paid.clone(), true), (paid, false)]
        .map(|(entry, is_acknowledged)| Across { entry, is_acknowledged });
    assert_eq!(recorded.across, expected);
    assert_eq!((recorded.acknowledged(), recorded.unknown()), (1, 1), "orders");
}
