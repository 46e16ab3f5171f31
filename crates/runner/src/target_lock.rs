//! Two runs on the same tables at once: each holds a lock of the server (PostgreSQL's advisory locks, `GET_LOCK` of
//! MySQL and MariaDB) in a separate session as long as it lasts, so that the second one is refused.
//!
//! The session is idle: its thread sleeps, and asks the server something every ten minutes only. A lock belongs to a
//! database and a workload, since each workload has its own tables. Embedded databases have locks themselves. An
//! endpoint may answer from another server each time: behind it the servers that take writes are locked themselves,
//! where the plan knows them. Load generators of a fleet take none, the run that they belong to does. A run whose
//! targets are one database under two names finds its own lock: [`LockAnswer::Own`].
//!
//! Verbs that load or drop tables hold the same lock while they work ([`lock_tables`]). The `run` of front ends takes
//! none, since of their originals many may work at once. It asks who has the lock, and is warned.

use crate::databases::{Database, ReachedDatabase, in_time};
use crate::failure::{Failure, Result};
use crate::output;
use dyno_core::{
    AdminDriver, AdminSession, AnswerTable, Cause, DbResult, Dialect, Discard, Nanos, SECOND,
};
use dyno_facts::Role;
use dyno_load::query::is_pooled;
use dyno_load::{LoadError, LoadObserver, LoadSessions, doing, while_doing};
use dyno_observe::LOCK_CLASS;
use dyno_reactor::{block_on, monotonic_now, now, sleep_until, timeout};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Time limit for connecting and for all questions.
const PATIENCE: Nanos = 10 * SECOND;
/// The session of a run that was killed is gone by then.
const ATTEMPTS: u32 = 12;
const ATTEMPT: Nanos = SECOND / 4;
const CLOSED_WITHIN: Nanos = SECOND;
const POOLED: &str = "a pooler in between gives the server's sessions to other clients between transactions; settings and \
                      prepared statements of a session get lost, too";
/// Servers end sessions that are idle for hours.
const PING: Duration = Duration::from_secs(600);

/// The rule for a run on tables that another run works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableSharing {
    Allowed,
    #[default]
    Refused,
    /// Refused unless `--share-target` is given, which the verb offers.
    OnRequest,
}

pub(crate) struct TargetLocks {
    /// The name that others see of this process.
    name: String,
    /// Tells its sessions from those of others on any server.
    nonce: String,
    /// The target of each session so far, by its number.
    targets: Vec<String>,
    held: BTreeMap<String, Vec<TableLock>>,
}

/// Keeps runs and other verbs away from tables until it ends. If its session is lost meanwhile, the load continues: the
/// next one is then no longer refused, and nothing else changes.
#[derive(Default)]
#[must_use]
pub struct TableLock {
    /// Its end is the end of the session.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The order for a session: the tables to lock.
struct LockOrder {
    name: String,
    nonce: String,
    number: usize,
    workloads: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum LockAnswer {
    Held,
    /// The session of this number has it, which is one of this run.
    Own(usize),
    /// The session that has the lock, in words.
    Refused(String),
    /// The server knows no such locks, or can't be queried; the reason, in words.
    Unknown(String),
}

impl TargetLocks {
    pub(crate) fn new(name: &str) -> Self {
        let process = std::process::id();
        let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let nonce = format!("{process:x}.{:x}", moment.as_nanos());
        // PostgreSQL cuts names after 63 bytes; the nonce is what must stay whole.
        let name = name.chars().filter(char::is_ascii).take(40).collect();
        TargetLocks { name, nonce, targets: Vec::new(), held: BTreeMap::new() }
    }

    /// Returns the target for which the session of this number was opened. A number that was never given panics.
    pub(crate) fn target(&self, number: usize) -> &str {
        &self.targets[number]
    }

