//! Streams on epoll and on io_uring: the same promises.

use dyno_core::Nanos;
use dyno_reactor::{
    Clock, Io, Loop, SocketStream, block_in_task, now, sleep_until, timeout, yield_now,
};
use dyno_testkit::skipped;
use proptest::prelude::*;
use std::cell::RefCell;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// The backends of this machine.
fn io_backends() -> Vec<Io> {
    let mut backends = vec![Io::Epoll];
    match Io::Uring.probe() {
        Ok(()) => backends.push(Io::Uring),
        Err(error) => skipped("streams on io_uring", &error.to_string()),
    }
    backends
}

fn run<F: Future>(io: Io, tasks: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    Loop::new(Clock::Monotonic(io), tasks).unwrap().finish().unwrap()
}

fn run_one<F: Future>(io: Io, task: F) -> F::Output {
    run(io, [task]).remove(0)
}

/// A pair of connected sockets; the first one does not block.
fn pair(over_tcp: bool) -> (OwnedFd, OwnedFd) {
    if over_tcp {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.set_nonblocking(true).unwrap();
        client.set_nodelay(true).unwrap();
        (client.into(), server.into())
    } else {
        let (left, right) = UnixStream::pair().unwrap();
        left.set_nonblocking(true).unwrap();
        (left.into(), right.into())
    }
}

async fn send_all(stream: &SocketStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match stream.try_send(bytes).unwrap() {
            Some(count) => bytes = &bytes[count..],
            None => stream.writable().await,
        }
    }
}

/// At most `max_bytes` bytes; none at the end of the stream.
async fn receive(stream: &SocketStream, max_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; max_bytes];
    loop {
        stream.readable().await;
        if let Some(count) = stream.try_recv(&mut bytes).unwrap() {
            bytes.truncate(count);
            return bytes;
        }
    }
}

async fn receive_all(stream: &SocketStream, wanted: usize) -> Vec<u8> {
    let mut received = Vec::new();
    while received.len() < wanted {
        let piece = receive(stream, wanted - received.len()).await;
        if piece.is_empty() {
            break;
        }
        received.extend(piece);
    }
    received
}

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

/// Sends back what it gets until the end.
fn echo(fd: OwnedFd) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        let mut stream = UnixStream::from(fd);
        let (mut buffer, mut total) = (vec![0; 10_000], 0);
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..count]).unwrap();
            total += count;
        }
        total
    })
}

#[test]
fn many_streams_exchange_many_messages() {
    for io in io_backends() {
        let mut echoes = Vec::new();
        let tasks = (0..300).map(|number: usize| {
            let (left, right) = pair(number % 2 == 1);
            echoes.push(echo(right));
            async move {
                let stream = SocketStream::new(left).unwrap();
                for round in 0..200 {
                    let message = numbers((number * 131 + round * 17) % 3_000 + 1);
                    send_all(&stream, &message).await;
                    assert_eq!(receive_all(&stream, message.len()).await, message);
                }
            }
        });
        // More streams than buffers, all at once.
        let tasks: Vec<_> = tasks.collect();
        assert_eq!(run(io, tasks).len(), 300);
        assert!(echoes.into_iter().all(|echo| echo.join().unwrap() > 200));
    }
}

