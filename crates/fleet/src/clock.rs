//! The offset of another machine's clock.
//!
//! A question and its answer bound it: the other clock was read between them. Among several rounds, the one with the
//! shortest round trip counts.

use std::time::{SystemTime, UNIX_EPOCH};

use dyno_core::Nanos;
use dyno_engine::merge;

use crate::nats::{FleetKey, SealContext};
use crate::protocol::{Answer, Ask, Report, SentQuestion, unpack};
use crate::trial::Inbox;

/// Nanoseconds since 1970.
pub(crate) fn calendar_now() -> i64 {
    let calendar = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    calendar.as_nanos().min(i64::MAX as u128) as i64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) asked_at: Nanos,
    pub(crate) there: Nanos,
    pub(crate) calendar_there: i64,
    pub(crate) answered_at: Nanos,
    pub(crate) calendar_here: i64,
}

impl Round {
    fn round_trip(&self) -> Nanos {
        self.answered_at.saturating_sub(self.asked_at)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other monotonic clock minus the one here, nanoseconds.
    pub ahead: i64,
    /// The other calendar minus the one here, nanoseconds.
    pub calendar_ahead: i64,
    /// Half of the round trip: both are known to this many nanoseconds to either side.
    pub bound: Nanos,
}

impl ClockOffset {
    pub(crate) fn from_rounds(rounds: &[Round]) -> Option<ClockOffset> {
        let best = rounds.iter().min_by_key(|round| round.round_trip())?;
        let half = (best.round_trip() / 2) as i64;
        Some(ClockOffset {
            ahead: best.there as i64 - (best.asked_at as i64 + half),
            calendar_ahead: best.calendar_there - (best.calendar_here - half),
            bound: best.round_trip().div_ceil(2),
        })
    }

    /// A moment of the clock here on the other one.
    pub(crate) fn there(&self, here: Nanos) -> Nanos {
        here.saturating_add_signed(self.ahead)
    }

