//! The PostgreSQL side, byte by byte: what is answered, and what is a violation.

mod common;

use common::{DESCRIBE, EXECUTE, Postgres, SYNC, bind, message, parse, server};
use dyno_nullserver::Config;

const POINT: &str = "SELECT c FROM sbtest1 WHERE id=$1";

/// Sends one bad request and checks that the refusal says `why`.
fn assert_refused(reason: &str, request: &[&[u8]]) {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    client.raw(&request.concat());
    let text = client.refusal();
    assert!(text.contains("08P01") && text.contains(reason), "{text}");
    let report = handle.stop().expect("stop");
    assert_eq!((report.counters.violations(), report.violations.len()), (1, 1));
}

#[test]
fn an_encryption_request_is_declined_and_startup_goes_on() {
    let handle = server(Config::default());
    let mut client = Postgres::connected(&handle);
    client.raw(&[0, 0, 0, 8, 4, 210, 22, 47]);
    let mut answer = [0];
    std::io::Read::read_exact(&mut client.stream, &mut answer).expect("an answer");
    assert_eq!(&answer, b"N");
    client.startup();
    assert!(client.until_ready().starts_with("RSSSSSSSSSK"));
}

#[test]
fn a_batch_is_answered_message_by_message() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    client
        .raw(&[&parse("s", POINT)[..], &bind("s", &["5"], 0), &DESCRIBE, &EXECUTE, &SYNC].concat());
    assert_eq!(client.message().0, b'1');
    assert_eq!(client.message().0, b'2');
    assert_eq!(client.message().0, b'T');
    let (kind, row) = client.message();
    assert_eq!((kind, &row[..6], row.len()), (b'D', [0, 1, 0, 0, 0, 119].as_slice(), 125));
    assert_eq!(client.message(), (b'C', b"SELECT 1\0".to_vec()));
    assert_eq!(client.message(), (b'Z', b"I".to_vec()));
    // A pipeline of three, one Sync.
    let bind_and_execute = [&bind("s", &["5"], 1)[..], &EXECUTE].concat();
    client.raw(&[&bind_and_execute[..], &bind_and_execute, &bind_and_execute, &SYNC].concat());
    assert_eq!(client.until_ready(), "2DC2DC2DCZ");
    let postgres = handle.stop().expect("stop").counters.postgres;
    assert_eq!((postgres.execute, postgres.select, postgres.sync), (4, 4, 2));
    assert_eq!(postgres.violations, 0);
}

#[test]
fn values_come_in_the_format_that_was_asked_for() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    let partitions =
        "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c";
    client.raw(&parse("", partitions));
    for (format, expected) in [
        (0, b"\0\x03\0\0\0\x011\xff\xff\xff\xff\0\0\0\x011".as_slice()),
        (1, b"\0\x03\0\0\0\x04\0\0\0\x01\xff\xff\xff\xff\0\0\0\x08\0\0\0\0\0\0\0\x01"),
    ] {
        client.raw(&[&bind("", &[], format)[..], &EXECUTE, &SYNC].concat());
        let row = loop {
            if let (b'D', row) = client.message() {
                break row;
            }
        };
        assert_eq!(row, expected);
        client.until_ready();
    }
}

#[test]
fn decimals_come_and_go_as_text() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    let district = "SELECT d_tax, d_next_o_id FROM bmsql_district WHERE d_w_id = $1 AND d_id = $2";
    client.raw(&parse("", district));
    client.raw(&[&bind("", &["1", "5"], 0)[..], &EXECUTE, &SYNC].concat());
    let row = loop {
        if let (b'D', row) = client.message() {
            break row;
        }
    };
    assert_eq!(row, b"\0\x02\0\0\0\x060.1250\0\0\0\x043001");
    client.until_ready();
    client.raw(&[&bind("", &["1", "5"], 1)[..], &EXECUTE, &SYNC].concat());
    assert!(client.refusal().contains("numeric"));
    let pay = parse("", "UPDATE bmsql_warehouse SET w_ytd = w_ytd + $1::numeric WHERE w_id = $2");
    assert_refused("parameter 1 is not a number", &[&pay, &bind("", &["12.x", "1"], 0)]);
}

