//! The tables of BenchmarkSQL, their keys and what a distributed database needs to be told.

use dyno_core::Dialect;
use std::fmt::Write;

/// Rows of name and value: what a load left for runs to know.
pub const CONFIG: &str = "bmsql_config";
/// The statement that makes [`CONFIG`], which is never spread.
pub(crate) const CREATE_CONFIG: &str = "CREATE TABLE bmsql_config (cfg_name varchar(30) not null primary key, cfg_value \
                                        varchar(50))";
/// Numbers the rows of the history on PostgreSQL.
const HISTORY_SEQUENCE: &str = "bmsql_hist_id_seq";

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

impl TpccTable {
    /// Names and types, of which `key` is an integer that is part of the primary key.
    fn typed_columns(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let columns = match self {
            TpccTable::Item => {
                "i_id key, i_name varchar(24), i_price decimal(5,2), i_data varchar(50), i_im_id int"
            }
            TpccTable::Warehouse => {
                "w_id key, w_ytd decimal(12,2), w_tax decimal(4,4), w_name varchar(10), \
     w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20), w_state char(2), \
     w_zip char(9)"
            }
            TpccTable::District => {
                "d_w_id key, d_id key, d_ytd decimal(12,2), d_tax decimal(4,4), d_next_o_id int, \
     d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), d_city varchar(20), \
     d_state char(2), d_zip char(9)"
            }
            TpccTable::Customer => {
                "c_w_id key, c_d_id key, c_id key, c_discount decimal(4,4), c_credit char(2), \
     c_last varchar(16), c_first varchar(16), c_credit_lim decimal(12,2), \
     c_balance decimal(12,2), c_ytd_payment decimal(12,2), c_payment_cnt int, \
     c_delivery_cnt int, c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), \
     c_state char(2), c_zip char(9), c_phone char(16), c_since timestamp, c_middle char(2), \
     c_data varchar(500)"
            }
            TpccTable::History => {
                "hist_id int, h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, \
     h_date timestamp, h_amount decimal(6,2), h_data varchar(24)"
            }
            TpccTable::Order => {
                "o_w_id key, o_d_id key, o_id key, o_c_id int, o_carrier_id int, o_ol_cnt int, \
     o_all_local int, o_entry_d timestamp"
            }
            TpccTable::NewOrder => "no_w_id key, no_d_id key, no_o_id key",
            TpccTable::Stock => {
                "s_w_id key, s_i_id key, s_quantity int, s_ytd int, s_order_cnt int, s_remote_cnt int, \
     s_data varchar(50), s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), \
     s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), \
     s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24)"
            }
            TpccTable::OrderLine => {
                "ol_w_id key, ol_d_id key, ol_o_id key, ol_number key, ol_i_id int, ol_delivery_d timestamp, \
     ol_amount decimal(6,2), ol_supply_w_id int, ol_quantity int, ol_dist_info char(24)"
            }
        };
        columns.split(", ").filter_map(|column| column.split_once(' '))
    }

    pub(crate) fn columns(self) -> Vec<&'static str> {
        self.typed_columns().map(|(name, _)| name).collect()
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
                let keys = self.typed_columns().filter(|(_, kind)| *kind == "key");
                keys.map(|(name, _)| name).collect()
            }
        }
    }
}

/// All tables that a load makes, in an order in which they can be
/// dropped: the configuration goes last, because while it exists a load can be told from foreign
/// tables.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    TpccTable::ALL.iter().rev().map(|table| table.name()).chain([CONFIG])
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

/// Makes the table of foreign keys: name, table, columns, parent and its columns.
macro_rules! foreign_keys {
    ($($name:ident $table:ident($columns:literal) $parent:ident($referenced:literal))*) => {
        /// Name, table, columns, parent and its columns (clause 1.3.1).
        pub(crate) const FOREIGN_KEYS: [(&str, TpccTable, &str, TpccTable, &str); 10] =
            [$((stringify!($name), TpccTable::$table, $columns, TpccTable::$parent, $referenced)),*];
    };
}

