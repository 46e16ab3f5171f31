use super::names::{C, PAD};
use super::plan::{Name, Operand, ROWS_MAX};
use super::*;

fn plan(sql: &str, dialect: Dialect) -> Plan {
    let mut plan = Plan::default();
    parse(sql.as_bytes(), 0, dialect, &mut plan).expect(sql);
    plan
}

fn mysql(sql: &str) -> Plan {
    plan(sql, Dialect::Mysql)
}

fn postgres(sql: &str) -> Plan {
    plan(sql, Dialect::Postgres)
}

fn names(sql: &str, plan: &Plan) -> Vec<String> {
    let name = |column: &Column| String::from_utf8_lossy(column.name.of(sql.as_bytes())).into();
    plan.columns.iter().map(name).collect()
}

fn values(plan: &Plan) -> Vec<Value> {
    plan.columns.iter().map(|column| column.value).collect()
}

fn fault(sql: &str, dialect: Dialect) -> &'static str {
    parse(sql.as_bytes(), 0, dialect, &mut Plan::default()).expect_err(sql)
}

#[test]
fn the_fixed_texts_have_the_lengths_of_sysbench() {
    assert_eq!((C.len(), PAD.len()), (119, 59));
}

#[test]
fn sysbench_selects_have_their_columns_and_row_counts() {
    let point = mysql("SELECT c FROM sbtest1 WHERE id=?");
    assert_eq!(
        (point.kind, point.params.len(), values(&point)),
        (Kind::Select, 1, vec![Value::Char(C)])
    );
    assert_eq!(point.params, [Some(Value::Int(1))]);

    let sql = "SELECT DISTINCT c FROM sbtest3 WHERE id BETWEEN ? AND ? ORDER BY c";
    let range = mysql(sql);
    assert_eq!(range.rows, Rows::Between(Operand::Param(0), Operand::Param(1)));
    let bound = |low: i64, high: i64| {
        range.row_count(sql.as_bytes(), |index| Some(if index == 0 { low } else { high }))
    };
    assert_eq!([bound(5, 104), bound(7, 7), bound(8, 7)], [100, 1, 0]);
    assert_eq!(bound(i64::MIN, i64::MAX), ROWS_MAX);

    let sum = mysql("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100");
    assert_eq!((sum.rows, names("SELECT SUM(k)", &sum)), (Rows::Count(1), vec!["SUM(k)".into()]));

    let points = mysql("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?)");
    assert_eq!((points.rows, points.columns.len()), (Rows::Count(3), 4));
    let ranges = mysql("SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?");
    assert_eq!((ranges.rows, values(&ranges)), (Rows::Count(1), vec![Value::Big(1)]));

    let all = mysql("SELECT * FROM sbtest1 WHERE id = 1");
    assert_eq!(all.columns[1].name, Name::Known(b"k"));
    assert_eq!(all.columns.len(), 4);
}

#[test]
fn writes_know_the_rows_they_affect() {
    let insert = mysql("INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)");
    assert_eq!((insert.kind, insert.affected, insert.params.len()), (Kind::Insert, 1, 4));
    assert_eq!(insert.params[2], Some(Value::Char(C)));
    let bulk = mysql("INSERT INTO t(k, c) VALUES(1, 'a''(,'),(2, 'b\\'),(3'), (f(1, 2), \"x\")");
    assert_eq!(bulk.affected, 3);
    let history =
        postgres("INSERT INTO pgbench_history (tid, delta, mtime) VALUES ($1, $2, now())");
    assert_eq!(history.params, [Some(Value::Int(1)), Some(Value::Int(0))]);
    assert_eq!(
        mysql("UPDATE sbtest1 SET c=? WHERE id=?").params,
        [Some(Value::Char(C)), Some(Value::Int(1))]
    );
    let delta = postgres("UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2");
    assert_eq!((delta.affected, delta.params), (1, vec![Some(Value::Int(0)), Some(Value::Int(1))]));
    let returning = postgres("INSERT INTO t (a) VALUES (1), (2) RETURNING id, x AS y");
    assert_eq!((returning.rows, returning.columns.len()), (Rows::Count(2), 2));
    assert!(fault("INSERT INTO t VALUES (1,2),(3)", Dialect::Mysql).contains("number of values"));
    assert!(
        fault("INSERT INTO t (a,b) VALUES (1)", Dialect::Postgres).contains("number of values")
    );
}

