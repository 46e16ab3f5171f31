//! The tables of BenchmarkSQL, their keys and what a distributed database needs to be told.

#[cfg(test)]
mod tests;

use dyno_core::Dialect;
use std::fmt::Write;

/// Rows of name and value: what a load left for runs to know.
pub const CONFIG: &str = "bmsql_config";
/// What an unfinished load has done; dropped at its end.
pub const LOAD_STATE: &str = "bmsql_load_state";
pub(crate) const STATE_COLUMNS: &str =
    "ls_chunk varchar(40) not null primary key, ls_done integer not null";
/// The same on a shard that is loaded directly. Another name: the endpoint takes its own for a table of one shard.
pub(crate) const SHARD_STATE: &str = "bmsql_shard_state";
/// Numbers the rows of the history on PostgreSQL.
pub(crate) const HISTORY_SEQUENCE: &str = "bmsql_hist_id_seq";

dyno_core::named! {
    /// The nine tables of clause 1.3, in an order in which foreign keys find their parents.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum TpccTable {
        /// The catalogue, the same for all warehouses.
        Item = "bmsql_item",
        Warehouse = "bmsql_warehouse",
        /// Ten of a warehouse.
        District = "bmsql_district",
        /// 3,000 of a district.
        Customer = "bmsql_customer",
        /// One row per payment.
        History = "bmsql_history",
        /// One row per order.
        Order = "bmsql_oorder",
        /// Orders that are not delivered.
        NewOrder = "bmsql_new_order",
        /// 100,000 of a warehouse.
        Stock = "bmsql_stock",
        /// 5 to 15 of an order.
        OrderLine = "bmsql_order_line",
    }
}

use Type::{Char, Decimal, Int, Key, Timestamp, Varchar};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// An integer that is never NULL: part of the key.
    Key,
    Int,
    Varchar(u16),
    Char(u16),
    Decimal(u8, u8),
    Timestamp,
}

type Columns = &'static [(&'static str, Type)];

const ITEM: Columns = &[
    ("i_id", Key),
    ("i_name", Varchar(24)),
    ("i_price", Decimal(5, 2)),
    ("i_data", Varchar(50)),
    ("i_im_id", Int),
];

const WAREHOUSE: Columns = &[
    ("w_id", Key),
    ("w_ytd", Decimal(12, 2)),
    ("w_tax", Decimal(4, 4)),
    ("w_name", Varchar(10)),
    ("w_street_1", Varchar(20)),
    ("w_street_2", Varchar(20)),
    ("w_city", Varchar(20)),
    ("w_state", Char(2)),
    ("w_zip", Char(9)),
];

const DISTRICT: Columns = &[
    ("d_w_id", Key),
    ("d_id", Key),
    ("d_ytd", Decimal(12, 2)),
    ("d_tax", Decimal(4, 4)),
    ("d_next_o_id", Int),
    ("d_name", Varchar(10)),
    ("d_street_1", Varchar(20)),
    ("d_street_2", Varchar(20)),
    ("d_city", Varchar(20)),
    ("d_state", Char(2)),
    ("d_zip", Char(9)),
];

const CUSTOMER: Columns = &[
    ("c_w_id", Key),
    ("c_d_id", Key),
    ("c_id", Key),
    ("c_discount", Decimal(4, 4)),
    ("c_credit", Char(2)),
    ("c_last", Varchar(16)),
    ("c_first", Varchar(16)),
    ("c_credit_lim", Decimal(12, 2)),
    ("c_balance", Decimal(12, 2)),
    ("c_ytd_payment", Decimal(12, 2)),
    ("c_payment_cnt", Int),
    ("c_delivery_cnt", Int),
    ("c_street_1", Varchar(20)),
    ("c_street_2", Varchar(20)),
    ("c_city", Varchar(20)),
    ("c_state", Char(2)),
    ("c_zip", Char(9)),
    ("c_phone", Char(16)),
    ("c_since", Timestamp),
    ("c_middle", Char(2)),
    ("c_data", Varchar(500)),
];

const HISTORY: Columns = &[
    ("hist_id", Int),
    ("h_c_id", Int),
    ("h_c_d_id", Int),
    ("h_c_w_id", Int),
    ("h_d_id", Int),
    ("h_w_id", Int),
    ("h_date", Timestamp),
    ("h_amount", Decimal(6, 2)),
    ("h_data", Varchar(24)),
];

