//! What would decide what is open.

use super::veto::{STOPPED, explains_gate};
use super::words::MOST_PAIRS;
use crate::evidence::{
    Call, GateResult, GateRow, PairOrder, PairedComparison, VerdictRow, Verdicts, Veto,
};
use crate::format;
use crate::text::Message;
use dyno_facts::say;
use dyno_statistics::ratio;
use std::collections::BTreeSet;

/// The check of trials that do not take turns.
const BLOCK_ORDER: &str = "block-order";

/// Pairs of a comparison that would prove a difference among all comparisons of its experiment.
pub(super) fn pairs_to_prove(of: &PairedComparison, row: &VerdictRow) -> usize {
    let adjusted = row.p_adjusted.unwrap_or(row.p);
    let units = ratio::pairs_to_prove(row.units, row.p, adjusted, of.stop.is_until_decided);
    units * of.unit_pairs as usize
}

impl Verdicts {
    /// What helps, in a sentence: gates decide where there are some, else the first metric of each comparison.
    pub fn remedy(&self) -> Message {
        if self.is_open_by_order() {
            return say!(only_turns_give_a_verdict);
        }
        let deciding = self.comparisons.iter().filter(|_| self.gates.is_empty());
        let deciding = deciding.flat_map(|of| of.deciding_vetoes());
        let of_gates = self
            .comparisons
            .iter()
            .flat_map(|of| of.vetoes.iter().filter(move |veto| self.opens_a_gate(of, veto)));
        let vetoes: BTreeSet<&str> = deciding.chain(of_gates).map(|veto| veto.check).collect();
        if !vetoes.is_empty() {
            let is_of_pairs = vetoes.iter().all(|id| *id == STOPPED);
            let ids: Vec<Message> = vetoes.into_iter().map(Message::verbatim).collect();
            let ids = Message::list(&ids);
            return match is_of_pairs {
                true => say!(pairs_outweigh_what_checks_found, ids = ids),
                false => say!(take_away_what_checks_found, ids = ids),
            };
        }
        let mut first = self.comparisons.iter().filter_map(|of| of.rows.first());
        if first.any(|row| row.call == Call::Undecided && !row.bound.is_empty()) {
            return say!(a_longer_time_out_would_decide);
        }
        if !self.gates.is_empty() {
            let open = self.gates.iter().filter(|gate| gate.result == GateResult::Inconclusive);
            let ratios = open.filter(|gate| gate.is_ratio);
            let needed: Vec<Option<usize>> = ratios.map(|gate| gate.needed).collect();
            // Of what is too near its bound nobody can say how many.
            if needed.contains(&None) {
                return say!(no_number_of_pairs_is_known);
            }
            return match needed.into_iter().flatten().max() {
                None => say!(more_repeats_narrow_the_interval),
                Some(pairs) if pairs > MOST_PAIRS => say!(pairs_alone_dont_help),
                Some(pairs) => say!(pairs_would_decide_gates, pairs = format::whole(pairs as f64)),
            };
        }
        let rows = self.comparisons.iter().filter_map(|of| Some((of, of.rows.first()?)));
        let needed = rows.filter(|(_, row)| row.call.is_undecided()).map(|(of, row)| {
            let pairs = match row.call {
                Call::TooFewPairs => of.least_pairs(),
                Call::Unproven => pairs_to_prove(of, row),
                _ => row.pairs_needed.unwrap_or(usize::MAX),
            };
            (pairs, row.call, of.margin)
        });
        match needed.max_by_key(|(pairs, ..)| *pairs) {
            None => say!(trials_failed_mend_the_cause),
            Some((pairs, ..)) if pairs > MOST_PAIRS => say!(pairs_alone_dont_help),
            Some((pairs, Call::Undecided, margin)) => {
                let pairs = format::whole(pairs as f64);
                say!(pairs_would_show_margin, pairs = pairs, margin = format::percent(margin))
            }
            Some((pairs, Call::TooFewPairs, _)) => {
                say!(verdict_needs_pairs, pairs = format::whole(pairs as f64))
            }
            Some((pairs, ..)) => {
                say!(pairs_would_decide_it, pairs = format::whole(pairs as f64))
            }
        }
    }

    /// Whether what is open is so because trials did not take turns, as those of two runs: the check finds it from two
    /// pairs on, and may be accepted.
    fn is_open_by_order(&self) -> bool {
        let is_in_blocks = |of: &&PairedComparison| {
            of.order == PairOrder::Blocks
                && (of.pairs.len() == 1 || of.vetoes.iter().any(|veto| veto.check == BLOCK_ORDER))
        };
        let is_open = |of: &PairedComparison| match self.gates.is_empty() {
            true => of.rows.first().is_some_and(|row| row.call.is_undecided()),
            false => self.open_gates(of).next().is_some(),
        };
        self.comparisons.iter().filter(is_in_blocks).any(is_open)
    }

    /// Whether a gate on a comparison is inconclusive by a veto.
    fn opens_a_gate(&self, of: &PairedComparison, veto: &Veto) -> bool {
        self.open_gates(of).any(|gate| explains_gate(veto.reach, gate, &of.rows))
    }

    /// The inconclusive gates on a comparison.
    fn open_gates(&self, of: &PairedComparison) -> impl Iterator<Item = &GateRow> {
        let is_own = |gate: &&GateRow| gate.comparison == Some(of.number);
        let own = self.gates.iter().filter(is_own);
        own.filter(|gate| gate.result == GateResult::Inconclusive)
    }
}
