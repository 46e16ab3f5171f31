use super::class::{Class, SAFE_FUNCTIONS, TAKES_PARENTHESIS, classify};
use super::{NodeRouting, Routed, RoutedSession};
use dyno_core::{
    Dialect, Discard, Driver, ErrorClass, MILLISECOND, Nanos, Param, ParamType, Session,
};
use dyno_reactor::{Clock, Loop, sleep_until};
use dyno_testkit::sim::{Fault, SimDriver, SimSession, SimulatedAnswers};

#[test]
fn the_lists_of_words_can_be_searched() {
    assert!(SAFE_FUNCTIONS.is_sorted_by(|a, b| a < b));
    assert!(TAKES_PARENTHESIS.is_sorted_by(|a, b| a < b));
    assert!(SAFE_FUNCTIONS.iter().chain(&TAKES_PARENTHESIS).all(|word| word.len() <= 24));
}

/// Checks the class of these statements in both dialects.
fn all_are(class: Class, statements: &[&str]) {
    for sql in statements {
        for dialect in [Dialect::Mysql, Dialect::Postgres] {
            assert_eq!(classify(sql, dialect), class, "{dialect:?}: {sql}");
        }
    }
}

#[test]
fn what_only_reads_is_told() {
    all_are(
        Class::Read,
        &[
            "SELECT c FROM sbtest1 WHERE id=?",
            "select c from sbtest1 where id = 5;",
            "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c",
            "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2",
            "SELECT abalance FROM pgbench_accounts WHERE aid = 5;",
            " -- the first\n /* hint */ SELECT 1",
            "(SELECT 1) UNION ALL (SELECT 2)",
            "with revenue (supplier_no, total) as (select a, sum(b) from t group by a) select * from revenue",
            "SELECT c_count FROM (SELECT count(o) FROM orders) AS c_orders (c_custkey, c_count)",
            "SELECT * FROM t WHERE a IN (1, 2) AND (b = 'it''s for update' OR c != 3)",
            "SELECT substring(c FROM 1 FOR 2), extract(year from d), cast(a AS decimal(10, 2)) FROM t",
            "SELECT sum(case when a like 'x%' then 1 else 0 end) FROM t WHERE EXISTS (SELECT 1)",
            "SELECT `update`, \"into\" FROM t",
        ],
    );
}

#[test]
fn in_doubt_a_query_belongs_to_the_node_that_takes_writes() {
    all_are(
        Class::Other,
        &[
            "SELECT c FROM t WHERE id=1 FOR UPDATE",
            "SELECT c FROM t WHERE id=1 for\n update skip locked",
            "SELECT c FROM t FOR NO KEY UPDATE",
            "SELECT c FROM t LOCK IN SHARE MODE",
            "SELECT c FROM t FOR SHARE",
            "SELECT nextval('s')",
            "SELECT NEXT VALUE FOR s",
            "SELECT pg_catalog . nextval ( 's' )",
            "SELECT mine.sum(1)",
            "SELECT \"nextval\"('s')",
            "SELECT last_insert_id()",
            "SELECT GET_LOCK('a', 1)",
            "SELECT pg_advisory_xact_lock(1)",
            "SELECT any_name_that_is_longer_than_the_known_ones(1)",
            "SELECT * INTO OUTFILE '/tmp/x' FROM t",
            "SELECT id INTO copy_of_t FROM t",
            "SELECT @a",
            "SELECT @@hostname",
            "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone",
            "SELECT 1 /*!50000 FOR UPDATE */",
            "SELECT 1; UPDATE t SET a = 1",
            "SELECT 'a'; SELECT 2;",
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
            "CALL p()",
            "",
            "   ",
        ],
    );
    // A backslash hides a quote in MySQL's texts, and in PostgreSQL's with an E before.
    assert_eq!(classify(r"SELECT '\' for update '", Dialect::Mysql), Class::Read);
    assert_eq!(classify(r"SELECT E'\' for update '", Dialect::Postgres), Class::Read);
    assert_eq!(classify(r"SELECT '\' for update", Dialect::Postgres), Class::Other);
    // What hides the rest of a line in one dialect is an operator in the other.
    assert_eq!(classify("SELECT 5--1 FROM t FOR UPDATE", Dialect::Mysql), Class::Other);
    assert_eq!(classify("SELECT 5--1 FROM t FOR UPDATE", Dialect::Postgres), Class::Read);
    assert_eq!(classify("SELECT a # isn't\n FROM t FOR UPDATE", Dialect::Mysql), Class::Other);
    assert_eq!(classify("SELECT a # 1 FROM t FOR UPDATE", Dialect::Postgres), Class::Other);
    assert_eq!(classify("SELECT 1 -- FOR UPDATE", Dialect::Mysql), Class::Read);
}

