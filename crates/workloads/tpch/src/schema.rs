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

type Columns = &'static [(&'static str, Type)];

/// The columns of each table in the order of [`SchemaTable`], a line each: names and types.
static COLUMNS: LazyLock<Vec<Vec<(&str, Type)>>> = LazyLock::new(|| {
    let column = |word: &'static str| {
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
    };
    let lines = include_str!("schema.txt").lines();
    lines.map(|line| line.split(' ').map(column).collect()).collect()
});

/// An index or a key: its name, its table, its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    pub name: &'static str,
    pub table: SchemaTable,
    pub columns: &'static [&'static str],
}

/// A foreign key: its name, its table and columns, and the columns of the table it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    pub name: &'static str,
    pub table: SchemaTable,
    pub columns: &'static [&'static str],
    /// The table that is referred to, by its primary key.
    pub parent: SchemaTable,
}

const fn foreign_key(
    name: &'static str,
    table: SchemaTable,
    columns: &'static [&'static str],
    parent: SchemaTable,
) -> ForeignKey {
    ForeignKey { name, table, columns, parent }
}

/// The ten foreign keys of clause 1.4.2: all or none (clause 1.4.2.3).
pub const FOREIGN_KEYS: [ForeignKey; 10] = [
    foreign_key("n_region_fkey", SchemaTable::Nation, &["n_regionkey"], SchemaTable::Region),
    foreign_key("s_nation_fkey", SchemaTable::Supplier, &["s_nationkey"], SchemaTable::Nation),
    foreign_key("ps_part_fkey", SchemaTable::Partsupp, &["ps_partkey"], SchemaTable::Part),
    foreign_key("ps_supplier_fkey", SchemaTable::Partsupp, &["ps_suppkey"], SchemaTable::Supplier),
    foreign_key("c_nation_fkey", SchemaTable::Customer, &["c_nationkey"], SchemaTable::Nation),
    // MySQL names them by database, and BenchmarkSQL's tables have an o_customer_fkey.
    foreign_key("orders_customer_fkey", SchemaTable::Orders, &["o_custkey"], SchemaTable::Customer),
    foreign_key("l_order_fkey", SchemaTable::Lineitem, &["l_orderkey"], SchemaTable::Orders),
    foreign_key("l_part_fkey", SchemaTable::Lineitem, &["l_partkey"], SchemaTable::Part),
    foreign_key("l_supplier_fkey", SchemaTable::Lineitem, &["l_suppkey"], SchemaTable::Supplier),
    foreign_key(
        "l_partsupp_fkey",
        SchemaTable::Lineitem,
        &["l_partkey", "l_suppkey"],
        SchemaTable::Partsupp,
    ),
];

const fn index(name: &'static str, table: SchemaTable, columns: &'static [&'static str]) -> Index {
    Index { name, table, columns }
}

/// The 14 secondary indexes of the PolarDB paper: foreign keys and dates (clause 1.5.4).
pub const INDEXES: [Index; 14] = [
    index("i_s_nationkey", SchemaTable::Supplier, &["s_nationkey"]),
    index("i_ps_partkey", SchemaTable::Partsupp, &["ps_partkey"]),
    index("i_ps_suppkey", SchemaTable::Partsupp, &["ps_suppkey"]),
    index("i_c_nationkey", SchemaTable::Customer, &["c_nationkey"]),
    index("i_o_custkey", SchemaTable::Orders, &["o_custkey"]),
    index("i_o_orderdate", SchemaTable::Orders, &["o_orderdate"]),
    index("i_l_orderkey", SchemaTable::Lineitem, &["l_orderkey"]),
    index("i_l_partkey", SchemaTable::Lineitem, &["l_partkey"]),
    index("i_l_suppkey", SchemaTable::Lineitem, &["l_suppkey"]),
    index("i_l_partkey_suppkey", SchemaTable::Lineitem, &["l_partkey", "l_suppkey"]),
    index("i_l_shipdate", SchemaTable::Lineitem, &["l_shipdate"]),
    index("i_l_commitdate", SchemaTable::Lineitem, &["l_commitdate"]),
    index("i_l_receiptdate", SchemaTable::Lineitem, &["l_receiptdate"]),
    index("i_n_regionkey", SchemaTable::Nation, &["n_regionkey"]),
];

impl SchemaTable {
    pub fn named(name: &str) -> Option<SchemaTable> {
        SchemaTable::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Columns and their types in the order of clause 1.4.
    pub fn columns(self) -> Columns {
        &COLUMNS[self as usize]
    }

    /// The columns of the primary key (clause 1.4.1).
    pub fn primary_key(self) -> &'static [&'static str] {
        match self {
            SchemaTable::Region => &["r_regionkey"],
            SchemaTable::Nation => &["n_nationkey"],
            SchemaTable::Supplier => &["s_suppkey"],
            SchemaTable::Part => &["p_partkey"],
            SchemaTable::Partsupp => &["ps_partkey", "ps_suppkey"],
            SchemaTable::Customer => &["c_custkey"],
            SchemaTable::Orders => &["o_orderkey"],
            SchemaTable::Lineitem => &["l_orderkey", "l_linenumber"],
        }
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
