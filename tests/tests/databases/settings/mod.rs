//! Settings that administrators change for a whole server, and what the front ends make of them: each is right, or
//! refuses before anything is stored, or ends with an error. Right is what the database itself says.
//!
//! A row of a table is some settings; harmless ones share a row, and what is loaded under all of them serves runs under
//! each. One server per product takes them in turn.

mod mysql;
mod postgres;
mod steps;

use dyno_core::{AdminSession, AnswerTable, Dialect, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_load::settings::adopt;
use dyno_testkit::{Scratch, target, with_session};
use steps::{Step, expect};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Everything is stored and measured as without the settings.
    Right,
    /// Fails with these words; a load stores nothing.
    Refused(&'static str),
    /// Fails, or everything is right.
    Honest,
}

use Expected::{Honest, Refused, Right};

type Settings = [(&'static str, &'static str)];
type Steps = [(Step, Expected)];

/// Groups of settings, and what is expected of loads and trials under all of them.
struct Row {
    settings: &'static [&'static Settings],
    steps: &'static Steps,
    /// Expectations afterwards, on the same data, under each of these groups alone.
    then: &'static [(&'static Settings, &'static Steps)],
}

impl Row {
    const fn new(settings: &'static [&'static Settings], steps: &'static Steps) -> Row {
        Row { settings, steps, then: &[] }
    }
}

/// All front ends are right.
const ALL_RIGHT: &Steps = &[
    (Step::SysbenchPrepare, Right),
    (Step::SysbenchRun, Right),
    (Step::SysbenchScript, Right),
    (Step::PgbenchInit, Right),
    (Step::PgbenchRun, Right),
    (Step::PgbenchScript, Right),
    (Step::Build, Right),
    (Step::TpccRun, Right),
    (Step::TpchLoad, Right),
    (Step::TpchRun, Right),
];

const LOADS_ARE_RIGHT: &Steps = &[
    (Step::SysbenchPrepare, Right),
    (Step::PgbenchInit, Right),
    (Step::Build, Right),
    (Step::TpchLoad, Right),
];

/// Runs are right or fail.
const RUNS_ARE_HONEST: &Steps = &[
    (Step::SysbenchRun, Honest),
    (Step::PgbenchRun, Honest),
    (Step::TpccRun, Honest),
    (Step::TpchRun, Honest),
];

/// All loads are refused before anything is loaded.
const fn refusal_steps(words: &'static str) -> [(Step, Expected); 5] {
    [
        (Step::SysbenchPrepare, Refused(words)),
        (Step::PgbenchInit, Refused(words)),
        (Step::Build, Refused(words)),
        (Step::TpchLoad, Refused(words)),
        (Step::Bench, Refused("")),
    ]
}

/// A server, seen by an account without further rights, and the databases of its rows.
struct Place {
    dialect: Dialect,
    port: u16,
    database: String,
    folder: Scratch,
}

impl Place {
    fn url(&self) -> String {
        let Place { port, database, .. } = self;
        match self.dialect {
            Dialect::Postgres => format!("postgres://app@127.0.0.1:{port}/{database}"),
            _ => format!("mysql://app@127.0.0.1:{port}/{database}"),
        }
    }

    /// The number that a statement answers with, whatever the settings of the server.
    fn number(&self, sql: &str) -> i64 {
        number_at(&self.url(), sql)
    }

    /// The tables in the catalog that fulfil a condition.
    fn count(&self, catalog: &str, condition: &str) -> i64 {
        let schema = match self.dialect {
            Dialect::Postgres => "current_schema()",
            _ => "DATABASE()",
        };
        self.number(&format!(
            "SELECT count(*) FROM information_schema.{catalog} WHERE table_schema = {schema} AND {condition}"
        ))
    }
}

/// The number that a statement answers with in a session as loads have it.
fn number_at(url: &str, sql: &str) -> i64 {
    let target = target(url);
    match target.dialect {
        Dialect::Postgres => number(&PostgresDriver::new(&target).expect("a driver"), sql),
        _ => number(&MysqlDriver::new(&target).expect("a driver"), sql),
    }
}

fn number<D: Driver>(driver: &D, sql: &str) -> i64 {
    with_session(driver, async |session: &mut D::Session| {
        adopt(&mut AdminSession::lent(session)).await.expect("settings");
        let mut answer = AnswerTable::default();
        session.query(sql, &mut answer).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let number = answer.single().and_then(|text| text.split('.').next()?.parse().ok());
        number.unwrap_or_else(|| panic!("{sql}: {answer:?}"))
    })
}

/// Goes through the rows; `set` sets the settings of a row that the server has, and returns the statements that set
/// them back.
fn go_through(
    rows: &[Row],
    dialect: Dialect,
    port: u16,
    admin: impl Fn(&str),
    set: impl Fn(&[(&str, &str)]) -> Vec<String>,
) {
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let database = format!("row{number}");
        admin(&format!("CREATE DATABASE {database}"));
        if dialect == Dialect::Postgres {
            admin(&format!("ALTER DATABASE {database} OWNER TO app"));
        }
        let place = Place { dialect, port, database, folder: Scratch::new() };
        let mut check_settings = |settings: &[(&str, &str)], steps: &Steps| {
            let restore = set(settings);
            for (step, expected) in steps {
                if let Err(problem) = expect(&place, *step, *expected) {
                    wrong.push(format!("{settings:?}: {step:?}, expected {expected:?}: {problem}"));
                }
            }
            restore.iter().for_each(|sql| admin(sql));
        };
        check_settings(&row.settings.concat(), row.steps);
        row.then.iter().for_each(|(settings, steps)| check_settings(settings, steps));
        admin(&format!("DROP DATABASE {}", place.database));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