#[test]
fn rows_can_be_fetched_in_portions() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    let range = parse("", "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2");
    let mut two = EXECUTE;
    two[9] = 2;
    client.raw(&[&range[..], &bind("", &["1", "5"], 0), &two, &two, &EXECUTE, &SYNC].concat());
    assert_eq!(client.until_ready(), format!("12DDsDDs{}CZ", "D".repeat(96)));
    assert_eq!(handle.counters().postgres.rows_sent, 100);
}

#[test]
fn a_simple_query_runs_all_its_statements() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    client.send(b'Q', b"BEGIN; UPDATE t SET a = 1; SELECT 1\0");
    assert_eq!(client.message(), (b'C', b"BEGIN\0".to_vec()));
    assert_eq!(client.message(), (b'C', b"UPDATE 1\0".to_vec()));
    assert_eq!(client.message().0, b'T');
    assert_eq!(client.message(), (b'D', b"\0\x01\0\0\0\x011".to_vec()));
    assert_eq!(client.message(), (b'C', b"SELECT 1\0".to_vec()));
    assert_eq!(client.message(), (b'Z', b"T".to_vec()));
    client.send(b'Q', b"END; create table x (a int)\0");
    assert_eq!(client.message(), (b'C', b"COMMIT\0".to_vec()));
    assert_eq!(client.message(), (b'C', b"CREATE TABLE\0".to_vec()));
    assert_eq!(client.message(), (b'Z', b"I".to_vec()));
    client.send(b'Q', b" ; \0");
    assert_eq!(client.until_ready(), "IZ");
}

#[test]
fn copied_rows_are_counted_and_checked() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    let copy = b"COPY pgbench_branches FROM STDIN\0";
    client.send(b'Q', copy);
    assert_eq!(client.message(), (b'G', b"\0\0\0".to_vec()));
    client.send(b'd', b"1\t0\t\n2\t0");
    client.send(b'd', b"\tx\n");
    client.send(b'c', b"");
    assert_eq!(client.message(), (b'C', b"COPY 2\0".to_vec()));
    assert_eq!(client.until_ready(), "Z");
    // In the extended protocol Sync is ignored until the COPY ended.
    let start = [&parse("", "COPY pgbench_branches FROM STDIN")[..], &bind("", &[], 0), &EXECUTE];
    client.raw(
        &[&start.concat()[..], &SYNC, &message(b'd', b"1\t0\t\n"), &message(b'c', b""), &SYNC]
            .concat(),
    );
    assert_eq!(client.until_ready(), "12GCZ");
    client.send(b'Q', copy);
    client.send(b'f', b"changed my mind\0");
    assert_eq!(client.until_ready(), "GEZ");
    client.send(b'Q', copy);
    client.send(b'd', b"1\t0\t\n1\t0\n");
    assert!(client.refusal().contains("row 2 has 2 fields, expected are 3"));
    let postgres = handle.stop().expect("stop").counters.postgres;
    assert_eq!((postgres.rows_loaded, postgres.violations), (3, 1));
}

#[test]
fn an_unfitting_bind_is_a_violation() {
    let parsed = parse("s", POINT);
    let bind_binary = |value: &[u8]| {
        let head = b"\0s\0\0\x01\0\x01\0\x01".as_slice();
        let length = (value.len() as u32).to_be_bytes();
        message(b'B', &[head, &length, value, &[0, 0]].concat())
    };
    assert_refused("parameter 1 is not an integer", &[&parsed, &bind("s", &["x"], 0)]);
    let declared = [b"s\0".as_slice(), POINT.as_bytes(), b"\0\0\x01\0\0\0\x14"].concat();
    assert_refused("of its type's length", &[&message(b'P', &declared), &bind_binary(&[0; 4])]);
    assert_refused("parameter 1 is not a text", &[&parsed, &bind_binary(&[0; 8])]);
    assert_refused(
        "gives 2 parameters, the statement has 1",
        &[&parsed, &bind("s", &["1", "2"], 0)],
    );
    assert_refused("there is no statement: \"t\"", &[&parsed, &bind("t", &["1"], 0)]);
    assert_refused("neither text nor binary", &[&parsed, &bind("s", &["1"], 2)]);
    assert_refused(
        "2 result column formats for 1",
        &[&parsed, &message(b'B', b"\0s\0\0\0\0\x01\0\0\0\x011\0\x02\0\0\0\0")],
    );
    assert_refused(
        "a field of 2147483647 bytes",
        &[&parsed, &message(b'B', b"\0s\0\0\0\0\x01\x7f\xff\xff\xff1\0\0")],
    );
    assert_refused(
        "parameter 1 has length -2",
        &[&parsed, &message(b'B', b"\0s\0\0\0\0\x01\xff\xff\xff\xfe1\0\0")],
    );
    assert_refused(
        "Bind has 1 trailing bytes",
        &[&parsed, &message(b'B', b"\0s\0\0\0\0\x01\0\0\0\x011\0\0!")],
    );
}

