//! The transactions as a [`Workload`].
//!
//! - `inputs`: what terminals enter. `statements`: the texts. `link`: how they travel.
//! - `new_order`, `payment`, `order_status`, `delivery`, `stock_level`: one transaction each, the
//!   same code for both profiles and both flight modes.

mod delivery;
mod inputs;
mod link;
mod new_order;
mod order_status;
mod payment;
mod statements;
mod stock_level;

pub use link::FlightMode;
pub use new_order::OrderShown;

use crate::audit::{Audit, Counters, Expected};
use crate::books::Books;
use crate::ledger::{Counted, DistrictBooks, Ledger};
use crate::ledger_file::LedgerFile;
use crate::load::{Loaded, UTC};
use crate::log::{TransactionLog, WorkerLog};
use crate::profile::{Binding, Choice, Kind, Profile, ReadOnlyEnd};
use crate::random::{self, Constants, is_c_last_allowed};
use crate::{DISTRICTS, WAREHOUSES_MAX};
use dyno_core::{
    DbError, Dialect, Discard, Ended, Outcome, Rng, Session, Tally, TransactionId, TransactionKind,
    WorkerId, Workload,
};
use inputs::{
    DeliveryInput, NewOrderInput, OrderStatusInput, PaymentInput, StockLevelInput, Terminal, World,
};
use link::{Flight, Link};
use payment::Namesakes;
use statements::{Sql, Statements};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How isolated transactions are (clause 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// What the server has by itself.
    ServerDefault,
    /// READ COMMITTED, what papers use.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl Isolation {
    /// What a dialect gets unless told otherwise. MySQL's own default lets a Delivery meet an order
    /// for ever that another session has taken.
    pub fn usual(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Mysql => Isolation::ReadCommitted,
            Dialect::Postgres | Dialect::Sqlite => Isolation::ServerDefault,
        }
    }

    /// The name in SQL, for reports too; `None` for the server's own.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Isolation::ServerDefault => None,
            Isolation::ReadCommitted => Some("READ COMMITTED"),
            Isolation::RepeatableRead => Some("REPEATABLE READ"),
            Isolation::Serializable => Some("SERIALIZABLE"),
        }
    }
}

/// What is run on which part of the database.
#[derive(Clone, Debug, PartialEq)]
pub struct TpccOptions {
    /// The profile.
    pub profile: Profile,
    /// How statements travel.
    pub flight: FlightMode,
    /// Warehouses used: 1 to those loaded.
    pub warehouses: u32,
    /// The isolation; `None` is what is usual for the dialect.
    pub isolation: Option<Isolation>,
    /// Seed of what all terminals share: NURand's constants, who works where.
    pub seed: u64,
}

impl TpccOptions {
    /// A profile on all warehouses that are loaded, statement by statement.
    pub fn new(profile: Profile, loaded: &Loaded, seed: u64) -> Self {
        TpccOptions {
            profile,
            flight: FlightMode::Statement,
            warehouses: loaded.warehouses,
            isolation: None,
            seed,
        }
    }
}

/// Why a run can't be made, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TpccError(String);

impl fmt::Display for TpccError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TpccError {}

/// TPC-C on one database. Keeps the books of all that its workers have done.
#[derive(Debug)]
pub struct Tpcc {
    options: TpccOptions,
    isolation: Isolation,
    constants: Constants,
    world: World,
    kinds: Vec<TransactionKind>,
    /// Who works where; empty where workers work in turn.
    places: Vec<u32>,
    expected: Expected,
    ledger: Ledger,
    counters: Mutex<Counters>,
    log: Option<Arc<dyn TransactionLog>>,
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

/// What one worker keeps between transactions.
#[derive(Debug)]
pub struct Worker {
    terminal: Terminal,
    deck: Deck,
    statements: Statements,
    flight: Flight,
    names: Namesakes,
    input: Input,
    counters: Box<Counters>,
    shown: OrderShown,
    /// Districts without an order that its last transaction has met.
    skipped: u32,
    log: Option<WorkerLog>,
}

impl Worker {
    /// What its last New-Order that was committed has shown.
    pub fn shown(&self) -> OrderShown {
        self.shown
    }
}

/// The cards that a terminal has not played yet (clause 5.2.4.2).
#[derive(Debug, Default)]
struct Deck {
    cards: Vec<u8>,
    next: usize,
}

impl Deck {
    fn new(choice: &Choice) -> Self {
        let Choice::Deck(counts) = choice else { return Deck::default() };
        let kinds = counts.iter().zip(0_u8..);
        let cards: Vec<u8> =
            kinds.flat_map(|(&count, kind)| std::iter::repeat_n(kind, count as usize)).collect();
        Deck { next: cards.len(), cards }
    }

