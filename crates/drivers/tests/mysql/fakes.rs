//! MySQL sessions against servers made for the test: methods of authentication that MariaDB does
//! not have, and servers that misbehave.

use crate::fake::{Client, Fake, OK, PASSWORD, RsaKey, SCRAMBLE, SSL, caching_sha2};
use dyno_core::{
    AnswerTable, BulkMethod, Cause, DbError, Discard, Driver, ErrorClass, Param, ParamType,
    RowSource, RowWriter, Session, Statement,
};
use dyno_drivers::mysql::{MysqlDriver, MysqlSession};
use dyno_testkit::{Certificates, allocations, skipped, target};

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    dyno_reactor::block_on(future).unwrap()
}

pub(crate) async fn connect(url: &str) -> Result<MysqlSession, DbError> {
    MysqlDriver::new(&target(url))?.connect(0).await
}

pub(crate) const FULL_PATH: &[u8] = &[1, 4];

/// Logs in at a fake server and asks for one answer, to see that both sides are in step.
pub(crate) fn log_in(fake: Fake, options: &str) {
    let url = fake.url(options);
    run(async {
        let mut session = connect(&url).await.unwrap();
        assert_eq!(session.query("DO 1", &mut Discard).await.unwrap().affected, 7);
        session.close().await;
    });
    fake.join();
}

pub(crate) fn answer_and_leave(client: &mut Client) {
    client.send(OK);
    client.expect_command(b"\x03DO 1");
    client.send(b"\0\x07\0\x02\0\0\0");
    client.expect_command(b"\x01");
}

#[test]
fn caching_sha2_fast_path() {
    log_in(
        Fake::tcp(|client| {
            let login = client.greet("caching_sha2_password");
            assert_eq!(login.response, caching_sha2(PASSWORD, SCRAMBLE));
            assert_eq!((login.user.as_str(), login.database.as_str()), ("me", "db"));
            assert_eq!(login.plugin, "caching_sha2_password");
            client.send(&[1, 3]);
            answer_and_leave(client);
        }),
        "",
    );
}

#[test]
fn the_log_in_says_whether_a_backslash_begins_an_escape() {
    let fake = Fake::tcp(|client| {
        client.greet("caching_sha2_password");
        client.send(&[1, 3]);
        // NO_BACKSLASH_ESCAPES, alongside autocommit.
        client.send(b"\0\0\0\x02\x02\0\0");
        client.expect_command(b"\x03SELECT '\xe4'");
        client.send(OK);
        client.expect_command(b"\x01");
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        assert!(!session.has_backslash_escapes());
        // Bytes are sent as they are.
        session.query_bytes(b"SELECT '\xe4'", &mut Discard).await.unwrap();
        assert!(session.has_backslash_escapes());
        session.close().await;
    });
    fake.join();
}

#[test]
fn caching_sha2_full_path_in_clear_on_a_unix_socket() {
    log_in(
        Fake::unix(|client| {
            client.greet("caching_sha2_password");
            client.send(FULL_PATH);
            assert_eq!(client.read(), [PASSWORD, b"\0"].concat());
            answer_and_leave(client);
        }),
        "",
    );
}

#[test]
fn caching_sha2_full_path_in_clear_over_tls() {
    let certificates = match Certificates::make() {
        Ok(certificates) => certificates,
        Err(why) => return skipped("caching_sha2_full_path_in_clear_over_tls", &why),
    };
    let ca = certificates.ca();
    log_in(
        Fake::tcp(move |client| {
            client.start_tls(&certificates, "caching_sha2_password");
            let login = client.read_login();
            assert_eq!(login.response, caching_sha2(PASSWORD, SCRAMBLE));
            client.send(FULL_PATH);
            assert_eq!(client.read(), [PASSWORD, b"\0"].concat());
            answer_and_leave(client);
        }),
        &format!("?tls=verify-full&ca={ca}"),
    );
}

