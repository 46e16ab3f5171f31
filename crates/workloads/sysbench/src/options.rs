//! What a sysbench test can be told, typed.

use crate::distribution::{Era, RandomOptions};
use crate::table::OPTIONS;
use dyno_load::settings::ServerNeed;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SysbenchTest {
    PointSelect,
    /// Point and range selects in a transaction.
    ReadOnly,
    /// Updates, a delete and an insert in a transaction.
    WriteOnly,
    /// The statements of `ReadOnly` and `WriteOnly` in one transaction.
    #[default]
    ReadWrite,
    /// Updates of an indexed column, autocommitted.
    UpdateIndex,
    /// Updates of a column without index, autocommitted.
    UpdateNonIndex,
    Insert,
    Delete,
    SelectRandomPoints,
    SelectRandomRanges,
    /// Inserts of many rows per statement; the transaction is one row.
    BulkInsert,
    /// A script of sysbench 0.5.
    Legacy(LegacyTest),
}

dyno_core::named! {
    /// A script of sysbench 0.5: text queries, one table per transaction, options of its own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LegacyTest {
        /// All statements in a transaction.
        Oltp = "oltp",
        /// One point select of `c`.
        OltpSimple = "oltp_simple",
        /// One point select of `pad`.
        Select = "select",
        Insert = "insert",
        Delete = "delete",
        UpdateIndex = "update_index",
        /// One update of a column without index.
        UpdateNonIndex = "update_non_index",
        /// Inserts of many rows per statement; the transaction is one row.
        BulkInsert = "bulk_insert",
        /// One select of several random keys of the table `sbtest`.
        SelectRandomPoints = "select_random_points",
        /// One select of several random key ranges of the table `sbtest`.
        SelectRandomRanges = "select_random_ranges",
    }
}

impl SysbenchTest {
    /// All tests, in the order in which help lists them.
    pub const ALL: [SysbenchTest; 21] = [
        SysbenchTest::ReadWrite,
        SysbenchTest::ReadOnly,
        SysbenchTest::WriteOnly,
        SysbenchTest::PointSelect,
        SysbenchTest::UpdateIndex,
        SysbenchTest::UpdateNonIndex,
        SysbenchTest::Insert,
        SysbenchTest::Delete,
        SysbenchTest::SelectRandomPoints,
        SysbenchTest::SelectRandomRanges,
        SysbenchTest::BulkInsert,
        SysbenchTest::Legacy(LegacyTest::Oltp),
        SysbenchTest::Legacy(LegacyTest::OltpSimple),
        SysbenchTest::Legacy(LegacyTest::Select),
        SysbenchTest::Legacy(LegacyTest::Insert),
        SysbenchTest::Legacy(LegacyTest::Delete),
        SysbenchTest::Legacy(LegacyTest::UpdateIndex),
        SysbenchTest::Legacy(LegacyTest::UpdateNonIndex),
        SysbenchTest::Legacy(LegacyTest::BulkInsert),
        SysbenchTest::Legacy(LegacyTest::SelectRandomPoints),
        SysbenchTest::Legacy(LegacyTest::SelectRandomRanges),
    ];