    #[inline]
    fn draw(&mut self, rng: &mut Rng) -> TransactionId {
        if self.next >= self.cards.len() {
            random::shuffle(&mut self.cards, rng);
            self.next = 0;
        }
        self.next += 1;
        usize::from(self.cards[self.next - 1])
    }
}

/// Throws dice of a hundred sides. BenchmarkSQL compares in this order; New-Order has the rest.
#[inline]
fn throw(weights: &[u32; 5], rng: &mut Rng) -> TransactionId {
    let mut left = rng.uniform(1, 100) as u32;
    for kind in [Kind::Payment, Kind::StockLevel, Kind::OrderStatus, Kind::Delivery] {
        let weight = weights[kind.index()];
        if left <= weight {
            return kind.index();
        }
        left -= weight;
    }
    Kind::NewOrder.index()
}

impl Tpcc {
    /// A run on a database that `loaded` describes, for sessions of `dialect`.
    ///
    /// # Errors
    /// When more warehouses are asked for than are loaded.
    pub fn new(options: TpccOptions, loaded: &Loaded, dialect: Dialect) -> Result<Self, TpccError> {
        let most = loaded.warehouses.min(WAREHOUSES_MAX);
        if !(1..=most).contains(&options.warehouses) {
            return Err(TpccError(format!(
                "A run can use 1 to {most} warehouses, because {most} are loaded, not {}.",
                options.warehouses
            )));
        }
        let mut rng = Rng::new(options.seed, "tpcc run", 0);
        let constants = Constants::for_run(loaded.c_last, &mut rng);
        debug_assert!(is_c_last_allowed(loaded.c_last, constants.c_last));
        let mut places = Vec::new();
        if options.profile.binding != Binding::Home {
            places = (0..options.warehouses * DISTRICTS).collect();
            random::shuffle(&mut places, &mut rng);
        }
        let shares = options.profile.choice.shares();
        let kinds = Kind::ALL.iter().zip(shares);
        Ok(Tpcc {
            isolation: options.isolation.unwrap_or(Isolation::usual(dialect)),
            constants,
            world: World::new(options.profile, options.warehouses, &constants),
            kinds: kinds
                .map(|(kind, weight)| TransactionKind { name: kind.name().to_owned(), weight })
                .collect(),
            places,
            expected: Expected::new(&options.profile, options.warehouses, &constants),
            ledger: Ledger::new(options.warehouses),
            counters: Mutex::new(Counters::default()),
            log: None,
            options,
        })
    }

    /// Tells `log` of each transaction that counts.
    pub fn with_log(self, log: Arc<dyn TransactionLog>) -> Self {
        Tpcc { log: Some(log), ..self }
    }

    /// The options of the run.
    pub fn options(&self) -> &TpccOptions {
        &self.options
    }

    /// NURand's constants of the run.
    pub fn constants(&self) -> Constants {
        self.constants
    }

    /// The isolation that sessions ask for.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Has every order recorded durably, from before its commit is sent.
    pub fn keep_ledger(&mut self, file: LedgerFile) {
        self.ledger.file = Some(file);
    }

    /// The durable ledger, to be closed when the run has ended.
    pub fn ledger_file(&self) -> Option<&LedgerFile> {
        self.ledger.file.as_ref()
    }

    /// What the database has acknowledged: new orders, payments and their amounts, in all.
    pub fn acknowledged(&self) -> DistrictBooks {
        self.ledger.total()
    }

    /// Orders delivered.
    pub fn delivered(&self) -> Counted {
        self.ledger.delivered()
    }

    /// Compares what the database holds beyond `before` with what it has acknowledged to this
    /// workload; returns a sentence for each difference. Nobody else may have written in between.
    pub fn reconcile(&self, before: &Books, after: &Books) -> Vec<String> {
        crate::books::reconcile(&self.ledger, before, after)
    }

