//! Tests that in the steady state no transaction of a script allocates.

mod sink;

use dyno_core::{Dialect, EndedTransaction, Outcome, Rng, Tally, Workload};
use dyno_pgbench::run::{PgBench, PgbenchOptions};
use dyno_pgbench::script::{QueryMode, Script, builtins};
use dyno_reactor::block_on;
use dyno_testkit::{Counting, allocations};
use sink::Sink;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Everything that a script may contain, but shell commands and debug output.
const ALL: &str = "\\set a random(1, 1000)
\\set b random_gaussian(1, 1000, 2.5) / 7.0
\\set c :a > 500 and not :b is null
\\set d case when :a < 10 then permute(:a, 1000) else hash(:a) end
\\set e greatest(:a, 1.5, :d)
\\set n null
\\if :c
SELECT ':e', :a, :b, :c, :n, :nobody;
\\elif :a = 1
SELECT 1;
\\else
SELECT :a + :d;
\\endif
SELECT 1 AS first, 2 AS second \\gset p_
SELECT :p_first, :p_second \\aset
\\set f :p_second + :second
\\sleep 0 us
SELECT :f;
";

const CHAIN: &str =
    "\\set a random(1, 1000)\nSELECT :a \\; SELECT ':a' \\aset\nSELECT 1 \\; SELECT 2;\n";

const PIPELINE: &str = "\\startpipeline\nSELECT :scale;\n\\syncpipeline\n\\set a random(1, 9) / 2.0\n\
                        SELECT :a;\n\\endpipeline\n";

fn count_allocations(text: &str, mode: QueryMode, dialect: Dialect, latencies: bool) -> u64 {
    let scripts =
        [text, "SELECT 2;"].map(|text| Script::parse(text.as_bytes(), "file", mode).unwrap());
    let mut options = PgbenchOptions::new(scripts.map(|script| (script, 1)).to_vec(), mode, 1);
    options.statement_latencies = latencies;
    let test = PgBench::new(options, dialect, Box::new(|talk| panic!("{talk:?}"))).unwrap();
    block_on(async {
        let mut session = Sink::new(dialect);
        let mut client = test.open(&mut session, 0, 1, Rng::new(1, "worker", 0)).await.unwrap();
        let mut before = 0;
        for number in 0..2_000 {
            if number == 1_000 {
                before = allocations();
            }
            let transaction = test.choose(&mut client).unwrap();
            let mut tally = Tally::default();
            let result = test.run(&mut client, &mut session, transaction, 0, &mut tally).await;
            let ended = EndedTransaction {
                transaction,
                outcome: result.unwrap(),
                due: 0,
                began: 0,
                ended: 1,
                attempts: 1,
                is_measured: true,
            };
            assert_eq!(ended.outcome, Outcome::Committed);
            assert!(tally.statements() > 0);
            test.ended(&mut client, &ended);
        }
        allocations() - before
    })
    .unwrap()
}

#[test]
fn no_transaction_allocates() {
    assert!(allocations() > 0, "the counting allocator is installed");
    let texts = builtins().iter().map(|builtin| builtin.text).chain([ALL, CHAIN, PIPELINE]);
    for text in texts {
        for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
            for mode in QueryMode::ALL {
                let needs_other_mode = (text == CHAIN && mode != QueryMode::Simple)
                    || (text == PIPELINE
                        && (mode == QueryMode::Simple
                            || (mode, dialect) == (QueryMode::Extended, Dialect::Mysql)));
                if needs_other_mode {
                    continue;
                }
                for latencies in [false, true] {
                    let count = count_allocations(text, mode, dialect, latencies);
                    assert_eq!(count, 0, "{mode:?} on {dialect:?}, latencies: {latencies}: {text}");
                }
            }
        }
    }
}
