//! The CSV files of `fileLocation`: PostgreSQL takes them, and holds the rows of a load then.

use super::support::{good, properties, ran, sqlite};
use dyno_testkit::{Postgres, Scratch, server_or_skip};

/// Path, table and columns of each file, as standard output lists them.
fn files(stdout: &str) -> Vec<(String, String, Vec<String>)> {
    let file = |line: &str| {
        let (path, rest) = line.split_once(": ")?;
        let (_, rest) = rest.split_once(" rows of ")?;
        let (table, columns) = rest.strip_suffix(')')?.split_once(" (")?;
        let columns = columns.split(", ").map(str::to_owned).collect();
        Some((path.to_owned(), table.to_owned(), columns))
    };
    stdout.lines().filter_map(file).collect()
}

#[test]
fn copied_files_hold_the_rows_of_a_load() {
    let server = server_or_skip!(Postgres, "copied_files_hold_the_rows_of_a_load");
    let folder = Scratch::new();
    let port = server.port;
    let conn =
        format!("db=postgres\nconn=jdbc:postgresql://127.0.0.1:{port}/sbtest\nuser=postgres");
    properties(&folder, &conn);
    good(&folder, &["build", "props", "--seed", "5"]);
    let prefix = folder.file("tpcc-");
    let prefix = prefix.to_str().expect("a path");
    let written = good(&folder, &["build", "props", "fileLocation", prefix, "--seed", "5"]);
    let files = files(&written.stdout);
    let mut names: Vec<&str> =
        files.iter().filter_map(|(path, ..)| path.strip_prefix(prefix)).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "config.csv",
            "cust-hist.csv",
            "customer.csv",
            "district.csv",
            "item.csv",
            "new-order.csv",
            "order-line.csv",
            "order.csv",
            "stock.csv",
            "warehouse.csv",
        ]
    );
    server.sbtest("CREATE SCHEMA files").expect("a schema");
    for (path, table, columns) in &files {
        server
            .sbtest(&format!("CREATE TABLE files.{table} (LIKE public.{table})"))
            .unwrap_or_else(|error| panic!("{table}: {error}"));
        let copy = format!(
            "\\copy files.{table} ({}) FROM '{path}' WITH (FORMAT csv, NULL 'NULL')",
            columns.join(", ")
        );
        server.sbtest(&copy).unwrap_or_else(|error| panic!("{copy}: {error}"));
        // Points in time are those of each load; whether there is one is the same.
        let is_time =
            |name: &str| matches!(name, "c_since" | "h_date" | "o_entry_d" | "ol_delivery_d");
        let compared: Vec<String> = columns
            .iter()
            .map(|name| if is_time(name) { format!("{name} IS NULL") } else { name.clone() })
            .collect();
        let compared = compared.join(", ");
        let (ours, theirs) = (format!("files.{table}"), format!("public.{table}"));
        for (left, right) in [(&ours, &theirs), (&theirs, &ours)] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT {compared} FROM {left} EXCEPT ALL SELECT {compared} \
                 FROM {right}) AS t"
            );
            assert_eq!(server.sbtest(&sql).expect("an answer").trim(), "0", "{sql}");
        }
    }
    assert_eq!(
        server.sbtest("SELECT count(*) FROM files.bmsql_stock").expect("rows").trim(),
        "100000"
    );
}

#[test]
fn the_same_seed_gives_the_same_files_and_nulls_are_marked_as_asked() {
    let folder = sqlite();
    let read = |name: &str| std::fs::read_to_string(folder.file(name)).expect("a file");
    good(&folder, &["build", "props", "fileLocation", "a-", "csvNullValue", "\\N"]);
    good(&folder, &["build", "props", "fileLocation", "b-", "loadWorkers", "1"]);
    assert!(!folder.file("tpcc.db").exists(), "nothing is connected to");
    assert_eq!(read("a-stock.csv"), read("b-stock.csv"));
    let carrier = |line: &str| line.split(',').nth(4).map(str::to_owned);
    let (a, b) = (read("a-order.csv"), read("b-order.csv"));
    let undelivered = |text: &str, null: &str| {
        text.lines().filter(|line| carrier(line).as_deref() == Some(null)).count()
    };
    assert_eq!((undelivered(&a, "\\N"), undelivered(&b, "NULL")), (9_000, 9_000));
    let leftovers = std::fs::read_dir(folder.path()).expect("a folder");
    assert!(
        !leftovers.flatten().any(|entry| entry.path().extension().is_some_and(|e| e == "part"))
    );
    let nowhere = ran(&folder, &["build", "props", "fileLocation", "missing/"]);
    assert_eq!(nowhere.code, 1, "{nowhere:?}");
    assert!(nowhere.stderr.contains("missing/"), "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("hint: fileLocation is a prefix"), "{}", nowhere.stderr);
}
