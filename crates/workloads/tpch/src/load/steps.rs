//! The steps of a load, in the paper's order, and the pieces that each consists of.

use super::ddl;
use crate::generate::part_row_count;
use crate::schema::{FOREIGN_KEYS, ForeignKey, INDEXES, SchemaTable};
use crate::state::LoadRequest;
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
    pub fn named(name: &str) -> Option<TpchStep> {
        TpchStep::ALL.into_iter().find(|step| step.name() == name)
    }

    pub(crate) fn is_wanted(self, wanted: &LoadRequest) -> bool {
        match self {
            TpchStep::ForeignKeys => wanted.foreign_keys,
            TpchStep::Indexes => wanted.indexes,
            _ => true,
        }
    }
}

/// What is done at once, wholly or not at all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// Such as `load/lineitem.7`: the step, the table, and where a table has several pieces of a
    /// step, something that tells them apart.
    pub(crate) name: String,
    pub(crate) step: TpchStep,
    pub(crate) table: SchemaTable,
    /// The table that a foreign key refers to, where each has a statement of its own.
    pub(crate) parent: Option<SchemaTable>,
    pub(crate) work: Work,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
    /// Rows of a part, from 1, of so many.
    Rows { part: u32, parts: u32 },
    /// A statement, part of a transaction where the dialect has DDL in transactions. `made` names
    /// what it makes as [`crate::state::mysql_keys`] lists it. No answer to `proofs` may have a row.
    Sql { sql: String, made: String, proofs: Vec<OrphanQuery> },
    /// A statement that can't be part of a transaction and may be repeated.
    Outside { sql: String },
}

/// Looks for a row without its parent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OrphanQuery {
    pub(crate) sql: String,
    pub(crate) parent: SchemaTable,
}

impl Piece {
    fn sql(step: TpchStep, table: SchemaTable, suffix: &str, sql: String, made: &str) -> Piece {
        let name = format!("{}/{}{suffix}", step.name(), table.name());
        let made = format!("{}.{made}", table.name());
        let work = Work::Sql { sql, made, proofs: Vec::new() };
        Piece { name, step, table, parent: None, work }
    }

    fn proven_by(mut self, keys: impl Iterator<Item = &'static ForeignKey>) -> Piece {
        if let Work::Sql { proofs, .. } = &mut self.work {
            proofs
                .extend(keys.map(|key| OrphanQuery { sql: ddl::orphan(key), parent: key.parent }));
        }
        self
    }
}

/// Rows of one piece, about: small enough that little is lost with it, large enough that a
/// transaction for each does not count.
const PIECE_ROWS: f64 = 100_000.0;

/// Rows of a table for each unit of the scale factor; about, of lineitem.
pub(super) fn rows_per_scale(table: SchemaTable) -> f64 {
    match table {
        SchemaTable::Region | SchemaTable::Nation => 0.0,
        SchemaTable::Supplier => 1e4,
        SchemaTable::Part => 2e5,
        SchemaTable::Partsupp => 8e5,
        SchemaTable::Customer => 1.5e5,
        SchemaTable::Orders => 1.5e6,
        SchemaTable::Lineitem => 6e6,
    }
}

fn parts(table: SchemaTable, scale: f64) -> u32 {
    // Scale factors up to 100,000 make six million pieces.
    (rows_per_scale(table) * scale / PIECE_ROWS).round().max(1.0) as u32
}

/// The needs of a load. Rows have up to 192 bytes in the logs of transactions.
pub(crate) fn needs(scale: f64) -> [ServerNeed; 3] {
    let rows = (rows_per_scale(SchemaTable::Lineitem) * scale).min(1.5 * PIECE_ROWS) as u64;
    load_needs(rows, rows * 192)
}

