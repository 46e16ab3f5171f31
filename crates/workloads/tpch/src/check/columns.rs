//! What the columns of the answers are, and when two values of them are equal (clause 2.1.3.5).

use Class::{Average, Integer, Number, Quantity, Sum, Text};
use dyno_facts::{Message, say};

/// The class of a column: how far a value may be from the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Text and dates: equal but for blanks at the end, which fixed lengths add.
    Text,
    /// Keys, years, counts: equal.
    Integer,
    /// A value of a column with decimals: equal at two decimals.
    Number,
    /// A sum of whole numbers: equal at two decimals.
    Quantity,
    /// A sum of money: within 100.00.
    Sum,
    /// An average or a ratio of sums: rounded to two decimals, within one percent.
    Average,
}

type Columns = &'static [(&'static str, Class)];

/// Names and classes of the columns of an answer, in order.
pub(super) fn columns(query: u8) -> Columns {
    match query {
        1 => &[
            ("l_returnflag", Text),
            ("l_linestatus", Text),
            ("sum_qty", Quantity),
            ("sum_base_price", Sum),
            ("sum_disc_price", Sum),
            ("sum_charge", Sum),
            ("avg_qty", Average),
            ("avg_price", Average),
            ("avg_disc", Average),
            ("count_order", Integer),
        ],
        2 => &[
            ("s_acctbal", Number),
            ("s_name", Text),
            ("n_name", Text),
            ("p_partkey", Integer),
            ("p_mfgr", Text),
            ("s_address", Text),
            ("s_phone", Text),
            ("s_comment", Text),
        ],
        3 => &[
            ("l_orderkey", Integer),
            ("revenue", Sum),
            ("o_orderdate", Text),
            ("o_shippriority", Integer),
        ],
        10 => &[
            ("c_custkey", Integer),
            ("c_name", Text),
            ("revenue", Sum),
            ("c_acctbal", Number),
            ("n_name", Text),
            ("c_address", Text),
            ("c_phone", Text),
            ("c_comment", Text),
        ],
        15 => &[
            ("s_suppkey", Integer),
            ("s_name", Text),
            ("s_address", Text),
            ("s_phone", Text),
            ("total_revenue", Sum),
        ],
        18 => &[
            ("c_name", Text),
            ("c_custkey", Integer),
            ("o_orderkey", Integer),
            ("o_orderdate", Text),
            ("o_totalprice", Number),
            ("sum(l_quantity)", Quantity),
        ],
        _ => narrow(query),
    }
}

/// The answers of few columns.
fn narrow(query: u8) -> Columns {
    match query {
        4 => &[("o_orderpriority", Text), ("order_count", Integer)],
        5 => &[("n_name", Text), ("revenue", Sum)],
        6 | 19 => &[("revenue", Sum)],
        7 => &[("supp_nation", Text), ("cust_nation", Text), ("l_year", Integer), ("revenue", Sum)],
        8 => &[("o_year", Integer), ("mkt_share", Average)],
        9 => &[("nation", Text), ("o_year", Integer), ("sum_profit", Sum)],
        11 => &[("ps_partkey", Integer), ("value", Sum)],
        12 => &[("l_shipmode", Text), ("high_line_count", Integer), ("low_line_count", Integer)],
        13 => &[("c_count", Integer), ("custdist", Integer)],
        14 => &[("promo_revenue", Average)],
        16 => {
            &[("p_brand", Text), ("p_type", Text), ("p_size", Integer), ("supplier_cnt", Integer)]
        }
        17 => &[("avg_yearly", Average)],
        20 => &[("s_name", Text), ("s_address", Text)],
        21 => &[("s_name", Text), ("numwait", Integer)],
        22 => &[("cntrycode", Integer), ("numcust", Integer), ("totacctbal", Sum)],
        _ => panic!("TPC-H has no query {query}"),
    }
}

/// The columns by which a query orders its rows, where several rows may have the same values in
/// them; empty where the order leaves no choice.
pub(super) fn ambiguous_order(query: u8) -> &'static [usize] {
    match query {
        3 => &[1, 2],
        5 | 11 => &[1],
        10 => &[2],
        18 => &[4, 3],
        _ => &[],
    }
}

impl Class {
    /// Whether `found` is as good as `expected`; `None` is NULL.
    pub(super) fn agrees(self, expected: Option<&str>, found: Option<&str>) -> bool {
        let (Some(expected), Some(found)) = (expected, found) else { return expected == found };
        if self == Class::Text {
            return expected.trim_end() == found.trim_end();
        }
        let (Some(expected), Some(found)) = (number(expected), number(found)) else { return false };
        let distance = (expected - found).abs();
        match self {
            Class::Text => false,
            Class::Integer => expected == found,
            Class::Number | Class::Quantity => distance < 0.005,
            // Half a cent, because the reference is rounded.
            Class::Sum => distance <= 100.005,
            Class::Average => {
                let (expected, found) = (hundredths(expected), hundredths(found));
                // In hundredths whole numbers: 0.99 v <= r <= 1.01 v without a rounding of its own.
                (found - expected).abs() * 100.0 <= expected.abs()
            }
        }
    }

    /// A value that does not agree, with what would have been allowed.
    pub(super) fn difference(self, column: &str, wanted: &str, found: &str) -> Message {
        match self {
            Class::Text | Class::Integer | Class::Number | Class::Quantity => {
                say!(value_differs, column = column, found = found, wanted = wanted)
            }
            Class::Sum => say!(sum_differs, column = column, found = found, wanted = wanted),
            Class::Average => {
                say!(average_differs, column = column, found = found, wanted = wanted)
            }
        }
    }
}

/// Whether two values are the same to an `order by`: sums are exact to four decimals or nearly so.
pub(super) fn ties(a: Option<&str>, b: Option<&str>) -> bool {
    match (a.and_then(number), b.and_then(number)) {
        (Some(a), Some(b)) => (a - b).abs() < 0.000_05,
        _ => a.map(str::trim_end) == b.map(str::trim_end),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round()
}