#[test]
fn passwords_are_encrypted_for_the_server_s_rsa_key() {
    let key = match RsaKey::make() {
        Ok(key) => key,
        Err(why) => return skipped("passwords_are_encrypted_for_the_server_s_rsa_key", &why),
    };
    let key = std::sync::Arc::new(key);
    let server_key = key.clone();
    log_in(
        Fake::tcp(move |client| {
            client.greet("caching_sha2_password");
            client.send(FULL_PATH);
            assert_eq!(client.read(), [2]);
            client.send(&[b"\x01", server_key.public_pem()].concat());
            assert_eq!(server_key.decrypt(&client.read()), [PASSWORD, b"\0"].concat());
            answer_and_leave(client);
        }),
        "",
    );
    log_in(
        Fake::tcp(move |client| {
            client.greet("mysql_native_password");
            client.send(&[b"\xfesha256_password\0", SCRAMBLE, b"\0"].concat());
            assert_eq!(client.read(), [1]);
            client.send(&[b"\x01", key.public_pem()].concat());
            assert_eq!(key.decrypt(&client.read()), [PASSWORD, b"\0"].concat());
            answer_and_leave(client);
        }),
        "",
    );
}

#[test]
fn sha256_in_clear_on_a_unix_socket_after_a_switch() {
    log_in(
        Fake::unix(|client| {
            client.greet("caching_sha2_password");
            client.send(&[b"\xfesha256_password\0", SCRAMBLE, b"\0"].concat());
            assert_eq!(client.read(), [PASSWORD, b"\0"].concat());
            answer_and_leave(client);
        }),
        "",
    );
}

#[test]
fn a_method_of_before_4_1_is_not_answered() {
    for request in [&b"\xfemysql_old_password\0"[..], b"\xfe"] {
        let fake = Fake::tcp(move |client| {
            client.greet("caching_sha2_password");
            client.send(request);
            assert_eq!(client.read_to_end(), b"");
        });
        let error = run(connect(&fake.url(""))).unwrap_err();
        assert_eq!(error.cause(), Cause::Rejected, "{error}");
        assert!(error.hint().unwrap().contains("caching_sha2_password"));
        fake.join();
    }
}

#[test]
fn a_server_that_asks_for_a_file_gets_none() {
    let fake = Fake::tcp(|client| {
        client.greet("caching_sha2_password");
        client.send(OK);
        client.expect_command(b"\x03SELECT 1");
        client.send(b"\xfb/etc/passwd");
        assert_eq!(client.read(), b"");
        client.send(OK);
        client.expect_command(b"\x03DO 1");
        client.send(b"\xfb/etc/passwd");
        assert_eq!(client.read(), b"");
        client.send(b"\xfb/etc/shadow");
        assert_eq!(client.read_to_end(), b"");
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        let error = session.query("SELECT 1", &mut AnswerTable::default()).await.unwrap_err();
        let codes = (error.cause(), error.errno(), error.sqlstate(), error.is_fatal());
        assert_eq!(codes, (Cause::Server, 2068, "HY000", false));
        assert!(error.message().contains("/etc/passwd"), "{error}");
        assert!(error.hint().unwrap().contains("trust"));
        // The connection lives; who asks again and again is left.
        let error = session.query("DO 1", &mut Discard).await.unwrap_err();
        assert_eq!((error.errno(), error.is_fatal()), (2068, true));
    });
    fake.join();
}

