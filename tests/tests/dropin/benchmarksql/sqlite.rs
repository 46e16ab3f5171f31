//! The whole way on embedded SQLite: always there.

use super::support::{check_closing, closing, good, loaded_database, run_benchmarksql, sqlite};
use dyno_core::{AnswerTable, Driver, Session};
use dyno_drivers::TargetUrl;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_testkit::{RunningDyno, Scratch, wait_until};
use rustix::process::Signal;

/// The first value of an answer of the folder's database.
fn value(folder: &Scratch, sql: &str) -> String {
    let target: TargetUrl =
        format!("sqlite:{}", folder.file("tpcc.db").display()).parse().expect("URL");
    let driver = SqliteDriver::new(&target).expect("a driver");
    let answer = dyno_reactor::block_on(async {
        let mut session = driver.connect(0).await?;
        let mut answer = AnswerTable::default();
        session.query(sql, &mut answer).await?;
        session.close().await;
        Ok::<_, dyno_core::DbError>(answer)
    });
    let answer = answer.expect("a loop").unwrap_or_else(|error| panic!("{sql}: {error}"));
    answer.single().unwrap_or_default().to_owned()
}

#[test]
fn build_run_destroy() {
    let folder = sqlite();
    let build = good(&folder, &["build", "props", "LOADWORKERS", "3", "password", "geheim"]);
    for line in [
        "conn=sqlite:tpcc.db",
        "password=***********",
        "warehouses=1",
        "loadWorkers=3",
        "fileLocation (not defined)",
        "csvNullValue (not defined - using default 'NULL')",
    ] {
        assert!(build.stdout.lines().any(|found| found == line), "{line}: {}", build.stdout);
    }
    assert!(!build.stdout.contains("geheim") && !build.stderr.contains("geheim"));
    assert!(build.stderr.contains("rows loaded"), "{}", build.stderr);
    let again = good(&folder, &["build", "props"]);
    assert!(again.stderr.contains("already loaded"), "{}", again.stderr);
    let other_warehouses = run_benchmarksql(&folder, &["build", "props", "warehouses", "2"]);
    assert_eq!(other_warehouses.code, 1, "{other_warehouses:?}");
    assert!(other_warehouses.stderr.contains("The tables hold 1 warehouse, and 2 were asked for"));

    let run = good(&folder, &["run", "props", "--seed", "7", "--checks", "both"]);
    let count = check_closing(&run.stdout);
    assert!(!run.stdout.contains("PWbmsql"), "{}", run.stdout);
    for text in
        ["terminals=2", "C value for C_LAST during load: ", "C value for C_LAST this run:    "]
    {
        assert!(run.stdout.contains(&format!("jTPCC : Term-00, {text}")), "{text}: {}", run.stdout);
    }
    assert!(run.stderr.contains("check books: passed: "), "{}", run.stderr);
    assert_eq!(count, 80, "those rolled back as asked are transactions, too");
    let payments = value(&folder, "SELECT count(*) - 30000 FROM bmsql_history");
    assert!(payments.parse::<u64>().expect("a number") > 0);

    let too_many = run_benchmarksql(&folder, &["run", "props", "warehouses", "2"]);
    assert_eq!(too_many.code, 2, "{too_many:?}");
    assert!(too_many.stderr.contains("numWarehouses cannot be greater than"));

    let destroy = good(&folder, &["destroy", "props"]);
    assert_eq!(destroy.stdout.lines().count(), 10, "{}", destroy.stdout);
    assert!(destroy.stderr.contains("10 tables"), "{}", destroy.stderr);
    assert_eq!(
        value(
            &folder,
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE 'bmsql%'"
        ),
        "0"
    );
}