    /// Locks the tables of these workloads on a target. `Refused` if somebody else works on them, which is allowed.
    ///
    /// # Errors
    /// Somebody else works on them.
    pub(crate) fn lock(
        &mut self,
        target: &str,
        reached: &ReachedDatabase,
        workloads: &[String],
        sharing: TableSharing,
    ) -> Result<LockAnswer> {
        let places = places(reached);
        if places.is_empty() {
            warn_unlocked(target, "of its nodes only the endpoint is known");
        }
        let mut combined = LockAnswer::Held;
        for database in places {
            let (answer, lock) = self.session(target, database, workloads.to_vec())?;
            match answer {
                LockAnswer::Unknown(why) => warn_unlocked(target, &why),
                LockAnswer::Refused(who) if sharing != TableSharing::Allowed => {
                    return Err(refuse_target(target, &who, sharing));
                }
                LockAnswer::Refused(_) => return Ok(answer),
                LockAnswer::Held | LockAnswer::Own(_) => {
                    self.held.entry(target.to_owned()).or_default().push(lock);
                    if answer != LockAnswer::Held {
                        combined = answer;
                    }
                }
            }
        }
        Ok(combined)
    }

    /// Has a separate session lock the tables of these workloads.
    fn session(
        &mut self,
        target: &str,
        database: &Database,
        workloads: Vec<String>,
    ) -> Result<(LockAnswer, TableLock)> {
        let order = LockOrder {
            name: self.name.clone(),
            nonce: self.nonce.clone(),
            number: self.targets.len(),
            workloads,
        };
        let ((sender, answer), (stop, stopped)) = (channel(), channel());
        let database = database.clone();
        let thread = std::thread::Builder::new().name("target lock".to_owned()).spawn(move || {
            hold_locks(&database.primary_admin(), &order, &sender, &stopped);
        });
        let thread = thread.map_err(|error| Failure::new(format!("No thread: {error}.")))?;
        self.targets.push(target.to_owned());
        let answer = answer.recv().unwrap_or_else(|_| LockAnswer::Unknown("it ended".to_owned()));
        Ok((answer, TableLock { stop: Some(stop), thread: Some(thread) }))
    }

