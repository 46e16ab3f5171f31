//! Several nodes of a target: what each is asked, what is counted where, and whether replicas are waited
//! for. On a real primary with a real replica.

use dyno_core::{AdminSession, DbError, Driver};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::target::TargetUrl;
use dyno_observe::{
    NodeLook, ServerWindow, commits_grown, follows, has_reached, look, node_conditions, position,
};
use dyno_reactor::block_on;
use dyno_testkit::{MariaDb, RunningDyno, Scratch, dyno, only_run, server_or_skip, skipped};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A primary, and a replica that follows it; `None` if there is no MariaDB.
fn pair(test: &str, semi_sync: bool) -> Option<(MariaDb, MariaDb)> {
    let options = |id: &'static str| {
        [
            id,
            "--log-bin=bin",
            "--gtid-domain-id=1",
            "--log-slave-updates",
            "--innodb-flush-log-at-trx-commit=2",
            "--max-connections=200",
        ]
    };
    let start_server = |id| MariaDb::start_with(&options(id));
    let (primary, replica) = match (start_server("--server-id=1"), start_server("--server-id=2")) {
        (Ok(primary), Ok(replica)) => (primary, replica),
        (Err(why), _) | (_, Err(why)) => {
            skipped(test, &why);
            return None;
        }
    };
    let run_sql = |server: &MariaDb, sql: &str| server.sql(sql).expect(sql);
    if semi_sync {
        run_sql(&primary, "SET GLOBAL rpl_semi_sync_master_timeout = 1000");
        run_sql(&primary, "SET GLOBAL rpl_semi_sync_master_enabled = ON");
        run_sql(&replica, "SET GLOBAL rpl_semi_sync_slave_enabled = ON");
    }
    run_sql(
        &primary,
        "CREATE USER repl@'%' IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
    );
    // What set it up is the replica's own: it begins where the primary is.
    let at = run_sql(&primary, "SELECT @@gtid_binlog_pos");
    run_sql(&replica, "RESET MASTER");
    run_sql(&replica, &format!("SET GLOBAL gtid_slave_pos = '{}'", at.trim()));
    run_sql(
        &replica,
        &format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='repl', \
             MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos; START SLAVE; SET GLOBAL read_only=ON",
            primary.port
        ),
    );
    Some((primary, replica))
}

fn driver(server: &MariaDb) -> MysqlDriver {
    let target: TargetUrl = server.url().parse().expect("a URL");
    MysqlDriver::new(&target).expect("an address")
}

fn with_admin<T>(
    server: &MariaDb,
    question: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, DbError>,
) -> T {
    let driver = driver(server);
    let result = block_on(async {
        let mut session = driver.admin().connect(0).await?;
        let answer = question(&mut session).await;
        session.close().await;
        answer
    });
    result.expect("a loop").expect("an answer")
}

fn look_at(server: &MariaDb) -> NodeLook {
    with_admin(server, async |session| look(session, &[]).await)
}

#[test]
fn a_replica_counts_what_it_applies_apart_from_what_it_is_asked() {
    let Some((primary, replica)) = pair("a_replica_counts_what_it_applies", false) else { return };
    let run_sql = |server: &MariaDb, sql: &str| server.sql(sql).expect(sql);
    run_sql(&primary, "CREATE TABLE sbtest.t (id INT PRIMARY KEY, n INT)");
    run_sql(&primary, "INSERT INTO sbtest.t VALUES (1, 0)");
    let assert_caught_up = || {
        let at = with_admin(&primary, async |session| position(session).await).expect("a position");
        assert!(with_admin(&replica, async |session| follows(session).await));
        assert!(!with_admin(&primary, async |session| follows(session).await));
        let has_caught_up = async |session: &mut AdminSession<'_>| has_reached(session, &at).await;
        let has_applied = (0..60).any(|_| with_admin(&replica, has_caught_up) == Some(true));
        assert!(has_applied, "the replica applies what the primary writes");
    };
    assert_caught_up();
    let before = (look_at(&primary), look_at(&replica));
    let writes =
        "START TRANSACTION; UPDATE sbtest.t SET n = n + 1; UPDATE sbtest.t SET n = n + 1; COMMIT;";
    run_sql(&primary, &writes.repeat(20));
    assert_caught_up();
    run_sql(&replica, &"START TRANSACTION; SELECT n FROM sbtest.t; COMMIT;".repeat(7));
    let after = (look_at(&primary), look_at(&replica));

    let window = ServerWindow::default();
    let compare_looks = |before: &NodeLook, after: &NodeLook| {
        (
            node_conditions(&before.state, &after.state, &window),
            commits_grown(&before.state, &after.state, &window),
        )
    };
    let (primary_conditions, commits) = compare_looks(&before.0, &after.0);
    assert_eq!((primary_conditions.writes, commits), (Some(40), Some(20)));
    assert_eq!(primary_conditions.replicated, None, "it follows nobody");
    let (replica_conditions, commits) = compare_looks(&before.1, &after.1);
    assert_eq!(
        (replica_conditions.replicated, replica_conditions.writes, commits),
        (Some(20), Some(0), Some(7))
    );
    // Waiting asks as well.
    let reads = replica_conditions.reads.expect("Com_select");
    assert!(reads >= 7, "{reads}");

    run_sql(&replica, "STOP SLAVE");
    run_sql(&primary, writes);
    let at = with_admin(&primary, async |session| position(session).await).expect("a position");
    assert_eq!(with_admin(&replica, async |session| has_reached(session, &at).await), Some(false));
}

