//! Read-only nodes: waiting until they have what was written before a trial (else it would read old data, and share the
//! server with what is left to apply), and whether reads show what was written just before: a row of a table of dyno's
//! own is written and read again, on the way that the load takes.

use super::Nodes;
use super::sampling::{Sampling, window_seconds};
use crate::databases::{self, ReachedNode, in_time};
use crate::output;
use crate::signals::unless_stopped;
use dyno_core::{AdminSession, AnswerTable, DbError, Discard, MILLISECOND, Nanos, SECOND};
use dyno_engine::Control;
use dyno_engine::record::Window;
use dyno_facts::{Freshness, Message, Role, Route, say};
use dyno_observe::{Asked, LogPosition, follows, has_reached, position, standstill};
use dyno_reactor::{block_on, now, sleep_until};
use std::collections::BTreeMap;

/// Longest time for replicas to catch up: that of a load of some size.
const CATCH_UP_WITHIN: Nanos = 1800 * SECOND;
/// Time limit of one answer.
const ANSWER: Nanos = 10 * SECOND;
const STEP: Nanos = 20 * MILLISECOND;
/// Waiting longer than this is reported,
const LONG: Nanos = SECOND;
/// and again after each of these.
const AGAIN: Nanos = 10 * SECOND;
/// Time limit for one that applies nothing: somebody may let it continue.
const STANDSTILL: Nanos = 30 * SECOND;

impl Nodes<'_> {
    /// Waits until all read-only nodes have applied what the primary has written so far; says in sentences
    /// what is worth knowing of it.
    pub(crate) fn catch_up(&self, control: &Control) -> Vec<Message> {
        let Some(primary) = self.list.iter().find(|node| node.role == Role::Primary) else {
            return Vec::new();
        };
        let replicas: Vec<&ReachedNode> =
            self.list.iter().filter(|node| node.role == Role::ReadOnly).collect();
        if replicas.is_empty() {
            return Vec::new();
        }
        let answer = databases::ask_within(&primary.database.admin(), ANSWER, async |session| {
            position(session).await
        });
        let Ok(Some(position)) = answer else { return Vec::new() };
        let notes = replicas.into_iter().filter_map(|node| {
            let (primary, node, admin) = (&primary.name, &node.name, node.database.admin());
            let wait = Wait { primary, node, position: &position, control };
            let waiting = databases::in_session(&admin, async |session| wait.run(session).await);
            databases::run(waiting).unwrap_or_else(|error| {
                let text = error.to_string();
                let reason = text.trim_end_matches('.');
                Some(say!(replica_not_asked, node, primary, why = reason))
            })
        });
        notes.collect()
    }
}

struct Wait<'a> {
    primary: &'a str,
    node: &'a str,
    position: &'a LogPosition,
    control: &'a Control,
}

impl Wait<'_> {
    /// Waits until the node has applied all; says in a sentence what is worth knowing of that.
    async fn run(&self, session: &mut AdminSession<'_>) -> Result<Option<Message>, DbError> {
        let (node, primary, began_at) = (self.node, self.primary, now());
        // It may follow no one.
        if !in_time(began_at + ANSWER, follows(session)).await? {
            return Ok(None);
        }
        let (mut tell_at, mut stopped_at) = (began_at + LONG, None);
        loop {
            let answer = in_time(now() + ANSWER, has_reached(session, self.position)).await?;
            let waited = now() - began_at;
            let seconds = waited as f64 / 1e9;
            match answer {
                Some(true) if waited > LONG => {
                    let waited = format!("{seconds:.1}");
                    let note = say!(replica_caught_up_late, node, primary, waited);
                    return Ok(Some(note));
                }
                Some(false) if waited > CATCH_UP_WITHIN => {
                    let waited = format!("{seconds:.0}");
                    let note = say!(replica_still_behind, node, primary, waited);
                    return Ok(Some(note));
                }
                // Without an answer its position is unknown.
                Some(true) | None => return Ok(None),
                Some(false) if self.control.is_stopped() => return Ok(None),
                Some(false) => {}
            }
            if now() > tell_at {
                tell_at = now() + AGAIN;
                let cause = in_time(now() + ANSWER, standstill(session)).await?;
                let reason = cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
                output::talk(&format!(
                    "waiting until {node} has applied what {primary} has written, {} s so far{reason}",
                    waited / SECOND
                ));
                stopped_at = cause.is_some().then(|| stopped_at.unwrap_or_else(now));
                if let (Some(cause), Some(at)) = (cause, stopped_at)
                    && now() > at + STANDSTILL
                {
                    let note = say!(replica_applies_nothing, node, primary, cause);
                    return Ok(Some(note));
                }
            }
            sleep_until(now() + STEP).await;
        }
    }
}

