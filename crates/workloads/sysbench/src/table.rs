//! Every option of every test: one table for parsing and for help.

use crate::options::{LegacyTest, SysbenchOptions, SysbenchTest};
use crate::parse::{distribution, engine_transactions, exact_switch, number, switch, whole, word};
use dyno_core::options::{OptionDoc, Shape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `on` or `off`; `--name` alone is `on`.
    Switch,
    /// A switch of 0.5, which knows exactly the words `on` and `off`.
    ExactSwitch,
    Number,
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionGroup {
    /// All tests: the random numbers.
    Random,
    /// All tests: how statements are sent.
    Database,
    /// The tests of 1.0 that work on the usual tables.
    Oltp,
    /// `select_random_points` of both families.
    RandomPoints,
    /// `select_random_ranges` of both families.
    RandomRanges,
    /// The scripts of 0.5.
    Legacy,
}

#[derive(Debug)]
pub struct OptionSpec {
    /// The name as help prints it: with underscores in 1.0's scripts, with dashes elsewhere.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// The default as it would be typed; empty when there is none.
    pub default: &'static str,
    pub help: &'static str,
    pub group: OptionGroup,
    pub(crate) set: fn(&mut SysbenchOptions, &str) -> Result<(), String>,
}

impl OptionSpec {
    /// True when an empty value means something of its own.
    pub(crate) fn takes_empty(&self) -> bool {
        self.kind == OptionKind::Switch || self.name == "oltp-secondary"
    }

    /// The option as help and documentation of suites show it.
    pub(crate) fn describe(&self) -> OptionDoc {
        let values = match self.kind {
            OptionKind::Switch | OptionKind::ExactSwitch => "true or false",
            OptionKind::Number => "a number",
            OptionKind::Text => "a text",
        };
        let scope = match self.group {
            OptionGroup::Random | OptionGroup::Database => "",
            OptionGroup::Oltp => "sysbench 1.0",
            OptionGroup::RandomPoints => "in `select_random_points`",
            OptionGroup::RandomRanges => "in `select_random_ranges`",
            OptionGroup::Legacy => "sysbench 0.5",
        };
        OptionDoc {
            name: self.name.replace('-', "_"),
            shape: Shape::Single,
            values: values.to_owned(),
            default: match self.default {
                "on" => "true",
                "off" => "false",
                default => default,
            },
            doc: self.help,
            scope: scope.to_owned(),
        }
    }

    pub(crate) fn is_exact_switch(&self) -> bool {
        self.kind == OptionKind::ExactSwitch
    }

    fn is_known_to(&self, test: SysbenchTest) -> bool {
        let points = [
            SysbenchTest::SelectRandomPoints,
            SysbenchTest::Legacy(LegacyTest::SelectRandomPoints),
        ];
        let ranges = [
            SysbenchTest::SelectRandomRanges,
            SysbenchTest::Legacy(LegacyTest::SelectRandomRanges),
        ];
        match self.group {
            OptionGroup::Random | OptionGroup::Database => true,
            OptionGroup::Oltp => !test.is_legacy() && !test.is_bulk_insert(),
            OptionGroup::RandomPoints => points.contains(&test),
            OptionGroup::RandomRanges => ranges.contains(&test),
            OptionGroup::Legacy => test.is_legacy(),
        }
    }
}

/// The options that `test` knows, in the order of [`OPTIONS`].
pub fn options_of(test: SysbenchTest) -> impl Iterator<Item = &'static OptionSpec> {
    OPTIONS.iter().filter(move |spec| spec.is_known_to(test))
}

/// MySQL allows as many placeholders in one statement.
const PLACEHOLDERS_MAX: u32 = 65_535;
/// `id` and `k` are signed 32-bit integers.
const ROWS_MAX: u32 = i32::MAX as u32;
const COUNT_MAX: u32 = 1_000_000;

macro_rules! option {
    ($group:ident $kind:ident $name:literal [$default:literal] $help:literal,
     |$options:ident, $value:ident| $set:expr) => {
        OptionSpec {
            name: $name,
            kind: OptionKind::$kind,
            default: $default,
            help: $help,
            group: OptionGroup::$group,
            set: |$options: &mut SysbenchOptions, $value: &str| {
                $set;
                Ok(())
            },
        }
    };
}