/// Two tasks get a byte each; the second one's comes first.
#[test]
fn a_task_that_blocks_lets_no_other_run_and_loses_no_byte() {
    for io in io_backends() {
        let steps = RefCell::new(Vec::new());
        let (peers, ours): (Vec<_>, Vec<_>) = [pair(false), pair(true)]
            .into_iter()
            .map(|(left, right)| (Some(right), Some(left)))
            .unzip();
        let (peers, ours) = (RefCell::new(peers), RefCell::new(ours));
        let task = async |number: usize| {
            let socket = ours.borrow_mut()[number].take().unwrap();
            let stream = SocketStream::new(socket).unwrap();
            yield_now().await;
            if number == 1 {
                assert_eq!(receive_all(&stream, 2).await, b"22");
                return steps.borrow_mut().push("received");
            }
            let [mut first, mut second] =
                [0, 1].map(|peer| UnixStream::from(peers.borrow_mut()[peer].take().unwrap()));
            second.write_all(b"2").unwrap();
            let sender = thread::spawn(move || {
                thread::sleep(Duration::from_millis(5));
                second.write_all(b"2").unwrap();
                thread::sleep(Duration::from_millis(5));
                first.write_all(b"1").unwrap();
                (first, second)
            });
            let answer = block_in_task(receive_all(&stream, 1), Nanos::MAX).unwrap();
            assert_eq!(answer.as_deref(), Some(&b"1"[..]));
            let soon = now() + 1_000_000;
            assert_eq!(block_in_task(receive_all(&stream, 1), soon).unwrap(), None);
            assert_eq!(block_in_task(sleep_until(soon), Nanos::MAX).unwrap(), Some(()));
            steps.borrow_mut().push("blocked");
            drop(sender.join());
        };
        run(io, [0, 1].map(&task));
        assert_eq!(*steps.borrow(), ["blocked", "received"]);
    }
}

#[test]
fn sends_that_the_peer_does_not_take_wait_and_keep_their_order() {
    const LENGTH: usize = 3 << 20;
    for (io, over_tcp) in io_backends().into_iter().flat_map(|io| [(io, false), (io, true)]) {
        let (left, right) = pair(over_tcp);
        let reader = thread::spawn(move || {
            // The queues of both sides fill up first.
            thread::sleep(std::time::Duration::from_millis(20));
            let (mut peer, mut received) = (UnixStream::from(right), vec![0; LENGTH]);
            peer.read_exact(&mut received).unwrap();
            peer.write_all(b"thanks").unwrap();
            received
        });
        run_one(io, async {
            let stream = SocketStream::new(left).unwrap();
            for part in numbers(LENGTH).chunks(100_000) {
                send_all(&stream, part).await;
            }
            assert_eq!(receive_all(&stream, 6).await, b"thanks");
        });
        assert!(reader.join().unwrap() == numbers(LENGTH), "{io:?} over TCP: {over_tcp}");
    }
}

#[test]
fn a_flood_stops_until_it_is_taken() {
    for io in io_backends() {
        let (left, right) = pair(false);
        let (count_sender, count_receiver) = std::sync::mpsc::channel();
        let flood = thread::spawn(move || {
            let mut peer = UnixStream::from(right);
            let mut sent_bytes = 0;
            for part in numbers(251 * 64).repeat(512).chunks(251 * 64) {
                peer.write_all(part).unwrap();
                sent_bytes += part.len();
                count_sender.send(sent_bytes).unwrap();
            }
            sent_bytes
        });
        run_one(io, async {
            let stream = SocketStream::new(left).unwrap();
            sleep_until(now() + 100_000_000).await;
            let sent_bytes = count_receiver.try_iter().last().unwrap_or(0);
            assert!(sent_bytes < 2 << 20, "{io:?} has taken {sent_bytes} unwanted bytes");
            let length = 251 * 64 * 512;
            let received = receive_all(&stream, length).await;
            assert!(received == numbers(length), "{io:?}: bytes were lost or mixed");
        });
        assert_eq!(flood.join().unwrap(), 251 * 64 * 512);
    }
}

/// Item 4: the peer always has more than the task takes at once.
#[test]
fn a_due_time_is_served_under_a_flood() {
    for io in io_backends() {
        let (left, right) = pair(false);
        let flood = thread::spawn(move || {
            let mut peer = UnixStream::from(right);
            let piece = vec![0; 64 << 10];
            // An end, for a loop that serves no one else until it comes.
            (0..16_384).all(|_| peer.write_all(&piece).is_ok())
        });
        let ended = run_one(io, async {
            let stream = SocketStream::new(left).unwrap();
            let endless = async {
                let mut bytes = [0; 512];
                while std::future::poll_fn(|_| stream.poll_recv(&mut bytes)).await.unwrap() > 0 {}
            };
            timeout(now() + 1_000_000, endless).await
        });
        assert!(ended.is_err(), "{io:?}: the flood came to its end before the due time");
        assert!(!flood.join().unwrap(), "{io:?}: the peer is sending still");
    }
}

