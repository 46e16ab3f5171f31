//! Terminals: more users than sessions, each with its own pauses.

use crate::support::{Lists, MS, check, closed, constant, try_run};
use dyno_core::{
    DbError, DeferredTransaction, Discard, EndedTransaction, ErrorClass, Nanos, Outcome, Rng,
    SECOND, Session, Tally, TerminalPlan, TransactionId, TransactionKind, WorkerId, Workload,
};
use dyno_engine::{
    Control, DriveError, ErrorPolicy, ErrorSet, TrialResult, TrialSpec, drive, drive_simulated,
};
use dyno_testkit::sim::{Fault, SimDriver};
use std::sync::Mutex;

/// A transaction.
#[derive(Clone, Copy, Debug)]
struct Executed {
    /// `None` of an errand.
    terminal: Option<u32>,
    /// The terminal's entry, or the errand's ticket.
    entered: u64,
    worker: u32,
    ended: EndedTransaction,
}

/// Users who wait `pause` (or up to twice that by chance) after each transaction. Every `errands`th
/// one leaves an errand.
struct Users {
    kinds: [TransactionKind; 2],
    first: fn(u32) -> Nanos,
    pause: fn(u32, &mut Rng) -> Nanos,
    errands: u64,
    stop: Option<(Nanos, Control)>,
    done: Mutex<Vec<Executed>>,
}

struct Seat {
    number: u32,
    transactions: u64,
    rng: Rng,
}

struct Worker {
    id: u32,
    seat: Option<Seat>,
    entered: u64,
    errand: Option<DeferredTransaction>,
}

impl Users {
    fn new(first: fn(u32) -> Nanos, pause: fn(u32, &mut Rng) -> Nanos) -> Self {
        Users {
            kinds: [("entered", 1), ("errand", 0)]
                .map(|(name, weight)| TransactionKind { name: name.to_owned(), weight }),
            first,
            pause,
            errands: u64::MAX,
            stop: None,
            done: Mutex::default(),
        }
    }
}

impl Workload for Users {
    type Worker = Worker;
    /// Empty while a worker holds it.
    type Terminal = Option<Seat>;

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    async fn open<S: Session>(
        &self,
        _session: &mut S,
        id: WorkerId,
        _workers: u32,
        _rng: Rng,
    ) -> Result<Worker, DbError> {
        Ok(Worker { id, seat: None, entered: 0, errand: None })
    }

    async fn reopen<S: Session>(&self, _: &mut Worker, _: &mut S) -> Result<(), DbError> {
        Ok(())
    }

    async fn run<S: Session>(
        &self,
        worker: &mut Worker,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        if let Some((at, control)) = &self.stop
            && dyno_reactor::now() >= *at
        {
            control.stop();
        }
        if let (0, Some(seat)) = (attempt, &mut worker.seat) {
            assert_eq!(transaction, 0);
            worker.entered = seat.rng.next_u64();
            seat.transactions += 1;
            worker.errand = (seat.transactions.is_multiple_of(self.errands))
                .then_some(DeferredTransaction { transaction: 1, ticket: worker.entered });
        }
        tally.count(session.query("SELECT 1", &mut Discard).await?);
        Ok(Outcome::Committed)
    }

    fn ended(&self, worker: &mut Worker, ended: &EndedTransaction) {
        let terminal = worker.seat.as_ref().map(|seat| seat.number);
        assert_eq!(terminal.is_none(), ended.transaction == 1);
        let executed =
            Executed { terminal, entered: worker.entered, worker: worker.id, ended: *ended };
        self.done.lock().unwrap().push(executed);
    }

    fn seat(&self, number: u32, rng: Rng) -> Option<(Option<Seat>, TerminalPlan)> {
        let plan = TerminalPlan { transaction: 0, pause: (self.first)(number) };
        Some((Some(Seat { number, transactions: 0, rng }), plan))
    }

    fn plan(&self, terminal: &mut Option<Seat>) -> TerminalPlan {
        let seat = terminal.as_mut().expect("it was given back");
        TerminalPlan { transaction: 0, pause: (self.pause)(seat.number, &mut seat.rng) }
    }

    fn swap(&self, worker: &mut Worker, terminal: &mut Option<Seat>) {
        std::mem::swap(&mut worker.seat, terminal);
        assert!(worker.seat.is_none() || terminal.is_none(), "two at one session");
    }

    fn errand(&self, worker: &mut Worker) -> Option<DeferredTransaction> {
        worker.errand.take()
    }

