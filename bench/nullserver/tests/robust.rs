//! The server as a whole: many connections, slow readers, random bytes.

mod common;

use common::{EXECUTE, Mysql, Postgres, SYNC, bind, execute_bigints, parse, server};
use dyno_nullserver::Config;
use std::io::{Read, Write};

#[test]
fn two_thousand_connections_are_served_by_two_loops() {
    let handle = server(Config { threads: 2, ..Config::default() });
    let mut clients: Vec<Mysql> = (0..2_000).map(|_| Mysql::login(&handle, 0, 0)).collect();
    for client in &mut clients {
        client.command(0x0e, b"");
    }
    for client in &mut clients {
        assert_eq!(client.packet()[0], 0);
    }
    drop(clients);
    let mysql = handle.stop().expect("stop").counters.mysql;
    assert_eq!((mysql.connections, mysql.logins, mysql.ping), (2_000, 2_000, 2_000));
    assert_eq!(mysql.violations, 0);
}

#[test]
fn a_client_that_does_not_read_gets_everything_later() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    let range = parse("s", "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2");
    let bind_and_execute = [&bind("s", &["1", "100"], 0)[..], &EXECUTE].concat();
    // 2,000 times 100 rows of 130 bytes are more than any socket buffer takes.
    client.raw(&[range, bind_and_execute.repeat(2_000), SYNC.to_vec()].concat());
    let kinds = client.until_ready();
    assert_eq!(kinds.matches('D').count(), 200_000);
    assert_eq!(kinds.matches('C').count(), 2_000);
    assert_eq!(handle.stop().expect("stop").counters.postgres.rows_sent, 200_000);
}

#[test]
fn requests_may_come_byte_by_byte() {
    let handle = server(Config::default());
    let mut client = Postgres::login(&handle);
    let batch = [parse("", "SELECT c FROM sbtest1 WHERE id=$1"), bind("", &["7"], 0)];
    for byte in [batch.concat(), EXECUTE.to_vec(), SYNC.to_vec()].concat() {
        client.raw(&[byte]);
    }
    assert_eq!(client.until_ready(), "12DCZ");
    let mut client = Mysql::login(&handle, 0, 0);
    for byte in [9, 0, 0, 0, 0x03].into_iter().chain(*b"SELECT 7") {
        client.stream.write_all(&[byte]).expect("send");
    }
    assert_eq!(client.packet(), [1]);
    assert_eq!(handle.counters().violations(), 0);
}

/// xorshift64*, seeded: a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    /// Changes, removes, inserts or truncates a few bytes.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1));
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), self.below(256) as u8),
                _ if bytes.is_empty() => {}
                2 => drop(bytes.remove(at)),
                _ => bytes[at] = self.below(256) as u8,
            }
        }
    }
}

fn mysql_requests() -> Vec<u8> {
    let prepare =
        [&[0x16], b"INSERT INTO bmsql_new_order (a, b, c) VALUES (?, ?, ?)".as_slice()].concat();
    let execute = [&[0x17], execute_bigints(1, &[1, 2, 3]).as_slice()].concat();
    let query = [&[0x03], b"SELECT id, k, c, pad FROM sbtest1 WHERE k IN (1, 2, '\\'')".as_slice()]
        .concat();
    let load = [&[0x03], b"LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, b)".as_slice()].concat();
    let packets =
        [(0, prepare), (0, execute), (0, query), (0, load), (2, b"1\t2\n".to_vec()), (3, vec![])];
    let mut bytes = Vec::new();
    for (sequence, payload) in packets {
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
        bytes.push(sequence);
        bytes.extend_from_slice(&payload);
    }
    bytes
}

fn postgres_requests() -> Vec<u8> {
    [
        parse("s", "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2"),
        bind("s", &["1", "5"], 1),
        EXECUTE.to_vec(),
        parse("", "COPY t (a, b) FROM STDIN"),
        bind("", &[], 0),
        EXECUTE.to_vec(),
        common::message(b'd', b"1\t\\N\n"),
        common::message(b'c', b""),
        SYNC.to_vec(),
        common::message(b'Q', b"INSERT INTO t (a) VALUES (1), (2)\0"),
    ]
    .concat()
}

#[test]
fn damaged_requests_never_stop_the_server() {
    let handle = server(Config::default());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut discard = Vec::new();
    for _ in 0..1_500 {
        let mut mysql = Mysql::login(&handle, common::LOCAL_FILES, 0);
        let mut mysql_bytes = mysql_requests();
        random.damage(&mut mysql_bytes);
        let mut postgres = Postgres::login(&handle);
        let mut postgres_bytes = postgres_requests();
        random.damage(&mut postgres_bytes);
        for (stream, bytes) in
            [(&mut mysql.stream, mysql_bytes), (&mut postgres.stream, postgres_bytes)]
        {
            // The server may have hung up already.
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            discard.clear();
            let _ = stream.read_to_end(&mut discard);
        }
    }
    let undamaged = Postgres::login(&handle);
    drop(undamaged);
    let counters = handle.stop().expect("no loop panicked").counters;
    assert!(counters.mysql.violations > 100 && counters.postgres.violations > 100, "{counters}");
    assert_eq!(counters.mysql.logins, 1_500);
}

#[test]
fn undamaged_requests_are_no_violations() {
    let handle = server(Config::default());
    let mut mysql = Mysql::login(&handle, common::LOCAL_FILES, 0);
    mysql.stream.write_all(&mysql_requests()).expect("send");
    let mut postgres = Postgres::login(&handle);
    postgres.raw(&postgres_requests());
    for stream in [&mut mysql.stream, &mut postgres.stream] {
        stream.shutdown(std::net::Shutdown::Write).expect("shutdown");
        stream.read_to_end(&mut Vec::new()).expect("answers");
    }
    let report = handle.stop().expect("stop");
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!(report.counters.mysql.rows_loaded, 1);
    assert_eq!(report.counters.postgres.rows_loaded, 1);
}
