//! The result directory: what its files hold against what was printed.

use super::support::{closing, good, loaded_database, run_benchmarksql};
use dyno_testkit::Scratch;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines behind the titles, by column.
fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = text(path);
    assert!(text.ends_with('\n'), "whole lines: {}", path.display());
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let titles: Vec<String> = lines.next().expect("titles").collect();
    let parse_row = |line: Vec<String>| {
        assert_eq!(line.len(), titles.len(), "{}: {line:?}", path.display());
        titles.iter().cloned().zip(line).collect()
    };
    lines.map(|line| parse_row(line.collect())).collect()
}

/// The only folder that begins so.
fn only_folder(folder: &Scratch, prefix: &str) -> PathBuf {
    let entries = fs::read_dir(folder.path()).expect("a folder");
    let mut paths = entries.filter_map(|entry| {
        let path = entry.expect("an entry").path();
        path.file_name()?.to_str()?.starts_with(prefix).then_some(path)
    });
    let path = paths.next().expect("a result directory");
    assert_eq!(paths.next(), None, "one only");
    path
}

/// Runs 2 terminals with 15 transactions each at 600 a minute: about three seconds.
const SLOW: [&str; 8] =
    ["run", "props", "runTxnsPerTerminal", "15", "limitTxnsPerMin", "600", "terminals", "2"];

fn count(column: &str, value: &str, lines: &[BTreeMap<String, String>]) -> usize {
    lines.iter().filter(|line| line[column] == value).count()
}

#[test]
fn the_directory_holds_what_was_printed() {
    let folder = loaded_database("resultDirectory=r_%tY%tm%td_%tH%tM%tS");
    let output = good(&folder, &SLOW);
    let directory = only_folder(&folder, "r_20");
    assert_eq!(directory.file_name().expect("a name").len(), "r_20261121_193445".len());
    let properties = text(&directory.join("run.properties"));
    assert!(properties.contains("\npassword=***********\n"), "{properties}");
    assert!(properties.contains("\nresultDirectory=r_%tY%tm%td_%tH%tM%tS\n"), "{properties}");
    for replaced in ["\nlimitTxnsPerMin=600\n", "\nterminals=2\n"] {
        assert!(properties.contains(replaced), "{properties}");
    }

    let data = directory.join("data");
    let lines = table(&data.join("result.csv"));
    let foreground = lines.len() - count("ttype", "DELIVERY_BG", &lines);
    assert_eq!(foreground, 30);
    assert_eq!(count("ttype", "DELIVERY_BG", &lines), count("ttype", "DELIVERY", &lines));
    assert_eq!(
        (count("error", "0", &lines), count("run", "1", &lines)),
        (lines.len(), lines.len())
    );
    assert_eq!(foreground.to_string(), closing(&output.stdout, "Transaction Count"));
    for line in &lines {
        let get_number = |column: &str| line[column].parse::<u64>().expect("a whole number");
        assert!(get_number("dblatency") <= get_number("latency"), "{line:?}");
        assert!(get_number("latency") <= get_number("elapsed") + 1, "{line:?}");
        assert!(line["rbk"] == "0" || line["ttype"] == "NEW_ORDER", "{line:?}");
    }

    let info = &table(&data.join("runInfo.csv"))[0];
    let columns =
        ["run", "driver", "db", "runMins", "loadWarehouses", "numSUTThreads", "limitTxnsPerMin"];
    assert_eq!(
        columns.map(|column| info[column].as_str()),
        ["1", "dyno", "sqlite", "0", "1", "2", "600"]
    );
    assert!(
        info["sessionStart"].starts_with(&closing(&output.stdout, "Session Start    ")),
        "{info:?}"
    );

    next_run_has_the_next_number(&folder);
}

/// Directories are never written to twice.
fn next_run_has_the_next_number(folder: &Scratch) {
    let again = ["run", "props", "runTxnsPerTerminal", "1", "resultDirectory", "second"];
    good(folder, &again);
    assert_eq!(table(&folder.file("second/data/runInfo.csv"))[0]["run"], "2");
    assert_eq!(text(&folder.file(".jTPCC_run_seq.dat")), "2\n");
    let before = text(&folder.file("second/data/result.csv"));
    let second_run = super::support::run_benchmarksql(folder, &again);
    assert_eq!(second_run.code, 1, "{}", second_run.stderr);
    assert!(
        second_run.stderr.contains("error: The result directory second exists"),
        "{}",
        second_run.stderr
    );
    assert!(
        second_run.stderr.contains("hint: Give resultDirectory another name"),
        "{}",
        second_run.stderr
    );
    assert_eq!(text(&folder.file("second/data/result.csv")), before);
}

/// A tiny file system, unmounted at the end of its life.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(at: PathBuf) -> Result<Self, String> {
        fs::create_dir(&at).map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(&at);
        let output = mount.output().map_err(|error| format!("no mount: {error}"))?;
        if output.status.success() {
            Ok(Tiny(at))
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_run_with_an_error() {
    let folder = loaded_database("resultDirectory=tiny/r");
    let _tiny = match Tiny::mount(folder.file("tiny")) {
        Ok(tiny) => tiny,
        Err(reason) => {
            let reason = format!("a tmpfs can't be mounted: {reason}");
            return dyno_testkit::skipped("a_full_disk_ends_the_run_with_an_error", &reason);
        }
    };
    // Longer than anybody waits.
    let output = run_benchmarksql(&folder, &["run", "props", "runTxnsPerTerminal", "100000000"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let error = "error: tiny/r/data/result.csv can't be written: No space left on device";
    assert!(output.stderr.contains(error), "{}", output.stderr);
    assert!(output.stderr.contains("hint: Make room on its disk"), "{}", output.stderr);
    assert!(output.stdout.contains("Measured tpmC"), "{}", output.stdout);
    // What the database holds is compared all the same.
    assert!(output.stderr.contains("check books: passed: "), "{}", output.stderr);
}
