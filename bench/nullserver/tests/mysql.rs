//! The MySQL side, byte by byte: what is answered, and what is a violation.

mod common;

use common::{
    CACHE_METADATA, DEPRECATE_EOF, LOCAL_FILES, MULTI_STATEMENTS, Mysql, execute_bigints, server,
};
use dyno_nullserver::Config;

const POINT: &str = "SELECT c FROM sbtest1 WHERE id=?";

/// Sends one bad request and checks that the refusal says `why`.
fn assert_refused(reason: &str, request: impl FnOnce(&mut Mysql)) {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, 0, 0);
    request(&mut client);
    let text = client.refusal();
    assert!(text.contains(reason), "{text}");
    let report = handle.stop().expect("stop");
    assert_eq!((report.counters.violations(), report.violations.len()), (1, 1));
    assert!(report.violations[0].contains(reason), "{:?}", report.violations);
}

#[test]
fn a_prepared_select_sends_its_columns_once() {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, 0, CACHE_METADATA);
    let (id, columns, params) = client.prepare(POINT);
    assert_eq!((columns, params), (1, 1));
    for with_columns in [1, 0, 0] {
        client.command(0x17, &execute_bigints(id, &[7]));
        assert_eq!(client.packet(), [1, with_columns]);
        if with_columns == 1 {
            assert!(client.packet().starts_with(b"\x03def\x06sbtest\x07sbtest1"));
        }
        assert_eq!(client.packet()[0], 0xfe);
        let row = client.packet();
        assert_eq!((row[..3].to_vec(), row.len()), (vec![0, 0, 119], 122));
        assert_eq!(client.packet(), [0xfe, 0, 0, 2, 0]);
    }
    assert_eq!(client.sequence, 4);
    let counters = handle.stop().expect("stop").counters;
    assert_eq!(
        (counters.mysql.execute, counters.mysql.select, counters.mysql.rows_sent),
        (3, 3, 3)
    );
    assert_eq!(counters.violations(), 0);
}

#[test]
fn a_range_has_a_hundred_rows() {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, DEPRECATE_EOF, 0);
    client.command(0x16, b"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?");
    (0..4).for_each(|_| drop(client.packet()));
    client.command(0x17, &execute_bigints(1, &[1, 100]));
    assert_eq!(client.packet(), [1]);
    client.packet();
    for row in 0..100 {
        assert_eq!(client.packet().len(), 122, "row {row}");
        assert_eq!(client.sequence, 3 + row);
    }
    assert_eq!(client.packet()[0], 0xfe);
    client.command(0x03, b"SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100");
    assert_eq!((client.packet(), client.packet().is_empty()), (vec![1], false));
    assert_eq!(client.packet(), b"\x06501250");
    assert_eq!(handle.counters().violations(), 0);
}

#[test]
fn an_answer_can_hold_the_clock_of_its_moment() {
    let clock_ns = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, DEPRECATE_EOF, 0);
    for _ in 0..3 {
        let before = clock_ns();
        client.command(3, b"SELECT clock_ns()");
        assert_eq!(client.packet(), [1]);
        client.packet();
        let row = client.packet();
        let digits = std::str::from_utf8(&row[1..]).expect("digits");
        let sent_ns: i64 = digits.parse().expect("a number");
        assert!((before..=clock_ns()).contains(&sent_ns), "{before} {sent_ns}");
        client.packet();
    }
    assert_eq!(handle.stop().expect("stop").counters.violations(), 0);
}

#[test]
fn decimals_are_sent_as_text_in_both_encodings() {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, DEPRECATE_EOF, 0);
    let sql = b"SELECT d_tax, d_next_o_id FROM bmsql_district WHERE d_w_id = 1 AND d_id = 3";
    client.command(0x03, sql);
    assert_eq!(client.packet(), [2]);
    let definition = client.packet();
    // Type DECIMAL, then flags, then four digits behind the point.
    assert_eq!(definition[definition.len() - 6..], [246, 0x80, 0, 4, 0, 0]);
    client.packet();
    assert_eq!(client.packet(), b"\x060.1250\x043001");
    assert_eq!(client.packet()[0], 0xfe);
    client.command(0x16, sql);
    (0..3).for_each(|_| drop(client.packet()));
    client.command(0x17, &execute_bigints(1, &[]));
    (0..3).for_each(|_| drop(client.packet()));
    assert_eq!(client.packet(), b"\0\0\x060.1250\xb9\x0b\0\0");
    assert_eq!(handle.counters().violations(), 0);
}

