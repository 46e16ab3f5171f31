//! Which piece a free session takes next where no step waits for the end of another: keys and indexes of a table are made
//! as soon as its rows are there, while other tables are still filled.
//!
//! No two pieces are under way that would wait for each other's locks on tables: a session that waits makes nothing.
//!
//! PostgreSQL checks a foreign key by one process and locks its table meanwhile. Those of lineitem, one after the other,
//! are a fifth of the time of a load, and nothing of lineitem can be made beside them: other tables are filled then, and
//! not by so many sessions that the checks get too little of the server's CPU.

use super::steps::{Piece, TpchStep, Work};
use crate::schema::SchemaTable;
use std::collections::VecDeque;

const TABLES: usize = SchemaTable::ALL.len();
const STEPS: usize = TpchStep::ALL.len();

/// The order in which tables are filled: lineitem as soon as two of its parents are there, so that its foreign keys are
/// checked while the other ones are filled.
const FILLED: [SchemaTable; TABLES] = [
    SchemaTable::Region,
    SchemaTable::Nation,
    SchemaTable::Supplier,
    SchemaTable::Part,
    CHECKED,
    SchemaTable::Orders,
    SchemaTable::Partsupp,
    SchemaTable::Customer,
];

/// The table whose foreign keys take longest; none refers to it.
const CHECKED: SchemaTable = SchemaTable::Lineitem;

/// Sessions that work beside the check of a foreign key of that table.
const BESIDE: u32 = 1;

/// The pieces of several steps, and which of them are done.
#[derive(Debug)]
pub(super) struct Order<'a> {
    rows: VecDeque<&'a Piece>,
    /// The foreign keys of lineitem, then all in the order of the steps.
    others: Vec<&'a Piece>,
    /// Pieces that are not done, of each step and table.
    left: [[u32; TABLES]; STEPS],
    /// The step that is under way in a table, and by how many sessions.
    busy: [Option<(TpchStep, u32)>; TABLES],
    under_way: u32,
}

/// What a free session does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NextPiece<'a> {
    Take(&'a Piece),
    /// All that is left needs what others are doing.
    Wait,
    /// Nothing is left.
    End,
}

impl<'a> Order<'a> {
    pub(super) fn new(pieces: impl IntoIterator<Item = &'a Piece>) -> Self {
        let (rows, others): (Vec<_>, Vec<_>) =
            pieces.into_iter().partition(|piece| matches!(piece.work, Work::Rows { .. }));
        let mut order = Order {
            rows: VecDeque::new(),
            others,
            left: [[0; TABLES]; STEPS],
            busy: [None; TABLES],
            under_way: 0,
        };
        for table in FILLED {
            order.rows.extend(rows.iter().copied().filter(|piece| piece.table == table));
        }
        order.others.sort_by_key(|piece| !is_check(piece));
        for piece in order.rows.iter().chain(&order.others) {
            order.left[piece.step as usize][piece.table as usize] += 1;
        }
        order
    }

