//! The statements of every step but the rows', in each dialect. On PostgreSQL they are pgbench 15's
//! letter by letter.

use super::options::{
    ACCOUNTS_PER_BRANCH, BIGINT_SCALE, InitOptions, PartitionMethod, TELLERS_PER_BRANCH,
};
use dyno_core::{Dialect, Product};
use std::fmt::Write as _;

/// The accounts, the one table that is large and may be partitioned.
pub(crate) const ACCOUNTS: &str = "pgbench_accounts";
pub(crate) const BRANCHES: &str = "pgbench_branches";
pub(crate) const HISTORY: &str = "pgbench_history";
pub(crate) const TELLERS: &str = "pgbench_tellers";

/// All tables, in the order in which pgbench names them in one statement.
pub(crate) const TABLES: [&str; 4] = [ACCOUNTS, BRANCHES, HISTORY, TELLERS];
/// All tables, each after those that have a foreign key to it.
pub(crate) const CHILDREN_FIRST: [&str; 4] = [HISTORY, TELLERS, ACCOUNTS, BRANCHES];
pub(crate) const VACUUMED: [&str; 4] = [BRANCHES, TELLERS, ACCOUNTS, HISTORY];
/// Tables with a primary key, and its column.
const PRIMARY_KEYS: [(&str, &str); 3] = [(BRANCHES, "bid"), (TELLERS, "tid"), (ACCOUNTS, "aid")];
/// Table, column and the table it refers to, by the column of the same name.
const FOREIGN_KEYS: [(&str, &str, &str); 5] = [
    (TELLERS, "bid", BRANCHES),
    (ACCOUNTS, "bid", BRANCHES),
    (HISTORY, "bid", BRANCHES),
    (HISTORY, "tid", TELLERS),
    (HISTORY, "aid", ACCOUNTS),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) table: &'static str,
    /// The name that the key will have; PostgreSQL and MySQL name primary keys themselves.
    pub(crate) name: String,
    pub(crate) sql: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a> {
    pub(crate) options: &'a InitOptions,
    pub(crate) dialect: Dialect,
    /// PostgreSQL's major version; 0 elsewhere.
    pub(crate) postgres_major: u32,
    /// MySQL wants tables to have a primary key from the beginning.
    pub(crate) keys_first: bool,
}

/// The number before the first dot of a PostgreSQL's version; 0 of anything else.
pub(crate) fn postgres_major(dialect: Dialect, product: &Product) -> u32 {
    if dialect != Dialect::Postgres {
        return 0;
    }
    let digits = product.version.find(|letter: char| !letter.is_ascii_digit());
    product.version[..digits.unwrap_or(product.version.len())].parse().unwrap_or(0)
}

/// Quotes it like libpq: always.
fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