const ORDER: Columns = &[
    ("o_w_id", Key),
    ("o_d_id", Key),
    ("o_id", Key),
    ("o_c_id", Int),
    ("o_carrier_id", Int),
    ("o_ol_cnt", Int),
    ("o_all_local", Int),
    ("o_entry_d", Timestamp),
];

const NEW_ORDER: Columns = &[("no_w_id", Key), ("no_d_id", Key), ("no_o_id", Key)];

const STOCK: Columns = &[
    ("s_w_id", Key),
    ("s_i_id", Key),
    ("s_quantity", Int),
    ("s_ytd", Int),
    ("s_order_cnt", Int),
    ("s_remote_cnt", Int),
    ("s_data", Varchar(50)),
    ("s_dist_01", Char(24)),
    ("s_dist_02", Char(24)),
    ("s_dist_03", Char(24)),
    ("s_dist_04", Char(24)),
    ("s_dist_05", Char(24)),
    ("s_dist_06", Char(24)),
    ("s_dist_07", Char(24)),
    ("s_dist_08", Char(24)),
    ("s_dist_09", Char(24)),
    ("s_dist_10", Char(24)),
];

const ORDER_LINE: Columns = &[
    ("ol_w_id", Key),
    ("ol_d_id", Key),
    ("ol_o_id", Key),
    ("ol_number", Key),
    ("ol_i_id", Int),
    ("ol_delivery_d", Timestamp),
    ("ol_amount", Decimal(6, 2)),
    ("ol_supply_w_id", Int),
    ("ol_quantity", Int),
    ("ol_dist_info", Char(24)),
];

impl TpccTable {
    fn typed_columns(self) -> Columns {
        match self {
            TpccTable::Item => ITEM,
            TpccTable::Warehouse => WAREHOUSE,
            TpccTable::District => DISTRICT,
            TpccTable::Customer => CUSTOMER,
            TpccTable::History => HISTORY,
            TpccTable::Order => ORDER,
            TpccTable::NewOrder => NEW_ORDER,
            TpccTable::Stock => STOCK,
            TpccTable::OrderLine => ORDER_LINE,
        }
    }

    pub(crate) fn columns(self) -> Vec<&'static str> {
        self.typed_columns().iter().map(|&(name, _)| name).collect()
    }

    /// The column that says whose row it is; `None` of the catalogue.
    pub fn warehouse_column(self) -> Option<&'static str> {
        match self {
            TpccTable::Item => None,
            TpccTable::Warehouse => Some("w_id"),
            TpccTable::District => Some("d_w_id"),
            TpccTable::Customer => Some("c_w_id"),
            TpccTable::History => Some("h_w_id"),
            TpccTable::Order => Some("o_w_id"),
            TpccTable::NewOrder => Some("no_w_id"),
            TpccTable::Stock => Some("s_w_id"),
            TpccTable::OrderLine => Some("ol_w_id"),
        }
    }

    /// The columns of the primary key. The history has none in TPC-C (clause 1.3.1); BenchmarkSQL
    /// numbers its rows. Where rows are spread by warehouse, keys have to name it.
    fn key(self, sharded: bool) -> Vec<&'static str> {
        match self {
            TpccTable::History if sharded => vec!["h_w_id", "hist_id"],
            TpccTable::History => vec!["hist_id"],
            _ => {
                let is_key = |column: &&(&str, Type)| column.1 == Key;
                self.typed_columns().iter().filter(is_key).map(|&(name, _)| name).collect()
            }
        }
    }
}

/// All tables that a load makes, those with its state among them, in an order in which they can be
/// dropped: the configuration goes last, because while it exists a load can be told from foreign
/// tables.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    TpccTable::ALL.iter().rev().map(|table| table.name()).chain([LOAD_STATE, CONFIG])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTime {
    /// All with the tables.
    BeforeLoad,
    /// Primary keys with the tables, so that rows are stored in their order; indexes after the
    /// last row.
    PrimaryBeforeLoad,
    /// All after the last row: faster where rows don't lie in the key's order anyway. SQLite makes
    /// primary keys with the tables nevertheless, because it can't add them.
    AfterLoad,
}

