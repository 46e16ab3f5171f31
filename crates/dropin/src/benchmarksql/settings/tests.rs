use super::*;

const FILE: &str = "\
db=postgres
driver=org.postgresql.Driver
conn=jdbc:postgresql://localhost:5432/postgres
user=benchmarksql
password=PWbmsql

warehouses=10
loadWorkers=4

terminals=8
//To run specified transactions per terminal- runMins must equal zero
runTxnsPerTerminal=10
//To run for specified minutes- runTxnsPerTerminal must equal zero
runMins=0
//Number of total transactions per minute
limitTxnsPerMin=300

//Set to true to run in 4.x compatible mode. Set to false to use the
//entire configured database evenly.
terminalWarehouseFixed=true

//The following five values must add up to 100
//The default percentages of 45, 43, 4, 4 & 4 match the TPC-C spec
newOrderWeight=45
paymentWeight=43
orderStatusWeight=4
deliveryWeight=4
stockLevelWeight=4

// Directory name to create for collecting detailed result data.
resultDirectory=my_result_%tY-%tm-%td_%tH%tM%tS
osCollectorScript=./misc/os_collector_linux.py
osCollectorInterval=1
//osCollectorSSHAddr=user@dbhost
osCollectorDevices=net_eth0 blk_sda
";

const FILE_6: &str = "\
application=Generic
db=mariadb
driver=org.mariadb.jdbc.Driver
conn=jdbc:mariadb://db1:3307/benchmarksql1
user=benchmarksql
password=PWbmsql
warehouses=10
loadWorkers=4
monkeys=8
sutThreads=16
maxDeliveryBGThreads=12
maxDeliveryBGPerWarehouse=1
rampupMins=10
rampupSUTMins=5
rampupTerminalMins=5
runMins=30
reportIntervalSecs=10
restartSUTThreadProbability=0.0
keyingTimeMultiplier=0.5
thinkTimeMultiplier=1.0
terminalMultiplier=2
traceTerminalIO=false
paymentWeight=43.2
orderStatusWeight=4.2
deliveryWeight=4.2
stockLevelWeight=4.2
rollbackPercent=1.01
";

/// The file with each key replaced that `changes` gives again; an empty value removes it.
fn properties(file: &str, changes: &[(&str, &str)]) -> Properties {
    let mut properties = Properties::parse("props.pg", file.as_bytes()).expect("readable");
    for (key, value) in changes {
        properties.set(key, value);
    }
    properties
}

type Read = (Place, u32, Run, Vec<String>);

fn read(file: &str, changes: &[(&str, &str)]) -> Result<Read, Failure> {
    let properties = properties(file, changes);
    let mut reader = Reader::new(&properties);
    let place = reader.place()?;
    let load_workers = reader.load_workers()?;
    let run = reader.run(&place, None)?;
    Ok((place, load_workers, run, reader.warnings))
}

fn good(file: &str, changes: &[(&str, &str)]) -> Read {
    read(file, changes).unwrap_or_else(|failure| panic!("{changes:?}: {failure:?}"))
}

#[test]
fn a_file_of_5_0_is_understood_as_it_is() {
    let (place, load_workers, run, warnings) = good(FILE, &[]);
    assert_eq!(place.target.to_string(), "postgres://benchmarksql:***@localhost:5432/postgres");
    assert_eq!(place.target.password.map(|p| p.reveal().to_owned()).as_deref(), Some("PWbmsql"));
    assert_eq!((place.warehouses, load_workers), (10, 4));
    assert_eq!(run.profile, BMSQL_5_0);
    assert_eq!((run.terminals, run.mins, run.txns_per_terminal), (8, 0, 10));
    assert_eq!((run.limit_per_min, run.pauses, run.report_interval_s), (Some(300), None, 1));
    assert_eq!(run.result_directory.as_deref(), Some("my_result_%tY-%tm-%td_%tH%tM%tS"));
    let note = "the osCollector keys are not needed: dyno samples the machines itself.";
    assert_eq!(warnings, [format!("props.pg: {note}")]);
    let (_, _, run, _) = good(FILE, &[("resultDirectory", "")]);
    assert_eq!(run.result_directory, None);
}

