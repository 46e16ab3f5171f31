//! Servers that flood, stall, lie, or say things in the wrong order, in both protocols. Each case has a limit of time
//! and of memory, and is played on epoll and on io_uring.

use dyno_core::{
    AnswerTable, DbResult, Discard, Driver, Nanos, RowSource, RowWriter, SECOND, Session,
};
use dyno_drivers::TargetUrl;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_reactor::{Clock, Io, Loop, now, timeout};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time that a client gets if no end comes.
const LIMIT: Nanos = 150_000_000;
/// The time limit for a client whose server does end, even on a busy machine.
const LONG: Nanos = 60 * SECOND;
/// Additional delay of its return.
const LATE: Duration = Duration::from_secs(20);
/// Memory that it may take above the quiet run.
const MEMORY_BYTES: u64 = 64 << 20;

/// An act of a server. After its last act it listens until the client has left.
enum Act {
    /// Waits for anything.
    Hear,
    Say(Vec<u8>),
    /// Says the same until the client has left.
    Flood(Vec<u8>),
    Leave,
}

use Act::{Flood, Hear, Leave, Say};

struct Case {
    name: &'static str,
    /// Scheme and options.
    url: (&'static str, &'static str),
    acts: Vec<Act>,
    /// Words of how the client's log-in and query end: `elapsed` when its time has, `done`, or `error: ...`.
    end: &'static str,
}

/// Starts a server that does these acts; returns its port.
fn serve(acts: Vec<Act>) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        // For a client that neither answers nor leaves.
        peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        peer.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut buffer = [0; 4096];
        for act in acts {
            let goes_on = match act {
                Hear => peer.read(&mut buffer).is_ok_and(|count| count > 0),
                Say(bytes) => peer.write_all(&bytes).is_ok(),
                Flood(piece) => {
                    let pieces = piece.repeat((64 << 10) / piece.len() + 1);
                    while peer.write_all(&pieces).is_ok() {}
                    false
                }
                Leave => peer.shutdown(Shutdown::Both).is_err(),
            };
            if !goes_on {
                return;
            }
        }
        while peer.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    (port, thread)
}

/// A row of a load.
struct OneRow {
    is_sent: bool,
}

impl RowSource for OneRow {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        if !self.is_sent {
            out.int(1);
        }
        !std::mem::replace(&mut self.is_sent, true)
    }

    fn restart(&mut self) {
        self.is_sent = false;
    }
}

/// Executes the action `name`: a load, a query with a kept answer, or one without.
async fn query<D: Driver>(driver: DbResult<D>, name: &str) -> DbResult<()> {
    let mut session = driver?.connect(0).await?;
    if name.contains("a load") {
        session.bulk_load("t", &[], &mut OneRow { is_sent: false }).await.map(drop)
    } else if name.contains("kept") {
        session.query("SELECT 1", &mut AnswerTable::default()).await.map(drop)
    } else {
        session.query("SELECT 1", &mut Discard).await.map(drop)
    }
}

/// The client's last words.
fn play(io: Io, url: &str, name: &str, limit: Nanos) -> String {
    let task = async {
        let target: TargetUrl = url.parse().unwrap();
        let due = now() + limit;
        let ended = if url.starts_with("mysql") {
            timeout(due, query(MysqlDriver::new(&target), name)).await
        } else {
            timeout(due, query(PostgresDriver::new(&target), name)).await
        };
        match ended {
            Err(_) => "elapsed".to_owned(),
            Ok(Ok(())) => "done".to_owned(),
            Ok(Err(error)) => format!("error: {} {error:?}", error.sqlstate()),
        }
    };
    Loop::new(Clock::Monotonic(io), [task]).unwrap().finish().unwrap().remove(0)
}

