//! The tests and their options: a row of a table and the field that it sets are an option.

use std::borrow::Cow;

use OptionValues::{Choice, Flag, Text, Whole};
use dyno_core::offer::{DataSizing, Scale, TestOffer, WorkloadOffer};
use dyno_core::options::{OptionDoc, OptionError, OptionRow, OptionValues, did_you_mean};
use dyno_core::{Cause, DbError, nearest};
use dyno_load::settings::ServerNeed;

use crate::distribution::{Era, KeyDistribution, RandomOptions};

/// sysbench 1.0.20 and 0.5 as suites name them. Where both have a test of a name, it is the one of 1.0.
pub const OFFER: WorkloadOffer = WorkloadOffer::new("sysbench", &TESTS, describe);

/// All but the last three, whose names are also those of 1.0.
const TESTS: [TestOffer; SysbenchTest::ALL.len() - 3] = {
    let mut tests = [TestOffer { name: "bulk_insert", size: None }; SysbenchTest::ALL.len() - 3];
    let mut at = 0;
    while at < tests.len() {
        let test = SysbenchTest::ALL[at];
        if test.is_legacy() {
            tests[at] = tables(test.name(), "oltp_table_size", "oltp_tables_count");
        } else if !matches!(test, SysbenchTest::BulkInsert) {
            tests[at] = tables(test.name(), "table_size", "tables");
        }
        at += 1;
    }
    tests
};

/// A test sized by rows and tables, with the names of these options.
const fn tables(name: &'static str, rows: &'static str, tables: &'static str) -> TestOffer {
    let rows = Scale { option: rows, default: 10_000 };
    let tables = Scale { option: tables, default: 1 };
    TestOffer { name, size: Some(DataSizing::Tables { rows, tables }) }
}

dyno_core::named! {
    /// A script of sysbench, by its name without folder and `.lua`. Three names exist in both families.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum SysbenchTest {
        /// The statements of `ReadOnly` and `WriteOnly` in one transaction.
        #[default]
        ReadWrite = "oltp_read_write",
        /// Point and range selects in a transaction.
        ReadOnly = "oltp_read_only",
        /// Updates, a delete and an insert in a transaction.
        WriteOnly = "oltp_write_only",
        PointSelect = "oltp_point_select",
        /// Updates of an indexed column, autocommitted.
        UpdateIndex = "oltp_update_index",
        /// Updates of a column without index, autocommitted.
        UpdateNonIndex = "oltp_update_non_index",
        Insert = "oltp_insert",
        Delete = "oltp_delete",
        SelectRandomPoints = "select_random_points",
        SelectRandomRanges = "select_random_ranges",
        /// Inserts of many rows per statement; the transaction is one row.
        BulkInsert = "bulk_insert",
        /// The first script of sysbench 0.5, whose scripts have text queries, one table per transaction and options of
        /// their own. All statements in a transaction.
        V05Oltp = "oltp",
        /// One point select of `c`.
        V05OltpSimple = "oltp_simple",
        /// One point select of `pad`.
        V05Select = "select",
        V05Insert = "insert",
        V05Delete = "delete",
        V05UpdateIndex = "update_index",
        /// One update of a column without index.
        V05UpdateNonIndex = "update_non_index",
        /// Like `BulkInsert`.
        V05BulkInsert = "bulk_insert",
        /// One select of several random keys of the table `sbtest`.
        V05SelectRandomPoints = "select_random_points",
        /// One select of several random key ranges of the table `sbtest`.
        V05SelectRandomRanges = "select_random_ranges",
    }
}

impl SysbenchTest {
    /// The test that a command line names, by script name or by path (`oltp_read_write`,
    /// `/usr/share/sysbench/oltp_read_write.lua`). Names of both families mean the one of 1.0,
    /// unless the path leads through a folder of the 0.5 scripts (`oltp_legacy`, `tests/db`).
    pub fn from_script(argument: &str) -> Option<SysbenchTest> {
        let (folder, file) = argument.rsplit_once('/').unwrap_or(("", argument));
        let name = file.strip_suffix(".lua").unwrap_or(file);
        let old = folder.ends_with("oltp_legacy") || folder.ends_with("tests/db");
        let mut scripts = SysbenchTest::ALL.into_iter().filter(|test| test.name() == name);
        scripts.find(|test| !old || test.is_legacy())
    }