impl KeyTime {
    /// What suits a dialect: MySQL clusters rows by primary key, SQLite can't add one later.
    pub fn usual(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Mysql | Dialect::Sqlite => KeyTime::PrimaryBeforeLoad,
            Dialect::Postgres => KeyTime::AfterLoad,
        }
    }
}

/// What a distributed database is told about one table. `{table}` and `{column}` stand for the
/// table's name and its warehouse column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardClauses {
    /// A statement before CREATE TABLE, such as a sharding rule of ShardingSphere.
    pub before: Option<String>,
    /// Text at the end of CREATE TABLE, such as `dbpartition by hash({column})` or
    /// `PARTITION BY HASH({column}) PARTITIONS 16`.
    pub suffix: Option<String>,
    /// A statement after CREATE TABLE, such as
    /// `SELECT create_distributed_table('{table}', '{column}')` of Citus.
    pub after: Option<String>,
    /// A statement instead of one that makes the key or index `{name}`. `{sql}` stands for that one as the text of a
    /// literal.
    pub key: Option<String>,
    /// A statement instead of the one that collects statistics.
    pub analyze: Option<String>,
}

/// How tables are spread by warehouse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shard {
    /// For the tables that have a warehouse column.
    pub by_warehouse: ShardClauses,
    /// For the catalogue, which every shard reads: such as `broadcast` or
    /// `SELECT create_reference_table('{table}')`. `{column}` is `i_id` there.
    pub item: ShardClauses,
}

impl Shard {
    /// What a coordinator of `dyno cluster up sharded-postgres` is told, by the functions that are in it. The catalogue
    /// is a plain table there: no statement joins it with rows of a shard.
    pub(crate) fn of_coordinator() -> Self {
        let text = |sql: &str| Some(format!("SELECT dyno_shards.{sql}"));
        let by_warehouse = ShardClauses {
            after: text("distribute('{table}', '{column}')"),
            key: text("add_key('{name}', '{sql}')"),
            analyze: text("analyze_table('{table}')"),
            ..ShardClauses::default()
        };
        Shard { by_warehouse, item: ShardClauses::default() }
    }

    fn clauses(&self, table: TpccTable) -> &ShardClauses {
        if table == TpccTable::Item { &self.item } else { &self.by_warehouse }
    }
}

fn fill_in(template: &str, table: TpccTable) -> String {
    let column = table.warehouse_column().unwrap_or("i_id");
    template.replace("{table}", table.name()).replace("{column}", column)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) dialect: Dialect,
    pub(crate) keys: KeyTime,
    pub(crate) foreign_keys: bool,
    pub(crate) shard: Option<Shard>,
}

/// A primary key, an index or a foreign key that is made by a statement of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateKey {
    pub(crate) table: TpccTable,
    /// As the load finds it in the catalog again.
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// The index that finds customers by last name (clauses 2.5.2.2 and 2.6.2.2).
const CUSTOMER_INDEX: (&str, TpccTable, &str) =
    ("bmsql_customer_idx1", TpccTable::Customer, "c_w_id, c_d_id, c_last, c_first");
/// The index that finds a customer's last order (clause 2.6.2.2).
const ORDER_INDEX: (&str, TpccTable, &str) =
    ("bmsql_oorder_idx1", TpccTable::Order, "o_w_id, o_d_id, o_c_id, o_id");