#[test]
fn transactions_and_several_statements_show_in_the_status() {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, MULTI_STATEMENTS, 0);
    client.command(0x03, b"BEGIN; INSERT INTO t (a) VALUES (1), (2); COMMIT");
    assert_eq!(client.packet(), [0, 0, 0, 2 | 1 | 8, 0, 0, 0]);
    assert_eq!(client.packet(), [0, 2, 0, 2 | 1 | 8, 0, 0, 0]);
    assert_eq!(client.packet(), [0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(client.sequence, 3);
    client.command(0x03, b" ; ");
    assert_eq!(client.packet()[..3], [0xff, 0x29, 4]);
    let mysql = handle.stop().expect("stop").counters.mysql;
    assert_eq!(
        (mysql.query, mysql.begin, mysql.insert, mysql.commit, mysql.empty),
        (2, 1, 1, 1, 1)
    );
    assert_eq!((mysql.rows_inserted, mysql.violations), (2, 0));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, 0, 0);
    let ping = [1, 0, 0, 0, 0x0e];
    let query = [&[9, 0, 0, 0, 0x03], b"SELECT 7".as_slice()].concat();
    std::io::Write::write_all(&mut client.stream, &[&ping, query.as_slice(), &ping].concat())
        .expect("send");
    assert_eq!(client.packet()[0], 0);
    let result: Vec<Vec<u8>> = (0..5).map(|_| client.packet()).collect();
    assert_eq!((result[0].as_slice(), result[3].as_slice()), ([1].as_slice(), b"\x011".as_slice()));
    assert_eq!(client.packet()[0], 0);
    assert_eq!(handle.counters().mysql.ping, 2);
}

#[test]
fn a_file_is_asked_for_counted_and_checked() {
    let handle = server(Config::default());
    let load = b"LOAD DATA LOCAL INFILE 'rows' INTO TABLE sbtest1 (k, c, pad)";
    let mut client = Mysql::login(&handle, LOCAL_FILES, 0);
    client.command(0x03, load);
    assert_eq!(client.packet(), b"\xfbrows");
    client.send(2, b"1\ta\tb\n2\ta");
    client.send(3, b"\tb\n3\tc\td\n");
    client.send(4, b"");
    assert_eq!((client.packet()[..2].to_vec(), client.sequence), (vec![0, 3], 5));
    client.command(0x03, load);
    client.packet();
    client.send(2, b"1\ta\tb\n2\ta\n");
    assert!(client.refusal().contains("row 2 has 2 fields, expected are 3"));

    let mut client = Mysql::login(&handle, 0, 0);
    client.command(0x03, load);
    assert_eq!(client.packet()[0], 0xff);
    let mysql = handle.stop().expect("stop").counters.mysql;
    assert_eq!((mysql.rows_loaded, mysql.violations), (3, 1));
}

#[test]
fn an_unfitting_execute_is_a_violation() {
    let execute_with = |change: fn(&mut Vec<u8>)| {
        move |client: &mut Mysql| {
            let (id, ..) = client.prepare(POINT);
            let mut body = execute_bigints(id, &[7]);
            change(&mut body);
            client.command(0x17, &body);
        }
    };
    assert_refused("only 7 are left", execute_with(|body| body.truncate(body.len() - 1)));
    assert_refused("1 trailing bytes", execute_with(|body| body.push(0)));
    assert_refused("unknown statement", execute_with(|body| body[0] = 9));
    assert_refused("ends inside the statement id", execute_with(|body| body.truncate(3)));
    assert_refused("cursor 0x01", execute_with(|body| body[4] = 1));
    assert_refused("iteration count", execute_with(|body| body[5] = 2));
    assert_refused("NULL bitmap", execute_with(|body| body[9] = 2));
    assert_refused("new-parameters flag is 2", execute_with(|body| body[10] = 2));
    assert_refused("no parameter type 99", execute_with(|body| body[11] = 99));
    assert_refused("type has the flags 0x01", execute_with(|body| body[12] = 1));
    assert_refused(
        "does not send the parameter types",
        execute_with(|body| {
            body[10] = 0;
            drop(body.drain(11..13));
        }),
    );
}

#[test]
fn unfitting_values_are_violations() {
    let update_with_length = |length: &'static [u8]| {
        move |client: &mut Mysql| {
            let (id, ..) = client.prepare("UPDATE sbtest1 SET c=? WHERE id=?");
            let mut body = execute_bigints(id, &[0, 0]);
            body.truncate(11);
            body.extend_from_slice(&[253, 0, 8, 0]);
            body.extend_from_slice(length);
            client.command(0x17, &body);
        }
    };
    assert_refused(
        "a field of 18446744073709551615 bytes",
        update_with_length(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255]),
    );
    assert_refused("a length begins with 0xff", update_with_length(&[0xff]));
    assert_refused("a field of 8 bytes", update_with_length(&[1, b'x', 0]));
    assert_refused("parameter 1 is not a text", |client| {
        let (id, ..) = client.prepare("UPDATE sbtest1 SET c=? WHERE id=?");
        client.command(0x17, &execute_bigints(id, &[1, 1]));
    });
}

