//! The steps of a load, in the paper's order, the pieces that each consists of, and their statements.

use super::TpchLoadOptions;
use crate::generate::part_row_count;
use crate::schema::{Key, KeyKind, SchemaTable, keys};
use dyno_core::Dialect;
use dyno_load::settings::{ServerNeed, load_needs};

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TpchStep {
        Create = "create",
        /// The rows, streamed.
        Load = "load",
        PrimaryKeys = "primary-keys",
        ForeignKeys = "foreign-keys",
        /// The 14 secondary indexes.
        Indexes = "indexes",
        Analyze = "analyze",
    }
}

impl TpchStep {
    pub(super) fn is_wanted(self, options: &TpchLoadOptions) -> bool {
        match self {
            TpchStep::ForeignKeys => options.foreign_keys,
            TpchStep::Indexes => options.indexes,
            _ => true,
        }
    }
}

/// Work that is done at once, wholly or not at all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    /// For example `load/lineitem.7`: the step, the table, and where a table has several pieces of a
    /// step, something that tells them apart.
    pub(super) name: String,
    pub(super) step: TpchStep,
    pub(super) table: SchemaTable,
    /// The table that a foreign key refers to, where each has its own statement.
    pub(super) parent: Option<SchemaTable>,
    pub(super) work: Work,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Work {
    /// Rows of part `part` (from 1) of `parts`.
    Rows { part: u32, parts: u32 },
    /// A statement, part of a transaction where the dialect has DDL in transactions. No row may lack its parent by
    /// `proofs`.
    Sql { sql: String, proofs: Vec<&'static Key> },
    /// A statement that can't be part of a transaction and may be repeated.
    Outside { sql: String },
}

impl Piece {
    /// A piece whose name is that of step and table, with something behind it.
    fn new(step: TpchStep, table: SchemaTable, suffix: &str, work: Work) -> Piece {
        let name = format!("{}/{}{suffix}", step.name(), table.name());
        Piece { name, step, table, parent: None, work }
    }

    /// A piece of one statement that proves no foreign keys.
    fn sql(step: TpchStep, table: SchemaTable, suffix: &str, sql: String) -> Piece {
        Piece::new(step, table, suffix, Work::Sql { sql, proofs: Vec::new() })
    }
}

/// Rows of one piece, about: small enough that little is lost with it, large enough that a
/// transaction for each does not count.
const PIECE_ROWS: f64 = 100_000.0;

/// The needs of a load. Rows have up to 192 bytes in the logs of transactions.
pub(crate) fn needs(scale: f64) -> [ServerNeed; 3] {
    let rows = (SchemaTable::Lineitem.rows_per_scale() * scale).min(1.5 * PIECE_ROWS) as u64;
    load_needs(rows, rows * 192)
}

pub(super) fn row_count(pieces: &[Piece], scale: f64) -> u64 {
    let rows = pieces.iter().map(|piece| match piece.work {
        Work::Rows { part, parts } => part_row_count(piece.table, scale, part, parts),
        Work::Sql { .. } | Work::Outside { .. } => 0,
    });
    rows.sum()
}

/// The pieces of a step. Those of large tables come first where order is free: the last piece to
/// end is then a small one.
pub(super) fn pieces(step: TpchStep, dialect: Dialect, options: &TpchLoadOptions) -> Vec<Piece> {
    let large_first = SchemaTable::ALL.into_iter().rev();
    match step {
        TpchStep::Create => SchemaTable::ALL
            .into_iter()
            .map(|table| {
                let sql = create_table(table, dialect, options.foreign_keys);
                Piece::sql(step, table, "", sql)
            })
            .collect(),
        TpchStep::Load => rows(options.scale),
        TpchStep::PrimaryKeys => large_first
            .filter_map(|table| Some(Piece::sql(step, table, "", primary_key(table, dialect)?)))
            .collect(),
        TpchStep::ForeignKeys => foreign_keys(dialect),
        TpchStep::Indexes => indexes(dialect),
        TpchStep::Analyze => {
            let statement = match dialect {
                Dialect::Mysql => "ANALYZE TABLE",
                // Indexes alone can answer only for pages that are marked as visible to all.
                Dialect::Postgres => "VACUUM (ANALYZE)",
                Dialect::Sqlite => "ANALYZE",
            };
            let pieces = large_first.map(|table| {
                let sql = format!("{statement} {}", table.name());
                Piece::new(step, table, "", Work::Outside { sql })
            });
            pieces.collect()
        }
    }
}

/// CREATE TABLE, with the foreign keys if they can't be made later.
fn create_table(table: SchemaTable, dialect: Dialect, foreign_keys: bool) -> String {
    let columns = table.columns().iter().map(|&(name, kind)| match table.primary_key() {
        // Only these very words make the key the row's own number.
        [key] if dialect == Dialect::Sqlite && *key == name => {
            format!("{name} integer not null primary key")
        }
        _ => format!("{name} {} not null", kind.sql(dialect)),
    });
    let mut parts: Vec<String> = columns.collect();
    if dialect == Dialect::Sqlite && foreign_keys {
        parts.extend(foreign_keys_from(table).map(foreign_key_clause));
    }
    format!("CREATE TABLE IF NOT EXISTS {} (\n  {}\n)", table.name(), parts.join(",\n  "))
}

/// Adds the primary key to a CREATE TABLE.
pub(super) fn with_primary_key(create: &str, table: SchemaTable) -> String {
    let columns = create.trim_end_matches("\n)");
    format!("{columns},\n  PRIMARY KEY ({})\n)", table.primary_key().join(", "))
}

/// The pieces of rows, mixed so that all tables are filled at the same time unless another step overlaps: sessions meet
/// in one table as late as possible, and all tables end together.
fn rows(scale: f64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for table in SchemaTable::ALL {
        // Scale factors up to 100,000 make six million pieces.
        let parts = (table.rows_per_scale() * scale / PIECE_ROWS).round().max(1.0) as u32;
        for part in 1..=parts {
            let place = (f64::from(part) - 0.5) / f64::from(parts);
            let work = Work::Rows { part, parts };
            pieces.push((place, Piece::new(TpchStep::Load, table, &format!(".{part}"), work)));
        }
    }
    pieces.sort_by(|a, b| a.0.total_cmp(&b.0));
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

/// The statement that makes a primary key; `None` if it came with the table: SQLite stores rows by a key of a single
/// column.
fn primary_key(table: SchemaTable, dialect: Dialect) -> Option<String> {
    let (name, columns) = (table.name(), table.primary_key().join(", "));
    Some(match dialect {
        Dialect::Sqlite if table.primary_key().len() == 1 => return None,
        Dialect::Sqlite => format!("CREATE UNIQUE INDEX {name}_pkey ON {name} ({columns})"),
        Dialect::Mysql => format!("ALTER TABLE {name} ADD PRIMARY KEY ({columns})"),
        Dialect::Postgres => {
            format!("ALTER TABLE {name} ADD CONSTRAINT {name}_pkey PRIMARY KEY ({columns})")
        }
    })
}

fn foreign_keys_from(table: SchemaTable) -> impl Iterator<Item = &'static Key> {
    keys(KeyKind::Foreign).filter(move |key| key.table == table)
}

fn foreign_key_clause(key: &Key) -> String {
    format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({})",
        key.name,
        key.columns.join(", "),
        key.parent.name(),
        key.parent.primary_key().join(", ")
    )
}

