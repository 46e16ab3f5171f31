//! Loops with real descriptors and with a virtual clock.

use dyno_core::SECOND;
use dyno_reactor::{
    Clock, Elapsed, EventSource, Loop, SharedTime, Turn, block_on, now, run_all, sleep_until,
    timeout, unless, wake, yield_now,
};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::{Arc, Mutex};

/// Two connected sockets that do not block.
fn pair() -> (UnixStream, UnixStream) {
    let (left, right) = UnixStream::pair().unwrap();
    left.set_nonblocking(true).unwrap();
    right.set_nonblocking(true).unwrap();
    (left, right)
}

/// Receives this number of bytes.
async fn receive(source: &EventSource<UnixStream>, wanted: usize) -> Vec<u8> {
    let mut received = Vec::new();
    while received.len() < wanted {
        source.readable().await;
        let mut buffer = [0; 4];
        match source.io().read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                received.extend_from_slice(&buffer[..count]);
                if count < buffer.len() {
                    source.not_readable();
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                source.not_readable();
            }
        }
    }
    received
}

#[test]
fn tasks_talk_over_descriptors() {
    let (left, right) = pair();
    let streams = RefCell::new(vec![Some(left), Some(right)]);
    let tasks = (0..2).map(|number: usize| {
        let stream = streams.borrow_mut()[number].take().unwrap();
        async move {
            let source = EventSource::new(stream).unwrap();
            let mut sum = 0;
            for round in 0..1_000_u32 {
                if number == 0 {
                    source.io().write_all(&round.to_le_bytes()).unwrap();
                }
                let answer = receive(&source, 4).await;
                if number == 1 {
                    source.io().write_all(&answer).unwrap();
                }
                sum += u64::from(u32::from_le_bytes(answer.try_into().unwrap()));
            }
            sum
        }
    });
    assert_eq!(run_all(tasks).unwrap(), [499_500, 499_500]);
}

#[test]
fn data_that_came_before_the_wait_is_not_missed() {
    let (left, mut right) = pair();
    right.write_all(b"early").unwrap();
    let got = block_on(async {
        let source = EventSource::new(left).unwrap();
        yield_now().await;
        receive(&source, 5).await
    });
    assert_eq!(got.unwrap(), b"early");
}

#[test]
fn a_closed_peer_wakes_its_reader() {
    let (left, right) = pair();
    drop(right);
    let got = block_on(async { receive(&EventSource::new(left).unwrap(), 1).await });
    assert_eq!(got.unwrap(), b"");
}

#[test]
fn descriptors_that_come_and_go_do_not_wake_others() {
    let got = block_on(async {
        for _ in 0..100 {
            let (left, mut right) = pair();
            let source = EventSource::new(left).unwrap();
            right.write_all(b"x").unwrap();
            assert_eq!(receive(&source, 1).await, b"x");
        }
        let (left, _right) = pair();
        let source = EventSource::new(left).unwrap();
        timeout(now() + 1_000_000, receive(&source, 1)).await
    });
    assert_eq!(got.unwrap(), Err(Elapsed));
}

#[test]
fn a_full_send_queue_is_waited_for() {
    const LENGTH: usize = 1 << 20;
    let (left, right) = pair();
    let streams = RefCell::new(vec![Some(left), Some(right)]);
    let tasks = (0..2).map(|number: usize| {
        let stream = streams.borrow_mut()[number].take().unwrap();
        async move {
            let source = EventSource::new(stream).unwrap();
            if number == 1 {
                return receive(&source, LENGTH).await.len();
            }
            let (mut sent, mut waits) = (0, 0);
            while sent < LENGTH {
                match source.io().write(&[7; 1 << 16]) {
                    Ok(count) => sent += count,
                    Err(error) => {
                        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                        source.not_writable();
                        source.writable().await;
                        waits += 1;
                    }
                }
            }
            waits
        }
    });
    let ended = run_all(tasks).unwrap();
    assert!(ended[0] > 0, "the queue was never full: nothing was tested");
    assert_eq!(ended[1], LENGTH);
}

#[test]
fn a_peer_that_reads_does_not_wake_who_waits_to_read() {
    let (left, mut right) = pair();
    let polls = Cell::new(0);
    block_on(async {
        let source = EventSource::new(left).unwrap();
        for _ in 0..10 {
            source.io().write_all(b"x").unwrap();
            let mut waiting = pin!(source.readable());
            let counted_wait = poll_fn(|context| {
                polls.set(polls.get() + 1);
                waiting.as_mut().poll(context)
            });
            right.read_exact(&mut [0]).unwrap();
            assert_eq!(timeout(now() + 1_000_000, counted_wait).await, Err(Elapsed));
        }
    })
    .unwrap();
    // Once to begin, once at the due time, which may have come by then.
    assert!((10..=20).contains(&polls.get()), "{}", polls.get());
}