const EVERY: Nanos = 250 * MILLISECOND;
/// First interval of looks for a write that is not shown.
const FIRST_STEP: Nanos = 2 * MILLISECOND;
/// Later it is looked for after this part of the time that it has been missed for.
const LESS_OFTEN: Nanos = 8;
/// Time limit for a write to be shown.
const LONGEST: Nanos = 5 * SECOND;
const PATIENCE: Nanos = 5 * SECOND;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS dyno_freshness (id INTEGER NOT NULL PRIMARY KEY, n BIGINT NOT NULL)";
const READ: &str = "SELECT n FROM dyno_freshness WHERE id = 1";
const DROP: &str = "DROP TABLE IF EXISTS dyno_freshness";

#[derive(Debug, Default)]
pub(super) struct ProbeResult {
    /// `None` if nothing could be written or read.
    pub(super) freshness: Option<Freshness>,
    /// Statements by the node that they were sent to, each in its own transaction.
    pub(super) statements: BTreeMap<usize, Asked>,
}

impl Nodes<'_> {
    /// Returns true if reads can be stale: if they may go to another node than writes, and something can be written.
    pub(super) fn is_probed(&self) -> bool {
        let [has_replica, has_primary] = [Role::ReadOnly, Role::Primary]
            .map(|role| self.list.iter().any(|node| node.role == role));
        has_replica
            && match self.route {
                Route::Primary => false,
                Route::Endpoint | Route::Split => true,
                Route::Spread => has_primary,
            }
    }
}

pub(super) fn probe_freshness(nodes: &Nodes<'_>, sampling: &Sampling) -> ProbeResult {
    let readers = nodes.list.iter().filter(|node| node.role == Role::ReadOnly).count() as u32;
    let (mut result, is_spread) = (ProbeResult::default(), nodes.route == Route::Spread);
    let probe = Probe { nodes, sampling, result: &mut result, is_spread, readers };
    // Without a loop nothing is looked for.
    let _ = block_on(probe.probe_trial());
    result
}

struct Probe<'a> {
    nodes: &'a Nodes<'a>,
    sampling: &'a Sampling,
    result: &'a mut ProbeResult,
    /// Set if the load only reads: writes then go to the primary, alongside it.
    is_spread: bool,
    readers: u32,
}

/// A session, and the nodes that execute what it sends.
struct PlacedSession<'a> {
    session: AdminSession<'a>,
    writes_at: usize,
    reads_at: usize,
}

/// The session that writes, and others that read.
type Sessions<'a> = (PlacedSession<'a>, Vec<PlacedSession<'a>>);

impl<'a> Probe<'a> {
    async fn probe_trial(mut self) {
        // The table is there before the load begins, unless it has to be made through its way.
        if let Err(error) = self.set_up().await {
            let text = error.to_string();
            let text = say!(freshness_not_measured, why = text.trim_end_matches('.'));
            self.sampling.add_event(0.0, text);
            return;
        }
        while !self.sampling.is_over() && !self.sampling.is_begun() {
            sleep_until(now() + 20 * MILLISECOND).await;
        }
        if let Some(window) = self.sampling.wait_for_window() {
            self.probe_repeatedly(&window).await;
        }
        if let Ok(mut writer) = self.open_writer().await {
            let _ = self.execute(&mut writer, DROP).await;
            writer.session.close().await;
        }
    }

