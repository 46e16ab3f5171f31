//! The way into a real PostgreSQL: passwords, TLS, hosts, and the messages when it is barred.

use dyno_core::{
    AnswerTable, Cause, DbError, DbResult, Discard, Driver, Executed, Param, ParamType, Session,
    Statement,
};
use dyno_drivers::TargetUrl;
use dyno_drivers::postgres::{PostgresDriver, PostgresSession};
use dyno_reactor::{block_on, run_all};
use dyno_testkit::{Postgres, Scratch, Transcript, free_port, skipped};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const HBA: &str = "
local     all all                          trust
host      all postgres       127.0.0.1/32  trust
host      all scram          127.0.0.1/32  scram-sha-256
host      all hashed         127.0.0.1/32  md5
host      all plain          127.0.0.1/32  password
hostssl   all only_tls       127.0.0.1/32  trust
hostnossl all without_tls    127.0.0.1/32  trust
host      all lonely         127.0.0.1/32  trust
host      all reader         127.0.0.1/32  trust
";

const ROLES: &str = "
SET password_encryption = 'scram-sha-256';
CREATE ROLE scram LOGIN PASSWORD 'sécret & 100%';
CREATE ROLE plain LOGIN PASSWORD 'plain';
SET password_encryption = 'md5';
CREATE ROLE hashed LOGIN PASSWORD 'hash''ed';
CREATE ROLE only_tls LOGIN; CREATE ROLE without_tls LOGIN; CREATE ROLE outsider LOGIN;
CREATE ROLE lonely LOGIN CONNECTION LIMIT 1;
CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on;
";

/// Runs openssl; false when it is missing or fails.
fn openssl(folder: &Path, arguments: &str) -> bool {
    let result =
        Command::new("openssl").current_dir(folder).args(arguments.split_whitespace()).output();
    result.is_ok_and(|output| output.status.success())
}