/// Name, table, columns, parent and its columns (clause 1.3.1).
pub(crate) const FOREIGN_KEYS: [(&str, TpccTable, &str, TpccTable, &str); 10] = [
    ("d_warehouse_fkey", TpccTable::District, "d_w_id", TpccTable::Warehouse, "w_id"),
    ("c_district_fkey", TpccTable::Customer, "c_w_id, c_d_id", TpccTable::District, "d_w_id, d_id"),
    (
        "h_customer_fkey",
        TpccTable::History,
        "h_c_w_id, h_c_d_id, h_c_id",
        TpccTable::Customer,
        "c_w_id, c_d_id, c_id",
    ),
    ("h_district_fkey", TpccTable::History, "h_w_id, h_d_id", TpccTable::District, "d_w_id, d_id"),
    (
        "o_customer_fkey",
        TpccTable::Order,
        "o_w_id, o_d_id, o_c_id",
        TpccTable::Customer,
        "c_w_id, c_d_id, c_id",
    ),
    (
        "no_order_fkey",
        TpccTable::NewOrder,
        "no_w_id, no_d_id, no_o_id",
        TpccTable::Order,
        "o_w_id, o_d_id, o_id",
    ),
    ("s_warehouse_fkey", TpccTable::Stock, "s_w_id", TpccTable::Warehouse, "w_id"),
    ("s_item_fkey", TpccTable::Stock, "s_i_id", TpccTable::Item, "i_id"),
    (
        "ol_order_fkey",
        TpccTable::OrderLine,
        "ol_w_id, ol_d_id, ol_o_id",
        TpccTable::Order,
        "o_w_id, o_d_id, o_id",
    ),
    (
        "ol_stock_fkey",
        TpccTable::OrderLine,
        "ol_supply_w_id, ol_i_id",
        TpccTable::Stock,
        "s_w_id, s_i_id",
    ),
];

pub(crate) fn primary_key_name(table: TpccTable) -> String {
    format!("{}_pkey", table.name())
}

