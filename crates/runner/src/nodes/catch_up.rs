//! Waiting until replicas have what was written before a trial: else it would read old data, and share the
//! server with what is left to apply.

use super::{Node, Nodes};
use crate::databases;
use crate::output;
use dyno_core::{AdminDriver, AdminSession, DbError, MILLISECOND, Nanos, SECOND};
use dyno_engine::Control;
use dyno_facts::{Message, Role, say};
use dyno_observe::{LogPosition, follows, has_reached, position, standstill};
use dyno_reactor::{now, sleep_until, timeout};

/// How long replicas may take: as long as a load of some size.
const PATIENCE: Nanos = 1800 * SECOND;
/// How long one answer may take.
const ANSWER: Nanos = 10 * SECOND;
const STEP: Nanos = 20 * MILLISECOND;
/// Waiting longer than this is told,
const LONG: Nanos = SECOND;
/// and again after each of these.
const AGAIN: Nanos = 10 * SECOND;
/// How long one that applies nothing may take: somebody may let it go on.
const STANDSTILL: Nanos = 30 * SECOND;

enum CatchUp {
    /// It has all, after this time.
    Reached(Nanos),
    /// It follows nobody, or can't tell where it is.
    Unknown,
    /// The time was over, or the user has stopped the run.
    Behind(Nanos),
    /// It applies nothing, for this reason.
    Stopped(Message),
}

impl Nodes<'_> {
    /// Waits until all read-only nodes have applied what the primary has written so far; says in sentences
    /// what is worth knowing of it.
    pub(crate) fn catch_up(&self, control: &Control) -> Vec<Message> {
        let Some(primary) = self.list.iter().find(|node| node.role == Role::Primary) else {
            return Vec::new();
        };
        let replicas: Vec<&Node<'_>> =
            self.list.iter().filter(|node| node.role == Role::ReadOnly).collect();
        if replicas.is_empty() {
            return Vec::new();
        }
        let ask = async |session: &mut AdminSession<'_>| position(session).await;
        let asked = databases::ask_within(&primary.database.admin(), ANSWER, ask);
        let Ok(Some(position)) = asked else { return Vec::new() };
        let wait = |node: &&Node<'_>| {
            let wait =
                Wait { primary: &primary.name, node: &node.name, position: &position, control };
            let ended = databases::run(wait.run(&node.database.admin()));
            wait.told(ended)
        };
        replicas.iter().filter_map(wait).collect()
    }
}

struct Wait<'a> {
    primary: &'a str,
    node: &'a str,
    position: &'a LogPosition,
    control: &'a Control,
}

impl Wait<'_> {
    async fn run(&self, driver: &AdminDriver<'_>) -> Result<CatchUp, DbError> {
        databases::in_session(driver, async |session| self.ask_until_reached(session).await).await
    }

    async fn ask_until_reached(&self, session: &mut AdminSession<'_>) -> Result<CatchUp, DbError> {
        let silent = || DbError::unreachable("it did not answer in time");
        let begun = now();
        if !timeout(begun + ANSWER, follows(session)).await.map_err(|_| silent())?? {
            return Ok(CatchUp::Unknown);
        }
        let (mut tell_at, mut stopped_at) = (begun + LONG, None);
        loop {
            let answer = timeout(now() + ANSWER, has_reached(session, self.position)).await;
            let waited = now() - begun;
            match answer.map_err(|_| silent())?? {
                Some(true) => return Ok(CatchUp::Reached(waited)),
                None => return Ok(CatchUp::Unknown),
                Some(false) if waited > PATIENCE || self.control.is_stopped() => {
                    return Ok(CatchUp::Behind(waited));
                }
                Some(false) => {}
            }
            if now() > tell_at {
                tell_at = now() + AGAIN;
                let cause = timeout(now() + ANSWER, standstill(session)).await;
                let cause = cause.map_err(|_| silent())??;
                let why = cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
                output::talk(&format!(
                    "waiting until {} has applied what {} has written, {} s so far{why}",
                    self.node,
                    self.primary,
                    waited / SECOND
                ));
                stopped_at = cause.is_some().then(|| stopped_at.unwrap_or_else(now));
                if let (Some(cause), Some(at)) = (cause, stopped_at)
                    && now() > at + STANDSTILL
                {
                    return Ok(CatchUp::Stopped(cause));
                }
            }
            sleep_until(now() + STEP).await;
        }
    }

    fn told(&self, ended: Result<CatchUp, DbError>) -> Option<Message> {
        let (node, primary) = (self.node, self.primary);
        let seconds = |waited: Nanos| waited as f64 / 1e9;
        match ended {
            Ok(CatchUp::Reached(waited)) if waited > LONG => {
                let waited = format!("{:.1}", seconds(waited));
                Some(say!(replica_waited_for, node = node, primary = primary, waited = waited))
            }
            Ok(CatchUp::Behind(waited)) if !self.control.is_stopped() => {
                let waited = format!("{:.0}", seconds(waited));
                Some(say!(replica_still_behind, node = node, primary = primary, waited = waited))
            }
            Ok(CatchUp::Stopped(cause)) => {
                Some(say!(replica_applies_nothing, node = node, primary = primary, cause = cause))
            }
            Err(error) => {
                let why = error.to_string();
                let why = why.trim_end_matches('.');
                Some(say!(replica_not_asked, node = node, primary = primary, why = why))
            }
            Ok(_) => None,
        }
    }
}
