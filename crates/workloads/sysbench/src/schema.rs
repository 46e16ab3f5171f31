//! The tables.

use crate::options::SysbenchOptions;
use dyno_core::Dialect;

/// The CREATE TABLE of `table`, of the test's family.
pub(crate) fn create_table(options: &SysbenchOptions, dialect: Dialect, table: &str) -> String {
    if options.test.is_bulk_insert() {
        return create_bulk_table(options, dialect, table);
    }
    let id = id_column(options, dialect);
    let k = match dialect {
        Dialect::Mysql if options.test.is_legacy() => "INTEGER UNSIGNED",
        _ => "INTEGER",
    };
    let key = match (options.secondary, dialect) {
        (true, Dialect::Mysql) => ",\n  KEY xid (id)",
        (true, _) => "",
        // The type of the id says so already.
        (false, Dialect::Sqlite) => "",
        (false, _) => ",\n  PRIMARY KEY (id)",
    };
    let tail = table_options(options, dialect);
    format!(
        "CREATE TABLE {table}(\n  id {id},\n  k {k} DEFAULT '0' NOT NULL,\n  \
         c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL{key}\n){tail}"
    )
}

fn id_column(options: &SysbenchOptions, dialect: Dialect) -> &'static str {
    match (dialect, options.auto_inc, options.test.is_legacy()) {
        (Dialect::Mysql, true, false) => "INTEGER NOT NULL AUTO_INCREMENT",
        (Dialect::Mysql, true, true) => "INTEGER UNSIGNED NOT NULL AUTO_INCREMENT",
        (Dialect::Mysql, false, true) => "INTEGER UNSIGNED NOT NULL",
        (Dialect::Postgres, true, _) => "SERIAL",
        (Dialect::Sqlite, ..) if !options.secondary => "INTEGER PRIMARY KEY",
        _ => "INTEGER NOT NULL",
    }
}

fn table_options(options: &SysbenchOptions, dialect: Dialect) -> String {
    let mut tail = String::new();
    if dialect == Dialect::Mysql {
        let engine = &options.mysql_storage_engine;
        let rows = if options.test.is_legacy() {
            format!(" MAX_ROWS = {}", options.myisam_max_rows)
        } else {
            String::new()
        };
        tail = format!(" /*! ENGINE = {engine}{rows} */");
    }
    if !options.create_table_options.is_empty() {
        tail.push(' ');
        tail.push_str(&options.create_table_options);
    }
    tail
}

fn create_bulk_table(options: &SysbenchOptions, dialect: Dialect, table: &str) -> String {
    let (integer, tail) = if options.test.is_legacy() && dialect == Dialect::Mysql {
        ("INTEGER UNSIGNED", table_options(options, dialect))
    } else {
        ("INTEGER", String::new())
    };
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (\n  id {integer} NOT NULL,\n  \
         k {integer} DEFAULT '0' NOT NULL,\n  PRIMARY KEY (id)){tail}"
    )
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// The indexes of `table` that are made after loading.
pub(crate) fn indexes(options: &SysbenchOptions, dialect: Dialect, table: &str) -> Vec<Index> {
    if options.test.is_bulk_insert() {
        return Vec::new();
    }
    let number = table.strip_prefix("sbtest").unwrap_or(table);
    // Only MySQL can name a secondary index inside CREATE TABLE.
    let has_xid = options.secondary && dialect != Dialect::Mysql;
    let columns = [("xid", "id", has_xid), ("k", "k", options.create_secondary)];
    let columns = columns.into_iter().filter(|(.., is_wanted)| *is_wanted);
    let indexes = columns.map(|(prefix, column, _)| {
        // 0.5's only table has no number: its index is called after the column.
        let name = if number.is_empty() { prefix.to_owned() } else { format!("{prefix}_{number}") };
        let sql = format!("CREATE INDEX {name} ON {table}({column})");
        Index { name, sql }
    });
    indexes.collect()
}

/// Lets the server's own numbering continue behind the loaded rows. MySQL and SQLite do so
/// by themselves.
pub(crate) fn continue_numbering(
    options: &SysbenchOptions,
    dialect: Dialect,
    table: &str,
) -> Option<String> {
    let numbered = dialect == Dialect::Postgres && options.auto_inc && options.rows_to_load() > 0;
    numbered.then(|| {
        let rows = options.rows_to_load();
        format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), {rows})")
    })
}

/// The columns that an existing table must have.
pub(crate) fn column_names(options: &SysbenchOptions) -> &'static [&'static str] {
    if options.test.is_bulk_insert() { &["id", "k"] } else { &crate::rows::COLUMNS }
}

