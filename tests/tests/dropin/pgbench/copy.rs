//! `-i` on servers that do not take the rows: nothing that was not stored is called done.

use super::support::{assert_same, finish, ours};
use dyno_testkit::Scratch;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

pub(super) fn complete(tag: &str) -> Vec<u8> {
    [message(b'C', format!("{tag}\0").as_bytes()), message(b'Z', b"I")].concat()
}

/// A PostgreSQL that answers all statements as if they were done, but COPY with `answer`; then it hears the rows, if it
/// asks for them, and claims `taken`.
fn serve(answer: Vec<u8>, taken: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // The client may leave at any time.
            std::thread::spawn(move || converse(stream, &answer, taken));
        }
    });
    port
}

/// Lets a client in.
pub(super) fn greet(stream: &mut TcpStream, heard: &mut [u8]) -> std::io::Result<()> {
    // A request for TLS or GSSAPI is refused; what follows is the start-up.
    while stream.read(heard)? == 8 {
        stream.write_all(b"N")?;
    }
    stream.write_all(&message(b'R', &[0; 4]))?;
    stream.write_all(&message(b'S', b"server_version\x0015.3\0"))?;
    stream.write_all(&message(b'Z', b"I"))
}

fn converse(mut stream: TcpStream, answer: &[u8], taken: &str) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    greet(&mut stream, &mut buffer)?;
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        if !buffer[..count].starts_with(b"Q") {
            continue;
        }
        if !buffer[5..count].starts_with(b"copy") {
            stream.write_all(&complete("SELECT 0"))?;
            continue;
        }
        stream.write_all(answer)?;
        if answer[0] == b'G' {
            let mut end = Vec::new();
            while !end.ends_with(b"c\0\0\0\x04") {
                let count = stream.read(&mut buffer)?;
                end.extend_from_slice(&buffer[..count]);
                end.drain(..end.len().saturating_sub(5));
            }
            stream.write_all(&complete(taken))?;
        }
    }
}

#[test]
fn a_server_that_does_not_enter_copy_ends_it_in_the_originals_words() {
    let row = b"\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    let rows = [message(b'T', row), message(b'D', b"\0\x01\0\0\0\x01x"), complete("SELECT 1")];
    let words = "pgbench: error: unexpected copy in result: ";
    // What the server said follows: libpq has kept nothing of it.
    let cut_after_words = |text: &str| match text.split_once(words) {
        Some((before, _)) => format!("{before}{words}"),
        None => text.to_owned(),
    };
    for answer in [complete("SELECT 0"), rows.concat()] {
        let folder = Scratch::new();
        let port = serve(answer, "").to_string();
        let line = ["-i", "-h", "127.0.0.1", "-p", &port, "-U", "u", "d"];
        let output = finish(&mut ours(folder.path(), &line));
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stderr.contains(words), "{output}");
        assert!(output.stderr.contains("did not ask for the rows"), "{output}");
        assert!(!output.stderr.contains("done in"), "{output}");
        assert_same(folder.path(), &line, cut_after_words, |_| {});
    }
}

#[test]
fn a_server_that_takes_fewer_rows_than_were_sent_has_failed() {
    let folder = Scratch::new();
    let port = serve(message(b'G', b"\0\0\0"), "COPY 5").to_string();
    let line = ["-i", "-h", "127.0.0.1", "-p", &port, "-U", "u", "d"];
    let output = finish(&mut ours(folder.path(), &line));
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("took 5 of 100000 rows"), "{output}");
    assert!(!output.stderr.contains("done in"), "{output}");
}
