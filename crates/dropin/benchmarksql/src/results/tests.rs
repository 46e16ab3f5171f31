//! The directory as a whole.

use super::*;
use dyno_core::{Outcome, SECOND};
use dyno_reactor::monotonic_now;
use dyno_tpcc::log::LogEntry;

const INFO: RunInfo = RunInfo {
    db: String::new(),
    run_mins: 1,
    load_warehouses: 2,
    run_warehouses: 2,
    sut_threads: 16,
    limit_txns_per_min: 0,
    think_time_multiplier: 0.0,
    keying_time_multiplier: 1.0,
};

struct Directory {
    folder: tempfile::TempDir,
    control: Arc<Control>,
}

impl Directory {
    fn new() -> Self {
        Directory { folder: tempfile::tempdir().unwrap(), control: Arc::new(Control::new()) }
    }

    fn create(&self, name: &str) -> Result<Results, Failure> {
        let request = Request {
            template: &format!("{}/{name}", self.folder.path().display()),
            properties: b"db=mysql\npassword=secret\n",
            overrides: &[],
            run: 3,
            delivery: DeliveryMode::Inline,
            clock: WallClock::read(),
        };
        Results::create(&request, &self.control)
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).unwrap()
    }
}

fn order(ended: Nanos) -> LogEntry {
    let began = ended - 5 * MILLISECOND;
    LogEntry { transaction: 0, outcome: Outcome::Committed, skipped: 0, due: began, began, ended }
}

#[test]
fn a_run_leaves_all_its_files() {
    let directory = Directory::new();
    let mut results = directory.create("r_%tY").unwrap();
    let name = results.path().file_name().unwrap().to_string_lossy().into_owned();
    let options =
        CollectorOptions { interval_s: 1, ssh: None, devices: "net_lo net_lo".to_owned() };
    results.collect(&options).unwrap();
    let log = results.log();
    let opens = monotonic_now() + 10 * MILLISECOND;
    results.opened(opens, &RunInfo { db: "mysql".to_owned(), ..INFO }).unwrap();
    log.take(&mut vec![order(opens + SECOND); 90]);
    let sys_info = format!("{name}/data/sys_info.csv");
    while directory.text(&sys_info).lines().count() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(results.finish(30 * SECOND, None).unwrap(), [""; 0]);

    assert_eq!(
        directory.text(&format!("{name}/run.properties")),
        "db=mysql\npassword=***********\n"
    );
    let result = directory.text(&format!("{name}/data/result.csv"));
    assert_eq!(result.lines().count(), 91);
    assert_eq!(result.lines().last(), Some("3,1000,5,5,NEW_ORDER,0,0,0"));
    let summary = directory.text(&format!("{name}/data/tx_summary.csv"));
    assert!(summary.contains("\nNEW_ORDER,90,100.000%,0.005s,0.005s,5.0,0.000%,0,N/A\n"));
    assert!(summary.contains("\ntpmC,180.00,N/A,"), "{summary}");
    let info = directory.text(&format!("{name}/data/runInfo.csv"));
    let fields: Vec<&str> = info.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(info.lines().next().unwrap().split(',').count(), fields.len());
    assert_eq!(fields[..4], ["3", "dyno", env!("CARGO_PKG_VERSION"), "mysql"]);
    assert_eq!(fields[5..], ["1", "2", "2", "16", "0", "0.0", "1.0"]);
    let start = fields[4].as_bytes();
    assert_eq!((start.len(), start[10], start[19]), (23, b' ', b'.'), "{info}");

    let system = directory.text(&sys_info);
    let mut lines = system.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = "run,elapsed,cpu_user,cpu_nice,cpu_system,cpu_idle,cpu_iowait,cpu_irq,\
                  cpu_softirq,cpu_steal,cpu_guest,cpu_guest_nice,vm_nr_dirty";
    assert_eq!(lines.next().unwrap().join(","), titles);
    let first = lines.next().unwrap();
    // Of milliseconds since the opening, however late the opening was on a busy machine.
    assert!(first[1].parse::<u64>().is_ok(), "{first:?}");
    let shares: f64 = first[2..10].iter().map(|share| share.parse::<f64>().unwrap()).sum();
    assert!((shares - 1.0).abs() < 0.01, "{first:?}");
    let net = directory.text(&format!("{name}/data/net_lo.csv"));
    assert!(net.starts_with("run,elapsed,device,rxpktsps,rxkbps,txpktsps,txkbps\n3,"), "{net}");
    assert!(!directory.control.is_stopped());
}

#[test]
fn what_exists_is_left_alone() {
    let directory = Directory::new();
    let path = directory.folder.path().join("there");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("result"), "precious").unwrap();
    let failure = directory.create("there").unwrap_err();
    assert!(failure.message.to_string().contains("exists"), "{failure:?}");
    assert!(failure.hint.unwrap().contains("%tY"));
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    let failure = directory.create("no/such/folder").unwrap_err();
    assert!(
        failure.message.to_string().contains("the folder above it does not exist"),
        "{failure:?}"
    );
}

#[test]
fn devices_that_a_machine_has_not_are_refused_with_those_that_it_has() {
    let directory = Directory::new();
    let mut results = directory.create("r").unwrap();
    for device in ["net_lo0", "blk_", "lo", "eth_lo", "../x"] {
        let devices = format!("net_lo {device}");
        let options = CollectorOptions { interval_s: 1, ssh: None, devices };
        let failure = results.collect(&options).unwrap_err();
        assert!(
            failure.message.to_string().contains(&format!("no device `{device}`")),
            "{failure:?}"
        );
        assert!(failure.hint.unwrap().contains("net_lo"));
    }
    // Nothing was measured: the next attempt finds the place free.
    assert!(results.path().join("data").is_dir());
    drop(results);
    assert_eq!(std::fs::read_dir(directory.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_cannot_be_written_stops_the_run() {
    let directory = Directory::new();
    let results = directory.create("r").unwrap();
    // In the place of the file.
    std::fs::create_dir(directory.folder.path().join("r/data/runInfo.csv")).unwrap();
    let failure = results.opened(monotonic_now(), &INFO).unwrap_err();
    assert!(failure.message.to_string().contains("runInfo.csv can't be written"), "{failure:?}");
    assert!(directory.control.is_stopped());
    std::fs::create_dir(directory.folder.path().join("r/data/tx_summary.csv")).unwrap();
    let failure = results.finish(SECOND, None).unwrap_err();
    assert!(failure.message.to_string().contains("tx_summary.csv can't be written"), "{failure:?}");
}