    async fn open_writer(&self) -> Result<PlacedSession<'a>, DbError> {
        if !self.is_spread {
            return self.open(0).await;
        }
        let node = self.nodes.load.writable();
        let session = answer_in_time(self.nodes.load.primary_admin().connect(0)).await?;
        Ok(PlacedSession { session, writes_at: node, reads_at: node })
    }

    /// A session of the load's own way.
    async fn open(&self, number: u32) -> Result<PlacedSession<'a>, DbError> {
        let load = self.nodes.load;
        let reads_at = load.reads_at(number);
        let writes_at = match self.nodes.route {
            Route::Split => load.writable(),
            _ => reads_at,
        };
        Ok(PlacedSession {
            session: answer_in_time(load.admin().connect(number)).await?,
            writes_at,
            reads_at,
        })
    }

    async fn set_up(&mut self) -> Result<(), DbError> {
        let mut writer = self.open_writer().await?;
        self.execute(&mut writer, CREATE).await?;
        // A run that was killed has left its row.
        self.execute(&mut writer, "DELETE FROM dyno_freshness").await?;
        self.execute(&mut writer, "INSERT INTO dyno_freshness (id, n) VALUES (1, 0)").await?;
        writer.session.close().await;
        Ok(())
    }

    async fn open_sessions(&self) -> Result<Sessions<'a>, DbError> {
        let writer = self.open_writer().await?;
        let mut readers = Vec::new();
        for number in 0..self.readers {
            readers.push(self.open(number).await?);
        }
        Ok((writer, readers))
    }

    async fn probe_repeatedly(&mut self, window: &Window) {
        let mut sessions: Option<Sessions<'a>> = None;
        let mut is_reported = false;
        let mut turn = 0;
        while !self.sampling.is_over() {
            let outcome = match &mut sessions {
                Some(sessions) => self.turn(sessions, turn).await,
                None => self.open_sessions().await.map(|opened| sessions = Some(opened)),
            };
            turn += 1;
            if let Err(error) = outcome {
                // A node is away: the next turn looks whether it is back.
                sessions = None;
                if !is_reported {
                    let text = error.to_string();
                    let text = say!(freshness_not_measured, why = text.trim_end_matches('.'));
                    self.sampling.add_event(window_seconds(now(), window), text);
                }
                is_reported = true;
            }
            sleep_until(now() + EVERY).await;
        }
        if let Some((writer, readers)) = sessions {
            for placed in readers.into_iter().chain([writer]) {
                placed.session.close().await;
            }
        }
    }

    /// Writes a value once and reads until it is there, at most `LONGEST`; counts if the first read missed it. Even
    /// turns read in the writer's session unless loads are spread, odd ones in another.
    async fn turn(
        &mut self,
        (writer, readers): &mut Sessions<'a>,
        turn: u64,
    ) -> Result<(), DbError> {
        let value = turn + 1;
        let write = format!("UPDATE dyno_freshness SET n = {value} WHERE id = 1");
        self.execute(writer, &write).await?;
        let written = now();
        let reader_count = readers.len() as u64;
        // Without a separate read-only session the writer reads nothing of a load that only reads.
        let is_same_session = !self.is_spread && turn.is_multiple_of(2);
        let reader = if is_same_session || reader_count == 0 {
            writer
        } else {
            &mut readers[(turn / 2 % reader_count) as usize]
        };
        let mut missed = None;
        loop {
            let asked_at = now();
            let read_value = self.read(reader).await?;
            if read_value.is_some_and(|read_value| read_value >= value) {
                break;
            }
            missed = Some(asked_at.saturating_sub(written));
            if now() > written + LONGEST || self.sampling.is_over() {
                break;
            }
            // The longer it takes, the less often: a replica that is far behind has enough to do.
            sleep_until(now() + FIRST_STEP.max((now() - written) / LESS_OFTEN)).await;
        }
        let freshness = self.result.freshness.get_or_insert_default();
        let (reads, stale) = if is_same_session {
            (&mut freshness.asked, &mut freshness.stale)
        } else {
            (&mut freshness.asked_other, &mut freshness.stale_other)
        };
        *reads += 1;
        if let Some(missed) = missed {
            *stale += 1;
            let missed_ms = missed as f64 / 1e6;
            freshness.stale_max_ms =
                Some(freshness.stale_max_ms.map_or(missed_ms, |m| m.max(missed_ms)));
        }
        Ok(())
    }

    /// Executes a statement, which is noted for the node that it is sent to.
    async fn execute(&mut self, placed: &mut PlacedSession<'_>, sql: &str) -> Result<(), DbError> {
        *self.result.statements.entry(placed.writes_at).or_default() += Asked::one(sql);
        answer_in_time(placed.session.query(sql, &mut Discard)).await.map(drop)
    }

    /// The value that a read shows; `None` if the row or its table is not there yet.
    async fn read(&mut self, placed: &mut PlacedSession<'_>) -> Result<Option<u64>, DbError> {
        *self.result.statements.entry(placed.reads_at).or_default() += Asked::one(READ);
        let mut table = AnswerTable::default();
        match answer_in_time(placed.session.query(READ, &mut table)).await {
            Ok(_) => Ok(table.single().and_then(|text| text.parse().ok())),
            // No such table, in the words of both.
            Err(error) if error.errno() == 1146 || error.sqlstate() == "42P01" => Ok(None),
            Err(error) => Err(error),
        }
    }
}

async fn answer_in_time<T>(
    question: impl Future<Output = Result<T, DbError>>,
) -> Result<T, DbError> {
    let answer = unless_stopped(in_time(now() + PATIENCE, question)).await;
    answer.unwrap_or_else(|| Err(databases::stopped()))
}
