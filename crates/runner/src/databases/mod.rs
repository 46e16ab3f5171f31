//! From a URL to a driver.

mod cluster;
mod nodes;
mod place;

pub use cluster::{add_target, cluster_nodes, sharded};
pub use dyno_drivers::Database;
pub use nodes::{ReachedNode, reach_planned};
pub(crate) use place::ServerPlace;

use crate::failure::{Failure, sentence};
use crate::output::{self, Streams};
use crate::signals::{EndedBySignal, unless_stopped};
use crate::watch;
use dyno_core::{AdminDriver, AdminSession, AnswerTable, Cause, DbError, Driver, Nanos, Session};
use dyno_drivers::net::Address;
use dyno_drivers::target::{Secret, TargetUrl, find_password};
use dyno_facts::ServerFacts;
use dyno_load::{Patience, doing};
use dyno_observe::{ServerProcess, read_facts};
use dyno_reactor::{block_on, monotonic_now, timeout};
use std::path::Path;
use std::time::Instant;

pub async fn facts_of(driver: &AdminDriver<'_>) -> Result<ServerFacts, DbError> {
    let within = Patience::default().says_after;
    in_session(driver, async |session| read_facts(session, within).await).await
}

/// The error of what a signal has ended.
pub const STOPPED: &str = "stopped by the user";

/// Does something in a session of its own, which ends soon after Ctrl-C, also where the server hangs.
pub async fn in_session<T, E: From<DbError>>(
    driver: &AdminDriver<'_>,
    work: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, E>,
) -> Result<T, E> {
    // In a box: what calls this is moved around, and a driver's connecting takes tens of kilobytes.
    let done = Box::pin(async {
        let connected = unless_stopped(driver.connect(0)).await;
        let mut session = connected.ok_or_else(stopped)??;
        let _ended = session.interrupter().map(EndedBySignal::new);
        doing("waiting for an answer");
        match unless_stopped(work(&mut session)).await {
            Some(done) => {
                unless_stopped(session.close()).await;
                done
            }
            None => {
                dyno_load::cancel(session).await;
                Err(stopped().into())
            }
        }
    });
    watch::noted("connecting", done).await
}

/// The error of a question that nobody waits for any more: the user has stopped it, or a server is lost.
pub fn stopped() -> DbError {
    DbError::workload(watch::given_up().unwrap_or_else(|| STOPPED.to_owned()))
}

/// Runs a short task on a loop of its own.
pub fn run<T>(task: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    block_on(task).unwrap_or_else(|error| Err(DbError::unreachable(error.to_string())))
}

/// Asks something in a session of its own; nobody waits for that longer than `within`.
pub fn ask_within<T>(
    driver: &AdminDriver<'_>,
    within: Nanos,
    ask: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    let answer = in_session(driver, ask);
    // An embedded database answers on this thread: no clock could interrupt it.
    let due = if driver.blocks() { Nanos::MAX } else { monotonic_now().saturating_add(within) };
    let silent = || DbError::unreachable("it did not answer in time");
    run(async { timeout(due, answer).await.unwrap_or_else(|_| Err(silent())) })
}

/// The same for what fails in other ways.
pub fn on_loop<T>(task: impl Future<Output = T>) -> Result<T, Failure> {
    block_on(task).map_err(|error| Failure::new(format!("No event loop: {error}.")))
}

pub struct ReachedDatabase {
    pub database: Database,
    pub facts: ServerFacts,
    pub same_host: bool,
    /// Where its processes are, if it has one node.
    pub(crate) server: ServerPlace,
    /// Its nodes in the order of the plan; empty where no plan has named it.
    pub nodes: Vec<ReachedNode>,
}

impl ReachedDatabase {
    /// The server's first process; `None` where it doesn't run on this machine or isn't known.
    pub fn process(&self) -> Option<ServerProcess> {
        self.server.process()
    }
}

/// Finds the password of target `name`, connects once and asks the server who it is. When
/// the server refuses and somebody sits at the terminal, asks for the password.
pub fn reach(name: &str, url: &str) -> Result<ReachedDatabase, Failure> {
    if let Some(cluster) = cluster::sharded(name, url)? {
        return reach_planned(&cluster, Path::new(""));
    }
    reach_target(cluster::loading_url(url)?.parse()?, Some(name))
}

/// The same for a target that has been read; without a name, no variable holds its password.
pub fn reach_target(target: TargetUrl, name: Option<&str>) -> Result<ReachedDatabase, Failure> {
    let (target, first) = open_first(target, name, &mut Typed::default())?;
    reached(&target, first)
}

/// The same where the database itself may be missing on its server: it is made then. Returns how many
/// seconds that took, if it was needed.
///
/// # Errors
/// As [`reach`]; also when the database can't be made.
pub fn reach_or_create(url: &str) -> Result<(ReachedDatabase, Option<f64>), Failure> {
    let url = cluster::loading_url(url)?;
    let target = url.parse()?;
    let (target, first) = open_first(target, Some("target"), &mut Typed::default())?;
    let is_missing = |error: &DbError| error.errno() == 1049 || error.sqlstate() == "3D000";
    match (&first, &target.database) {
        (Err(error), Some(name)) if is_missing(error) => {
            let begun = Instant::now();
            create_database(&target, name)?;
            let seconds = begun.elapsed().as_secs_f64();
            Ok((reached(&target, open(&target))?, Some(seconds)))
        }
        _ => Ok((reached(&target, first)?, None)),
    }
}

