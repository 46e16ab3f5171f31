use super::*;
use crate::Transcript;
use dyno_core::{
    AnswerTable, BulkMethod, Cause, Discard, Param, ParamType, RowSource, RowWriter, Session,
};
use dyno_reactor::{Clock, Loop};

const MS: Nanos = MILLISECOND;

/// Runs a task on a virtual clock.
fn simulate<T>(script: SimulatedAnswers, steps: impl AsyncFn(&SimDriver) -> T) -> (T, SimDriver) {
    let driver = SimDriver::new(script);
    let output = Loop::new(Clock::Virtual, [steps(&driver)]).unwrap().finish().unwrap().remove(0);
    (output, driver)
}

async fn select(session: &mut SimSession) -> Result<Nanos, ErrorClass> {
    session.query("SELECT 1", &mut Discard).await.map(|_| now()).map_err(|error| error.class())
}

/// The ends of `count` statements in a row.
async fn ends(driver: &SimDriver, count: usize) -> Vec<Result<Nanos, ErrorClass>> {
    let mut session = driver.connect(0).await.unwrap();
    let mut ends = Vec::new();
    for _ in 0..count {
        ends.push(select(&mut session).await);
    }
    ends
}

#[test]
fn errors_come_at_their_number_and_leave_the_session_usable() {
    let faults = vec![
        Fault::ErrorAt { statement: 1, class: ErrorClass::Deadlock },
        Fault::ErrorEvery { period: 4, class: ErrorClass::LockTimeout },
    ];
    let (ends, driver) =
        simulate(SimulatedAnswers { faults, ..SimulatedAnswers::default() }, async |driver| {
            ends(driver, 5).await
        });
    assert_eq!(
        ends,
        [Ok(MS), Err(ErrorClass::Deadlock), Ok(3 * MS), Err(ErrorClass::LockTimeout), Ok(5 * MS)]
    );
    assert_eq!((driver.statements(), driver.connects()), (5, 1));
    assert!(driver.log().is_empty());
}

#[test]
fn a_stall_stops_what_is_in_service_and_what_comes() {
    let stall = |from, until| Fault::Stall { from, until };
    let script = SimulatedAnswers {
        service: Service::Constant(4 * MS),
        // Out of order on purpose; the second follows closely on the first.
        faults: vec![stall(21 * MS, 22 * MS), stall(6 * MS, 20 * MS)],
        ..SimulatedAnswers::default()
    };
    let (ends, _) = simulate(script, async |driver| ends(driver, 3).await);
    // 4..8 has 2 ms left at 6, 1 of which is done from 20 to 21.
    assert_eq!(ends, [Ok(4 * MS), Ok(23 * MS), Ok(27 * MS)]);
}

#[test]
fn lost_sessions_stay_lost_and_new_ones_work() {
    let script = SimulatedAnswers {
        service: Service::Constant(10 * MS),
        faults: vec![Fault::LostAt { at: 15 * MS, session: None }],
        ..SimulatedAnswers::default()
    };
    let ((), driver) = simulate(script, async |driver| {
        let mut session = driver.connect(0).await.unwrap();
        assert_eq!(select(&mut session).await, Ok(10 * MS));
        assert_eq!(select(&mut session).await, Err(ErrorClass::ConnectionLost));
        assert_eq!(now(), 15 * MS);
        assert_eq!(select(&mut session).await, Err(ErrorClass::ConnectionLost));
        assert!(session.prepare("SELECT 1", &[]).await.unwrap_err().is_fatal());
        let mut session = driver.connect(0).await.unwrap();
        assert_eq!(select(&mut session).await, Ok(25 * MS));
    });
    // What the lost session was asked later never reached the server.
    assert_eq!(driver.statements(), 3);
}

#[test]
fn only_the_named_session_is_lost() {
    let faults = vec![Fault::LostAt { at: 1, session: Some(1) }];
    simulate(SimulatedAnswers { faults, ..SimulatedAnswers::default() }, async |driver| {
        let mut session_0 = driver.connect(0).await.unwrap();
        let mut session_1 = driver.connect(1).await.unwrap();
        assert!(select(&mut session_0).await.is_ok());
        assert_eq!(select(&mut session_1).await, Err(ErrorClass::ConnectionLost));
    });
}

#[test]
fn connects_are_refused_in_their_span() {
    let script = SimulatedAnswers {
        connect_time: 2 * MS,
        faults: vec![Fault::RefuseConnects { from: 1, until: 4 * MS }],
        ..SimulatedAnswers::default()
    };
    let (results, driver) = simulate(script, async |driver| {
        let mut results = Vec::new();
        for _ in 0..3 {
            let result = driver.connect(0).await;
            results.push((result.err().map(|error| error.cause()), now()));
        }
        results
    });
    let unreachable = Some(Cause::Unreachable);
    assert_eq!(results, [(None, 2 * MS), (unreachable, 4 * MS), (None, 6 * MS)]);
    assert_eq!(driver.connects(), 3);
}