    /// Returns true for the scripts of 0.5. The defaults of general options differ, too: 0.5 stops after
    /// 10,000 transactions and has no time limit.
    pub const fn is_legacy(self) -> bool {
        self as u8 >= SysbenchTest::V05Oltp as u8
    }

    /// Whose random arithmetic the test follows.
    pub fn era(self) -> Era {
        if self.is_legacy() { Era::V05 } else { Era::V1 }
    }

    /// Returns true if the test fills tables of two columns named by worker (`bulk_insert`).
    pub fn is_bulk_insert(self) -> bool {
        matches!(self, SysbenchTest::BulkInsert | SysbenchTest::V05BulkInsert)
    }

    /// Returns true if one statement reads several random keys of one table (`select_random_*`).
    pub fn is_select_random(self) -> bool {
        matches!(
            self,
            SysbenchTest::SelectRandomPoints
                | SysbenchTest::SelectRandomRanges
                | SysbenchTest::V05SelectRandomPoints
                | SysbenchTest::V05SelectRandomRanges
        )
    }

    /// Returns true if the test adds its own rows and deletes none.
    pub fn is_insert(self) -> bool {
        matches!(self, SysbenchTest::Insert | SysbenchTest::V05Insert)
    }

    /// Returns true if an unknown option is passed over, as the original does for scripts that declare
    /// none.
    pub fn accepts_unknown_options(self) -> bool {
        self.is_legacy() || self == SysbenchTest::BulkInsert
    }
}

/// Transaction support of the storage engine (`--mysql-engine-trx` of 0.5).
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
    /// A session is replaced after this number of transactions; 0 never.
    pub reconnect: u32,
    /// The server numbers inserted rows.
    pub auto_inc: bool,
    /// A secondary index on id instead of the primary key.
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
    /// Distribution of ids and keys.
    pub random: RandomOptions,
    /// Server-side prepared statements; otherwise text. 0.5 always sends text.
    pub prepared: bool,
    /// Numbers of the id sequence of inserts with `auto_inc` off that earlier runs have used
    /// up; see [`crate::check::first_free_unique`].
    pub unique_start: u32,
    /// Number of this load generator, from 0, and how many insert into the tables at the same time: each
    /// takes its own numbers.
    pub unique_part: (u32, u32),
    /// Options that were given and have no effect, one full sentence each, for the user.
    pub warnings: Vec<String>,
}

impl SysbenchOptions {
    /// Returns true if the test changes rows.
    pub fn writes(&self) -> bool {
        use SysbenchTest::{PointSelect, ReadOnly, V05Oltp, V05OltpSimple, V05Select};
        match self.test {
            PointSelect | ReadOnly | V05OltpSimple | V05Select => false,
            V05Oltp => !self.read_only,
            test => !test.is_select_random(),
        }
    }

