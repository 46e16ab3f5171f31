use super::*;
use dyno_facts::PlannedTrial;

fn new_shared_state() -> (Arc<SharedState>, Receiver<GeneratorEvent>, Hello) {
    let (events, receiver) = channel();
    let shared = SharedState { state: Mutex::default(), changed: Condvar::new(), events };
    let hello = Hello {
        name: "a".to_owned(),
        id: "1".to_owned(),
        versions: Versions::this("1.0"),
        run: None,
        is_tls: false,
        environment: dyno_facts::Environment::default(),
        only_hosts: Vec::new(),
        load: 0.0,
    };
    (Arc::new(shared), receiver, hello)
}

fn new_order(trial: u64, dyno: &str) -> Question {
    let planned_trial: PlannedTrial = serde_json::from_str(
        r#"{"number": 1, "point": "p", "workers": 4, "rate": null, "repeat": 1, "warmup_s": 0,
            "duration_s": 1, "events": null, "interval_s": 1, "seed": 7}"#,
    )
    .expect("a trial");
    let order = GeneratorOrder {
        trial,
        versions: Versions::this(dyno),
        plan: serde_json::Value::Null,
        experiment: "e".to_owned(),
        target: "t".to_owned(),
        planned: planned_trial,
        generator: 0,
        generators: 1,
        secrets: Vec::new(),
    };
    question_by("r", Ask::Prepare(Box::new(order)))
}

fn question_by(run: &str, ask: Ask) -> Question {
    Question { run: run.to_owned(), ask }
}

fn join_question(run: &str) -> Question {
    question_by(run, Ask::Join)
}

fn poll_question(trial: u64, after: u64) -> Question {
    question_by("r", Ask::Poll { trial, after })
}

/// The answer without its body.
fn ask(shared: &Arc<SharedState>, hello: &Hello, question: Question) -> Answer {
    shared.answer(question, hello, 1000).0
}

fn take_assignments(events: &Receiver<GeneratorEvent>) -> Vec<Assignment> {
    let assignments = events.try_iter().filter_map(|event| match event {
        GeneratorEvent::Work(assignment) => Some(*assignment),
        GeneratorEvent::Note(_) => None,
    });
    assignments.collect()
}

#[test]
fn it_works_for_one_run_until_that_is_gone() {
    let (shared, _events, hello) = new_shared_state();
    assert_eq!(ask(&shared, &hello, new_order(1, "1.0")), Answer::Busy { run: None });
    assert_eq!(ask(&shared, &hello, join_question("r")), Answer::Done);
    assert_eq!(ask(&shared, &hello, join_question("r")), Answer::Done);
    let busy = Answer::Busy { run: Some("r".to_owned()) };
    assert_eq!(ask(&shared, &hello, join_question("other")), busy);
    assert_eq!(ask(&shared, &hello, question_by("other", Ask::Leave)), busy);
    shared.expire(Instant::now());
    assert_eq!(ask(&shared, &hello, join_question("other")), busy);
    shared.expire(Instant::now() + LEASE + Duration::from_secs(1));
    assert_eq!(ask(&shared, &hello, join_question("other")), Answer::Done);
    assert_eq!(ask(&shared, &hello, question_by("other", Ask::Leave)), Answer::Done);
    assert_eq!(ask(&shared, &hello, question_by("other", Ask::Leave)), Answer::Done);
    let Answer::Here(here) = ask(&shared, &hello, question_by("", Ask::Who)) else {
        panic!("it says who it is")
    };
    assert_eq!(Hello { load: 0.0, ..*here }, hello);
}

#[test]
fn a_question_is_answered_once_and_in_its_time() {
    let (shared, _events, _hello) = new_shared_state();
    let sent_until =
        |until: i64| SentQuestion { question: join_question("r"), nonce: until.to_string(), until };
    let now = 1_000 * QUESTION_LASTS as i64;
    let minute = QUESTION_LASTS as i64;
    let question = shared.check_fresh(sent_until(now + minute), "a", now);
    assert_eq!(question.map(|question| question.run), Ok("r".to_owned()));
    let message = shared
        .check_fresh(sent_until(now + minute), "a", now + 1)
        .expect_err("it was heard and sent again");
    assert!(message.ends_with("has had this question before."), "{message}");
    for until in [now - 1, now + 3 * minute] {
        let message = shared.check_fresh(sent_until(until), "a", now).expect_err("another time");
        assert!(message.starts_with("The clock of the load generator a differs"), "{message}");
    }
    assert!(
        shared.check_fresh(sent_until(now + minute), "a", now + 2 * minute).is_err(),
        "forgotten, and late"
    );
    assert_eq!(shared.lock().open_nonces.len(), 0, "what is late is not remembered");
}