    /// Ends the sessions on a target, such as for a command that makes its database again.
    pub(crate) fn release(&mut self, target: &str) {
        self.held.remove(target);
    }
}

/// The databases on which the tables of a target are locked.
fn places(reached: &ReachedDatabase) -> Vec<&Database> {
    if !reached.nodes.iter().any(|node| node.role == Role::Endpoint) {
        return vec![&reached.database];
    }
    let nodes = reached.nodes.iter();
    let nodes = nodes.filter(|node| matches!(node.role, Role::Primary | Role::Shard));
    nodes.map(|node| &node.database).collect()
}

const ASKING: &str = "asking who has locked the tables";

/// The run or load that has locked the tables of a workload, in words, by one question. `None` also where the server
/// knows no such locks, or refuses to say.
///
/// # Errors
/// The session is lost.
pub async fn lock_holder(
    session: &mut AdminSession<'_>,
    workload: &str,
) -> DbResult<Option<String>> {
    let (_, holder) = match session.dialect() {
        _ if !session.capabilities().server_views => return Ok(None),
        Dialect::Postgres => postgres_lock(workload),
        Dialect::Mysql => mysql_lock("", "0", workload),
        Dialect::Sqlite => return Ok(None),
    };
    doing(ASKING);
    let who = match query_text(session, &holder).await {
        Err(error) if error.is_fatal() => return Err(error),
        answered => answered.ok().flatten(),
    };
    // A server that answers every query alike has no lock.
    Ok(who.filter(|who| who.contains("session ")))
}

/// Locks the tables of a workload for a verb that loads or drops them. Embedded databases and servers without such
/// locks have none.
///
/// # Errors
/// A run or another verb works on them. Else those of [`LoadSessions`]: the server can't be reached, or hangs.
pub fn lock_tables(
    database: &Database,
    workload: &str,
    observer: &dyn LoadObserver,
) -> Result<TableLock, LoadError> {
    if database.blocks() {
        return Ok(TableLock::default());
    }
    // A server that hangs is noticed here; and behind a pooler, if no lock can be held, one can be seen.
    let sessions = LoadSessions::new(&database.admin(), observer, 1).at_first_node();
    let holder = sessions
        .one(async |session| lock_holder(session, workload).await.map_err(while_doing(ASKING)))?;
    let mut locks =
        TargetLocks::new(&format!("dyno on {workload}, process {}", std::process::id()));
    let (who, lock) = match locks.session("", database, vec![workload.to_owned()]) {
        // A user who may have one session needs it for the load.
        Ok((LockAnswer::Held | LockAnswer::Own(_), lock)) if refuses_another(&sessions) => {
            drop(lock);
            std::thread::sleep(Duration::from_nanos(ATTEMPT));
            (None, TableLock::default())
        }
        Ok((LockAnswer::Held | LockAnswer::Own(_), lock)) => (None, lock),
        Ok((LockAnswer::Refused(who), _)) => (Some(who), TableLock::default()),
        Ok((LockAnswer::Unknown(_), _)) | Err(_) => (holder, TableLock::default()),
    };
    match who {
        None => Ok(lock),
        Some(who) => Err(LoadError::data(
            format!("Another run or load works on these tables: {who}."),
            "wait for its end, or use another database",
        )),
    }
}

/// Returns true if the server refuses a further session.
fn refuses_another(sessions: &LoadSessions<'_>) -> bool {
    let refusal = sessions.one(async |_| Ok(())).err().and_then(|failure| failure.error);
    refusal.is_some_and(|error| error.cause() == Cause::Rejected)
}

/// The warning for what is measured alongside the holder of the lock.
pub fn shared_warning(who: &str) -> String {
    format!("a run or load works on the same tables, and each disturbs the other: {who}")
}

fn warn_unlocked(target: &str, why: &str) {
    let note =
        format!("note: target {target}: no lock keeps other runs away from its tables: {why}");
    output::talk(&note);
}

fn refuse_target(target: &str, who: &str, sharing: TableSharing) -> Failure {
    let offer = match sharing {
        TableSharing::OnRequest => {
            "; `--share-target` measures alongside it, and the paper says so"
        }
        TableSharing::Refused | TableSharing::Allowed => "",
    };
    let message =
        format!("Another run or load works on the same tables of target {target}: {who}.");
    let hint = format!("Wait for its end, or give this run its own database{offer}.");
    Failure::new(message).with_hint(hint)
}

impl Drop for TableLock {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes the locks, tells it, and holds them until no one is there to end it.
fn hold_locks(
    driver: &AdminDriver<'_>,
    order: &LockOrder,
    sender: &Sender<LockAnswer>,
    stopped: &Receiver<()>,
) {
    if driver.blocks() || !driver.capabilities().server_views {
        let _ = sender.send(LockAnswer::Held);
        return;
    }
    // Without an event loop nothing is locked: the receiver of the answer sees the end of the channel.
    let _ = block_on(async {
        let mut session = match with_limit(PATIENCE, driver.connect(0)).await {
            Ok(session) => session,
            Err(error) => return sender.send(LockAnswer::Unknown(error.to_string())),
        };
        // There the lock would be one of the pooler's session, and outlive this run.
        let answer = match with_limit(PATIENCE, is_pooled(driver, &mut session)).await {
            Ok(true) => Ok(LockAnswer::Unknown(POOLED.to_owned())),
            Ok(false) => with_limit(PATIENCE, take_all_locks(&mut session, order)).await,
            Err(error) => Err(error),
        };
        let answer = answer.unwrap_or_else(|error| LockAnswer::Unknown(error.to_string()));
        let is_held = matches!(answer, LockAnswer::Held | LockAnswer::Own(_));
        let delivery = sender.send(answer);
        while is_held && stopped.recv_timeout(PING) == Err(RecvTimeoutError::Timeout) {
            if with_limit(PATIENCE, session.query("SELECT 1", &mut Discard)).await.is_err() {
                break;
            }
        }
        // A server notices a closed session a moment later, in which the next command would be refused.
        if is_held {
            let unlock = match session.dialect() {
                Dialect::Postgres => "SELECT pg_advisory_unlock_all()",
                _ => "SELECT RELEASE_ALL_LOCKS()",
            };
            let _ = with_limit(CLOSED_WITHIN, query_text(&mut session, unlock)).await;
        }
        let _ = timeout(monotonic_now() + CLOSED_WITHIN, session.close()).await;
        delivery
    });
}

async fn with_limit<T>(limit: Nanos, work: impl Future<Output = DbResult<T>>) -> DbResult<T> {
    in_time(monotonic_now() + limit, work).await
}

async fn take_all_locks(session: &mut AdminSession<'_>, order: &LockOrder) -> DbResult<LockAnswer> {
    // Others see who this is.
    let introduction = match session.dialect() {
        Dialect::Postgres => {
            let name = quote_text(&order.application_name());
            format!("SELECT set_config('application_name', {name}, false)")
        }
        _ => format!("SELECT GET_LOCK({}, 0)", order.session_lock(order.number)),
    };
    query_text(session, &introduction).await?;
    let mut combined = LockAnswer::Held;
    for workload in &order.workloads {
        let mut answer = try_lock(session, order, workload).await?;
        for _ in 1..ATTEMPTS {
            if !matches!(answer, LockAnswer::Refused(_)) {
                break;
            }
            sleep_until(now() + ATTEMPT).await;
            answer = try_lock(session, order, workload).await?;
        }
        match answer {
            LockAnswer::Held => {}
            LockAnswer::Own(_) => combined = answer,
            LockAnswer::Refused(_) | LockAnswer::Unknown(_) => return Ok(answer),
        }
    }
    Ok(combined)
}

async fn query_text(session: &mut AdminSession<'_>, sql: &str) -> DbResult<Option<String>> {
    let mut table = AnswerTable::default();
    session.query(sql, &mut table).await?;
    Ok(table.single().map(str::to_owned))
}

async fn try_lock(
    session: &mut AdminSession<'_>,
    order: &LockOrder,
    workload: &str,
) -> DbResult<LockAnswer> {
    let dialect = session.dialect();
    let (lock, holder) = match dialect {
        Dialect::Postgres => postgres_lock(workload),
        _ => mysql_lock(&order.nonce, &order.own_sessions(), workload),
    };
    let answer = query_text(session, &lock).await?;
    match answer.as_deref() {
        Some("1" | "t" | "true") => return Ok(LockAnswer::Held),
        Some("0" | "f" | "false") => {}
        _ => return Ok(LockAnswer::Unknown("the server answers with something else".to_owned())),
    }
    let who = query_text(session, &holder).await?.unwrap_or_else(|| "a session".to_owned());
    Ok(own_number(&who, &order.nonce).map_or(LockAnswer::Refused(who), LockAnswer::Own))
}

/// The number behind the nonce in the name of a session of this run.
fn own_number(who: &str, nonce: &str) -> Option<usize> {
    let (_, rest) = who.split_once(nonce)?;
    rest.strip_prefix('.')?.split(' ').next()?.parse().ok()
}

/// The statement that tries a lock, and the one that asks for its holder.
fn postgres_lock(workload: &str) -> (String, String) {
    let key = hash_name(workload);
    let holder = format!(
        "SELECT a.application_name || ' (session ' || a.pid || ' of ' || a.usename || \
         coalesce(' from ' || host(a.client_addr), '') || ' in database ' || a.datname || ')' \
         FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid \
         WHERE l.locktype = 'advisory' AND l.granted AND l.classid::bigint = {LOCK_CLASS} \
         AND l.objid::bigint = {key} AND a.datname = current_database()"
    );
    (format!("SELECT pg_try_advisory_lock({LOCK_CLASS}, {key})"), holder)
}

/// Like [`postgres_lock`]. `own` are the sessions of the same run, after a placeholder that no session has.
fn mysql_lock(nonce: &str, own: &str, workload: &str) -> (String, String) {
    let lock = format!(
        "CONCAT('dyno:', LEFT(SHA2(CONCAT(DATABASE(), ':', {}), 256), 32))",
        quote_text(workload)
    );
    let holder = format!(
        "SELECT CONCAT(CASE WHEN FIELD(IS_USED_LOCK({lock}), {own}) > 1 THEN CONCAT('{nonce}.', \
         FIELD(IS_USED_LOCK({lock}), {own}) - 2, ' ') ELSE '' END, \
         'session ', IS_USED_LOCK({lock}), COALESCE((SELECT CONCAT(' of ', user, ' from ', host) \
         FROM information_schema.processlist WHERE id = IS_USED_LOCK({lock})), ''), \
         ' in database ', DATABASE())"
    );
    (format!("SELECT GET_LOCK({lock}, 0)"), holder)
}

impl LockOrder {
    fn application_name(&self) -> String {
        let name: String = self.name.chars().take(57 - self.nonce.len().min(40)).collect();
        format!("{name} {}.{}", self.nonce, self.number)
    }