#[test]
fn what_is_about_transactions_and_sessions_is_told() {
    let begins = [
        "BEGIN READ ONLY",
        "start transaction  read only;",
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
    ];
    all_are(Class::BeginReadOnly, &begins);
    all_are(
        Class::Other,
        &["BEGIN", "START TRANSACTION READ WRITE", "BEGIN ISOLATION LEVEL READ COMMITTED"],
    );
    all_are(Class::End, &["COMMIT", "rollback;", "END", "ABORT"]);
    all_are(Class::Other, &["ROLLBACK TO SAVEPOINT a", "COMMIT AND CHAIN", "SAVEPOINT a"]);
    let settings = [
        "SET SESSION time_zone = '+00:00'",
        "SET work_mem = '1MB'",
        "USE d",
        "RESET ALL",
        "SET autocommit=1",
    ];
    all_are(Class::Both, &settings);
    all_are(Class::Other, &["SET GLOBAL a = 1", "SET TRANSACTION READ ONLY", "SET LOCAL a = 1"]);
    let pins = [
        "SET SESSION autocommit = 0",
        "LOCK TABLES t WRITE",
        "CREATE TEMPORARY TABLE t (a int)",
        "CREATE LOCAL TEMP TABLE t (a int)",
        "SELECT 1 AS a INTO TEMP t",
        "PREPARE p AS SELECT 1",
    ];
    all_are(Class::Pin, &pins);
    all_are(
        Class::Write,
        &[
            "INSERT INTO t VALUES (1)",
            "update t set a=1",
            "DELETE FROM t",
            "CREATE TABLE t (a int)",
        ],
    );
}

#[test]
fn endless_texts_end() {
    for sql in [
        "SELECT 'a",
        "SELECT /* a",
        "SELECT `",
        "SELECT \\",
        "/*!",
        "--",
        "SELECT '\\",
        ";;;",
        "é(",
        "SELECT 1.",
    ] {
        all_are(classify(sql, Dialect::Mysql), &[sql]);
    }
}

/// A node that keeps the log of its statements.
fn node(faults: Vec<Fault>) -> SimDriver {
    SimDriver::new(SimulatedAnswers { keep_log: true, faults, ..SimulatedAnswers::default() })
}

fn nodes(count: usize) -> Vec<SimDriver> {
    (0..count).map(|_| node(Vec::new())).collect()
}

/// Node 0 takes writes, the others are read from.
fn split(nodes: Vec<SimDriver>) -> Routed<SimDriver> {
    let readers = (1..nodes.len()).collect();
    Routed::new(nodes, 0, NodeRouting::Split(readers), NodeRouting::Primary).expect("a route")
}

/// Runs a task with virtual time.
fn simulated<T: 'static>(task: impl Future<Output = T>) -> T {
    let mut results = Loop::new(Clock::Virtual, [task]).expect("a loop").finish().unwrap();
    results.pop().expect("a result")
}

/// The questions that each node has received.
fn log(routed: &Routed<SimDriver>) -> Vec<Vec<String>> {
    let logs = routed.nodes.iter().map(SimDriver::log);
    logs.map(|log| log.into_iter().map(|logged| logged.sql).collect()).collect()
}

async fn query_all(session: &mut RoutedSession<SimSession>, statements: &[&str]) {
    for sql in statements {
        session.query(sql, &mut Discard).await.expect("an answer");
    }
}

async fn prepare_statement(
    session: &mut RoutedSession<SimSession>,
    sql: &str,
) -> dyno_core::Statement {
    session.prepare(sql, &[]).await.expect("prepared")
}

