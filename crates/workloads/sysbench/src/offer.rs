//! The sysbench family as suites name it.

use crate::table::{OPTIONS, OptionSpec};
use dyno_core::offer::{DataSizing, Levels, Scale, TestOffer, UsualPace, WorkloadOffer};

/// sysbench 1.0.20 and 0.5 as suites name them. Where both have a test of a name, it is the one of 1.0.
pub const OFFER: WorkloadOffer = WorkloadOffer {
    name: "sysbench",
    tests: &[
        v1("oltp_point_select"),
        v1("oltp_read_only"),
        v1("oltp_write_only"),
        v1("oltp_read_write"),
        v1("oltp_update_index"),
        v1("oltp_update_non_index"),
        v1("oltp_insert"),
        v1("oltp_delete"),
        v1("select_random_points"),
        v1("select_random_ranges"),
        TestOffer { name: "bulk_insert", size: None },
        v05("oltp"),
        v05("oltp_simple"),
        v05("select"),
        v05("insert"),
        v05("delete"),
        v05("update_index"),
        v05("update_non_index"),
    ],
    levels: Levels::Workers,
    workers_alias: None,
    options: || OPTIONS.iter().map(OptionSpec::describe).collect(),
    has_stages: true,
    pace: UsualPace::loading(100_000.0),
};

const fn v1(name: &'static str) -> TestOffer {
    tables(name, "table_size", "tables")
}

const fn v05(name: &'static str) -> TestOffer {
    tables(name, "oltp_table_size", "oltp_tables_count")
}

const fn tables(name: &'static str, rows: &'static str, tables: &'static str) -> TestOffer {
    let rows = Scale { option: rows, default: 10_000 };
    let tables = Scale { option: tables, default: 1 };
    TestOffer { name, size: Some(DataSizing::Tables { rows, tables }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SysbenchTest;

    #[test]
    fn suites_reach_every_test_by_its_name() {
        let offered: Vec<&str> = OFFER.tests.iter().map(|test| test.name).collect();
        for test in SysbenchTest::ALL {
            assert!(offered.contains(&test.name()), "{}", test.name());
        }
        assert!(offered.iter().all(|name| SysbenchTest::from_script(name).is_some()));
    }
}