/// Data sent after the first execution were taken for the file.
#[test]
fn a_file_that_is_asked_for_within_a_flight_ends_the_session() {
    let fake = Fake::tcp(|client| {
        client.greet("caching_sha2_password");
        client.send(OK);
        client.expect_command(b"\x16DO 1");
        client.send(b"\0\x07\0\0\0\0\0\0\0\0\0\0");
        client.read_command();
        client.send(b"\xfb/etc/passwd");
        assert_eq!(client.read(), b"");
        client.send(OK);
        client.read_command();
        client.read_command();
        client.send(b"\xfb/etc/passwd");
        assert_eq!(client.read(), b"");
        client.send(OK);
        client.read_to_end();
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        let statement = session.prepare("DO 1", &[]).await.unwrap();
        let mut answers = Vec::new();
        // Behind the last one nothing has been sent.
        session.queue(statement, &[]).unwrap();
        session.flush(&mut Discard, &mut answers).await.unwrap();
        let error = answers.pop().unwrap().unwrap_err();
        assert_eq!((error.errno(), error.is_fatal(), answers.len()), (2068, false, 0));
        session.queue(statement, &[]).unwrap();
        session.queue(statement, &[]).unwrap();
        let error = session.flush(&mut Discard, &mut answers).await.unwrap_err();
        assert_eq!((error.errno(), error.is_fatal(), answers.len()), (2068, true, 0));
        assert!(session.query("DO 1", &mut Discard).await.unwrap_err().is_fatal());
    });
    fake.join();
}

#[test]
fn a_load_sends_its_rows_for_its_own_file_only() {
    let fake = Fake::tcp(|client| {
        client.greet("caching_sha2_password");
        client.send(OK);
        client.expect_command(b"\x03START TRANSACTION");
        client.send(OK);
        client.answer_packet_limit();
        assert!(client.read_command().starts_with(b"\x03LOAD DATA LOCAL INFILE 'dyno'"));
        client.send(b"\xfb/home/me/.ssh/id_rsa");
        assert_eq!(client.read(), b"");
        client.send(OK);
        assert_eq!(client.read_to_end(), b"");
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        let error = session.bulk_load("t", &["a"], &mut Three(0)).await.unwrap_err();
        assert_eq!((error.errno(), error.is_fatal()), (2068, true));
    });
    fake.join();
}

/// Three rows, and then none.
struct Three(i64);

impl RowSource for Three {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        if self.0 == 3 {
            return false;
        }
        self.0 += 1;
        out.int(self.0);
        true
    }

    fn restart(&mut self) {
        self.0 = 0;
    }
}

#[test]
fn without_the_capability_rows_are_inserted() {
    let fake = Fake::tcp(|client| {
        const LOCAL_FILES: u64 = 1 << 7;
        client.capabilities &= !LOCAL_FILES;
        client.greet("caching_sha2_password");
        client.send(OK);
        client.expect_command(b"\x03START TRANSACTION");
        client.send(OK);
        client.answer_packet_limit();
        client.expect_command(b"\x03INSERT INTO t (a) VALUES (1),(2),(3)");
        client.send(b"\0\x03\0\x02\0\0\0");
        client.expect_command(b"\x03COMMIT");
        client.send(OK);
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        let report = session.bulk_load("t", &["a"], &mut Three(0)).await.unwrap();
        assert_eq!((report.rows, report.method), (3, BulkMethod::MultiRowInsert));
        assert_eq!(report.fallback.unwrap().refusal, None);
    });
    fake.join();
}

#[test]
fn what_is_no_mysql_server_is_said_to_be_none() {
    for words in [&b"SSH-2.0-OpenSSH_9.2p1\r\n"[..], b"\x05\0\0\0\x09old\0", b""] {
        let fake = Fake::tcp(move |client| client.send_raw(words));
        let error = run(connect(&fake.url("?connect_timeout_s=2"))).unwrap_err();
        assert_eq!(error.cause(), Cause::Unreachable, "{error}");
        assert!(error.hint().is_some() && error.message().contains("127.0.0.1"), "{error}");
        fake.join();
    }
}

#[test]
fn tls_does_not_begin_with_bytes_sent_before_it() {
    let fake = Fake::tcp(|client| {
        client.capabilities |= SSL;
        client.send_greeting_and("caching_sha2_password", b"\x01\0\0\x02\0");
        client.read_to_end();
    });
    let error = run(connect(&fake.url("?tls=require"))).unwrap_err();
    assert!(error.message().contains("before the TLS handshake"), "{error}");
    fake.join();
}