    fn take_errand(&self, worker: &mut Worker, ticket: u64, _left: Nanos) {
        assert!(worker.seat.is_none());
        worker.entered = ticket;
    }
}

fn spec(terminals: u32, sessions: u32, seconds: u64) -> TrialSpec {
    TrialSpec { terminals: Some(terminals), ..closed(sessions, seconds) }
}

/// Runs a trial, checks what always holds, and returns its transactions in order of their ends.
fn run(users: &Users, driver: &SimDriver, spec: &TrialSpec) -> (TrialResult, Vec<Executed>) {
    let control = Control::new();
    let control = users.stop.as_ref().map_or(&control, |(_, control)| control);
    let mut observer = crate::support::RecordedIntervals::default();
    let result = drive_simulated(users, driver, spec, control, &mut observer).expect("it begins");
    check(&result, &observer, spec);
    let executed = std::mem::take(&mut *users.done.lock().unwrap());
    no_terminal_overlaps_itself(&executed, spec.all_terminals().unwrap());
    (result, executed)
}

/// The jobs of each terminal, in order.
fn by_terminal(executed: &[Executed], terminals: u32) -> Vec<Vec<Executed>> {
    let mut jobs = vec![Vec::new(); terminals as usize];
    for one in executed {
        if let Some(terminal) = one.terminal {
            jobs[terminal as usize].push(*one);
        }
    }
    jobs
}

fn no_terminal_overlaps_itself(executed: &[Executed], terminals: u32) {
    for jobs in by_terminal(executed, terminals) {
        for pair in jobs.windows(2) {
            assert!(pair[0].ended.ended <= pair[1].ended.due, "{pair:?}");
        }
        assert!(jobs.iter().all(|one| one.ended.due <= one.ended.began));
    }
}

/// A late begin waited while all sessions were busy. A session that works is one of `executed`.
fn waits_only_for_busy_sessions(executed: &[Executed], sessions: usize) {
    for late in executed.iter().filter(|one| one.ended.began > one.ended.due) {
        for at in [late.ended.due, late.ended.began - 1] {
            let busy = executed.iter().filter(|one| one.ended.began <= at && at < one.ended.ended);
            assert_eq!(busy.count(), sessions, "{late:?}");
        }
    }
}

#[test]
fn due_times_are_kept_to_the_nanosecond() {
    // Terminal n begins after n x 10 ms + 1 ns, and again 70 ms + n ns after each end.
    let users = Users::new(
        |number| u64::from(number) * 10 * MS + 1,
        |number, _| 70 * MS + u64::from(number),
    );
    let (result, executed) = run(&users, &constant(2 * MS, vec![]), &spec(5, 5, 2));
    assert!(executed.iter().all(|one| one.ended.began == one.ended.due));
    for (number, jobs) in (0..).zip(by_terminal(&executed, 5)) {
        assert_eq!(jobs[0].ended.due, number * 10 * MS + 1);
        for pair in jobs.windows(2) {
            assert_eq!(pair[1].ended.due - pair[0].ended.ended, 70 * MS + number);
        }
        assert_eq!(jobs.len(), 28);
    }
    assert_eq!(result.total.lateness.unwrap().max(), 0);
    assert_eq!((result.offered, result.in_flight), (Some(140), 0));
}

#[test]
fn terminals_of_several_generators_enter_what_those_of_one_enter() {
    let users =
        || Users::new(|number| u64::from(number) * 3 * MS, |_, rng| MS + rng.uniform(0, 200 * MS));
    // Sessions enough: no one waits, wherever the terminal is.
    let full_spec = TrialSpec { seed: 77, ..spec(31, 31, 3) };
    let entered = |users: &Users, spec: &TrialSpec| {
        let (_, executed) = run(users, &constant(2 * MS, vec![]), spec);
        executed.into_iter().map(|one| (one.terminal, one.ended.due, one.entered)).collect()
    };
    let mut alone: Vec<_> = entered(&users(), &full_spec);
    let shared_users = users();
    let parts = (0..4).filter_map(|generator| full_spec.part(generator, 4));
    let mut together: Vec<_> = parts.flat_map(|part| entered(&shared_users, &part)).collect();
    alone.sort_unstable();
    together.sort_unstable();
    assert!(alone.len() > 500, "{}", alone.len());
    assert_eq!(together, alone);
}