#[test]
fn commits_without_an_answer_of_a_replica_are_counted() {
    let Some((primary, replica)) = pair("commits_without_an_answer", true) else { return };
    let run_sql = |server: &MariaDb, sql: &str| server.sql(sql).expect(sql);
    run_sql(&primary, "CREATE TABLE sbtest.t (id INT PRIMARY KEY)");
    let connected = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'";
    dyno_testkit::wait_until("a semi-synchronous replica", || {
        run_sql(&primary, connected).trim().ends_with('1')
    });
    run_sql(&primary, "INSERT INTO sbtest.t VALUES (0)");
    let before = look_at(&primary);
    run_sql(&primary, "INSERT INTO sbtest.t VALUES (1)");
    let between = look_at(&primary);
    run_sql(&replica, "STOP SLAVE");
    run_sql(&primary, "INSERT INTO sbtest.t VALUES (2); INSERT INTO sbtest.t VALUES (3)");
    let after = look_at(&primary);
    let count_unacknowledged = |before: &NodeLook, after: &NodeLook| {
        node_conditions(&before.state, &after.state, &ServerWindow::default()).unacknowledged
    };
    assert_eq!(count_unacknowledged(&before, &between), Some(0));
    assert_eq!(count_unacknowledged(&between, &after), Some(2));
}

#[test]
fn a_node_is_sent_no_password_of_another_one() {
    let server = server_or_skip!(MariaDb, "a_node_is_sent_no_password_of_another_one");
    let accounts = "CREATE USER a@'%' IDENTIFIED BY 'g/heim'; CREATE USER b@'%'; \
                    GRANT ALL ON *.* TO a@'%'; GRANT ALL ON *.* TO b@'%'";
    server.sql(accounts).expect("accounts");
    let run_as = |user: &str| {
        let scratch = Scratch::new();
        let url = |login: &str| format!("mysql://{login}@127.0.0.1:{}/sbtest", server.port);
        let text = format!(
            "[suite]\nname = \"nodes\"\n\n[target.pair]\nroute = \"spread\"\nnodes = [\n\
             {{ name = \"n1\", role = \"primary\", url = \"{}\" }},\n\
             {{ name = \"n2\", role = \"read_only\", url = \"{}\" }},\n]\n\n\
             [[experiment]]\nname = \"load\"\nworkload = \"sysbench\"\n\
             test = \"oltp_point_select\"\noptions = {{ tables = 1, table_size = 100 }}\n\
             workers = 1\nevents = 50\n",
            url("a:g%2Fheim"),
            url(user)
        );
        fs::write(scratch.path().join("nodes.toml"), text).expect("written");
        dyno(scratch.path(), &["run", "nodes.toml"])
    };
    // It needs none, and would be refused with one. That both are one server is found afterwards.
    let output = run_as("b");
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("n2 is the same server as the primary n1"), "{output}");
    let output = run_as("a");
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("node n2: "), "{output}");
    assert!(output.stderr.contains("using password: NO"), "{output}");
}

/// A run of single reads over both nodes, and its first trial.
fn trial(folder: &Path, nodes: [&MariaDb; 2], route: &str, test: &str) -> Value {
    write_suite(folder, nodes, route, test);
    let output = dyno(folder, &["run", "nodes.toml"]);
    output.assert_judged();
    let run = only_run(&folder.join("dyno-runs")).expect("there is a run");
    let text = fs::read(run.join("trials/1.json")).expect("a trial");
    serde_json::from_slice(&text).expect("JSON")
}