    /// The next piece, which is under way until [`Order::done`].
    pub(super) fn take(&mut self) -> NextPiece<'a> {
        let is_checked = matches!(self.busy[CHECKED as usize], Some((TpchStep::ForeignKeys, _)));
        if is_checked && self.under_way > BESIDE {
            return NextPiece::Wait;
        }
        let can_begin = |piece: &Piece| self.is_ready(piece) && self.is_free(piece);
        let any = self.others.iter().position(|piece| can_begin(piece));
        // An index more would keep a foreign key waiting, which then is the last of the load.
        let best =
            self.others.iter().position(|piece| can_begin(piece) && !self.keeps_waiting(piece));
        let piece = match (best, self.rows.front(), any) {
            (Some(place), ..) | (None, None, Some(place)) => self.others.remove(place),
            (None, Some(piece), _) => {
                let piece = *piece;
                self.rows.pop_front();
                piece
            }
            (None, None, None) if self.under_way == 0 => return self.end(),
            (None, None, None) => return NextPiece::Wait,
        };
        self.under_way += 1;
        for table in tables(piece) {
            let users = self.busy[table as usize].map_or(0, |(_, users)| users);
            self.busy[table as usize] = Some((piece.step, users + 1));
        }
        NextPiece::Take(piece)
    }

    fn end(&self) -> NextPiece<'a> {
        assert!(self.others.is_empty(), "pieces that nothing makes ready: {:?}", self.others);
        NextPiece::End
    }

    pub(super) fn done(&mut self, piece: &Piece) {
        self.under_way -= 1;
        self.left[piece.step as usize][piece.table as usize] -= 1;
        for table in tables(piece) {
            let busy = &mut self.busy[table as usize];
            *busy = busy.and_then(|(step, users)| (users > 1).then(|| (step, users - 1)));
        }
    }

    /// Lets no session take another piece.
    pub(super) fn stop(&mut self) {
        self.rows.clear();
        self.others.clear();
    }

    fn is_done(&self, step: TpchStep, table: SchemaTable) -> bool {
        self.left[step as usize][table as usize] == 0
    }

    /// Whether what it builds on is there.
    fn is_ready(&self, piece: &Piece) -> bool {
        let table = piece.table;
        let is_filled = |table| self.is_done(TpchStep::Load, table);
        let has_key = |table| is_filled(table) && self.is_done(TpchStep::PrimaryKeys, table);
        match piece.step {
            TpchStep::Create | TpchStep::Load => true,
            // Several processes make an index: that of a table which no foreign key waits for comes when no check does.
            TpchStep::PrimaryKeys => {
                is_filled(table) && (table != CHECKED || self.is_done(TpchStep::ForeignKeys, table))
            }
            TpchStep::ForeignKeys => is_filled(table) && piece.parent.is_none_or(has_key),
            TpchStep::Indexes => has_key(table),
            // Of all tables: a page counts as visible to all only if no older transaction is open, on whichever table.
            TpchStep::Analyze => {
                self.left[..TpchStep::Analyze as usize].iter().flatten().all(|left| *left == 0)
            }
        }
    }

    /// Whether this index would let a foreign key wait that is ready but for what is under way in its table.
    fn keeps_waiting(&self, index: &Piece) -> bool {
        let waits = |key: &Piece| {
            key.step == TpchStep::ForeignKeys
                && key.table == index.table
                && self.is_ready(key)
                && !self.is_free(key)
        };
        index.step == TpchStep::Indexes && self.others.iter().any(|key| waits(key))
    }

    /// Whether its tables are not locked by what is under way: a table takes rows of several sessions, and indexes.
    fn is_free(&self, piece: &Piece) -> bool {
        let is_shared = matches!(piece.step, TpchStep::Load | TpchStep::Indexes);
        tables(piece).all(|table| {
            self.busy[table as usize].is_none_or(|(step, _)| is_shared && step == piece.step)
        })
    }
}

fn is_check(piece: &Piece) -> bool {
    piece.step == TpchStep::ForeignKeys && piece.table == CHECKED
}