#[test]
fn a_thousand_terminals_share_eight_sessions() {
    let users = Users::new(
        |number| u64::from(number) * 20 * MS,
        |_, rng| 5 * SECOND + rng.uniform(0, 20 * SECOND),
    );
    let (result, executed) = run(&users, &constant(80 * MS, vec![]), &spec(1_000, 8, 60));
    // 1,000 in 15 s need 5.4 of 8 sessions.
    waits_only_for_busy_sessions(&executed, 8);
    let late = executed.iter().filter(|one| one.ended.began > one.ended.due).count();
    assert!(late > 100, "{late}");
    assert!(by_terminal(&executed, 1_000).iter().all(|jobs| (2..=9).contains(&jobs.len())));
    assert_eq!(result.missed_rate(), None);
    assert_eq!(result.offered, Some(result.total.counts().started));
}

#[test]
fn latency_counts_from_the_due_time_when_sessions_are_few() {
    // 400 terminals in 1.01 s would be 396 a second; two sessions of 10 ms do 200.
    let users = Users::new(|number| u64::from(number) * 2 * MS, |_, _| SECOND);
    let (result, executed) = run(&users, &constant(10 * MS, vec![]), &spec(400, 2, 20));
    waits_only_for_busy_sessions(&executed, 2);
    assert_eq!(result.total.counts().committed, 20 * 200 - 2);
    // A cycle takes 2 s then: one of pause, one of waiting.
    let latency_ms = result.total.latency().percentile(50.0) / MS;
    assert!((980..1_020).contains(&latency_ms), "{latency_ms}");
    let service = result.total.service.as_ref().unwrap();
    assert!((10 * MS..=10 * MS + 10 * MS / 50).contains(&service.percentile(99.0)));
    // Those that wait at the end were requested and not done.
    let waiting = result.offered.unwrap() - result.total.counts().started;
    assert!((190..=200).contains(&waiting), "{waiting}");
    assert!(result.missed_rate().is_some());
    // First come, first served.
    let mut begins: Vec<_> = executed.iter().map(|one| (one.ended.began, one.ended.due)).collect();
    begins.sort_unstable();
    assert!(begins.is_sorted_by_key(|&(_, due)| due));
}

#[test]
fn thousands_that_wait_do_not_hold_up_the_end() {
    let users = Users::new(|_| 0, |_, _| MS);
    let (result, executed) = run(&users, &constant(3 * SECOND, vec![]), &spec(5_000, 4, 10));
    assert_eq!((executed.len(), result.in_flight, result.unfinished), (16, 4, 0));
    assert_eq!(result.offered, Some(5_000 + 12), "the twelve were due again");
    assert_eq!(result.length(), 10 * SECOND);
    let users = Users { stop: Some((6 * SECOND, Control::new())), ..users };
    let (result, _) = run(&users, &constant(3 * SECOND, vec![]), &spec(5_000, 4, 3_600));
    assert_eq!(result.ended, dyno_engine::TrialEnd::Interrupted);
    // Begun at 6 s, and let out within the drain of a stopped trial or cut.
    assert!(result.length() < 7 * SECOND && result.unfinished == 4, "{}", result.length());
}

#[test]
fn idle_sessions_leave_at_the_end() {
    // No one is due before the end.
    let users = Users::new(|_| 3_600 * SECOND, |_, _| MS);
    let (result, executed) = run(&users, &constant(MS, vec![]), &spec(100, 20, 5));
    assert_eq!((executed.len(), result.offered), (0, Some(0)));
    assert_eq!((&result.ended, result.length()), (&dyno_engine::TrialEnd::Time, 5 * SECOND));
    let none = run(&users, &constant(MS, vec![]), &spec(0, 2, 5)).0;
    assert_eq!((none.offered, none.length()), (Some(0), 5 * SECOND));
}

#[test]
fn an_earlier_job_goes_before_what_an_idle_session_waits_for() {
    // Terminal 0 is due in an hour; terminal 1 every 50 ms.
    let users =
        Users::new(|number| if number == 0 { 3_600 * SECOND } else { SECOND }, |_, _| 50 * MS);
    let (_, executed) = run(&users, &constant(MS, vec![]), &spec(2, 3, 2));
    assert_eq!(executed.len(), 20);
    assert!(executed.iter().all(|one| one.ended.began == one.ended.due));
}

