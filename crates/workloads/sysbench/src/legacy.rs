//! What the scripts of sysbench 0.5 do differently: one table per transaction and always text (both
//! in [`crate::oltp`]), other words in the selects, and locks where there are no transactions.

use crate::options::{EngineTransactions, LegacyTest, SysbenchOptions, SysbenchTest};
use dyno_core::Dialect;

/// The column of a point select, the sum, and the bounds of a range, in the family's words.
pub(crate) fn select_words(options: &SysbenchOptions) -> (&'static str, &'static str, String) {
    let SysbenchTest::Legacy(legacy) = options.test else {
        return ("c", "SUM(k)", "? AND ?".to_owned());
    };
    let column = if legacy == LegacyTest::Select { "pad" } else { "c" };
    // 0.5 leaves the addition to the server.
    (column, "SUM(K)", format!("? AND ?+{}", options.range_size - 1))
}

/// LOCK TABLES and UNLOCK TABLES, in place of BEGIN and COMMIT, for engines without transactions.
pub(crate) fn lock_tables(options: &SysbenchOptions, dialect: Dialect) -> Option<(String, String)> {
    let without = match options.engine_transactions {
        EngineTransactions::Yes => false,
        EngineTransactions::No => true,
        EngineTransactions::Auto => options.mysql_storage_engine.eq_ignore_ascii_case("myisam"),
    };
    if !(without && options.test.is_legacy() && dialect == Dialect::Mysql) {
        return None;
    }
    let locks: Vec<String> =
        (1..=options.tables).map(|number| format!("sbtest{number} WRITE")).collect();
    Some((format!("LOCK TABLES {}", locks.join(" ,")), "UNLOCK TABLES".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn myisam_locks_all_tables_unless_told_otherwise() {
        let mut options = SysbenchOptions::new(SysbenchTest::Legacy(LegacyTest::Oltp));
        options.tables = 2;
        assert_eq!(lock_tables(&options, Dialect::Mysql), None);
        options.mysql_storage_engine = "MyISAM".to_owned();
        let locks = ("LOCK TABLES sbtest1 WRITE ,sbtest2 WRITE", "UNLOCK TABLES");
        let (begin, commit) = lock_tables(&options, Dialect::Mysql).unwrap();
        assert_eq!((begin.as_str(), commit.as_str()), locks);
        assert_eq!(lock_tables(&options, Dialect::Postgres), None);
        options.engine_transactions = EngineTransactions::Yes;
        assert_eq!(lock_tables(&options, Dialect::Mysql), None);
        let options = SysbenchOptions {
            mysql_storage_engine: "myisam".to_owned(),
            ..SysbenchOptions::new(SysbenchTest::ReadWrite)
        };
        assert_eq!(lock_tables(&options, Dialect::Mysql), None);
    }
}