    /// The audit of what the workers did that have left (see [`Workload::retire`]).
    pub fn audit(&self) -> Audit {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        self.expected.audit(&counters)
    }

    /// Brings a session into the state that the transactions want.
    async fn set_up<S: Session>(&self, session: &mut S) -> Result<Statements, DbError> {
        let mut settings = Vec::new();
        let dialect = session.dialect();
        if let Some(level) = self.isolation.name() {
            match dialect {
                Dialect::Mysql => {
                    settings.push(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
                }
                Dialect::Postgres => settings.push(format!(
                    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"
                )),
                // Its transactions are serializable.
                Dialect::Sqlite => {}
            }
        }
        if dialect == Dialect::Mysql {
            settings.push(UTC.to_owned());
            // Every statement begins a transaction where none is open: BEGIN costs no round trip.
            settings.push("SET SESSION autocommit = 0".to_owned());
        }
        for sql in settings {
            session.query(&sql, &mut Discard).await?;
        }
        Statements::prepare(session).await
    }

    /// The terminal of a worker.
    fn terminal(&self, id: WorkerId, rng: Rng) -> Terminal {
        let turn = id % (self.options.warehouses * DISTRICTS);
        let place = self.places.get(turn as usize).copied().unwrap_or(turn);
        Terminal {
            warehouse: i64::from(place / DISTRICTS) + 1,
            district: i64::from(place % DISTRICTS) + 1,
            rng,
        }
    }
}

impl Workload for Tpcc {
    type Worker = Worker;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        _workers: u32,
        rng: Rng,
    ) -> Result<Worker, DbError> {
        let statements = self.set_up(session).await?;
        let mut terminal = self.terminal(id, rng);
        let input = Input::StockLevel(terminal.stock_level(&self.world));
        Ok(Worker {
            terminal,
            deck: Deck::new(&self.options.profile.choice),
            statements,
            flight: Flight::new(),
            names: Namesakes::new(),
            input,
            counters: Box::default(),
            shown: OrderShown::default(),
            skipped: 0,
            log: self.log.as_ref().map(WorkerLog::new),
        })
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut Worker,
        session: &mut S,
    ) -> Result<(), DbError> {
        worker.statements = self.set_up(session).await?;
        Ok(())
    }

    #[inline]
    fn choose(&self, worker: &mut Worker) -> Option<TransactionId> {
        let rng = &mut worker.terminal.rng;
        Some(match &self.options.profile.choice {
            Choice::Weights(weights) => throw(weights, rng),
            Choice::Deck(_) => worker.deck.draw(rng),
        })
    }

    async fn run<S: Session>(
        &self,
        worker: &mut Worker,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        let kind = Kind::ALL[transaction];
        if attempt == 0 {
            worker.input = draw(&mut worker.terminal, &self.world, kind);
        }
        let Worker { statements, flight, names, input, counters, shown, skipped, .. } = worker;
        let buffers = (&*statements, flight);
        let mut link = Link::new(session, buffers, self.options.flight, tally, &self.ledger);
        let end = match self.options.profile.read_only_end {
            ReadOnlyEnd::Commit => Sql::Commit,
            ReadOnlyEnd::Rollback => Sql::Rollback,
        };
        *skipped = 0;
        let outcome = match &*input {
            Input::NewOrder(input) => new_order::run(&mut link, &self.world, input, shown).await,
            Input::Payment(input) => payment::run(&mut link, &self.world, input, names).await,
            Input::OrderStatus(input) => order_status::run(&mut link, input, names, end).await,
            Input::Delivery(input) => delivery::run(&mut link, input, skipped).await,
            Input::StockLevel(input) => stock_level::run(&mut link, input, end).await,
        }?;
        count(counters, &self.expected, input, outcome, *skipped);
        Ok(outcome)
    }

    #[inline]
    fn ended(&self, worker: &mut Worker, ended: &Ended) {
        if let Some(log) = &mut worker.log {
            log.note(ended, worker.skipped);
        }
    }

    fn retire(&self, worker: Worker, _error: Option<&DbError>) {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).add(&worker.counters);
    }
}

