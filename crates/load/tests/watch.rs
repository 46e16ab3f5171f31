//! Loads that make no progress, on simulated servers.

use dyno_core::{AdminSession, Driver, MILLISECOND, NodeHealth, NodeSight, SECOND};
use dyno_load::query::execute;
use dyno_load::{LoadError, LoadErrorKind, LoadObserver, LoadSessions, StallTimeouts};
use dyno_testkit::sim::{Service, SimDriver, SimulatedAnswers};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Each statement takes an hour.
fn hanging() -> SimDriver {
    let service = Service::Constant(3600 * SECOND);
    SimDriver::new(SimulatedAnswers { service, ..SimulatedAnswers::default() })
}

#[derive(Default)]
struct RecordingObserver {
    notes: Mutex<Vec<String>>,
    is_canceled: AtomicBool,
    dead: Option<NodeSight>,
    health: Option<NodeHealth>,
}

impl LoadObserver for RecordingObserver {
    fn note(&self, text: &str) {
        self.notes.lock().expect("no panic").push(text.to_owned());
        if self.health == Some(NodeHealth::Works) {
            self.is_canceled.store(true, Ordering::Relaxed);
        }
    }

    fn is_canceled(&self) -> bool {
        self.is_canceled.load(Ordering::Relaxed)
    }

    fn patience(&self) -> StallTimeouts {
        StallTimeouts {
            answer_within: 20 * MILLISECOND,
            ..StallTimeouts::saying_after(40 * MILLISECOND)
        }
    }

    fn lost_node(&self) -> Option<NodeSight> {
        self.dead.clone()
    }

    fn nodes(&self) -> Vec<NodeSight> {
        let sight =
            |health| NodeSight { name: "n1".to_owned(), health, evidence: "sits".to_owned() };
        self.health.map(sight).into_iter().collect()
    }
}

fn run_load(observer: &RecordingObserver) -> LoadError {
    let driver = hanging();
    let sessions = LoadSessions::new(&driver.admin(), observer, 3);
    let loaded =
        sessions.each(&[1, 2, 3, 4], async |session: &mut AdminSession<'_>, piece: &u32| {
            execute(session, format!("loading piece {piece}"), "INSERT INTO t VALUES (1)").await
        });
    loaded.expect_err("nothing is ever loaded")
}

#[test]
fn a_server_that_hangs_is_named_with_what_is_waited_for_and_ends_the_load() {
    let observer = RecordingObserver::default();
    let error = run_load(&observer);
    assert_eq!(error.kind, LoadErrorKind::Node, "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with("the server does not answer a new connection within 0.02 s"),
        "{text}"
    );
    assert!(text.contains("the load made no progress for"), "{text}");
    assert!(text.contains("session 0: loading piece "), "{text}");
    let notes = observer.notes.lock().expect("no panic");
    assert!(notes[0].starts_with("no progress for"), "{notes:?}");
    for piece in 1..=3 {
        assert!(notes[0].contains(&format!("loading piece {piece} (")), "{notes:?}");
    }
}

#[test]
fn a_dead_node_ends_the_load_at_once() {
    let evidence = "is dead".to_owned();
    let dead = NodeSight { name: "n2".to_owned(), health: NodeHealth::Dead, evidence };
    let observer = RecordingObserver { dead: Some(dead), ..RecordingObserver::default() };
    let error = run_load(&observer);
    assert_eq!(error.to_string(), "n2 is dead");
    assert!(error.hint().expect("a remedy").contains("what is stored is kept"));
}

#[test]
fn a_node_without_memory_ends_the_load_when_it_stands_still() {
    let observer =
        RecordingObserver { health: Some(NodeHealth::OutOfMemory), ..RecordingObserver::default() };
    let text = run_load(&observer).to_string();
    assert!(text.starts_with("n1 sits, and the load made no progress for"), "{text}");
}

#[test]
fn a_node_that_works_is_waited_for_until_the_user_has_enough() {
    let observer =
        RecordingObserver { health: Some(NodeHealth::Works), ..RecordingObserver::default() };
    assert_eq!(run_load(&observer).kind, LoadErrorKind::Canceled);
    assert!(observer.notes.lock().expect("no panic")[0].contains("n1 sits"));
}
