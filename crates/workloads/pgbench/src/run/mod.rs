//! Scripts as a [`Workload`].
//!
//! A client keeps its variables, its random stream and its buffers from transaction to
//! transaction; after that they have grown, nothing is allocated and nothing is locked. Variables are
//! numbers, expressions are compiled, statements are cut at their variables: all of that is done
//! when the workload is made.

mod client;
mod execute;
mod options;
mod send;
mod statistics;
mod trace;

pub use client::Client;
pub use options::{
    Part, PgbenchOptions, Talk, Talker, ThreadLog, TransactionLogger, VerboseErrors,
};
pub use statistics::{CommandStatistics, Latency, ScriptStatistics, Statistics};
pub use trace::server_text;

use crate::check::{Journal, history_variables};
use crate::random::{PgRng, Seeds};
use crate::script::{Action, Names, Op, Script, is_variable_name};
use dyno_core::{
    DbError, Dialect, Discard, EndedTransaction, Outcome, Rng, Session, Tally, TransactionId,
    TransactionKind, WorkerId, Workload,
};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub struct PgBench {
    /// With scripts in the dialect's words.
    pub options: PgbenchOptions,
    dialect: Dialect,
    kinds: Vec<TransactionKind>,
    names: Names,
    /// Names of variables that can't be assigned to.
    invalid_names: Vec<bool>,
    startup: Startup,
    seeds: Seeds,
    /// The streams that choose scripts, each used by one thread.
    choosers: Vec<Chooser>,
    total_weight: u64,
    /// Number of the first statement of each script, for tables of prepared statements.
    first_statements: Vec<usize>,
    statements: usize,
    talk: Talker,
    statistics: Mutex<Statistics>,
    /// Rows written into the history, if they are kept.
    pub journal: Option<Journal>,
}

/// Numbers of the variables that every client has.
#[derive(Debug)]
struct Startup {
    scale: u32,
    client_id: u32,
    default_seed: u32,
    random_seed: u32,
    defines: Vec<u32>,
}

/// A random stream that its thread can advance through a shared reference. Lies in a cache line of
/// its own.
#[repr(align(64))]
struct Chooser([AtomicU64; 2]);

impl Chooser {
    fn new(rng: &PgRng) -> Self {
        Chooser([rng.s0, rng.s1].map(AtomicU64::new))
    }

    #[inline]
    fn draw_up_to(&self, last: u64) -> u64 {
        let [s0, s1] = &self.0;
        let mut rng = PgRng { s0: s0.load(Ordering::Relaxed), s1: s1.load(Ordering::Relaxed) };
        let value = rng.range(last);
        s0.store(rng.s0, Ordering::Relaxed);
        s1.store(rng.s1, Ordering::Relaxed);
        value
    }
}

