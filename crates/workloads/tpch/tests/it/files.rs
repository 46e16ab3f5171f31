//! The files, and that nothing is lost or half done.

use dyno_load::{LoadObserver, Unobserved};
use dyno_tpch::generate::files::{Content, FileOptions, LineFormat, WrittenFile, write};
use dyno_tpch::generate::{TpchRows, row_count};
use dyno_tpch::schema::SchemaTable;
use md5::{Digest, Md5};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hashes of dbgen 2.14.0's files at scale factor 1 (`md5sum *.tbl`), and their bytes.
const DBGEN: [(SchemaTable, &str); 8] = [
    (SchemaTable::Region, "c235841b00d29ad4f817771fcc851207"),
    (SchemaTable::Nation, "2f588e0b7fa72939b498c2abecd9fbbe"),
    (SchemaTable::Supplier, "565f8733ecdb2faf654a3efe0a422957"),
    (SchemaTable::Part, "b7ca9b82dc3d9c6543a96faac588a281"),
    (SchemaTable::Partsupp, "1b531d9b3963dd72c920179b31135e84"),
    (SchemaTable::Customer, "b662b705bc3ac183c1942367cf522e42"),
    (SchemaTable::Orders, "62264a9feaa3a3fd59805910dfe18a30"),
    (SchemaTable::Lineitem, "e6368ad3f339bf1d4a3b8a1beba23870"),
];

fn format_hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The MD5 sum of a table at scale factor 1, in hexadecimal digits.
fn hash_table(table: SchemaTable) -> String {
    let mut rows = TpchRows::for_part(table, 1.0, 1, 1);
    let (mut hash, mut lines, mut count) = (Md5::new(), Vec::new(), 0);
    let mut has_more = true;
    while has_more {
        lines.clear();
        has_more = LineFormat::Tbl.fill(&mut rows, &mut lines, 1 << 20, &mut count);
        hash.update(&lines);
    }
    assert_eq!(count, row_count(table, 1.0), "{table:?}");
    format_hex(&hash.finalize())
}

#[test]
fn at_scale_factor_1_every_table_is_dbgens_byte_for_byte() {
    std::thread::scope(|scope| {
        let lineitem = scope.spawn(|| hash_table(SchemaTable::Lineitem));
        for (table, expected) in &DBGEN[..7] {
            assert_eq!(hash_table(*table), *expected, "{table:?}");
        }
        assert_eq!(lineitem.join().expect("no panic"), DBGEN[7].1, "lineitem");
    });
}

fn new_options(folder: &Path) -> FileOptions {
    FileOptions {
        scale: 0.01,
        folder: folder.to_owned(),
        format: LineFormat::Tbl,
        content: Content::Tables(SchemaTable::ALL.to_vec()),
        threads: 3,
        overwrite: false,
    }
}

/// Never stops a write.
fn never() -> bool {
    false
}

fn read_contents(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| {
            let text = fs::read_to_string(entry.path()).expect("text");
            (entry.file_name().into_string().expect("a name"), text)
        })
        .collect()
}

fn table_lines(table: SchemaTable, scale: f64, format: LineFormat) -> String {
    let mut lines = Vec::new();
    let mut rows = TpchRows::for_part(table, scale, 1, 1);
    assert!(!format.fill(&mut rows, &mut lines, usize::MAX, &mut 0));
    String::from_utf8(lines).expect("text")
}

#[test]
fn a_file_per_table_whatever_the_threads() {
    for threads in [1, 4] {
        let folder = tempfile::tempdir().expect("a folder");
        // 15 chunks of lineitem, and none of them of the same length.
        let options = FileOptions { scale: 0.013, threads, ..new_options(folder.path()) };
        let written = write(&options, &Unobserved, &never).expect("written");
        let files = read_contents(folder.path());
        assert_eq!(files.len(), 8);
        for table in SchemaTable::ALL {
            let name = format!("{}.tbl", table.name());
            assert_eq!(files[&name], table_lines(table, 0.013, LineFormat::Tbl), "{name}");
            let expected = WrittenFile {
                path: folder.path().join(&name),
                rows: row_count(table, 0.013),
                bytes: files[&name].len() as u64,
            };
            assert!(written.contains(&expected), "{expected:?} {written:?}");
        }
    }
}

#[test]
fn parts_have_dbgens_names_and_join_to_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = vec![SchemaTable::Lineitem, SchemaTable::Supplier, SchemaTable::Nation];
    for part in [1..=1, 2..=3] {
        let content = Content::Parts { tables: tables.clone(), part, parts: 3 };
        let options = FileOptions { content, ..new_options(folder.path()) };
        write(&options, &Unobserved, &never).expect("written");
    }
    let files = read_contents(folder.path());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "lineitem.tbl.1",
        "lineitem.tbl.2",
        "lineitem.tbl.3",
        "nation.tbl",
        "supplier.tbl.1",
        "supplier.tbl.2",
        "supplier.tbl.3",
    ];
    assert_eq!(names, expected);
    for table in [SchemaTable::Lineitem, SchemaTable::Supplier] {
        let parts = [1, 2, 3].map(|part| files[&format!("{}.tbl.{part}", table.name())].as_str());
        assert_eq!(parts.concat(), table_lines(table, 0.01, LineFormat::Tbl));
    }
}