#[test]
fn an_order_has_bounds() {
    type Change = fn(&mut GeneratorOrder);
    let changes: [(Change, &str); 5] = [
        (|order| order.planned.workers = u32::MAX, "workers"),
        (|order| order.planned.rate = Some(f64::NAN), "the rate"),
        (|order| order.planned.duration_s = Some(1e300), "the duration"),
        (|order| order.planned.warmup_s = -1.0, "the warm-up"),
        (|order| order.generators = 0, "load generators"),
    ];
    for (change, part) in changes {
        let (shared, events, hello) = new_shared_state();
        shared.answer(join_question("r"), &hello, 1000);
        let Question { run, ask: Ask::Prepare(mut order) } = new_order(1, "1.0") else { panic!() };
        change(&mut order);
        let question = Question { run, ask: Ask::Prepare(order) };
        let Answer::Refused { why } = shared.answer(question, &hello, 1000).0 else {
            panic!("{part}")
        };
        assert!(why.ends_with(&format!("out of all bounds: {part}.")), "{why}");
        assert!(take_assignments(&events).is_empty());
    }
}

#[test]
fn other_versions_are_refused() {
    let (shared, events, hello) = new_shared_state();
    shared.answer(join_question("r"), &hello, 1000);
    let Answer::Refused { why } = shared.answer(new_order(1, "1.1"), &hello, 1000).0 else {
        panic!("another version has other plans")
    };
    assert!(why.contains("dyno 1.0 (") && why.contains("dyno 1.1 ("), "{why}");
    assert!(take_assignments(&events).is_empty());
}

#[test]
fn an_order_that_comes_twice_is_executed_once() {
    let (shared, events, hello) = new_shared_state();
    ask(&shared, &hello, join_question("r"));
    assert_eq!(ask(&shared, &hello, new_order(1, "1.0")), Answer::Done);
    assert_eq!(ask(&shared, &hello, new_order(1, "1.0")), Answer::Done);
    let mut assigned = take_assignments(&events);
    assert_eq!(assigned.len(), 1);
    // It is at the first trial until that has reported its end, also where the coordinator has given it up.
    assert!(matches!(ask(&shared, &hello, new_order(2, "1.0")), Answer::Busy { .. }));
    let Assignment { reporter, .. } = assigned.remove(0);
    reporter.failed("No database.", None, false);
    assert_eq!(ask(&shared, &hello, new_order(2, "1.0")), Answer::Done);
    assert!(matches!(ask(&shared, &hello, poll_question(1, 0)), Answer::Refused { .. }));
}

#[test]
fn reports_wait_until_they_were_received() {
    let (shared, events, hello) = new_shared_state();
    shared.answer(join_question("r"), &hello, 1000);
    shared.answer(new_order(1, "1.0"), &hello, 1000);
    let Assignment { mut reporter, .. } = take_assignments(&events).remove(0);
    reporter.connected(1, 2);
    reporter.connected(2, 2);
    let mut inbox = crate::trial::Inbox::default();
    let mut texts = Vec::new();
    loop {
        // Each question is sent twice, as if the first answer had been lost.
        let first = shared.answer(poll_question(1, inbox.received()), &hello, 7);
        let (answer, bytes) = shared.answer(poll_question(1, inbox.received()), &hello, 7);
        assert_eq!(first, (answer.clone(), bytes.clone()));
        let Answer::Flow { offset } = answer else { panic!("{answer:?}") };
        if bytes.is_empty() {
            break;
        }
        inbox.receive(offset, &bytes);
        while let Some((report, _)) = inbox.next::<Report>().expect("reports are whole") {
            texts.push(report);
        }
    }
    let reports = [1, 2].map(|connected| Report::Connected { connected, of: 2 });
    assert_eq!(texts, reports);
}

#[test]
fn the_start_is_agreed_once_and_not_after_a_stop() {
    for is_stopped in [false, true] {
        let (shared, events, hello) = new_shared_state();
        ask(&shared, &hello, join_question("r"));
        ask(&shared, &hello, new_order(1, "1.0"));
        let control = take_assignments(&events).remove(0).reporter.control();
        if is_stopped {
            ask(&shared, &hello, question_by("r", Ask::Stop { trial: 1 }));
        }
        ask(&shared, &hello, question_by("r", Ask::Start { trial: 1, at: 700 }));
        ask(&shared, &hello, question_by("r", Ask::Start { trial: 1, at: 900 }));
        assert_eq!(control.is_stopped(), is_stopped);
        assert_eq!(shared.wait_for_start(1, 5), (!is_stopped).then_some(700));
        // What comes too late starts at once.
        assert_eq!(shared.wait_for_start(1, 800), (!is_stopped).then_some(800));
    }
}

#[test]
fn who_is_stopped_by_its_own_user_does_not_start() {
    let (shared, events, hello) = new_shared_state();
    shared.answer(join_question("r"), &hello, 1000);
    shared.answer(new_order(1, "1.0"), &hello, 1000);
    let assignment = take_assignments(&events).remove(0);
    assignment.reporter.control().stop();
    assert_eq!(shared.wait_for_start(1, 5), None);
    shared.answer(question_by("r", Ask::Start { trial: 1, at: 700 }), &hello, 1000);
    assert_eq!(shared.wait_for_start(1, 5), None);
}

#[test]
fn a_run_that_is_gone_stops_its_trial() {
    let (shared, events, hello) = new_shared_state();
    shared.answer(join_question("r"), &hello, 1000);
    shared.answer(new_order(1, "1.0"), &hello, 1000);
    let control = take_assignments(&events).remove(0).reporter.control();
    shared.expire(Instant::now() + LEASE + Duration::from_secs(1));
    assert!(control.is_stopped());
    assert_eq!(shared.wait_for_start(1, 5), None);
}