impl PgBench {
    /// Scripts for sessions of `dialect`. `talk` receives what pgbench prints while it runs.
    ///
    /// # Errors
    /// A sentence for the user: no script, weights that are all 0, a variable that can't be
    /// defined, or something that the dialect can't do.
    pub fn new(
        mut options: PgbenchOptions,
        dialect: Dialect,
        talk: Talker,
    ) -> Result<PgBench, String> {
        options::check_dialect(&options, dialect)?;
        check(&options)?;
        options.threads = options.threads.clamp(1, options.clients.max(1));
        let mut names = Names::default();
        let startup = Startup {
            scale: names.number("scale"),
            client_id: names.number("client_id"),
            default_seed: names.number("default_seed"),
            random_seed: names.number("random_seed"),
            defines: options.defines.iter().map(|(name, _)| names.number(name)).collect(),
        };
        let is_seeded = startup.defines.contains(&startup.default_seed);
        let part = options.part;
        let clients = part.clients_total.max(options.clients);
        let threads = part.threads_before + options.threads;
        let seeds = Seeds::new(options.seed, clients, threads, !is_seeded);
        let journal = options.keeps_history.then(|| build_journal(&options, &mut names));
        let mut statements = 0;
        let mut first_statements = Vec::new();
        for (script, _) in &mut options.scripts {
            renumber(script, &mut names);
            options::adapt(script, options.mode, dialect);
            first_statements.push(statements);
            statements += script.commands.len();
        }
        let scale = constant_scale(&options, &startup);
        let commands = options.scripts.iter_mut().flat_map(|(script, _)| &mut script.commands);
        commands.for_each(|command| simplify(&mut command.action, scale, &names));
        let kinds = options.scripts.iter().map(|(script, weight)| TransactionKind {
            name: script.description.clone(),
            weight: *weight,
        });
        let empty = options.scripts.iter();
        let empty = empty.map(|(script, _)| ScriptStatistics::new(script.commands.len()));
        Ok(PgBench {
            kinds: kinds.collect(),
            statistics: Mutex::new(Statistics { scripts: empty.collect() }),
            choosers: seeds.threads.iter().map(|thread| Chooser::new(&thread.choose)).collect(),
            total_weight: options.scripts.iter().map(|(_, weight)| u64::from(*weight)).sum(),
            invalid_names: names.names.iter().map(|name| !is_variable_name(name)).collect(),
            journal,
            options,
            dialect,
            names,
            startup,
            seeds,
            first_statements,
            statements,
            talk,
        })
    }

    /// The value of the variable `default_seed`, unless it was defined by an option.
    pub fn default_seed(&self) -> Option<i64> {
        self.seeds.default_seed
    }

    /// The random streams of a thread of this load generator, for schedules and logs.
    pub fn streams(&self, thread: u32) -> Option<&crate::random::ThreadStreams> {
        self.seeds.threads.get((self.options.part.threads_before + thread) as usize)
    }

    /// The thread of this load generator that runs a client, by the client's number among those of this
    /// load generator: each takes as many of the clients that are left as divides
    /// them evenly among the threads that are left, rounded up.
    pub fn client_thread(&self, client: u32) -> u32 {
        let (mut clients, mut threads) = (self.options.clients, self.options.threads);
        let mut first = 0;
        for thread in 0..self.options.threads {
            let share = clients.div_ceil(threads.max(1));
            if client < first + share {
                return thread;
            }
            first += share;
            clients -= share;
            threads -= 1;
        }
        self.options.threads.saturating_sub(1)
    }

    /// Statistics of the clients that have retired; all of them after a trial.
    pub fn statistics(&self) -> Statistics {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds what [`PgBench::statistics`] gave elsewhere, where the same scripts were run.
    ///
    /// # Errors
    /// A sentence for the user, when they were others.
    pub fn absorb(&self, left: &Statistics) -> Result<(), String> {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        let [own_lengths, lengths] = [&*statistics, left].map(|statistics| {
            statistics.scripts.iter().map(|script| script.commands.len()).collect::<Vec<_>>()
        });
        if own_lengths != lengths {
            return Err("another load generator has run other scripts".to_owned());
        }
        for (script, more) in statistics.scripts.iter_mut().zip(&left.scripts) {
            script.merge(more);
        }
        Ok(())
    }
}

impl fmt::Debug for PgBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PgBench")
    }
}

/// Refuses options that pgbench refuses before it connects.
fn check(options: &PgbenchOptions) -> Result<(), String> {
    if options.scripts.is_empty() {
        return Err("there is no script to run".to_owned());
    }
    if options.scripts.iter().all(|(_, weight)| *weight == 0) {
        return Err("total script weight must not be zero".to_owned());
    }
    match options.defines.iter().find(|(name, _)| !is_variable_name(name)) {
        Some((name, _)) => Err(format!("option: invalid variable name: \"{name}\"")),
        None => Ok(()),
    }
}

