//! PostgreSQL sessions against servers in the middle and servers that flood.

use dyno_core::{Cause, DbError, Driver};
use dyno_drivers::TargetUrl;
use dyno_drivers::postgres::PostgresDriver;
use dyno_reactor::block_on;
use dyno_testkit::{ELSEWHERE, is_in_own_network};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server for one log-in without TLS: after the startup message it says `requests`, each when the one before has been
/// answered. It ends with all that the client sent after its startup message.
struct Hostile {
    url: String,
    thread: JoinHandle<Vec<u8>>,
}

impl Hostile {
    fn at(address: IpAddr, query: &str, requests: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let place = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut received = Vec::new();
            let mut piece = vec![0; 64 << 10];
            let _ = peer.read(&mut piece);
            for request in requests {
                // The client may have left.
                let _ = peer.write_all(&request);
                let count = peer.read(&mut piece).unwrap_or(0);
                received.extend_from_slice(&piece[..count]);
            }
            received
        });
        let url =
            format!("postgres://me:s3cr3t@{place}/d?sslmode=disable&connect_timeout_s=10{query}");
        Hostile { url, thread }
    }

    fn on_loopback(requests: Vec<Vec<u8>>) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), "", requests)
    }

    /// The client's error, and what it sent.
    fn log_in(self) -> (DbError, Vec<u8>) {
        let target: TargetUrl = self.url.parse().unwrap();
        let result = block_on(async { PostgresDriver::new(&target)?.connect(0).await.map(drop) });
        (result.unwrap().unwrap_err(), self.thread.join().unwrap())
    }
}

/// A message of PostgreSQL.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn error_message(length: usize) -> Vec<u8> {
    let text = vec![b'x'; length];
    message(b'E', &[b"SFATAL\0VFATAL\0C28000\0M", &text[..], b"\0\0"].concat())
}

#[test]
fn clear_text_goes_only_where_nobody_listens() {
    if !is_in_own_network("clear_text_goes_only_where_nobody_listens") {
        return;
    }
    let request = vec![message(b'R', &[0, 0, 0, 3]), error_message(3)];
    let password = message(b'p', b"s3cr3t\0");
    let (_, received) = Hostile::on_loopback(request.clone()).log_in();
    assert_eq!(received, password);
    let (error, received) = Hostile::at(ELSEWHERE, "", request.clone()).log_in();
    assert_eq!(received, b"");
    assert_eq!(error.cause(), Cause::Rejected, "{error}");
    assert!(error.message().contains(&ELSEWHERE.to_string()), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("allow_cleartext=true")), "{error:?}");
    let (_, received) = Hostile::at(ELSEWHERE, "&allow_cleartext=true", request).log_in();
    assert_eq!(received, password);
}

#[test]
fn texts_of_a_server_are_bounded_before_and_after_the_log_in() {
    // Longer than a message may be before the log-in.
    let (error, _) = Hostile::on_loopback(vec![error_message(1 << 20)]).log_in();
    assert!(error.message().len() < 500, "{}", error.message().len());
    assert!(error.message().contains("beyond the limit of 65536 bytes"), "{error}");
    let (error, _) = Hostile::on_loopback(vec![error_message(60_000)]).log_in();
    assert_eq!((error.cause(), error.message().len()), (Cause::Rejected, 4 << 10));
}

/// The client's error at a server that asks for this many iterations of SCRAM and leaves, and what it has answered.
fn asks_for(iterations: u32) -> (DbError, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut piece = [0; 4096];
        let _ = peer.read(&mut piece);
        peer.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")).unwrap();
        let count = peer.read(&mut piece).unwrap();
        let first = String::from_utf8_lossy(&piece[..count]).into_owned();
        let nonce = first.rsplit_once("r=").unwrap().1.to_owned();
        let answer = format!("\0\0\0\x0br={nonce}more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i={iterations}");
        peer.write_all(&message(b'R', answer.as_bytes())).unwrap();
        let count = peer.read(&mut piece).unwrap_or(0);
        String::from_utf8_lossy(&piece[..count]).into_owned()
    });
    let target: TargetUrl =
        format!("postgres://me:s3cr3t@127.0.0.1:{port}/d?sslmode=disable").parse().unwrap();
    let result = block_on(async { PostgresDriver::new(&target)?.connect(0).await.map(drop) });
    (result.unwrap().unwrap_err(), server.join().unwrap())
}

#[test]
fn many_scram_iterations_are_computed_and_millions_refused() {
    for computed in [4_096, 20_001, 100_000] {
        let (error, received) = asks_for(computed);
        assert!(received.contains(",p="), "{computed}: {received}");
        assert!(error.message().contains("ended the connection"), "{error}");
    }
    for refused in [100_001, 10_000_000] {
        let (error, received) = asks_for(refused);
        assert!(error.message().contains("SCRAM iterations"), "{error}");
        assert_eq!(received, "", "no proof was sent");
    }
}