foreign_keys! {
    d_warehouse_fkey District("d_w_id") Warehouse("w_id")
    c_district_fkey Customer("c_w_id, c_d_id") District("d_w_id, d_id")
    h_customer_fkey History("h_c_w_id, h_c_d_id, h_c_id") Customer("c_w_id, c_d_id, c_id")
    h_district_fkey History("h_w_id, h_d_id") District("d_w_id, d_id")
    o_customer_fkey Order("o_w_id, o_d_id, o_c_id") Customer("c_w_id, c_d_id, c_id")
    no_order_fkey NewOrder("no_w_id, no_d_id, no_o_id") Order("o_w_id, o_d_id, o_id")
    s_warehouse_fkey Stock("s_w_id") Warehouse("w_id")
    s_item_fkey Stock("s_i_id") Item("i_id")
    ol_order_fkey OrderLine("ol_w_id, ol_d_id, ol_o_id") Order("o_w_id, o_d_id, o_id")
    ol_stock_fkey OrderLine("ol_supply_w_id, ol_i_id") Stock("s_w_id, s_i_id")
}

pub(crate) fn primary_key_name(table: TpccTable) -> String {
    format!("{}_pkey", table.name())
}

impl Schema {
    pub(crate) fn create_table(&self, table: TpccTable) -> Vec<String> {
        let mut parts: Vec<String> =
            table.typed_columns().map(|column| self.column(table, column)).collect();
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

    fn column(&self, table: TpccTable, (name, kind): (&str, &str)) -> String {
        let is_numbered = table == TpccTable::History && name == "hist_id";
        let kind = match (kind, self.dialect) {
            ("key", _) => "integer not null",
            (_, Dialect::Mysql) if is_numbered && self.keys != KeyTime::AfterLoad => {
                "integer not null auto_increment"
            }
            (_, Dialect::Sqlite) if is_numbered => "integer primary key",
            ("int", _) => "integer",
            // SQLite would store binary floating-point numbers: amounts are kept as integers.
            (kind, Dialect::Sqlite) if kind.starts_with("decimal") => "integer",
            // MySQL 5.7 would make it NOT NULL and set it at each update.
            ("timestamp", Dialect::Mysql) => "timestamp null default null",
            ("timestamp", Dialect::Sqlite) => "text",
            (kind, _) => kind,
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
        let keys = FOREIGN_KEYS.map(|(name, table, columns, parent, referenced)| {
            let (child, parent) = (table.name(), parent.name());
            let sql = format!(
                "ALTER TABLE {child} ADD CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {parent} ({referenced})"
            );
            LateKey { table, name: name.to_owned(), sql }
        });
        keys.into()
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
            // So that it is dropped with the table.
            format!("ALTER SEQUENCE {HISTORY_SEQUENCE} OWNED BY {table}.hist_id"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(dialect: Dialect, keys: KeyTime) -> Schema {
        Schema { dialect, keys, foreign_keys: false, shard: None }
    }

    #[test]
    fn the_history_is_numbered_as_each_dialect_can() {
        let sql = |dialect, keys| schema(dialect, keys).create_table(TpccTable::History).remove(0);
        let mysql = sql(Dialect::Mysql, KeyTime::BeforeLoad);
        assert!(mysql.contains("hist_id integer not null auto_increment,"), "{mysql}");
        assert!(mysql.ends_with("PRIMARY KEY (hist_id)\n)"), "{mysql}");
        assert!(mysql.contains("h_date timestamp null default null"), "{mysql}");
        let late = sql(Dialect::Mysql, KeyTime::AfterLoad);
        assert!(late.contains("hist_id integer,") && !late.contains("PRIMARY"), "{late}");
        let sqlite = sql(Dialect::Sqlite, KeyTime::BeforeLoad);
        assert!(sqlite.contains("hist_id integer primary key,"), "{sqlite}");
        assert!(sqlite.contains("h_amount integer,"), "{sqlite}");
        let postgres = schema(Dialect::Postgres, KeyTime::AfterLoad).number_history();
        assert_eq!(postgres.len(), 4);
    }

    #[test]
    fn keys_are_made_with_the_tables_or_after_the_rows() {
        let early = schema(Dialect::Postgres, KeyTime::BeforeLoad);
        assert!(
            early.create_table(TpccTable::OrderLine)[0]
                .contains("PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)")
        );
        assert_eq!(early.late_keys().len(), 2);
        let late = schema(Dialect::Postgres, KeyTime::AfterLoad);
        assert!(!late.create_table(TpccTable::OrderLine)[0].contains("PRIMARY KEY"));
        let keys = late.late_keys();
        assert_eq!(keys.len(), 11);
        assert_eq!(
            keys[3].sql,
            "ALTER TABLE bmsql_customer ADD CONSTRAINT bmsql_customer_pkey PRIMARY KEY (c_w_id, \
             c_d_id, c_id)"
        );
        let with = Schema { foreign_keys: true, ..late };
        assert_eq!(with.foreign_keys().len(), 10);
    }

    #[test]
    fn shard_clauses_name_table_and_column() {
        let shard = Shard {
            by_warehouse: ShardClauses {
                suffix: Some("dbpartition by hash({column})".into()),
                after: Some("SELECT create_distributed_table('{table}', '{column}')".into()),
                before: Some("CREATE SHARDING TABLE RULE {table}".into()),
                ..ShardClauses::default()
            },
            item: ShardClauses { suffix: Some("broadcast".into()), ..ShardClauses::default() },
        };
        let schema = Schema { shard: Some(shard), ..schema(Dialect::Mysql, KeyTime::BeforeLoad) };
        let stock = schema.create_table(TpccTable::Stock);
        assert_eq!(stock[0], "CREATE SHARDING TABLE RULE bmsql_stock");
        assert!(stock[1].ends_with("PRIMARY KEY (s_w_id, s_i_id)\n) dbpartition by hash(s_w_id)"));
        assert_eq!(stock[2], "SELECT create_distributed_table('bmsql_stock', 's_w_id')");
        let item = schema.create_table(TpccTable::Item);
        assert!(item.len() == 1 && item[0].ends_with(") broadcast"));
        let history = &schema.create_table(TpccTable::History)[1];
        assert!(history.contains("PRIMARY KEY (h_w_id, hist_id),\n  KEY bmsql_history_idx1"));
    }

    #[test]
    fn a_coordinator_has_keys_and_statistics_made_on_the_shards() {
        let shard = Some(Shard::of_coordinator());
        let schema = Schema { shard, ..schema(Dialect::Postgres, KeyTime::AfterLoad) };
        let stock = schema.create_table(TpccTable::Stock);
        assert_eq!(stock[1..], ["SELECT dyno_shards.distribute('bmsql_stock', 's_w_id')"]);
        assert_eq!(schema.create_table(TpccTable::Item).len(), 1);
        let keys = schema.late_keys();
        let sql = |name: &str| keys.iter().find(|key| key.name == name).unwrap().sql.as_str();
        assert_eq!(
            sql("bmsql_history_pkey"),
            "SELECT dyno_shards.add_key('bmsql_history_pkey', 'ALTER TABLE bmsql_history ADD CONSTRAINT \
             bmsql_history_pkey PRIMARY KEY (h_w_id, hist_id)')"
        );
        assert!(sql("bmsql_item_pkey").starts_with("ALTER TABLE bmsql_item ADD CONSTRAINT"));
        assert!(sql("bmsql_customer_idx1").starts_with("SELECT dyno_shards.add_key("));
        let analyze = schema.analyze();
        assert_eq!(analyze[0], "VACUUM ANALYZE bmsql_item");
        assert_eq!(analyze[1], "SELECT dyno_shards.analyze_table('bmsql_warehouse')");
    }
}