#[test]
fn a_lost_session_holds_up_nobody() {
    let faults = vec![
        Fault::LostAt { at: 2 * SECOND + MS, session: Some(0) },
        Fault::LostAt { at: 2 * SECOND + MS, session: Some(1) },
        Fault::LostAt { at: 2 * SECOND + MS, session: Some(2) },
        Fault::RefuseConnects { from: 2 * SECOND, until: 8 * SECOND },
    ];
    // All begin at whole tenths of a second, a millisecond apart: one session is never enough.
    let users = Users::new(|number| u64::from(number) * MS, |_, _| 100 * MS);
    let (result, executed) = run(&users, &constant(2 * MS, faults), &spec(30, 4, 10));
    let counts = result.total.counts();
    assert_eq!((counts.failed, counts.reconnects), (3, 3));
    let failed: Vec<_> = executed
        .iter()
        .filter(|one| matches!(one.ended.outcome, Outcome::Failed(ErrorClass::ConnectionLost)))
        .collect();
    assert_eq!(failed.len(), 3);
    for lost in failed {
        // Its terminal continues after its pause, with a session that is left.
        let jobs = by_terminal(&executed, 30).swap_remove(lost.terminal.unwrap() as usize);
        let next = jobs.iter().find(|one| one.ended.due > lost.ended.ended).unwrap();
        assert_eq!(next.ended.due - lost.ended.ended, 100 * MS);
        assert!(next.worker != lost.worker && next.ended.began < next.ended.due + 50 * MS);
    }
    let meanwhile =
        executed.iter().filter(|one| (3 * SECOND..8 * SECOND).contains(&one.ended.began));
    let meanwhile: Vec<&Executed> = meanwhile.collect();
    assert!(meanwhile.len() > 1_000);
    assert!(meanwhile.iter().all(|one| one.worker == 3));
}

#[test]
fn a_retry_keeps_its_terminal() {
    let faults = vec![Fault::ErrorAt { statement: 7, class: ErrorClass::Deadlock }];
    let users = Users::new(u64::from, |_, _| 100 * MS);
    let (result, executed) = run(&users, &constant(MS, faults), &spec(4, 2, 1));
    let counts = result.total.counts();
    assert_eq!((counts.retries, counts.failed), (1, 0));
    let retried: Vec<_> = executed.iter().filter(|one| one.ended.attempts == 2).collect();
    assert_eq!(retried.len(), 1);
    let mut entered: Vec<_> = executed.iter().map(|one| one.entered).collect();
    entered.sort_unstable();
    entered.dedup();
    assert_eq!(entered.len(), executed.len());
}

#[test]
fn terminals_of_workers_that_leave_go_on() {
    let retire = ErrorPolicy {
        retry: ErrorSet::default(),
        tolerate: ErrorSet::default(),
        retire: true,
        ..ErrorPolicy::resilient()
    };
    let faults = [5, 10, 15]
        .map(|statement| Fault::ErrorAt { statement, class: ErrorClass::Deadlock })
        .into();
    // The session that is busy first meets the error, then the next one, until none is left.
    let users = Users::new(|number| u64::from(number) * 10 * MS, |_, _| 20 * MS);
    let spec = TrialSpec { errors: retire, ..spec(2, 3, 3_600) };
    let (result, executed) = run(&users, &constant(MS, faults), &spec);
    assert_eq!((result.retired, result.total.counts().failed), (3, 3));
    // Statements count from 0.
    assert_eq!(executed.len(), 16 - 3, "what a worker leaves with isn't told");
    let counts: Vec<_> = by_terminal(&executed, 2).iter().map(Vec::len).collect();
    assert!(counts.iter().all(|&count| count >= 5), "{counts:?}");
}

#[test]
fn errands_are_due_at_once_and_executed_for_nobody() {
    let users = Users { errands: 3, ..Users::new(|n| u64::from(n) * 7 * MS, |_, _| 90 * MS) };
    let (result, executed) = run(&users, &constant(4 * MS, vec![]), &spec(10, 2, 10));
    waits_only_for_busy_sessions(&executed, 2);
    let (errands, entered): (Vec<&Executed>, Vec<&Executed>) =
        executed.iter().partition(|one| one.terminal.is_none());
    assert!(errands.len() >= entered.len() / 3 - 5, "{} of {}", errands.len(), entered.len());
    for errand in errands {
        let origin = entered.iter().find(|one| one.entered == errand.entered).expect("who left it");
        assert_eq!(errand.ended.due, origin.ended.ended);
    }
    let errands = &result.total.kinds[1].counts;
    assert!(errands.committed > 100 && errands.started == errands.committed, "{errands:?}");
}

