//! The tables of BenchmarkSQL, their keys and what a distributed database needs to know.

use dyno_core::Dialect;
use std::collections::BTreeMap;

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
        /// The catalog, the same for all warehouses.
        Item = "bmsql_item",
        Warehouse = "bmsql_warehouse",
        /// Ten of a warehouse.
        District = "bmsql_district",
        /// 3,000 of a district.
        Customer = "bmsql_customer",
        /// One row per payment.
        History = "bmsql_history",
        Order = "bmsql_oorder",
        /// Orders that are not delivered.
        NewOrder = "bmsql_new_order",
        /// 100,000 of a warehouse.
        Stock = "bmsql_stock",
        /// 5 to 15 of an order.
        OrderLine = "bmsql_order_line",
    }
}

const TABLES: &str = include_str!("schema.txt");

impl TpccTable {
    /// Its warehouse column, and its columns with their types.
    fn row(self) -> (&'static str, &'static str) {
        TABLES
            .lines()
            .find_map(|line| line.strip_prefix(self.name())?.strip_prefix(' ')?.split_once(": "))
            .unwrap_or_default()
    }

    /// Names and types, of which `key` is an integer that is part of the primary key.
    fn typed_columns(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.row().1.split(", ").filter_map(|column| column.split_once(' '))
    }

    /// Names of the columns, in the order of the table.
    pub(crate) fn columns(self) -> Vec<&'static str> {
        self.typed_columns().map(|(name, _)| name).collect()
    }

    /// The column that says whose row it is; `None` of the catalog.
    pub fn warehouse_column(self) -> Option<&'static str> {
        Some(self.row().0).filter(|column| *column != "-")
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
/// dropped: the configuration goes last, because while it exists a load differs from foreign
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
    /// Default of a dialect: MySQL clusters rows by primary key, SQLite can't add one later.
    pub fn usual(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Mysql | Dialect::Sqlite => KeyTime::PrimaryBeforeLoad,
            Dialect::Postgres => KeyTime::AfterLoad,
        }
    }
}

/// Clauses by their names, which spread the tables of a distributed database by warehouse. `{table}` and
/// `{column}` are replaced by a table's name and its warehouse column, `i_id` in the catalog. Clauses of the catalog,
/// which every shard reads, begin with `item_`.
///
/// - `before`: a statement before CREATE TABLE, such as a sharding rule of ShardingSphere.
/// - `suffix`: text at the end of CREATE TABLE, such as `dbpartition by hash({column})` or `broadcast`.
/// - `after`: a statement after CREATE TABLE, such as `SELECT create_distributed_table('{table}', '{column}')` of Citus.
/// - `key`: a statement instead of one that makes the key or index `{name}`. `{sql}` is replaced by that one as the text of
///   a literal.
/// - `analyze`: a statement instead of the one that collects statistics.
pub type Shard = BTreeMap<String, String>;

/// Clauses for a coordinator of `dyno cluster up sharded-postgres`, by the functions that are in it. The catalog
/// is a plain table there: no statement joins it with rows of a shard.
pub(crate) fn coordinator_clauses() -> Shard {
    let clauses = [
        ("after", "distribute('{table}', '{column}')"),
        ("key", "add_key('{name}', '{sql}')"),
        ("analyze", "analyze_table('{table}')"),
    ];
    clauses.map(|(name, sql)| (name.to_owned(), format!("SELECT dyno_shards.{sql}"))).into()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) dialect: Dialect,
    pub(crate) keys: KeyTime,
    pub(crate) foreign_keys: bool,
    pub(crate) shard: Option<Shard>,
}

/// A primary key, an index or a foreign key that is made by its own statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateKey {
    pub(crate) table: &'static str,
    /// The name by which the load finds the key in the catalog again.
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// The index that finds customers by last name (clauses 2.5.2.2 and 2.6.2.2).
const CUSTOMER_INDEX: (&str, TpccTable, &str) =
    ("bmsql_customer_idx1", TpccTable::Customer, "c_w_id, c_d_id, c_last, c_first");
/// The index that finds a customer's last order (clause 2.6.2.2).
const ORDER_INDEX: (&str, TpccTable, &str) =
    ("bmsql_oorder_idx1", TpccTable::Order, "o_w_id, o_d_id, o_c_id, o_id");