fn tables(piece: &Piece) -> impl Iterator<Item = SchemaTable> {
    [Some(piece.table), piece.parent].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::steps::pieces;
    use crate::state::LoadRequest;
    use dyno_core::{Dialect, Rng};

    fn all() -> Vec<Piece> {
        let wanted = LoadRequest { scale: 0.5, foreign_keys: true, indexes: true };
        let steps = TpchStep::ALL.into_iter().filter(|step| *step != TpchStep::Create);
        steps.flat_map(|step| pieces(step, Dialect::Postgres, &wanted)).collect()
    }

    /// Has `sessions` sessions do all pieces, which last differently from seed to seed. Returns the pieces in the order in
    /// which they began, with the numbers of pieces that had ended then.
    fn played(pieces: &[Piece], sessions: usize, seed: u64) -> Vec<(&Piece, usize)> {
        let mut random = Rng::new(seed, "sessions of a load", 0);
        let mut order = Order::new(pieces);
        let (mut under_way, mut begun): (Vec<&Piece>, Vec<_>) = (Vec::new(), Vec::new());
        let mut ended = 0;
        loop {
            while under_way.len() < sessions
                && let NextPiece::Take(piece) = order.take()
            {
                for other in &under_way {
                    let meets = tables(other).any(|table| tables(piece).any(|own| own == table));
                    let is_shared = matches!(piece.step, TpchStep::Load | TpchStep::Indexes);
                    let is_fine = !meets || is_shared && other.step == piece.step;
                    assert!(is_fine, "{} beside {}", piece.name, other.name);
                }
                let is_checked = under_way.iter().any(|other| is_check(other));
                let beside = under_way.len() as u32;
                assert!(!is_checked || beside <= BESIDE, "{} beside a check", piece.name);
                under_way.push(piece);
                begun.push((piece, ended));
            }
            if under_way.is_empty() {
                assert_eq!(order.take(), NextPiece::End);
                return begun;
            }
            let place = (random.next_u64() % under_way.len() as u64) as usize;
            order.done(under_way.swap_remove(place));
            ended += 1;
        }
    }

    #[test]
    fn each_piece_is_done_once_after_what_it_needs() {
        let pieces = all();
        for seed in 0..200 {
            let sessions = 1 + seed as usize % 6;
            let begun = played(&pieces, sessions, seed);
            assert_eq!(begun.len(), pieces.len());
            let place = |piece: &Piece| begun.iter().position(|(it, _)| it.name == piece.name);
            for (at, (piece, ended)) in begun.iter().enumerate() {
                let needs = |other: &&Piece| match piece.step {
                    TpchStep::PrimaryKeys => {
                        other.table == piece.table
                            && (other.step == TpchStep::Load || is_check(other))
                    }
                    TpchStep::Indexes => {
                        other.step <= TpchStep::PrimaryKeys && other.table == piece.table
                    }
                    TpchStep::ForeignKeys => {
                        other.step == TpchStep::Load && other.table == piece.table
                            || other.step <= TpchStep::PrimaryKeys
                                && Some(other.table) == piece.parent
                    }
                    TpchStep::Analyze => other.step < TpchStep::Analyze,
                    TpchStep::Create | TpchStep::Load => false,
                };
                for other in pieces.iter().filter(needs) {
                    let before = place(other).expect("it was done");
                    assert!(before < at, "{} before {}", piece.name, other.name);
                }
                // With one session nothing is under way beside it.
                assert!(sessions > 1 || *ended == at);
            }
        }
    }

    #[test]
    fn keys_are_made_while_other_tables_are_filled() {
        let pieces = all();
        let begun = played(&pieces, 4, 7);
        let first_key = begun.iter().position(|(piece, _)| piece.step == TpchStep::PrimaryKeys);
        let last_rows = begun.iter().rposition(|(piece, _)| piece.step == TpchStep::Load);
        assert!(first_key < last_rows, "{first_key:?} {last_rows:?}");
    }

    #[test]
    fn foreign_keys_of_lineitem_are_checked_while_other_tables_are_filled() {
        let pieces = all();
        let begun = played(&pieces, 1, 7);
        let first_check = begun.iter().position(|(piece, _)| is_check(piece));
        let rows_after = begun.iter().skip(first_check.expect("a check") + 1);
        assert!(rows_after.filter(|(piece, _)| piece.step == TpchStep::Load).count() > 5);
    }

    #[test]
    fn after_a_failure_no_session_begins_another_piece() {
        let pieces = all();
        let mut order = Order::new(&pieces);
        let NextPiece::Take(first) = order.take() else { panic!("a piece") };
        order.stop();
        assert_eq!(order.take(), NextPiece::Wait);
        order.done(first);
        assert_eq!(order.take(), NextPiece::End);
    }
}