/// Memory of this process, of a line of its status.
fn memory_bytes(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    value.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

fn check(case: Case, io: Io) {
    let Case { name, url: (scheme, options), acts, end } = case;
    let (port, server) = serve(acts);
    let url = format!("{scheme}://me:s3cr3t@127.0.0.1:{port}/d?connect_timeout_s=60&{options}");
    // The peak begins again.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (quiet, began) = (memory_bytes("VmRSS:"), Instant::now());
    let limit = if end == "elapsed" { LIMIT } else { LONG };
    let ended = play(io, &url, name, limit);
    let (took, peak) = (began.elapsed(), memory_bytes("VmHWM:"));
    assert!(ended.contains(end), "{name} on {io:?}: {ended}");
    assert!(!ended.contains("s3cr3t") && ended.len() < 16 << 10, "{name} on {io:?}: {ended}");
    assert!(took < Duration::from_nanos(limit) + LATE, "{name} on {io:?} took {took:?}");
    assert!(peak < quiet + MEMORY_BYTES, "{name} on {io:?} took {} KiB", (peak - quiet) >> 10);
    server.join().unwrap();
}

fn io_backends() -> Vec<Io> {
    let mut backends = vec![Io::Epoll];
    match Io::Uring.probe() {
        Ok(()) => backends.push(Io::Uring),
        Err(error) => dyno_testkit::skipped("hostile servers on io_uring", &error.to_string()),
    }
    backends
}

/// The error of a query whose answer is waited for no longer.
async fn given_up<D: Driver>(driver: DbResult<D>, limit: Nanos) -> String {
    let mut session = driver.unwrap().connect(0).await.unwrap();
    let answered = timeout(now() + limit, session.query("SELECT 1", &mut Discard)).await;
    assert!(answered.is_err(), "{answered:?}");
    session.unanswered("SELECT 1", 30 * SECOND).await.to_string()
}

#[test]
fn a_server_that_answers_without_end_is_told_from_a_silent_one() {
    let notice = message(b'N', b"SWARNING\0C01000\0Mx\0\0");
    let silent = "takes the log-in, and answers no question within 30 s.";
    let endless = "answers without end: its answer to `SELECT 1` did not end within 30 s.";
    for io in io_backends() {
        let cases = [
            ("postgres", at_query([]), silent),
            ("postgres", at_query([Flood(notice.clone())]), endless),
            ("mysql", logged_in([]), silent),
            ("mysql", logged_in([Say(one_column()), Flood(round_of_rows(3, b"\x01x"))]), endless),
        ];
        for (scheme, acts, words) in cases {
            let (port, server) = serve(acts);
            let url = format!("{scheme}://me@127.0.0.1:{port}/d?sslmode=disable");
            let task = async {
                let target: TargetUrl = url.parse().unwrap();
                // What is sent without end must have begun to come.
                let limit = if words == silent { LIMIT } else { SECOND };
                match scheme {
                    "mysql" => given_up(MysqlDriver::new(&target), limit).await,
                    _ => given_up(PostgresDriver::new(&target), limit).await,
                }
            };
            let message =
                Loop::new(Clock::Monotonic(io), [task]).unwrap().finish().unwrap().remove(0);
            assert_eq!(message, format!("The server at 127.0.0.1:{port} {words}"), "{io:?}");
            server.join().unwrap();
        }
    }
}

#[test]
fn hostile_servers_cost_neither_time_nor_memory() {
    for io in io_backends() {
        postgres().into_iter().chain(mysql()).for_each(|case| check(case, io));
    }
}

/// A message of PostgreSQL.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// Without TLS: the server hears the start-up message, says `first`, and after the query `then`.
fn at_query(acts: impl IntoIterator<Item = Act>) -> Vec<Act> {
    let welcome = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
    [Hear, Say(welcome), Hear].into_iter().chain(acts).collect()
}

fn at_start(acts: impl IntoIterator<Item = Act>) -> Vec<Act> {
    [Hear].into_iter().chain(acts).collect()
}

const ROW: &[u8] = b"\0\x01\0\0\0\x01x";
const COLUMN: &[u8] = b"\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
const SASL: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256\0\0";
const SASL_PLUS: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";

#[rustfmt::skip]
fn postgres() -> Vec<Case> {
    let names: Vec<u8> =
        (0..2_000).flat_map(|n| message(b'S', format!("n{n}\0v\0").as_bytes())).collect();
    let tls = "sslmode=require";
    let plain = "sslmode=disable";
    let scram = "sslmode=disable&require_auth=scram-sha-256";
    let bound = "sslmode=prefer&channel_binding=require";
    [
        ("no answer to the wish for TLS", tls, at_start([]), "elapsed"),
        ("TLS is hidden", tls, at_start([Say(b"N".to_vec())]), "does not offer TLS"),
        ("bytes before TLS", tls, at_start([Say(b"SE".to_vec())]), "more than one letter"),
        ("garbage for TLS", tls, at_start([Say(b"S".to_vec()), Hear, Say(vec![7; 99])]), "error: "),
        ("no answer within TLS", tls, at_start([Say(b"S".to_vec())]), "elapsed"),
        ("a flood for TLS", tls, at_start([Say(b"S".to_vec()), Flood(vec![0x16, 3, 3, 0, 0])]), "error: "),
        ("an error for TLS", tls, at_start([Say(long_error(1 << 20))]), "beyond the limit"),
        ("no answer to the start", plain, at_start([]), "elapsed"),
        ("half a message", plain, at_start([Say(b"R\0\0\0\x64ab".to_vec())]), "elapsed"),
        ("a message by bytes", plain, at_start([Say(b"R".to_vec()), Hear]), "elapsed"),
        ("a negative length", plain, at_start([Say(b"R\xff\xff\xff\xff".to_vec())]), "impossible length"),
        ("a length of 2 GiB", plain, at_start([Say(b"D\x7f\xff\xff\xff".to_vec())]), "impossible length"),
        ("hang-up", plain, at_start([Leave]), "error: "),
        ("a flood of zeros", plain, at_start([Flood(vec![0])]), "error: "),
        ("a flood of parameters", plain, at_start([Flood(message(b'S', b"a\0b\0"))]), "elapsed"),
        ("a flood of names", plain, at_start([Flood(names.clone())]), "elapsed"),
        ("a flood of notices", plain, at_start([Flood(message(b'N', b"SWARNING\0C01000\0Mx\0\0"))]), "elapsed"),
        ("endless requests", plain, at_start([Flood(message(b'R', b"\0\0\0\x05salt"))]), "elapsed"),
        ("ready too early", plain, at_start([Say(message(b'Z', b"I"))]), "no place"),
        ("a row too early", plain, at_start([Say(message(b'D', ROW))]), "no place"),
        ("SCRAM from its end", plain, at_start([Say(message(b'R', b"\0\0\0\x0cv=x"))]), "impossible turn"),
        ("SCRAM without proof", plain, at_start([Say(message(b'R', SASL)), Hear, Say(message(b'R', &[0; 4]))]), "impossible turn"),
        ("binding without TLS", plain, at_start([Say(message(b'R', SASL_PLUS))]), "channel binding without TLS"),
        ("no method but SCRAM: trust", scram, at_start([Say(message(b'R', &[0; 4]))]), "the method none"),
        ("no method but SCRAM: password", scram, at_start([Say(message(b'R', &[0, 0, 0, 3]))]), "the method password"),
        ("no method but SCRAM: md5", scram, at_start([Say(message(b'R', b"\0\0\0\x05salt"))]), "the method md5"),
        ("a binding is stripped", bound, at_start([Say(b"N".to_vec()), Hear, Say(message(b'R', SASL))]), "without channel binding"),
        ("no answer to a query", plain, at_query([]), "elapsed"),
        ("hang-up in a query", plain, at_query([Say(some_rows(3)), Leave]), "error: "),
        ("a flood of rows", plain, at_query([Say(message(b'T', COLUMN)), Flood(message(b'D', ROW))]), "elapsed"),
        ("a flood of short rows, kept", plain, at_query([Say(message(b'T', COLUMN)), Flood(message(b'D', ROW))]), "to `SELECT 1` is larger than 32 MiB"),
        ("a flood of long rows, kept", plain, at_query([Say(message(b'T', COLUMN)), Flood(message(b'D', &[&b"\0\x01\0\0\x03\xe8"[..], &[b'x'; 1000]].concat()))]), "to `SELECT 1` is larger than 32 MiB"),
        ("a flood of names in a query", plain, at_query([Flood(names)]), "elapsed"),
        ("a flood of ends", plain, at_query([Flood(message(b'C', b"UPDATE 18446744073709551615\0"))]), "elapsed"),
        ("a flood of notifications", plain, at_query([Flood(message(b'A', b"\0\0\0\x01c\0p\0"))]), "elapsed"),
        ("rows without columns, kept", plain, at_query([Say(message(b'D', ROW))]), "without a result set"),
        ("a row with too many columns, kept", plain, at_query([Say(some_rows(0)), Say(message(b'D', b"\0\x02\0\0\0\x01x"))]), "error: "),
        ("a cell beyond its row, kept", plain, at_query([Say(some_rows(0)), Say(message(b'D', b"\0\x01\x7f\0\0\0x"))]), "error: "),
        ("columns that are not there, kept", plain, at_query([Say(message(b'T', b"\x7f\xff"))]), "error: "),
        ("a number of rows that is none", plain, at_query([Say(message(b'C', b"UPDATE 99999999999999999999\0"))]), "impossible number"),
        ("escapes for an SQLSTATE", plain, at_query([Say(message(b'E', b"SERROR\0C\x1b[2J!\0Mx\0\0"))]), "impossible SQLSTATE"),
        ("a huge error", plain, at_query([Say(long_error(20 << 20)), Say(message(b'Z', b"I"))]), "error: "),
        ("a huge row, kept", plain, at_query([Say(message(b'T', COLUMN)), Say([&b"D\x01\x40\0\0"[..], &vec![0; 21 << 20]].concat())]), "error: "),
        ("an unwanted COPY", plain, at_query([Say(message(b'G', b"\0\0\0")), Hear]), "elapsed"),
        ("a load that is not asked for its rows", plain, at_query([Say([message(b'C', b"SELECT 0\0"), message(b'Z', b"I")].concat())]), "did not ask for the rows"),
        ("a load that is answered with rows", plain, at_query([Say([some_rows(3), message(b'C', b"SELECT 3\0"), message(b'Z', b"I")].concat())]), "did not ask for the rows"),
        ("an unknown message", plain, at_query([Say(message(b'?', b""))]), "no place"),
        ("more commands than one", plain, at_query([Say([some_rows(1), message(b'C', b"SELECT 1\0").repeat(9), message(b'Z', b"I")].concat())]), "done"),
    ]
    .map(|(name, options, acts, end)| Case { name, url: ("postgres", options), acts, end })
    .into()
}

fn long_error(length: usize) -> Vec<u8> {
    let text = vec![b'x'; length];
    message(b'E', &[b"SERROR\0C42000\0M", &text[..], b"\0\0"].concat())
}

fn some_rows(count: usize) -> Vec<u8> {
    [message(b'T', COLUMN), message(b'D', ROW).repeat(count)].concat()
}

/// A packet of MySQL.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
    packet[3] = sequence;
    packet.extend_from_slice(payload);
    packet
}