/// The pieces of rows, mixed so that all tables are filled at the same time where no other step overlaps: sessions meet in
/// one table as late as possible, and all tables end together.
fn rows(scale: f64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for table in SchemaTable::ALL {
        let parts = parts(table, scale);
        for part in 1..=parts {
            let step = TpchStep::Load;
            let name = format!("{}/{}.{part}", step.name(), table.name());
            let place = (f64::from(part) - 0.5) / f64::from(parts);
            let work = Work::Rows { part, parts };
            pieces.push((place, Piece { name, step, table, parent: None, work }));
        }
    }
    pieces.sort_by(|a, b| a.0.total_cmp(&b.0));
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

/// The pieces of a step. Those of large tables come first where order is free: the last piece to
/// end is then a small one.
pub(crate) fn pieces(step: TpchStep, dialect: Dialect, wanted: &LoadRequest) -> Vec<Piece> {
    let large_first = || SchemaTable::ALL.into_iter().rev();
    match step {
        TpchStep::Create => SchemaTable::ALL
            .into_iter()
            .map(|table| {
                let sql = ddl::create_table(table, dialect, wanted.foreign_keys);
                Piece::sql(step, table, "", sql, "")
            })
            .collect(),
        TpchStep::Load => rows(wanted.scale),
        TpchStep::PrimaryKeys => large_first()
            .filter_map(|table| {
                let sql = ddl::primary_key(table, dialect)?;
                Some(Piece::sql(step, table, "", sql, ddl::primary_key_name(table, dialect)))
            })
            .collect(),
        TpchStep::ForeignKeys => foreign_keys(dialect),
        TpchStep::Indexes => indexes(dialect),
        TpchStep::Analyze => large_first()
            .map(|table| Piece {
                name: format!("{}/{}", step.name(), table.name()),
                step,
                table,
                parent: None,
                work: Work::Outside { sql: ddl::analyze(table, dialect) },
            })
            .collect(),
    }
}

/// MySQL goes through the whole table for each statement, so it makes all keys of a table by one. With its own check it
/// copies the table row by row, which takes most of a load's time: the check is off, and joins prove the keys.
/// PostgreSQL locks both tables of a key: one statement for all would lock them all. SQLite has the
/// keys from the begin and checks them here.
fn foreign_keys(dialect: Dialect) -> Vec<Piece> {
    let step = TpchStep::ForeignKeys;
    if dialect == Dialect::Postgres {
        let piece = |key: &ForeignKey| {
            let suffix = format!(".{}", key.name);
            let piece = Piece::sql(step, key.table, &suffix, ddl::foreign_key(key), key.name);
            Piece { parent: Some(key.parent), ..piece }
        };
        return FOREIGN_KEYS.iter().rev().map(piece).collect();
    }
    let of_table = |table: SchemaTable| {
        let keys = || FOREIGN_KEYS.iter().filter(move |key| key.table == table);
        let piece =
            Piece::sql(step, table, "", ddl::foreign_keys(table, dialect), keys().next()?.name);
        Some(if dialect == Dialect::Mysql { piece.proven_by(keys()) } else { piece })
    };
    SchemaTable::ALL.into_iter().rev().filter_map(of_table).collect()
}

/// MySQL makes all indexes of a table in one pass over it, and can't make two at once by two
/// statements; elsewhere each is a statement of its own, and several are made at once.
fn indexes(dialect: Dialect) -> Vec<Piece> {
    let step = TpchStep::Indexes;
    let of = |table: SchemaTable| INDEXES.iter().filter(move |index| index.table == table);
    let large_first = SchemaTable::ALL.into_iter().rev();
    if dialect == Dialect::Mysql {
        return large_first
            .filter_map(|table| {
                let first = of(table).next()?;
                Some(Piece::sql(step, table, "", ddl::mysql_indexes(table), first.name))
            })
            .collect();
    }
    large_first
        .flat_map(|table| of(table))
        .map(|index| {
            let suffix = format!(".{}", index.name);
            Piece::sql(step, index.table, &suffix, ddl::index(index), index.name)
        })
        .collect()
}

pub(crate) fn row_count(pieces: &[Piece], scale: f64) -> u64 {
    let rows = pieces.iter().map(|piece| match piece.work {
        Work::Rows { part, parts } => part_row_count(piece.table, scale, part, parts),
        Work::Sql { .. } | Work::Outside { .. } => 0,
    });
    rows.sum()
}
