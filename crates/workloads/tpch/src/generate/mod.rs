//! The rows of the eight tables (clause 4.2), made by the crate tpchgen, which makes what dbgen makes.
//!
//! The first row of a process takes about 1.5 s of CPU and 300 MB of memory: the pool that all comments
//! are cut from. Threads share it, processes don't.

pub mod files;
pub mod refresh;

use crate::parameters::{MODULUS, Stream};
use crate::schema::SchemaTable;
use dyno_core::{RowSource, RowWriter};
use dyno_load::LoadError;
use std::fmt::{Display, Write};
use std::sync::LazyLock;
use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, Nation, NationGenerator, Order,
    OrderGenerator, Part, PartGenerator, PartSupp, PartSuppGenerator, Region, RegionGenerator,
    Supplier, SupplierGenerator,
};
use tpchgen::text::TextPool;

/// Rows in dbgen's order. Money is written as text (`-999.99`), days as `1992-01-01`, `l_quantity` as a whole number.
pub struct TpchRows {
    make: Box<dyn Fn() -> Rows + Send>,
    rows: Rows,
    cells: Cells,
}

/// Writes the next row, and says if there was one.
type Rows = Box<dyn FnMut(&mut Cells, &mut dyn RowWriter) -> bool + Send>;

fn make_rows<T>(
    mut rows: impl Iterator<Item = T> + Send + 'static,
    write: impl Fn(&mut Cells, T, &mut dyn RowWriter) + Send + 'static,
) -> Rows {
    Box::new(move |cells, out| rows.next().map(|row| write(cells, row, out)).is_some())
}

impl TpchRows {
    fn new(make: impl Fn() -> Rows + Send + 'static) -> TpchRows {
        let cells = Cells { days: &DAYS, text: String::with_capacity(64) };
        TpchRows { rows: make(), make: Box::new(make), cells }
    }

    /// The rows of part `part` of `parts` (both from 1) of a table: the parts one after another are the whole
    /// table. Region and nation are in part 1, a part beyond `parts` is empty. `scale` is one that
    /// [`check_scale`] accepts. Makes the pool of text if no one has.
    pub fn for_part(table: SchemaTable, scale: f64, part: u32, parts: u32) -> TpchRows {
        TpchRows::new(move || part_rows(table, scale, part, parts))
    }
}

fn part_rows(table: SchemaTable, scale: f64, part: u32, parts: u32) -> Rows {
    let Some((i, n)) = existing_part(table, part, parts) else {
        return Box::new(|_, _| false);
    };
    match table {
        SchemaTable::Region => {
            make_rows(RegionGenerator::new(scale, i, n).iter(), Cells::write_region)
        }
        SchemaTable::Nation => {
            make_rows(NationGenerator::new(scale, i, n).iter(), Cells::write_nation)
        }
        SchemaTable::Supplier => {
            make_rows(SupplierGenerator::new(scale, i, n).iter(), Cells::write_supplier)
        }
        SchemaTable::Part => make_rows(PartGenerator::new(scale, i, n).iter(), Cells::write_part),
        SchemaTable::Partsupp => {
            make_rows(PartSuppGenerator::new(scale, i, n).iter(), Cells::write_partsupp)
        }
        SchemaTable::Customer => {
            make_rows(CustomerGenerator::new(scale, i, n).iter(), Cells::write_customer)
        }
        SchemaTable::Orders => {
            make_rows(OrderGenerator::new(scale, i, n).iter(), Cells::write_order)
        }
        SchemaTable::Lineitem => {
            make_rows(LineItemGenerator::new(scale, i, n).iter(), Cells::write_lineitem)
        }
    }
}

impl RowSource for TpchRows {
    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        (self.rows)(&mut self.cells, out)
    }

    fn restart(&mut self) {
        self.rows = (self.make)();
    }
}

/// Makes the pool of text now, so that what is timed afterwards does not pay for it.
pub fn prepare() {
    TextPool::get_or_init_default();
}

/// Start of the stream of line counts: column `O_LCNT`.
const LINE_COUNT_SEED: u64 = 1_434_868_289;
const LINES_MAX: u64 = 7;

/// The exact number of a table's rows; lineitem's is counted from the stream of line counts, which
/// takes 3 ms for each unit of the scale factor, and some seconds at the most.
pub fn row_count(table: SchemaTable, scale: f64) -> u64 {
    part_row_count(table, scale, 1, 1)
}

/// The number of a part and how many there are, as tpchgen counts them; `None` if the part has no rows.
fn existing_part(table: SchemaTable, part: u32, parts: u32) -> Option<(i32, i32)> {
    let is_small = matches!(table, SchemaTable::Region | SchemaTable::Nation);
    let exists = (1..=parts).contains(&part) && (part == 1 || !is_small);
    let (number, count) = if is_small { (1, 1) } else { (part, parts) };
    let (number, count) = (i32::try_from(number).ok()?, i32::try_from(count).ok()?);
    exists.then_some((number, count))
}