/// The first packet of a server with these capabilities.
fn greeting(flags: u32) -> Vec<u8> {
    let flags = flags.to_le_bytes();
    let payload: [&[u8]; 9] = [
        b"\x0a9.7.0-fake\0\x01\0\0\0abcdefgh\0",
        &flags[..2],
        &[45, 2, 0],
        &flags[2..],
        &[21],
        &[0; 10],
        b"ijklmnopqrst\0",
        b"mysql_native_password",
        b"\0",
    ];
    packet(0, &payload.concat())
}

const NO_TLS: u32 = !(1 << 11);
const OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// Acts after the greeting and the answer of the client.
fn greeted(acts: impl IntoIterator<Item = Act>) -> Vec<Act> {
    [Say(greeting(NO_TLS)), Hear].into_iter().chain(acts).collect()
}

fn logged_in(acts: impl IntoIterator<Item = Act>) -> Vec<Act> {
    greeted([Say(packet(2, OK)), Hear].into_iter().chain(acts))
}

/// The head of a result set of one column.
fn one_column() -> Vec<u8> {
    let definition = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
    [packet(1, &[1]), packet(2, definition)].concat()
}

/// Rows whose numbers continue from `sequence`, as often as the numbers take to come round.
fn round_of_rows(sequence: u8, row: &[u8]) -> Vec<u8> {
    (0..=255_u8).flat_map(|n| packet(sequence.wrapping_add(n), row)).collect()
}

