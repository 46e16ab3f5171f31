//! All 22 answers on real databases.

use dyno_core::{AnswerTable, Discard, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_facts::Message;
use dyno_load::Unobserved;
use dyno_testkit::{MariaDb, Postgres, Scratch, server_or_skip, skipped, target, with_session};
use dyno_tpch::check::{Expected, reference};
use dyno_tpch::load::{TpchLoadOptions, load};
use dyno_tpch::parameters::{ParameterChoice, parameters};
use dyno_tpch::queries::{LAST, Q15, text};

/// Names a scale factor at which `answers_at_a_scale_of_choice` asks the databases.
const SCALE: &str = "DYNO_TPCH_SCALE";

fn sqlite_in(scratch: &Scratch) -> SqliteDriver {
    SqliteDriver::new(&target(&format!("sqlite:{}", scratch.file("tpch.db").display()))).unwrap()
}

fn mysql_driver(server: &MariaDb) -> MysqlDriver {
    MysqlDriver::new(&target(&server.socket_url())).unwrap()
}

fn postgres_driver(server: &Postgres) -> PostgresDriver {
    PostgresDriver::new(&target(&server.socket_url())).unwrap()
}

fn fill(driver: &impl Driver, scale: f64) {
    let report = load(&driver.admin(), &TpchLoadOptions::new(scale), &Unobserved).unwrap();
    assert!(report.is_complete);
}

async fn answer(
    session: &mut impl Session,
    query: u8,
    values: &[String],
    form: Q15,
) -> AnswerTable {
    let sql = text(query, values, session.dialect(), form);
    let mut answer = AnswerTable::default();
    if let Err(error) = session.query(&sql, &mut answer).await {
        panic!("query {query}: {error}\n{sql}");
    }
    answer
}

async fn default_answer(
    session: &mut impl Session,
    query: u8,
    scale: f64,
    form: Q15,
) -> AnswerTable {
    answer(session, query, &parameters(query, scale, ParameterChoice::Default), form).await
}

/// All 22 answers are the known ones.
fn answers_are_right(driver: &impl Driver, scale: f64) {
    fill(driver, scale);
    with_session(driver, async |session| {
        let mut wrong = Vec::new();
        for query in 1..=LAST {
            let answer = default_answer(session, query, scale, Q15::Cte).await;
            let judgment = reference(query, scale).unwrap().judge(query, &answer);
            wrong.extend(judgment.differences.into_iter().map(|line| format!("Q{query}: {line}")));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

/// The view gives what the common table expression gives, and is dropped afterwards.
fn view_is_right(driver: &impl Driver, scale: f64) {
    with_session(driver, async |session| {
        for _ in 0..2 {
            let answer = default_answer(session, 15, scale, Q15::View(3)).await;
            let judgment = reference(15, scale).unwrap().judge(15, &answer);
            assert_eq!(judgment.differences, Vec::<String>::new());
        }
    });
}

/// One line changed by hand is found.
fn a_changed_row_is_found(driver: &impl Driver, scale: f64) {
    with_session(driver, async |session| {
        let sql = "update lineitem set l_extendedprice = l_extendedprice + 1000, l_quantity = 1 \
                   where l_orderkey = 1 and l_linenumber = 1";
        assert_eq!(session.query(sql, &mut Discard).await.unwrap().affected, 1);
        let answer = default_answer(session, 1, scale, Q15::Cte).await;
        let judgment = reference(1, scale).unwrap().judge(1, &answer);
        assert_eq!(judgment.differences.len(), 1, "{judgment:?}");
        let difference = &judgment.differences[0];
        assert!(difference.to_string().starts_with("Row 3: sum_qty is "), "{difference}");
        assert!(difference.to_string().contains("sum_base_price is "), "{difference}");
    });
}

fn whole_way(driver: &impl Driver) {
    answers_are_right(driver, 0.01);
    view_is_right(driver, 0.01);
    a_changed_row_is_found(driver, 0.01);
}

#[test]
fn sqlite() {
    whole_way(&sqlite_in(&Scratch::new()));
}

#[test]
fn sqlite_at_a_tenth() {
    answers_are_right(&sqlite_in(&Scratch::new()), 0.1);
}

#[test]
fn mariadb() {
    let server = server_or_skip!(MariaDb, "mariadb");
    whole_way(&mysql_driver(&server));
}

#[test]
fn postgres() {
    let server = server_or_skip!(Postgres, "postgres");
    whole_way(&postgres_driver(&server));
}

/// At scale factor 1 this takes minutes: only where it is requested. MariaDB would take hours there.
#[test]
fn answers_at_a_scale_of_choice() {
    let Ok(scale) = std::env::var(SCALE) else {
        skipped("answers_at_a_scale_of_choice", &format!("{SCALE} is not set"));
        return;
    };
    let scale: f64 = scale.parse().unwrap_or_else(|_| panic!("{SCALE} is no number: {scale}"));
    let server = server_or_skip!(Postgres, "answers_at_a_scale_of_choice");
    answers_are_right(&postgres_driver(&server), scale);
    answers_are_right(&sqlite_in(&Scratch::new()), scale);
    if scale < 1.0 {
        let server = server_or_skip!(MariaDb, "answers_at_a_scale_of_choice");
        answers_are_right(&mysql_driver(&server), scale);
    }
}

/// The answers to all queries with drawn parameters, by seed.
fn drawn_answers(driver: &impl Driver, scale: f64, seeds: &[u64]) -> Vec<(u64, u8, AnswerTable)> {
    fill(driver, scale);
    with_session(driver, async |session| {
        let mut answers = Vec::new();
        for &seed in seeds {
            for query in 1..=LAST {
                let values = parameters(query, scale, ParameterChoice::Seed(seed));
                let rows = answer(session, query, &values, Q15::Cte).await;
                answers.push((seed, query, rows));
            }
        }
        answers
    })
}

/// Whatever the parameters are, the engines agree.
#[test]
fn engines_agree_on_drawn_parameters() {
    const NAME: &str = "engines_agree_on_drawn_parameters";
    let scale = 0.01;
    let seeds: [u64; 3] = [101_000_000, 1, 2_147_483_646];
    let postgres = server_or_skip!(Postgres, NAME);
    let mariadb = server_or_skip!(MariaDb, NAME);
    let exact = drawn_answers(&postgres_driver(&postgres), scale, &seeds);
    assert!(exact.iter().filter(|(_, _, answer)| !answer.rows.is_empty()).count() > 40);
    for (who, answers) in [
        ("MariaDB", drawn_answers(&mysql_driver(&mariadb), scale, &seeds)),
        ("SQLite", drawn_answers(&sqlite_in(&Scratch::new()), scale, &seeds)),
    ] {
        for ((seed, query, right), (_, _, answer)) in exact.iter().zip(&answers) {
            let judgment = Expected::from_engine(right.clone(), "PostgreSQL").judge(*query, answer);
            let differences = Message::joined(&judgment.differences, "\n", "\n").to_string();
            assert!(differences.is_empty(), "{who}, seed {seed}, Q{query}:\n{differences}");
        }
    }
}