#[test]
fn the_log_shows_statements_with_parameters_in_the_order_of_answers() {
    let script = SimulatedAnswers {
        service: Service::Function(|sql, _| if sql.starts_with("UPDATE") { 3 } else { 1 }),
        rows: 2,
        keep_log: true,
        faults: vec![Fault::ErrorAt { statement: 2, class: ErrorClass::Constraint }],
        ..SimulatedAnswers::default()
    };
    let (table, driver) = simulate(script, async |driver| {
        let mut session = driver.connect(7).await.unwrap();
        let types = [ParamType::Int, ParamType::Text];
        let update = session.prepare("UPDATE t SET s = ? WHERE k = ?", &types).await.unwrap();
        let read = session.prepare("SELECT k FROM t", &[]).await.unwrap();
        let begin = session.query("BEGIN", &mut Discard).await.unwrap();
        assert_eq!((begin.has_rows, begin.affected), (false, 0));
        let params = [Param::Int(5), Param::Text(b"x")];
        session.queue(update, &params).unwrap();
        session.queue(update, &params).unwrap();
        session.queue(read, &[]).unwrap();
        assert!(session.queue(read, &params).is_err());
        let (mut table, mut results) = (AnswerTable::default(), Vec::new());
        session.flush(&mut table, &mut results).await.unwrap();
        assert_eq!(results[0].as_ref().unwrap().affected, 1);
        assert_eq!(results[1].as_ref().unwrap_err().class(), ErrorClass::Constraint);
        assert_eq!(results[2].as_ref().unwrap().rows, 2);
        session.rollback().await.unwrap();
        session.rollback().await.unwrap();
        table
    });
    assert_eq!(table.rows, [[Some("1".to_owned())], [Some("2".to_owned())]]);
    let log = driver.log();
    let lines: Vec<_> =
        log.iter().map(|line| (line.began, line.ended, line.sql.as_str(), line.error)).collect();
    let update = "UPDATE t SET s = ? WHERE k = ?";
    assert_eq!(
        lines,
        [
            (0, 1, "BEGIN", None),
            (1, 4, update, None),
            (4, 7, update, Some(ErrorClass::Constraint)),
            (7, 8, "SELECT k FROM t", None),
            (8, 9, "ROLLBACK", None),
        ]
    );
    assert_eq!((log[1].session, log[1].params.join(" ")), (7, "5 x".to_owned()));
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let run = |seed, service| {
        let driver =
            SimDriver::new(SimulatedAnswers { seed, service, ..SimulatedAnswers::default() });
        let tasks = (0..3).map(|number| {
            let driver = &driver;
            async move {
                let mut session = driver.connect(number).await.unwrap();
                for _ in 0..1000 {
                    select(&mut session).await.unwrap();
                }
                now()
            }
        });
        Loop::new(Clock::Virtual, tasks).unwrap().finish().unwrap()
    };
    for service in [Service::Exponential(MS), Service::Uniform(0, 2 * MS)] {
        let first = run(1, service);
        assert_eq!(first, run(1, service));
        assert_ne!(first, run(2, service));
        assert!(first[0] != first[1] && first[1] != first[2]);
        // 1000 of mean 1 ms and standard deviation of at most 1 ms: five of its errors either way.
        assert!(first.iter().all(|end| (840 * MS..1160 * MS).contains(end)), "{first:?}");
    }
}

#[test]
fn a_bulk_load_takes_all_rows() {
    struct Three(u32);
    impl RowSource for Three {
        fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
            out.int(1);
            self.0 += 1;
            self.0 <= 3
        }
        fn restart(&mut self) {
            self.0 = 0;
        }
    }
    let (report, _) = simulate(SimulatedAnswers::default(), async |driver| {
        let mut session = driver.connect(0).await.unwrap();
        session.bulk_load("t", &["k"], &mut Three(0)).await.unwrap()
    });
    assert_eq!((report.rows, report.method), (3, BulkMethod::MultiRowInsert));
}

#[test]
fn scripts_find_what_other_drivers_have() {
    let script = SimulatedAnswers { rows: 2, keep_log: true, ..SimulatedAnswers::default() };
    let (lines, driver) = simulate(script, async |driver| {
        let mut session = driver.connect(0).await.unwrap();
        let mut transcript = Transcript::default();
        assert!(!session.is_in_transaction());
        session.execute_once("BEGIN", &[], &mut transcript).await.unwrap();
        assert!(session.is_in_transaction());
        let select = session.prepare("SELECT ?", &[ParamType::Inferred]).await.unwrap();
        session.queue(select, &[Param::Int(1)]).unwrap();
        session.queue_once("UPDATE t SET c = ?", &[Param::Text(b"x")]).unwrap();
        session.queue_sync().unwrap();
        session.queue_once("END", &[]).unwrap();
        let mut results = Vec::new();
        session.flush(&mut transcript, &mut results).await.unwrap();
        assert!(results.len() == 3 && results.iter().all(Result::is_ok));
        assert!(!session.is_in_transaction());
        transcript.take()
    });
    let rows = ["columns number", "row 1", "row 2", "done 2 rows"];
    assert_eq!(lines, [&["done"], &rows[..], &["done 1 changed", "done"]].concat());
    let log: Vec<_> = driver.log().into_iter().map(|logged| (logged.sql, logged.params)).collect();
    let statement = |sql: &str, params: &[&str]| {
        (sql.to_owned(), params.iter().map(|&param| param.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(
        log,
        [
            statement("BEGIN", &[]),
            statement("SELECT ?", &["1"]),
            statement("UPDATE t SET c = ?", &["x"]),
            statement("END", &[])
        ]
    );
}