#[test]
fn texts_go_where_they_belong() {
    let routed = split(nodes(2));
    simulated(async {
        let mut session = routed.connect(0).await.expect("a session");
        query_all(&mut session, &["SELECT 1", "UPDATE a", "SELECT 2 FOR UPDATE", "SET b = 1"])
            .await;
        query_all(&mut session, &["BEGIN", "SELECT 3", "UPDATE c", "COMMIT", "SELECT 4"]).await;
        query_all(&mut session, &["BEGIN READ ONLY", "SELECT 5", "SELECT nextval('s')"]).await;
        assert!(session.is_in_transaction());
        query_all(&mut session, &["ROLLBACK", "UPDATE d"]).await;
        assert!(!session.is_in_transaction());
    });
    let [primary, reader] = log(&routed).try_into().expect("two nodes");
    assert_eq!(
        primary,
        [
            "UPDATE a",
            "SELECT 2 FOR UPDATE",
            "SET b = 1",
            "BEGIN",
            "SELECT 3",
            "UPDATE c",
            "COMMIT",
            "UPDATE d"
        ]
    );
    assert_eq!(
        reader,
        [
            "SELECT 1",
            "SET b = 1",
            "SELECT 4",
            "BEGIN READ ONLY",
            "SELECT 5",
            "SELECT nextval('s')",
            "ROLLBACK"
        ]
    );
}

#[test]
fn a_statement_is_forgotten_on_both_nodes() {
    let routed = split(nodes(2));
    simulated(async {
        let mut session = routed.connect(0).await.expect("a session");
        let read = prepare_statement(&mut session, "SELECT 1").await;
        let write = prepare_statement(&mut session, "UPDATE a").await;
        for statement in [read, write] {
            session.forget(statement).await.expect("forgotten");
            session.execute(statement, &[], &mut Discard).await.unwrap_err();
        }
        assert_eq!(prepare_statement(&mut session, "UPDATE b").await, write);
        session.execute(write, &[], &mut Discard).await.expect("executed");
    });
    let [primary, reader] = log(&routed).try_into().expect("two nodes");
    assert_eq!(primary, ["UPDATE b"]);
    assert!(reader.is_empty(), "{reader:?}");
}

#[test]
fn prepared_statements_go_where_they_belong() {
    let routed = split(nodes(2));
    simulated(async {
        let mut session = routed.connect(0).await.expect("a session");
        // A write comes first, so that a statement has other numbers on both nodes.
        let update =
            session.prepare("UPDATE a WHERE id = ?", &[ParamType::Int]).await.expect("prepared");
        let select =
            session.prepare("SELECT 1 WHERE 2 = ?", &[ParamType::Int]).await.expect("prepared");
        let [begin, only, commit] = ["BEGIN", "BEGIN READ ONLY", "COMMIT"];
        let begin = prepare_statement(&mut session, begin).await;
        let only = prepare_statement(&mut session, only).await;
        let commit = prepare_statement(&mut session, commit).await;
        for statement in [select, update, begin, select, update, commit, only, select] {
            let params = [Param::Int(7)];
            let params = if [select, update].contains(&statement) { &params[..] } else { &[] };
            session.execute(statement, params, &mut Discard).await.expect("an answer");
        }
        let result = session.execute(update, &[Param::Int(7)], &mut Discard).await;
        assert!(
            result.expect_err("a read-only transaction").message().contains("begun as read-only")
        );
        session.execute(commit, &[], &mut Discard).await.expect("the transaction is still open");
    });
    let [primary, reader] = log(&routed).try_into().expect("two nodes");
    let (update, select) = ("UPDATE a WHERE id = ?", "SELECT 1 WHERE 2 = ?");
    assert_eq!(primary, [update, "BEGIN", select, update, "COMMIT"]);
    assert_eq!(reader, [select, "BEGIN READ ONLY", select, "COMMIT"]);
}

#[test]
fn flights_stay_together() {
    let routed = split(nodes(2));
    simulated(async {
        let mut session = routed.connect(0).await.expect("a session");
        let mut results = Vec::new();
        for flight in [
            &["SELECT 1", "UPDATE a"][..],
            &["BEGIN READ ONLY", "SELECT 2"],
            &["SELECT 3", "COMMIT", "UPDATE b"],
            &["BEGIN", "SELECT 4"],
            &["SELECT 5", "COMMIT"],
        ] {
            for sql in flight {
                session.queue_once(sql, &[]).expect("queued");
            }
            session.flush(&mut Discard, &mut results).await.expect("answers");
        }
        let kinds: Vec<bool> =
            results.iter().map(|result| result.as_ref().expect("done").has_rows).collect();
        assert_eq!(kinds, [true, false, false, true, true, false, false, false, true, true, false]);
    });
    let [primary, reader] = log(&routed).try_into().expect("two nodes");
    assert_eq!(
        primary,
        ["SELECT 1", "UPDATE a", "UPDATE b", "BEGIN", "SELECT 4", "SELECT 5", "COMMIT"]
    );
    assert_eq!(reader, ["BEGIN READ ONLY", "SELECT 2", "SELECT 3", "COMMIT"]);
}