/// The rows of part `part` of `parts`, both from 1: what [`TpchRows::for_part`] makes.
pub fn part_row_count(table: SchemaTable, scale: f64, part: u32, parts: u32) -> u64 {
    let Some((number, count)) = existing_part(table, part, parts) else { return 0 };
    let rows = match table {
        SchemaTable::Region => 5,
        SchemaTable::Nation => 25,
        SchemaTable::Supplier => SupplierGenerator::calculate_row_count(scale, number, count),
        SchemaTable::Part => PartGenerator::calculate_row_count(scale, number, count),
        SchemaTable::Partsupp => 4 * PartSuppGenerator::calculate_row_count(scale, number, count),
        SchemaTable::Customer => CustomerGenerator::calculate_row_count(scale, number, count),
        SchemaTable::Orders => OrderGenerator::calculate_row_count(scale, number, count),
        SchemaTable::Lineitem => {
            let total_orders = OrderGenerator::calculate_row_count(scale, 1, 1) as u64;
            let before = total_orders / u64::from(parts) * u64::from(part - 1);
            let orders = OrderGenerator::calculate_row_count(scale, number, count) as u64;
            return count_lines(before, orders);
        }
    };
    rows as u64
}

/// The lines of `orders` orders that come after the first `before`.
fn count_lines(before: u64, orders: u64) -> u64 {
    // The generator walks through all numbers below its modulus: after a whole cycle the seven counts
    // of lines have come equally often.
    let cycle = MODULUS - 1;
    let mut stream = Stream::after(LINE_COUNT_SEED, before);
    let remainder: u64 =
        (0..orders % cycle).map(|_| 1 + stream.next_number() * LINES_MAX / MODULUS).sum();
    orders / cycle * (cycle * 4) + remainder
}

/// The largest scale factor of clause 4.1.3.1.
pub const SCALE_MAX: f64 = 100_000.0;

/// Accepts a scale factor of which consistent tables can be made: fractions too, also above 1.
pub fn check_scale(scale: f64) -> Result<(), LoadError> {
    if !(scale > 0.0 && scale <= SCALE_MAX) {
        return Err(LoadError::data(
            format!("The scale factor must be above 0 and at most {SCALE_MAX}, not {scale}."),
            "Use 1 for the smallest official size, 0.01 for a trial.",
        ));
    }
    if suppliers_differ(scale) {
        return Ok(());
    }
    Err(LoadError::data(
        format!(
            "The scale factor {scale} is too small: some parts would have a supplier twice, which \
             the primary key of partsupp forbids."
        ),
        "Use 0.01, or one above 0.025: all of these work.",
    ))
}

/// Returns true if the four suppliers of every part differ. Clause 4.2.3: supplier i of part p is
/// (p + i * (S/4 + (p-1)/S)) mod S + 1, and p reaches 20 S.
fn suppliers_differ(scale: f64) -> bool {
    let suppliers = SupplierGenerator::calculate_row_count(scale, 1, 1);
    let parts = PartGenerator::calculate_row_count(scale, 1, 1);
    if suppliers < 4 {
        return false;
    }
    let laps = 0..=(parts - 1) / suppliers;
    let mut steps = laps.map(|lap| suppliers / 4 + lap);
    steps.all(|step| (1..=3).all(|times| times * step % suppliers != 0))
}

/// Every day of the data as text, by its index.
static DAYS: LazyLock<Vec<[u8; 10]>> = LazyLock::new(|| {
    let days = (0..TOTAL_DATE_RANGE).map(|day| {
        let text = TPCHDate::new(MIN_GENERATE_DATE + day).to_string();
        std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(b'?'))
    });
    days.collect()
});

/// Writes rows; holds a text that tpchgen can only format.
struct Cells {
    days: &'static [[u8; 10]],
    text: String,
}

impl Cells {
    #[inline]
    fn write_day(&self, day: TPCHDate, out: &mut dyn RowWriter) {
        out.text(&self.days[day.into_inner() as usize]);
    }

    #[inline]
    fn write_displayed(&mut self, value: &impl Display, out: &mut dyn RowWriter) {
        self.text.clear();
        let _ = write!(self.text, "{value}");
        out.text(self.text.as_bytes());
    }

