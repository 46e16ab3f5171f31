//! libpq's `target_session_attrs`: the kinds of servers that a target accepts.

use super::PostgresSession;
use dyno_core::{AnswerTable, DbResult, Session};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SessionAttributes {
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    /// A standby, or any server if there is none.
    PreferStandby,
}

impl SessionAttributes {
    /// By its checked name.
    pub(super) fn named(name: Option<&str>) -> Self {
        match name {
            Some("read-write") => SessionAttributes::ReadWrite,
            Some("read-only") => SessionAttributes::ReadOnly,
            Some("primary") => SessionAttributes::Primary,
            Some("standby") => SessionAttributes::Standby,
            Some("prefer-standby") => SessionAttributes::PreferStandby,
            _ => SessionAttributes::Any,
        }
    }

    /// The wishes for a first round over the hosts and for a second one.
    pub(super) fn rounds(self) -> (SessionAttributes, Option<SessionAttributes>) {
        match self {
            SessionAttributes::PreferStandby => {
                (SessionAttributes::Standby, Some(SessionAttributes::PreferStandby))
            }
            wanted => (wanted, None),
        }
    }

    /// The objection to this server, in libpq's words.
    pub(super) async fn objection(
        self,
        session: &mut PostgresSession,
    ) -> DbResult<Option<&'static str>> {
        Ok(match self {
            SessionAttributes::Any | SessionAttributes::PreferStandby => None,
            SessionAttributes::ReadWrite => {
                is_read_only(session).await?.then_some("session is read-only")
            }
            SessionAttributes::ReadOnly => {
                (!is_read_only(session).await?).then_some("session is not read-only")
            }
            SessionAttributes::Primary => {
                is_standby(session).await?.then_some("server is in hot standby mode")
            }
            SessionAttributes::Standby => {
                (!is_standby(session).await?).then_some("server is not in hot standby mode")
            }
        })
    }
}

/// Servers report it since PostgreSQL 14.
async fn is_standby(session: &mut PostgresSession) -> DbResult<bool> {
    match session.parameter("in_hot_standby") {
        Some(value) => Ok(value == "on"),
        None => is_true(session, "SELECT pg_catalog.pg_is_in_recovery()").await,
    }
}

async fn is_read_only(session: &mut PostgresSession) -> DbResult<bool> {
    let by_default = session.parameter("default_transaction_read_only");
    match (session.parameter("in_hot_standby"), by_default) {
        (Some(standby), Some(by_default)) => Ok(standby == "on" || by_default == "on"),
        _ => is_true(session, "SHOW transaction_read_only").await,
    }
}

async fn is_true(session: &mut PostgresSession, sql: &str) -> DbResult<bool> {
    let mut answer = AnswerTable::default();
    session.query(sql, &mut answer).await?;
    Ok(matches!(answer.single(), Some("on" | "t")))
}