    /// The needs of a trial. Writes without BEGIN are stored by autocommit only.
    pub fn trial_needs(&self) -> &'static [ServerNeed] {
        use SysbenchTest::{ReadWrite, V05Oltp, WriteOnly};
        let has_begin = matches!(self.test, WriteOnly | ReadWrite | V05Oltp);
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
        for row in OPTIONS.iter().flat_map(|(_, rows)| *rows).filter(|row| !row.default.is_empty())
        {
            row.set(&mut options, None, row.default).expect("a test sets every default");
        }
        options
    }

    /// Reads the options of `test` from (name, value) pairs as they stood on the command line,
    /// without the leading dashes. `-` and `_` are the same letter in names; a later pair replaces
    /// an earlier one; a switch without value is given the value `on`; an empty value leaves the
    /// default. Names that the test passes over go to [`SysbenchOptions::warnings`].
    pub fn from_pairs(test: SysbenchTest, pairs: &[(String, String)]) -> Result<Self, OptionError> {
        let mut options = SysbenchOptions::new(test);
        for (name, value) in pairs {
            match find_option(test, name) {
                Some((name, row)) => options.set(name, row, value)?,
                None => options.pass_over(name)?,
            }
        }
        if options.read_only && options.write_only {
            let message = "--oltp-read-only and --oltp-write-only exclude each other";
            return Err(OptionError::experiment(message, None));
        }
        Ok(options)
    }

    /// The original compares switches of 0.5 with the exact words `on` and `off`; what else is
    /// given leaves the default, which surprises everyone who wrote `=1`.
    fn set(&mut self, name: &str, row: &Row, value: &str) -> Result<(), OptionError> {
        let is_exact = self.test.is_legacy() && matches!(row.kind, Flag(_));
        let is_dead = is_exact && value != "on" && value != "off";
        if value.is_empty() && !row.takes_empty() && !is_exact {
            return Ok(());
        }
        row.set(self, None, if is_dead { row.default } else { value })
            .map_err(|expected| OptionError::unsuitable(name, value, &expected))?;
        let warning = match name {
            _ if is_dead => format!(
                "The value of --{name}={value} has no effect: the script compares it with exactly `on` \
                 and `off`, so the default `{}` stays.",
                row.default
            ),
            "oltp-secondary" if ["off", "false", "0"].contains(&value) => format!(
                "The option --oltp-secondary={value} switches the secondary index ON: the script \
                 takes any value for yes; leave the option out to have a primary key."
            ),
            "pgsql_variant" => {
                format!("The option --pgsql_variant={value} has no effect, as in sysbench 1.0.20.")
            }
            _ => return Ok(()),
        };
        self.warnings.push(warning);
        Ok(())
    }

    fn pass_over(&mut self, name: &str) -> Result<(), OptionError> {
        let meant = nearest(name, test_options(self.test).map(|(name, _)| name));
        let test = self.test.name();
        if !self.test.accepts_unknown_options() {
            return Err(OptionError {
                option: Some(name.to_owned()),
                mismatch: None,
                is_value: false,
                message: format!("The test `{test}` has no option `{name}`."),
                hint: did_you_mean(meant, ""),
            });
        }
        let advice = match meant {
            Some(meant) => format!("; did you mean --{}?", dashed(meant)),
            None => ".".to_owned(),
        };
        self.warnings.push(format!(
            "The option --{name} has no effect: {test} knows no option of this name, and the \
             original passes over it silently{advice}"
        ));
        Ok(())
    }

    /// Statements of a transaction; `None` of tests whose transactions are rows of one statement.
    pub(crate) fn statements(&self) -> Option<f64> {
        match self.test {
            test if test.is_bulk_insert() => None,
            test if test.is_select_random() => Some(1.0),
            _ => Some(crate::oltp::Shape::for_test(self).statements().into()),
        }
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

    /// Returns `table-size`, or `oltp-table-size` of 0.5's scripts, without dashes.
    pub(crate) fn size_option(&self) -> &'static str {
        if self.test.is_legacy() { "oltp-table-size" } else { "table-size" }
    }

    pub fn table_names(&self, workers: u32) -> Vec<String> {
        match self.test {
            SysbenchTest::V05BulkInsert => numbered_tables(0, workers),
            SysbenchTest::BulkInsert => numbered_tables(1, workers),
            test if test.is_legacy() && test.is_select_random() => vec!["sbtest".to_owned()],
            _ => numbered_tables(1, self.tables),
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
        let shape = crate::oltp::Shape::from_options(self);
        let kinds = &shape.prepares;
        let single = kinds.iter().filter(|kind| !kind.has_table()).count() as u64;
        (kinds.len() as u64 - single) * u64::from(self.tables) + single
    }
}

fn numbered_tables(first: u32, count: u32) -> Vec<String> {
    (first..first.saturating_add(count)).map(|number| format!("sbtest{number}")).collect()
}

/// An option's name as command lines mostly have it, and messages about them: with `-` instead of `_`.
pub fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

/// The tests that have an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionGroup {
    /// All tests: the random numbers.
    Random,
    /// All tests: how statements are sent.
    Database,
    /// The tests of 1.0 that work on the usual tables, and those of 0.5 under the old name.
    Oltp,
    /// `select_random_points` of both families.
    RandomPoints,
    /// `select_random_ranges` of both families.
    RandomRanges,
    /// The scripts of 0.5.
    Legacy,
}

type Row = OptionRow<SysbenchOptions>;

