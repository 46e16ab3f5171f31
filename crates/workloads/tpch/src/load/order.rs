//! Order of the pieces for free sessions: each step waits for the end of the one before, or steps overlap. Then a table
//! is vacuumed and gets its keys and indexes as soon as its rows are there, while other tables are still filled.
//!
//! No two pieces are under way that would wait for each other's locks on tables: a session that waits makes nothing.
//!
//! PostgreSQL checks a foreign key by one process and locks both tables meanwhile. Where the table has been vacuumed
//! and has an index of the key's columns it reads two indexes side by side; otherwise it sorts or hashes the table for
//! each key, which takes four times as long. So the foreign keys of a table come after its indexes, those of lineitem
//! while there still is something to do in other tables.

use super::steps::{Piece, TpchStep};
use crate::schema::SchemaTable;
use std::collections::VecDeque;

const TABLES: usize = SchemaTable::ALL.len();
const STEPS: usize = TpchStep::ALL.len();

/// The table that takes longest: it is filled first, and what can be done in it comes before the same of others.
const LARGEST: SchemaTable = SchemaTable::Lineitem;

/// The pieces of several steps, and which of them are done.
#[derive(Debug)]
pub(super) struct Order<'a> {
    overlaps: bool,
    /// Sorted in the order in which they are wanted.
    waiting: VecDeque<&'a Piece>,
    /// Numbers of pieces that are not done, of each step and table.
    pending: [[u32; TABLES]; STEPS],
    under_way: Vec<UnderWay<'a>>,
    /// Counts begins and ends.
    clock: u64,
    /// When the last rows of a table were stored.
    filled: [u64; TABLES],
}

#[derive(Clone, Copy, Debug)]
struct UnderWay<'a> {
    piece: &'a Piece,
    began: u64,
    /// The begin of the oldest piece that was under way then: its snapshots may be as old as that.
    snapshot: u64,
}

/// The next step of a free session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NextPiece<'a> {
    Take(&'a Piece),
    /// All that is left needs what others are doing.
    Wait,
    /// Nothing is left.
    End,
}

impl<'a> Order<'a> {
    pub(super) fn new(pieces: &'a [Piece], overlaps: bool) -> Self {
        let mut waiting: Vec<&Piece> = pieces.iter().collect();
        waiting.sort_by_key(|piece| rank(piece, overlaps));
        let mut pending = [[0; TABLES]; STEPS];
        pieces.iter().for_each(|piece| pending[piece.step as usize][piece.table as usize] += 1);
        let (waiting, under_way) = (waiting.into(), Vec::new());
        Order { overlaps, waiting, pending, under_way, clock: 0, filled: [0; TABLES] }
    }

    /// The next piece, which is under way until [`Order::complete`].
    pub(super) fn next_piece(&mut self) -> NextPiece<'a> {
        let place =
            self.waiting.iter().position(|piece| self.is_ready(piece) && self.is_free(piece));
        let Some(piece) = place.and_then(|place| self.waiting.remove(place)) else {
            let is_over = self.under_way.is_empty();
            assert!(!is_over || self.waiting.is_empty(), "nothing makes these ready: {self:?}");
            return if is_over { NextPiece::End } else { NextPiece::Wait };
        };
        self.clock += 1;
        let began = self.clock;
        let snapshot = self.under_way.iter().map(|other| other.began).min().unwrap_or(began);
        self.under_way.push(UnderWay { piece, began, snapshot });
        NextPiece::Take(piece)
    }

    /// Notes that a piece is done: others that waited for it may be next.
    pub(super) fn complete(&mut self, piece: &Piece) {
        self.clock += 1;
        self.under_way.retain(|other| !std::ptr::eq(other.piece, piece));
        self.pending[piece.step as usize][piece.table as usize] -= 1;
        if piece.step == TpchStep::Load {
            self.filled[piece.table as usize] = self.clock;
        }
    }

    /// Lets no session take another piece.
    pub(super) fn stop(&mut self) {
        self.waiting.clear();
    }

    fn is_done(&self, step: TpchStep, table: SchemaTable) -> bool {
        self.pending[step as usize][table as usize] == 0
    }

    /// Returns true if what it builds on is there.
    fn is_ready(&self, piece: &Piece) -> bool {
        // Every other piece needs a table.
        let waits_for = if self.overlaps { piece.step.min(TpchStep::Load) } else { piece.step };
        let before = TpchStep::ALL.into_iter().take_while(|step| *step < waits_for);
        if before.into_iter().any(|step| self.pending[step as usize].iter().any(|count| *count > 0))
        {
            return false;
        }
        let table = piece.table;
        match piece.step {
            _ if !self.overlaps => true,
            TpchStep::Create | TpchStep::Load => true,
            // A row counts as visible to all if no snapshot is older, of whichever table it is.
            TpchStep::Analyze => {
                let filled = self.filled[table as usize];
                self.is_done(TpchStep::Load, table)
                    && self.under_way.iter().all(|other| other.snapshot > filled)
            }
            TpchStep::PrimaryKeys => {
                self.is_done(TpchStep::Load, table) && self.is_done(TpchStep::Analyze, table)
            }
            // Those of other tables are kept for the time when one process checks keys of the largest one.
            TpchStep::Indexes => {
                self.has_key(table)
                    && (table == LARGEST || self.is_done(TpchStep::Indexes, LARGEST))
            }
            TpchStep::ForeignKeys => {
                self.has_key(table)
                    && piece.parent.is_none_or(|parent| self.has_key(parent))
                    && self.is_done(TpchStep::Indexes, table)
                    && self.is_done(TpchStep::Indexes, LARGEST)
            }
        }
    }

    /// Returns true if a table has its rows, statistics and primary key.
    fn has_key(&self, table: SchemaTable) -> bool {
        [TpchStep::Load, TpchStep::Analyze, TpchStep::PrimaryKeys]
            .into_iter()
            .all(|step| self.is_done(step, table))
    }

    /// Returns true if its tables are not locked by a piece under way: a table takes rows of several sessions, and
    /// indexes. Tables are made one after another, which takes no time.
    fn is_free(&self, piece: &Piece) -> bool {
        if piece.step == TpchStep::Create {
            return self.under_way.is_empty();
        }
        let is_shared = matches!(piece.step, TpchStep::Load | TpchStep::Indexes);
        self.under_way.iter().all(|other| {
            !share_table(other.piece, piece) || is_shared && other.piece.step == piece.step
        })
    }
}

