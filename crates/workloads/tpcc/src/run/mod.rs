//! The transactions as a [`Workload`].
//!
//! - `terminal`: what terminals enter, what they do in between, and when. `link`: the statements, and how they travel.
//! - `transactions`: the same code for both profiles.

mod link;
mod terminal;
mod transactions;

pub use link::prepared_statements;
pub(crate) use terminal::Pacing;
pub use terminal::Terminal;

use crate::audit::{Audit, Counters, Expected};
use crate::facts::{PauseFacts, TpccFacts};
use crate::ledger::{DistrictBooks, Ledger, LedgerFile};
use crate::load::{TpccDatabase, UTC};
use crate::options::{Isolation, TpccOptions};
use crate::profile::{Binding, DeliveryMode, PerKind, TpccTransaction};
use crate::settle::Books;
use crate::values::{self, Constants, is_c_last_allowed};
use crate::{DISTRICTS, WAREHOUSES_MAX};
use dyno_core::{
    DbError, DeferredTransaction, Dialect, Discard, EndedTransaction, FlightAnswers, Nanos,
    Outcome, Rng, SECOND, Session, ShardMap, Tally, TerminalPlan, TransactionId, TransactionKind,
    WorkerId, Workload,
};
use dyno_facts::Message;
use dyno_runner::failure::Failure;
use link::{FLIGHT_LENGTH, Link, Sql, Statements};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terminal::{
    DeliveryInput, NewOrderInput, OrderStatusInput, PaymentInput, StockLevelInput, World,
    note_pause,
};
use transactions::Namesakes;

/// The deferred part of a Delivery as a transaction of the workload.
const DEFERRED: TransactionId = TpccTransaction::ALL.len();

/// TPC-C on one database. Keeps the books of all that its workers have done.
#[derive(Debug)]
pub struct Tpcc {
    pub options: TpccOptions,
    /// The isolation that sessions ask for.
    pub isolation: Isolation,
    pub constants: Constants,
    world: World,
    kinds: Vec<TransactionKind>,
    /// Places of the terminals; empty if workers work in turn.
    places: Vec<u32>,
    expected: Expected,
    pacing: Pacing,
    ledger: Ledger,
    counters: Mutex<Counters>,
    log: Option<Arc<dyn TerminalLog>>,
    /// Deliveries that terminals have queued, and those that were executed.
    queued: AtomicU64,
    executed: AtomicU64,
}

/// The input data of the transaction that a worker is at, for its retries.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one; a box would be made per order")]
enum Input {
    NewOrder(NewOrderInput),
    Payment(PaymentInput),
    OrderStatus(OrderStatusInput),
    Delivery(DeliveryInput),
    StockLevel(StockLevelInput),
}

#[derive(Debug)]
pub struct TpccWorker {
    /// Its own, or the one that it works for.
    terminal: Terminal,
    is_seated: bool,
    /// A Delivery that its terminal has queued.
    errand: Option<DeferredTransaction>,
    statements: Statements,
    flight: FlightAnswers,
    names: Namesakes,
    input: Input,
    counters: Box<Counters>,
    /// Districts without an order that its last transaction has met.
    skipped: u32,
    log: Option<WorkerLog>,
}

