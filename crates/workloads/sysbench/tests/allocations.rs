//! Tests that in the steady state no transaction of any test allocates.

mod common;

use common::Sink;
use dyno_core::{Dialect, Rng, Tally, Workload};
use dyno_reactor::block_on;
use dyno_sysbench::{KeyDistribution, Sysbench, SysbenchOptions, SysbenchTest};
use dyno_testkit::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of as many transactions, after some that let buffers grow to their working size.
fn count_allocations(options: SysbenchOptions, dialect: Dialect, transactions: u32) -> u64 {
    let test = Sysbench::new(options, dialect);
    block_on(async {
        let mut session = Sink(dialect);
        let rng = Rng::new(1, "worker", 0);
        let mut worker = test.open(&mut session, 0, 1, rng).await.unwrap();
        let mut tally = Tally::default();
        for _ in 0..10 {
            test.run(&mut worker, &mut session, 0, 0, &mut tally).await.unwrap();
        }
        let before = allocations();
        for _ in 0..transactions {
            test.run(&mut worker, &mut session, 0, 0, &mut tally).await.unwrap();
        }
        assert!(tally.statements() > 0);
        allocations() - before
    })
    .unwrap()
}

#[test]
fn no_transaction_allocates() {
    assert!(allocations() > 0, "the counting allocator is installed");
    for test in SysbenchTest::ALL {
        for dialect in [Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite] {
            for prepared in [true, false] {
                let mut options = SysbenchOptions { tables: 3, ..SysbenchOptions::new(test) };
                options.prepared &= prepared;
                // Enough rows for several packets of a bulk insert.
                let transactions = if test.is_bulk_insert() { 100_000 } else { 200 };
                let count = count_allocations(options, dialect, transactions);
                assert_eq!(count, 0, "{} on {dialect:?}, prepared: {prepared}", test.name());
            }
        }
    }
    for distribution in KeyDistribution::ALL {
        let mut options = SysbenchOptions::new(SysbenchTest::ReadWrite);
        options.random.distribution = distribution;
        assert_eq!(count_allocations(options, Dialect::Mysql, 200), 0, "{distribution:?}");
    }
}