/// Tables and their statistics, rows, primary keys, which others refer to, then all of the largest table.
fn rank(piece: &Piece, overlaps: bool) -> (u8, bool, bool) {
    let is_smaller = piece.table != LARGEST;
    match piece.step {
        TpchStep::Create | TpchStep::Analyze => (0, false, false),
        TpchStep::Load => (1, overlaps && is_smaller, false),
        TpchStep::PrimaryKeys => (2, is_smaller, false),
        TpchStep::Indexes => (3, is_smaller, false),
        TpchStep::ForeignKeys => (3, is_smaller, true),
    }
}

fn locked_tables(piece: &Piece) -> impl Iterator<Item = SchemaTable> {
    [Some(piece.table), piece.parent].into_iter().flatten()
}

fn share_table(a: &Piece, b: &Piece) -> bool {
    locked_tables(a).any(|table| locked_tables(b).any(|other| other == table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::TpchLoadOptions;
    use crate::load::steps::pieces;
    use dyno_core::{Dialect, Rng};

    fn all_pieces() -> Vec<Piece> {
        let options = TpchLoadOptions::new(0.5);
        let steps = TpchStep::ALL.into_iter().filter(|step| *step != TpchStep::Create);
        steps.flat_map(|step| pieces(step, Dialect::Postgres, &options)).collect()
    }

    /// Has `sessions` sessions do all pieces, which last differently from seed to seed. Returns the pieces in the order
    /// in which they began, with the numbers of pieces that had ended then.
    fn play(pieces: &[Piece], sessions: usize, seed: u64) -> Vec<(&Piece, usize)> {
        let mut random = Rng::new(seed, "sessions of a load", 0);
        let mut order = Order::new(pieces, true);
        let (mut under_way, mut starts): (Vec<&Piece>, Vec<_>) = (Vec::new(), Vec::new());
        let mut ended = 0;
        loop {
            while under_way.len() < sessions
                && let NextPiece::Take(piece) = order.next_piece()
            {
                for other in &under_way {
                    let is_shared = matches!(piece.step, TpchStep::Load | TpchStep::Indexes);
                    let is_fine =
                        !share_table(other, piece) || is_shared && other.step == piece.step;
                    assert!(is_fine, "{} alongside {}", piece.name, other.name);
                }
                under_way.push(piece);
                starts.push((piece, ended));
            }
            if under_way.is_empty() {
                assert_eq!(order.next_piece(), NextPiece::End);
                return starts;
            }
            let place = (random.next_u64() % under_way.len() as u64) as usize;
            order.complete(under_way.swap_remove(place));
            ended += 1;
        }
    }

    /// Returns true if `piece` comes after `other`.
    fn needs(piece: &Piece, other: &Piece) -> bool {
        let is_same_table = other.table == piece.table;
        match (piece.step, other.step) {
            (TpchStep::Create | TpchStep::Load, _) => false,
            (TpchStep::Analyze, step) => step == TpchStep::Load && is_same_table,
            (TpchStep::PrimaryKeys, step) => {
                matches!(step, TpchStep::Load | TpchStep::Analyze) && is_same_table
            }
            (TpchStep::Indexes, step) => {
                !matches!(step, TpchStep::Indexes | TpchStep::ForeignKeys) && is_same_table
            }
            (TpchStep::ForeignKeys, TpchStep::ForeignKeys) => false,
            (TpchStep::ForeignKeys, TpchStep::Indexes) => is_same_table,
            (TpchStep::ForeignKeys, _) => is_same_table || Some(other.table) == piece.parent,
        }
    }

    #[test]
    fn each_piece_is_done_once_after_what_it_needs() {
        let pieces = all_pieces();
        for seed in 0..200 {
            let sessions = 1 + seed as usize % 6;
            let starts = play(&pieces, sessions, seed);
            assert_eq!(starts.len(), pieces.len());
            let place =
                |piece: &Piece| starts.iter().position(|(other, _)| other.name == piece.name);
            for (at, (piece, ended)) in starts.iter().enumerate() {
                for other in pieces.iter().filter(|other| needs(piece, other)) {
                    let before = place(other).expect("it was done");
                    assert!(before < at, "{} before {}", piece.name, other.name);
                }
                // With one session nothing is under way alongside it.
                assert!(sessions > 1 || *ended == at);
            }
        }
    }

    #[test]
    fn the_largest_table_is_vacuumed_while_others_are_filled_and_its_foreign_keys_come_before_others()
     {
        let pieces = all_pieces();
        let starts = play(&pieces, 4, 7);
        let [analyze, foreign_keys] = [TpchStep::Analyze, TpchStep::ForeignKeys].map(|step| {
            let place =
                starts.iter().position(|(piece, _)| (piece.step, piece.table) == (step, LARGEST));
            place.expect("a piece")
        });
        let last_rows = starts.iter().rposition(|(piece, _)| piece.step == TpchStep::Load);
        assert!(Some(analyze) < last_rows);
        let later_pieces = starts[foreign_keys..].iter();
        assert!(later_pieces.filter(|(piece, _)| piece.table != LARGEST).count() > 3);
    }

    fn take_piece<'a>(order: &mut Order<'a>) -> &'a Piece {
        match order.next_piece() {
            NextPiece::Take(piece) => piece,
            other => panic!("{other:?}"),
        }
    }

    /// The snapshot of B began when A was under way, whose rows came before the last ones of the table.
    #[test]
    fn a_table_is_vacuumed_when_no_snapshot_is_older_than_its_rows() {
        let pieces = all_pieces();
        let mut order = Order::new(&pieces, true);
        let mut parts = Vec::new();
        while order
            .waiting
            .iter()
            .any(|piece| (piece.step, piece.table) == (TpchStep::Load, LARGEST))
        {
            parts.push(take_piece(&mut order));
        }
        let a = take_piece(&mut order);
        parts.into_iter().for_each(|part| order.complete(part));
        let b = take_piece(&mut order);
        order.complete(a);
        let c = take_piece(&mut order);
        assert_eq!([a.step, b.step, c.step], [TpchStep::Load; 3]);
        order.complete(b);
        let next = take_piece(&mut order);
        assert_eq!(next.name, "analyze/lineitem", "{c:?} is younger");
    }

    #[test]
    fn after_a_failure_no_session_begins_another_piece() {
        let pieces = all_pieces();
        let mut order = Order::new(&pieces, true);
        let NextPiece::Take(first) = order.next_piece() else { panic!("a piece") };
        order.stop();
        assert_eq!(order.next_piece(), NextPiece::Wait);
        order.complete(first);
        assert_eq!(order.next_piece(), NextPiece::End);
    }

    #[test]
    fn without_overlaps_each_step_waits_for_the_one_before() {
        for dialect in [Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite] {
            let options = TpchLoadOptions::new(0.5);
            let steps = TpchStep::ALL.into_iter();
            let pieces: Vec<Piece> =
                steps.flat_map(|step| pieces(step, dialect, &options)).collect();
            let mut order = Order::new(&pieces, false);
            let (mut under_way, mut starts): (Vec<&Piece>, Vec<TpchStep>) =
                (Vec::new(), Vec::new());
            loop {
                while let NextPiece::Take(piece) = order.next_piece() {
                    assert!(under_way.iter().all(|other| other.step == piece.step));
                    under_way.push(piece);
                    starts.push(piece.step);
                }
                let Some(piece) = under_way.pop() else { break };
                order.complete(piece);
            }
            assert!(starts.is_sorted());
            assert_eq!(starts.len(), pieces.len(), "{dialect:?}");
        }
    }
}
