//! The statements that make tables, keys, indexes and statistics.

use crate::schema::{FOREIGN_KEYS, ForeignKey, INDEXES, Index, SchemaTable};
use dyno_core::Dialect;

/// SQLite stores the rows of a table by a single whole-number key, if it has one, and can't be told
/// of it later.
fn is_stored_by_key(table: SchemaTable, dialect: Dialect) -> bool {
    dialect == Dialect::Sqlite && table.primary_key().len() == 1
}

/// True where CREATE TABLE has the foreign keys; elsewhere they are made later.
pub(super) fn declares_foreign_keys(dialect: Dialect) -> bool {
    dialect == Dialect::Sqlite
}

/// CREATE TABLE, with the foreign keys where they can't be made later.
pub(super) fn create_table(table: SchemaTable, dialect: Dialect, foreign_keys: bool) -> String {
    let stored_by = is_stored_by_key(table, dialect).then(|| table.primary_key()[0]);
    let mut parts: Vec<String> = Vec::new();
    for &(name, kind) in table.columns() {
        if stored_by == Some(name) {
            // Only this very word makes the key the row's own number.
            parts.push(format!("{name} integer not null primary key"));
        } else {
            parts.push(format!("{name} {} not null", kind.sql(dialect)));
        }
    }
    if declares_foreign_keys(dialect) && foreign_keys {
        parts.extend(FOREIGN_KEYS.iter().filter(|key| key.table == table).map(constraint));
    }
    format!("CREATE TABLE IF NOT EXISTS {} (\n  {}\n)", table.name(), parts.join(",\n  "))
}

/// Adds the primary key to a CREATE TABLE.
pub(super) fn with_primary_key(create: &str, table: SchemaTable) -> String {
    let columns = create.trim_end_matches("\n)");
    format!("{columns},\n  PRIMARY KEY ({})\n)", table.primary_key().join(", "))
}

fn constraint(key: &ForeignKey) -> String {
    format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({})",
        key.name,
        key.columns.join(", "),
        key.parent.name(),
        key.parent.primary_key().join(", ")
    )
}

pub(super) fn primary_key_name(table: SchemaTable, dialect: Dialect) -> &'static str {
    match (dialect, table) {
        (Dialect::Mysql, _) => "PRIMARY",
        (_, SchemaTable::Region) => "region_pkey",
        (_, SchemaTable::Nation) => "nation_pkey",
        (_, SchemaTable::Supplier) => "supplier_pkey",
        (_, SchemaTable::Part) => "part_pkey",
        (_, SchemaTable::Partsupp) => "partsupp_pkey",
        (_, SchemaTable::Customer) => "customer_pkey",
        (_, SchemaTable::Orders) => "orders_pkey",
        (_, SchemaTable::Lineitem) => "lineitem_pkey",
    }
}

/// The statement that makes a primary key; `None` where it came with the table.
pub(super) fn primary_key(table: SchemaTable, dialect: Dialect) -> Option<String> {
    let (name, columns) = (table.name(), table.primary_key().join(", "));
    let key = primary_key_name(table, dialect);
    match dialect {
        Dialect::Sqlite if is_stored_by_key(table, dialect) => None,
        Dialect::Sqlite => Some(format!("CREATE UNIQUE INDEX {key} ON {name} ({columns})")),
        Dialect::Mysql => Some(format!("ALTER TABLE {name} ADD PRIMARY KEY ({columns})")),
        Dialect::Postgres => {
            Some(format!("ALTER TABLE {name} ADD CONSTRAINT {key} PRIMARY KEY ({columns})"))
        }
    }
}

pub(super) fn foreign_key(key: &ForeignKey) -> String {
    format!("ALTER TABLE {} ADD {}", key.table.name(), constraint(key))
}

/// A row of the table whose parent is missing.
pub(super) fn orphan(key: &ForeignKey) -> String {
    let parent_columns = key.parent.primary_key();
    let on: Vec<String> = key
        .columns
        .iter()
        .zip(parent_columns)
        .map(|(column, parent)| format!("c.{column} = p.{parent}"))
        .collect();
    format!(
        "SELECT c.{} FROM {} c LEFT JOIN {} p ON {} WHERE p.{} IS NULL LIMIT 1",
        key.columns.join(", c."),
        key.table.name(),
        key.parent.name(),
        on.join(" AND "),
        parent_columns[0]
    )
}

/// The statement that makes all foreign keys of a table, or on SQLite checks them.
pub(super) fn foreign_keys(table: SchemaTable, dialect: Dialect) -> String {
    if dialect == Dialect::Sqlite {
        return format!("PRAGMA foreign_key_check({})", table.name());
    }
    let keys = FOREIGN_KEYS.iter().filter(|key| key.table == table);
    let clauses: Vec<String> = keys.map(|key| format!("ADD {}", constraint(key))).collect();
    format!("ALTER TABLE {} {}", table.name(), clauses.join(", "))
}

pub(super) fn index(index: &Index) -> String {
    format!("CREATE INDEX {} ON {} ({})", index.name, index.table.name(), index.columns.join(", "))
}

pub(super) fn mysql_indexes(table: SchemaTable) -> String {
    let of = INDEXES.iter().filter(|index| index.table == table);
    let clauses: Vec<String> = of
        .map(|index| format!("ADD INDEX {} ({})", index.name, index.columns.join(", ")))
        .collect();
    format!("ALTER TABLE {} {}", table.name(), clauses.join(", "))
}

pub(super) fn analyze(table: SchemaTable, dialect: Dialect) -> String {
    let name = table.name();
    match dialect {
        Dialect::Mysql => format!("ANALYZE TABLE {name}"),
        // Indexes alone can answer only for pages that are marked as visible to all.
        Dialect::Postgres => format!("VACUUM (ANALYZE) {name}"),
        Dialect::Sqlite => format!("ANALYZE {name}"),
    }
}