#[test]
fn csv_has_names_and_quotes_what_holds_a_comma() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = Content::Tables(vec![SchemaTable::Supplier, SchemaTable::Region]);
    let options = FileOptions { format: LineFormat::Csv, content, ..new_options(folder.path()) };
    write(&options, &Unobserved, &never).expect("written");
    let files = read_contents(folder.path());
    let supplier = &files["supplier.csv"];
    let mut lines = supplier.lines();
    let names = "s_suppkey,s_name,s_address,s_nationkey,s_phone,s_acctbal,s_comment";
    assert_eq!(lines.next(), Some(names));
    let first = "1,Supplier#000000001,\" N kD4on9OM Ipw3,gf0JBoQDd7tgrzrddZ\",17,27-918-335-1736,\
                 5755.94,each slyly above the careful";
    assert_eq!(lines.next(), Some(first));
    assert_eq!(supplier.lines().count(), 101);
    assert_eq!(files["region.csv"].lines().count(), 6);
}

#[test]
fn refresh_sets_have_dbgens_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = Content::Refresh(1..=2);
    let options = FileOptions { scale: 0.1, content, ..new_options(folder.path()) };
    let written = write(&options, &Unobserved, &never).expect("written");
    let files = read_contents(folder.path());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "delete.1",
        "delete.2",
        "lineitem.tbl.u1",
        "lineitem.tbl.u2",
        "orders.tbl.u1",
        "orders.tbl.u2",
    ];
    assert_eq!(names, expected);
    assert_eq!(files["delete.1"].lines().count(), 150);
    assert!(files["delete.1"].starts_with("1|\n2|\n3|\n4|\n5|\n6|\n7|\n32|\n"));
    assert_eq!(files["orders.tbl.u2"].lines().count(), 150);
    for file in &written {
        let name = file.path.file_name().expect("a name").to_str().expect("text");
        assert_eq!(files[name].lines().count() as u64, file.rows, "{name}");
    }
    assert_eq!(written.len(), expected.len());
}

#[test]
fn what_exists_is_kept_unless_it_may_be_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let existing = folder.path().join("nation.tbl");
    fs::write(&existing, "mine").expect("written");
    let options = new_options(folder.path());
    let error = write(&options, &Unobserved, &never).expect_err("refused");
    assert!(error.message.to_string().contains(&*existing.to_string_lossy()), "{error:?}");
    assert!(error.hint.is_some_and(|hint| hint.contains("--overwrite")));
    assert_eq!(read_contents(folder.path()).len(), 1, "nothing is begun");
    assert_eq!(fs::read_to_string(&existing).expect("text"), "mine");

    write(&FileOptions { overwrite: true, ..options }, &Unobserved, &never).expect("written");
    assert_eq!(
        read_contents(folder.path())["nation.tbl"],
        table_lines(SchemaTable::Nation, 0.01, LineFormat::Tbl)
    );
}

#[test]
fn a_full_disk_is_an_error_that_leaves_only_complete_files() {
    let folder = tempfile::tempdir().expect("a folder");
    // What is unfinished has this name until it is complete.
    symlink("/dev/full", folder.path().join("orders.tbl.part")).expect("a link");
    let error = write(&new_options(folder.path()), &Unobserved, &never).expect_err("no room");
    let message = error.message.to_string();
    assert!(message.contains("orders.tbl can't be written: No space left on device"), "{message}");
    assert!(error.hint.is_some_and(|hint| hint.starts_with("Make room")));
    for (name, text) in read_contents(folder.path()) {
        let table =
            SchemaTable::from_name(name.trim_end_matches(".tbl")).expect("no unfinished file");
        assert_eq!(text, table_lines(table, 0.01, LineFormat::Tbl), "{name}");
    }
}

#[test]
fn a_file_in_the_place_of_the_folder_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("taken");
    fs::write(&place, "").expect("written");
    let error = write(&new_options(&place), &Unobserved, &never).expect_err("no folder");
    assert!(error.message.to_string().contains("folder"), "{error:?}");
    assert_eq!(error.code, 1);
}

/// Counts the reported rows, and stops after some of them.
#[derive(Default)]
struct CountingObserver {
    planned: AtomicU64,
    done: AtomicU64,
}

impl LoadObserver for CountingObserver {
    fn rows_planned(&self, rows: u64) {
        self.planned.fetch_add(rows, Ordering::Relaxed);
    }
    fn rows_done(&self, rows: u64) {
        self.done.fetch_add(rows, Ordering::Relaxed);
    }
}

#[test]
fn progress_ends_with_all_rows_and_a_stop_leaves_no_unfinished_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let observer = CountingObserver::default();
    write(&new_options(folder.path()), &observer, &never).expect("written");
    assert_eq!(observer.planned.into_inner(), observer.done.into_inner());

    let folder = tempfile::tempdir().expect("a folder");
    let observer = CountingObserver::default();
    let stopped = write(&new_options(folder.path()), &observer, &|| {
        observer.done.load(Ordering::Relaxed) > 20_000
    });
    assert!(stopped.is_err_and(|error| error.message.to_string().starts_with("Stopped.")));
    assert!(read_contents(folder.path()).keys().all(|name| name.ends_with(".tbl")));
    assert!(read_contents(folder.path()).len() < 8);
}