#[test]
fn a_file_of_6_runs_the_profile_of_the_specification() {
    let (place, _, run, warnings) = good(FILE_6, &[]);
    assert_eq!(
        place.target.to_string(),
        "mysql://benchmarksql:***@db1:3307/benchmarksql1?tls=disable"
    );
    assert_eq!(run.profile.name, "spec");
    assert_eq!(run.profile.choice, TransactionChoice::Weights([4_420, 4_320, 420, 420, 420]));
    assert_eq!((run.terminals, run.mins, run.txns_per_terminal), (200, 30, 0));
    let pauses = run.pauses.expect("pauses");
    assert_eq!((pauses.sut_threads, pauses.rampup_mins), (Some(16), 10));
    assert!((pauses.keying - 0.5).abs() < 1e-9 && (pauses.think - 1.0).abs() < 1e-9);
    assert_eq!(run.report_interval_s, 10);
    let texts: Vec<&str> = warnings.iter().map(String::as_str).collect();
    let no_use = "is ignored: the profile has no use for it.";
    assert_eq!(
        texts,
        [
            "props.pg:27: rollbackPercent counts as 1: rollbacks are whole percents here.",
            &format!("props.pg:11: maxDeliveryBGThreads {no_use}"),
            &format!("props.pg:12: maxDeliveryBGPerWarehouse {no_use}"),
        ]
    );
    let (_, _, run, _) = good(FILE_6, &[("rampupMins", "")]);
    assert_eq!(run.pauses.map(|pauses| pauses.rampup_mins), Some(5));
}

#[test]
fn dynos_own_urls_and_all_databases_are_understood() {
    for (db, conn, target) in [
        ("mysql", "jdbc:mysql://h/tpcc?useSSL=false", "mysql://u:***@h:3306/tpcc?tls=disable"),
        ("mariadb", "mysql://h:3307/tpcc", "mysql://u:***@h:3307/tpcc"),
        ("postgres", "postgres://h/tpcc", "postgres://u:***@h:5432/tpcc"),
        ("Postgres", "postgres://x:y@h/tpcc", "postgres://u:***@h:5432/tpcc"),
        ("sqlite", "sqlite:/tmp/x.db", "sqlite:/tmp/x.db"),
        ("sqlite", "jdbc:sqlite:/tmp/x.db", "sqlite:/tmp/x.db"),
    ] {
        let changes = [("db", db), ("conn", conn), ("user", "u"), ("password", "p")];
        let (place, ..) = good(FILE, &changes);
        assert_eq!(place.target.to_string(), target);
    }
    let (place, ..) = good(FILE, &[("user", ""), ("password", "")]);
    assert_eq!((place.target.user, place.target.password), (None, None));
}

#[test]
fn weights_leave_the_rest_to_new_order() {
    let weights = [("paymentWeight", "40"), ("newOrderWeight", "48")];
    let (_, _, run, warnings) = good(FILE, &weights);
    assert_eq!(run.profile.choice, TransactionChoice::Weights([48, 40, 4, 4, 4]));
    assert!(!warnings.iter().any(|it| it.contains("Weight")), "{warnings:?}");
    let (_, _, run, warnings) = good(FILE, &[("paymentWeight", "40")]);
    assert_eq!(run.profile.choice, TransactionChoice::Weights([48, 40, 4, 4, 4]));
    assert_eq!(
        warnings.into_iter().filter(|it| it.contains("Weight")).collect::<Vec<_>>(),
        ["props.pg:24: newOrderWeight is not what the others leave: New-Order has 48 percent."]
    );
    let (_, _, run, _) = good(FILE, &[("terminalWarehouseFixed", "false")]);
    assert_eq!(run.profile.binding, Binding::Roaming);
}