#[test]
fn names_and_constants_are_told_apart() {
    let sql = "SELECT @@version_comment limit 1";
    assert_eq!(names(sql, &mysql(sql)), ["@@version_comment"]);
    let sql = "SELECT 42, 'x' AS y, count(*) n, a.b.id, coalesce(sum(k), 0) FROM t";
    let list = mysql(sql);
    assert_eq!(names(sql, &list), ["42", "y", "n", "id", "coalesce(sum(k), 0)"]);
    assert_eq!(list.columns[0].value, Value::Int(42));
    let sql = "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_class where 'a' = $1";
    let list = postgres(sql);
    assert_eq!(names(sql, &list), ["n", "partstrat", "count"]);
    assert_eq!(values(&list), [Value::Int(1), Value::Null, Value::Big(1)]);
    assert_eq!(list.params, [None]);
    let setting = postgres("SELECT current_setting('server_version_num')");
    assert_eq!(values(&setting), [Value::Text(b"150000")]);
    assert_eq!(postgres("WITH x AS (SELECT 1) SELECT a, b FROM x").columns.len(), 2);
}

#[test]
fn columns_of_tpc_schemas_are_known_by_what_their_names_end_with() {
    let order =
        mysql("SELECT d_tax, d_next_o_id, o_entry_d, c_last, s_dist_07, h_x, c, no_o_id FROM d");
    let dist = Value::Char(b"abcdefghijklmnopqrstuvwx");
    assert_eq!(order.columns[0].value, Value::Decimal(1_250, 4));
    assert_eq!(order.columns[1].value, Value::Int(3_001));
    assert_eq!(order.columns[2].value, Value::Timestamp);
    assert_eq!(order.columns[3].value, Value::Text(b"BARBARBAR"));
    assert_eq!(order.columns[4].value, dist);
    assert_eq!(order.columns[5].value, Value::Int(1), "what nobody knows");
    assert_eq!(order.columns[6].value, Value::Char(C), "a column of sysbench");
    assert_eq!(order.columns[7].value, Value::Int(2_101));
    let sum = postgres("SELECT sum(ol_amount), sum(ol_quantity), count(*) FROM bmsql_order_line");
    assert_eq!(values(&sum), [Value::Decimal(1_250, 2), Value::Sum(501_250), Value::Big(1)]);
    let pay = mysql("UPDATE bmsql_customer SET c_balance = c_balance - ? WHERE c_id = ?");
    assert_eq!(pay.params, [Some(Value::Decimal(-1_000, 2)), Some(Value::Int(1))]);
}

#[test]
fn an_ordered_result_has_the_rows_of_its_table_unless_it_is_limited() {
    for (sql, rows) in [
        ("SELECT c_id FROM bmsql_customer WHERE c_last = ? ORDER BY c_first", 3),
        ("SELECT c_id FROM customer WHERE c_last = ? ORDER BY c_first LIMIT 2", 2),
        ("SELECT c_id FROM customer WHERE c_last = ? ORDER BY c_first LIMIT 7, 2", 2),
        ("SELECT ol_i_id FROM bmsql_order_line WHERE ol_o_id = ? ORDER BY ol_number", 10),
        ("SELECT count(*) FROM bmsql_order_line ORDER BY 1", 1),
        ("SELECT no_o_id FROM bmsql_new_order WHERE no_d_id = ? ORDER BY no_o_id LIMIT 1", 1),
        ("SELECT c FROM sbtest1 WHERE id IN (?, ?) ORDER BY c LIMIT 5", 2),
        ("SELECT c FROM sbtest1 LIMIT 0", 0),
    ] {
        assert_eq!(mysql(sql).row_count(sql.as_bytes(), |_| None), rows, "{sql}");
    }
}