#[rustfmt::skip]
fn mysql() -> Vec<Case> {
    let switches = (0..20).flat_map(|n| {
        let request = b"\xfemysql_native_password\0abcdefghijklmnopqrst\0";
        [Say(packet(2 + 2 * n, request)), Hear]
    });
    let (tls, plain) = ("tls=require", "tls=disable");
    [
        ("no greeting", plain, vec![], "elapsed"),
        ("half a greeting", plain, vec![Say(greeting(NO_TLS)[..30].to_vec())], "elapsed"),
        ("a greeting without an end", plain, vec![Say(packet(0, &[10; 40_000]))], "error: "),
        ("a greeting of 16 MiB", plain, vec![Say(full_packet(0))], "beyond the limit"),
        ("a flood for a greeting", plain, vec![Flood(vec![0])], "error: "),
        ("a refusal with escapes for an SQLSTATE", plain, vec![Say(packet(0, b"\xff\x10\x04#\x1b[2J!no"))], "HY000"),
        ("TLS is hidden", tls, vec![Say(greeting(NO_TLS))], "does not offer TLS"),
        ("bytes before TLS", tls, vec![Say([greeting(!0), vec![1; 9]].concat())], "before the TLS handshake"),
        ("no answer within TLS", tls, vec![Say(greeting(!0)), Hear], "elapsed"),
        ("garbage for TLS", tls, vec![Say(greeting(!0)), Hear, Say(vec![7; 99])], "error: "),
        ("no answer to the log-in", plain, greeted([]), "elapsed"),
        ("an endless log-in", plain, greeted(switches), "does not come to an end"),
        ("numbers out of order", plain, greeted([Say(packet(7, OK))]), "out of order"),
        ("an unknown method", plain, greeted([Say(packet(2, b"\xfe\x1b[2J\0x"))]), "does not speak"),
        ("unrequested data", plain, greeted([Say(packet(2, b"\x01\x04"))]), "unexpected data"),
        ("an answer before the question", plain, greeted([Say([packet(2, OK), packet(1, OK)].concat())]), "after the log-in"),
        ("no answer to a query", plain, logged_in([]), "elapsed"),
        ("hang-up in a query", plain, logged_in([Say(one_column()), Leave]), "error: "),
        ("a flood of rows", plain, logged_in([Say(one_column()), Flood(round_of_rows(3, b"\x01x"))]), "elapsed"),
        ("a flood of short rows, kept", plain, logged_in([Say(one_column()), Flood(round_of_rows(3, b"\x01x"))]), "to `SELECT 1` is larger than 32 MiB"),
        ("a flood of long rows, kept", plain, logged_in([Say(one_column()), Flood(round_of_rows(3, &[&b"\xfc\xe8\x03"[..], &[b'x'; 1000]].concat()))]), "to `SELECT 1` is larger than 32 MiB"),
        ("too many columns", plain, logged_in([Say(packet(1, &[0xfc, 0xff, 0xff]))]), "error: "),
        ("columns that do not come", plain, logged_in([Say(packet(1, &[0xfc, 0, 0x10]))]), "elapsed"),
        ("a column that is none, kept", plain, logged_in([Say(packet(1, &[1])), Say(packet(2, &[9, 9]))]), "error: "),
        ("a cell beyond its row, kept", plain, logged_in([Say(one_column()), Say(packet(3, b"\xfa\xff"))]), "error: "),
        ("an empty packet", plain, logged_in([Say(packet(1, b""))]), "empty packet"),
        ("endless results", plain, logged_in([Flood((1..=255).chain([0]).flat_map(|n| packet(n, b"\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff\0\x0a\0\0\0")).collect())]), "elapsed"),
        ("an answer of 32 MiB", plain, logged_in([Say(full_packet(1)), Say(full_packet(2))]), "longer than a packet"),
        ("a file is requested", plain, logged_in([Say(packet(1, b"\xfb/etc/passwd")), Hear, Say(packet(3, OK))]), "was refused"),
        ("a load that is not asked for its rows", plain, logged_in([Say(packet(1, OK)), Hear, Say(packet(1, OK)), Hear, Say(packet(1, OK))]), "did not ask for the rows"),
        ("a huge error", plain, logged_in([Say(packet(1, &[&b"\xff\x10\x04#42000"[..], &vec![b'x'; 8 << 20]].concat()))]), "error: "),
    ]
    .map(|(name, options, acts, end)| Case { name, url: ("mysql", options), acts, end })
    .into()
}