    /// The script's name, without folder and `.lua`. Three names exist in both families.
    pub fn name(self) -> &'static str {
        match self {
            SysbenchTest::PointSelect => "oltp_point_select",
            SysbenchTest::ReadOnly => "oltp_read_only",
            SysbenchTest::WriteOnly => "oltp_write_only",
            SysbenchTest::ReadWrite => "oltp_read_write",
            SysbenchTest::UpdateIndex => "oltp_update_index",
            SysbenchTest::UpdateNonIndex => "oltp_update_non_index",
            SysbenchTest::Insert => "oltp_insert",
            SysbenchTest::Delete => "oltp_delete",
            SysbenchTest::SelectRandomPoints => "select_random_points",
            SysbenchTest::SelectRandomRanges => "select_random_ranges",
            SysbenchTest::BulkInsert => "bulk_insert",
            SysbenchTest::Legacy(legacy) => legacy.name(),
        }
    }

    /// The test that a command line names, by script name or by path (`oltp_read_write`,
    /// `/usr/share/sysbench/oltp_read_write.lua`). Names of both families mean the one of 1.0,
    /// unless the path leads through a folder of the 0.5 scripts (`oltp_legacy`, `tests/db`).
    pub fn from_script(argument: &str) -> Option<SysbenchTest> {
        let (folder, file) = argument.rsplit_once('/').unwrap_or(("", argument));
        let name = file.strip_suffix(".lua").unwrap_or(file);
        let old = folder.ends_with("oltp_legacy") || folder.ends_with("tests/db");
        let named = || SysbenchTest::ALL.into_iter().filter(|test| test.name() == name);
        if old { named().find(|test| test.is_legacy()) } else { named().next() }
    }

    /// True for the scripts of 0.5. The defaults of general options differ, too: 0.5 stops after
    /// 10,000 transactions and has no time limit.
    pub fn is_legacy(self) -> bool {
        matches!(self, SysbenchTest::Legacy(_))
    }

    /// Whose random arithmetic the test follows.
    pub fn era(self) -> Era {
        if self.is_legacy() { Era::V05 } else { Era::V1 }
    }

    /// True when the test fills tables of two columns named by worker (`bulk_insert`).
    pub fn is_bulk_insert(self) -> bool {
        matches!(self, SysbenchTest::BulkInsert | SysbenchTest::Legacy(LegacyTest::BulkInsert))
    }

    /// True when one statement reads several random keys of one table (`select_random_*`).
    pub fn is_select_random(self) -> bool {
        matches!(
            self,
            SysbenchTest::SelectRandomPoints
                | SysbenchTest::SelectRandomRanges
                | SysbenchTest::Legacy(
                    LegacyTest::SelectRandomPoints | LegacyTest::SelectRandomRanges
                )
        )
    }

    /// True when the test adds rows of its own and deletes none.
    pub fn is_insert(self) -> bool {
        matches!(self, SysbenchTest::Insert | SysbenchTest::Legacy(LegacyTest::Insert))
    }

    /// True when an unknown option is passed over, as the original does for scripts that declare
    /// none.
    pub fn accepts_unknown_options(self) -> bool {
        self.is_legacy() || self == SysbenchTest::BulkInsert
    }
}

/// Whether the storage engine knows transactions (`--mysql-engine-trx` of 0.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineTransactions {
    /// All engines but MyISAM do.
    #[default]
    Auto,
    /// BEGIN and COMMIT.
    Yes,
    /// LOCK TABLES and UNLOCK TABLES.
    No,
}

/// The options of one test. [`SysbenchOptions::new`] gives the defaults of sysbench 1.0.20 or 0.5.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SysbenchOptions {
    pub test: SysbenchTest,
    /// Number of tables, at least 1.
    pub tables: u32,
    /// Rows per table; ids are `1..=table_size`. At most 2,147,483,647.
    pub table_size: u32,
    /// Rows per range select, at least 1.
    pub range_size: u32,
    pub point_selects: u32,
    /// Range selects per transaction.
    pub simple_ranges: u32,
    /// Range selects with SUM per transaction.
    pub sum_ranges: u32,
    /// Range selects with ORDER BY per transaction.
    pub order_ranges: u32,
    /// Range selects with DISTINCT per transaction.
    pub distinct_ranges: u32,
    /// False leaves all four kinds of range selects out.
    pub range_selects: bool,
    /// Updates of the indexed column per transaction.
    pub index_updates: u32,
    /// Updates of the column without index per transaction.
    pub non_index_updates: u32,
    /// Pairs of DELETE and INSERT per transaction.
    pub delete_inserts: u32,
    /// True leaves BEGIN and COMMIT out.
    pub skip_trx: bool,
    /// A session is replaced after so many transactions; 0 never.
    pub reconnect: u32,
    /// The server numbers inserted rows.
    pub auto_inc: bool,
    /// A secondary index on id in place of the primary key.
    pub secondary: bool,
    /// An index on k.
    pub create_secondary: bool,
    pub mysql_storage_engine: String,
    /// Appended to CREATE TABLE on every database.
    pub create_table_options: String,
    /// Keys per statement of select_random_points, at least 1.
    pub random_points: u32,
    /// Ranges per statement of select_random_ranges, at least 1.
    pub number_of_ranges: u32,
    /// Width of a range of select_random_ranges.
    pub delta: u32,
    /// 0.5: no writing statements.
    pub read_only: bool,
    /// 0.5: no reading statements.
    pub write_only: bool,
    /// 0.5: whether BEGIN works.
    pub engine_transactions: EngineTransactions,
    /// 0.5: MAX_ROWS of the created tables.
    pub myisam_max_rows: u32,
    /// How ids and keys are drawn.
    pub random: RandomOptions,
    /// Server-side prepared statements; otherwise text. 0.5 always sends text.
    pub prepared: bool,
    /// How many numbers of the id sequence of inserts with `auto_inc` off earlier runs have used
    /// up; see [`crate::check::first_free_unique`].
    pub unique_start: u32,
    /// Number of this load generator, from 0, and how many insert into the tables at the same time: each
    /// takes numbers of its own.
    pub unique_part: (u32, u32),
    /// Options that were given and have no effect, one full sentence each, for the user.
    pub warnings: Vec<String>,
}

