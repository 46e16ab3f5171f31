//! The result directory: what its files hold against what was printed, and collectors that break.

use super::support::{closing, good, loaded, ran};
use dyno_testkit::{Ran, Scratch, wait_until};
use rustix::process::{Pid, test_kill_process_group};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
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
    let row = |line: Vec<String>| {
        assert_eq!(line.len(), titles.len(), "{}: {line:?}", path.display());
        titles.iter().cloned().zip(line).collect()
    };
    lines.map(|line| row(line.collect())).collect()
}

/// The only folder that begins so.
fn only(folder: &Scratch, prefix: &str) -> PathBuf {
    let entries = fs::read_dir(folder.path()).expect("a folder");
    let mut found = entries.filter_map(|entry| {
        let path = entry.expect("an entry").path();
        path.file_name()?.to_str()?.starts_with(prefix).then_some(path)
    });
    let one = found.next().expect("a result directory");
    assert_eq!(found.next(), None, "one only");
    one
}

/// Runs 2 terminals with 15 transactions each at 600 a minute: about three seconds.
const SLOW: [&str; 8] =
    ["run", "props", "runTxnsPerTerminal", "15", "limitTxnsPerMin", "600", "terminals", "2"];

fn count(column: &str, value: &str, lines: &[BTreeMap<String, String>]) -> usize {
    lines.iter().filter(|line| line[column] == value).count()
}

#[test]
fn the_directory_holds_what_was_printed() {
    let folder = loaded(
        "resultDirectory=r_%tY%tm%td_%tH%tM%tS\nosCollectorScript=./misc/os_collector_linux.py\n\
         osCollectorInterval=1\nosCollectorDevices=net_lo",
    );
    let ran = good(&folder, &SLOW);
    let directory = only(&folder, "r_20");
    assert_eq!(directory.file_name().expect("a name").len(), "r_20261121_193445".len());
    let properties = text(&directory.join("run.properties"));
    assert!(properties.contains("\npassword=***********\n"), "{properties}");
    assert!(properties.contains("\nresultDirectory=r_%tY%tm%td_%tH%tM%tS\n"), "{properties}");
    assert!(properties.ends_with("\nlimitTxnsPerMin=600\nterminals=2\n"), "{properties}");

    let data = directory.join("data");
    let lines = table(&data.join("result.csv"));
    let foreground = lines.len() - count("ttype", "DELIVERY_BG", &lines);
    assert_eq!(foreground, 30);
    assert_eq!(count("ttype", "DELIVERY_BG", &lines), count("ttype", "DELIVERY", &lines));
    assert_eq!(
        (count("error", "0", &lines), count("run", "1", &lines)),
        (lines.len(), lines.len())
    );
    let committed = foreground - count("rbk", "1", &lines);
    assert_eq!(committed.to_string(), closing(&ran.stdout, "Transaction Count"));
    for line in &lines {
        let number = |column: &str| line[column].parse::<u64>().expect("a whole number");
        assert!(number("dblatency") <= number("latency"), "{line:?}");
        assert!(number("latency") <= number("elapsed") + 1, "{line:?}");
        assert!(line["rbk"] == "0" || line["ttype"] == "NEW_ORDER", "{line:?}");
    }

    summary_agrees(&data, &lines, &ran.stdout);

    let info = &table(&data.join("runInfo.csv"))[0];
    let columns =
        ["run", "driver", "db", "runMins", "loadWarehouses", "numSUTThreads", "limitTxnsPerMin"];
    assert_eq!(
        columns.map(|column| info[column].as_str()),
        ["1", "dyno", "sqlite", "0", "1", "2", "600"]
    );
    assert!(
        info["sessionStart"].starts_with(&closing(&ran.stdout, "Session Start    ")),
        "{info:?}"
    );

    let system = table(&data.join("sys_info.csv"));
    assert!(!system.is_empty());
    for (number, line) in (1..).zip(&system) {
        let elapsed_ms: u64 = line["elapsed"].parse().expect("milliseconds");
        assert!(elapsed_ms >= 1_000 * number, "{line:?}");
    }
    let net = table(&data.join("net_lo.csv"));
    assert_eq!((net.len(), count("device", "net_lo", &net)), (system.len(), system.len()));

    next_run_has_the_next_number(&folder);
}

fn summary_agrees(data: &Path, lines: &[BTreeMap<String, String>], printed: &str) {
    let summary = table(&data.join("tx_summary.csv"));
    let names: Vec<&str> = summary.iter().map(|line| line["tx_name"].as_str()).collect();
    let types = ["NEW_ORDER", "PAYMENT", "ORDER_STATUS", "STOCK_LEVEL", "DELIVERY", "DELIVERY_BG"];
    assert_eq!(names, [&types[..], &["tpmC", "tpmTotal"]].concat());
    for line in &summary[..6] {
        let seen = count("ttype", &line["tx_name"], lines);
        assert_eq!(line["tx_count"], seen.to_string(), "{line:?}");
    }
    for (line, label) in summary[6..].iter().zip(["tpmC (NewOrders)", "tpmTOTAL"]) {
        let [written, printed] =
            [line["tx_count"].clone(), closing(printed, &format!("Measured {label}"))]
                .map(|rate| rate.parse::<f64>().expect("a rate"));
        // One is rounded, the other one cut.
        assert!((written - printed).abs() < 0.011, "{label}: {written} {printed}");
        assert_eq!(line["tx_percent"], "N/A", "no think times, no bound");
    }
}

