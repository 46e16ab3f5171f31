//! The statements of every test agree with those of the original, as `golden/` keeps them.

use crate::stream::{Summary, chi_square};
use crate::support::{Command, FakeDriver, LoadLog, Recorded};
use dyno_core::{Dialect, Driver, Rng, Tally, Workload};
use dyno_reactor::block_on;
use dyno_sysbench::{Sysbench, SysbenchOptions, SysbenchTest, prepare};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden");

/// A command line as the capture ran it.
struct Case {
    command_line: String,
    transactions: usize,
    options: SysbenchOptions,
}

impl Case {
    fn from_command_line(command_line: &str) -> Case {
        let mut words = command_line.split_whitespace();
        let script = words.next().expect("a test");
        let test = SysbenchTest::from_script(script).expect("a known test");
        let mut pairs = Vec::new();
        let mut transactions = 0;
        for word in words {
            let (name, value) = word.trim_start_matches('-').split_once('=').expect("name=value");
            match name {
                "events" => transactions = value.parse().unwrap(),
                _ => pairs.push((name.to_owned(), value.to_owned())),
            }
        }
        let options = SysbenchOptions::from_pairs(test, &pairs).unwrap();
        Case { command_line: command_line.to_owned(), transactions, options }
    }

    fn limit(&self) -> i64 {
        i64::from(self.options.table_size)
    }

    /// Executes the case; returns its statements.
    fn run(&self) -> Vec<Recorded> {
        let driver = FakeDriver::new(Dialect::Mysql);
        let test = Sysbench::new(self.options.clone(), Dialect::Mysql);
        let mut session = driver.session();
        block_on(async {
            let rng = Rng::new(20, "worker", 0);
            let mut worker = test.open(&mut session, 0, 1, rng).await.unwrap();
            let mut tally = Tally::default();
            for _ in 0..self.transactions {
                test.run(&mut worker, &mut session, 0, 0, &mut tally).await.unwrap();
            }
            test.finish(&mut worker, &mut session, &mut tally).await.unwrap();
        })
        .unwrap();
        let log = std::mem::take(&mut driver.database().log);
        // The question where to continue is dyno's own.
        log.into_iter().filter(|entry| !entry.text.starts_with("SELECT MAX(id)")).collect()
    }
}

fn golden_files() -> Vec<(PathBuf, String)> {
    let mut files: Vec<PathBuf> = fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn header_value<'a>(text: &'a str, key: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("a line `{key}: `"))
}

fn compare(name: &Path, golden: &Summary, ours: &Summary) {
    let name = name.display();
    assert_eq!(golden.prepared, ours.prepared, "{name}");
    assert_eq!(golden.steps, ours.steps, "{name}");
    assert_eq!(golden.tables, ours.tables, "{name}");
    assert_eq!(golden.relations, ours.relations, "{name}");
    if golden.places.is_empty() {
        // Written from a description, which has no sample of numbers.
        return;
    }
    // Numbers differ, and so do the last bytes of a statement.
    let close = golden.longest.abs_diff(ours.longest) <= 24;
    assert!(close, "{name}: {} bytes against {}", golden.longest, ours.longest);
    assert_eq!(golden.places.len(), ours.places.len(), "{name}");
    for (theirs, ours) in golden.places.iter().zip(&ours.places) {
        assert_eq!((theirs.place, &theirs.template), (ours.place, &ours.template), "{name}");
        if theirs.template.ends_with(",...") {
            // Nothing is random about the packets of a bulk insert.
            assert_eq!((theirs.min, theirs.max), (ours.min, ours.max), "{name}");
        }
        let (chi, cells) = chi_square(&theirs.cells, &ours.cells);
        // The mean of chi-square is its degrees of freedom, its variance twice that: five
        // standard deviations, and some more if there are few cells.
        let limit = cells as f64 + 5.0 * (2.0 * cells as f64).sqrt() + 10.0;
        let place = format!("{name}: numbers at {} of {}", ours.place, ours.template);
        assert!(chi <= limit, "{place}: chi-square {chi:.1} with {cells} cells");
    }
}

