//! Loopback tests of the transport against threads with plain blocking sockets.

mod tls;

use super::*;
use dyno_core::{Cause, DbError, MILLISECOND, SECOND};
use dyno_reactor::{block_on, now, run_all};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

/// Starts a server for one connection.
fn listen(serve: impl FnOnce(TcpStream) + Send + 'static) -> (ServerHost, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    (resolved("127.0.0.1", port), thread)
}

/// The host after its name was looked up.
fn resolved(host: &str, port: u16) -> ServerHost {
    let hosts = Hosts(vec![Address::Tcp { host: host.to_owned(), port }]);
    hosts.servers().unwrap().pick(0).clone()
}

/// Sends back what it receives until the end of the stream.
fn echo(mut peer: impl Read + Write) {
    let mut buffer = vec![0; 100_000];
    while let Ok(count @ 1..) = peer.read(&mut buffer) {
        peer.write_all(&buffer[..count]).unwrap();
    }
}

async fn connected(host: &ServerHost) -> Transport {
    Transport::connect(host, now() + 10 * SECOND).await.unwrap()
}

/// Sends `length` bytes in one call and takes the echo back.
async fn round_trip(transport: &mut Transport, inbox: &mut Inbox, length: usize) {
    let pattern: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
    transport.send(&pattern).await.unwrap();
    while inbox.filled().len() < length {
        transport.recv(inbox).await.unwrap();
    }
    assert_eq!(inbox.filled(), pattern);
    inbox.consume(length);
}

#[test]
fn bytes_go_out_and_come_back_over_tcp() {
    let (host, server) = listen(echo);
    block_on(async {
        let mut transport = connected(&host).await;
        assert!(!transport.is_tls() && !transport.is_local());
        let mut inbox = Inbox::new(1 << 20);
        for length in [1, 4096, 4095, 50_000, 100] {
            round_trip(&mut transport, &mut inbox, length).await;
        }
    })
    .unwrap();
    server.join().unwrap();
}

#[test]
fn bytes_go_out_and_come_back_over_a_unix_socket() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("server.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || echo(listener.accept().unwrap().0));
    let hosts = Hosts(vec![Address::Unix(path)]).servers().unwrap();
    block_on(async {
        let mut transport = connected(hosts.pick(3)).await;
        assert!(transport.is_local());
        round_trip(&mut transport, &mut Inbox::new(1 << 20), 20_000).await;
    })
    .unwrap();
    server.join().unwrap();
}

#[test]
fn a_send_larger_than_all_socket_buffers_waits_for_the_peer() {
    const LENGTH: usize = 32 << 20;
    let (host, server) = listen(|mut peer| {
        peer.read_exact(&mut vec![0; LENGTH]).unwrap();
        peer.write_all(b"all").unwrap();
    });
    block_on(async {
        let mut transport = connected(&host).await;
        transport.send(&vec![7; LENGTH]).await.unwrap();
        // Bytes that were taken but not sent yet are dropped with the transport.
        transport.recv(&mut Inbox::new(1 << 20)).await.unwrap();
    })
    .unwrap();
    server.join().unwrap();
}

#[test]
fn last_words_are_read_before_the_end_is_reported() {
    let (host, server) = listen(|mut peer| peer.write_all(b"sorry").unwrap());
    let (words, error) = block_on(async {
        let mut transport = connected(&host).await;
        // Words and end have arrived together when the first receive happens.
        dyno_reactor::sleep_until(now() + 50 * MILLISECOND).await;
        let mut inbox = Inbox::new(1 << 20);
        transport.recv(&mut inbox).await.unwrap();
        let words = inbox.filled().to_vec();
        let end = before(now() + 10 * SECOND, &host.address, transport.recv(&mut inbox)).await;
        (words, end.unwrap_err())
    })
    .unwrap();
    assert_eq!(words, b"sorry");
    assert_eq!(
        (error.cause(), error.message()),
        (Cause::Lost, "The server closed the connection.")
    );
    server.join().unwrap();
}

#[test]
fn writing_to_a_closed_peer_is_an_error_and_no_signal() {
    let (host, server) = listen(drop);
    let error: DbError = block_on(async {
        let mut transport = connected(&host).await;
        loop {
            if let Err(error) = transport.send(&[0; 1000]).await {
                return error;
            }
        }
    })
    .unwrap();
    assert_eq!(error.cause(), Cause::Lost);
    server.join().unwrap();
}

#[test]
fn refused_connections_name_the_address_and_a_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let host = resolved("127.0.0.1", port);
    let error = block_on(Transport::connect(&host, u64::MAX)).unwrap().unwrap_err();
    assert_eq!(error.cause(), Cause::Unreachable);
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(error.message().contains("refused"), "{error}");
    assert!(error.hint().is_some());

    let missing = Hosts(vec![Address::Unix("/nowhere/at/all.sock".into())]).servers().unwrap();
    let error = block_on(Transport::connect(missing.pick(0), u64::MAX)).unwrap().unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all.sock"), "{error}");
    assert!(error.hint().unwrap().contains("no such socket"));
}

#[test]
fn a_silent_server_runs_into_the_time_limit() {
    let (host, server) = listen(|mut peer| {
        let _ = peer.read(&mut [0; 1]);
    });
    let error = block_on(async {
        let mut transport = connected(&host).await;
        let due = now() + 30 * MILLISECOND;
        before(due, &host.address, transport.recv(&mut Inbox::new(1 << 20))).await.unwrap_err()
    })
    .unwrap();
    assert_eq!(error.cause(), Cause::Unreachable);
    assert!(error.message().contains("did not answer"), "{error}");
    server.join().unwrap();
}

#[test]
fn all_addresses_of_a_host_are_tried() {
    // Usually localhost is ::1 first, and no one listens there.
    let (host, server) = listen(echo);
    let Address::Tcp { port, .. } = host.address else { unreachable!() };
    block_on(async {
        let mut transport = connected(&resolved("localhost", port)).await;
        round_trip(&mut transport, &mut Inbox::new(1 << 20), 10).await;
    })
    .unwrap();
    server.join().unwrap();
}

#[test]
fn many_connections_share_a_loop() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let peers: Vec<_> = (0..50)
            .map(|_| listener.accept().unwrap().0)
            .map(|peer| std::thread::spawn(move || echo(peer)))
            .collect();
        peers.into_iter().for_each(|peer| peer.join().unwrap());
    });
    let host = resolved("127.0.0.1", port);
    let tasks = (0..50).map(|task| {
        let host = &host;
        async move {
            let mut transport = connected(host).await;
            let mut inbox = Inbox::new(1 << 20);
            for step in 1..20 {
                round_trip(&mut transport, &mut inbox, task * step + 1).await;
            }
        }
    });
    run_all(tasks).unwrap();
    server.join().unwrap();
}

#[test]
fn hosts_rotate_and_unknown_names_are_explained() {
    let [first, second, unknown] = [("127.0.0.1", 1), ("::1", 2), ("no such host", 1)]
        .map(|(host, port)| Address::Tcp { host: host.to_owned(), port });
    let hosts = Hosts(vec![first, second]).servers().unwrap();
    let picked: Vec<String> = (0..3).map(|n| hosts.pick(n).address.to_string()).collect();
    assert_eq!(picked, ["127.0.0.1:1", "[::1]:2", "127.0.0.1:1"]);
    let unknown = Hosts(vec![unknown]).servers().unwrap();
    let error = unknown.pick(0).sockets().unwrap_err();
    assert!(error.message().contains("no such host"), "{error}");
    assert!(Hosts(Vec::new()).servers().is_err());
}