impl Tpcc {
    /// A run on a database that `loaded` describes, for sessions of `dialect`.
    pub fn new(
        options: TpccOptions,
        loaded: &TpccDatabase,
        dialect: Dialect,
    ) -> Result<Self, String> {
        let max_warehouses = loaded.warehouses.min(WAREHOUSES_MAX);
        if !(1..=max_warehouses).contains(&options.warehouses) {
            return Err(format!(
                "A run can use 1 to {max_warehouses} warehouses, because {max_warehouses} are loaded, not {}.",
                options.warehouses
            ));
        }
        let mut rng = Rng::new(options.seed, "tpcc run", 0);
        let constants = Constants::for_run(loaded.c_last, &mut rng);
        debug_assert!(is_c_last_allowed(loaded.c_last, constants.c_last));
        let is_shuffled = options.profile.binding != Binding::Home;
        let end = if is_shuffled { options.warehouses * DISTRICTS } else { 0 };
        let mut places: Vec<u32> = (0..end).collect();
        values::shuffle(&mut places, &mut rng);
        let shares = TpccTransaction::ALL.iter().zip(options.profile.choice.shares());
        let kinds = shares.map(|(&transaction, weight)| TransactionKind {
            name: transaction.name().to_owned(),
            weight,
        });
        let mut kinds: Vec<_> = kinds.collect();
        if options.profile.delivery == DeliveryMode::Deferred {
            kinds.push(TransactionKind { name: TpccFacts::DEFERRED.to_owned(), weight: 0 });
        }
        Ok(Tpcc {
            isolation: options
                .isolation
                .filter(|_| dialect != Dialect::Sqlite)
                .unwrap_or(Isolation::usual(dialect)),
            constants,
            world: World::new(options.profile, options.warehouses, &constants),
            kinds,
            places,
            expected: Expected::new(&options.profile, options.warehouses, &constants),
            pacing: Pacing::new(&options),
            ledger: Ledger::new(options.warehouses),
            counters: Mutex::new(Counters::default()),
            log: None,
            queued: AtomicU64::new(0),
            executed: AtomicU64::new(0),
            options,
        })
    }

    /// Tells `log` of each transaction that counts.
    pub fn with_log(self, log: Arc<dyn TerminalLog>) -> Self {
        Tpcc { log: Some(log), ..self }
    }

    /// Records every order in `file`, from before its commit is sent.
    pub fn with_ledger(mut self, file: impl Into<Option<LedgerFile>>) -> Self {
        self.ledger.file = file.into();
        self
    }

    /// Knows how warehouses lie on shards: what has rows on several of them is counted, and recorded in the
    /// ledger if there is one.
    pub fn with_shards(mut self, map: ShardMap) -> Self {
        self.ledger.shards = Some(map);
        self
    }

    /// The durable ledger, to be closed when the run has ended.
    pub fn ledger_file(&self) -> Option<&LedgerFile> {
        self.ledger.file.as_ref()
    }

    /// Acknowledged work: new orders, payments and their amounts, in all.
    pub fn acknowledged(&self) -> DistrictBooks {
        self.ledger.total()
    }

    /// New-Orders and Payments that were acknowledged so far, of some warehouses.
    pub(crate) fn acknowledged_at(&self, is_wanted: impl Fn(u32) -> bool) -> u64 {
        let districts = (0..).zip(self.ledger.districts());
        let selected = districts.filter(|(index, _)| is_wanted(index / DISTRICTS + 1));
        selected.map(|(_, books)| books.orders.acknowledged + books.payments.acknowledged).sum()
    }

    /// Deliveries that terminals have queued and that were not executed to an end, well or ill.
    /// After a trial: what was left over when it ended.
    pub fn deliveries_left(&self) -> u64 {
        // In this order: a Delivery is queued before it is executed.
        let executed = self.executed.load(Ordering::Relaxed);
        self.queued.load(Ordering::Relaxed).saturating_sub(executed)
    }

    /// Compares what the database holds beyond `before` with what it has acknowledged to this
    /// workload; returns a sentence for each difference. No one else may have written in between.
    pub fn reconcile(&self, before: &Books, after: &Books) -> Vec<Message> {
        crate::settle::reconcile(&self.ledger, before, after)
    }

    /// The pauses of terminals around each kind of the mix, in the measured window; `None` if they make none.
    pub fn pauses(&self) -> Option<PerKind<PauseFacts>> {
        let clause = self.options.profile.pacing?;
        let counters = self.lock_counters();
        let mean_s =
            |[number, sum_ns]: [u64; 2]| sum_ns as f64 / SECOND as f64 / number.max(1) as f64;
        let kinds = std::array::from_fn(|kind| {
            let ([thinks, keyings], clause) = (counters.pauses[kind], clause[kind]);
            PauseFacts {
                thinks: thinks[0],
                think_s: mean_s(thinks),
                think_clause_s: clause.think_mean_s,
                keyings: keyings[0],
                keying_s: mean_s(keyings),
                keying_clause_s: clause.keying_s,
            }
        });
        Some(kinds)
    }