/// Name, table and definition of each foreign key.
pub(crate) fn foreign_keys() -> impl Iterator<Item = [&'static str; 3]> {
    TABLES.lines().filter(|line| line.contains("_fkey ")).filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        Some([words.next()?, words.next()?, words.next()?])
    })
}

pub(crate) fn primary_key_name(table: TpccTable) -> String {
    format!("{}_pkey", table.name())
}

impl Schema {
    pub(crate) fn create_table(&self, table: TpccTable) -> Vec<String> {
        let mut parts: Vec<String> =
            table.typed_columns().map(|column| self.column_definition(table, column)).collect();
        parts.extend(self.inline_keys(table));
        let suffix = self.clause(table, "suffix").map_or(String::new(), |text| format!(" {text}"));
        let sql = format!("CREATE TABLE {} (\n  {}\n){suffix}", table.name(), parts.join(",\n  "));
        let (before, after) = (self.clause(table, "before"), self.clause(table, "after"));
        before.into_iter().chain([sql]).chain(after).collect()
    }

    /// A clause for a table, filled in.
    fn clause(&self, table: TpccTable, name: &str) -> Option<String> {
        let prefix = if table == TpccTable::Item { "item_" } else { "" };
        let template = self.shard.as_ref()?.get(&format!("{prefix}{name}"))?;
        let column = table.warehouse_column().unwrap_or("i_id");
        Some(template.replace("{table}", table.name()).replace("{column}", column))
    }

    fn column_definition(&self, table: TpccTable, (name, kind): (&str, &str)) -> String {
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
        let is_late = match self.dialect {
            Dialect::Sqlite => table == TpccTable::History,
            _ => self.keys == KeyTime::AfterLoad,
        };
        if is_late {
            return Vec::new();
        }
        let is_sharded = self.shard.is_some();
        let mut keys = vec![format!("PRIMARY KEY ({})", table.key(is_sharded).join(", "))];
        if self.dialect == Dialect::Mysql && table == TpccTable::History && is_sharded {
            // A column that numbers itself has to lead a key.
            keys.push("KEY bmsql_history_idx1 (hist_id)".to_owned());
        }
        keys
    }

    /// Keys and indexes that follow: with the tables or after the rows, by [`Schema::keys`].
    pub(crate) fn late_keys(&self) -> Vec<LateKey> {
        let mut keys = Vec::new();
        if self.keys == KeyTime::AfterLoad && self.dialect != Dialect::Sqlite {
            let key =
                |table| self.late_key(table, primary_key_name(table), self.primary_key(table));
            keys.extend(TpccTable::ALL.map(key));
        }
        keys.extend([CUSTOMER_INDEX, ORDER_INDEX].map(|(name, table, columns)| {
            let sql = format!("CREATE INDEX {name} ON {} ({columns})", table.name());
            self.late_key(table, name.to_owned(), sql)
        }));
        keys
    }

    fn late_key(&self, table: TpccTable, name: String, mut sql: String) -> LateKey {
        if let Some(template) = self.clause(table, "key") {
            let template = template.replace("{name}", &name);
            sql = template.replace("{sql}", &sql.replace('\'', "''"));
        }
        LateKey { table: table.name(), name, sql }
    }

    /// The statement that makes a primary key.
    fn primary_key(&self, table: TpccTable) -> String {
        let columns = table.key(self.shard.is_some()).join(", ");
        let target = table.name();
        match (self.dialect, table) {
            (Dialect::Mysql, TpccTable::History) => {
                let index = match self.shard {
                    Some(_) => ", ADD KEY bmsql_history_idx1 (hist_id)",
                    None => "",
                };
                format!(
                    "ALTER TABLE {target} MODIFY hist_id integer NOT NULL AUTO_INCREMENT, ADD \
                     PRIMARY KEY ({columns}){index}"
                )
            }
            (Dialect::Mysql, _) => format!("ALTER TABLE {target} ADD PRIMARY KEY ({columns})"),
            _ => {
                let name = primary_key_name(table);
                format!("ALTER TABLE {target} ADD CONSTRAINT {name} PRIMARY KEY ({columns})")
            }
        }
    }