/// The options that `test` knows, with the names that they have there.
pub fn test_options(test: SysbenchTest) -> impl Iterator<Item = (&'static str, &'static Row)> {
    use SysbenchTest::{SelectRandomPoints, SelectRandomRanges};
    use SysbenchTest::{V05SelectRandomPoints, V05SelectRandomRanges};
    let rows = OPTIONS.iter().flat_map(|&(group, rows)| rows.iter().map(move |row| (group, row)));
    rows.filter_map(move |(group, row)| {
        let name = match group {
            OptionGroup::Random | OptionGroup::Database => Some(row.name),
            OptionGroup::Oltp if test.is_legacy() => row.old_name,
            OptionGroup::Oltp => (!test.is_bulk_insert()).then_some(row.name),
            OptionGroup::RandomPoints => {
                let tests = [SelectRandomPoints, V05SelectRandomPoints];
                tests.contains(&test).then_some(row.name)
            }
            OptionGroup::RandomRanges => {
                let tests = [SelectRandomRanges, V05SelectRandomRanges];
                tests.contains(&test).then_some(row.name)
            }
            OptionGroup::Legacy => test.is_legacy().then_some(row.name),
        };
        Some((name?, row))
    })
}

/// The option of a test with this name, in which `-` is `_`, and the name as help prints it.
pub fn find_option(test: SysbenchTest, name: &str) -> Option<(&'static str, &'static Row)> {
    let dashed_name = dashed(name);
    test_options(test).find(|(name, _)| dashed(name) == dashed_name)
}

/// The options as help and documentation of suites show them.
fn describe() -> Vec<OptionDoc> {
    let mut docs = Vec::new();
    for (group, rows) in OPTIONS {
        let scope = match group {
            OptionGroup::Random | OptionGroup::Database => "",
            OptionGroup::Oltp => "sysbench 1.0",
            OptionGroup::RandomPoints => "in `select_random_points`",
            OptionGroup::RandomRanges => "in `select_random_ranges`",
            OptionGroup::Legacy => "sysbench 0.5",
        };
        let old = rows.iter().filter_map(|row| Some((row.old_name?, row, "sysbench 0.5")));
        let named_rows = rows.iter().map(|row| (row.name, row, scope)).chain(old);
        docs.extend(named_rows.map(|(name, row, scope)| OptionDoc {
            name: name.replace('-', "_"),
            default: match row.default {
                "on" => "true",
                "off" => "false",
                default => default,
            },
            scope: scope.to_owned(),
            ..row.describe()
        }));
    }
    docs
}

/// MySQL allows as many placeholders in one statement.
const PLACEHOLDERS_MAX: u32 = 65_535;
/// `id` and `k` are signed 32-bit integers.
const ROWS_MAX: u32 = i32::MAX as u32;
const COUNT_MAX: u32 = 1_000_000;

/// All options, in the order of help: 1.0's names are written with underscores, others with dashes. 1.0.20's defaults,
/// but for `Legacy`, which has 0.5's.
pub const OPTIONS: [(OptionGroup, &[Row]); 6] = [
    (OptionGroup::Oltp, OLTP),
    (OptionGroup::RandomPoints, RANDOM_POINTS),
    (OptionGroup::RandomRanges, RANDOM_RANGES),
    (OptionGroup::Legacy, LEGACY),
    (OptionGroup::Random, RANDOM),
    (OptionGroup::Database, DATABASE),
];

