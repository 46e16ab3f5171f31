//! Hostile messages: what both ends make of one that has passed the seal, and that nothing passes it otherwise.

use crate::flow::Inbox;
use crate::nats::{FleetKey, SealContext};
use crate::protocol::{Answer, Ask, Report, SentQuestion, unpack};
use dyno_engine::record::Window;
use dyno_engine::{Joined, merge};

/// Reads a packet as a question, an answer and a report. The first line of the input is its head; where that is no
/// JSON, the input is the packet.
pub fn probe(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (head, body) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    let framed = [&(head.len() as u32).to_le_bytes()[..], head, body].concat();
    let packet = if input.first() == Some(&b'{') { &framed } else { input };
    let key = FleetKey::parse(&"07".repeat(32)).expect("a key");
    let about = SealContext::QuestionTo("dyno.default.call");
    assert!(key.open(about, packet).is_none(), "nobody guesses a seal");
    let (_, sealed) = key.seal(about, packet);
    let (_, opened) = key.open(about, &sealed).expect("its own seal");
    assert_eq!(opened, packet);
    if let Ok((sent, _)) = unpack::<SentQuestion>(packet)
        && let Ask::Prepare(order) = &sent.question.ask
    {
        let excess = order.excess();
        assert!(excess.is_some() || order.planned.workers > 0);
    }
    let _ = unpack::<Answer>(packet);
    let flow = [&(packet.len() as u32).to_le_bytes()[..], packet].concat();
    let mut inbox = Inbox::default();
    for (offset, part) in [(0, &flow[..flow.len() / 2]), (flow.len() / 2, &flow[flow.len() / 2..])]
    {
        inbox.take(offset as u64, part);
    }
    while let Ok(Some((report, _))) = inbox.next::<Report>() {
        take(report);
    }
}

fn take(report: Report) {
    match report {
        Report::Interval { interval } => {
            let window =
                Window { released: 0, opens: 0, closes: u64::MAX, interval: 1_000_000_000 };
            let mut joined = Joined::new(window, 1, 1, false);
            joined.take(0, &interval);
            let _ = joined.next_complete();
        }
        Report::Ended { mut result } => {
            result.shift(-1_000);
            if let Ok(merged) = merge(&[(*result).clone(), *result]) {
                let _ = (merged.missed_rate(), merged.length(), merged.ended.failure());
            }
        }
        Report::Released { mut window } => window.shift(1_000),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{GeneratorOrder, Question, Versions, pack};
    use dyno_engine::TrialResult;
    use dyno_engine::record::{Frame, MeasuredInterval, Phase};
    use dyno_facts::{HostSample, PlannedTrial};
    use serde::Serialize;
    use std::path::Path;

    fn frame() -> Frame {
        let mut frame = Frame::new(1, true);
        (frame.began, frame.ended) = (1_000, 2_000);
        frame.kinds[0].counts.started = 2;
        frame.kinds[0].counts.committed = 2;
        [7_000, 9_000].into_iter().for_each(|ns| frame.kinds[0].latency.record(ns));
        frame
    }

    fn result() -> TrialResult {
        let window = Window { released: 0, opens: 1_000, closes: 2_000, interval: 1_000 };
        let why = dyno_core::DbError::lost("gone");
        let lost = Joined::new(window, 1, 1, true).lose(0, why).expect("a result");
        TrialResult { total: frame(), offered: Some(2), ..lost }
    }

    fn order() -> SentQuestion {
        let planned = PlannedTrial { workers: 4, interval_s: 1.0, ..PlannedTrial::default() };
        let order = GeneratorOrder {
            trial: 1,
            versions: Versions::this("0.1.0"),
            plan: serde_json::json!({ "steps": [] }),
            experiment: "e".to_owned(),
            target: "main".to_owned(),
            planned,
            generator: 0,
            generators: 2,
            secrets: Vec::new(),
        };
        let ask = Ask::Prepare(Box::new(order));
        let question = Question { run: "r".to_owned(), ask };
        SentQuestion { question, nonce: "0".repeat(32), until: 1 }
    }

    fn interval() -> Report {
        let window = Window { released: 0, opens: 0, closes: 10, interval: 1_000 };
        let interval =
            MeasuredInterval::new(&window, Phase::Measured, 0, frame(), HostSample::default());
        Report::Interval { interval: Box::new(interval) }
    }

    /// The seeds of the fuzzing target are what is really sent; `DYNO_BLESS=1` writes them anew.
    #[test]
    fn seeds_are_messages_that_are_understood() {
        fn kept(name: &str, head: &impl Serialize) -> Vec<u8> {
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
        assert!(unpack::<SentQuestion>(&kept("order.json", &order())).is_ok());
        assert!(unpack::<Report>(&kept("interval.json", &interval())).is_ok());
        let ended = Report::Ended { result: Box::new(result()) };
        assert!(unpack::<Report>(&kept("ended.json", &ended)).is_ok());
        assert!(unpack::<Answer>(&kept("flow.json", &Answer::Flow { offset: 7 })).is_ok());
    }
}