    /// The sessions before this one, after a placeholder that no session has.
    fn own_sessions(&self) -> String {
        let locks = (0..self.number).map(|number| self.session_lock(number));
        "0".to_owned() + &locks.map(|lock| format!(", IS_USED_LOCK({lock})")).collect::<String>()
    }

    /// The name of a lock that only one session of this run has.
    fn session_lock(&self, number: usize) -> String {
        quote_text(&format!("dyno:{}:{number}", self.nonce))
    }
}

fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace(['\'', '\\'], ""))
}

/// A positive number of a name (FNV-1a, 31 bits).
fn hash_name(name: &str) -> i32 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::databases::{ReachedNode, ServerPlace, reach};
    use dyno_core::Driver;
    use dyno_load::Unobserved;
    use dyno_testkit::sim::{Service, SimDriver, SimulatedAnswers};

    /// The answer of a session's lock on a server whose answers to SELECT have that many rows, of 1, 2, 3.
    fn lock_answer(rows: u64) -> LockAnswer {
        let service = Service::Constant(0);
        let driver = SimDriver::new(SimulatedAnswers { service, rows, ..Default::default() });
        let locks = TargetLocks::new("dyno run s");
        let (name, nonce) = (locks.name, locks.nonce);
        let order = LockOrder { name, nonce, number: 0, workloads: vec!["tpcc".to_owned()] };
        let ((sender, answer), (stop, stopped)) = (channel(), channel());
        drop(stop);
        hold_locks(&driver.admin(), &order, &sender, &stopped);
        answer.recv().expect("an answer")
    }