#[test]
fn broken_messages_are_violations() {
    assert_refused("a message of length 3", &[&[b'Q', 0, 0, 0, 3]]);
    assert_refused("a message of length 2147483647", &[&[b'Q', 0x7f, 0xff, 0xff, 0xff]]);
    assert_refused("a message of length -1", &[&[b'B', 0xff, 0xff, 0xff, 0xff]]);
    assert_refused("type '?' is not expected", &[&message(b'?', b"")]);
    assert_refused("no closing zero byte", &[&message(b'Q', b"SELECT 1")]);
    assert_refused("trailing bytes", &[&message(b'Q', b"SELECT 1\0x\0")]);
    assert_refused("has a parameter", &[&message(b'Q', b"SELECT $1\0")]);
    assert_refused("Sync has 1 trailing", &[&message(b'S', b"x")]);
    assert_refused("Parse has 4 trailing", &[&message(b'P', b"\0SELECT 1\0\0\0abcd")]);
    assert_refused("a field of 8 bytes", &[&message(b'P', b"\0SELECT $1\0\0\x02abcd")]);
    assert_refused("already exists", &[&parse("s", POINT), &parse("s", POINT)]);
    assert_refused("there is no portal", &[&EXECUTE]);
    assert_refused("names neither", &[&message(b'D', b"X\0")]);
    assert_refused(
        "before the Sync of a batch",
        &[&parse("", POINT), &message(b'Q', b"SELECT 1\0")],
    );
    assert_refused("more than one statement", &[&parse("", "SELECT 1; SELECT 2")]);
    // A portal does not outlive its transaction.
    assert_refused(
        "there is no portal",
        &[&parse("", "SELECT 1"), &bind("", &[], 0), &SYNC, &EXECUTE],
    );
}

#[test]
fn a_query_without_a_canned_answer_is_an_error_and_no_violation() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    client.send(b'Q', b"SELECT nothing FROM nowhere\0");
    assert_eq!(client.until_ready(), "EZ");
    // What follows in the batch is skipped.
    let sql = "SELECT nothing FROM nowhere WHERE a = $1";
    client.raw(&[&parse("s", sql)[..], &bind("s", &["5"], 0), &EXECUTE, &SYNC].concat());
    assert_eq!(client.until_ready(), "EZ");
    client.raw(&[&parse("s", "SELECT 1")[..], &bind("s", &[], 0), &EXECUTE, &SYNC].concat());
    assert_eq!(client.until_ready(), "12DCZ");
    let postgres = handle.stop().expect("stop").counters.postgres;
    assert_eq!((postgres.unknown, postgres.select, postgres.violations), (2, 1, 0));
}

#[test]
fn a_broken_startup_is_a_violation() {
    let handle = server(Config::default());
    let cases: [(&str, &[u8]); 5] = [
        ("protocol 2.0", &[0, 0, 0, 8, 0, 2, 0, 0]),
        ("names no user", &[0, 0, 0, 9, 0, 3, 0, 0, 0]),
        ("no closing zero", &[0, 0, 0, 9, 0, 3, 0, 0, b'u']),
        ("a message of length 99999999", &[5, 245, 224, 255]),
        ("the encryption request has 1 trailing", &[0, 0, 0, 9, 4, 210, 22, 47, 0]),
    ];
    for (why, bytes) in cases {
        let mut client = Postgres::connected(&handle);
        client.raw(bytes);
        let text = client.refusal();
        assert!(text.contains(why), "{text}");
    }
    assert_eq!(handle.stop().expect("stop").counters.postgres.violations, 5);
}