/// Directories are never written to twice.
fn next_run_has_the_next_number(folder: &Scratch) {
    let again = ["run", "props", "runTxnsPerTerminal", "1", "resultDirectory", "second"];
    good(folder, &again);
    assert_eq!(table(&folder.file("second/data/runInfo.csv"))[0]["run"], "2");
    assert_eq!(text(&folder.file(".jTPCC_run_seq.dat")), "2\n");
    let before = text(&folder.file("second/data/result.csv"));
    let refused = super::support::ran(folder, &again);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("error: The result directory second exists"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("hint: Give resultDirectory another name"),
        "{}",
        refused.stderr
    );
    assert_eq!(text(&folder.file("second/data/result.csv")), before);
}

/// Puts a program `ssh` into the folder that does what `script` says, and runs with it.
fn with_ssh(script: &str, words: &[&str]) -> (Scratch, Ran) {
    let folder = loaded(
        "resultDirectory=r\nosCollectorScript=x\nosCollectorInterval=1\n\
         osCollectorSSHAddr=me@dbhost\nosCollectorDevices=net_lo",
    );
    let bin = folder.file("bin");
    fs::create_dir(&bin).expect("a folder");
    let ssh = bin.join("ssh");
    // The words that ssh is called with: options, --, the machine, the command.
    let text = format!(
        "#!/bin/sh\necho \"$@\" > {0}.log\necho $$ > {0}.pid\nwhile [ \"$1\" != -- ]; do shift; done\n{script}\n",
        folder.file("ssh").display()
    );
    fs::write(&ssh, text).expect("a program");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("one that runs");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = dyno_testkit::dyno_command(folder.path());
    command.arg("benchmarksql").args(words).env("PATH", format!("{}:{path}", bin.display()));
    let ran = Ran::of(&mut command);
    (folder, ran)
}

#[test]
fn another_machine_is_watched_by_ssh() {
    let (folder, ran) = with_ssh("sh -c \"$3\"", &SLOW);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let words = text(&folder.file("ssh.log"));
    assert!(words.starts_with("-o BatchMode=yes "), "{words}");
    assert!(words.contains(" -- me@dbhost while "), "{words}");
    let data = folder.file("r/data");
    for name in ["sys_info.csv", "net_lo.csv"] {
        let lines = table(&data.join(name));
        assert!(!lines.is_empty(), "{name}");
        assert!(lines.iter().all(|line| line["run"] == "1"), "{lines:?}");
    }
    assert!(!ran.stderr.contains("lost"), "{}", ran.stderr);
    // Neither it nor what it has started is left running.
    let process = text(&folder.file("ssh.pid")).trim().parse().ok().and_then(Pid::from_raw);
    let group = process.expect("a process number");
    wait_until("ssh to end", || test_kill_process_group(group).is_err());
}

#[test]
fn a_lost_machine_is_a_warning_and_what_came_is_kept() {
    // Three samples, then the network is gone.
    let script = "sh -c \"$3\" | awk '{ print; fflush() } /^@end/ && ++n == 3 { exit }'\n\
                  echo 'Connection to dbhost closed by remote host.' >&2\nexit 255";
    let (folder, ran) = with_ssh(script, &SLOW);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let warning = "warning: The OS collector has lost me@dbhost before the end of the session";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(ran.stderr.contains("closed by remote host."), "{}", ran.stderr);
    let lines = table(&folder.file("r/data/sys_info.csv"));
    assert!((1..=2).contains(&lines.len()), "{lines:?}");
    assert!(folder.file("r/data/tx_summary.csv").exists());
}

#[test]
fn what_cannot_be_collected_is_said_before_the_run() {
    let refused = "echo 'me@dbhost: Permission denied (publickey).' >&2\nexit 255";
    for (script, device, error, hint) in [
        (
            refused,
            "net_lo",
            "error: The OS collector can't reach me@dbhost by ssh: me@dbhost: Permission denied",
            "hint: Make `ssh -o BatchMode=yes me@dbhost true` work",
        ),
        ("echo hello", "net_lo", "error: The OS collector can't reach me@dbhost by ssh.", "hint: "),
        ("sh -c \"$3\"", "net_lo blk_none", "error: me@dbhost has no device `blk_none`", "net_lo"),
    ] {
        let (folder, ran) = with_ssh(script, &["run", "props", "osCollectorDevices", device]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(error), "{}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        assert!(!ran.stdout.contains("Measured"), "{}", ran.stdout);
        assert!(!folder.file("r").exists(), "nothing was measured");
    }
}

/// A tiny file system, unmounted at the end of its life.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(at: PathBuf) -> Result<Self, String> {
        fs::create_dir(&at).map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(&at);
        let output = mount.output().map_err(|error| format!("no mount: {error}"))?;
        match output.status.success() {
            true => Ok(Tiny(at)),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
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
    let folder = loaded("resultDirectory=tiny/r");
    let _tiny = match Tiny::mount(folder.file("tiny")) {
        Ok(tiny) => tiny,
        Err(why) => {
            let why = format!("a tmpfs can't be mounted: {why}");
            return dyno_testkit::skipped("a_full_disk_ends_the_run_with_an_error", &why);
        }
    };
    // Longer than anybody waits.
    let ran = ran(&folder, &["run", "props", "runTxnsPerTerminal", "100000000"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let error = "error: tiny/r/data/result.csv can't be written: No space left on device";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: Make room on its disk"), "{}", ran.stderr);
    assert!(ran.stdout.contains("Measured tpmC"), "{}", ran.stdout);
    // What the database holds is compared all the same.
    assert!(ran.stderr.contains("check books: passed: "), "{}", ran.stderr);
}