impl SysbenchOptions {
    pub fn writes(&self) -> bool {
        use LegacyTest as Legacy;
        !match self.test {
            SysbenchTest::PointSelect | SysbenchTest::ReadOnly => true,
            SysbenchTest::SelectRandomPoints | SysbenchTest::SelectRandomRanges => true,
            SysbenchTest::Legacy(Legacy::Oltp) => self.read_only,
            SysbenchTest::Legacy(Legacy::OltpSimple | Legacy::Select) => true,
            SysbenchTest::Legacy(Legacy::SelectRandomPoints | Legacy::SelectRandomRanges) => true,
            _ => false,
        }
    }

    /// The needs of a trial. Writes without BEGIN are stored by autocommit only.
    pub fn trial_needs(&self) -> &'static [ServerNeed] {
        use SysbenchTest::{Legacy, ReadWrite, WriteOnly};
        let has_begin = matches!(self.test, WriteOnly | ReadWrite | Legacy(LegacyTest::Oltp));
        if self.writes() && (self.skip_trx || !has_begin) {
            &[ServerNeed::WHOLE_ANSWERS, ServerNeed::AUTOCOMMIT]
        } else {
            &[ServerNeed::WHOLE_ANSWERS]
        }
    }

    /// The defaults of `test`.
    pub fn new(test: SysbenchTest) -> Self {
        let mut options =
            SysbenchOptions { test, unique_part: (0, 1), ..SysbenchOptions::default() };
        for spec in OPTIONS.iter().filter(|spec| !spec.default.is_empty()) {
            (spec.set)(&mut options, spec.default).expect("a test sets every default");
        }
        options
    }

    /// The rows that `prepare` puts into each table: none when the test numbers its own inserts,
    /// which must not meet rows that are already there.
    pub fn rows_to_load(&self) -> u32 {
        if self.test.is_bulk_insert() || (self.test.is_insert() && !self.auto_inc) {
            0
        } else {
            self.table_size
        }
    }

    /// How the command line calls the number of rows of a table.
    pub(crate) fn size_option(&self) -> &'static str {
        if self.test.is_legacy() { "oltp-table-size" } else { "table-size" }
    }

    pub fn table_names(&self, workers: u32) -> Vec<String> {
        match self.test {
            SysbenchTest::Legacy(LegacyTest::BulkInsert) => numbered(0, workers),
            SysbenchTest::BulkInsert => numbered(1, workers),
            SysbenchTest::Legacy(_) if self.test.is_select_random() => vec!["sbtest".to_owned()],
            _ => numbered(1, self.tables),
        }
    }

    /// Statements that one connection keeps prepared.
    pub fn prepared_statements(&self) -> u64 {
        if !self.prepared {
            return 0;
        }
        if self.test.is_select_random() {
            return 1;
        }
        let shape = crate::oltp::Shape::of(self);
        let kinds = shape.kinds_to_prepare();
        let single = kinds.iter().filter(|kind| !kind.has_table()).count() as u64;
        (kinds.len() as u64 - single) * u64::from(self.tables) + single
    }
}

fn numbered(first: u32, count: u32) -> Vec<String> {
    (first..first.saturating_add(count)).map(|number| format!("sbtest{number}")).collect()
}