/// The variable `scale` with its value, unless an option or a command assigns to it, or may do so.
fn constant_scale(options: &PgbenchOptions, startup: &Startup) -> Option<(u32, i64)> {
    let mut commands = options.scripts.iter().flat_map(|(script, _)| &script.commands);
    let is_assigned = commands.any(|command| match &command.action {
        Action::Set { variable, .. } | Action::SetShell { variable, .. } => {
            *variable == startup.scale
        }
        // The names are those of the columns.
        Action::Sql(statement) => statement.store.is_some(),
        _ => false,
    });
    (!is_assigned && !startup.defines.contains(&startup.scale))
        .then_some((startup.scale, options.scale))
}

/// Computes beforehand what is the same in each transaction.
fn simplify(action: &mut Action, scale: Option<(u32, i64)>, names: &Names) {
    if let Some(program) = action.program_mut() {
        program.fold(|number| scale.filter(|scale| scale.0 == number).map(|(_, value)| value));
    }
    if let Action::Set { variable, program } = action
        && let [Op::RandomBetween(first, last)] = program.ops[..]
        && is_variable_name(&names.names[*variable as usize])
    {
        *action = Action::Draw { variable: *variable, first, last };
    }
}

fn build_journal(options: &PgbenchOptions, names: &mut Names) -> Journal {
    let scripts = options.scripts.iter().map(|(script, _)| {
        let variables = history_variables(script)?;
        Some(variables.map(|name| names.number(&name)))
    });
    Journal::new(scripts.collect(), options.clients)
}

/// Replaces a script's own numbers of variables by those of the run.
fn renumber(script: &mut Script, names: &mut Names) {
    let numbers: Vec<u32> = script.variables.iter().map(|name| names.number(name)).collect();
    for command in &mut script.commands {
        let action = &mut command.action;
        action.variables_mut().into_iter().for_each(|one| *one = numbers[*one as usize]);
        for op in action.program_mut().into_iter().flat_map(|program| &mut program.ops) {
            if let Op::Load(number) = op {
                *number = numbers[*number as usize];
            }
        }
    }
}

/// Scripts take it for granted that a statement without BEGIN is stored, as PostgreSQL does.
async fn begin_session<S: Session>(session: &mut S) -> Result<(), DbError> {
    if session.dialect() == Dialect::Mysql && !session.is_set_by_target("autocommit") {
        session.query("SET autocommit = 1, completion_type = 0", &mut Discard).await?;
    }
    Ok(())
}

impl Workload for PgBench {
    type Worker = Client;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn rows_touched(&self) -> Option<u64> {
        let mut scripts = self.options.scripts.iter();
        scripts.all(|(script, _)| script.description.starts_with("<builtin: ")).then_some(1)
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        _workers: u32,
        _rng: Rng,
    ) -> Result<Client, DbError> {
        begin_session(session).await?;
        Ok(Client::new(self, id))
    }

    async fn reopen<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
    ) -> Result<(), DbError> {
        begin_session(session).await?;
        client.prepared.fill(None);
        Ok(())
    }

    #[inline]
    fn run<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> impl Future<Output = Result<Outcome, DbError>> {
        self.attempt(client, session, transaction, attempt, tally)
    }

    #[inline]
    fn choose(&self, client: &mut Client) -> Option<TransactionId> {
        if self.kinds.len() == 1 {
            return Some(0);
        }
        let thread = self.options.part.threads_before + client.thread;
        let mut position = self.choosers[thread as usize].draw_up_to(self.total_weight - 1);
        let kind = self.kinds.iter().position(|kind| {
            let weight = u64::from(kind.weight);
            let is_chosen = position < weight;
            position = position.wrapping_sub(weight);
            is_chosen
        });
        Some(kind.unwrap_or(0))
    }

    #[inline]
    fn leaves(&self, client: &mut Client) -> Option<DbError> {
        client.left_open.take()
    }

    #[inline]
    fn ended(&self, client: &mut Client, ended: &EndedTransaction) {
        self.count(client, ended);
    }

    fn retire(&self, client: Client, _error: Option<&DbError>) {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        for (script, more) in statistics.scripts.iter_mut().zip(&client.statistics) {
            script.merge(more);
        }
    }
}
