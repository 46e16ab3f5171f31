//! `dyno tpch load` and `dyno tpch drop` on real servers and files.

use dyno_testkit::{MariaDb, Postgres, Scratch, dyno, server_or_skip};

/// Loads a little into a database that does not exist, twice, and drops it.
fn assert_loads(folder: &Scratch, url: &str) {
    let load = ["tpch", "load", "--scale", "0.01", "--target", url, "--sessions", "2"];
    let first = dyno(folder.path(), &load);
    assert_eq!(first.code, 0, "{first}");
    let find_line = |step: &str| {
        let line = first.stdout.lines().find(|line| line.starts_with(&format!("{step}\t")));
        let columns = line.unwrap_or_else(|| panic!("no {step}: {first}")).split('\t');
        columns.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(find_line("step"), ["step", "seconds", "rows"]);
    assert_eq!(find_line("load")[2], "86805", "{first}");
    assert_eq!(find_line("load/lineitem")[2], "60175");
    assert!(find_line("analyze")[1].parse::<f64>().is_ok());
    assert!(first.stderr.contains("all counted and added up"), "{first}");

    let second = dyno(folder.path(), &load);
    assert_eq!((second.code, &second.stdout), (0, &first.stdout), "{second}");
    assert!(second.stderr.contains("nothing was missing"), "{second}");
    let mut other_scale = load;
    other_scale[3] = "0.02";
    let second_scale = dyno(folder.path(), &other_scale);
    assert_eq!(second_scale.code, 1, "{second_scale}");
    assert!(second_scale.stderr.contains("scale factor 0.01 with foreign keys"), "{second_scale}");
    assert!(second_scale.stderr.contains("hint: "), "{second_scale}");

    let drop = dyno(folder.path(), &["tpch", "drop", "--target", url]);
    assert_eq!(drop.code, 0, "{drop}");
    assert!(drop.stdout.contains("drop table lineitem;"), "{drop}");
    assert!(drop.stderr.contains("Dropped: 10 tables."), "{drop}");
}

#[test]
fn a_new_database_of_postgres_is_loaded() {
    let name = "a_new_database_of_postgres_is_loaded";
    let server = server_or_skip!(Postgres, name);
    server.sql("CREATE DATABASE tpch_new").expect("a database");
    let url = server.url().replace("/sbtest", "/tpch_new");
    let folder = Scratch::new();
    let load = ["tpch", "load", "--scale", "0.01", "--target", &url, "--steps", "create"];
    let created = dyno(folder.path(), &load);
    assert_eq!(created.code, 0, "{created}");
    assert!(created.stderr.contains("steps are left"), "{created}");
    assert!(created.stderr.contains("raise maintenance_work_mem"), "{created}");
    assert_loads(&folder, &url);
}

#[test]
fn a_new_database_of_mariadb_is_loaded() {
    let name = "a_new_database_of_mariadb_is_loaded";
    let server = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    server.sql("CREATE DATABASE tpch_new").expect("a database");
    assert_loads(&folder, &server.url().replace("/sbtest", "/tpch_new"));

    // A table in the empty database next to it is somebody else's.
    server.sql("CREATE TABLE sbtest.orders (id int)").expect("a table");
    let url = server.url();
    let mut drop = vec!["tpch", "drop", "--target", &url];
    let foreign = dyno(folder.path(), &drop);
    assert_eq!(foreign.code, 1, "{foreign}");
    assert!(foreign.stderr.contains("The table orders was not loaded by dyno"), "{foreign}");
    drop.push("--force");
    let dropped = dyno(folder.path(), &drop);
    assert_eq!(dropped.code, 0, "{dropped}");
    assert!(dropped.stderr.contains("Dropped: 1 table."), "{dropped}");
}

/// A user's own table instead of one that was loaded is neither dropped nor filled. `sql` is the server's own client.
fn assert_keeps_what_users_have_made(url: &str, sql: &dyn Fn(&str) -> Result<String, String>) {
    let folder = Scratch::new();
    let run_tpch = |words: &[&str], code: i32| {
        let output = dyno(folder.path(), &[&["tpch"], words, &["--target", url]].concat());
        assert_eq!(output.code, code, "{output}");
        output
    };
    let foreign = "The table orders was not loaded by dyno";
    let load = ["load", "--scale", "0.01"];
    run_tpch(&load, 0);
    sql("DROP TABLE lineitem").expect("a drop");
    sql("DROP TABLE orders").expect("a drop");
    sql("CREATE TABLE orders (own int)").expect("a table");
    sql("INSERT INTO orders VALUES (7)").expect("a row");
    assert!(run_tpch(&["drop"], 1).stderr.contains(foreign));
    sql("SELECT count(*) FROM part").expect("nothing was dropped");
    assert_eq!(sql("SELECT own FROM orders").as_deref().map(str::trim), Ok("7"));
    sql("DROP TABLE orders").expect("a drop");
    run_tpch(&["drop"], 0);

    // A load that was interrupted before it made any of the eight.
    run_tpch(&[&load[..], &["--steps", "create"]].concat(), 0);
    let eight = "lineitem, orders, customer, partsupp, supplier, part, nation, region";
    sql(&format!("DROP TABLE {eight}")).expect("a drop");
    sql("CREATE TABLE orders (own int)").expect("a table");
    assert!(run_tpch(&load, 1).stderr.contains(foreign));
    assert!(run_tpch(&["drop"], 1).stderr.contains(foreign));
    sql("SELECT own FROM orders").expect("it is kept");
    assert!(run_tpch(&["drop", "--force"], 0).stderr.contains("Dropped: 3 tables."));
}

#[test]
fn tables_that_users_of_postgres_have_made_are_kept() {
    let server = server_or_skip!(Postgres, "tables_that_users_of_postgres_have_made_are_kept");
    assert_keeps_what_users_have_made(&server.url(), &|sql| server.sbtest(sql));
}

#[test]
fn tables_that_users_of_mariadb_have_made_are_kept() {
    let server = server_or_skip!(MariaDb, "tables_that_users_of_mariadb_have_made_are_kept");
    let sql = |sql: &str| server.sql(&format!("USE sbtest; {sql}"));
    assert_keeps_what_users_have_made(&server.url(), &sql);
}

#[test]
fn a_file_of_sqlite_is_loaded_and_mistakes_have_remedies() {
    let folder = Scratch::new();
    let url = format!("sqlite:{}", folder.file("tpch.db").display());
    let mistakes = [
        (vec!["--scale", "0.01", "--steps", "create,indices"], 2, "no step `indices`"),
        (vec!["--scale", "0.01", "--steps", "create,analyze"], 2, "before the step load"),
        (vec!["--scale", "0.01", "--sessions", "0"], 2, "at least one session"),
    ];
    for (options, code, complaint) in mistakes {
        let mut words = vec!["tpch", "load", "--target", &url];
        words.extend(options);
        let output = dyno(folder.path(), &words);
        assert_eq!(output.code, code, "{output}");
        assert!(output.stderr.contains(complaint), "{output}");
    }
    let drop = dyno(folder.path(), &["tpch", "drop", "--target", &url]);
    assert_eq!(drop.code, 0, "{drop}");
    assert_loads(&folder, &url);
}
