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
    assert_eq!(postgres.len(), 3);
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