#[test]
fn tls_that_is_asked_for_and_not_offered_is_an_error() {
    let fake = Fake::tcp(|client| {
        client.send_greeting_and("caching_sha2_password", b"");
        assert_eq!(client.read_to_end(), b"");
    });
    let error = run(connect(&fake.url("?tls=require"))).unwrap_err();
    assert_eq!(error.cause(), Cause::Tls);
    assert!(error.message().contains("does not offer TLS"), "{error}");
    fake.join();
}

#[test]
fn an_answer_cut_short_is_a_lost_connection() {
    for cut in [&b""[..], b"\x01\0\0", b"\x01\0\0\x01\x01", b"\x30\0\0\x01\0"] {
        let fake = Fake::tcp(move |client| {
            client.greet("caching_sha2_password");
            client.send(OK);
            client.expect_command(b"\x03DO 1");
            client.send_raw(cut);
        });
        let url = fake.url("");
        run(async {
            let mut session = connect(&url).await.unwrap();
            let error = session.query("DO 1", &mut Discard).await.unwrap_err();
            assert_eq!((error.class(), error.cause()), (ErrorClass::ConnectionLost, Cause::Lost));
            let before = allocations();
            assert!(session.query("DO 1", &mut Discard).await.unwrap_err().is_fatal());
            assert!(allocations() > before, "the counter of allocations counts");
            assert!(session.queue(Statement(0), &[]).is_err());
        });
        fake.join();
    }
}

#[test]
fn a_server_that_ends_the_session_is_quoted_whatever_is_sent_next() {
    for is_local in [false, true] {
        for next in ["query", "prepare", "execute", "flush", "load"] {
            let fake =
                if is_local { Fake::unix(prepare_and_leave) } else { Fake::tcp(prepare_and_leave) };
            let url = fake.url("");
            run(async {
                let mut session = connect(&url).await.unwrap();
                let statement = session.prepare("DO 1", &[]).await.unwrap();
                // It has gone when this returns.
                fake.join();
                let error = match next {
                    "query" => session.query("DO 1", &mut Discard).await.map(drop),
                    "prepare" => session.prepare("DO 2", &[]).await.map(drop),
                    "execute" => {
                        session.execute_short(statement, &[], &mut Discard).await.map(drop)
                    }
                    "load" => session.bulk_load("t", &["a"], &mut Three(0)).await.map(drop),
                    _ => {
                        session.queue(statement, &[]).unwrap();
                        session.flush(&mut Discard, &mut Vec::new()).await
                    }
                };
                let error = error.unwrap_err();
                assert_eq!((error.errno(), error.is_fatal()), (4031, true), "{next}: {error}");
                assert!(error.message().contains("inactivity"), "{next}: {error}");
            });
        }
    }
}

/// Prepares one statement and ends the session.
fn prepare_and_leave(client: &mut Client) {
    client.greet("caching_sha2_password");
    client.send(OK);
    client.expect_command(b"\x16DO 1");
    client.send(b"\0\x07\0\0\0\0\0\0\0\0\0\0");
    client.send_farewell();
}