#[test]
fn a_session_with_something_of_its_own_reads_nowhere_else() {
    let routed = split(nodes(2));
    simulated(async {
        let mut session = routed.connect(0).await.expect("a session");
        query_all(&mut session, &["SELECT 1", "CREATE TEMPORARY TABLE t", "SELECT 2", "SET a = 1"])
            .await;
    });
    let [primary, reader] = log(&routed).try_into().expect("two nodes");
    assert_eq!(primary, ["CREATE TEMPORARY TABLE t", "SELECT 2", "SET a = 1"]);
    assert_eq!(reader, ["SELECT 1"]);
}

#[test]
fn a_failed_transaction_is_left_on_its_node() {
    let deadlock = vec![Fault::ErrorAt { statement: 1, class: ErrorClass::Deadlock }];
    let routed = split(vec![node(Vec::new()), node(deadlock)]);
    simulated(async {
        let mut session = routed.connect(0).await.expect("a session");
        query_all(&mut session, &["BEGIN READ ONLY"]).await;
        session.query("SELECT 1", &mut Discard).await.expect_err("a deadlock");
        session.rollback().await.expect("rolled back");
        assert!(!session.is_in_transaction());
        query_all(&mut session, &["UPDATE a"]).await;
    });
    assert_eq!(log(&routed)[0], ["UPDATE a"]);
    assert_eq!(log(&routed)[1], ["BEGIN READ ONLY", "SELECT 1", "ROLLBACK"]);
}

/// Number of `connections` sessions that each node for reads gets.
fn reads(routed: &Routed<SimDriver>, connections: u32) -> Vec<usize> {
    let before: Vec<usize> = log(routed).iter().map(Vec::len).collect();
    simulated(async {
        for number in 0..connections {
            let mut session = routed.connect(number).await.expect("a session");
            query_all(&mut session, &["SELECT 1"]).await;
        }
    });
    log(routed).iter().zip(before).map(|(all, before)| all.len() - before).collect()
}

#[test]
fn sessions_are_spread_over_nodes() {
    let spread = Routed::new(nodes(5), 0, NodeRouting::Spread(vec![1, 2, 4]), NodeRouting::Primary);
    assert_eq!(reads(&spread.expect("a route"), 7), [0, 3, 2, 0, 2]);
    assert_eq!(reads(&split(nodes(3)), 4), [0, 2, 2]);
}

#[test]
fn whoever_loads_and_checks_goes_to_the_primary() {
    let spread = Routed::new(nodes(3), 0, NodeRouting::Spread(vec![1, 2]), NodeRouting::Primary)
        .expect("a route");
    assert_eq!(reads(spread.primary(), 3), [3, 0, 0]);
    assert_eq!(reads(spread.primary().primary(), 3), [3, 0, 0]);
    let through =
        Routed::new(nodes(2), 0, NodeRouting::Through(1), NodeRouting::Primary).expect("a route");
    assert_eq!((reads(&through, 2), reads(through.primary(), 2)), (vec![0, 2], vec![2, 0]));
    let single =
        Routed::new(nodes(1), 0, NodeRouting::Primary, NodeRouting::Primary).expect("a route");
    assert_eq!(reads(single.primary(), 1), [1]);
}

#[test]
fn sessions_follow_a_new_primary() {
    let routed = split(nodes(3));
    let clone = routed.clone();
    simulated(async {
        let mut before = routed.connect(0).await.expect("a session");
        clone.switch_primary(2);
        clone.switch_primary(7);
        let mut after = routed.connect(1).await.expect("a session");
        query_all(&mut before, &["UPDATE old"]).await;
        // Node 2 is not read from any more.
        query_all(&mut after, &["UPDATE new", "SELECT new"]).await;
        let mut checks = routed.primary().connect(0).await.expect("a session");
        query_all(&mut checks, &["SELECT check"]).await;
    });
    assert_eq!(routed.writable(), 2);
    assert_eq!(
        log(&routed),
        [vec!["UPDATE old"], vec!["SELECT new"], vec!["UPDATE new", "SELECT check"]]
    );
    // If no other node is left, all goes to the new one.
    let pair = split(nodes(2));
    pair.switch_primary(1);
    assert_eq!(reads(&pair, 2), [0, 2]);
}

