//! From a run folder that a killed dyno left behind to its paper.

use dyno_core::{DbError, ErrorClass, Tally};
use dyno_engine::record::{Frame, MeasuredInterval, Phase};
use dyno_facts::{HostSample, RunHeader, TrialIdentity, TrialStart};
use dyno_report::{Lang, Paper};
use dyno_store::{Run, read};

/// An interval of a second; without commits the server is away.
fn interval(index: u32, committed: u64) -> MeasuredInterval {
    let mut frame = Frame::new(1, false);
    let kind = &mut frame.kinds[0];
    kind.counts.started = committed + u64::from(index == 0) * 4;
    kind.counts.committed = committed;
    kind.work = Tally { reads: committed, ..Tally::default() };
    (0..committed).for_each(|number| kind.latency.record(4_000_000 + number));
    if committed == 0 {
        frame.errors.count(&DbError::lost("The server closed the connection."));
        frame.errors.count(&DbError::server(ErrorClass::Other, 1053, *b"08S01", "Shutdown"));
    }
    let begins_s = f64::from(index);
    MeasuredInterval {
        phase: Phase::Measured,
        index,
        begins_s,
        length_s: 1.0,
        frame,
        host: HostSample::default(),
    }
}

#[test]
fn a_killed_run_has_a_paper_whose_totals_add_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = Run::create(dir.path(), RunHeader::new("killed", vec!["dyno".into()], 7), false)
        .expect("created");
    let path = run.path().to_owned();
    let identity = TrialIdentity {
        step: "reads/main/4/1".to_owned(),
        experiment: "reads".to_owned(),
        target: "main".to_owned(),
        test: "oltp_point_select".to_owned(),
        workers: 4,
        repeat: 1,
        ..TrialIdentity::default()
    };
    let kinds = vec!["oltp_point_select".to_owned()];
    let start = TrialStart { identity, kinds, ..TrialStart::default() };
    let mut trial = run.begin_trial(start).expect("begun");
    for (index, committed) in [1000, 1000, 0, 0, 1000].into_iter().enumerate() {
        trial.interval(&interval(index as u32, committed)).expect("stored");
    }
    // What a kill -9 does: nothing is finished, the lock is gone.
    drop(trial);
    drop(run);

    let paper = Paper::new(&[read(&path).expect("read")], &[]);
    let trial = &paper.trials[0];
    assert_eq!((trial.status, trial.adds_up), ("interrupted", true));
    assert_eq!((trial.summary.counts.committed, trial.summary.in_flight), (3000, 4));
    assert_eq!((trial.gaps.len(), trial.gaps[0].from_s, trial.gaps[0].to_s), (1, 2.0, 4.0));
    let point = &paper.experiments[0].points[0];
    assert!((point.tps.median - 600.0).abs() < 1e-9, "{point:?}");
    assert!(point.p99_us.is_some_and(|p99| (p99.median / 4_000.0 - 1.0).abs() < 0.01), "{point:?}");
    let markdown = paper.markdown(Lang::En);
    for told in
        ["main (interrupted)", "The trial was cut off", "| 1 | main | 2.00 | 4.00 | 2.00 | 4 |"]
    {
        assert!(markdown.contains(told), "{told} is missing:\n{markdown}");
    }
    assert!(paper.html(Lang::En).contains("class=\"gap\""));
}