#[rustfmt::skip]
const OLTP: &[Row] = &[
    Row::new("auto_inc", "on", Flag(|o, on| o.auto_inc = on),
        "Let the server number inserted rows. Otherwise the client does").with_old_name("oltp-auto-inc"),
    Row::new("create_secondary", "on", Flag(|o, on| o.create_secondary = on),
        "Create an index on column k").with_old_name("oltp-create-secondary"),
    Row::new("create_table_options", "", TABLE_OPTIONS, "Text to append to CREATE TABLE"),
    Row::new("delete_inserts", "1", Whole(0, COUNT_MAX, |o, n| o.delete_inserts = n),
        "Pairs of DELETE and INSERT per transaction").with_old_name("oltp-delete-inserts"),
    Row::new("distinct_ranges", "1", Whole(0, COUNT_MAX, |o, n| o.distinct_ranges = n),
        "SELECT DISTINCT range queries per transaction").with_old_name("oltp-distinct-ranges"),
    Row::new("index_updates", "1", Whole(0, COUNT_MAX, |o, n| o.index_updates = n),
        "Updates of the indexed column per transaction").with_old_name("oltp-index-updates"),
    Row::new("mysql_storage_engine", "innodb", ENGINE, "Storage engine of the tables, on MySQL"),
    Row::new("non_index_updates", "1", Whole(0, COUNT_MAX, |o, n| o.non_index_updates = n),
        "Updates of the column without index per transaction").with_old_name("oltp-non-index-updates"),
    Row::new("order_ranges", "1", Whole(0, COUNT_MAX, |o, n| o.order_ranges = n),
        "SELECT ... ORDER BY range queries per transaction").with_old_name("oltp-order-ranges"),
    Row::new("pgsql_variant", "", Choice(&["redshift"], |_, _| {}), "Accepted for old scripts; without effect"),
    Row::new("point_selects", "10", Whole(0, COUNT_MAX, |o, n| o.point_selects = n),
        "Point selects per transaction").with_old_name("oltp-point-selects"),
    Row::new("range_selects", "on", Flag(|o, on| o.range_selects = on),
        "Off leaves out all range queries").with_old_name("oltp-range-selects"),
    Row::new("range_size", "100", Whole(1, ROWS_MAX, |o, n| o.range_size = n),
        "Rows per range query").with_old_name("oltp-range-size"),
    Row::new("secondary", "off", Flag(|o, on| o.secondary = on),
        "Index id with a secondary index, have no primary key"),
    Row::new("simple_ranges", "1", Whole(0, COUNT_MAX, |o, n| o.simple_ranges = n),
        "Simple range queries per transaction").with_old_name("oltp-simple-ranges"),
    Row::new("reconnect", "0", Whole(0, ROWS_MAX, |o, n| o.reconnect = n),
        "Close each connection after this number of transactions and open another; 0 is never"),
    Row::new("skip_trx", "off", Flag(|o, on| o.skip_trx = on),
        "Send no BEGIN and COMMIT: every statement commits itself").with_old_name("oltp-skip-trx"),
    Row::new("sum_ranges", "1", Whole(0, COUNT_MAX, |o, n| o.sum_ranges = n),
        "SELECT SUM() range queries per transaction").with_old_name("oltp-sum-ranges"),
    Row::new("table_size", "10000", Whole(0, ROWS_MAX, |o, n| o.table_size = n),
        "Rows per table").with_old_name("oltp-table-size"),
    Row::new("tables", "1", Whole(1, COUNT_MAX, |o, n| o.tables = n),
        "Number of tables").with_old_name("oltp-tables-count"),
];

const TABLE_OPTIONS: OptionValues<SysbenchOptions> = Text("a text", |o, text| {
    o.create_table_options = text.to_owned();
    Ok(())
});

/// An empty name leaves the engine.
const ENGINE: OptionValues<SysbenchOptions> = Text("a text", |o, name| {
    if !name.is_empty() {
        o.mysql_storage_engine = name.to_owned();
    }
    Ok(())
});

#[rustfmt::skip]
const RANDOM_POINTS: &[Row] = &[
    Row::new("random_points", "10", Whole(1, PLACEHOLDERS_MAX, |o, n| o.random_points = n),
        "Random keys per SELECT ... IN (...)"),
];

#[rustfmt::skip]
const RANDOM_RANGES: &[Row] = &[
    Row::new("delta", "5", Whole(0, ROWS_MAX, |o, n| o.delta = n), "Width of each BETWEEN range"),
    Row::new("number_of_ranges", "10", Whole(1, PLACEHOLDERS_MAX / 2, |o, n| o.number_of_ranges = n),
        "Random BETWEEN ranges per SELECT"),
];

#[rustfmt::skip]
const LEGACY: &[Row] = &[
    Row::new("oltp-read-only", "off", Flag(|o, on| o.read_only = on), "Leave out all writing statements"),
    Row::new("oltp-secondary", "", Text("a text", |o, _| { o.secondary = true; Ok(()) }),
        "Any value: index id with a secondary index, have no primary key"),
    Row::new("oltp-write-only", "off", Flag(|o, on| o.write_only = on), "Leave out all reading statements"),
    Row::new("mysql-table-engine", "innodb", ENGINE, "Storage engine of the tables, on MySQL"),
    Row::new("mysql-engine-trx", "auto", Choice(&["auto", "yes", "no"], |o, at| {
        use EngineTransactions::{Auto, No, Yes};
        o.engine_transactions = [Auto, Yes, No][at];
    }), "Whether the engine knows transactions: auto, yes, no (then LOCK TABLES)"),
    Row::new("mysql-table-options", "", TABLE_OPTIONS, "Text to append to CREATE TABLE, on MySQL"),
    Row::new("myisam-max-rows", "1000000", Whole(1, u32::MAX, |o, n| o.myisam_max_rows = n),
        "MAX_ROWS of the tables, on MySQL"),
];