/// Like [`reads`], by sessions of these numbers instead of lost ones.
fn reads_again(routed: &Routed<SimDriver>, numbers: &[u32], attempt: u32) -> Vec<usize> {
    let before: Vec<usize> = log(routed).iter().map(Vec::len).collect();
    simulated(async {
        for number in numbers {
            let mut session = routed.reconnect(*number, attempt).await.expect("a session");
            query_all(&mut session, &["SELECT 1"]).await;
        }
    });
    log(routed).iter().zip(before).map(|(all, before)| all.len() - before).collect()
}

/// A node that takes no connections until then.
fn away(until: Nanos) -> SimDriver {
    node(vec![Fault::RefuseConnects { from: 0, until }])
}

#[test]
fn a_session_whose_node_is_gone_goes_to_another_one() {
    let four_nodes =
        || vec![node(Vec::new()), away(Nanos::MAX), node(Vec::new()), node(Vec::new())];
    let spread =
        Routed::new(four_nodes(), 0, NodeRouting::Spread(vec![1, 2, 3]), NodeRouting::Primary)
            .expect("a route");
    for routed in [split(four_nodes()), spread] {
        let error = simulated(async { routed.connect(0).await.err() });
        assert!(error.is_some(), "a trial does not begin with fewer nodes than it has");
        // Those of the dead node are dealt out evenly; who has a living one keeps it.
        assert_eq!(reads_again(&routed, &[0, 3, 6, 9], 0), [0, 0, 2, 2]);
        assert_eq!(reads_again(&routed, &[1, 4, 7], 0), [0, 0, 3, 0]);
        // A later attempt begins further on.
        assert_eq!(reads_again(&routed, &[0, 1, 2], 1), [0, 0, 2, 1]);
        assert_eq!(reads_again(&routed, &[2, 5, 8], 3), [0, 0, 0, 3]);
    }
}

#[test]
fn a_node_that_comes_back_is_taken_again() {
    let routed = split(vec![node(Vec::new()), away(10 * MILLISECOND), node(Vec::new())]);
    simulated(async {
        let mut moved = routed.reconnect(0, 0).await.expect("a session");
        query_all(&mut moved, &["SELECT moved"]).await;
        sleep_until(20 * MILLISECOND).await;
        let mut back = routed.reconnect(0, 0).await.expect("a session");
        query_all(&mut moved, &["SELECT still", "UPDATE a"]).await;
        query_all(&mut back, &["SELECT back"]).await;
    });
    assert_eq!(
        log(&routed),
        [vec!["UPDATE a"], vec!["SELECT back"], vec!["SELECT moved", "SELECT still"]]
    );
}

#[test]
fn without_a_node_to_read_from_the_primary_is_read() {
    assert_eq!(reads_again(&split(without_readers()), &[0, 1, 2], 0), [3, 0, 0]);
    // A load that only reads has no session there.
    let spread =
        Routed::new(without_readers(), 0, NodeRouting::Spread(vec![1, 2]), NodeRouting::Primary)
            .expect("a route");
    let error = simulated(async { spread.reconnect(0, 0).await.err() }).expect("no node answers");
    assert!(error.message().contains("refuses connections"), "{error}");
    // Where the primary is gone, nothing can continue.
    let headless = split(vec![away(Nanos::MAX), node(Vec::new())]);
    assert!(simulated(async { headless.reconnect(0, 0).await.is_err() }));
}

/// Nodes of which only the first answers.
fn without_readers() -> Vec<SimDriver> {
    vec![node(Vec::new()), away(Nanos::MAX), away(Nanos::MAX)]
}

#[test]
fn it_is_known_where_a_session_reads() {
    let routed = split(nodes(4));
    assert_eq!([0, 1, 2, 3].map(|number| routed.reads_at(number)), [1, 2, 3, 1]);
    routed.switch_primary(1);
    assert_eq!([0, 1, 2].map(|number| routed.reads_at(number)), [2, 3, 2]);
    let through =
        Routed::new(nodes(2), 0, NodeRouting::Through(1), NodeRouting::Primary).expect("a route");
    assert_eq!((through.reads_at(5), through.primary().reads_at(5)), (1, 0));
}

#[test]
fn a_route_leads_to_nodes_that_exist() {
    for routing in
        [NodeRouting::Through(2), NodeRouting::Split(vec![2]), NodeRouting::Spread(vec![])]
    {
        let refusal = Routed::new(nodes(2), 0, routing, NodeRouting::Primary);
        assert!(refusal.expect_err("no such node").message().contains("does not have"));
    }
    assert!(Routed::new(nodes(2), 2, NodeRouting::Primary, NodeRouting::Primary).is_err());
}
