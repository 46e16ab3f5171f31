//! TPC-C loaded into the shards behind an endpoint directly.

use crate::mine::{Mine, up};
use crate::shards::only_trial;
use dyno_testkit::{RunningDyno, dyno};
use dyno_topology::{NodeProduct, TopologyKind};
use rustix::process::Signal;

fn four_shards(test: &str) -> Option<Mine> {
    up(test, TopologyKind::Sharded, |request| {
        request.endpoint = Some(NodeProduct::Shardingsphere);
        request.endpoint_options.clients_max = 32;
    })
}

fn write_suite(mine: &Mine) {
    let suite = "[suite]\nname = \"sharded\"\n\n[target.main]\n\n[[experiment]]\nname = \"orders\"\nworkload = \"tpcc\"\n\
         test = \"bmsql-5.0\"\nterminals = 4\nwarmup_s = 0.5\nduration_s = 3\ncleanup = false\n\n\
         [experiment.options]\nwarehouses = 2\nload_workers = 2\n";
    std::fs::write(mine.scratch.path().join("sharded.toml"), suite).expect("a file");
}

/// Rows that a load has stored on two shards, which have a warehouse each.
fn rows_stored(mine: &Mine) -> u64 {
    let rows_on = |shard: &str| match mine.try_sql(shard, "SELECT count(*) FROM bmsql_order_line") {
        Ok(table) => table.single().and_then(|text| text.parse().ok()).unwrap_or(0),
        Err(_) => 0,
    };
    ["n2", "n3"].map(rows_on).iter().sum()
}

#[test]
fn a_killed_load_rows_ons_goes_on_and_rows_are_proven_where_they_belong() {
    let test = "a_killed_load_rows_ons_goes_on_and_rows_are_proven_where_they_belong";
    let Some(mine) = four_shards(test) else { return };
    write_suite(&mine);
    let target = format!("main={}", mine.url());
    let run = ["run", "sharded.toml", "--target", &target];
    let mut loading = RunningDyno::start(mine.scratch.path(), &run);
    loading.wait_until("chunks that are stored", |_| rows_stored(&mine) >= 60_000);
    loading.signal(Signal::KILL);
    loading.end();
    let output = mine.dyno(&run);
    assert!(output.stderr.contains("directly into 4 shards, by the rule `modulo`"), "{output}");
    assert!(output.stderr.contains("rows were there before"), "{output}");
    assert!(output.stderr.contains("Every row lies on its shard by the rule `modulo`"), "{output}");
    let checks = only_trial(mine.scratch.path());
    let checks = checks["checks"].as_array().expect("a list");
    let check = checks.iter().find(|check| check["name"] == "shard-placement").expect("the check");
    assert_eq!(check["verdict"], "passed", "{check}");
    let shards = ["n1", "n2", "n3", "n4"];
    let count_rows = |sql: &str| shards.map(|shard| mine.number(shard, sql));
    assert_eq!(count_rows("SELECT count(*) FROM bmsql_stock"), [0, 100_000, 100_000, 0]);
    assert_eq!(count_rows("SELECT count(*) FROM bmsql_item"), [100_000; 4]);
    let printed = mine.dyno(&["check", &mine.url(), "--only", "shard-placement"]).stdout;
    assert!(printed.contains("shard-placement  holds"), "{printed}");

    // By hand, as a wrong rule or a copy that was put back would.
    let row = mine.try_sql("n2", "SELECT * FROM bmsql_new_order LIMIT 1").expect("a row");
    let cells: Vec<String> = row.rows[0].iter().map(|cell| cell.clone().expect("a key")).collect();
    let key =
        format!("no_w_id = {} AND no_d_id = {} AND no_o_id = {}", cells[0], cells[1], cells[2]);
    mine.sql("n2", &format!("DELETE FROM bmsql_new_order WHERE {key}"));
    mine.sql("n4", &format!("INSERT INTO bmsql_new_order VALUES ({})", cells.join(", ")));
    let moved = dyno(mine.scratch.path(), &["check", &mine.url(), "--only", "shard-placement"]);
    assert_eq!(moved.code, 4, "{moved}");
    let finding = "bmsql_new_order: the shard n4 has 1 row of warehouse 1, which lies on n2.";
    assert!(moved.stdout.contains(finding), "{moved}");
    mine.sql("n3", "DELETE FROM bmsql_item WHERE i_id = 7");
    let copy = dyno(mine.scratch.path(), &["check", &mine.url(), "--only", "shard-placement"]);
    // The endpoint reads one of the four.
    assert!(copy.stdout.contains("bmsql_item on the shard n"), "{copy}");
}
