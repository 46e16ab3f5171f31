//! Servers that take connections and say nothing, or take the log-in and answer no question, or each one without end:
//! each verb ends with an error that names the server, and a signal ends it at once.

use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, dyno_command, server_or_skip,
};
use rustix::process::Signal;
use std::io::{Read, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// More than the ten seconds that are promised, for machines that are busy.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

/// Time limits of a second, or of an hour.
const SHORT: &str = "1";
const LONG: &str = "3600";

/// Logs everybody in as a PostgreSQL does.
pub(crate) fn log_in_to_postgres(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    // A request for TLS is refused; what follows is the start-up.
    if stream.read(&mut buffer)? == 8 {
        stream.write_all(b"N")?;
        let _ = stream.read(&mut buffer)?;
    }
    stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")
}

/// Logs everybody in as a MySQL without TLS does.
pub(crate) fn log_in_to_mysql(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut greeting = b"\x0a8.0.36\0\x01\0\0\0abcdefgh\0".to_vec();
    // CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS and SECURE_CONNECTION; LONG_PASSWORD marks MySQL.
    greeting.extend_from_slice(&0xa209_u16.to_le_bytes());
    greeting.extend_from_slice(&[45, 2, 0]);
    // MULTI_RESULTS, PS_MULTI_RESULTS, PLUGIN_AUTH, CONNECT_ATTRS, PLUGIN_AUTH_LENENC and DEPRECATE_EOF.
    greeting.extend_from_slice(&0x013e_u16.to_le_bytes());
    greeting.push(21);
    greeting.extend_from_slice(&[0; 10]);
    greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    let mut packet = (greeting.len() as u32).to_le_bytes().to_vec();
    packet.extend_from_slice(&greeting);
    stream.write_all(&packet)?;
    let _ = stream.read(&mut [0; 1024])?;
    stream.write_all(b"\x07\0\0\x02\0\0\0\x02\0\0\0")
}

/// Takes log-ins, and does with each connection what is said here.
fn server(scheme: &str, serve: impl Fn(TcpStream) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let log_in: fn(&mut TcpStream) -> std::io::Result<()> = match scheme {
        "mysql" => log_in_to_mysql,
        _ => log_in_to_postgres,
    };
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || {
                if log_in(&mut stream).is_ok() {
                    serve(stream);
                }
            });
        }
    });
    port
}

/// Answers nothing until the client has left.
fn hears(mut stream: TcpStream) {
    while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
}

/// Takes log-ins, and is silent from then on.
pub(crate) fn mute_server(scheme: &str) -> u16 {
    server(scheme, hears)
}

/// A message of PostgreSQL.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// A packet of MySQL.
fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[number], payload].concat()
}

/// Takes log-ins, and answers any question by rows without end.
fn flooding_server(scheme: &str) -> u16 {
    let value = [b'x'; 1000];
    let (head, rows) = if scheme == "mysql" {
        let column = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
        let row = [&b"\xfc\xe8\x03"[..], &value].concat();
        let rows: Vec<u8> = (0..=255_u8).flat_map(|n| packet(n.wrapping_add(3), &row)).collect();
        ([packet(1, &[1]), packet(2, column)].concat(), rows)
    } else {
        let column = b"\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let row = [&b"\0\x01\0\0\x03\xe8"[..], &value].concat();
        (message(b'T', column), message(b'D', &row).repeat(256))
    };
    server(scheme, move |mut stream| {
        let has_request = stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0);
        if has_request && stream.write_all(&head).is_ok() {
            while stream.write_all(&rows).is_ok() {}
        }
    })
}

/// The verbs on a server of this port, with time limits of so many seconds.
fn verbs(scheme: &str, port: u16, limit_s: &str) -> Vec<Vec<String>> {
    let url = format!("{scheme}://u@127.0.0.1:{port}/d?connect_timeout_s={limit_s}");
    let driver = if scheme == "mysql" { "mysql" } else { "pgsql" };
    let sysbench_line = |command: &str| {
        format!(
            "sysbench --db-driver={driver} --{driver}-host=127.0.0.1 --{driver}-port={port} \
             --{driver}-user=u --thread-init-timeout={limit_s} oltp_read_write {command}"
        )
    };
    let mut lines = vec![
        sysbench_line("prepare"),
        sysbench_line("run"),
        sysbench_line("cleanup"),
        format!("pgbench -i --target {url}"),
        format!("check {url}"),
        format!("bench {url} --yes"),
    ];
    if scheme == "postgres" {
        // Without a time limit, as libpq has none.
        lines.push(format!("pgbench -i -h 127.0.0.1 -p {port} -U u d"));
    }
    let words = |line: String| line.split_whitespace().map(str::to_owned).collect();
    lines.into_iter().map(words).collect()
}

fn command(folder: &Scratch, words: &[String], patience_s: &str) -> Command {
    let mut command = dyno_command(folder.path());
    command.env("DYNO_LOAD_PATIENCE_S", patience_s).env_remove("PGCONNECT_TIMEOUT").args(words);
    command
}

/// Each verb fails in time, with an error that has all these words.
fn fails_with(
    verbs: Vec<Vec<String>>,
    patience_s: &'static str,
    expected: impl Fn(&[String]) -> Vec<String>,
) {
    // At the same time: they only wait.
    let verbs: Vec<_> = verbs
        .into_iter()
        .map(|words| {
            std::thread::spawn(move || {
                let folder = Scratch::new();
                let output =
                    RunningDyno::spawn(folder.path(), command(&folder, &words, patience_s)).end();
                (words, output)
            })
        })
        .collect();
    for verb in verbs {
        let (words, output) = verb.join().expect("it ends");
        assert!(output.code > 0, "{words:?}: {output}");
        for part in expected(&words) {
            let texts = format!("{}{}", output.stdout, output.stderr);
            assert!(texts.contains(&part), "{words:?} does not say `{part}`: {output}");
        }
    }
}