/// A CA and a certificate for `localhost`, which the server's user can read.
fn certificates(folder: &Path) -> bool {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost").unwrap();
    let are_made = [
        format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=test-ca -days 2"),
        format!("req -x509 {key} -keyout other.key -out other.pem -subj /CN=other-ca -days 2"),
        format!("req {key} -keyout server.key -out server.csr -subj /CN=localhost"),
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem \
         -days 2 -extfile names"
            .to_owned(),
    ]
    .iter()
    .all(|arguments| openssl(folder, arguments));
    if !are_made {
        return false;
    }
    let key = folder.join("server.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    // As root the server runs as no one, who must own the key.
    let _ = chown(&key, Some(65_534), Some(65_534));
    true
}

/// Starts a server with users of each method of log-in.
fn start(files: &Path, tls: bool) -> Result<Postgres, String> {
    std::fs::write(files.join("hba"), HBA).unwrap();
    let files = files.display();
    let settings = [
        "fsync=off".to_owned(),
        format!("ssl={}", if tls { "on" } else { "off" }),
        format!("ssl_cert_file={files}/server.pem"),
        format!("ssl_key_file={files}/server.key"),
        format!("hba_file={files}/hba"),
    ];
    let options: Vec<&str> = settings.iter().flat_map(|text| ["-c", text.as_str()]).collect();
    let server = Postgres::start_with(&options)?;
    server.sql(ROLES)?;
    Ok(server)
}

fn connect(url: &str) -> Result<PostgresSession, DbError> {
    block_on(async { PostgresDriver::new(&url.parse::<TargetUrl>().unwrap())?.connect(0).await })
        .unwrap()
}

/// Logs in and says who and how; the session must stay on its loop.
fn login(url: &str) -> Result<(String, bool), DbError> {
    block_on(async {
        let driver = PostgresDriver::new(&url.parse::<TargetUrl>().unwrap())?;
        let mut session = driver.connect(0).await?;
        let mut answer = AnswerTable::default();
        let sql = "SELECT current_user || ' ' || ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        session.query(sql, &mut answer).await?;
        let (who, is_tls) =
            (answer.single().unwrap().to_owned(), session.proof().unwrap().tls.is_some());
        session.close().await;
        Ok((who, is_tls))
    })
    .unwrap()
}

/// Checks that a log-in fails with this SQLSTATE and these words.
fn rejected(url: &str, sqlstate: &str, words: &str) {
    let error = login(url).expect_err(url);
    assert!(matches!(error.cause(), Cause::Rejected | Cause::Tls), "{url}: {error}");
    assert_eq!(error.sqlstate(), sqlstate, "{url}: {error}");
    assert!(error.message().contains(words), "{url}: {error}");
    assert!(error.hint().is_some(), "{url}: {error} has no hint");
    assert!(!format!("{error:?}").contains("s3cr3t"), "{error:?}");
}

#[test]
fn log_in() {
    let files = Scratch::new();
    if !certificates(files.path()) {
        return skipped("log_in", "openssl can't make certificates");
    }
    let server = match start(files.path(), true) {
        Ok(server) => server,
        Err(why) => return skipped("log_in", &why),
    };
    passwords(&server);
    wanted_servers(server.port);
    sslmodes(&server, files.path());
    proofs(&server, files.path());
    refusals(&server);
    hosts_rotate(&server);
}

fn passwords(server: &Postgres) {
    for tls in ["disable", "require"] {
        for (user, password) in
            [("scram", "s%C3%A9cret%20%26%20100%25"), ("hashed", "hash%27ed"), ("plain", "plain")]
        {
            let place = format!("127.0.0.1:{}/sbtest?sslmode={tls}", server.port);
            let (who, is_tls) = login(&format!("postgres://{user}:{password}@{place}")).unwrap();
            assert_eq!((who, is_tls), (format!("{user} {}", tls == "require"), tls == "require"));
            let wrong = format!("postgres://{user}:s3cr3t@{place}");
            rejected(&wrong, "28P01", "password authentication failed");
            let without = format!("postgres://{user}@{place}");
            rejected(&without, "28P01", "none is given");
            let hint = login(&without).unwrap_err().hint().unwrap_or_default().to_owned();
            assert!(hint.starts_with("give it in PGPASSWORD, "), "{hint}");
        }
    }
}

/// Item 1: channel binding, wanted methods, and what a session says that was proven.
fn proofs(server: &Postgres, files: &Path) {
    let ca = files.join("ca.pem").display().to_string();
    let scram = "scram:s%C3%A9cret%20%26%20100%25";
    let url = |user: &str, host: &str, query: &str| {
        format!("postgres://{user}@{host}:{}/sbtest?{query}", server.port)
    };
    let verified = format!("sslmode=verify-full&sslrootcert={ca}&channel_binding=require");
    for (user, host, query, tls, method) in [
        (scram, "127.0.0.1", "sslmode=disable", None, "scram-sha-256"),
        (scram, "127.0.0.1", "sslmode=require", Some(false), "scram-sha-256-plus"),
        (scram, "127.0.0.1", "channel_binding=require", Some(false), "scram-sha-256-plus"),
        (scram, "127.0.0.1", "channel_binding=disable", Some(false), "scram-sha-256"),
        (scram, "localhost", &verified, Some(true), "scram-sha-256-plus"),
        ("hashed:hash%27ed", "127.0.0.1", "require_auth=md5", Some(false), "md5"),
        ("plain:plain", "127.0.0.1", "require_auth=!md5&sslmode=disable", None, "password"),
        ("postgres", "127.0.0.1", "require_auth=none", Some(false), "none"),
    ] {
        let proof = block_on(async {
            let target: TargetUrl = url(user, host, query).parse().unwrap();
            let session = PostgresDriver::new(&target)?.connect(0).await?;
            DbResult::Ok(session.proof().unwrap())
        });
        let proof = proof.unwrap().unwrap();
        assert_eq!((proof.tls.map(|tls| tls.is_verified), proof.method), (tls, method), "{query}");
        assert!(proof.tls.is_none_or(|tls| tls.version == "TLS 1.3"), "{proof:?}");
    }
    let assert_rejected =
        |user, query, words| rejected(&url(user, "127.0.0.1", query), "08004", words);
    assert_rejected(scram, "sslmode=disable&channel_binding=require", "without channel binding");
    assert_rejected("postgres", "channel_binding=require", "without channel binding");
    assert_rejected(scram, "require_auth=md5,password", "excludes");
    assert_rejected("plain:plain", "require_auth=scram-sha-256", "excludes");
    assert_rejected("postgres", "require_auth=!none", "excludes");
}

fn sslmodes(server: &Postgres, files: &Path) {
    let url = |user: &str, host: &str, mode: &str, ca: &str| {
        let ca = match ca {
            "" => String::new(),
            ca => format!("&sslrootcert={}", files.join(ca).display()),
        };
        format!("postgres://{user}@{host}:{}/sbtest?sslmode={mode}{ca}", server.port)
    };
    for (user, mode, encrypted) in [
        ("postgres", "disable", false),
        ("postgres", "allow", false),
        ("postgres", "prefer", true),
        ("postgres", "require", true),
        ("only_tls", "allow", true),
        ("only_tls", "prefer", true),
        ("without_tls", "allow", false),
        ("without_tls", "prefer", false),
    ] {
        let (who, is_tls) = login(&url(user, "127.0.0.1", mode, "")).unwrap();
        assert_eq!((who, is_tls), (format!("{user} {encrypted}"), encrypted), "{user} {mode}");
    }
    rejected(&url("only_tls", "127.0.0.1", "disable", ""), "28000", "no encryption");
    rejected(&url("without_tls", "127.0.0.1", "require", ""), "28000", "pg_hba.conf");

    assert!(login(&url("postgres", "localhost", "verify-full", "ca.pem")).unwrap().1);
    assert!(login(&url("postgres", "127.0.0.1", "verify-ca", "ca.pem")).unwrap().1);
    assert!(login(&url("postgres", "127.0.0.1", "require", "ca.pem")).unwrap().1);
    rejected(&url("postgres", "127.0.0.1", "verify-full", "ca.pem"), "08001", "certificate");
    for mode in ["require", "verify-ca", "verify-full"] {
        rejected(&url("postgres", "localhost", mode, "other.pem"), "08001", "certificate");
    }
    let missing = login(&url("postgres", "localhost", "verify-ca", "missing.pem")).unwrap_err();
    assert!(missing.message().contains("missing.pem"), "{missing}");

    // libpq never encrypts a unix socket, whatever is requested.
    let (who, is_tls) = login(&format!("{}&sslmode=require", server.socket_url())).unwrap();
    assert_eq!((who.as_str(), is_tls), ("postgres false", false));
}

fn refusals(server: &Postgres) {
    let place = format!("127.0.0.1:{}", server.port);
    rejected(
        &format!("postgres://postgres@{place}/nowhere"),
        "3D000",
        "\"nowhere\" does not exist",
    );
    rejected(&format!("postgres://outsider@{place}/sbtest"), "28000", "pg_hba.conf");
    rejected(
        &format!("postgres://nobody@{place}/sbtest?host={}", server.socket_folder.display()),
        "28000",
        "does not exist",
    );
    let options = "options=-c%20no_such_setting%3D1";
    rejected(&format!("postgres://postgres@{place}/sbtest?{options}"), "42704", "no_such_setting");

    let url = format!("postgres://lonely@{place}/sbtest");
    block_on(async {
        let driver = PostgresDriver::new(&url.parse::<TargetUrl>().unwrap()).unwrap();
        let _first = driver.connect(0).await.unwrap();
        let full = driver.connect(1).await.unwrap_err();
        assert_eq!((full.cause(), full.sqlstate()), (Cause::Rejected, "53300"), "{full}");
        assert!(full.hint().unwrap().contains("max_connections"));
    })
    .unwrap();

    let (free, folder) = (free_port(), server.socket_folder.display());
    for url in [
        format!("postgres://postgres@127.0.0.1:{free}/sbtest"),
        format!("postgres://postgres@:{free}/sbtest?host={folder}"),
    ] {
        let error = login(&url).unwrap_err();
        assert_eq!(error.cause(), Cause::Unreachable, "{error}");
        assert!(error.hint().is_some() && error.to_string().contains(&free.to_string()), "{error}");
    }
}

fn hosts_rotate(server: &Postgres) {
    let (port, folder) = (server.port, server.socket_folder.display());
    let url = format!(
        "postgres://postgres@127.0.0.1:{port},localhost:{port}/sbtest?options=-c%20work_mem%3D7MB\
         &set.statement_timeout=1234&sslmode=disable"
    );
    let driver = PostgresDriver::new(&url.parse::<TargetUrl>().unwrap()).unwrap();
    let tasks = (0..4).map(|number| {
        let driver = &driver;
        async move {
            let mut session = driver.connect(number).await.unwrap();
            let mut answer = AnswerTable::default();
            let sql = "SELECT current_setting('work_mem') || current_setting('statement_timeout')";
            session.query(sql, &mut answer).await.unwrap();
            answer.single().unwrap().to_owned()
        }
    });
    assert_eq!(run_all(tasks).unwrap(), ["7MB1234ms"; 4]);
    // Every second connection meets the dead host.
    let url = format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{}/sbtest", free_port());
    let driver = PostgresDriver::new(&url.parse::<TargetUrl>().unwrap()).unwrap();
    let tasks = (0..4).map(|number| {
        let driver = &driver;
        async move { driver.connect(number).await.is_ok() }
    });
    assert_eq!(run_all(tasks).unwrap(), [true, false, true, false], "{folder}");
}

#[test]
fn a_server_without_tls() {
    let files = Scratch::new();
    let server = match start(files.path(), false) {
        Ok(server) => server,
        Err(why) => return skipped("a_server_without_tls", &why),
    };
    let url =
        |mode: &str| format!("postgres://postgres@127.0.0.1:{}/sbtest?sslmode={mode}", server.port);
    for mode in ["disable", "allow", "prefer"] {
        assert!(!login(&url(mode)).unwrap().1);
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        rejected(&url(mode), "08001", "does not offer TLS");
    }
}

/// The peer is not PostgreSQL: it says something else, or hangs up, or says nothing.
#[test]
fn other_servers() {
    let answers: [(&[u8], &str); 5] = [
        (b"", "before the log-in was complete"),
        (b"J\0\0\0\x0a5.7.1\0rest", "broke the PostgreSQL protocol"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "broke the PostgreSQL protocol"),
        (b"R\0\0\0\x08\0\0\0\x0cR\0\0\0\x08\0\0\0\0", "impossible turn"),
        (b"Z\0\0\0\x05I", "no place here"),
    ];
    for (answer, words) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut peer, _) = listener.accept().unwrap();
            let _ = peer.read(&mut [0; 1000]);
            let _ = peer.write_all(answer);
        });
        let url =
            format!("postgres://a:s3cr3t@127.0.0.1:{port}/b?sslmode=disable&connect_timeout_s=5");
        let error = connect(&url).err().unwrap();
        assert!(error.message().contains(words), "{error}");
        assert!(error.hint().is_some() && error.is_fatal(), "{error}");
        server.join().unwrap();
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let error =
        connect(&format!("postgres://a@127.0.0.1:{port}/b?connect_timeout_s=1")).err().unwrap();
    assert!(error.message().contains("did not answer"), "{error}");
}