#[test]
fn streams_that_take_nothing_keep_no_buffers_from_others() {
    for io in io_backends() {
        run_one(io, async {
            let mut idle = Vec::new();
            for number in 0..300_u32 {
                let (ours, theirs) = pair(false);
                let stream = SocketStream::new(ours).unwrap();
                let mut theirs = UnixStream::from(theirs);
                theirs.write_all(&number.to_le_bytes()).unwrap();
                idle.push((stream, theirs));
            }
            let (ours, theirs) = pair(false);
            let (stream, server) = (SocketStream::new(ours).unwrap(), echo(theirs));
            for round in 0..1_000 {
                let question = numbers(round % 3_000 + 1);
                send_all(&stream, &question).await;
                assert!(receive_all(&stream, question.len()).await == question, "{io:?}, {round}");
            }
            // More arrives before the first is taken.
            for (_, theirs) in &mut idle {
                theirs.write_all(b"more").unwrap();
            }
            for (number, (stream, _)) in (0_u32..).zip(&idle) {
                let expected = [&number.to_le_bytes()[..], b"more"].concat();
                assert_eq!(receive_all(stream, 8).await, expected, "{io:?}");
            }
            drop(stream);
            server.join().unwrap();
        });
    }
}

#[test]
fn exchanged_buffers_are_sent_in_order_with_others() {
    for io in io_backends() {
        run_one(io, async {
            let (ours, theirs) = pair(false);
            let (stream, server) = (SocketStream::new(ours).unwrap(), echo(theirs));
            let mut expected = Vec::new();
            for round in 0..200 {
                let mut bytes = numbers(round * 7 % 900 + 1);
                expected.extend_from_slice(&bytes);
                if round % 3 == 0 || !stream.try_exchange(&mut bytes) {
                    send_all(&stream, &bytes).await;
                }
                if round % 5 == 0 {
                    yield_now().await;
                }
            }
            assert!(receive_all(&stream, expected.len()).await == expected, "{io:?}");
            drop(stream);
            assert_eq!(server.join().unwrap(), expected.len());
        });
    }
}

#[test]
fn the_last_bytes_come_before_the_end_of_the_stream() {
    for (io, over_tcp) in io_backends().into_iter().flat_map(|io| [(io, false), (io, true)]) {
        let (left, right) = pair(over_tcp);
        let mut peer = UnixStream::from(right);
        peer.write_all(b"good-bye").unwrap();
        drop(peer);
        run_one(io, async {
            let stream = SocketStream::new(left).unwrap();
            assert_eq!(receive_all(&stream, 100).await, b"good-bye");
            assert_eq!(receive(&stream, 1).await, b"");
        });
    }
}

#[test]
fn a_stream_that_goes_sends_its_last_words_and_closes_at_once() {
    for io in io_backends() {
        let (left, right) = pair(true);
        let (idle, _kept) = pair(false);
        let peer = thread::spawn(move || {
            let mut received = Vec::new();
            UnixStream::from(right).read_to_end(&mut received).unwrap();
            received
        });
        run_one(io, async {
            let idle = SocketStream::new(idle).unwrap();
            let stream = SocketStream::new(left).unwrap();
            yield_now().await;
            send_all(&stream, b"quit").await;
            drop(stream);
            // The loop continues without it; the peer has its end already.
            while !peer.is_finished() {
                sleep_until(now() + 1_000_000).await;
            }
            drop(idle);
        });
        assert_eq!(peer.join().unwrap(), b"quit");
    }
}

#[test]
fn a_dead_peer_ends_sends_and_receives() {
    for (io, over_tcp) in io_backends().into_iter().flat_map(|io| [(io, false), (io, true)]) {
        let (left, right) = pair(over_tcp);
        drop(right);
        run_one(io, async {
            let stream = SocketStream::new(left).unwrap();
            let mut ends = 0;
            // One of them may come late; both come.
            while ends < 1 {
                if stream.try_send(b"anybody?").is_err() {
                    ends += 1;
                }
                yield_now().await;
            }
            stream.readable().await;
            let end = stream.try_recv(&mut [0; 8]);
            assert!(matches!(end, Ok(Some(0)) | Err(_)), "{io:?}: {end:?}");
        });
    }
}