impl Schema {
    /// The tables of the loader itself and of runs; never spread.
    pub(crate) fn create_own_tables(&self) -> [(&'static str, String); 2] {
        let columns = "cfg_name varchar(30) not null primary key, cfg_value varchar(50)";
        [
            (CONFIG, format!("CREATE TABLE {CONFIG} ({columns})")),
            (LOAD_STATE, format!("CREATE TABLE {LOAD_STATE} ({STATE_COLUMNS})")),
        ]
    }

    pub(crate) fn create_table(&self, table: TpccTable) -> Vec<String> {
        let mut parts: Vec<String> =
            table.typed_columns().iter().map(|&column| self.column(table, column)).collect();
        parts.extend(self.inline_keys(table));
        let mut sql = format!("CREATE TABLE {} (\n  {}\n)", table.name(), parts.join(",\n  "));
        let Some(clauses) = self.clauses(table) else { return vec![sql] };
        if let Some(suffix) = &clauses.suffix {
            // Writing into a String can't fail.
            let _ = write!(sql, " {}", fill_in(suffix, table));
        }
        let filled = |template: &Option<String>| template.as_ref().map(|text| fill_in(text, table));
        let (before, after) = (filled(&clauses.before), filled(&clauses.after));
        before.into_iter().chain([sql]).chain(after).collect()
    }

    fn column(&self, table: TpccTable, (name, column): (&str, Type)) -> String {
        let kind = match (column, self.dialect) {
            (Key, _) => "integer not null".to_owned(),
            (Int, Dialect::Mysql) if name == "hist_id" && self.keys != KeyTime::AfterLoad => {
                "integer not null auto_increment".to_owned()
            }
            (Int, Dialect::Sqlite) if table == TpccTable::History && name == "hist_id" => {
                "integer primary key".to_owned()
            }
            (Int, _) => "integer".to_owned(),
            (Varchar(length), _) => format!("varchar({length})"),
            (Char(length), _) => format!("char({length})"),
            // SQLite would store binary floating-point numbers: amounts are kept as integers.
            (Decimal(..), Dialect::Sqlite) => "integer".to_owned(),
            (Decimal(digits, places), _) => format!("decimal({digits},{places})"),
            // MySQL 5.7 would make it NOT NULL and set it at each update.
            (Timestamp, Dialect::Mysql) => "timestamp null default null".to_owned(),
            (Timestamp, Dialect::Postgres) => "timestamp".to_owned(),
            (Timestamp, Dialect::Sqlite) => "text".to_owned(),
        };
        format!("{name} {kind}")
    }

    fn inline_keys(&self, table: TpccTable) -> Vec<String> {
        if self.dialect == Dialect::Sqlite && table == TpccTable::History {
            return Vec::new();
        }
        if self.keys == KeyTime::AfterLoad && self.dialect != Dialect::Sqlite {
            return Vec::new();
        }
        let mut keys = vec![format!("PRIMARY KEY ({})", table.key(self.is_sharded()).join(", "))];
        if self.dialect == Dialect::Mysql && table == TpccTable::History && self.is_sharded() {
            // A column that numbers itself has to lead a key.
            keys.push("KEY bmsql_history_idx1 (hist_id)".to_owned());
        }
        keys
    }

    fn is_sharded(&self) -> bool {
        self.shard.is_some()
    }

    /// Keys and indexes that follow: with the tables or after the rows, by [`Schema::keys`].
    pub(crate) fn late_keys(&self) -> Vec<LateKey> {
        let mut keys = Vec::new();
        if self.keys == KeyTime::AfterLoad && self.dialect != Dialect::Sqlite {
            keys.extend(TpccTable::ALL.map(|table| self.late_primary_key(table)));
        }
        for (name, table, columns) in [CUSTOMER_INDEX, ORDER_INDEX] {
            let sql = format!("CREATE INDEX {name} ON {} ({columns})", table.name());
            keys.push(LateKey { table, name: name.to_owned(), sql });
        }
        for key in &mut keys {
            if let Some(template) = self.clauses(key.table).and_then(|it| it.key.as_ref()) {
                let template = fill_in(template, key.table).replace("{name}", &key.name);
                key.sql = template.replace("{sql}", &key.sql.replace('\'', "''"));
            }
        }
        keys
    }

    fn clauses(&self, table: TpccTable) -> Option<&ShardClauses> {
        self.shard.as_ref().map(|shard| shard.clauses(table))
    }

    fn late_primary_key(&self, table: TpccTable) -> LateKey {
        let name = primary_key_name(table);
        let columns = table.key(self.is_sharded()).join(", ");
        let target = table.name();
        let sql = match (self.dialect, table) {
            (Dialect::Mysql, TpccTable::History) => {
                let own =
                    if self.is_sharded() { ", ADD KEY bmsql_history_idx1 (hist_id)" } else { "" };
                format!(
                    "ALTER TABLE {target} MODIFY hist_id integer NOT NULL AUTO_INCREMENT, ADD \
                     PRIMARY KEY ({columns}){own}"
                )
            }
            (Dialect::Mysql, _) => format!("ALTER TABLE {target} ADD PRIMARY KEY ({columns})"),
            _ => format!("ALTER TABLE {target} ADD CONSTRAINT {name} PRIMARY KEY ({columns})"),
        };
        LateKey { table, name, sql }
    }

    /// Foreign keys; always after the rows.
    pub(crate) fn foreign_keys(&self) -> Vec<LateKey> {
        if !self.foreign_keys {
            return Vec::new();
        }
        let key = |(name, table, columns, parent, referenced): (
            &str,
            TpccTable,
            &str,
            TpccTable,
            &str,
        )| {
            let sql = format!(
                "ALTER TABLE {} ADD CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {} \
                 ({referenced})",
                table.name(),
                parent.name()
            );
            LateKey { table, name: name.to_owned(), sql }
        };
        FOREIGN_KEYS.map(key).into()
    }

    /// What lets the server number new rows of the history behind the loaded ones. Repeatable.
    pub(crate) fn number_history(&self) -> Vec<String> {
        if self.dialect != Dialect::Postgres {
            return Vec::new();
        }
        let table = TpccTable::History.name();
        let next = format!("SELECT coalesce(max(hist_id), 0) + 1 FROM {table}");
        vec![
            format!("CREATE SEQUENCE IF NOT EXISTS {HISTORY_SEQUENCE}"),
            format!("SELECT setval('{HISTORY_SEQUENCE}', ({next}), false)"),
            format!(
                "ALTER TABLE {table} ALTER COLUMN hist_id SET DEFAULT nextval('{HISTORY_SEQUENCE}')"
            ),
        ]
    }

    /// Statistics for the planner: without them MariaDB runs some checks for minutes.
    pub(crate) fn analyze(&self) -> Vec<String> {
        let verb = match self.dialect {
            Dialect::Mysql => "ANALYZE TABLE",
            Dialect::Postgres => "VACUUM ANALYZE",
            Dialect::Sqlite => "ANALYZE",
        };
        let sql = |table: TpccTable| match self.clauses(table).and_then(|it| it.analyze.as_ref()) {
            Some(template) => fill_in(template, table),
            None => format!("{verb} {}", table.name()),
        };
        TpccTable::ALL.into_iter().map(sql).collect()
    }
}
