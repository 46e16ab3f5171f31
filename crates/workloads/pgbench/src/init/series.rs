//! Step G: rows that the server makes itself.

use super::options::{ACCOUNTS_PER_BRANCH, InitOptions, TELLERS_PER_BRANCH};
use super::rows::filler;
use super::schema::{ACCOUNTS, BRANCHES, TELLERS};
use dyno_core::Dialect;

/// Rows that one statement makes on MySQL: what five digits can number. InnoDB keeps undo records
/// and locks of a whole statement.
const MYSQL_ROWS: i64 = 100_000;

/// A table that the server can number itself, and the expressions of its columns.
struct Numbered {
    table: &'static str,
    number: &'static str,
    columns: &'static str,
    /// Follows the number in the select list.
    rest: String,
    rows: i64,
}

fn tables(options: &InitOptions, dialect: Dialect) -> [Numbered; 3] {
    let divide = if dialect == Dialect::Mysql { "div" } else { "/" };
    let filler = String::from_utf8_lossy(filler(dialect));
    [
        Numbered {
            table: BRANCHES,
            number: "bid",
            columns: "bid,bbalance",
            rest: "0".to_owned(),
            rows: i64::from(options.scale),
        },
        Numbered {
            table: TELLERS,
            number: "tid",
            columns: "tid,bid,tbalance",
            rest: format!("(tid - 1) {divide} {TELLERS_PER_BRANCH} + 1, 0"),
            rows: options.tellers(),
        },
        Numbered {
            table: ACCOUNTS,
            number: "aid",
            columns: "aid,bid,abalance,filler",
            rest: format!("(aid - 1) {divide} {ACCOUNTS_PER_BRANCH} + 1, 0, '{filler}'"),
            rows: options.accounts(),
        },
    ]
}

/// A statement of step G.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) table: &'static str,
    pub(crate) sql: String,
    /// Accounts that it makes; 0 of the small tables.
    pub(crate) accounts: u64,
}

/// The statements that fill the three tables, one by one: at scale 50,000 MySQL needs 50,000.
pub(crate) fn fill(options: &InitOptions, dialect: Dialect) -> impl Iterator<Item = Fill> {
    tables(options, dialect).into_iter().flat_map(move |table| {
        let rows_at_once = if dialect == Dialect::Mysql { MYSQL_ROWS } else { table.rows };
        (0..table.rows).step_by(rows_at_once as usize).map(move |before| {
            let last = (before + rows_at_once).min(table.rows);
            let accounts = if table.table == ACCOUNTS { (last - before) as u64 } else { 0 };
            let sql = insert(&table, dialect, before + 1, last);
            Fill { table: table.table, sql, accounts }
        })
    })
}

fn insert(table: &Numbered, dialect: Dialect, first: i64, last: i64) -> String {
    let Numbered { table, number, columns, rest, .. } = table;
    let target = format!("insert into {table}({columns}) select {number}, {rest} from");
    match dialect {
        Dialect::Postgres => format!("{target} generate_series({first}, {last}) as {number}"),
        // Digits work on every server of this protocol: recursion is newer than MySQL 5.7 and has
        // a limit, sequences are MariaDB's.
        Dialect::Mysql => {
            let digits = "(select 0 as d union all select 1 union all select 2 union all select 3 \
                          union all select 4 union all select 5 union all select 6 union all \
                          select 7 union all select 8 union all select 9)";
            format!(
                "{target} (select {first} + a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d \
                 as {number} from {digits} as a cross join {digits} as b cross join {digits} as c \
                 cross join {digits} as d cross join {digits} as e) as numbers where {number} <= \
                 {last}"
            )
        }
        Dialect::Sqlite => format!(
            "with recursive numbers({number}) as (select {first} union all select {number} + 1 \
             from numbers where {number} < {last}) {target} numbers"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn options(scale: u32) -> InitOptions {
        InitOptions { scale, ..InitOptions::default() }
    }

    #[test]
    fn each_dialect_numbers_its_own_way() {
        let first = |dialect| fill(&options(3), dialect).next().unwrap().sql;
        assert_eq!(
            first(Dialect::Postgres),
            "insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, 3) \
             as bid"
        );
        assert_eq!(
            first(Dialect::Sqlite),
            "with recursive numbers(bid) as (select 1 union all select bid + 1 from numbers where \
             bid < 3) insert into pgbench_branches(bid,bbalance) select bid, 0 from numbers"
        );
        let mysql = first(Dialect::Mysql);
        assert!(
            mysql.starts_with("insert into pgbench_branches(bid,bbalance) select bid, 0 from ")
        );
        assert!(mysql.ends_with("as numbers where bid <= 3"), "{mysql}");
    }

    proptest! {
        /// MySQL's statements make each account once, no more than five digits can number at once.
        #[test]
        fn mysql_statements_follow_each_other(scale in 1..=300_u32) {
            let mut next = 1;
            let mut accounts = 0;
            for fill in fill(&options(scale), Dialect::Mysql).filter(|fill| fill.table == ACCOUNTS) {
                let (_, rest) = fill.sql.split_once("from (select ").unwrap();
                let first: i64 = rest.split(' ').next().unwrap().parse().unwrap();
                let last: i64 = fill.sql.rsplit(' ').next().unwrap().parse().unwrap();
                prop_assert_eq!(first, next);
                prop_assert!(last - first < MYSQL_ROWS);
                prop_assert_eq!(fill.accounts, (last - first + 1) as u64);
                accounts += fill.accounts;
                next = last + 1;
            }
            prop_assert_eq!(accounts, u64::from(scale) * 100_000);
        }
    }
}