/// The statement that looks for a row without its parent.
pub(super) fn orphan(key: &Key) -> String {
    let parent_columns = key.parent.primary_key();
    let columns = key.columns.iter().zip(parent_columns);
    let on: Vec<String> =
        columns.map(|(column, parent)| format!("c.{column} = p.{parent}")).collect();
    format!(
        "SELECT c.{} FROM {} c LEFT JOIN {} p ON {} WHERE p.{} IS NULL LIMIT 1",
        key.columns.join(", c."),
        key.table.name(),
        key.parent.name(),
        on.join(" AND "),
        parent_columns[0]
    )
}

/// MySQL goes through the whole table for each statement, so it makes all keys of a table by one. With its own check it
/// copies the table row by row, which takes most of a load's time: the check is off, and joins prove the keys.
/// PostgreSQL locks both tables of a key: one statement for all would lock them all. SQLite has the
/// keys from the begin and checks them here.
fn foreign_keys(dialect: Dialect) -> Vec<Piece> {
    let step = TpchStep::ForeignKeys;
    if dialect == Dialect::Postgres {
        let pieces = keys(KeyKind::Foreign).rev().map(|key| {
            let sql = format!("ALTER TABLE {} ADD {}", key.table.name(), foreign_key_clause(key));
            let piece = Piece::sql(step, key.table, &format!(".{}", key.name), sql);
            Piece { parent: Some(key.parent), ..piece }
        });
        return pieces.collect();
    }
    let pieces = SchemaTable::ALL.into_iter().rev().filter_map(|table| {
        let (name, proofs) = (table.name(), foreign_keys_from(table).collect::<Vec<_>>());
        let clauses: Vec<String> =
            proofs.iter().map(|key| format!("ADD {}", foreign_key_clause(key))).collect();
        let work = match dialect {
            Dialect::Sqlite => {
                let sql = format!("PRAGMA foreign_key_check({name})");
                Work::Sql { sql, proofs: Vec::new() }
            }
            _ => Work::Sql { sql: format!("ALTER TABLE {name} {}", clauses.join(", ")), proofs },
        };
        (!clauses.is_empty()).then(|| Piece::new(step, table, "", work))
    });
    pieces.collect()
}

/// MySQL makes all indexes of a table in one pass over it, and can't make two at once by two
/// statements; elsewhere each is its own statement, and several are made at once.
fn indexes(dialect: Dialect) -> Vec<Piece> {
    let step = TpchStep::Indexes;
    let pieces = SchemaTable::ALL.into_iter().rev().flat_map(|table| -> Vec<Piece> {
        let (name, indexes) =
            (table.name(), keys(KeyKind::Index).filter(|index| index.table == table));
        if dialect == Dialect::Mysql {
            let clauses: Vec<String> = indexes
                .map(|index| format!("ADD INDEX {} ({})", index.name, index.columns.join(", ")))
                .collect();
            let sql = format!("ALTER TABLE {name} {}", clauses.join(", "));
            let piece = (!clauses.is_empty()).then(|| Piece::sql(step, table, "", sql));
            return piece.into_iter().collect();
        }
        let pieces = indexes.map(|Key { name: index, columns, .. }| {
            let sql = format!("CREATE INDEX {index} ON {name} ({})", columns.join(", "));
            Piece::sql(step, table, &format!(".{index}"), sql)
        });
        pieces.collect()
    });
    pieces.collect()
}