    /// Foreign keys; always after the rows.
    pub(crate) fn foreign_keys(&self) -> Vec<LateKey> {
        let keys = foreign_keys().filter(|_| self.foreign_keys);
        let keys = keys.map(|[name, table, definition]| LateKey {
            table,
            name: name.to_owned(),
            sql: format!("ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"),
        });
        keys.collect()
    }

    /// Statements that let the server number new rows of the history behind the loaded ones. Repeatable.
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
        let statements = TpccTable::ALL.into_iter().map(|table| {
            self.clause(table, "analyze").unwrap_or_else(|| format!("{verb} {}", table.name()))
        });
        statements.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_schema(dialect: Dialect, keys: KeyTime) -> Schema {
        Schema { dialect, keys, foreign_keys: false, shard: None }
    }

    #[test]
    fn the_history_is_numbered_as_each_dialect_can() {
        let [mysql, late, sqlite] = [
            (Dialect::Mysql, KeyTime::BeforeLoad),
            (Dialect::Mysql, KeyTime::AfterLoad),
            (Dialect::Sqlite, KeyTime::BeforeLoad),
        ]
        .map(|(dialect, keys)| {
            new_schema(dialect, keys).create_table(TpccTable::History).remove(0)
        });
        assert!(mysql.contains("hist_id integer not null auto_increment,"), "{mysql}");
        assert!(mysql.ends_with("PRIMARY KEY (hist_id)\n)"), "{mysql}");
        assert!(mysql.contains("h_date timestamp null default null"), "{mysql}");
        assert!(late.contains("hist_id integer,") && !late.contains("PRIMARY"), "{late}");
        assert!(sqlite.contains("hist_id integer primary key,"), "{sqlite}");
        assert!(sqlite.contains("h_amount integer,"), "{sqlite}");
        let postgres = new_schema(Dialect::Postgres, KeyTime::AfterLoad).number_history();
        assert_eq!(postgres.len(), 4);
    }

    #[test]
    fn keys_are_made_with_the_tables_or_after_the_rows() {
        let early = new_schema(Dialect::Postgres, KeyTime::BeforeLoad);
        assert!(
            early.create_table(TpccTable::OrderLine)[0]
                .contains("PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)")
        );
        assert_eq!(early.late_keys().len(), 2);
        let late = new_schema(Dialect::Postgres, KeyTime::AfterLoad);
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
        let shard = [
            ("suffix", "dbpartition by hash({column})"),
            ("after", "SELECT create_distributed_table('{table}', '{column}')"),
            ("before", "CREATE SHARDING TABLE RULE {table}"),
            ("item_suffix", "broadcast"),
        ];
        let shard = shard.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let schema =
            Schema { shard: Some(shard), ..new_schema(Dialect::Mysql, KeyTime::BeforeLoad) };
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
        let shard = Some(coordinator_clauses());
        let schema = Schema { shard, ..new_schema(Dialect::Postgres, KeyTime::AfterLoad) };
        let stock = schema.create_table(TpccTable::Stock);
        assert_eq!(stock[1..], ["SELECT dyno_shards.distribute('bmsql_stock', 's_w_id')"]);
        assert_eq!(schema.create_table(TpccTable::Item).len(), 1);
        let keys = schema.late_keys();
        let [history, item, customer] =
            ["bmsql_history_pkey", "bmsql_item_pkey", "bmsql_customer_idx1"]
                .map(|name| keys.iter().find(|key| key.name == name).unwrap().sql.as_str());
        assert_eq!(
            history,
            "SELECT dyno_shards.add_key('bmsql_history_pkey', 'ALTER TABLE bmsql_history ADD CONSTRAINT \
             bmsql_history_pkey PRIMARY KEY (h_w_id, hist_id)')"
        );
        assert!(item.starts_with("ALTER TABLE bmsql_item ADD CONSTRAINT"));
        assert!(customer.starts_with("SELECT dyno_shards.add_key("));
        let analyze = schema.analyze();
        assert_eq!(analyze[0], "VACUUM ANALYZE bmsql_item");
        assert_eq!(analyze[1], "SELECT dyno_shards.analyze_table('bmsql_warehouse')");
    }
}