#[test]
fn broken_commands_are_violations() {
    assert_refused("is number 3 instead of 0", |client| client.send(3, &[0x0e]));
    assert_refused("a command packet is empty", |client| client.send(0, &[]));
    assert_refused("COM_PING has 1 trailing", |client| client.command(0x0e, b"x"));
    assert_refused("COM_QUIT has 2 trailing", |client| client.command(0x01, b"xy"));
    assert_refused("command 0x63", |client| client.command(0x63, b""));
    assert_refused("unknown statement 5", |client| client.command(0x19, &[5, 0, 0, 0]));
    assert_refused("3 bytes instead of 4", |client| client.command(0x1a, &[1, 0, 0]));
    assert_refused("a quote is not closed", |client| client.command(0x03, b"SELECT 'x"));
    assert_refused("parameter mark", |client| client.command(0x03, b"SELECT ?"));
    assert_refused("not negotiated", |client| client.command(0x03, b"SELECT 1; SELECT 2"));
    assert_refused("more than one statement", |client| client.command(0x16, b"SELECT 1; SELECT 2"));
    // 16 MB - 1 is the mark of a longer request; nothing of it is waited for.
    assert_refused("a packet of 16777215 bytes", |client| {
        std::io::Write::write_all(&mut client.stream, &[255, 255, 255, 0]).expect("send");
    });
}

#[test]
fn a_closed_statement_is_unknown() {
    assert_refused("unknown statement 1", |client| {
        let (id, ..) = client.prepare(POINT);
        client.command(0x19, &id.to_le_bytes());
        client.command(0x17, &execute_bigints(id, &[1]));
    });
}

#[test]
fn a_broken_login_is_a_violation() {
    let handle = server(Config::default());
    let cases: [(&str, Vec<u8>); 6] = [
        ("has 3 bytes instead of 20", Mysql::response(0x0008_8200, 0, b"abc")),
        ("trailing bytes", [Mysql::response(0x0008_8200, 0, b""), vec![1]].concat()),
        ("protocol 4.1", Mysql::response(0x0008_8000, 0, b"")),
        ("not announced", Mysql::response(0x0008_8a00, 0, b"")),
        ("only 2 are left", vec![0, 1]),
        ("a packet of 20000 bytes", vec![0; 20_000]),
    ];
    for (why, response) in &cases {
        let mut client = Mysql::greeted(&handle);
        client.send(1, response);
        let text = client.refusal();
        assert!(text.contains(why), "{text}");
    }
    let mysql = handle.stop().expect("stop").counters.mysql;
    assert_eq!((mysql.violations, mysql.logins), (cases.len() as u64, 0));
}

#[test]
fn another_plugin_is_switched_to_the_native_one() {
    let handle = server(Config::default());
    let mut client = Mysql::greeted(&handle);
    let mut response = Mysql::response(0x0008_8200, 0, b"");
    response.truncate(response.len() - 22);
    response.extend_from_slice(b"caching_sha2_password\0");
    client.send(1, &response);
    let switch = client.packet();
    assert!(switch.starts_with(b"\xfemysql_native_password\0"));
    assert_eq!(switch.len(), 1 + 22 + 21);
    client.send(3, &[5; 20]);
    assert_eq!((client.packet()[0], client.sequence), (0, 4));
    assert_eq!(handle.counters().mysql.logins, 1);
}

#[test]
fn the_catalog_has_one_table_or_none() {
    for (is_empty, rows) in [(false, vec![b"\x07sbtest1".to_vec()]), (true, vec![])] {
        let handle = server(Config { is_empty, ..Config::default() });
        let mut client = Mysql::login(&handle, DEPRECATE_EOF, 0);
        client.command(0x03, b"SHOW TABLES");
        assert_eq!((client.packet(), client.packet().is_empty()), (vec![1], false));
        for row in rows {
            assert_eq!(client.packet(), row);
        }
        assert_eq!(client.packet()[0], 0xfe);
        // Every id exists, with and without the table in the catalog.
        client.command(0x03, b"SELECT MAX(id) FROM sbtest1");
        assert_eq!((client.packet(), client.packet().is_empty()), (vec![1], false));
        assert_eq!(client.packet(), b"\x0a2147483647");
        assert_eq!(client.packet()[0], 0xfe);
        assert_eq!(handle.counters().violations(), 0);
    }
}

#[test]
fn a_query_without_a_canned_answer_is_an_error_and_no_violation() {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, 0, 0);
    for command in [0x03, 0x16] {
        client.command(command, b"SELECT Nothing FROM nowhere WHERE a = 'b'");
        let error = client.packet();
        assert_eq!(error[..3], [0xff, 0xd3, 4]);
        assert!(error.ends_with(b"select nothing from nowhere where a=?"), "{error:?}");
    }
    client.command(0x0e, b"");
    assert_eq!(client.packet()[0], 0);
    let mysql = handle.stop().expect("stop").counters.mysql;
    assert_eq!((mysql.unknown, mysql.select, mysql.violations), (2, 0, 0));
}

#[test]
fn an_item_beyond_the_last_one_is_not_found() {
    let handle = server(Config::default());
    let mut client = Mysql::login(&handle, DEPRECATE_EOF, 0);
    client.command(0x16, b"SELECT i_price, i_name, i_data FROM bmsql_item WHERE i_id = ?");
    (0..5).for_each(|_| drop(client.packet()));
    for (item, rows) in [(1, 1), (100_000, 1), (100_001, 0)] {
        client.command(0x17, &execute_bigints(1, &[item]));
        let packets = (0..5 + rows).map(|_| client.packet()).last();
        assert_eq!(packets.expect("an answer")[0], 0xfe, "item {item}");
    }
    assert_eq!(handle.stop().expect("stop").counters.mysql.rows_sent, 2);
}