#[test]
fn results_json_limits_and_wrong_data() {
    let folder = loaded_database("");

    let words = [
        "run",
        "props",
        "resultDirectory",
        "my_result_%tY",
        "PASSWORD",
        "geheim",
        "--json",
        "result.json",
    ];
    let run = good(&folder, &words);
    let count = check_closing(&run.stdout);
    let json = std::fs::read_to_string(folder.file("result.json")).expect("the result");
    assert!(!json.contains("geheim") && json.contains("my_result_%tY"), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let get_count = |how: &str| json["counts"][how].as_u64().expect("a count");
    assert_eq!(get_count("committed") + get_count("rolled_back"), count);
    assert_eq!(json["own"]["facts"]["profile"], "bmsql-5.0");
    let year = &closing(&run.stdout, "Session Start    ")[..4];
    let data = folder.file(&format!("my_result_{year}")).join("data");
    let lines = std::fs::read_to_string(data.join("result.csv")).expect("result.csv");
    // Each Delivery has two lines: the terminal's part and the background's.
    assert!(lines.lines().count() as u64 > count, "{lines}");
    let info = std::fs::read_to_string(data.join("runInfo.csv")).expect("runInfo.csv");
    assert!(info.lines().nth(1).is_some_and(|line| line.starts_with("1,dyno,")), "{info}");
    let again = run_benchmarksql(&folder, &words);
    assert_eq!(again.code, 1, "the directory exists: {again:?}");

    // 600 a minute, 4 in all: the last one is due 0.3 s after the first one at least.
    let words =
        ["run", "props", "limitTxnsPerMin", "600", "runTxnsPerTerminal", "2", "--json", "-"];
    let limited = good(&folder, &words);
    let json: serde_json::Value = serde_json::from_str(&limited.stdout).expect("nothing but JSON");
    assert!(json["lateness"].is_object(), "{json}");
    assert!(limited.stderr.contains("Measured tpmC (NewOrders) = "), "{}", limited.stderr);

    value(&folder, "UPDATE bmsql_warehouse SET w_ytd = w_ytd + 1");
    let wrong = run_benchmarksql(&folder, &["run", "props"]);
    assert_eq!(wrong.code, 4, "{wrong:?}");
    assert!(wrong.stderr.contains("C1 is violated"), "{}", wrong.stderr);
    check_closing(&wrong.stdout);
    let before = run_benchmarksql(&folder, &["run", "props", "--checks", "both"]);
    assert_eq!((before.code, before.stdout.contains("Measured")), (4, false), "{before:?}");
    value(
        &folder,
        "CREATE TRIGGER t BEFORE INSERT ON bmsql_history BEGIN SELECT RAISE(IGNORE); END",
    );
    let unstored = run_benchmarksql(&folder, &["run", "props"]);
    assert!(
        unstored.stderr.contains("The row of a payment in history was not stored."),
        "{unstored:?}"
    );
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let folder = loaded_database("");
    let words = ["benchmarksql", "run", "props", "runTxnsPerTerminal", "0", "runMins", "1"];
    let mut running = RunningDyno::start(folder.path(), &words);
    running.wait_until("the run has begun", |running| running.stdout().contains("this run: "));
    wait_until("a payment is there", || {
        value(&folder, "SELECT count(*) > 30010 FROM bmsql_history") == "1"
    });
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, 130, "{output:?}");
    assert!(check_closing(&output.stdout) > 0);
    assert!(output.stderr.contains("The run was interrupted."), "{}", output.stderr);
}

#[test]
fn a_file_of_6_has_terminals_with_pauses_over_sessions() {
    let folder = loaded_database("");
    let file = std::fs::read_to_string(folder.file("props")).expect("a file");
    let file: String =
        file.lines().filter(|line| !line.contains("terminal")).collect::<Vec<_>>().join("\n");
    let keys = "\nsutThreads=2\nkeyingTimeMultiplier=0.01\nthinkTimeMultiplier=0.01\nmonkeys=8\n\
                rampupTerminalMins=0\nresultDirectory=results\nrunTxnsPerTerminal=6\n\
                paymentWeight=43.2\norderStatusWeight=4.2\ndeliveryWeight=20\nstockLevelWeight=4.2\n\
                newOrderWeight=28.4\nreportIntervalSecs=1\n";
    std::fs::write(folder.file("props6"), file + keys).expect("a file");
    let run = good(&folder, &["run", "props6", "--seed", "3"]);
    assert!(run.stderr.contains("profile spec, "), "{}", run.stderr);
    assert!(run.stderr.contains("10 terminals over 2 sessions"), "{}", run.stderr);
    assert!(run.stderr.contains("delivery_deferred"), "{}", run.stderr);
    assert!(run.stderr.contains("check books: passed: "), "{}", run.stderr);
    assert!(run.stderr.contains("that keying and think times allow"), "{}", run.stderr);
    let count = check_closing(&run.stdout);
    assert_eq!(count, 60, "six transactions of ten terminals, whatever their Deliveries leave");
    let results = std::fs::read_to_string(folder.file("results/data/result.csv")).expect("results");
    assert!(results.contains(",DELIVERY_BG,"), "{results}");
    let by_option =
        good(&folder, &["run", "props", "--profile", "spec", "runTxnsPerTerminal", "1"]);
    assert!(by_option.stderr.contains("profile spec, "), "{}", by_option.stderr);
}

#[test]
fn a_build_that_was_stopped_goes_on() {
    let folder = sqlite();
    let mut running = RunningDyno::start(folder.path(), &["benchmarksql", "build", "props"]);
    wait_until("a part of the rows is there", || {
        let file = std::fs::metadata(folder.file("tpcc.db"));
        file.is_ok_and(|file| file.len() > 20_000_000)
    });
    running.signal(Signal::INT);
    let stopped = running.end();
    assert_eq!(stopped.code, 130, "{stopped:?}");
    assert!(stopped.stderr.contains("The same command continues the load"), "{stopped:?}");
    let early = run_benchmarksql(&folder, &["run", "props"]);
    assert_eq!(early.code, 1, "{early:?}");
    assert!(early.stderr.contains("has not been completed"), "{}", early.stderr);
    let resumed = good(&folder, &["build", "props"]);
    assert!(
        resumed.stderr.contains("rows were there from an earlier build; "),
        "{}",
        resumed.stderr
    );
    assert_eq!(value(&folder, "SELECT count(*) FROM bmsql_stock"), "100000");
}