fn write_suite(folder: &Path, nodes: [&MariaDb; 2], route: &str, test: &str) {
    let text = format!(
        "[suite]\nname = \"nodes\"\n\n[target.pair]\nroute = \"{route}\"\nnodes = [\n\
         {{ name = \"n1\", role = \"primary\", url = \"{}\" }},\n\
         {{ name = \"n2\", role = \"read_only\", url = \"{}\" }},\n]\n\n\
         [[experiment]]\nname = \"load\"\nworkload = \"sysbench\"\ntest = \"{test}\"\n\
         options = {{ tables = 1, table_size = 2000 }}\nworkers = [2]\nduration_s = 4\n",
        nodes[0].url(),
        nodes[1].url()
    );
    fs::write(folder.join("nodes.toml"), text).expect("written");
}

#[test]
fn a_read_only_node_that_is_no_replica_is_refused() {
    let test = "a_read_only_node_that_is_no_replica_is_refused";
    let (one, other) = (server_or_skip!(MariaDb, test), server_or_skip!(MariaDb, test));
    let scratch = Scratch::new();
    write_suite(scratch.path(), [&one, &other], "split", "oltp_point_select");
    let output = dyno(scratch.path(), &["run", "nodes.toml"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("n2 isn't a replica of the primary n1"), "{output}");
    assert_eq!(one.sql("SHOW TABLES IN sbtest").expect("an answer").trim(), "");
}

#[test]
fn a_run_that_waits_for_a_stopped_replica_says_why() {
    let test = "a_run_that_waits_for_a_stopped_replica_says_why";
    let Some((primary, replica)) = pair(test, false) else { return };
    replica.sql("STOP SLAVE SQL_THREAD").expect("it stops");
    let scratch = Scratch::new();
    write_suite(scratch.path(), [&primary, &replica], "split", "oltp_point_select");
    let mut running = RunningDyno::start(scratch.path(), &["run", "nodes.toml"]);
    running.wait_until("it waits", |it| it.stderr().contains("START REPLICA SQL_THREAD"));
    replica.sql("START SLAVE SQL_THREAD").expect("it goes on");
    let output = running.end();
    output.assert_judged();
}

#[test]
fn a_run_over_a_pair_tells_what_each_node_did() {
    let Some((primary, replica)) = pair("a_run_over_a_pair", false) else { return };
    let nodes = [&primary, &replica];
    let parse_number =
        |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));

    let scratch = Scratch::new();
    let spread = trial(scratch.path(), nodes, "spread", "oltp_point_select");
    let conditions = &spread["conditions"];
    let node_field = |name: &str, what: &str| &conditions["nodes"][name][what];
    assert_eq!(
        (node_field("n1", "role"), node_field("n2", "role")),
        (&"primary".into(), &"read_only".into())
    );
    let reads = parse_number(&spread["statements"]["reads"]);
    // What dyno asked both of them is left out, to the last statement.
    let in_flight = parse_number(&spread["in_flight"]);
    let excess = parse_number(node_field("n2", "reads")) - reads;
    assert!((0.0..=in_flight).contains(&excess), "{excess} more than {reads}: {conditions:#}");
    assert_eq!((node_field("n1", "reads"), node_field("n1", "writes")), (&0.into(), &0.into()));
    assert_eq!(conditions["freshness"]["unplaced"], 0, "it is known who was asked");
    assert!(parse_number(node_field("n2", "lag_max_s")) >= 0.0, "{conditions:#}");
    assert!(node_field("n2", "acknowledged_by").as_object().is_none_or(|by| by.is_empty()));
    let fresh = &conditions["freshness"];
    assert_eq!(parse_number(&fresh["asked"]), 0.0, "no session both writes and reads");
    assert!(parse_number(&fresh["asked_other"]) >= 1.0, "{fresh}");
    let leftover_tables =
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'dyno_freshness'";
    assert_eq!(
        primary.sql(leftover_tables).expect("an answer").trim(),
        "0",
        "it leaves no table behind"
    );

    let scratch = Scratch::new();
    let writes = trial(scratch.path(), nodes, "primary", "oltp_write_only");
    let conditions = &writes["conditions"];
    let together = &conditions["together"];
    let (server, client) =
        (parse_number(&together["commits"]), parse_number(&together["client_commits"]));
    assert!((server - client).abs() <= 0.01 * client + 20.0, "{together}");
    // A replica on a busy machine is behind at the end.
    assert!(parse_number(&conditions["nodes"]["n2"]["replicated"]) > 0.0, "{conditions:#}");
    assert_eq!(conditions["nodes"]["n2"]["writes"], Value::from(0));
    assert_eq!(conditions["freshness"], Value::Null, "reads never leave the primary");
}
