//! The rows: nothing in them is random.

use super::options::{ACCOUNTS_PER_BRANCH, TELLERS_PER_BRANCH};
use dyno_core::{Dialect, RowSource, RowWriter};
use dyno_load::LoadObserver;

/// Rows between two calls of the observer: pgbench's lines, one per 100,000 rows, fall on a call.
const TOLD_ROWS: u32 = 10_000;

/// The columns that [`Accounts`] writes.
pub(crate) const ACCOUNT_COLUMNS: [&str; 4] = ["aid", "bid", "abalance", "filler"];

/// What `char(84)` makes of an empty text.
const BLANKS: [u8; 84] = [b' '; 84];

/// The filler of an account as it has to be sent: servers pad it, SQLite does not.
pub(crate) fn filler(dialect: Dialect) -> &'static [u8] {
    if dialect == Dialect::Sqlite { &BLANKS } else { b"" }
}

/// First and last account of a branch: the rows that are committed at once.
pub(crate) fn chunk(branch: u32) -> (i64, i64) {
    let rows = i64::from(ACCOUNTS_PER_BRANCH);
    let last = i64::from(branch) * rows;
    (last - rows + 1, last)
}

/// The accounts `first..=last`.
pub(crate) struct Accounts<'a> {
    first: i64,
    last: i64,
    next: i64,
    filler: &'static [u8],
    /// Follows rows that are sent; none where whole branches are committed.
    observer: Option<&'a dyn LoadObserver>,
}

impl<'a> Accounts<'a> {
    /// `first..=last` is one or more whole branches.
    pub(crate) fn new(
        (first, last): (i64, i64),
        dialect: Dialect,
        observer: Option<&'a dyn LoadObserver>,
    ) -> Self {
        Accounts { first, last, next: first, filler: filler(dialect), observer }
    }
}

impl RowSource for Accounts<'_> {
    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let aid = self.next;
        if aid > self.last {
            return false;
        }
        self.next += 1;
        out.int(aid);
        out.int((aid - 1) / i64::from(ACCOUNTS_PER_BRANCH) + 1);
        out.int(0);
        out.text(self.filler);
        if aid % i64::from(TOLD_ROWS) == 0
            && let Some(observer) = self.observer
        {
            observer.rows_done(u64::from(TOLD_ROWS));
        }
        true
    }

    fn restart(&mut self) {
        self.next = self.first;
    }
}

/// One of the small tables. Their filler is NULL and not in the column list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Small {
    Branches,
    Tellers,
}

impl Small {
    /// The columns that [`SmallRows`] writes.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Small::Branches => &["bid", "bbalance"],
            Small::Tellers => &["tid", "bid", "tbalance"],
        }
    }

    pub(crate) fn branch_of(teller: i64) -> i64 {
        (teller - 1) / i64::from(TELLERS_PER_BRANCH) + 1
    }
}

/// The rows `1..=last` of a small table.
pub(crate) struct SmallRows {
    table: Small,
    last: i64,
    next: i64,
}

impl SmallRows {
    pub(crate) fn new(table: Small, last: i64) -> Self {
        SmallRows { table, last, next: 1 }
    }
}

impl RowSource for SmallRows {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let number = self.next;
        if number > self.last {
            return false;
        }
        self.next += 1;
        out.int(number);
        if self.table == Small::Tellers {
            out.int(Small::branch_of(number));
        }
        out.int(0);
        true
    }

    fn restart(&mut self) {
        self.next = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::RecordedRow;
    use proptest::prelude::*;

    fn rows(source: &mut dyn RowSource, columns: usize) -> Vec<Vec<String>> {
        let mut kept = RecordedRow::default();
        while source.next_row(&mut kept) {}
        kept.0.chunks(columns).map(<[String]>::to_vec).collect()
    }

    #[test]
    fn accounts_are_those_of_their_branches_also_after_a_restart() {
        let mut source = Accounts::new((100_001, 300_000), Dialect::Postgres, None);
        let made = rows(&mut source, 4);
        assert_eq!(made.len(), 200_000);
        assert_eq!(made[0], ["100001", "2", "0", ""]);
        assert_eq!(made[99_999], ["200000", "2", "0", ""]);
        assert_eq!(made[100_000], ["200001", "3", "0", ""]);
        source.restart();
        assert!(rows(&mut source, 4) == made);
        let mut blank = Accounts::new((1, 1), Dialect::Sqlite, None);
        assert_eq!(rows(&mut blank, 4)[0][3], " ".repeat(84));
    }

    #[test]
    fn small_tables_count() {
        let mut source = SmallRows::new(Small::Tellers, 11);
        let made = rows(&mut source, 3);
        assert_eq!(
            (made.len(), &made[9][..], &made[10][..]),
            (
                11,
                &["10".to_owned(), "1".to_owned(), "0".to_owned()][..],
                &["11".to_owned(), "2".to_owned(), "0".to_owned()][..]
            )
        );
        source.restart();
        assert_eq!(rows(&mut source, 3), made);
        assert_eq!(rows(&mut SmallRows::new(Small::Branches, 2), 2), [["1", "0"], ["2", "0"]]);
    }

    proptest! {
        /// Chunks follow each other without gap, and each holds the accounts of its own branch.
        #[test]
        fn chunks_cut_the_accounts_by_branch(branch in 1..=super::super::SCALE_MAX) {
            let (first, last) = chunk(branch);
            prop_assert_eq!(last - first + 1, i64::from(ACCOUNTS_PER_BRANCH));
            prop_assert_eq!(first, if branch == 1 { 1 } else { chunk(branch - 1).1 + 1 });
            for aid in [first, last] {
                let wanted = i64::from(branch);
                prop_assert_eq!((aid - 1) / i64::from(ACCOUNTS_PER_BRANCH) + 1, wanted);
            }
        }
    }
}
