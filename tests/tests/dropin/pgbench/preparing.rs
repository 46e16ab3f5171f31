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
    let prepare_count = Arc::new(AtomicU32::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let prepare_count = Arc::clone(&prepare_count);
            // The client may leave at any time.
            std::thread::spawn(move || converse(stream, &prepare_count, fields, ends));
        }
    });
    port
}

fn converse(
    mut stream: TcpStream,
    prepare_count: &AtomicU32,
    fields: &[u8],
    ends: bool,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    greet(&mut stream, &mut buffer)?;
    let mut refuses = None;
    loop {
        let count = stream.read(&mut buffer)?;
        let answer = match buffer[..count].first() {
            None => return Ok(()),
            Some(b'P') => {
                let count_prepare = || prepare_count.fetch_add(1, Ordering::Relaxed);
                let refuses = *refuses.get_or_insert_with(|| count_prepare() == 0);
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
        let output = finish(&mut ours(folder.path(), &[&run[..], &to[..]].concat()));
        assert_eq!(output.code, 2, "{output}");
        let aborted = format!(" script 0 aborted in command 0 query 0: {words}");
        assert_eq!(output.stderr.matches(&aborted).count(), 1, "{output}");
        assert_eq!(output.stderr.matches(" aborted in ").count(), 1, "{output}");
        let is_reported = output.stderr.contains("pgbench: error: ERROR:  not here\n");
        assert_eq!(is_reported, !ends, "{output}");
        let processed = "number of transactions actually processed: 3/6\n";
        assert!(output.stdout.contains(processed), "{output}");
    }
}