#[test]
fn errands_are_none_of_the_wanted_transactions() {
    let users = Users { errands: 3, ..Users::new(|n| u64::from(n) * 7 * MS, |_, _| 90 * MS) };
    let spec = TrialSpec { duration: None, events: Some(60), ..spec(10, 2, 1) };
    let (result, executed) = run(&users, &constant(4 * MS, vec![]), &spec);
    let [entered, errands] = &result.total.kinds[..] else { panic!("two kinds") };
    assert_eq!((entered.counts.started, entered.counts.committed), (60, 60));
    assert!((15..=20).contains(&errands.counts.committed), "{:?}", errands.counts);
    assert_eq!(executed.len() as u64, 60 + errands.counts.committed);
    assert_eq!(result.ended, dyno_engine::TrialEnd::Events);
}

/// The entries of each terminal.
fn entered(executed: &[Executed], terminals: u32) -> Vec<Vec<u64>> {
    let jobs_by_terminal = by_terminal(executed, terminals);
    jobs_by_terminal.into_iter().map(|jobs| jobs.iter().map(|one| one.entered).collect()).collect()
}

/// Returns true if the lists agree as far as both of them go.
fn agree(left: &[Vec<u64>], right: &[Vec<u64>]) -> bool {
    let mut pairs = left.iter().zip(right);
    pairs.all(|(left, right)| left.iter().zip(right).all(|(left, right)| left == right))
}

#[test]
fn what_a_terminal_enters_depends_on_its_number_only() {
    let users = Users::new(|n| u64::from(n) * MS, |_, rng| rng.uniform(50 * MS, 100 * MS));
    let slow = entered(&run(&users, &constant(9 * MS, vec![]), &spec(40, 2, 5)).1, 40);
    let many = entered(&run(&users, &constant(MS, vec![]), &spec(40, 40, 5)).1, 40);
    assert!(slow.iter().all(|jobs| jobs.len() > 5) && agree(&slow, &many));
    let other_spec = TrialSpec { seed: 2, ..spec(40, 40, 5) };
    let other_entries = entered(&run(&users, &constant(MS, vec![]), &other_spec).1, 40);
    assert!(!agree(&other_entries, &many));
    // Several loops on the real clock: however long it takes.
    let users = Users::new(|_| 0, |_, rng| rng.uniform(50 * MS, 100 * MS));
    for (sessions, loops) in [(3, 3), (5, 2), (60, 7)] {
        let spec = TrialSpec {
            loops: Some(loops),
            duration: None,
            events: Some(400),
            ..spec(40, sessions, 1)
        };
        let result = drive(&users, &constant(1, vec![]), &spec, &Control::new(), &mut ()).unwrap();
        assert_eq!(result.total.counts().committed, 400);
        assert_eq!(result.offered, Some(400));
        let executed = std::mem::take(&mut *users.done.lock().unwrap());
        let real = entered(&executed, 40);
        assert_eq!(real.iter().map(Vec::len).sum::<usize>(), 400);
        assert!(agree(&real, &many), "{sessions} sessions on {loops} loops");
    }
}

#[test]
fn warm_up_is_not_offered() {
    let users = Users::new(|number| u64::from(number) * MS, |_, _| 99 * MS);
    let spec = TrialSpec { warmup: 3 * SECOND, ..spec(50, 10, 2) };
    let (result, _) = run(&users, &constant(MS, vec![]), &spec);
    assert_eq!(result.offered, Some(1_000));
    assert_eq!(result.total.counts().committed, 1_000);
}

#[test]
fn a_workload_without_terminals_says_so() {
    let spec = spec(10, 2, 1);
    let driver = constant(MS, vec![]);
    let (result, _) = try_run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec, &Control::new());
    let Err(DriveError::Connect(error)) = result else { panic!("{result:?}") };
    assert!(error.message().contains("no terminals"), "{error}");
}

#[test]
fn waits_do_not_depend_on_the_number_of_loops() {
    // 16 sessions of 80 ms do 200 a second; 3,000 terminals ask for 180.
    let late = |loops: u32| {
        let users = Users::new(
            |number| u64::from(number) * 5 * MS,
            |_, rng| 10 * SECOND + rng.uniform(0, 13 * SECOND),
        );
        let spec = TrialSpec { loops: Some(loops), ..spec(3_000, 16, 60) };
        let (result, executed) = run(&users, &constant(80 * MS, vec![]), &spec);
        waits_only_for_busy_sessions(&executed, 16);
        assert_eq!(result.missed_rate(), None);
        let lateness = result.total.lateness.unwrap();
        assert!(lateness.max() > 0);
        (result.offered, lateness)
    };
    let alone = late(1);
    for loops in [4, 16] {
        assert!(late(loops) == alone, "{loops} loops");
    }
}