/// A message of a server.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// The answers of the server of [`byte_by_byte`], one each time when it has been sent something.
fn answers() -> [Vec<u8>; 10] {
    let ready = message(b'Z', b"I");
    let row = message(b'D', b"\0\x01\0\0\0\x04\0\0\x01\0");
    let (bound, done) = (message(b'2', b""), message(b'C', b"SELECT 1\0"));
    let error = message(b'E', b"SERROR\0VERROR\0C40001\0Magain\0\0");
    let column = b"\0\x01id\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let answer = [&bound[..], &row, &done, &ready].concat();
    [
        [
            message(b'v', b"\0\x03\0\0\0\0\0\x01_pq_.unknown\0"),
            message(b'R', &[0; 4]),
            message(b'S', b"server_version\x0099.1\0"),
            message(b'K', &[7; 36]),
            ready.clone(),
        ]
        .concat(),
        [
            message(b'1', b""),
            message(b't', b"\0\x01\0\0\0\x14"),
            message(b'T', column),
            ready.clone(),
        ]
        .concat(),
        answer.clone(),
        answer.clone(),
        answer.clone(),
        [&bound[..], &message(b'N', b"SNOTICE\0VNOTICE\0C00000\0Mlook\0\0"), &row, &done, &ready]
            .concat(),
        [&error[..], &ready].concat(),
        [&bound[..], &row, &done, &error, &ready].concat(),
        [
            &[&bound[..], &error, &ready, &message(b'1', b""), &bound].concat(),
            &message(b'T', b"\0\x01name\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"),
            &message(b'D', b"\0\x01\0\0\0\x01x"),
            &[&done[..], &ready, &bound, &row, &done, &ready].concat()[..],
        ]
        .concat(),
        [&ready[..], &ready].concat(),
    ]
}