#[test]
fn a_virtual_clock_jumps_from_due_time_to_due_time() {
    let order = RefCell::new(Vec::new());
    let tasks = (0..3_u64).map(|number| {
        let order = &order;
        async move {
            for round in 1..=3_u64 {
                sleep_until(round * 10 * SECOND + number).await;
                order.borrow_mut().push((now(), number));
            }
        }
    });
    Loop::new(Clock::Virtual, tasks).unwrap().finish().unwrap();
    let order = order.into_inner();
    assert_eq!(order.len(), 9);
    assert!(order.is_sorted());
    assert_eq!(order[8], (30 * SECOND + 2, 2));
}

#[test]
fn a_timeout_drops_what_takes_too_long_and_passes_what_does_not() {
    let tasks = [20_u64, 5].map(|wait| async move {
        timeout(10 * SECOND, async {
            sleep_until(wait * SECOND).await;
            wait
        })
        .await
    });
    assert_eq!(Loop::new(Clock::Virtual, tasks).unwrap().finish().unwrap(), [Err(Elapsed), Ok(5)]);
}

#[test]
fn what_is_over_is_dropped_and_what_is_done_before_is_passed() {
    let tasks = [20_u64, 5].map(|wait| async move {
        let work = async {
            sleep_until(wait * SECOND).await;
            wait
        };
        let output = unless(|| now() >= 10 * SECOND, work).await;
        (output, now() / SECOND)
    });
    assert_eq!(
        Loop::new(Clock::Virtual, tasks).unwrap().finish().unwrap(),
        [(None, 10), (Some(5), 5)]
    );
}

#[test]
fn an_owner_can_pause_and_drop_what_is_not_done() {
    let tasks = [1_u64, 100].map(|wait| async move { sleep_until(wait * SECOND).await });
    let mut tasks = Loop::new(Clock::Virtual, tasks).unwrap();
    tasks
        .run(|tick| if tick.now >= 50 * SECOND { Turn::Pause } else { Turn::RunUntil(50 * SECOND) })
        .unwrap();
    let are_done: Vec<bool> = tasks.take_outputs().iter().map(Option::is_some).collect();
    assert_eq!(are_done, [true, false]);
    drop(tasks);
    // The thread is free for another loop.
    assert_eq!(block_on(async { 7 }).unwrap(), 7);
}

#[test]
fn a_task_wakes_another_by_its_number() {
    let (handed, polls) = (Cell::new(None), Cell::new(0));
    let (handed, polls) = (&handed, &polls);
    let waiting = poll_fn(move |_| {
        polls.set(polls.get() + 1);
        match handed.take() {
            Some(what) => std::task::Poll::Ready(what),
            None => std::task::Poll::Pending,
        }
    });
    let handing = async move {
        sleep_until(SECOND).await;
        handed.set(Some(7));
        wake(0);
        // Once is enough.
        wake(0);
        sleep_until(2 * SECOND).await;
        polls.get()
    };
    type Task<'a> = std::pin::Pin<Box<dyn Future<Output = u32> + 'a>>;
    let tasks: [Task<'_>; 2] = [Box::pin(waiting), Box::pin(handing)];
    assert_eq!(Loop::new(Clock::Virtual, tasks).unwrap().finish().unwrap(), [7, 2]);
}

#[test]
fn loops_that_share_a_virtual_time_take_turns() {
    // Loop n of three is due each 2 + n s; all are due at 12 s.
    let order = Mutex::new(Vec::new());
    let time = Arc::new(SharedTime::new(3));
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (order, clock) = (&order, Clock::Shared(Arc::clone(&time), number));
            let gap = (2 + number as u64) * SECOND;
            scope.spawn(move || {
                let task = async {
                    while now() < 12 * SECOND {
                        sleep_until(now() + gap).await;
                        order.lock().unwrap().push((now() / SECOND, number));
                    }
                };
                Loop::new(clock, [task]).unwrap().finish().unwrap();
            });
        }
    });
    let due = |number: usize| (1..).map(move |n| n * (2 + number as u64)).take_while(|s| *s <= 12);
    let mut expected: Vec<_> = (0..3).flat_map(|n| due(n).map(move |s| (s, n))).collect();
    let mut order = order.into_inner().unwrap();
    assert!(order.is_sorted_by_key(|(at_s, _)| *at_s), "{order:?}");
    // Among equal times the one that has waited longest: 8 s was requested at 4 s and at 6 s.
    let at_8_s: Vec<_> = order.iter().filter(|(at_s, _)| *at_s == 8).map(|(_, n)| *n).collect();
    assert_eq!(at_8_s, [2, 0]);
    order.sort_unstable();
    expected.sort_unstable();
    assert_eq!(order, expected);
}
