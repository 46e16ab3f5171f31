//! Tests that in the steady state a PostgreSQL session allocates nothing.

use dyno_core::{AnswerRow, ColumnNames, Discard, Driver, Param, ParamType, Rows, Session};
use dyno_drivers::TargetUrl;
use dyno_drivers::postgres::PostgresDriver;
use dyno_reactor::block_on;
use dyno_testkit::{Postgres, allocations, server_or_skip};

/// Reads every column without keeping it.
#[derive(Default)]
struct Sum(i64);

impl Rows for Sum {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0 += row.int(0).unwrap_or(0) + row.bytes(1).map_or(0, <[u8]>::len) as i64;
    }
}

/// Reads the names of columns.
#[derive(Default)]
struct Letters(usize);

impl Rows for Letters {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        self.0 += (0..columns.count()).map(|column| columns.name(column).len()).sum::<usize>();
    }

    fn row<R: AnswerRow>(&mut self, _row: &R) {}
}

/// Rounds that are counted, of nine times each kind of query.
const ROUNDS: u64 = 10;

#[test]
fn no_allocation_in_the_steady_state() {
    let server = server_or_skip!(Postgres, "no_allocation_in_the_steady_state");
    let target: TargetUrl = server.socket_url().parse().unwrap();
    block_on(async {
        let mut session = PostgresDriver::new(&target).unwrap().connect(0).await.unwrap();
        let setup =
            "CREATE TABLE t AS SELECT g id, repeat('c', 119) c FROM generate_series(1, 500) g";
        session.query(setup, &mut Discard).await.unwrap();
        let types = [ParamType::Int, ParamType::Int];
        let range = "SELECT id, c FROM t WHERE id BETWEEN $1 AND $2";
        let select = session.prepare(range, &types).await.unwrap();
        let types = [ParamType::Text, ParamType::Int];
        let update = session.prepare("UPDATE t SET c = $1 WHERE id = $2", &types).await.unwrap();
        let inferred = session
            .prepare("SELECT id, c FROM t WHERE id = $1 AND 0.5 < $2", &[ParamType::Inferred; 2])
            .await
            .unwrap();
        let mut results = Vec::with_capacity(20);
        let (mut sum, mut names) = (Sum::default(), Letters::default());
        let (mut counted, mut loud) = (0, 0);
        // The first rounds let the buffers grow to their working size. A busy machine wakes this
        // thread late, answers pile up, and a buffer doubles once more; a round that allocates for
        // its queries does so nine times.
        for round in 0..5 + ROUNDS {
            let before = allocations();
            for id in 1..10 {
                let params = [Param::Int(id), Param::Int(id + 99)];
                session.execute(select, &params, &mut sum).await.unwrap();
                session.execute(select, &params, &mut Discard).await.unwrap();
                let params = [Param::Text(&[b'd'; 119]), Param::Int(id)];
                session.execute(update, &params, &mut Discard).await.unwrap();
                session.query("SELECT id, c FROM t WHERE id < 50", &mut sum).await.unwrap();
                session.query("BEGIN", &mut Discard).await.unwrap();
                session.rollback().await.unwrap();
                let texts = [Param::Int(id), Param::Double(id as f64 / 7.0)];
                session.execute(inferred, &texts, &mut sum).await.unwrap();
                session.execute(inferred, &texts, &mut names).await.unwrap();
                let once = "SELECT id, c FROM t WHERE id = $1 AND $2 > 0.5";
                session.execute_once(once, &texts, &mut sum).await.unwrap();
                session.execute_once(once, &texts, &mut names).await.unwrap();
                session.query("SELECT 1 AS a; SELECT 2 AS b", &mut names).await.unwrap();
                for _ in 0..5 {
                    session.queue_once(once, &texts).unwrap();
                    session.queue_sync().unwrap();
                    session.queue(select, &[Param::Int(id), Param::Null]).unwrap();
                    session.queue(update, &params).unwrap();
                }
                session.flush(&mut sum, &mut results).await.unwrap();
                assert!(results.drain(..).all(|result| result.is_ok()));
            }
            if round >= 5 {
                let new_allocations = allocations() - before;
                (counted, loud) =
                    (counted + new_allocations, loud + u64::from(new_allocations > 0));
            }
        }
        assert!(sum.0 > 0 && names.0 > 0);
        assert!(allocations() > 0, "the counting allocator is installed");
        assert!(
            loud <= 2 && counted < ROUNDS,
            "{counted} allocations in {loud} rounds of {ROUNDS}"
        );
    })
    .unwrap();
}