/// A host that does not fit is passed over, and so is one that can't be reached, unless anyone will do.
fn wanted_servers(port: u16) {
    let closed = free_port();
    for (user, wanted, objection) in [
        ("postgres", "any", None),
        ("postgres", "read-write", None),
        ("postgres", "primary", None),
        ("reader", "read-only", None),
        ("reader", "primary", None),
        ("postgres", "prefer-standby", None),
        ("reader", "read-write", Some("session is read-only")),
        ("postgres", "read-only", Some("session is not read-only")),
        ("postgres", "standby", Some("server is not in hot standby mode")),
    ] {
        let query = format!("sslmode=disable&target_session_attrs={wanted}");
        let url = format!("postgres://{user}@127.0.0.1:{port}/sbtest?{query}");
        let Some(objection) = objection else {
            assert_eq!(login(&url).unwrap().0, format!("{user} false"), "{wanted}");
            let two =
                format!("postgres://{user}@127.0.0.1:{closed},127.0.0.1:{port}/sbtest?{query}");
            assert_eq!(login(&two).is_err(), wanted == "any", "{wanted}");
            continue;
        };
        rejected(&url, "08001", objection);
    }
}

/// A server of a newer protocol whose every byte arrives alone.
#[test]
fn byte_by_byte() {
    let answers = answers();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_nodelay(true).unwrap();
        for answer in answers {
            assert!(peer.read(&mut [0; 1000]).unwrap() > 0);
            for byte in answer {
                // The client hangs up as soon as it has seen what is wrong with the last answer.
                if peer.write_all(&[byte]).is_err() {
                    return;
                }
            }
        }
    });
    block_on(async {
        let url = format!("postgres://a@127.0.0.1:{port}/b?sslmode=disable");
        let driver = PostgresDriver::new(&url.parse::<TargetUrl>().unwrap()).unwrap();
        let mut session = driver.connect(0).await.unwrap();
        assert_eq!(session.product().version, "99.1");
        let select = session.prepare("SELECT $1", &[ParamType::Int]).await.unwrap();
        let expected = Ok(Executed { has_rows: true, rows: 1, affected: 0 });
        let mut rows = AnswerTable::default();
        assert_eq!(session.execute(select, &[Param::Int(1)], &mut rows).await, expected);
        assert_eq!(rows.single(), Some("256"));
        assert_eq!(session.execute(select, &[Param::Int(1)], &mut Discard).await, expected);
        // Sent and read by the shorter way, if one byte can be; and with a notice and another answer behind it.
        assert_eq!(session.execute_short(select, &[Param::Int(1)], &mut Discard).await, expected);
        assert_eq!(session.execute_short(select, &[Param::Int(1)], &mut Discard).await, expected);
        assert_eq!(session.take_notice_lines().len(), 1);
        let error =
            session.execute_short(select, &[Param::Int(1)], &mut Discard).await.unwrap_err();
        assert_eq!((error.sqlstate(), error.is_fatal()), ("40001", false));
        session.queue(select, &[Param::Int(1)]).unwrap();
        session.queue(select, &[Param::Int(2)]).unwrap();
        let mut results = Vec::new();
        session.flush(&mut Discard, &mut results).await.unwrap();
        assert_eq!(results[0], expected);
        assert_eq!(results[1].as_ref().unwrap_err().sqlstate(), "40001");
        assert_eq!(results.len(), 2);

        flight_of_three_parts(&mut session, select).await;
        // Ready without an answer.
        let error = session.execute(select, &[Param::Int(1)], &mut Discard).await.unwrap_err();
        assert!(error.is_fatal() && error.message().contains("was not answered"), "{error}");
    })
    .unwrap();
    server.join().unwrap();
}

/// The first part fails at its first statement.
async fn flight_of_three_parts(session: &mut PostgresSession, select: Statement) {
    let expected = Ok(Executed { has_rows: true, rows: 1, affected: 0 });
    let mut results = Vec::new();
    session.queue(select, &[Param::Int(1)]).unwrap();
    session.queue(select, &[Param::Int(2)]).unwrap();
    session.queue_sync().unwrap();
    session.queue_once("SELECT name FROM x", &[]).unwrap();
    session.queue_sync().unwrap();
    session.queue(select, &[Param::Int(3)]).unwrap();
    let mut transcript = Transcript::default();
    session.flush(&mut transcript, &mut results).await.unwrap();
    assert_eq!(results[0].as_ref().unwrap_err().sqlstate(), "40001");
    assert!(results[1].as_ref().unwrap_err().message().contains("not executed"));
    assert_eq!(results[2..], [expected.clone(), expected]);
    let first_part = ["columns id", "columns name", "row x", "done 1 rows"];
    assert_eq!(transcript.0[..4], first_part);
    assert_eq!(transcript.0[4..], ["columns id", "row 256", "done 1 rows"]);
}