/// Both ways of an execution that is only counted: types go again after an error, and whoever leaves is noticed.
#[test]
fn counted_executions_are_answered_at_once_in_pieces_with_errors_and_not_at_all() {
    let fake = Fake::tcp(|client| {
        client.greet("caching_sha2_password");
        client.send(OK);
        client.expect_command(b"\x16SELECT ?");
        client.send(b"\0\x07\0\0\0\x01\0\x01\0\0\0\0");
        let column = b"\x03def\0\0\0\x01x\0\x0c\x2d\0\xff\0\0\0\x08\0\0\0\0\0";
        client.send(column);
        client.send(column);
        // The flag says whether types follow.
        for (piece, types) in [(200, true), (3, false)] {
            assert_eq!(client.read_command()[11], u8::from(types));
            let mut packets = Vec::new();
            for payload in [&b"\x01"[..], column, b"\0\0\x2a\0\0\0\0\0\0\0", b"\xfe\0\0\x03\0\0\0"]
            {
                packets.extend(client.packet(payload));
            }
            packets.chunks(piece).for_each(|piece| client.send_raw(piece));
        }
        assert_ne!(client.read_command()[11], 1);
        client.send(b"\xff\xbd\x04#40001again");
        assert_eq!(client.read_command()[11], 1);
        client.send(b"\0\x05\0\x02\0\0\0");
        assert_ne!(client.read_command()[11], 1);
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        let select = session.prepare("SELECT ?", &[ParamType::Int]).await.unwrap();
        let params = [Param::Int(1)];
        for _ in 0..2 {
            let executed = session.execute_short(select, &params, &mut Discard).await.unwrap();
            assert_eq!((executed.has_rows, executed.rows, executed.affected), (true, 1, 0));
            assert!(session.is_in_transaction());
        }
        let error = session.execute_short(select, &params, &mut Discard).await.unwrap_err();
        assert_eq!((error.errno(), error.is_fatal()), (1213, false));
        assert_eq!(session.execute_short(select, &params, &mut Discard).await.unwrap().affected, 5);
        assert!(!session.is_in_transaction());
        assert!(session.execute_short(select, &params, &mut Discard).await.unwrap_err().is_fatal());
        assert!(session.rollback().await.unwrap_err().is_fatal());
    });
    fake.join();
}

/// An execution that no one waits for to its end, as with a limit of time: its answer must not be taken for another's.
#[test]
fn a_counted_execution_that_is_given_up_ends_the_session() {
    let fake = Fake::tcp(|client| {
        client.greet("caching_sha2_password");
        client.send(OK);
        client.expect_command(b"\x16DO 1");
        client.send(b"\0\x07\0\0\0\0\0\0\0\0\0\0");
        client.read_to_end();
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        let statement = session.prepare("DO 1", &[]).await.unwrap();
        let deadline = dyno_reactor::now() + dyno_core::MILLISECOND;
        assert!(
            dyno_reactor::timeout(deadline, session.execute_short(statement, &[], &mut Discard))
                .await
                .is_err()
        );
        let error = session.execute_short(statement, &[], &mut Discard).await.unwrap_err();
        assert!(error.is_fatal() && error.errno() == 2006, "{error}");
    });
    fake.join();
}

#[test]
fn without_deprecate_eof_the_older_form_is_understood() {
    let fake = Fake::tcp(|client| {
        const DEPRECATE_EOF: u64 = 1 << 24;
        client.capabilities &= !DEPRECATE_EOF;
        client.greet("caching_sha2_password");
        client.send(OK);
        client.expect_command(b"\x16SELECT 1");
        client.send(b"\0\x07\0\0\0\x01\0\0\0\0\0\0");
        let column = b"\x03def\0\0\0\x01x\0\x0c\x2d\0\xff\0\0\0\x08\0\0\0\0\0";
        client.send(column);
        client.send(b"\xfe\0\0\x02\0");
        for _ in 0..2 {
            assert_eq!(client.read_command()[..5], *b"\x17\x07\0\0\0");
            client.send(&[1]);
            client.send(column);
            client.send(b"\xfe\0\0\x02\0");
            client.send(b"\0\0\x2a\0\0\0\0\0\0\0");
            client.send(b"\xfe\0\0\x02\0");
        }
        client.expect_command(b"\x19\x07\0\0\0");
    });
    let url = fake.url("");
    run(async {
        let mut session = connect(&url).await.unwrap();
        let select = session.prepare("SELECT 1", &[]).await.unwrap();
        let mut table = AnswerTable::default();
        session.execute(select, &[], &mut table).await.unwrap();
        assert_eq!(table.single(), Some("42"));
        assert_eq!(session.execute(select, &[], &mut Discard).await.unwrap().rows, 1);
        session.forget(select).await.unwrap();
        assert!(session.forget(select).await.is_err());
    });
    fake.join();
}
