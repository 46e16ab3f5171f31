//! `events.jsonl`: what happened beside the numbers.

use dyno_facts::{Event, Message, say};

pub(crate) fn line(event: &Event) -> Vec<u8> {
    // Strings and finite numbers: serialising them can't fail, and JSON escapes line ends.
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads whole lines; what is not an event is described in the second list.
pub(crate) fn parse(text: &str) -> (Vec<Event>, Vec<Message>) {
    let mut events = Vec::new();
    let mut warnings = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(event) => events.push(event),
            Err(error) => {
                let (number, why) = ((index + 1).to_string(), error.to_string());
                let file = "events.jsonl";
                warnings.push(say!(line_left_out_because, number = number, file = file, why = why));
            }
        }
    }
    (events, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::EventKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_round_trip(text in ".*", class in "[a-z_]*", errno: u32, count: u64, at_s in proptest::option::of(-1e6..1e6_f64)) {
            let event = Event { class, errno, count, at_s, ..Event::new(EventKind::Error, text) };
            let line = String::from_utf8(line(&event)).expect("UTF-8");
            prop_assert_eq!(line.matches('\n').count(), 1);
            let (events, warnings) = parse(&line);
            prop_assert!(warnings.is_empty());
            prop_assert_eq!(events, vec![event]);
        }

        #[test]
        fn no_line_makes_the_reader_panic(text in "(\\PC|\n)*") {
            let (events, warnings) = parse(&text);
            let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
            prop_assert_eq!(events.len() + warnings.len(), lines);
        }
    }

    #[test]
    fn kinds_of_a_newer_dyno_are_kept() {
        let (events, warnings) = parse("{\"kind\":\"eclipse\",\"text\":\"dark\"}\n");
        assert!(warnings.is_empty());
        assert_eq!((events[0].kind, events[0].count), (EventKind::Other, 1));
    }
}
