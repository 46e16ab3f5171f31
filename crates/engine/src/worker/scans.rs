//! Asks the server what it had to read for a session that has done its work.

use super::Worker;
use crate::record::FrameSink;
use dyno_core::{AnswerTable, Dialect, Driver, Session, Workload};
use dyno_facts::TableScans;

/// Sessions of a trial that are asked: all do the same, and a question takes time.
const ASKED: u32 = 16;
/// Multiple of the rows that a statement touches up to which planners scan with reason: tables of a few pages.
const EXCESS: u64 = 10;
/// The least number of rows that counts as a scan of a large table.
const ROWS_MIN: u64 = 1_000;

/// Counted by session: other clients do not matter. The answer itself is read by a scan of some hundred rows.
const MYSQL: &str =
    "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_rnd_next', 'Questions')";
/// Counters that the session has not yet added to the statistics of the server, which it does once a second.
const POSTGRES: &str = "SELECT 'rows', sum(seq_tup_read) FROM pg_stat_xact_user_tables \
     UNION ALL SELECT 'scans', sum(seq_scan) FROM pg_stat_xact_user_tables";

impl<W: Workload, D: Driver, S: FrameSink> Worker<'_, W, D, S> {
    /// Returns scans that the statements of the workload do not explain. A server that refuses the question has none.
    pub(super) async fn table_scans(&self, session: &mut D::Session) -> Option<TableScans> {
        let touched = self.shared.workload.rows_touched().filter(|_| self.id < ASKED)?;
        let question = match session.dialect() {
            Dialect::Mysql => MYSQL,
            Dialect::Postgres if session.capabilities().server_views => POSTGRES,
            Dialect::Postgres | Dialect::Sqlite => return None,
        };
        let mut answer = AnswerTable::default();
        session.query(question, &mut answer).await.ok()?;
        let count = |row: usize| answer.rows.get(row)?.get(1)?.as_ref()?.parse().ok();
        let scans = TableScans { rows: count(0)?, statements: count(1)? };
        Some(scans).filter(|scans| scans.rows_each() > (EXCESS * touched).max(ROWS_MIN))
    }
}
