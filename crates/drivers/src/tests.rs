//! Helpers of the tests of the embedded databases.

use crate::target::TargetUrl;
use dyno_core::{
    AnswerRow, AnswerTable, Discard, Driver, Executed, Param, ParamType, Rows, Session,
};
use dyno_reactor::block_on;
use tempfile::TempDir;

/// A database in a folder that goes away with the test.
pub(crate) struct DatabaseFolder(pub(crate) TempDir);

impl DatabaseFolder {
    pub(crate) fn new() -> Self {
        DatabaseFolder(TempDir::new().unwrap())
    }

    /// The URL of the database in this folder.
    pub(crate) fn target(&self, scheme: &str, query: &str) -> TargetUrl {
        format!("{scheme}:{}/test.db{query}", self.0.path().display()).parse().unwrap()
    }
}

/// Runs a test's steps with one fresh session.
pub(crate) fn with_driver_session<D: Driver>(driver: &D, steps: impl AsyncFnOnce(&mut D::Session)) {
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        steps(&mut session).await;
        session.close().await;
    })
    .unwrap();
}

/// All rows of a query.
pub(crate) async fn query<S: Session>(session: &mut S, sql: &str) -> AnswerTable {
    let mut table = AnswerTable::default();
    session.query(sql, &mut table).await.unwrap();
    table
}

/// The only value of a query; `NULL` for NULL.
pub(crate) async fn single<S: Session>(session: &mut S, sql: &str) -> String {
    query(session, sql).await.single().unwrap_or("NULL").to_owned()
}

pub(crate) fn counts(executed: Executed) -> (bool, u64, u64) {
    (executed.has_rows, executed.rows, executed.affected)
}

/// Puts values of all kinds into a table of an integer, a number and two texts, and reads them.
pub(crate) async fn values_come_back<S: Session>(session: &mut S, insert: &str, select: &str) {
    type Readings = (Option<i64>, Option<f64>, Option<Vec<u8>>, bool);
    struct Kinds(Vec<Readings>);
    impl Rows for Kinds {
        fn row<R: AnswerRow>(&mut self, row: &R) {
            for column in 0..row.columns() {
                self.0.push((
                    row.int(column),
                    row.double(column),
                    row.bytes(column).map(<[u8]>::to_vec),
                    row.is_null(column),
                ));
            }
        }
    }
    let types = [ParamType::Int, ParamType::Double, ParamType::Text, ParamType::Text];
    let insert = session.prepare(insert, &types).await.unwrap();
    let params = [Param::Int(i64::MIN), Param::Double(0.5), Param::Text(b"17"), Param::Null];
    let executed = session.execute(insert, &params, &mut Discard).await.unwrap();
    assert_eq!(counts(executed), (false, 0, 1));
    let error = session.execute(insert, &[], &mut Discard).await.unwrap_err();
    assert!(error.message().contains("takes 4 parameters"), "{error}");

    let select = session.prepare(select, &[ParamType::Text]).await;
    let mut kinds = Kinds(Vec::new());
    let params = [Param::Text(b"17")];
    let executed = session.execute(select.unwrap(), &params, &mut kinds).await.unwrap();
    assert_eq!(counts(executed), (true, 1, 0));
    assert_eq!(
        kinds.0,
        [
            (Some(i64::MIN), Some(i64::MIN as f64), None, false),
            (None, Some(0.5), None, false),
            (Some(17), Some(17.0), Some(b"17".to_vec()), false),
            (None, None, None, true),
        ]
    );
}
