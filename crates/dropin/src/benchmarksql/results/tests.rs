//! The directory as a whole.

use super::*;
use dyno_core::{MILLISECOND, Outcome, SECOND};
use dyno_reactor::monotonic_now;
use dyno_tpcc::LogEntry;
use dyno_tpcc::profile::DeliveryMode;
use time::{Date, Month, Time, UtcOffset};

struct Directory {
    folder: tempfile::TempDir,
    control: Arc<Control>,
}

impl Directory {
    fn new() -> Self {
        Directory { folder: tempfile::tempdir().unwrap(), control: Arc::new(Control::new()) }
    }

    fn create(&self, name: &str) -> Result<Results, Failure> {
        let format = ResultFormat { run: 3, delivery: DeliveryMode::Inline };
        let run_info = ["3,dyno,9.9,mysql,", "1,2,2,16,0,0.0,1.0"].map(str::to_owned);
        let (template, properties) =
            (format!("{}/{name}", self.folder.path().display()), "db=mysql\n".to_owned());
        let clock = WallClock::read();
        Results::create(&template, properties, format, run_info, clock, &self.control)
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
    results.finish().unwrap();

    assert_eq!(directory.text(&format!("{name}/run.properties")), "db=mysql\n");
    let result = directory.text(&format!("{name}/data/result.csv"));
    assert_eq!(result.lines().count(), 91);
    assert_eq!(result.lines().last(), Some("3,1000,5,5,NEW_ORDER,0,0,0"));
    let info = directory.text(&format!("{name}/data/runInfo.csv"));
    let fields: Vec<&str> = info.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(info.lines().next().unwrap().split(',').count(), fields.len());
    assert_eq!(fields[..4], ["3", "dyno", "9.9", "mysql"]);
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
}

/// A Thursday, the 64th day of a leap year, shortly after noon in Newfoundland.
fn now() -> OffsetDateTime {
    let date = Date::from_calendar_date(2032, Month::March, 4).unwrap();
    let time = Time::from_hms_nano(12, 5, 9, 12_345_678).unwrap();
    OffsetDateTime::new_in_offset(date, time, UtcOffset::from_hms(-3, -30, 0).unwrap())
}

fn expanded(template: &str) -> String {
    expand(template, now()).unwrap().display().to_string()
}

#[test]
fn the_name_of_the_sample_file_is_expanded() {
    let name = expanded("my_result_%tY-%tm-%td_%tH%tM%tS");
    assert_eq!(name, "my_result_2032-03-04_120509");
    assert_eq!(expanded("100%/no parts"), "100%/no parts");
    assert_eq!(expanded("%tYtail"), "2032tail");
}

#[test]
fn every_part_is_written_as_java_writes_it() {
    // Results of java.util.Formatter, in this order, for this moment.
    let java = "2032 32 03 04 064 12 05 09 012";
    let template: Vec<String> = KNOWN.split(' ').map(|letter| format!("%t{letter}")).collect();
    assert_eq!(expanded(&template.join(" ")), java);
}

#[test]
fn what_is_no_part_is_refused_with_those_that_are() {
    for (template, what) in [("a_%tx", "`%tx`"), ("a_%t", "`%t`"), ("%tD", "`%tD`")] {
        let failure = expand(template, now()).unwrap_err();
        assert!(failure.message.to_string().contains(what), "{failure:?}");
        assert!(failure.hint.unwrap().contains(KNOWN));
    }
}

#[test]
fn runs_are_numbered_from_1_in_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=3 {
        assert_eq!(next_run(folder.path()), Ok(number));
    }
    let file = folder.path().join(SEQUENCE);
    assert_eq!(fs::read_to_string(&file).unwrap(), "3\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    for text in ["three\n", "", "-1", "4294967295"] {
        fs::write(&file, text).unwrap();
        let failure = next_run(folder.path()).unwrap_err();
        assert!(failure.message.to_string().contains("holds no number"), "{failure:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "left as it is");
    }
    let failure = next_run(&folder.path().join("none")).unwrap_err();
    assert!(failure.message.to_string().contains("can't be kept"), "{failure:?}");
}