#[rustfmt::skip]
const RANDOM: &[Row] = &[
    Row::new("rand-type", "special",
        Choice(&["uniform", "gaussian", "special", "pareto", "zipfian"], |o, at| {
            o.random.distribution = KeyDistribution::ALL[at];
        }), "Distribution of ids and keys: uniform, gaussian, special, pareto, zipfian"),
    Row::new("rand-spec-iter", "12", Whole(1, COUNT_MAX, |o, n| o.random.iterations = n),
        "Uniform numbers whose mean is drawn (gaussian, special)"),
    Row::new("rand-spec-pct", "1", Whole(0, 100, |o, n| o.random.hot_width_percent = n),
        "Width of the hot window in percent (special)"),
    Row::new("rand-spec-res", "75", Whole(0, 100, |o, n| o.random.hot_share_percent = n),
        "Percent of the draws that go to the hot window (special)"),
    Row::new("rand-pareto-h", "0.2", Text("a number between 0 and 1, both excluded", |o, value| {
        o.random.pareto_h = number(value, |h| h > 0.0 && h < 1.0)
            .ok_or("a number between 0 and 1, both excluded")?;
        Ok(())
    }), "The h of the power law (pareto)").with_metavariable("N"),
    Row::new("rand-zipfian-exp", "0.8", Text("a number that is not negative", |o, value| {
        o.random.zipfian_exponent =
            number(value, |exponent| exponent >= 0.0).ok_or("a number that is not negative")?;
        Ok(())
    }), "The exponent (zipfian)").with_metavariable("N"),
];

const DATABASE: &[Row] = &[Row::new(
    "db-ps-mode",
    "auto",
    Choice(&["auto", "disable"], |o, at| o.prepared = at == 0 && !o.test.is_legacy()),
    "Prepared statements: auto or disable (the scripts of 0.5 send text in any case)",
)];

/// A number for which `accept` holds.
fn number(value: &str, accept: impl Fn(f64) -> bool) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| number.is_finite() && accept(*number))
}

/// The name in PostgreSQL's client library of the result of a statement that failed.
pub const PGRES_FATAL_ERROR: u32 = 7;

/// The answers of MySQL's client library when a connection is lost within a statement, and before it.
const LOST: (u32, &str) = (2013, "HY000");
const GONE: u32 = 2006;

/// Number, SQLSTATE and message of an error of a statement in the client library of MySQL. The library gives no reason
/// where a connection was lost: it is added.
pub fn mysql_error(error: &DbError) -> (u32, &str, Cow<'_, str>) {
    let ((lost, state), message) = (LOST, error.message());
    match (error.cause(), error.errno()) {
        (Cause::Lost, 0) => {
            (lost, state, format!("Lost connection to server during query: {message}").into())
        }
        (Cause::Lost, GONE) if !error.is_from_server() => {
            (GONE, state, format!("Server has gone away: {message}").into())
        }
        (Cause::Protocol, 0) => (lost, state, message.into()),
        (_, errno) => (errno, error.sqlstate(), message.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_reach_every_test_by_its_name() {
        let offered: Vec<&str> = OFFER.tests.iter().map(|test| test.name).collect();
        for test in SysbenchTest::ALL {
            assert!(offered.contains(&test.name()), "{}", test.name());
        }
        assert!(offered.iter().all(|name| SysbenchTest::from_script(name).is_some()));
    }

    #[test]
    fn the_words_of_the_table_are_those_of_the_distributions() {
        for (_, rows) in OPTIONS {
            dyno_core::options::check_table(rows, || SysbenchOptions::new(SysbenchTest::ReadWrite));
        }
        let words = RANDOM.iter().find_map(|row| match row.kind {
            Choice(words, _) => Some(words),
            _ => None,
        });
        assert_eq!(words, Some(&KeyDistribution::ALL.map(KeyDistribution::name)[..]));
    }

    #[test]
    fn what_has_no_number_of_a_server_is_a_lost_connection() {
        let disconnected = DbError::lost("gone");
        let message = "Lost connection to server during query: gone".into();
        assert_eq!(mysql_error(&disconnected), (2013, "HY000", message));
        let broken = DbError::protocol("an answer is too long");
        assert_eq!(mysql_error(&broken), (2013, "HY000", "an answer is too long".into()));
        let killed = DbError::closed(1927, *b"70100", "killed");
        assert_eq!(mysql_error(&killed), (1927, "70100", "killed".into()));
    }
}
