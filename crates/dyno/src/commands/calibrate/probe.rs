//! The workload that known effects are injected into: one row of a table of dyno's own is read, and the statement has a
//! part of known cost, which the server computes.

use dyno_core::{
    AdminDriver, DbError, Dialect, Discard, Outcome, Param, ParamType, Rng, Session, Statement,
    Tally, TransactionId, TransactionKind, WorkerId, Workload,
};
use dyno_runner::databases::{in_session, run};

/// The table, made before the first trial and dropped after the last one.
pub(super) const TABLE: &str = "dyno_calibrate";
const ROWS: i64 = 100;

pub(super) struct Probe {
    kinds: [TransactionKind; 1],
    sql: String,
}

impl Probe {
    /// With so many digests in each statement; `None` where the server has no way to compute them.
    pub(super) fn new(dialect: Dialect, digests: u64) -> Option<Self> {
        let sql = match dialect {
            Dialect::Mysql => {
                format!("SELECT v, BENCHMARK({digests}, SHA2(v, 256)) FROM {TABLE} WHERE id = ?")
            }
            Dialect::Postgres => format!(
                "SELECT v, (SELECT count(md5(n::text)) FROM generate_series(1, {digests}) n) FROM {TABLE} \
                 WHERE id = $1"
            ),
            Dialect::Sqlite => return None,
        };
        let kinds = [TransactionKind { name: "read".to_owned(), weight: 1 }];
        Some(Probe { kinds, sql })
    }
}

/// Makes the table. One that a calibration has left that was killed is replaced.
pub(super) fn make(driver: &AdminDriver<'_>) -> Result<(), DbError> {
    let rows: Vec<String> = (1..=ROWS).map(|id| format!("({id}, {})", id * 7)).collect();
    execute(
        driver,
        &[
            format!("DROP TABLE IF EXISTS {TABLE}"),
            format!("CREATE TABLE {TABLE} (id INT PRIMARY KEY, v INT NOT NULL)"),
            format!("INSERT INTO {TABLE} (id, v) VALUES {}", rows.join(", ")),
        ],
    )
}

pub(super) fn remove(driver: &AdminDriver<'_>) -> Result<(), DbError> {
    execute(driver, &[format!("DROP TABLE IF EXISTS {TABLE}")])
}

fn execute(driver: &AdminDriver<'_>, statements: &[String]) -> Result<(), DbError> {
    run(in_session(driver, async |session| {
        for sql in statements {
            session.query(sql, &mut Discard).await?;
        }
        Ok(())
    }))
}

impl Workload for Probe {
    type Worker = (Statement, Rng);
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        _id: WorkerId,
        _workers: u32,
        rng: Rng,
    ) -> Result<Self::Worker, DbError> {
        Ok((session.prepare(&self.sql, &[ParamType::Int]).await?, rng))
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
    ) -> Result<(), DbError> {
        worker.0 = session.prepare(&self.sql, &[ParamType::Int]).await?;
        Ok(())
    }

    async fn run<S: Session>(
        &self,
        (statement, rng): &mut Self::Worker,
        session: &mut S,
        _transaction: TransactionId,
        _attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        let id = Param::Int(rng.uniform(1, ROWS as u64) as i64);
        tally.count(session.execute_short(*statement, &[id], &mut Discard).await?);
        Ok(Outcome::Committed)
    }
}
