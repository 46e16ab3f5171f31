//! `-C -M prepared` on a server that does not prepare everything: it ends the client that asked, and no other one.

use super::copy::{complete, greet, message};
use super::support::{finish, ours};
use dyno_testkit::Scratch;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A PostgreSQL that refuses to prepare with these fields, in the first session that asks for it. If that `ends` the
/// session, it closes the connection.
fn serve(fields: &'static [u8], ends: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let asked = Arc::new(AtomicU32::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = Arc::clone(&asked);
            // The client may leave at any time.
            std::thread::spawn(move || converse(stream, &asked, fields, ends));
        }
    });
    port
}

fn converse(
    mut stream: TcpStream,
    asked: &AtomicU32,
    fields: &[u8],
    ends: bool,
) -> std::io::Result<()> {
    let mut heard = vec![0; 64 << 10];
    greet(&mut stream, &mut heard)?;
    let mut refuses = None;
    loop {
        let count = stream.read(&mut heard)?;
        let answer = match heard[..count].first() {
            None => return Ok(()),
            Some(b'P') => {
                let number = || asked.fetch_add(1, Ordering::Relaxed);
                let refuses = *refuses.get_or_insert_with(|| number() == 0);
                let prepared = [message(b'1', b""), message(b't', &[0; 2]), message(b'n', b"")];
                let answer = if refuses { message(b'E', fields) } else { prepared.concat() };
                if refuses && ends {
                    return stream.write_all(&answer);
                }
                [answer, message(b'Z', b"I")].concat()
            }
            Some(b'B') => [message(b'2', b""), complete("SET")].concat(),
            Some(b'Q') => complete("SET"),
            Some(_) => continue,
        };
        stream.write_all(&answer)?;
    }
}

#[test]
fn a_session_that_can_not_prepare_ends_its_client_only() {
    for (fields, ends, words) in [
        (
            &b"SERROR\0VERROR\0C42P01\0Mnot here\0\0"[..],
            false,
            "ERROR:  prepared statement \"P_0\" does not exist\n",
        ),
        (&b"SFATAL\0VFATAL\0C57P01\0Mgo away\0\0"[..], true, "FATAL:  go away\n"),
    ] {
        let folder = Scratch::new();
        std::fs::write(folder.file("set.sql"), "SET a.b = 1;\n").expect("a file");
        let port = serve(fields, ends).to_string();
        let run = ["-n", "-C", "-M", "prepared", "-c", "2", "-t", "3", "-f", "set.sql"];
        let to = ["-h", "127.0.0.1", "-p", &port, "-U", "u", "d"];
        let ran = finish(&mut ours(folder.path(), &[&run[..], &to[..]].concat()));
        assert_eq!(ran.code, 2, "{}", ran.all());
        let aborted = format!(" script 0 aborted in command 0 query 0: {words}");
        assert_eq!(ran.stderr.matches(&aborted).count(), 1, "{}", ran.all());
        assert_eq!(ran.stderr.matches(" aborted in ").count(), 1, "{}", ran.all());
        let is_reported = ran.stderr.contains("pgbench: error: ERROR:  not here\n");
        assert_eq!(is_reported, !ends, "{}", ran.all());
        let processed = "number of transactions actually processed: 3/6\n";
        assert!(ran.stdout.contains(processed), "{}", ran.all());
    }
}