    pub(crate) fn lock_counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The audit of what the workers did that have left (see [`Workload::retire`]).
    pub fn audit(&self) -> Audit {
        self.expected.audit(&self.lock_counters())
    }

    /// Brings a session into the state that the transactions want.
    async fn set_up<S: Session>(&self, session: &mut S) -> Result<Statements, DbError> {
        let mut settings = Vec::new();
        match (session.dialect(), self.isolation.name()) {
            (Dialect::Mysql, level) => {
                let level = level.map(|it| format!("SET SESSION TRANSACTION ISOLATION LEVEL {it}"));
                settings.extend(level);
                // A statement begins a transaction if none is open: BEGIN costs no round trip.
                settings.extend([UTC, "SET SESSION autocommit = 0"].map(str::to_owned));
            }
            (Dialect::Postgres, Some(level)) => settings.push(format!(
                "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"
            )),
            // SQLite's transactions are serializable.
            _ => {}
        }
        for sql in settings {
            session.query(&sql, &mut Discard).await?;
        }
        Statements::prepare(session).await
    }

    /// The number of shards that warehouses lie on; `None` if unknown.
    pub(crate) fn shards(&self) -> Option<u32> {
        let map = self.ledger.shards.as_ref()?;
        let used: BTreeSet<usize> =
            (1..=self.options.warehouses).map(|warehouse| map.shard_of(warehouse)).collect();
        Some(used.len() as u32)
    }

    fn new_terminal(&self, id: WorkerId, rng: Rng) -> Terminal {
        let turn = id % (self.options.warehouses * DISTRICTS);
        let place = self.places.get(turn as usize).copied().unwrap_or(turn);
        let (warehouse, district) = (place / DISTRICTS + 1, place % DISTRICTS + 1);
        Terminal::new(i64::from(warehouse), i64::from(district), rng)
    }

    /// The terminal's part of a deferred Delivery: over as soon as it is queued (clause 2.7.2.3).
    fn queue_delivery(&self, worker: &mut TpccWorker) -> Outcome {
        if let Input::Delivery(input) = &worker.input {
            worker.errand =
                Some(DeferredTransaction { transaction: DEFERRED, ticket: input.ticket() });
            self.queued.fetch_add(1, Ordering::Relaxed);
        }
        Outcome::Committed
    }
}

impl Workload for Tpcc {
    type Worker = TpccWorker;
    type Terminal = Terminal;

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn rows_touched(&self) -> Option<u64> {
        Some(2 * 20 * 15) // Stock-Level: the lines of 20 orders, and their stock.
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        _workers: u32,
        rng: Rng,
    ) -> Result<TpccWorker, DbError> {
        let statements = self.set_up(session).await?;
        let mut terminal = self.new_terminal(id, rng);
        let input = Input::StockLevel(terminal.stock_level(&self.world));
        Ok(TpccWorker {
            terminal,
            is_seated: false,
            errand: None,
            statements,
            flight: Vec::with_capacity(FLIGHT_LENGTH),
            names: Namesakes::new(),
            input,
            counters: Box::default(),
            skipped: 0,
            log: self.log.as_ref().map(WorkerLog::new),
        })
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut TpccWorker,
        session: &mut S,
    ) -> Result<(), DbError> {
        worker.statements = self.set_up(session).await?;
        Ok(())
    }

    #[inline]
    fn choose(&self, worker: &mut TpccWorker) -> Option<TransactionId> {
        Some(self.pacing.choose(&mut worker.terminal))
    }

