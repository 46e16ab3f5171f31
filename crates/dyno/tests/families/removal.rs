//! The tables that families drop.

use dyno::families::FAMILIES;
use dyno_load::catalog;
use dyno_load::query::execute;
use dyno_runner::databases::{Database, reach};
use dyno_runner::family::{Trials, ask, experiment, offers, remove_tables};
use dyno_runner::progress::LoadProgress;
use dyno_suite::{Overrides, Plan, Suite};
use std::collections::BTreeSet;

const SYSBENCH: &str = "workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = 1\n\
                        duration_s = 5\noptions = { tables = 3 }";
const PGBENCH: &str = "workload = 'pgbench'\ntest = 'tpcb-like'\nworkers = 1\nduration_s = 5";
const TPCC: &str = "workload = 'tpcc'\ntest = 'bmsql-5.0'\nterminals = 2\nduration_s = 5\n\
                    options = { warehouses = 1 }";
const TPCH: &str = "workload = 'tpch'\ntest = 'queries'";

fn family(text: &str) -> Box<dyn Trials> {
    let suite = format!(
        "[suite]\nname = 's'\n[target.t]\nurl = 'sqlite:x'\n[[experiment]]\nname = 'e'\n{text}\n"
    );
    let suite = Suite::parse("s.toml", &suite, &offers(FAMILIES)).expect("a suite");
    let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
    let family = experiment(FAMILIES, &plan, &plan.experiments[0]);
    family.unwrap_or_else(|failure| panic!("{}", failure.message))
}

fn sql(database: &Database, sql: &str) {
    ask(&database.admin(), async |session| execute(session, "making a table", sql).await)
        .expect("executed");
}

fn tables(database: &Database) -> BTreeSet<String> {
    let listed = ask(&database.admin(), async |session| catalog::tables(session).await);
    listed.expect("a list").into_iter().collect()
}

/// Experiments may share names of tables, of which a run has made only some.
#[test]
fn only_the_given_tables_go_and_those_that_refer_to_others_go_first() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, child, parent) in [
        (SYSBENCH, "sbtest1", "sbtest2"),
        (PGBENCH, "pgbench_accounts", "pgbench_branches"),
        (TPCC, "bmsql_district", "bmsql_warehouse"),
        (TPCH, "nation", "region"),
    ] {
        let family = family(text);
        let url = format!("sqlite:{}", folder.path().join(parent).display());
        let database = reach("t", &url).expect("a database").database;
        let mut names: BTreeSet<String> = family.tables().into_iter().collect();
        names.insert("others".to_owned());
        for name in &names {
            sql(&database, &format!("CREATE TABLE {name} (id INTEGER PRIMARY KEY)"));
        }
        sql(&database, &format!("ALTER TABLE {child} ADD COLUMN up INT REFERENCES {parent}"));
        sql(&database, &format!("INSERT INTO {parent} VALUES (1)"));
        sql(&database, &format!("INSERT INTO {child} VALUES (7, 1)"));
        let tables_to_drop = [parent, child, "others"].map(str::to_owned);
        let removed =
            remove_tables(&*family, &database, &tables_to_drop, &LoadProgress::new("removal"));
        removed.unwrap_or_else(|failure| panic!("{text}: {}", failure.message));
        names.retain(|name| name == "others" || !tables_to_drop.contains(name));
        assert_eq!(tables(&database), names, "{text}");
    }
}
