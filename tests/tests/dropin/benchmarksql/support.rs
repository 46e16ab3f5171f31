//! Properties files, the front end, and what it prints.

use dyno_testkit::{ProcessOutput, Scratch, dyno_command};
use std::sync::OnceLock;

/// Keys that every file of these tests has.
const COMMON: &str = "\
user=benchmarksql
warehouses=1
loadWorkers=2
terminals=2
//To run specified transactions per terminal- runMins must equal zero
runTxnsPerTerminal=40
runMins=0
limitTxnsPerMin=0
terminalWarehouseFixed=true
newOrderWeight=45
paymentWeight=43
orderStatusWeight=4
deliveryWeight=4
stockLevelWeight=4
";

const SQLITE: &str = "db=sqlite\nconn=sqlite:tpcc.db\npassword=PWbmsql\n";

/// Writes `props` into the folder: `first` lines and those that all have.
pub(crate) fn properties(folder: &Scratch, first: &str) {
    std::fs::write(folder.file("props"), format!("{COMMON}{first}\n")).expect("a file");
}

/// A folder with properties of an SQLite database.
pub(crate) fn sqlite() -> Scratch {
    let folder = Scratch::new();
    properties(&folder, SQLITE);
    folder
}

/// A folder with such a database that is loaded, and properties with these lines more. It is loaded once for all
/// tests, which work on copies.
pub(crate) fn loaded_database(lines: &str) -> Scratch {
    static LOADED: OnceLock<Vec<u8>> = OnceLock::new();
    let bytes = LOADED.get_or_init(|| {
        let folder = sqlite();
        good(&folder, &["build", "props"]);
        std::fs::read(folder.file("tpcc.db")).expect("the database")
    });
    let folder = Scratch::new();
    std::fs::write(folder.file("tpcc.db"), bytes).expect("a copy");
    properties(&folder, &format!("{SQLITE}{lines}"));
    folder
}

/// `dyno benchmarksql` with these words, to its end.
pub(crate) fn run_benchmarksql(folder: &Scratch, words: &[&str]) -> ProcessOutput {
    ProcessOutput::capture(dyno_command(folder.path()).arg("benchmarksql").args(words))
}

/// `dyno benchmarksql` with these words, which has to end well.
pub(crate) fn good(folder: &Scratch, words: &[&str]) -> ProcessOutput {
    run_benchmarksql(folder, words).good()
}

/// The text after `label` in the closing lines.
pub(crate) fn closing(stdout: &str, label: &str) -> String {
    let mut lines = stdout.lines().filter_map(|line| {
        let (prefix, text) = line.split_once(" INFO   jTPCC : Term-00, ")?;
        let (time, thread) = prefix.split_once(' ')?;
        assert_eq!(thread.starts_with('['), thread.ends_with(']'), "{line}");
        assert_eq!(digits(time), "NN:NN:NN,NNN", "{line}");
        text.strip_prefix(label)?.strip_prefix(" = ").map(str::to_owned)
    });
    let text = lines.next().unwrap_or_else(|| panic!("no line {label:?} in:\n{stdout}"));
    assert_eq!(lines.next(), None, "{label} stands twice");
    text
}

/// The text with `N` for every digit.
pub(crate) fn digits(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_digit() { 'N' } else { letter }).collect()
}

/// Checks that the closing lines fit each other; returns the transaction count.
pub(crate) fn check_closing(stdout: &str) -> u64 {
    let parse_closing = |label: &str| closing(stdout, label).parse::<f64>().expect("a number");
    let count: u64 = closing(stdout, "Transaction Count").parse().expect("a count");
    let (orders, total) =
        (parse_closing("Measured tpmC (NewOrders)"), parse_closing("Measured tpmTOTAL"));
    assert!(orders <= total, "{stdout}");
    for rate in ["Measured tpmC (NewOrders)", "Measured tpmTOTAL"] {
        let rate = closing(stdout, rate);
        let (_, decimals) = rate.split_once('.').expect("a point");
        assert_eq!(decimals.len(), 2, "{rate}");
    }
    for label in ["Session Start    ", "Session End      "] {
        assert_eq!(digits(&closing(stdout, label)), "NNNN-NN-NN NN:NN:NN");
    }
    assert!(closing(stdout, "Session Start    ") <= closing(stdout, "Session End      "));
    count
}