    async fn run<S: Session>(
        &self,
        worker: &mut TpccWorker,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        worker.skipped = 0;
        if let Some(&kind) = TpccTransaction::ALL.get(transaction) {
            if attempt == 0 {
                worker.counters.count_begin(kind);
                worker.input = draw_input(&mut worker.terminal, &self.world, kind);
            }
            if kind == TpccTransaction::Delivery && worker.is_seated && self.kinds.len() > DEFERRED
            {
                return Ok(self.queue_delivery(worker));
            }
        }
        let TpccWorker { statements, flight, names, input, counters, skipped, .. } = worker;
        let buffers = (&*statements, flight);
        let mut link = Link::new(session, buffers, tally, &self.ledger);
        let end = if self.options.profile.rolls_back_reads { Sql::Rollback } else { Sql::Commit };
        let outcome = match &*input {
            Input::NewOrder(input) => transactions::new_order(&mut link, input).await,
            Input::Payment(input) => transactions::payment(&mut link, input, names).await,
            Input::OrderStatus(input) => {
                transactions::order_status(&mut link, input, names, end).await
            }
            Input::Delivery(input) => {
                *skipped = transactions::delivery(&mut link, input).await?;
                counters.count_delivery(*skipped);
                Ok(Outcome::Committed)
            }
            Input::StockLevel(input) => transactions::stock_level(&mut link, input, end).await,
        }?;
        if transaction != DEFERRED {
            count(counters, (&self.expected, self.ledger.shards.as_ref()), input, outcome);
        }
        Ok(outcome)
    }

    #[inline]
    fn ended(&self, worker: &mut TpccWorker, ended: &EndedTransaction) {
        if let Some(log) = &mut worker.log {
            log.record_end(ended, worker.skipped);
        }
        if worker.is_seated {
            note_pause(&mut worker.counters, &mut worker.terminal, ended);
        }
        if ended.transaction == DEFERRED {
            self.executed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn seat(&self, terminal: u32, rng: Rng) -> Option<(Terminal, TerminalPlan)> {
        let mut terminal = self.new_terminal(terminal, rng);
        let first = self.pacing.first(&mut terminal);
        Some((terminal, first))
    }

    #[inline]
    fn plan(&self, terminal: &mut Terminal) -> TerminalPlan {
        self.pacing.plan(terminal)
    }

    #[inline]
    fn swap(&self, worker: &mut TpccWorker, terminal: &mut Terminal) {
        std::mem::swap(&mut worker.terminal, terminal);
        worker.is_seated = !worker.is_seated;
    }

    #[inline]
    fn errand(&self, worker: &mut TpccWorker) -> Option<DeferredTransaction> {
        worker.errand.take()
    }

    #[inline]
    fn take_errand(&self, worker: &mut TpccWorker, ticket: u64, _left: Nanos) {
        worker.input = Input::Delivery(DeliveryInput::from_ticket(ticket));
    }

    fn retire(&self, worker: TpccWorker, _error: Option<&DbError>) {
        self.lock_counters().add(*worker.counters);
    }
}

fn draw_input(terminal: &mut Terminal, world: &World, kind: TpccTransaction) -> Input {
    match kind {
        TpccTransaction::NewOrder => Input::NewOrder(terminal.new_order(world)),
        TpccTransaction::Payment => Input::Payment(terminal.payment(world)),
        TpccTransaction::OrderStatus => Input::OrderStatus(terminal.order_status(world)),
        TpccTransaction::Delivery => Input::Delivery(terminal.delivery(world)),
        TpccTransaction::StockLevel => Input::StockLevel(terminal.stock_level(world)),
    }
}

/// Notes what was done, for the audit.
#[inline]
fn count(
    counters: &mut Counters,
    (expected, map): (&Expected, Option<&ShardMap>),
    input: &Input,
    outcome: Outcome,
) {
    match input {
        Input::NewOrder(order) => {
            let is_rolled_back = outcome == Outcome::RolledBack;
            counters.count_order(expected, order.customer, is_rolled_back);
            let valid = &order.lines[..order.count - usize::from(order.is_rolled_back)];
            for line in valid {
                let is_remote = line.supply_warehouse != order.warehouse;
                counters.count_line(expected, line.item, is_remote);
            }
            if let (Outcome::Committed, Some(map)) = (outcome, map) {
                let mut suppliers = valid.iter().map(|line| line.supply_warehouse);
                counters.spread(suppliers.any(|other| crosses_shards(map, order.warehouse, other)));
            }
        }
        Input::Payment(payment) => {
            let is_remote = payment.customer_warehouse != payment.warehouse;
            counters.count_payment(is_remote);
            if let Some(map) = map {
                counters.spread(crosses_shards(map, payment.warehouse, payment.customer_warehouse));
            }
            counters.count_customer(expected, &payment.who);
        }
        Input::OrderStatus(status) => counters.count_customer(expected, &status.who),
        Input::Delivery(_) | Input::StockLevel(_) => {}
    }
}

/// Returns true if two warehouses lie on different shards.
#[inline]
fn crosses_shards(map: &ShardMap, home: i64, other: i64) -> bool {
    map.shard_of(home as u64) != map.shard_of(other as u64)
}

/// The part that one of several load generators adds to its workload's facts, besides the engine's measurements: its
/// side of the books, and what it has executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// The districts in which something was acknowledged or is unknown, by index.
    districts: Vec<(u32, DistrictBooks)>,
    counters: Counters,
    queued: u64,
    executed: u64,
    /// Its ledger's notes of commits, if there is one.
    ledger: String,
}

impl Tpcc {
    /// The facts that this workload has kept, after its trial.
    pub fn leave(&self) -> Result<Handover, Failure> {
        let districts = (0..).zip(self.ledger.districts());
        Ok(Handover {
            districts: districts.filter(|(_, books)| *books != DistrictBooks::default()).collect(),
            counters: self.lock_counters().clone(),
            queued: self.queued.load(Ordering::Relaxed),
            executed: self.executed.load(Ordering::Relaxed),
            ledger: self.ledger_file().map(LedgerFile::steps).transpose()?.unwrap_or_default(),
        })
    }

