//! The columns of each row as a [`RowWriter`] takes them, without an allocation of our own.

use dyno_core::RowWriter;
use std::fmt::{self, Display, Write};
use std::sync::LazyLock;
use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{Customer, LineItem, Nation, Order, Part, PartSupp, Region, Supplier};

/// Every day of the data as text, by its index.
static DAYS: LazyLock<Vec<[u8; 10]>> = LazyLock::new(|| {
    let text = |day| {
        let text = TPCHDate::new(MIN_GENERATE_DATE + day).to_string();
        std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(b'?'))
    };
    (0..TOTAL_DATE_RANGE).map(text).collect()
});

/// Writes rows; holds the longest text that tpchgen can only format (`p_name`, 55 characters).
pub(super) struct Cells {
    days: &'static [[u8; 10]],
    text: Buffer,
}

struct Buffer {
    bytes: [u8; 64],
    length: usize,
}

impl Write for Buffer {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let space = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        space.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl Cells {
    pub(super) fn new() -> Cells {
        Cells { days: &DAYS, text: Buffer { bytes: [0; 64], length: 0 } }
    }

    #[inline]
    fn day(&self, day: TPCHDate, out: &mut dyn RowWriter) {
        out.text(&self.days[day.into_inner() as usize]);
    }

    #[inline]
    fn write_displayed(&mut self, value: &impl Display, out: &mut dyn RowWriter) {
        self.text.length = 0;
        // The buffer is longer than any column that is written here.
        let _ = write!(self.text, "{value}");
        out.text(&self.text.bytes[..self.text.length]);
    }

    #[inline]
    pub(super) fn lineitem(&mut self, row: &LineItem<'_>, out: &mut dyn RowWriter) {
        out.int(row.l_orderkey);
        out.int(row.l_partkey);
        out.int(row.l_suppkey);
        out.int(i64::from(row.l_linenumber));
        out.int(row.l_quantity);
        money(row.l_extendedprice, out);
        money(row.l_discount, out);
        money(row.l_tax, out);
        out.text(row.l_returnflag.as_bytes());
        out.text(row.l_linestatus.as_bytes());
        self.day(row.l_shipdate, out);
        self.day(row.l_commitdate, out);
        self.day(row.l_receiptdate, out);
        out.text(row.l_shipinstruct.as_bytes());
        out.text(row.l_shipmode.as_bytes());
        out.text(row.l_comment.as_bytes());
    }

    #[inline]
    pub(super) fn order(&mut self, row: &Order<'_>, out: &mut dyn RowWriter) {
        out.int(row.o_orderkey);
        out.int(row.o_custkey);
        out.text(row.o_orderstatus.as_str().as_bytes());
        money(row.o_totalprice, out);
        self.day(row.o_orderdate, out);
        out.text(row.o_orderpriority.as_bytes());
        self.write_displayed(&row.o_clerk, out);
        out.int(i64::from(row.o_shippriority));
        out.text(row.o_comment.as_bytes());
    }

    #[inline]
    pub(super) fn partsupp(&mut self, row: &PartSupp<'_>, out: &mut dyn RowWriter) {
        out.int(row.ps_partkey);
        out.int(row.ps_suppkey);
        out.int(i64::from(row.ps_availqty));
        money(row.ps_supplycost, out);
        out.text(row.ps_comment.as_bytes());
    }

    pub(super) fn part(&mut self, row: &Part<'_>, out: &mut dyn RowWriter) {
        out.int(row.p_partkey);
        self.write_displayed(&row.p_name, out);
        self.write_displayed(&row.p_mfgr, out);
        self.write_displayed(&row.p_brand, out);
        out.text(row.p_type.as_bytes());
        out.int(i64::from(row.p_size));
        out.text(row.p_container.as_bytes());
        money(row.p_retailprice, out);
        out.text(row.p_comment.as_bytes());
    }

    pub(super) fn customer(&mut self, row: &Customer<'_>, out: &mut dyn RowWriter) {
        out.int(row.c_custkey);
        self.write_displayed(&row.c_name, out);
        self.write_displayed(&row.c_address, out);
        out.int(row.c_nationkey);
        self.write_displayed(&row.c_phone, out);
        money(row.c_acctbal, out);
        out.text(row.c_mktsegment.as_bytes());
        out.text(row.c_comment.as_bytes());
    }

    pub(super) fn supplier(&mut self, row: &Supplier, out: &mut dyn RowWriter) {
        out.int(row.s_suppkey);
        self.write_displayed(&row.s_name, out);
        self.write_displayed(&row.s_address, out);
        out.int(row.s_nationkey);
        self.write_displayed(&row.s_phone, out);
        money(row.s_acctbal, out);
        out.text(row.s_comment.as_bytes());
    }

    pub(super) fn nation(&mut self, row: &Nation<'_>, out: &mut dyn RowWriter) {
        out.int(row.n_nationkey);
        out.text(row.n_name.as_bytes());
        out.int(row.n_regionkey);
        out.text(row.n_comment.as_bytes());
    }

    pub(super) fn region(&mut self, row: &Region<'_>, out: &mut dyn RowWriter) {
        out.int(row.r_regionkey);
        out.text(row.r_name.as_bytes());
        out.text(row.r_comment.as_bytes());
    }
}

/// Writes hundredths as `-999.99`.
#[inline]
fn money(value: TPCHDecimal, out: &mut dyn RowWriter) {
    let cents = value.into_inner();
    let mut digits = [b'0'; 21];
    let mut at = digits.len();
    let mut rest = cents.unsigned_abs();
    let mut written = 0;
    while rest > 0 || written < 3 {
        if written == 2 {
            at -= 1;
            digits[at] = b'.';
        }
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        written += 1;
    }
    if cents < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.text(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Last(String);

    impl RowWriter for Last {
        fn int(&mut self, value: i64) {
            self.0 = value.to_string();
        }
        fn double(&mut self, value: f64) {
            self.0 = value.to_string();
        }
        fn text(&mut self, value: &[u8]) {
            self.0 = String::from_utf8_lossy(value).into_owned();
        }
        fn null(&mut self) {
            self.0 = "NULL".to_owned();
        }
    }

    #[test]
    fn money_is_written_as_the_generator_shows_it() {
        for cents in [0, 1, -1, 9, 10, 99, 100, -100, 12_345, -99_999, i64::MAX, i64::MIN + 1] {
            let mut last = Last::default();
            money(TPCHDecimal(cents), &mut last);
            assert_eq!(last.0, TPCHDecimal(cents).to_string());
        }
    }

    #[test]
    fn the_first_and_the_last_day() {
        assert_eq!(DAYS.first(), Some(b"1992-01-01"));
        assert_eq!(DAYS.last(), Some(b"1998-12-31"));
    }
}