    /// The summand that moves times of the other clock to the one here.
    pub(crate) fn back(&self) -> i64 {
        self.ahead.saturating_neg()
    }
}

/// Reads a packet as sealed by a stranger, as a question, an answer and reports, for the fuzzer. The first line of the
/// input is the packet's head; an input that does not begin with JSON is the packet.
pub fn probe(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (head, body) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    let framed = [&(head.len() as u32).to_le_bytes()[..], head, body].concat();
    let packet = if input.first() == Some(&b'{') { &framed } else { input };
    let key = FleetKey::parse(&"07".repeat(32)).expect("a key");
    let about = SealContext::QuestionTo("dyno.default.call");
    assert!(key.open(about, packet).is_none(), "no one guesses a seal");
    let (_, sealed) = key.seal(about, packet);
    assert_eq!(key.open(about, &sealed).expect("its own seal").1, packet);
    if let Ok((sent, _)) = unpack::<SentQuestion>(packet)
        && let Ask::Prepare(order) = &sent.question.ask
    {
        assert!(order.out_of_range().is_some() || order.planned.workers > 0);
    }
    let _ = unpack::<Answer>(packet);
    let mut inbox = Inbox::default();
    inbox.receive(0, &[&(packet.len() as u32).to_le_bytes()[..], packet].concat());
    while let Ok(Some((report, _))) = inbox.next::<Report>() {
        if let Report::Ended { mut result } = report {
            result.shift(-1_000);
            let _ = merge(&[(*result).clone(), *result]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{GeneratorOrder, Question, Versions, pack};
    use dyno_engine::record::{Frame, MeasuredInterval, Phase, Window};
    use dyno_engine::{Joined, TrialResult};
    use dyno_facts::{HostSample, PlannedTrial};
    use serde::Serialize;
    use std::path::Path;

    fn new_round(asked: Nanos, before: Nanos, trip: Nanos, ahead: i64) -> Round {
        let remote = (asked + before).saturating_add_signed(ahead);
        let calendar_here = (asked + trip) as i64 + 1_000_000;
        let calendar_there = (asked + before) as i64 + 1_000_000 + ahead;
        let answered_at = asked + trip;
        Round { asked_at: asked, there: remote, calendar_there, answered_at, calendar_here }
    }

    #[test]
    fn the_shortest_round_trip_bounds_the_clock() {
        for ahead in [-5_000_000_i64, 0, 7_777_777_777] {
            let rounds = [
                new_round(10_000_000, 900, 1000, ahead),
                new_round(20_000_000, 10, 200, ahead),
                new_round(30_000_000, 5000, 5001, ahead),
            ];
            let clock = ClockOffset::from_rounds(&rounds).expect("there are rounds");
            assert_eq!(clock.bound, 100);
            assert!((clock.ahead - ahead).abs() <= 100, "{clock:?}");
            assert!((clock.calendar_ahead - ahead).abs() <= 100, "{clock:?}");
            let remote_at = clock.there(123_456_789);
            assert_eq!(remote_at.saturating_add_signed(clock.back()), 123_456_789);
        }
        assert_eq!(ClockOffset::from_rounds(&[]), None);
    }

    fn new_frame() -> Frame {
        let mut frame = Frame::new(1, true);
        (frame.began, frame.ended) = (1_000, 2_000);
        frame.kinds[0].counts.started = 2;
        frame.kinds[0].counts.committed = 2;
        [7_000, 9_000].into_iter().for_each(|ns| frame.kinds[0].latency.record(ns));
        frame
    }

    fn new_result() -> TrialResult {
        let window = Window { released: 0, opens: 1_000, closes: 2_000, interval: 1_000 };
        let cause = dyno_core::DbError::lost("gone");
        let result = Joined::new(window, 1, 1, true).lose(0, cause).expect("a result");
        TrialResult { total: new_frame(), offered: Some(2), ..result }
    }

    fn new_order() -> SentQuestion {
        let trial = PlannedTrial { workers: 4, interval_s: 1.0, ..PlannedTrial::default() };
        let order = GeneratorOrder {
            trial: 1,
            versions: Versions::this("0.1.0"),
            plan: serde_json::json!({ "steps": [] }),
            experiment: "e".to_owned(),
            target: "main".to_owned(),
            planned: trial,
            generator: 0,
            generators: 2,
            secrets: Vec::new(),
        };
        let ask = Ask::Prepare(Box::new(order));
        let question = Question { run: "r".to_owned(), ask };
        SentQuestion { question, nonce: "0".repeat(32), until: 1 }
    }

    fn interval_report() -> Report {
        let window = Window { released: 0, opens: 0, closes: 10, interval: 1_000 };
        let interval =
            MeasuredInterval::new(&window, Phase::Measured, 0, new_frame(), HostSample::default());
        Report::Interval { interval: Box::new(interval) }
    }

    /// The seeds of the fuzzing target are what is really sent; `DYNO_BLESS=1` writes them again.
    #[test]
    fn seeds_are_messages_that_are_understood() {
        fn read_seed(name: &str, head: &impl Serialize) -> Vec<u8> {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/fuzz/seeds/fleet");
            let text = serde_json::to_vec(head).expect("JSON");
            if std::env::var_os("DYNO_BLESS").is_some() {
                std::fs::create_dir_all(&folder).expect("a folder");
                std::fs::write(folder.join(name), &text).expect("written");
            }
            let seed = std::fs::read(folder.join(name)).expect("a seed; DYNO_BLESS=1 writes it");
            probe(&seed);
            let value: serde_json::Value = serde_json::from_slice(&seed).expect("JSON");
            pack(&value, b"")
        }
        assert!(unpack::<SentQuestion>(&read_seed("order.json", &new_order())).is_ok());
        assert!(unpack::<Report>(&read_seed("interval.json", &interval_report())).is_ok());
        let ended = Report::Ended { result: Box::new(new_result()) };
        assert!(unpack::<Report>(&read_seed("ended.json", &ended)).is_ok());
        assert!(unpack::<Answer>(&read_seed("flow.json", &Answer::Flow { offset: 7 })).is_ok());
    }
}