    /// Adds what the workload of another load generator has left, as if its workers had been this
    /// one's.
    ///
    /// # Errors
    /// When it used more warehouses than this one, or its ledger can't be added to this one's; nothing is added then.
    pub fn absorb(&self, left: Handover) -> Result<(), Failure> {
        let districts = self.ledger.districts().count();
        if left.districts.iter().any(|(index, _)| *index as usize >= districts) {
            let problem = "Another load generator has used more warehouses than this run.";
            return Err(Failure::new(problem));
        }
        self.ledger_file().map_or(Ok(()), |file| file.absorb(&left.ledger))?;
        for (index, books) in &left.districts {
            self.ledger.absorb(*index as usize, books);
        }
        self.lock_counters().add(left.counters);
        self.queued.fetch_add(left.queued, Ordering::Relaxed);
        self.executed.fetch_add(left.executed, Ordering::Relaxed);
        Ok(())
    }
}

/// One transaction that ended inside the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its kind, an index into the workload's transactions.
    pub transaction: TransactionId,
    pub outcome: Outcome,
    /// Districts that a Delivery found without an order; 0 of other kinds.
    pub skipped: u32,
    /// When it was due; without a schedule the same as `began`.
    pub due: Nanos,
    /// When its first attempt began.
    pub began: Nanos,
    /// When its last attempt was answered.
    pub ended: Nanos,
}

/// Takes what workers have noted, from many threads.
pub trait TerminalLog: fmt::Debug + Send + Sync {
    /// Takes all entries out of `entries`, which are one worker's in the order of their ends, and
    /// leaves its capacity. Must not wait for a disk: a loop calls it.
    fn take(&self, entries: &mut Vec<LogEntry>);
}

/// Entries that a worker hands over at once.
const BLOCK: usize = 128;
/// Longest time for which an entry waits for others of its worker.
const AGE_MAX: Nanos = SECOND;

/// Notes of one worker that are not yet handed over. Hands them over when it is dropped.
#[derive(Debug)]
struct WorkerLog {
    log: Arc<dyn TerminalLog>,
    entries: Vec<LogEntry>,
    handed_over: Nanos,
}

impl WorkerLog {
    fn new(log: &Arc<dyn TerminalLog>) -> Self {
        WorkerLog { log: Arc::clone(log), entries: Vec::with_capacity(BLOCK), handed_over: 0 }
    }