#[test]
fn an_abandoned_wait_loses_nothing() {
    for io in io_backends() {
        let (left, right) = pair(false);
        let mut peer = UnixStream::from(right);
        run_one(io, async {
            let stream = SocketStream::new(left).unwrap();
            assert!(timeout(now() + 1_000_000, receive(&stream, 9)).await.is_err());
            peer.write_all(b"late").unwrap();
            assert_eq!(receive(&stream, 9).await, b"late");
        });
    }
}

#[test]
fn streams_that_come_and_go_share_nothing() {
    for io in io_backends() {
        run(
            io,
            (0..8).map(|task| async move {
                for round in 0..100_u8 {
                    let (left, right) = pair(false);
                    let mut peer = UnixStream::from(right);
                    let stream = SocketStream::new(left).unwrap();
                    peer.write_all(&[task, round]).unwrap();
                    if round % 3 == 0 {
                        // Leaves with bytes that no one took, in both directions.
                        send_all(&stream, b"unheard").await;
                        continue;
                    }
                    assert_eq!(receive_all(&stream, 2).await, [task, round]);
                }
            }),
        );
    }
}

/// The bytes and the end of what is received then complete together, for a stream whose owner is gone.
#[test]
fn streams_that_go_while_bytes_come_leave_their_place_to_one_other() {
    for io in io_backends() {
        run_one(io, async {
            let (left, right) = pair(false);
            let mut peer = UnixStream::from(right);
            let stream = SocketStream::new(left).unwrap();
            // The kernel knows the stream now.
            sleep_until(now() + 1_000_000).await;
            peer.write_all(b"late").unwrap();
            drop(stream);
            sleep_until(now() + 1_000_000).await;
            let pairs = [pair(false), pair(false)];
            let opened = pairs
                .map(|(left, right)| (SocketStream::new(left).unwrap(), UnixStream::from(right)));
            for (number, (_, peer)) in opened.iter().enumerate() {
                (&*peer).write_all(&[number as u8]).unwrap();
            }
            for (number, (stream, _)) in opened.iter().enumerate() {
                let result = timeout(now() + 1_000_000_000, receive(stream, 9)).await;
                assert_eq!(result.ok(), Some(vec![number as u8]), "{io:?}");
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn bytes_arrive_whole_and_in_order(
        over_tcp: bool,
        sends in prop::collection::vec((1_usize..200_000, any::<bool>()), 1..12),
        reads in prop::collection::vec((1_usize..70_000, any::<bool>()), 1..6),
    ) {
        for io in io_backends() {
            let (left, right) = pair(over_tcp);
            let echo = echo(right);
            let total: usize = sends.iter().map(|(len, _)| len).sum();
            let bytes = numbers(total);
            let received = run_one(io, async {
                let stream = SocketStream::new(left).unwrap();
                let (mut sent, mut received) = (0, Vec::new());
                let mut reads = reads.iter().cycle();
                for &(len, pauses) in &sends {
                    let mut unsent = &bytes[sent..sent + len];
                    sent += len;
                    while !unsent.is_empty() {
                        match stream.try_send(unsent).unwrap() {
                            Some(count) => unsent = &unsent[count..],
                            None => {
                                stream.either().await;
                                let mut buffer = [0; 5_000];
                                if let Some(count) = stream.try_recv(&mut buffer).unwrap() {
                                    received.extend_from_slice(&buffer[..count]);
                                }
                            }
                        }
                    }
                    if pauses {
                        yield_now().await;
                    }
                }
                while received.len() < total {
                    let &(max_bytes, pauses) = reads.next().unwrap();
                    received.extend(receive(&stream, max_bytes).await);
                    if pauses {
                        yield_now().await;
                    }
                }
                received
            });
            prop_assert!(received == bytes, "{io:?}: bytes were lost or mixed");
            prop_assert_eq!(echo.join().unwrap(), total);
        }
    }
}