#[test]
fn bad_values_are_refused_with_place_and_remedy() {
    for (changes, message) in [
        (&[("warehouses", "0")][..], "command line: warehouses=0 can't be used."),
        (&[("warehouses", "ten")], "command line: warehouses=ten can't be used."),
        (&[("warehouses", "")], "props.pg: warehouses is missing."),
        (&[("conn", "")], "props.pg: conn is missing."),
        (&[("db", "")], "props.pg: db is missing."),
        (&[("db", "oracle")], "command line: db=oracle names a database that dyno doesn't speak"),
        (&[("db", "firebird")], "command line: db=firebird names a database that dyno doesn't"),
        (&[("db", "pg")], "command line: db=pg names a database that dyno doesn't speak with."),
        (&[("db", "mysql")], "props.pg:3: conn is a URL of postgres, and db is mysql."),
        (
            &[("conn", "jdbc:oracle:thin:@h")],
            "command line: conn: The URL jdbc:***@h names a database",
        ),
        (&[("loadWorkers", "0")], "command line: loadWorkers=0 can't be used."),
        (&[("terminals", "101")], "terminals=101 can't be used (Invalid number of terminals!)"),
        (&[("terminals", "0")], "terminals=0 can't be used (Invalid number of terminals!)"),
        (&[("terminals", "")], "props.pg: terminals is missing."),
        (&[("runMins", "1")], "of runTxnsPerTerminal and runMins both are given."),
        (&[("runTxnsPerTerminal", "0")], "runTxnsPerTerminal and runMins neither is given."),
        (&[("runMins", "-1")], "command line: runMins=-1 can't be used."),
        (&[("limitTxnsPerMin", "x")], "command line: limitTxnsPerMin=x can't be used."),
        (&[("terminalWarehouseFixed", "yes")], "terminalWarehouseFixed=yes can't be used."),
        (&[("paymentWeight", "50")], "the weights add up to 107 percent"),
        (&[("deliveryWeight", "-1")], "command line: deliveryWeight=-1 can't be used."),
        (&[("application", "PostgreSQLStoredProc")], "would run stored procedures"),
        (&[("useStoredProcedures", "true")], "would run stored procedures"),
    ] {
        let failure = read(FILE, changes).expect_err(message);
        assert!(failure.message.to_string().contains(message), "{changes:?}: {}", failure.message);
        assert!(failure.hint.is_some(), "{changes:?}");
        assert_eq!(failure.code, 2);
    }
    for (changes, message) in [
        (&[("sutThreads", "0")][..], "sutThreads=0 can't be used."),
        (&[("useWarehouseTo", "11")], "useWarehouseTo=11 can't be used."),
        (&[("useWarehouseFrom", "2")], "useWarehouseFrom=2 would leave warehouses to other"),
        (&[("useWarehouseTo", "9")], "useWarehouseTo=9 would leave warehouses to other programs"),
        (&[("thinkTimeMultiplier", "NaN")], "thinkTimeMultiplier=NaN can't be used."),
        (&[("terminalMultiplier", "0")], "terminalMultiplier=0 can't be used."),
    ] {
        let failure = read(FILE_6, changes).expect_err(message);
        assert!(failure.message.to_string().contains(message), "{changes:?}: {}", failure.message);
    }
}

#[test]
fn all_warehouses_are_used_however_the_original_says_so() {
    for (from, to) in [("-1", "-1"), ("1", "10"), ("", "")] {
        good(FILE_6, &[("useWarehouseFrom", from), ("useWarehouseTo", to)]);
    }
}

#[test]
fn what_the_profile_has_no_use_for_is_told() {
    let (_, _, run, warnings) = good(
        FILE_6,
        &[("terminals", "5"), ("traceTerminalIO", "true"), ("limitTxnsPerMin", "300")],
    );
    assert_eq!(run.limit_per_min, None);
    assert!(warnings.iter().any(|line| line.contains("limitTxnsPerMin is ignored")));
    for key in ["command line: terminals is ignored", "traceTerminalIO is ignored"] {
        assert!(warnings.iter().any(|line| line.contains(key)), "{warnings:?}");
    }
}

#[test]
fn csv_files_are_refused() {
    let failure = read(FILE, &[("filelocation", "/data/")]).unwrap_err();
    assert!(failure.message.to_string().contains("fileLocation=/data/"), "{failure:?}");
}
