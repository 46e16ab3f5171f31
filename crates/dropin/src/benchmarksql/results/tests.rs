//! The directory as a whole.

use super::*;
use dyno_core::{Outcome, SECOND};
use dyno_reactor::monotonic_now;
use dyno_tpcc::LogEntry;

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
            properties: "db=mysql\n".to_owned(),
            run: 3,
            delivery: DeliveryMode::Inline,
            db: "mysql",
            run_info: "1,2,2,16,0,0.0,1.0".to_owned(),
            clock: WallClock::read(),
        };
        Results::create(request, &self.control)
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
    let results = directory.create("r_%tY").unwrap();
    let name = results.path().file_name().unwrap().to_string_lossy().into_owned();
    let log = results.log();
    let opens = monotonic_now() + 10 * MILLISECOND;
    results.opened(opens).unwrap();
    log.take(&mut vec![order(opens + SECOND); 90]);
    results.finish(30 * SECOND, None).unwrap();

    assert_eq!(directory.text(&format!("{name}/run.properties")), "db=mysql\n");
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
fn a_file_that_cannot_be_written_stops_the_run() {
    let directory = Directory::new();
    let results = directory.create("r").unwrap();
    // In the place of the file.
    std::fs::create_dir(directory.folder.path().join("r/data/runInfo.csv")).unwrap();
    let failure = results.opened(monotonic_now()).unwrap_err();
    assert!(failure.message.to_string().contains("runInfo.csv can't be written"), "{failure:?}");
    assert!(directory.control.is_stopped());
    std::fs::create_dir(directory.folder.path().join("r/data/tx_summary.csv")).unwrap();
    let failure = results.finish(SECOND, None).unwrap_err();
    assert!(failure.message.to_string().contains("tx_summary.csv can't be written"), "{failure:?}");
}
