//! Helpers that the tests of MySQL sessions share.

use dyno_core::{
    AnswerRow, AnswerTable, DbError, Discard, Driver, Param, ParamType, Rows, Session,
};
use dyno_drivers::mysql::{MysqlDriver, MysqlSession};

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    dyno_reactor::block_on(future).unwrap()
}

pub(crate) fn driver(url: &str) -> MysqlDriver {
    MysqlDriver::new(&url.parse().unwrap()).unwrap()
}

pub(crate) async fn connect(url: &str) -> Result<MysqlSession, DbError> {
    MysqlDriver::new(&url.parse().unwrap())?.connect(0).await
}

pub(crate) fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// All rows of an answer to text.
pub(crate) async fn query_rows(session: &mut MysqlSession, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut table = AnswerTable::for_workload();
    session.query(sql, &mut table).await.unwrap();
    table.rows
}

/// Executes statements that must succeed.
pub(crate) async fn run_sql(session: &mut MysqlSession, statements: &[&str]) {
    for sql in statements {
        session.query(sql, &mut Discard).await.unwrap();
    }
}

/// Text longer than a packet and answers as long, both ways.
pub(crate) async fn big_packets(session: &mut MysqlSession, sizes: &[usize]) {
    let sum = session.prepare("SELECT LENGTH(?), 'end'", &[ParamType::Text]).await.unwrap();
    for &size in sizes {
        let long = vec![b'z'; size];
        let mut ints = Ints::default();
        session.execute(sum, &[Param::Text(&long)], &mut ints).await.unwrap();
        assert_eq!(ints.0, [Some(size as i64)]);
        let sql = format!("SELECT REPEAT('z', {size}) UNION ALL SELECT 'end'");
        let rows = query_rows(session, &sql).await;
        assert_eq!(rows[0][0].as_ref().map(String::len), Some(size));
        assert_eq!(rows[1][0], text("end"));
        let executed = session.query(&sql, &mut Discard).await.unwrap();
        assert_eq!(executed.rows, 2);
    }
}

/// Keeps the numbers of the first column.
#[derive(Default)]
pub(crate) struct Ints(pub(crate) Vec<Option<i64>>);

impl Rows for Ints {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0.push(row.int(0));
    }
}