/// Makes the database `name` of a server on which a log-in without it, or with the one that every
/// PostgreSQL has, is possible.
fn create_database(target: &TargetUrl, name: &str) -> Result<(), Failure> {
    let mut server = target.clone();
    let (other, quote) = match target.dialect {
        dyno_core::Dialect::Postgres => (Some("postgres".to_owned()), "\""),
        dyno_core::Dialect::Mysql | dyno_core::Dialect::Sqlite => (None, "`"),
    };
    server.database = other;
    let quoted = name.replace(quote, &quote.repeat(2));
    let sql = format!("CREATE DATABASE {quote}{quoted}{quote}");
    let created = Database::open(&server).and_then(|database| {
        run(in_session(&database.admin(), async |session| {
            session.query(&sql, &mut AnswerTable::default()).await.map(drop)
        }))
    });
    created.map_err(|error| {
        Failure::new(sentence(&format!("The database {name} can't be created: {error}")))
            .with_hint("create it by hand, for the user that dyno logs in as")
    })
}

/// The first attempt at a target, with its password.
type First = Result<(Database, ServerFacts), DbError>;

/// A password that was typed for one user of several servers, which are named in the question.
#[derive(Default)]
struct Typed {
    /// Whom it is for beside the server that asked first; empty where that is the only one.
    others: String,
    of_user: Option<(Option<String>, Secret)>,
}

impl Typed {
    fn password(&self, user: Option<&String>) -> Option<Secret> {
        let (of, password) = self.of_user.as_ref()?;
        (of.as_ref() == user).then(|| password.clone())
    }
}

/// Finds the password and opens the target; asks at the terminal where that may help. What was `typed`
/// before is taken where no password is found. No other password gets to a server that it was not given for.
fn open_first(
    mut target: TargetUrl,
    name: Option<&str>,
    typed: &mut Typed,
) -> Result<(TargetUrl, First), Failure> {
    let login = find_password(&target, name);
    if let Some(warning) = &login.warning {
        output::talk(&format!("warning: {warning}"));
    }
    login.complete(&mut target);
    target.password = target.password.take().or_else(|| typed.password(target.user.as_ref()));
    let first = match open(&target) {
        Err(error) if may_ask(&error, &target) => {
            let password = ask(&format!("Password for {target}{}: ", typed.others))?;
            typed.of_user = Some((target.user.clone(), password.clone()));
            target.password = Some(password);
            open(&target)
        }
        other => other,
    };
    let first = first.map_err(|error| with_variable(error, &target, name));
    Ok((target, first))
}

/// Adds the variable of a target that has a name to what the driver says of a missing password.
fn with_variable(error: DbError, target: &TargetUrl, name: Option<&str>) -> DbError {
    let is_missing = is_denied(&error) && target.password.is_none();
    let hint = match (name, error.hint()) {
        (Some(name), Some(hint)) if is_missing => {
            format!("{hint}; or set the variable {}", dyno_facts::password_variable(name))
        }
        _ => return error,
    };
    error.with_hint(hint)
}

fn reached(target: &TargetUrl, opened: First) -> Result<ReachedDatabase, Failure> {
    let (database, facts) = opened.map_err(|error| Failure::from(&error))?;
    let same_host = target.hosts.0.iter().all(Address::is_local);
    let server = ServerPlace::of(target);
    Ok(ReachedDatabase { database, facts, same_host, server, nodes: Vec::new() })
}

fn open(target: &TargetUrl) -> Result<(Database, ServerFacts), DbError> {
    let database = Database::open(target)?;
    let facts = run(facts_of(&database.admin()))?;
    Ok((database, facts))
}

/// True when a password may help: access was denied without one, and somebody sits at the terminal.
pub fn may_ask(error: &DbError, target: &TargetUrl) -> bool {
    is_denied(error) && target.password.is_none() && output::streams().is_some_and(Streams::can_ask)
}

/// True when the server knows the user not, or not with this password.
fn is_denied(error: &DbError) -> bool {
    let is_told = error.errno() == 1045 || error.sqlstate().starts_with("28");
    error.cause() == Cause::Rejected && is_told
}

pub fn ask(prompt: &str) -> Result<Secret, Failure> {
    let streams = output::streams().ok_or_else(|| Failure::new("Nobody can be asked."))?;
    let typed = streams.ask_password(prompt);
    typed
        .map(|typed| Secret::new(&typed))
        .map_err(|error| Failure::new(format!("The password can't be read: {error}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_target_with_a_name_has_a_variable_for_its_password() {
        let mut target: TargetUrl = "postgres://h/d".parse().expect("a URL");
        let hint = |target: &TargetUrl, name| {
            let denied = DbError::rejected(0, *b"28P01", "no password").with_hint("give it");
            with_variable(denied, target, name).hint().map(str::to_owned)
        };
        let named = hint(&target, Some("main"));
        assert_eq!(named.as_deref(), Some("give it; or set the variable DYNO_PASSWORD_MAIN"));
        assert_eq!(hint(&target, None).as_deref(), Some("give it"));
        target.password = Some(Secret::new("wrong"));
        assert_eq!(hint(&target, Some("main")).as_deref(), Some("give it"));
    }
}