    #[test]
    fn a_server_that_knows_no_locks_keeps_no_one_from_loading() {
        assert!(matches!(lock_answer(1), LockAnswer::Held));
        assert!(matches!(lock_answer(0), LockAnswer::Unknown(_)));
    }

    #[test]
    fn names_fit_into_what_servers_keep_and_hold_no_quotes() {
        let locks = TargetLocks::new("dyno run it's a suite with a name much longer than others");
        let order = LockOrder {
            name: locks.name.clone(),
            nonce: locks.nonce.clone(),
            number: 2,
            workloads: Vec::new(),
        };
        let name = order.application_name();
        assert!(name.len() <= 63, "{name}");
        assert_eq!(own_number(&format!("{name} (session 7)"), &locks.nonce), Some(2));
        assert_eq!(own_number("dyno run s, process 1 (session 7)", &locks.nonce), None);
        assert!(order.session_lock(1).len() <= 66, "{}", order.session_lock(1));
        assert_eq!(quote_text("it's \\"), "'its '");
        assert_ne!(hash_name("pgbench"), hash_name("sysbench"));
        assert!(mysql_lock("n", &order.own_sessions(), "tpcc").1.contains(&order.session_lock(1)));
        let first = LockOrder { number: 0, ..order };
        assert_eq!(first.own_sessions(), "0");
    }

    #[test]
    fn only_a_verb_that_has_the_option_names_it() {
        let [alone_hint, offered] = [TableSharing::Refused, TableSharing::OnRequest]
            .map(|sharing| refuse_target("a", "a session", sharing).hint.unwrap_or_default());
        let alone = "Wait for its end, or give this run its own database";
        assert_eq!(alone_hint, format!("{alone}."));
        assert!(offered.starts_with(&format!("{alone}; `--share-target` measures")), "{offered}");
    }

    #[test]
    fn an_embedded_database_needs_no_lock_and_an_endpoint_is_locked_behind_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", dir.path().join("x.db").display());
        let mut target = reach("main", &url).expect("a database");
        let mut locks = TargetLocks::new("dyno run s");
        let answer = locks.lock("main", &target, &["tpcc".to_owned()], TableSharing::Refused);
        assert_eq!(answer.map_err(|failure| failure.message), Ok(LockAnswer::Held));
        // Loads as well: the database itself has them take turns.
        let loads = [1, 2].map(|_| lock_tables(&target.database, "tpcc", &Unobserved).is_ok());
        assert_eq!(loads, [true, true]);
        locks.release("main");
        for (roles, count) in [
            (&[][..], 1),
            (&[Role::Primary, Role::ReadOnly], 1),
            (&[Role::Endpoint], 0),
            (&[Role::Endpoint, Role::Primary, Role::ReadOnly], 1),
            (&[Role::Endpoint, Role::Shard, Role::Shard], 2),
        ] {
            let nodes = roles.iter().map(|role| ReachedNode {
                name: String::new(),
                role: *role,
                database: target.database.clone(),
                facts: target.facts.clone(),
                same_host: true,
                server: ServerPlace::Unknown,
            });
            target.nodes = nodes.collect();
            assert_eq!(places(&target).len(), count, "{roles:?}");
        }
    }
}