/// A packet of the maximum length.
fn full_packet(sequence: u8) -> Vec<u8> {
    [&[0xff, 0xff, 0xff, sequence][..], &vec![b'x'; 0xff_ffff]].concat()
}

/// Parts of conversations.
#[rustfmt::skip]
fn vocabulary(is_mysql: bool) -> Vec<Vec<u8>> {
    if is_mysql {
        let payloads = [OK, &[1], b"\x01x", b"\xfe\0\0\x02\0", b"\xff\x10\x04#42000no", b"\xfb/etc/passwd", b"\x01\x04"];
        let numbered = payloads.iter().flat_map(|it| (0..5).map(move |number| packet(number, it)));
        numbered.chain([one_column(), greeting(NO_TLS), greeting(!0)]).collect()
    } else {
        let texts: [(u8, &[u8]); 15] = [
            (b'R', &[0; 4]), (b'R', SASL), (b'R', SASL_PLUS), (b'R', b"\0\0\0\x05salt"), (b'R', b"\0\0\0\x0cv=x"),
            (b'Z', b"I"), (b'T', COLUMN), (b'D', ROW), (b'C', b"INSERT 0 1\0"), (b'E', b"SERROR\0C42000\0Mno\0\0"),
            (b'S', b"a\0b\0"), (b'K', b"\0\0\0\x01\0\0\0\x02"), (b'G', b"\0\0\0"), (b'1', b""), (b'I', b""),
        ];
        texts.map(|(tag, body)| message(tag, body)).into()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Words of the protocol in any order, some with a wrong byte, before and after the log-in.
    #[test]
    fn any_conversation_ends(
        is_mysql in any::<bool>(),
        is_logged_in in any::<bool>(),
        words in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..10_u8), 0..8),
        is_kept in any::<bool>(),
    ) {
        let messages = vocabulary(is_mysql);
        let acts = words.into_iter().map(|(word, at, wrong)| {
            let mut word = word.get(&messages).clone();
            let at = at.index(word.len());
            if wrong < 3 {
                word[at] = word[at].wrapping_add(1 << (wrong * 3));
            }
            Say(word)
        });
        let acts = acts.chain([Leave]);
        let (scheme, conversation) = match (is_mysql, is_logged_in) {
            (true, true) => ("mysql", logged_in(acts)),
            (true, false) => ("mysql", greeted(acts)),
            (false, true) => ("postgres", at_query(acts)),
            (false, false) => ("postgres", at_start(acts)),
        };
        let (port, server) = serve(conversation);
        let url = format!("{scheme}://me:s3cr3t@127.0.0.1:{port}/d?sslmode=disable");
        let ended = play(Io::Epoll, &url, if is_kept { "kept" } else { "" }, LIMIT);
        prop_assert!(!ended.contains("s3cr3t"));
        server.join().unwrap();
    }
}