/// The first difference of an existing table from `options`, by the CREATE TABLE that MySQL prints of it.
pub(crate) fn difference(options: &SysbenchOptions, definition: &str) -> Option<String> {
    let engine = definition.split_once("ENGINE=")?.1.split_whitespace().next()?;
    let expected_engine = &options.mysql_storage_engine;
    if !engine.eq_ignore_ascii_case(expected_engine) {
        return Some(format!("is stored by {engine}, but {expected_engine} is requested"));
    }
    let unquoted = definition.replace(['`', '"'], "");
    let lines = [("PRIMARY KEY", "(id)"), ("id ", "AUTO_INCREMENT"), ("KEY k", "(k)")];
    let [has_primary, has_auto_inc, has_k] = lines.map(|(start, part)| {
        unquoted.lines().any(|line| line.trim().starts_with(start) && line.contains(part))
    });
    let parts = [
        (has_primary, !options.secondary, "a primary key"),
        (has_auto_inc, options.auto_inc, "AUTO_INCREMENT"),
        // One that is missing is made at the end.
        (has_k, has_k && options.create_secondary, "an index on k"),
    ];
    parts.into_iter().find_map(|(has, is_wanted, what)| match (has, is_wanted) {
        (true, false) => Some(format!("has {what}, which isn't requested")),
        (false, true) => Some(format!("lacks {what}, which is requested")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SysbenchTest;

    #[test]
    fn an_existing_table_must_be_what_is_asked_for() {
        let has = "CREATE TABLE `sbtest1` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  \
                   `k` int(11) NOT NULL DEFAULT 0,\n  PRIMARY KEY (`id`),\n  KEY `k_1` (`k`)\n\
                   ) ENGINE=InnoDB AUTO_INCREMENT=11 DEFAULT CHARSET=utf8mb4";
        let options = SysbenchOptions::new(SysbenchTest::ReadWrite);
        let describe_difference =
            |options: SysbenchOptions| difference(&options, has).unwrap_or_default();
        assert_eq!(describe_difference(options.clone()), "");
        let myisam =
            SysbenchOptions { mysql_storage_engine: "myisam".to_owned(), ..options.clone() };
        assert_eq!(describe_difference(myisam), "is stored by InnoDB, but myisam is requested");
        let secondary = SysbenchOptions { secondary: true, ..options.clone() };
        assert_eq!(describe_difference(secondary), "has a primary key, which isn't requested");
        let own_ids = SysbenchOptions { auto_inc: false, ..options.clone() };
        assert_eq!(describe_difference(own_ids), "has AUTO_INCREMENT, which isn't requested");
        let no_index = SysbenchOptions { create_secondary: false, ..options.clone() };
        assert_eq!(describe_difference(no_index), "has an index on k, which isn't requested");
        let early = has.replace(",\n  KEY `k_1` (`k`)", "");
        assert_eq!(difference(&options, &early), None, "its index comes at the end");
        let without = early.replace("PRIMARY KEY (`id`)", "KEY `xid` (`id`)");
        let lacks = "lacks a primary key, which is requested";
        assert_eq!(difference(&options, &without).as_deref(), Some(lacks));
    }

    #[test]
    fn mysql_gets_the_text_of_the_original() {
        let options = SysbenchOptions::new(SysbenchTest::ReadWrite);
        let expected = "CREATE TABLE sbtest1(\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER \
                        DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) \
                        DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) /*! ENGINE = innodb */";
        assert_eq!(create_table(&options, Dialect::Mysql, "sbtest1"), expected);
        let options = SysbenchOptions { secondary: true, auto_inc: false, ..options };
        let text = create_table(&options, Dialect::Mysql, "sbtest1");
        assert!(text.contains("id INTEGER NOT NULL,\n"), "{text}");
        assert!(text.contains(",\n  KEY xid (id)\n)"), "{text}");
    }

    #[test]
    fn each_dialect_numbers_rows_in_its_own_way() {
        let options = SysbenchOptions::new(SysbenchTest::ReadWrite);
        let postgres = create_table(&options, Dialect::Postgres, "sbtest3");
        assert!(postgres.contains("id SERIAL,\n"), "{postgres}");
        assert!(postgres.ends_with("PRIMARY KEY (id)\n)"), "{postgres}");
        let sqlite = create_table(&options, Dialect::Sqlite, "sbtest3");
        assert!(sqlite.contains("id INTEGER PRIMARY KEY,\n"), "{sqlite}");
        assert!(sqlite.ends_with("DEFAULT '' NOT NULL\n)"), "{sqlite}");
    }

    #[test]
    fn the_old_scripts_have_unsigned_columns_and_max_rows_on_mysql() {
        let options = SysbenchOptions::new(SysbenchTest::V05Oltp);
        let text = create_table(&options, Dialect::Mysql, "sbtest1");
        assert!(text.contains("id INTEGER UNSIGNED NOT NULL AUTO_INCREMENT"), "{text}");
        assert!(text.contains("k INTEGER UNSIGNED DEFAULT '0' NOT NULL"), "{text}");
        assert!(text.ends_with("/*! ENGINE = innodb MAX_ROWS = 1000000 */"), "{text}");
    }

    #[test]
    fn indexes_follow_the_options() {
        let mut options = SysbenchOptions::new(SysbenchTest::ReadWrite);
        assert_eq!(index_statements(&options, Dialect::Mysql), ["CREATE INDEX k_7 ON sbtest7(k)"]);
        options.secondary = true;
        assert_eq!(index_statements(&options, Dialect::Mysql), ["CREATE INDEX k_7 ON sbtest7(k)"]);
        assert_eq!(
            index_statements(&options, Dialect::Postgres),
            ["CREATE INDEX xid_7 ON sbtest7(id)", "CREATE INDEX k_7 ON sbtest7(k)"]
        );
        options.secondary = false;
        options.create_secondary = false;
        assert!(index_statements(&options, Dialect::Postgres).is_empty());
    }

    fn index_statements(options: &SysbenchOptions, dialect: Dialect) -> Vec<String> {
        indexes(options, dialect, "sbtest7").into_iter().map(|index| index.sql).collect()
    }
}
