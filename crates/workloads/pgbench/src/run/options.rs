//! Options of a run of scripts, and the scripts on other databases.

use crate::script::{Action, QueryMode, Script, Statement, shown_text};
use dyno_core::{Dialect, EndedTransaction, Nanos};
use std::sync::Mutex;

/// Follows the transactions of one thread, for log files.
pub trait TransactionLogger: Send {
    /// A transaction of this client, running this script, is over.
    fn ended(&mut self, client: u32, script: usize, ended: &EndedTransaction);
}

/// The log of one thread. Locked once per transaction, by one thread only while the trial lasts.
pub type ThreadLog = Mutex<Box<dyn TransactionLogger>>;

/// Errors that are reported as they happen, besides those that end a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerboseErrors {
    /// Tries that a transaction has; 0 is unlimited.
    pub max_tries: u32,
    /// Latency after which a transaction isn't tried again.
    pub latency_limit: Option<Nanos>,
}

#[derive(Default)]
pub struct PgbenchOptions {
    /// The scripts and their weights, at least one of which is not 0.
    pub scripts: Vec<(Script, u32)>,
    /// Mode in which statements are sent; the scripts were read for it.
    pub mode: QueryMode,
    /// Clients: the workers of the trial.
    pub clients: u32,
    /// Threads: the loops of the trial, from 1 to the number of clients.
    pub threads: u32,
    /// Range of these clients and threads, if several load generators share a trial.
    pub part: Part,
    /// The value of the variable `scale`, unless it is among `defines`.
    pub scale: i64,
    /// Variables of all clients and their texts, as of [`text_from_bytes`](dyno_core::text_from_bytes).
    pub defines: Vec<(String, String)>,
    pub seed: u64,
    /// Set if the latency of each command is measured.
    pub statement_latencies: bool,
    /// Set if a client continues after an error of the server that isn't worth a retry: then it is
    /// not said that it aborted.
    pub continue_on_error: bool,
    /// The error of a preparation ends the client. In the original it is only reported, and a statement that is missing
    /// on the server does.
    pub fails_at_preparation: bool,
    /// A client whose session is lost gets another one, so nothing has ended it: pgbench's words for that are not said.
    pub reconnects: bool,
    /// Set if errors that lead to a retry or a failed transaction are reported.
    pub verbose_errors: Option<VerboseErrors>,
    /// Set if every step of every client is traced.
    pub debug: bool,
    pub logs: Vec<ThreadLog>,
    /// Keeps the rows that transactions write into the history, in [`PgBench::journal`](super::PgBench::journal).
    pub keeps_history: bool,
}

/// The clients and threads before those of this load generator: all random streams go by the numbers
/// among those of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Clients of the load generators before this one.
    pub clients_before: u32,
    /// Clients of all load generators; 0 if there is only this one.
    pub clients_total: u32,
    /// Threads of the load generators before this one.
    pub threads_before: u32,
}

impl PgbenchOptions {
    /// pgbench's defaults for these scripts, which were read for `mode`.
    pub fn new(scripts: Vec<(Script, u32)>, mode: QueryMode, seed: u64) -> Self {
        let (clients, threads, scale) = (1, 1, 1);
        PgbenchOptions { scripts, mode, clients, threads, scale, seed, ..Self::default() }
    }
}

/// A message to the user, without the program's name before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk<'a> {
    /// An error; pgbench puts `pgbench: error: ` before it.
    Error(&'a str),
    /// News; pgbench puts `pgbench: ` before it.
    Info(&'a str),
    /// A line of `debug()`, or a notice of the server; nothing is put before it.
    Debug(&'a str),
}

/// Told from all threads of a trial.
pub type Talker = Box<dyn Fn(Talk<'_>) + Send + Sync>;

/// Refuses what the dialect can't do.
///
/// # Errors
/// A sentence with the script and what is wrong with it.
pub(super) fn check_dialect(options: &PgbenchOptions, dialect: Dialect) -> Result<(), String> {
    let is_one_by_one = dialect == Dialect::Mysql && options.mode == QueryMode::Extended;
    let pipelined = options.scripts.iter().find(|(script, _)| {
        script.commands.iter().any(|command| matches!(command.action, Action::StartPipeline))
    });
    match pipelined.filter(|_| is_one_by_one) {
        None => Ok(()),
        Some((Script { description, .. }, _)) => Err(format!(
            "script \"{description}\" uses a pipeline, but the MySQL protocol can send only prepared \
             statements ahead: use the query mode \"prepared\""
        )),
    }
}

/// Puts the statements of a script into the dialect's words.
pub(super) fn adapt(script: &mut Script, mode: QueryMode, dialect: Dialect) {
    let writes = script.commands.iter().any(|command| match &command.action {
        Action::Sql(statement) => is_write(&shown_text(&statement.text)),
        _ => false,
    });
    for command in &mut script.commands {
        if let Action::Sql(statement) = &mut command.action {
            if let Some(other) = other_words(statement, dialect, writes) {
                statement.text = other.into();
            }
            if mode != QueryMode::Simple {
                statement.parameterize(dialect);
            }
        }
    }
}

/// PostgreSQL's END is a COMMIT elsewhere. SQLite can't turn a reader into a writer alongside another
/// one: a transaction of a script that writes says so at its beginning.
fn other_words(statement: &Statement, dialect: Dialect, writes: bool) -> Option<&'static str> {
    let text = shown_text(&statement.text);
    let mut words = text.trim_end().trim_end_matches(';').split_ascii_whitespace();
    let first = words.next()?.to_ascii_lowercase();
    let second = words.next().map(str::to_ascii_lowercase);
    let is_plain =
        words.next().is_none() && matches!(second.as_deref(), None | Some("work" | "transaction"));
    match (dialect, first.as_str()) {
        _ if !is_plain => None,
        (Dialect::Postgres, _) => None,
        (_, "end") => Some("COMMIT;"),
        (Dialect::Sqlite, "begin") if writes => Some("BEGIN IMMEDIATE;"),
        (Dialect::Sqlite | Dialect::Mysql, "begin") => Some("BEGIN;"),
        _ => None,
    }
}

fn is_write(text: &str) -> bool {
    let word = text.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next();
    ["insert", "update", "delete", "replace", "merge", "with"]
        .iter()
        .any(|known| word.is_some_and(|word| word.eq_ignore_ascii_case(known)))
}