#[test]
fn every_test_sends_what_the_original_sends() {
    let mut compared = 0;
    for (path, text) in golden_files() {
        if header_value(&text, "command") != "run" {
            continue;
        }
        let case = Case::from_command_line(header_value(&text, "options"));
        let ours = Summary::from_log(&case.run(), case.transactions, case.limit());
        compare(&path, &Summary::from_text(&text), &ours);
        compared += 1;
    }
    assert!(compared >= 44, "only {compared} golden files were found");
}

/// The rows come by bulk load, whose format has its own tests, and all tables before all indexes.
fn created(summary: &Summary) -> BTreeSet<String> {
    let templates = summary.steps.iter().map(|step| step.template.clone());
    templates.filter(|template| template.starts_with("CREATE")).collect()
}

#[test]
fn prepare_creates_what_the_original_creates() {
    for (path, text) in golden_files() {
        if header_value(&text, "command") != "prepare" {
            continue;
        }
        let case = Case::from_command_line(header_value(&text, "options"));
        let driver = FakeDriver::new(Dialect::Mysql);
        prepare(&driver.admin(), &case.options, 1, 1, &LoadLog::default()).unwrap();
        let log: Vec<Recorded> = driver
            .database()
            .log
            .iter()
            .filter(|entry| entry.text.starts_with("CREATE"))
            .cloned()
            .collect();
        let ours = created(&Summary::from_log(&log, 1, case.limit()));
        assert!(!ours.is_empty());
        let theirs = created(&Summary::from_text(&text));
        assert_eq!(theirs, ours, "{}", path.display());
    }
}

#[test]
fn the_comparison_notices_another_distribution() {
    let [special, uniform] = ["", " --rand-type=uniform"].map(|options| {
        let case = Case::from_command_line(&format!("oltp_point_select --events=2000{options}"));
        Summary::from_log(&case.run(), case.transactions, case.limit())
    });
    let (chi, cells) = chi_square(&special.places[0].cells, &uniform.places[0].cells);
    assert!(chi > 10.0 * cells as f64, "{chi} {cells}");
    assert_eq!(Summary::from_text(&special.to_text()), special);
}

/// Writes the golden files from server logs; `golden/capture.sh` calls it.
#[test]
#[ignore = "needs the logs that golden/capture.sh makes"]
fn summarize_the_captured_logs() {
    let logs = std::env::var("DYNO_GOLDEN_LOGS").expect("the folder of the logs");
    for entry in fs::read_dir(logs).unwrap() {
        let log = entry.unwrap().path();
        if log.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let header = fs::read_to_string(log.with_extension("header")).unwrap();
        let entries = read_general_log(&fs::read_to_string(&log).unwrap());
        let command = header_value(&header, "command");
        let case = Case::from_command_line(header_value(&header, "options"));
        let transactions = if command == "run" { case.transactions } else { 1 };
        let mut summary = Summary::from_log(&entries, transactions, case.limit());
        if command == "prepare" {
            // Rows are far too many for a template.
            summary.steps.retain(|step| !step.template.starts_with("INSERT"));
            summary.places.clear();
            summary.longest = 0;
        }
        let name = log.with_extension("txt");
        let name = Path::new(FOLDER).join(name.file_name().unwrap());
        fs::write(name, format!("{header}{}", summary.to_text())).unwrap();
        assert!(!case.command_line.is_empty());
    }
}

/// The commands of MariaDB's general log: a line per command, whose text may continue over the next
/// lines.
fn read_general_log(text: &str) -> Vec<Recorded> {
    let mut entries: Vec<Option<Recorded>> = Vec::new();
    for line in text.lines().skip(3) {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        let head = fields.get(fields.len().saturating_sub(2)).unwrap_or(&"").trim();
        let (id, word) = head.split_once(' ').unwrap_or(("", head));
        if !line.contains('\t') || id.parse::<u64>().is_err() {
            if let Some(Some(last)) = entries.last_mut() {
                last.text.push('\n');
                last.text.push_str(line);
            }
            continue;
        }
        let command = match word {
            "Prepare" => Some(Command::Prepare),
            "Execute" => Some(Command::Execute),
            "Query" => Some(Command::Query),
            _ => None,
        };
        let text = fields.last().unwrap_or(&"").to_string();
        entries.push(command.map(|command| Recorded { command, text }));
    }
    entries.into_iter().flatten().filter(|entry| !entry.text.starts_with("SET ")).collect()
}
