//! `dyno tpch gen`.

use super::support::{assert_refused, good, run_tpch};
use dyno_testkit::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn all_tables_are_written_and_listed() {
    let folder = Scratch::new();
    let output = good(&folder, &["gen", "--scale", "0.01", "--out", "new/data"]);
    let mut listed = Vec::new();
    for line in output.stdout.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [path, rows, bytes] = columns[..] else { panic!("{line}") };
        let text = fs::read_to_string(folder.file(path)).expect("a file");
        assert_eq!(text.lines().count().to_string(), rows, "{line}");
        assert_eq!(text.len().to_string(), bytes, "{line}");
        listed.push(path.to_owned());
    }
    listed.sort_unstable();
    let names =
        ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];
    assert_eq!(listed, names.map(|name| format!("new/data/{name}.tbl")));
    let region = fs::read_to_string(folder.file("new/data/region.tbl")).expect("a file");
    assert!(region.starts_with("0|AFRICA|lar deposits. blithely final packages cajole."));
    assert!(output.stderr.contains("gen: 86,805 rows"), "{}", output.stderr);
}

#[test]
fn parts_and_refresh_sets_are_named_as_dbgen_names_them() {
    let folder = Scratch::new();
    let words = "gen --scale 0.01 --out . --tables lineitem,nation --parts 3 --part 2 --threads 1";
    good(&folder, &words.split(' ').collect::<Vec<_>>());
    let words = "gen -s 0.01 -o . -U 2..3 --format csv";
    good(&folder, &words.split(' ').collect::<Vec<_>>());
    let entries = fs::read_dir(folder.path()).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort_unstable();
    let expected = [
        "delete.2.csv",
        "delete.3.csv",
        "lineitem.tbl.2",
        "lineitem.u2.csv",
        "lineitem.u3.csv",
        "orders.u2.csv",
        "orders.u3.csv",
    ];
    assert_eq!(names, expected);
    let deleted = fs::read_to_string(folder.file("delete.2.csv")).expect("a file");
    assert!(deleted.starts_with("o_orderkey\n"), "{deleted}");
    assert_eq!(deleted.lines().count(), 16);
}

#[test]
fn what_exists_is_replaced_only_when_told() {
    let folder = Scratch::new();
    fs::write(folder.file("nation.tbl"), "mine").expect("written");
    let words = ["gen", "--scale", "1", "--out", ".", "--tables", "region,nation"];
    assert_refused(&folder, &words, 2, "The file ./nation.tbl exists already.", "Add --overwrite");
    assert!(!folder.file("region.tbl").exists());
    good(&folder, &[words.as_slice(), &["--overwrite"]].concat());
    let nation = fs::read_to_string(folder.file("nation.tbl")).expect("a file");
    assert_eq!(nation.lines().count(), 25);
}

#[test]
fn wrong_words_get_one_error_with_a_hint() {
    let folder = Scratch::new();
    let assert_gen_refused = |words: &str, error: &str, hint: &str| {
        let words: Vec<&str> =
            ["gen", "--out", "data"].into_iter().chain(words.split(' ')).collect();
        assert_refused(&folder, &words, 2, error, hint);
    };
    let range = "The scale factor must be above 0 and at most 100000, not";
    assert_gen_refused("--scale 0", range, "Use 1 for the smallest official size");
    assert_gen_refused("--scale nan", range, "Use 1 for");
    assert_gen_refused("--scale 1e9", range, "Use 1 for");
    assert_gen_refused("--scale 0.001", "The scale factor 0.001 is too small", "Use 0.01");
    assert_gen_refused(
        "--scale 1 --tables lineitems",
        "TPC-H has no table `lineitems`.",
        "Did you mean",
    );
    assert_gen_refused(
        "--scale 1 --tables x",
        "TPC-H has no table `x`.",
        "The tables are region, ",
    );
    let none = "There is no part 5 of 4: parts are numbered from 1 to 4.";
    assert_gen_refused("--scale 1 --parts 4 --part 5", none, "Leave --part out");
    assert_gen_refused(
        "--scale 1 --parts 4 --part 0",
        "There is no part 0 of 4",
        "Leave --part out",
    );
    assert!(!folder.file("data").exists(), "nothing is begun");
    for words in [
        "gen --scale 1 --out data --part 2",
        "gen --scale 1 --out data --parts 0",
        "gen --scale 1 --out data --refresh 0",
        "gen --scale 1 --out data --refresh 3..1000",
        "gen --scale 1 --out data --refresh 1 --tables orders",
        "gen --scale 1 --out data --threads 0",
        "gen --scale 1",
        "gen --out data",
    ] {
        let output = run_tpch(&folder, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.code, 2, "{words}: {output}");
        assert!(output.stderr.starts_with("error: "), "{output}");
    }
}

#[test]
fn a_disk_that_is_full_is_reported() {
    let folder = Scratch::new();
    // A file is written under this name until it is complete.
    symlink("/dev/full", folder.file("customer.tbl.part")).expect("a link");
    let words = ["gen", "--scale", "0.01", "--out", ".", "--tables", "customer"];
    let error = "The file ./customer.tbl can't be written: No space left on device";
    assert_refused(&folder, &words, 1, error, "Make room");
    assert!(!folder.file("customer.tbl").exists());

    fs::write(folder.file("taken"), "").expect("written");
    let words = ["gen", "--scale", "0.01", "--out", "taken"];
    assert_refused(&folder, &words, 1, "The folder taken can't be made", "Choose a folder");
}

#[test]
fn ctrl_c_leaves_complete_files_only() {
    let folder = Scratch::new();
    let mut command = dyno_testkit::dyno_command(folder.path());
    command.args(["tpch", "gen", "--scale", "2", "--out", "."]);
    let mut gen_process = command.stderr(Stdio::piped()).spawn().expect("dyno can be run");
    let unfinished = folder.file("lineitem.tbl.part");
    while !unfinished.exists() {
        assert!(gen_process.try_wait().expect("a state").is_none(), "it has ended too early");
        sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&gen_process), Signal::INT).expect("a signal");
    let output = gen_process.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("error: Stopped. What was unfinished is removed"), "{talk}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing was complete");
}
