//! All 22 answers on real databases.

use dyno_core::{Discard, Driver, Session, Table as Answer};
use dyno_drivers::Target;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_reactor::block_on;
use dyno_tests::{MariaDb, Postgres, Scratch, server_or_skip};
use dyno_tpch::check::{Expected, reference};
use dyno_tpch::generate::TableRows;
use dyno_tpch::parameters::{Choice, parameters};
use dyno_tpch::queries::{LAST, Q15, text};
use dyno_tpch::schema::{INDEXES, Table};

fn target(url: &str) -> Target {
    url.parse().unwrap()
}

/// Tables with keys and indexes.
async fn fill(session: &mut impl Session, scale: f64) {
    let dialect = session.dialect();
    for table in Table::ALL {
        let name = table.name();
        let columns = table.columns();
        let declared: Vec<String> = columns
            .iter()
            .map(|(name, kind)| format!("{name} {} not null", kind.sql(dialect)))
            .collect();
        let key = table.primary_key().join(", ");
        let sql = format!("create table {name} ({}, primary key ({key}))", declared.join(", "));
        session.query(&sql, &mut Discard).await.unwrap();
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let mut rows = TableRows::new(table, scale, 1, 1);
        session.bulk_load(name, &names, &mut rows).await.unwrap();
    }
    for index in INDEXES {
        let (name, table) = (index.name, index.table.name());
        let sql = format!("create index {name} on {table} ({})", index.columns.join(", "));
        session.query(&sql, &mut Discard).await.unwrap();
    }
    for table in Table::ALL {
        let word = if dialect == dyno_core::Dialect::Mysql { "analyze table" } else { "analyze" };
        session.query(&format!("{word} {}", table.name()), &mut Discard).await.unwrap();
    }
}

async fn answer(session: &mut impl Session, query: u8, scale: f64, form: Q15) -> Answer {
    let values = parameters(query, scale, Choice::Default);
    let sql = text(query, &values, session.dialect(), form);
    let mut answer = Answer::default();
    if let Err(error) = session.query(&sql, &mut answer).await {
        panic!("query {query}: {error}\n{sql}");
    }
    answer
}

/// All 22 answers are the stored ones; a row changed by hand is found.
fn answers_are_right<D: Driver>(driver: &D, scale: f64) {
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        fill(&mut session, scale).await;
        let mut wrong = Vec::new();
        for query in 1..=LAST {
            let found = answer(&mut session, query, scale, Q15::Cte).await;
            let judged = reference(query, scale).unwrap().judge(query, &found);
            wrong.extend(judged.differences.into_iter().map(|line| format!("Q{query}: {line}")));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        view_and_expression_agree(&mut session, scale).await;
        a_changed_row_is_found(&mut session, scale).await;
        session.close().await;
    })
    .unwrap();
}

async fn view_and_expression_agree(session: &mut impl Session, scale: f64) {
    let by_view = answer(session, 15, scale, Q15::View(3)).await;
    let judged = reference(15, scale).unwrap().judge(15, &by_view);
    assert_eq!(judged.differences, Vec::<String>::new());
    // The view is gone: it can be made again.
    let again = answer(session, 15, scale, Q15::View(3)).await;
    assert_eq!(Expected::from_engine(by_view, "the first").judge(15, &again).differences.len(), 0);
}

async fn a_changed_row_is_found(session: &mut impl Session, scale: f64) {
    let sql = "update lineitem set l_extendedprice = l_extendedprice + 1000, l_quantity = 1 \
               where l_orderkey = 1 and l_linenumber = 1";
    assert_eq!(session.query(sql, &mut Discard).await.unwrap().affected, 1);
    let found = answer(session, 1, scale, Q15::Cte).await;
    let judged = reference(1, scale).unwrap().judge(1, &found);
    assert_eq!(judged.differences.len(), 1, "{judged:?}");
    let said = &judged.differences[0];
    assert!(said.starts_with("Row 3: sum_qty is "), "{said}");
    assert!(said.contains("sum_base_price is "), "{said}");
}

#[test]
fn sqlite() {
    let scratch = Scratch::new();
    for scale in [0.01, 0.1] {
        let url = format!("sqlite:{}", scratch.file(&format!("tpch-{scale}.db")).display());
        answers_are_right(&SqliteDriver::new(&target(&url)).unwrap(), scale);
    }
}

#[test]
fn mariadb() {
    let server = server_or_skip!(MariaDb, "mariadb");
    answers_are_right(&MysqlDriver::new(&target(&server.socket_url())).unwrap(), 0.01);
}

#[test]
fn postgres() {
    let server = server_or_skip!(Postgres, "postgres");
    answers_are_right(&PostgresDriver::new(&target(&server.socket_url())).unwrap(), 0.01);
}
