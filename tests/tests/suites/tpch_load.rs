//! `dyno tpch load` and `dyno tpch drop` on real servers and files.

use dyno_testkit::{MariaDb, Postgres, Scratch, dyno, server_or_skip};

/// Loads a little into a database that does not exist, twice, and drops it.
fn assert_loads(folder: &Scratch, url: &str) {
    let load = ["tpch", "load", "--scale", "0.01", "--target", url, "--sessions", "2"];
    let first = dyno(folder.path(), &load);
    assert_eq!(first.code, 0, "{}", first.all());
    let line = |step: &str| {
        let line = first.stdout.lines().find(|line| line.starts_with(&format!("{step}\t")));
        let columns = line.unwrap_or_else(|| panic!("no {step}: {}", first.all())).split('\t');
        columns.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("step"), ["step", "seconds", "rows"]);
    assert_eq!(line("load")[2], "86805", "{}", first.all());
    assert_eq!(line("load/lineitem")[2], "60175");
    assert!(line("analyze")[1].parse::<f64>().is_ok());
    assert!(first.stderr.contains("all counted and added up"), "{}", first.all());

    let second = dyno(folder.path(), &load);
    assert_eq!((second.code, &second.stdout), (0, &first.stdout), "{}", second.all());
    assert!(second.stderr.contains("nothing was missing"), "{}", second.all());
    let mut other = load;
    other[3] = "0.02";
    let refused = dyno(folder.path(), &other);
    assert_eq!(refused.code, 1, "{}", refused.all());
    assert!(refused.stderr.contains("scale factor 0.01 with foreign keys"), "{}", refused.all());
    assert!(refused.stderr.contains("hint: "), "{}", refused.all());

    let drop = dyno(folder.path(), &["tpch", "drop", "--target", url]);
    assert_eq!(drop.code, 0, "{}", drop.all());
    assert!(drop.stdout.contains("drop table lineitem;"), "{}", drop.all());
    assert!(drop.stderr.contains("Dropped: 10 tables."), "{}", drop.all());
}

#[test]
fn a_missing_database_of_postgres_is_created_and_loaded() {
    let name = "a_missing_database_of_postgres_is_created_and_loaded";
    let server = server_or_skip!(Postgres, name);
    let url = server.url().replace("/sbtest", "/tpch_new");
    let folder = Scratch::new();
    let load = ["tpch", "load", "--scale", "0.01", "--target", &url, "--steps", "create"];
    let created = dyno(folder.path(), &load);
    assert_eq!(created.code, 0, "{}", created.all());
    assert!(created.stdout.contains("create-database\t"), "{}", created.all());
    assert!(created.stderr.contains("steps are left"), "{}", created.all());
    assert!(created.stderr.contains("raise maintenance_work_mem"), "{}", created.all());
    assert_loads(&folder, &url);
}

#[test]
fn a_missing_database_of_mariadb_is_created_and_loaded() {
    let name = "a_missing_database_of_mariadb_is_created_and_loaded";
    let server = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    assert_loads(&folder, &server.url().replace("/sbtest", "/tpch_new"));

    // Of the empty database beside it, a table is somebody else's.
    server.sql("CREATE TABLE sbtest.orders (id int)").expect("a table");
    let url = server.url();
    let mut drop = vec!["tpch", "drop", "--target", &url];
    let refused = dyno(folder.path(), &drop);
    assert_eq!(refused.code, 1, "{}", refused.all());
    assert!(
        refused.stderr.contains("The table orders was not loaded by dyno"),
        "{}",
        refused.all()
    );
    drop.push("--force");
    let dropped = dyno(folder.path(), &drop);
    assert_eq!(dropped.code, 0, "{}", dropped.all());
    assert!(dropped.stderr.contains("Dropped: 1 table."), "{}", dropped.all());
}

#[test]
fn a_file_of_sqlite_is_loaded_and_mistakes_have_remedies() {
    let folder = Scratch::new();
    let url = format!("sqlite:{}", folder.file("tpch.db").display());
    let mistakes = [
        (vec!["--scale", "100000"], 1, "more on the disk of"),
        (vec!["--scale", "0.01", "--steps", "create,indices"], 2, "no step `indices`"),
        (vec!["--scale", "0.01", "--steps", "create,analyze"], 2, "before the step load"),
        (vec!["--scale", "0.01", "--sessions", "0"], 2, "at least one session"),
    ];
    for (options, code, complaint) in mistakes {
        let mut words = vec!["tpch", "load", "--target", &url];
        words.extend(options);
        let ran = dyno(folder.path(), &words);
        assert_eq!(ran.code, code, "{}", ran.all());
        assert!(ran.stderr.contains(complaint), "{}", ran.all());
    }
    let drop = dyno(folder.path(), &["tpch", "drop", "--target", &url]);
    assert_eq!(drop.code, 0, "{}", drop.all());
    assert_loads(&folder, &url);
}