    #[inline]
    fn write_lineitem(&mut self, row: LineItem<'_>, out: &mut dyn RowWriter) {
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
        self.write_day(row.l_shipdate, out);
        self.write_day(row.l_commitdate, out);
        self.write_day(row.l_receiptdate, out);
        out.text(row.l_shipinstruct.as_bytes());
        out.text(row.l_shipmode.as_bytes());
        out.text(row.l_comment.as_bytes());
    }

    #[inline]
    fn write_order(&mut self, row: Order<'_>, out: &mut dyn RowWriter) {
        out.int(row.o_orderkey);
        out.int(row.o_custkey);
        out.text(row.o_orderstatus.as_str().as_bytes());
        money(row.o_totalprice, out);
        self.write_day(row.o_orderdate, out);
        out.text(row.o_orderpriority.as_bytes());
        self.write_displayed(&row.o_clerk, out);
        out.int(i64::from(row.o_shippriority));
        out.text(row.o_comment.as_bytes());
    }

    #[inline]
    fn write_partsupp(&mut self, row: PartSupp<'_>, out: &mut dyn RowWriter) {
        out.int(row.ps_partkey);
        out.int(row.ps_suppkey);
        out.int(i64::from(row.ps_availqty));
        money(row.ps_supplycost, out);
        out.text(row.ps_comment.as_bytes());
    }

    fn write_part(&mut self, row: Part<'_>, out: &mut dyn RowWriter) {
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

    fn write_customer(&mut self, row: Customer<'_>, out: &mut dyn RowWriter) {
        out.int(row.c_custkey);
        self.write_displayed(&row.c_name, out);
        self.write_displayed(&row.c_address, out);
        out.int(row.c_nationkey);
        self.write_displayed(&row.c_phone, out);
        money(row.c_acctbal, out);
        out.text(row.c_mktsegment.as_bytes());
        out.text(row.c_comment.as_bytes());
    }

    fn write_supplier(&mut self, row: Supplier, out: &mut dyn RowWriter) {
        out.int(row.s_suppkey);
        self.write_displayed(&row.s_name, out);
        self.write_displayed(&row.s_address, out);
        out.int(row.s_nationkey);
        self.write_displayed(&row.s_phone, out);
        money(row.s_acctbal, out);
        out.text(row.s_comment.as_bytes());
    }

    fn write_nation(&mut self, row: Nation<'_>, out: &mut dyn RowWriter) {
        out.int(row.n_nationkey);
        out.text(row.n_name.as_bytes());
        out.int(row.n_regionkey);
        out.text(row.n_comment.as_bytes());
    }

    fn write_region(&mut self, row: Region<'_>, out: &mut dyn RowWriter) {
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
    let mut remaining = cents.unsigned_abs();
    let mut written = 0;
    while remaining > 0 || written < 3 {
        if written == 2 {
            at -= 1;
            digits[at] = b'.';
        }
        at -= 1;
        digits[at] = b'0' + (remaining % 10) as u8;
        remaining /= 10;
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

    #[test]
    fn lineitem_has_the_rows_that_the_specification_counts() {
        // Clause 4.2.5.
        assert_eq!(row_count(SchemaTable::Lineitem, 1.0), 6_001_215);
        assert_eq!(row_count(SchemaTable::Lineitem, 10.0), 59_986_052);
        assert_eq!(row_count(SchemaTable::Lineitem, 30.0), 179_998_372);
    }

    #[test]
    fn parts_add_up() {
        for table in SchemaTable::ALL {
            for (scale, parts) in [(0.01, 7), (0.1, 3), (1.0, 16)] {
                let sum: u64 =
                    (1..=parts).map(|part| part_row_count(table, scale, part, parts)).sum();
                assert_eq!(sum, row_count(table, scale), "{table:?} {scale} {parts}");
            }
        }
    }

    #[test]
    fn the_generator_repeats_itself_after_two_billion_orders() {
        assert_eq!(row_count(SchemaTable::Lineitem, 3000.0), 18_000_048_306);
    }

    #[test]
    fn the_usual_sizes_are_accepted() {
        for scale in [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 10.0, 1000.0, SCALE_MAX] {
            assert!(check_scale(scale).is_ok(), "{scale}");
        }
    }

    #[test]
    fn sizes_without_a_database_are_refused() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 100_000.5] {
            let error = check_scale(scale).expect_err("out of range").to_string();
            assert!(error.contains("must be above 0"), "{error}");
        }
        // 10 suppliers: with a step of 5 the third supplier is the first.
        let error = check_scale(0.001).expect_err("too small");
        assert!(error.hint().is_some_and(|hint| hint.contains("above 0.025")));
        assert!((2_500..9_999).all(|scale| check_scale(f64::from(scale) / 100_000.0).is_ok()));
    }

    #[derive(Default)]
    struct LastValue(String);

    impl RowWriter for LastValue {
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
            let mut last = LastValue::default();
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