impl Schema<'_> {
    pub(crate) fn drop_tables(&self) -> Vec<String> {
        let lists = match self.dialect {
            Dialect::Postgres => vec![TABLES.join(", ")],
            Dialect::Mysql => vec![CHILDREN_FIRST.join(", ")],
            Dialect::Sqlite => CHILDREN_FIRST.map(str::to_owned).to_vec(),
        };
        lists.iter().map(|tables| format!("drop table if exists {tables}")).collect()
    }

    /// Creates a table, without the partitions that are separate tables.
    pub(crate) fn create_table(&self, table: &str) -> String {
        let is_partitioned = table == ACCOUNTS && self.options.partitions > 0;
        // PostgreSQL 18 refuses a partitioned table that is unlogged; its partitions may be.
        let unlogged = self.options.unlogged && !(is_partitioned && self.postgres_major >= 18);
        let unlogged = if unlogged { " unlogged" } else { "" };
        let columns = format!("{}{}", self.columns(table), self.inline_key(table));
        let mut sql = format!("create{unlogged} table {table}({columns})");
        match self.dialect {
            Dialect::Postgres => {
                if is_partitioned {
                    let _ =
                        write!(sql, " partition by {} (aid)", self.options.partition_method.name());
                } else if table != HISTORY {
                    let _ = write!(sql, " with (fillfactor={})", self.options.fillfactor);
                }
                if let Some(tablespace) = &self.options.tablespace {
                    let _ = write!(sql, " tablespace {}", quoted(tablespace));
                }
            }
            Dialect::Mysql | Dialect::Sqlite => {}
        }
        sql
    }

    fn inline_key(&self, table: &str) -> String {
        let column = PRIMARY_KEYS.iter().find(|(owner, _)| *owner == table).map(|(_, key)| key);
        match column {
            _ if !self.keys_first => String::new(),
            Some(column) => format!(",primary key ({column})"),
            // As the one that MySQL itself may add: scripts don't see it.
            None => ",hid bigint not null auto_increment invisible primary key".to_owned(),
        }
    }

    /// The columns of a table, as in CREATE TABLE.
    fn columns(&self, table: &str) -> String {
        let aid = if self.options.scale >= BIGINT_SCALE { "aid bigint" } else { "aid    int" };
        let mtime = match self.dialect {
            Dialect::Postgres => "timestamp",
            // MySQL's `timestamp` ends in 2038 and may fill itself.
            Dialect::Mysql => "datetime(6)",
            Dialect::Sqlite => "text",
        };
        match table {
            HISTORY => format!("tid int,bid int,{aid},delta int,mtime {mtime},filler char(22)"),
            TELLERS => "tid int not null,bid int,tbalance int,filler char(84)".to_owned(),
            ACCOUNTS => format!("{aid} not null,bid int,abalance int,filler char(84)"),
            _ => "bid int not null,bbalance int,filler char(88)".to_owned(),
        }
    }

    /// The first account that is not in partition `number` (from 1) of a range-partitioned table;
    /// `None` of the last one, which has no end.
    fn range_end(&self, number: u32) -> Option<i64> {
        let partitions = i64::from(self.options.partitions);
        let size = (self.options.accounts() + partitions - 1) / partitions;
        (number < self.options.partitions).then(|| i64::from(number) * size + 1)
    }

    /// Creates partition `number`, from 1, of the accounts: its own table.
    pub(crate) fn create_partition(&self, number: u32) -> String {
        let unlogged = if self.options.unlogged { " unlogged" } else { "" };
        let bounds = match self.options.partition_method {
            PartitionMethod::Range => {
                let [start, end] =
                    [number - 1, number].map(|number| match self.range_end(number) {
                        _ if number == 0 => "minvalue".to_owned(),
                        None => "maxvalue".to_owned(),
                        Some(end) => end.to_string(),
                    });
                format!("from ({start}) to ({end})")
            }
            PartitionMethod::Hash => {
                format!("with (modulus {}, remainder {})", self.options.partitions, number - 1)
            }
        };
        format!(
            "create{unlogged} table {ACCOUNTS}_{number}\n  partition of {ACCOUNTS}\n  for values \
             {bounds} with (fillfactor={})",
            self.options.fillfactor
        )
    }

    pub(crate) fn empty_tables(&self) -> Vec<String> {
        match self.dialect {
            Dialect::Postgres => vec![format!("truncate table {}", TABLES.join(", "))],
            // InnoDB truncates no table that a foreign key refers to, even from an empty table.
            Dialect::Mysql => std::iter::once("set foreign_key_checks = 0".to_owned())
                .chain(CHILDREN_FIRST.iter().map(|table| format!("truncate table {table}")))
                .chain(["set foreign_key_checks = 1".to_owned()])
                .collect(),
            Dialect::Sqlite => {
                CHILDREN_FIRST.iter().map(|table| format!("delete from {table}")).collect()
            }
        }
    }

    /// The tables that step G fills and the statements, of PostgreSQL only.
    pub(crate) fn fill(&self) -> [(&'static str, String); 3] {
        let tellers = format!("(tid - 1) / {TELLERS_PER_BRANCH} + 1, 0");
        let accounts = format!("(aid - 1) / {ACCOUNTS_PER_BRANCH} + 1, 0, ''");
        [
            (BRANCHES, "bid,bbalance", "0", i64::from(self.options.scale)),
            (TELLERS, "tid,bid,tbalance", &tellers, self.options.tellers()),
            (ACCOUNTS, "aid,bid,abalance,filler", &accounts, self.options.accounts()),
        ]
        .map(|(table, columns, values, rows)| {
            let number = &columns[..3];
            let sql = format!(
                "insert into {table}({columns}) select {number}, {values} from generate_series(1, \
                 {rows}) as {number}"
            );
            (table, sql)
        })
    }

    /// Vacuums and analyzes a table. `freeze` is for accounts that were loaded without COPY's
    /// FREEZE where pgbench's have it.
    pub(crate) fn vacuum(&self, table: &str, freeze: bool) -> String {
        let command = match self.dialect {
            Dialect::Postgres if freeze && table == ACCOUNTS => "vacuum freeze analyze",
            Dialect::Postgres => "vacuum analyze",
            Dialect::Mysql => "analyze table",
            Dialect::Sqlite => "analyze",
        };
        format!("{command} {table}")
    }

    /// Creates the primary keys; unique indexes on SQLite, which can't add a primary key.
    pub(crate) fn primary_keys(&self) -> Vec<Key> {
        let keys = PRIMARY_KEYS.into_iter().map(|(table, column)| {
            let name = format!("{table}_pkey");
            let mut sql = match self.dialect {
                Dialect::Sqlite => format!("create unique index {name} on {table} ({column})"),
                _ => format!("alter table {table} add primary key ({column})"),
            };
            if let Some(tablespace) = &self.options.index_tablespace {
                let _ = write!(sql, " using index tablespace {}", quoted(tablespace));
            }
            Key { table, name, sql }
        });
        keys.collect()
    }

    pub(crate) fn foreign_keys(&self) -> Vec<Key> {
        let keys = FOREIGN_KEYS.into_iter().map(|(table, column, parent)| {
            let name = format!("{table}_{column}_fkey");
            // MySQL does not take the parent's primary key by itself.
            let parent_column =
                if self.dialect == Dialect::Mysql { format!(" ({column})") } else { String::new() };
            let sql = format!(
                "alter table {table} add constraint {name} foreign key ({column}) references \
                 {parent}{parent_column}"
            );
            Key { table, name, sql }
        });
        keys.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schema(options: &InitOptions, dialect: Dialect) -> Schema<'_> {
        Schema { options, dialect, postgres_major: 15, keys_first: false }
    }

    #[test]
    fn mysql_gets_what_it_understands() {
        let options = InitOptions { scale: BIGINT_SCALE, ..InitOptions::default() };
        let mysql = schema(&options, Dialect::Mysql);
        assert_eq!(
            CHILDREN_FIRST.map(|table| mysql.create_table(table)),
            [
                "create table pgbench_history(tid int,bid int,aid bigint,delta int,mtime \
                 datetime(6),filler char(22))",
                "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler \
                 char(84))",
                "create table pgbench_accounts(aid bigint not null,bid int,abalance int,filler \
                 char(84))",
                "create table pgbench_branches(bid int not null,bbalance int,filler char(88))",
            ]
        );
        assert_eq!(
            mysql.drop_tables(),
            ["drop table if exists pgbench_history, pgbench_tellers, pgbench_accounts, \
              pgbench_branches"]
        );
        assert_eq!(
            mysql.empty_tables(),
            [
                "set foreign_key_checks = 0",
                "truncate table pgbench_history",
                "truncate table pgbench_tellers",
                "truncate table pgbench_accounts",
                "truncate table pgbench_branches",
                "set foreign_key_checks = 1",
            ]
        );
        assert_eq!(mysql.vacuum(ACCOUNTS, true), "analyze table pgbench_accounts");
        assert_eq!(
            mysql.foreign_keys()[4].sql,
            "alter table pgbench_history add constraint pgbench_history_aid_fkey foreign key \
             (aid) references pgbench_accounts (aid)"
        );
    }

    #[test]
    fn sqlite_gets_what_it_understands() {
        let options = InitOptions::default();
        let sqlite = schema(&options, Dialect::Sqlite);
        let tables = CHILDREN_FIRST.map(|table| sqlite.create_table(table));
        assert!(tables[0].ends_with("delta int,mtime text,filler char(22))"), "{}", tables[0]);
        assert_eq!(sqlite.drop_tables()[0], "drop table if exists pgbench_history");
        assert_eq!(sqlite.empty_tables().len(), 4);
        assert_eq!(sqlite.empty_tables()[3], "delete from pgbench_branches");
        assert_eq!(sqlite.vacuum(ACCOUNTS, true), "analyze pgbench_accounts");
        assert_eq!(
            sqlite.primary_keys()[2].sql,
            "create unique index pgbench_accounts_pkey on pgbench_accounts (aid)"
        );
    }

    #[test]
    fn names_are_quoted_and_versions_read() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(parse_major("15.20 (Debian 15.20-0+deb12u1)", Dialect::Postgres), 15);
        assert_eq!(parse_major("18beta1", Dialect::Postgres), 18);
        assert_eq!(parse_major("9", Dialect::Postgres), 9);
        assert_eq!(parse_major("devel", Dialect::Postgres), 0);
        assert_eq!(parse_major("10.11.19-MariaDB", Dialect::Mysql), 0);
    }

    fn parse_major(version: &str, dialect: Dialect) -> u32 {
        postgres_major(dialect, &Product { name: String::new(), version: version.to_owned() })
    }

    proptest! {
        /// Each account is in exactly one range.
        #[test]
        fn ranges_follow_each_other(scale in 1..=50_000_u32, partitions in 1..=3_000_u32) {
            let options = InitOptions { scale, partitions, ..InitOptions::default() };
            let schema = schema(&options, Dialect::Postgres);
            let mut end = "minvalue".to_owned();
            let mut last_number = 1;
            for number in 1..=partitions {
                let sql = schema.create_partition(number);
                let (_, bounds) = sql.split_once("for values from (").unwrap();
                let (from, rest) = bounds.split_once(") to (").unwrap();
                let (to, _) = rest.split_once(')').unwrap();
                prop_assert_eq!(from, &end);
                end = to.to_owned();
                if number < partitions {
                    let bound: i64 = to.parse().unwrap();
                    prop_assert!(bound > last_number);
                    last_number = bound;
                }
            }
            prop_assert_eq!(end, "maxvalue");
            // All but the last hold the same share, rounded up.
            let size = options.accounts().unsigned_abs().div_ceil(u64::from(partitions)) as i64;
            prop_assert_eq!(last_number, i64::from(partitions - 1) * size + 1);
        }
    }
}