#[test]
fn a_server_that_never_answers_is_named_by_each_verb() {
    for scheme in ["mysql", "postgres"] {
        // No one takes the connections, which the kernel has accepted.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        fails_with(verbs(scheme, port, SHORT), SHORT, |words| {
            let has_word = |word: &str| words.iter().any(|other| other == word);
            let limit = if has_word("run") {
                "within 1 seconds (--thread-init-timeout)"
            } else if has_word("-h") {
                "did not answer within 2 s"
            } else {
                "did not answer within 1.0 seconds"
            };
            vec![format!("127.0.0.1:{port}"), limit.to_owned()]
        });
    }
}

#[test]
fn a_server_that_logs_in_and_says_nothing_is_named_by_each_verb() {
    for scheme in ["mysql", "postgres"] {
        let port = mute_server(scheme);
        let is_run = |words: &[String]| words.iter().any(|word| word == "run");
        fails_with(verbs(scheme, port, SHORT), SHORT, |words| match words[0].as_str() {
            _ if is_run(words) => vec![
                format!("127.0.0.1:{port}"),
                "within 1 seconds (--thread-init-timeout)".to_owned(),
            ],
            "check" | "bench" => vec![format!(
                "The server at 127.0.0.1:{port} takes the log-in, and answers no question within 1 s"
            )],
            _ => vec![
                format!("the server at 127.0.0.1:{port} does not answer a new connection"),
                "made no progress for ".to_owned(),
                " s: session 0: ".to_owned(),
                "(it waits 2 s for such a node)".to_owned(),
            ],
        });
    }
}

#[test]
fn a_server_that_answers_without_end_is_named_by_each_verb() {
    for scheme in ["mysql", "postgres"] {
        let port = flooding_server(scheme);
        fails_with(verbs(scheme, port, LONG), LONG, |_| {
            let server = format!("The answer of the server at 127.0.0.1:{port} to `");
            vec![server, "` is larger than 32 MiB".to_owned()]
        });
    }
}

#[test]
fn int_ends_a_question_that_is_never_answered_with_130() {
    for scheme in ["mysql", "postgres"] {
        let (tells, is_told) = mpsc::channel();
        let port = server(scheme, move |stream| {
            let _ = tells.send(());
            hears(stream);
        });
        for words in verbs(scheme, port, LONG) {
            let is_load = words[..2] == ["pgbench", "-i"];
            if !is_load && words[0] != "check" {
                continue;
            }
            let folder = Scratch::new();
            let mut running = RunningDyno::spawn(folder.path(), command(&folder, &words, LONG));
            // The first step of a load has its own session.
            for _ in 0..1 + u32::from(is_load) {
                is_told.recv_timeout(ENDED_WITHIN).expect("dyno logs in");
            }
            let signaled_at = Instant::now();
            running.signal(Signal::INT);
            let output = running.end();
            assert_eq!(output.code, 130, "{words:?}: {output}");
            assert!(signaled_at.elapsed() < ENDED_WITHIN, "{words:?}: {:?}", signaled_at.elapsed());
            while is_told.try_recv().is_ok() {}
        }
    }
}

#[test]
fn term_ends_each_verb_on_a_server_that_never_answers() {
    for scheme in ["mysql", "postgres"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        for words in verbs(scheme, port, LONG) {
            let folder = Scratch::new();
            let mut running = RunningDyno::spawn(folder.path(), command(&folder, &words, LONG));
            let _taken = listener.accept().expect("dyno connects");
            std::thread::sleep(Duration::from_millis(100));
            let signaled_at = Instant::now();
            running.signal(Signal::TERM);
            let ProcessOutput { code, .. } = running.end();
            assert_ne!(code, 0, "{words:?}");
            let elapsed = signaled_at.elapsed();
            assert!(elapsed < ENDED_WITHIN, "{words:?} ended after {elapsed:?}");
        }
    }
}

/// `dyno bench` on a server that falls silent while its user reads the question.
fn bench_on_a_server_that_falls_silent(url: &str, process: u32) {
    let scratch = Scratch::new();
    let (answers, mut user) = pipe().expect("a pipe");
    let mut command = dyno_command(scratch.path());
    command.env("DYNO_LOAD_PATIENCE_S", SHORT).args(["bench", url]).stdin(answers);
    let mut running = RunningDyno::spawn(scratch.path(), command);
    running.wait_until("the question", |running| running.stderr().contains("Begin?"));
    let frozen = super::stops::Frozen::new(process);
    writeln!(user, "y").expect("it reads");
    let output = running.end();
    drop(frozen);
    assert_eq!(output.code, 1, "{output}");
    let error = output.stderr.lines().find(|line| line.contains("error: ")).unwrap_or_default();
    assert!(error.contains("he server at 127.0.0.1:"), "{output}");
    assert!(error.contains("does not answer a new connection"), "{output}");
}

#[test]
fn a_mariadb_that_falls_silent_ends_bench_before_it_has_begun() {
    let test = "a_mariadb_that_falls_silent_ends_bench_before_it_has_begun";
    let server = server_or_skip!(MariaDb, test);
    bench_on_a_server_that_falls_silent(&server.url(), server.server.process().expect("it runs"));
}

#[test]
fn a_postgres_that_falls_silent_ends_bench_before_it_has_begun() {
    let test = "a_postgres_that_falls_silent_ends_bench_before_it_has_begun";
    let server = server_or_skip!(Postgres, test);
    bench_on_a_server_that_falls_silent(&server.url(), server.server.process().expect("it runs"));
}
