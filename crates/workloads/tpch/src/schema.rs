//! The eight tables of clause 1.4 and what is made of their keys.

use dyno_core::Dialect;
use std::sync::LazyLock;

dyno_core::named! {
    /// A table, in an order in which foreign keys find their parents.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum SchemaTable {
        /// 5 rows.
        Region = "region",
        /// 25 rows.
        Nation = "nation",
        /// 10,000 rows for each unit of the scale factor.
        Supplier = "supplier",
        /// 200,000 rows for each unit of the scale factor.
        Part = "part",
        /// Four suppliers of each part.
        Partsupp = "partsupp",
        /// 150,000 rows for each unit of the scale factor.
        Customer = "customer",
        /// 1,500,000 rows for each unit of the scale factor.
        Orders = "orders",
        /// One to seven lines of each order.
        Lineitem = "lineitem",
    }
}

/// The type of a column (clause 1.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An identifier: order keys pass 31 bits above scale factor 300.
    Key,
    /// A small whole number.
    Int,
    /// Hundredths, exact where the engine has decimals.
    Decimal,
    Date,
    Char(u16),
    Varchar(u16),
}

type Columns = Vec<(&'static str, Type)>;

/// A line for each table: its rows for each unit of the scale factor (about; 0 if their number is fixed), the mean
/// length of a row as dbgen writes it, in bytes, and the names and types of its columns.
static TABLES: LazyLock<Vec<(f64, u64, Columns)>> = LazyLock::new(|| {
    let tables = include_str!("schema.txt").lines().filter_map(|line| {
        let mut words = line.split(' ');
        let rows_per_scale = words.next()?.parse().ok()?;
        Some((rows_per_scale, words.next()?.parse().ok()?, words.map(parse_column).collect()))
    });
    tables.collect()
});

/// Name and type of a column from `name:type` or `name:type(length)`.
fn parse_column(word: &str) -> (&str, Type) {
    let (name, kind) = word.split_once(':').unwrap_or((word, ""));
    let (kind, length) = kind.split_once('(').unwrap_or((kind, ""));
    let length = length.trim_end_matches(')').parse().unwrap_or(0);
    let kind = match kind {
        "key" => Type::Key,
        "int" => Type::Int,
        "decimal" => Type::Decimal,
        "date" => Type::Date,
        "char" => Type::Char(length),
        _ => Type::Varchar(length),
    };
    (name, kind)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Primary,
    /// The ten of clause 1.4.2: all or none (clause 1.4.2.3).
    Foreign,
    /// The 14 secondary indexes of the PolarDB paper: foreign keys and dates (clause 1.5.4).
    Index,
}

/// A key or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub kind: KeyKind,
    pub name: &'static str,
    pub table: SchemaTable,
    pub columns: Vec<&'static str>,
    /// The table that a foreign key refers to, by its primary key; its own elsewhere.
    pub parent: SchemaTable,
}

/// MySQL names foreign keys by database, and BenchmarkSQL's tables have an `o_customer_fkey`.
static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let keys = include_str!("keys.txt").lines().filter_map(|line| {
        let mut words = line.split(' ');
        let kind = match words.next()? {
            "primary" => KeyKind::Primary,
            "foreign" => KeyKind::Foreign,
            _ => KeyKind::Index,
        };
        let (name, table) = (words.next()?, SchemaTable::from_name(words.next()?)?);
        let columns = words.next()?.split(',').collect();
        let parent = words.next().and_then(SchemaTable::from_name).unwrap_or(table);
        Some(Key { kind, name, table, columns, parent })
    });
    keys.collect()
});

/// The keys or indexes of a kind.
pub fn keys(kind: KeyKind) -> impl DoubleEndedIterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.kind == kind)
}

impl SchemaTable {
    pub fn from_name(name: &str) -> Option<SchemaTable> {
        SchemaTable::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Columns and their types in the order of clause 1.4.
    pub fn columns(self) -> &'static [(&'static str, Type)] {
        &TABLES[self as usize].2
    }

    /// Rows for each unit of the scale factor, about; 0 if their number is fixed.
    pub(crate) fn rows_per_scale(self) -> f64 {
        TABLES[self as usize].0
    }

    /// The mean length of a row as dbgen writes it, in bytes.
    pub(crate) fn row_bytes(self) -> u64 {
        TABLES[self as usize].1
    }

    /// The columns of the primary key (clause 1.4.1).
    pub fn primary_key(self) -> &'static [&'static str] {
        let mut primary_keys = keys(KeyKind::Primary).filter(|key| key.table == self);
        primary_keys.next().map_or(&[], |key| &key.columns)
    }
}

impl Type {
    /// The type as a column of a dialect declares it.
    pub fn sql(self, dialect: Dialect) -> String {
        match (self, dialect) {
            (Type::Key, _) => "bigint".to_owned(),
            (Type::Int, _) => "integer".to_owned(),
            // With the affinity of a decimal, whole amounts would become integers, and a quotient of
            // two such sums an integer too.
            (Type::Decimal, Dialect::Sqlite) => "real".to_owned(),
            (Type::Decimal, _) => "decimal(15,2)".to_owned(),
            // A day is text there; the type `date` would have numeric affinity.
            (Type::Date, Dialect::Sqlite) => "text".to_owned(),
            (Type::Date, _) => "date".to_owned(),
            (Type::Char(length), _) => format!("char({length})"),
            (Type::Varchar(length), _) => format!("varchar({length})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_key_of_columns_that_its_table_has() {
        let counts = [KeyKind::Primary, KeyKind::Foreign, KeyKind::Index];
        assert_eq!(counts.map(|kind| keys(kind).count()), [8, 10, 14]);
        for key in KEYS.iter() {
            let names = key.table.columns().iter().map(|(name, _)| *name);
            assert!(
                key.columns.iter().all(|name| names.clone().any(|known| known == *name)),
                "{key:?}"
            );
        }
    }
}