fn draw(terminal: &mut Terminal, world: &World, kind: Kind) -> Input {
    match kind {
        Kind::NewOrder => Input::NewOrder(terminal.new_order(world)),
        Kind::Payment => Input::Payment(terminal.payment(world)),
        Kind::OrderStatus => Input::OrderStatus(terminal.order_status(world)),
        Kind::Delivery => Input::Delivery(terminal.delivery(world)),
        Kind::StockLevel => Input::StockLevel(terminal.stock_level(world)),
    }
}

/// Notes what was done, for the audit.
#[inline]
fn count(
    counters: &mut Counters,
    expected: &Expected,
    input: &Input,
    outcome: Outcome,
    skipped: u32,
) {
    match input {
        Input::NewOrder(order) => {
            let is_rolled_back = outcome == Outcome::RolledBack;
            counters.order(expected, order.customer, is_rolled_back);
            let valid = order.count - usize::from(order.is_rolled_back);
            for line in &order.lines[..valid] {
                let is_remote = line.supply_warehouse != order.warehouse;
                counters.line(expected, line.item, is_remote);
            }
        }
        Input::Payment(payment) => {
            let is_remote = payment.customer_warehouse != payment.warehouse;
            counters.payment(is_remote);
            counters.customer(expected, &payment.who);
        }
        Input::OrderStatus(status) => {
            counters.order_status();
            counters.customer(expected, &status.who);
        }
        Input::Delivery(_) => counters.delivery(skipped),
        Input::StockLevel(_) => counters.stock_level(),
    }
}

pub(crate) use inputs::Who;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{BMSQL_5_0, SPEC};

    #[test]
    fn a_deck_deals_every_card_before_it_is_shuffled_again() {
        let mut rng = Rng::new(1, "deck", 0);
        let mut deck = Deck::new(&SPEC.choice);
        let mut hands = Vec::new();
        for _ in 0..50 {
            let hand: Vec<usize> = (0..23).map(|_| deck.draw(&mut rng)).collect();
            let count = |kind| hand.iter().filter(|&&card| card == kind).count();
            assert_eq!([0, 1, 2, 3, 4].map(count), [10, 10, 1, 1, 1]);
            hands.push(hand);
        }
        hands.sort();
        hands.dedup();
        assert_eq!(hands.len(), 50, "shuffled differently each time");
    }

    #[test]
    fn dice_follow_the_weights() {
        let mut rng = Rng::new(1, "dice", 0);
        let mut counts = [0; 5];
        for _ in 0..100_000 {
            counts[throw(&[45, 43, 4, 4, 4], &mut rng)] += 1;
        }
        for (count, weight) in counts.iter().zip([45, 43, 4, 4, 4]) {
            assert!((count - weight * 1_000_i32).abs() < 950, "{counts:?}");
        }
        assert_eq!(throw(&[100, 0, 0, 0, 0], &mut rng), 0);
        assert_eq!(throw(&[0, 0, 0, 100, 0], &mut rng), Kind::Delivery.index());
    }

    #[test]
    fn terminals_have_homes_without_repetition() {
        let loaded = Loaded { warehouses: 3, c_last: 100 };
        for profile in [BMSQL_5_0, SPEC] {
            let options = TpccOptions::new(profile, &loaded, 7);
            let tpcc = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap();
            let place = |id| {
                let terminal = tpcc.terminal(id, Rng::new(0, "", 0));
                (terminal.warehouse, terminal.district)
            };
            let mut places: Vec<(i64, i64)> = (0..30).map(place).collect();
            let is_in_order = places.is_sorted();
            assert_eq!(is_in_order, profile.binding == Binding::Home);
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 30);
            assert_eq!((places[0], places[29]), ((1, 1), (3, 10)));
            assert_eq!(place(30), place(0));
        }
    }

    #[test]
    fn only_loaded_warehouses_can_be_used() {
        let loaded = Loaded { warehouses: 3, c_last: 100 };
        for warehouses in [0, 4] {
            let options = TpccOptions { warehouses, ..TpccOptions::new(SPEC, &loaded, 7) };
            let error = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap_err();
            assert!(error.to_string().contains("3 are loaded"), "{error}");
        }
    }
}