/// All options. 1.0.20's defaults, but for `Legacy`, which has 0.5's.
pub const OPTIONS: &[OptionSpec] = &[
    option!(Oltp Switch "auto_inc" ["on"]
        "Let the server number inserted rows. Otherwise the client does",
        |o, v| o.auto_inc = switch(v)?),
    option!(Oltp Switch "create_secondary" ["on"] "Create an index on column k",
        |o, v| o.create_secondary = switch(v)?),
    option!(Oltp Text "create_table_options" [""] "Text to append to CREATE TABLE",
        |o, v| o.create_table_options = v.to_owned()),
    option!(Oltp Number "delete_inserts" ["1"] "Pairs of DELETE and INSERT per transaction",
        |o, v| o.delete_inserts = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Number "distinct_ranges" ["1"] "SELECT DISTINCT range queries per transaction",
        |o, v| o.distinct_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Number "index_updates" ["1"] "Updates of the indexed column per transaction",
        |o, v| o.index_updates = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Text "mysql_storage_engine" ["innodb"] "Storage engine of the tables, on MySQL",
        |o, v| o.mysql_storage_engine = v.to_owned()),
    option!(Oltp Number "non_index_updates" ["1"]
        "Updates of the column without index per transaction",
        |o, v| o.non_index_updates = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Number "order_ranges" ["1"] "SELECT ... ORDER BY range queries per transaction",
        |o, v| o.order_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Text "pgsql_variant" [""] "Accepted for old scripts; without effect",
        |_o, v| word(v, &[("redshift", ())])?),
    option!(Oltp Number "point_selects" ["10"] "Point selects per transaction",
        |o, v| o.point_selects = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Switch "range_selects" ["on"] "Off leaves out all range queries",
        |o, v| o.range_selects = switch(v)?),
    option!(Oltp Number "range_size" ["100"] "Rows per range query",
        |o, v| o.range_size = whole(v, 1, ROWS_MAX)?),
    option!(Oltp Switch "secondary" ["off"] "Index id with a secondary index, have no primary key",
        |o, v| o.secondary = switch(v)?),
    option!(Oltp Number "simple_ranges" ["1"] "Simple range queries per transaction",
        |o, v| o.simple_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Number "reconnect" ["0"]
        "Close each connection after so many transactions and open another; 0 is never",
        |o, v| o.reconnect = whole(v, 0, ROWS_MAX)?),
    option!(Oltp Switch "skip_trx" ["off"] "Send no BEGIN and COMMIT: every statement commits itself",
        |o, v| o.skip_trx = switch(v)?),
    option!(Oltp Number "sum_ranges" ["1"] "SELECT SUM() range queries per transaction",
        |o, v| o.sum_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Oltp Number "table_size" ["10000"] "Rows per table",
        |o, v| o.table_size = whole(v, 0, ROWS_MAX)?),
    option!(Oltp Number "tables" ["1"] "Number of tables",
        |o, v| o.tables = whole(v, 1, COUNT_MAX)?),
    option!(RandomPoints Number "random_points" ["10"] "Random keys per SELECT ... IN (...)",
        |o, v| o.random_points = whole(v, 1, PLACEHOLDERS_MAX)?),
    option!(RandomRanges Number "delta" ["5"] "Width of each BETWEEN range",
        |o, v| o.delta = whole(v, 0, ROWS_MAX)?),
    option!(RandomRanges Number "number_of_ranges" ["10"] "Random BETWEEN ranges per SELECT",
        |o, v| o.number_of_ranges = whole(v, 1, PLACEHOLDERS_MAX / 2)?),
    option!(Legacy ExactSwitch "oltp-auto-inc" ["on"]
        "Let the server number inserted rows. Otherwise the client does",
        |o, v| o.auto_inc = exact_switch(v, true)),
    option!(Legacy ExactSwitch "oltp-create-secondary" ["on"] "Create an index on column k",
        |o, v| o.create_secondary = exact_switch(v, true)),
    option!(Legacy Number "oltp-delete-inserts" ["1"] "Pairs of DELETE and INSERT per transaction",
        |o, v| o.delete_inserts = whole(v, 0, COUNT_MAX)?),
    option!(Legacy Number "oltp-distinct-ranges" ["1"]
        "SELECT DISTINCT range queries per transaction",
        |o, v| o.distinct_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Legacy Number "oltp-index-updates" ["1"]
        "Updates of the indexed column per transaction",
        |o, v| o.index_updates = whole(v, 0, COUNT_MAX)?),
    option!(Legacy Number "oltp-non-index-updates" ["1"]
        "Updates of the column without index per transaction",
        |o, v| o.non_index_updates = whole(v, 0, COUNT_MAX)?),
    option!(Legacy Number "oltp-order-ranges" ["1"]
        "SELECT ... ORDER BY range queries per transaction",
        |o, v| o.order_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Legacy Number "oltp-point-selects" ["10"] "Point selects per transaction",
        |o, v| o.point_selects = whole(v, 0, COUNT_MAX)?),
    option!(Legacy ExactSwitch "oltp-range-selects" ["on"] "off leaves out all range queries",
        |o, v| o.range_selects = exact_switch(v, true)),
    option!(Legacy Number "oltp-range-size" ["100"] "Rows per range query",
        |o, v| o.range_size = whole(v, 1, ROWS_MAX)?),
    option!(Legacy ExactSwitch "oltp-read-only" ["off"] "Leave out all writing statements",
        |o, v| o.read_only = exact_switch(v, false)),
    option!(Legacy Text "oltp-secondary" [""]
        "Any value: index id with a secondary index, have no primary key",
        |o, _v| o.secondary = true),
    option!(Legacy Number "oltp-simple-ranges" ["1"] "Simple range queries per transaction",
        |o, v| o.simple_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Legacy ExactSwitch "oltp-skip-trx" ["off"]
        "Send no BEGIN and COMMIT: every statement commits itself",
        |o, v| o.skip_trx = exact_switch(v, false)),
    option!(Legacy Number "oltp-sum-ranges" ["1"] "SELECT SUM() range queries per transaction",
        |o, v| o.sum_ranges = whole(v, 0, COUNT_MAX)?),
    option!(Legacy Number "oltp-table-size" ["10000"] "Rows per table",
        |o, v| o.table_size = whole(v, 0, ROWS_MAX)?),
    option!(Legacy Number "oltp-tables-count" ["1"] "Number of tables",
        |o, v| o.tables = whole(v, 1, COUNT_MAX)?),
    option!(Legacy ExactSwitch "oltp-write-only" ["off"] "Leave out all reading statements",
        |o, v| o.write_only = exact_switch(v, false)),
    option!(Legacy Text "mysql-table-engine" ["innodb"] "Storage engine of the tables, on MySQL",
        |o, v| o.mysql_storage_engine = v.to_owned()),
    option!(Legacy Text "mysql-engine-trx" ["auto"]
        "Whether the engine knows transactions: auto, yes, no (then LOCK TABLES)",
        |o, v| o.engine_transactions = engine_transactions(v)?),
    option!(Legacy Text "mysql-table-options" [""] "Text to append to CREATE TABLE, on MySQL",
        |o, v| o.create_table_options = v.to_owned()),
    option!(Legacy Number "myisam-max-rows" ["1000000"] "MAX_ROWS of the tables, on MySQL",
        |o, v| o.myisam_max_rows = whole(v, 1, u32::MAX)?),
    option!(Random Text "rand-type" ["special"]
        "Distribution of ids and keys: uniform, gaussian, special, pareto, zipfian",
        |o, v| o.random.distribution = distribution(v)?),
    option!(Random Number "rand-spec-iter" ["12"]
        "Uniform numbers whose mean is drawn (gaussian, special)",
        |o, v| o.random.iterations = whole(v, 1, COUNT_MAX)?),
    option!(Random Number "rand-spec-pct" ["1"] "Width of the hot window in percent (special)",
        |o, v| o.random.hot_width_percent = whole(v, 0, 100)?),
    option!(Random Number "rand-spec-res" ["75"]
        "Percent of the draws that go to the hot window (special)",
        |o, v| o.random.hot_share_percent = whole(v, 0, 100)?),
    option!(Random Number "rand-pareto-h" ["0.2"] "The h of the power law (pareto)",
        |o, v| o.random.pareto_h =
            number(v, |h| h > 0.0 && h < 1.0, "a number between 0 and 1, both excluded")?),
    option!(Random Number "rand-zipfian-exp" ["0.8"] "The exponent (zipfian)",
        |o, v| o.random.zipfian_exponent =
            number(v, |exponent| exponent >= 0.0, "a number that is not negative")?),
    option!(Database Text "db-ps-mode" ["auto"]
        "Prepared statements: auto or disable (the scripts of 0.5 send text in any case)",
        |o, v| o.prepared =
            word(v, &[("auto", true), ("disable", false)])? && !o.test.is_legacy()),
];