#[test]
fn an_item_beyond_the_last_one_is_not_found() {
    let sql = "SELECT i_price FROM bmsql_item WHERE i_id = ?";
    let item = mysql(sql);
    let rows = |key| item.row_count(sql.as_bytes(), |_| Some(key));
    assert_eq!([rows(1), rows(100_000), rows(100_001)], [1, 1, 0]);
    let sql = "SELECT i_price FROM bmsql_item WHERE i_id = 100001";
    assert_eq!(mysql(sql).row_count(sql.as_bytes(), |_| None), 0);
}

#[test]
fn decimals_are_written_with_all_their_digits() {
    for (scaled, digits, text) in
        [(1_250, 4, "0.1250"), (-1_000, 2, "-10.00"), (-5, 2, "-0.05"), (7, 0, "7")]
    {
        let mut out = Vec::new();
        write_decimal(&mut out, scaled, digits);
        assert_eq!(String::from_utf8(out).unwrap(), text);
        assert!(is_decimal(text.as_bytes()));
    }
    for wrong in ["", "-", ".", "1.2.3", "1e5", "x"] {
        assert!(!is_decimal(wrong.as_bytes()), "{wrong}");
    }
}

#[test]
fn statements_of_one_text_are_taken_one_by_one() {
    let sql = b"BEGIN; /* ; */ UPDATE t SET a = ';' -- ;\n; COMMIT ; ";
    let (mut plan, mut start, mut kinds) = (Plan::default(), 0, Vec::new());
    while start < sql.len() {
        parse(sql, start, Dialect::Postgres, &mut plan).expect("valid");
        kinds.push(plan.kind);
        start = plan.end;
    }
    assert_eq!(kinds, [Kind::Begin, Kind::Update, Kind::Commit, Kind::Empty]);
}

#[test]
fn loads_know_their_columns_and_format() {
    let load = mysql(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE sbtest1 CHARACTER SET utf8mb4 FIELDS \
         TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' (k, c, pad)",
    );
    let load = load.load.expect("a load");
    assert_eq!(load.columns, 3);
    let text = Format::Text { field: b'\t', line: b'\n', escape: b'\\', quote: 0 };
    assert_eq!(load.format, text);
    let copy = postgres("copy pgbench_accounts from stdin with (freeze on)").load.expect("a load");
    assert_eq!((copy.columns, copy.format), (4, text));
    assert!(fault("LOAD DATA INFILE 'x' INTO TABLE t", Dialect::Mysql).contains("LOCAL"));
    assert!(fault("COPY t TO STDOUT", Dialect::Postgres).contains("FROM STDIN"));
}

#[test]
fn show_variables_filters_by_its_pattern() {
    let sql = "SHOW GLOBAL VARIABLES LIKE 'max\\_%'";
    let show = mysql(sql);
    assert_eq!(show.row_count(sql.as_bytes(), |_| None), 3);
    assert_eq!(mysql("SHOW WARNINGS").rows, Rows::Count(0));
    assert!(mysql("SHOW TABLES").lists_tables() && !mysql("SHOW WARNINGS").lists_tables());
    assert_eq!(values(&postgres("SHOW server_version")), [Value::Text(b"15.0")]);
}

#[test]
fn broken_texts_are_faults_not_panics() {
    for sql in ["SELECT 'x", "SELECT \"", "SELECT (1", "SELECT 1)", "SELECT", "/* x", "SELECT 'a\\"]
    {
        fault(sql, Dialect::Mysql);
    }
    for sql in ["SELECT $0", "SELECT $99999", "SELECT $x", "SELECT $a$ $b$", "INSERT INTO t"] {
        fault(sql, Dialect::Postgres);
    }
}

#[test]
fn a_prepared_text_holds_one_statement() {
    let mut cache = PlanCache::default();
    let one = cache.prepare(b"SELECT 1; ", Dialect::Mysql).expect("one statement");
    let again = cache.prepare(b"SELECT 1; ", Dialect::Mysql).expect("one statement");
    assert!(std::rc::Rc::ptr_eq(&one, &again));
    assert!(cache.prepare(b"SELECT 1; SELECT 2", Dialect::Mysql).is_err());
}