    #[inline]
    fn record_end(&mut self, ended: &EndedTransaction, skipped: u32) {
        if !ended.is_measured || ended.outcome == Outcome::Skipped {
            return;
        }
        let &EndedTransaction { transaction, outcome, due, began, ended, .. } = ended;
        self.entries.push(LogEntry { transaction, outcome, skipped, due, began, ended });
        if self.entries.len() == BLOCK || ended.saturating_sub(self.handed_over) > AGE_MAX {
            self.log.take(&mut self.entries);
            self.handed_over = ended;
        }
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        if !self.entries.is_empty() {
            self.log.take(&mut self.entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{BMSQL_5_0, SPEC};

    #[test]
    fn terminals_have_homes_without_repetition() {
        let loaded = TpccDatabase { warehouses: 3, c_last: 100 };
        for profile in [BMSQL_5_0, SPEC] {
            let options = TpccOptions::new(profile, &loaded, 7);
            let tpcc = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap();
            let places = (0..=30).map(|id| {
                let terminal = tpcc.new_terminal(id, Rng::new(0, "", 0));
                (terminal.warehouse, terminal.district)
            });
            let mut places: Vec<(i64, i64)> = places.collect();
            assert_eq!(places.pop().unwrap(), places[0], "the last one begins again");
            let is_in_order = places.is_sorted();
            assert_eq!(is_in_order, profile.binding == Binding::Home);
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 30);
            assert_eq!((places[0], places[29]), ((1, 1), (3, 10)));
        }
    }

    #[test]
    fn only_loaded_warehouses_can_be_used() {
        let loaded = TpccDatabase { warehouses: 3, c_last: 100 };
        for warehouses in [0, 4] {
            let options = TpccOptions { warehouses, ..TpccOptions::new(SPEC, &loaded, 7) };
            let error = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap_err();
            assert!(error.contains("3 are loaded"), "{error}");
        }
    }

    #[derive(Debug, Default)]
    struct Blocks(Mutex<Vec<Vec<LogEntry>>>);

    impl TerminalLog for Blocks {
        fn take(&self, entries: &mut Vec<LogEntry>) {
            self.0.lock().unwrap().push(std::mem::replace(entries, Vec::with_capacity(BLOCK)));
        }
    }

    fn entry_at(at: Nanos) -> EndedTransaction {
        EndedTransaction {
            transaction: 1,
            outcome: Outcome::Committed,
            due: at - 3,
            began: at - 2,
            ended: at,
            attempts: 1,
            is_measured: true,
        }
    }

    fn record_blocks(ends: impl IntoIterator<Item = EndedTransaction>) -> Vec<usize> {
        let blocks = Arc::new(Blocks::default());
        let mut worker = WorkerLog::new(&(blocks.clone() as Arc<dyn TerminalLog>));
        ends.into_iter().for_each(|ended| worker.record_end(&ended, 0));
        drop(worker);
        let blocks = blocks.0.lock().unwrap();
        blocks.iter().map(Vec::len).collect()
    }

    #[test]
    fn entries_are_handed_over_in_blocks_and_the_rest_at_the_end() {
        let ends = (0..300).map(|number| entry_at(10 + number));
        assert_eq!(record_blocks(ends), [128, 128, 44]);
        assert_eq!(record_blocks([]), [0; 0]);
    }

    #[test]
    fn a_slow_worker_is_not_a_second_behind() {
        let ends = [0, 4, 8, 12, 13].map(|tenths| entry_at(SECOND / 2 + tenths * SECOND / 10));
        assert_eq!(record_blocks(ends), [3, 2]);
    }

    #[test]
    fn only_what_counts_is_noted() {
        let late = EndedTransaction { is_measured: false, ..entry_at(10) };
        let skipped = EndedTransaction { outcome: Outcome::Skipped, ..entry_at(10) };
        assert_eq!(record_blocks([late, skipped, entry_at(10)]), [1]);
    }
}
