//! Terminals between transactions: what they choose in the menu, how long they key and think.

use super::TpccOptions;
use super::inputs::Terminal;
use crate::audit::Counters;
use crate::profile::{Pace, PerKind, TpccTransaction, TransactionChoice};
use dyno_core::{EndedTransaction, Nanos, Rng, SECOND, TerminalPlan, TransactionId};

/// The cards that a terminal has not played yet (clause 5.2.4.2): how many of each kind. One drawn
/// by chance from what is left is the next one of a shuffled deck.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deck(PerKind<u16>);

impl Deck {
    #[inline]
    pub(crate) fn draw(&mut self, full: &PerKind<u32>, rng: &mut Rng) -> TransactionId {
        if self.0 == [0; 5] {
            self.0 = full.map(|count| count as u16);
        }
        let all: u64 = self.0.iter().map(|&count| u64::from(count)).sum();
        let mut card = rng.uniform(1, all) as u16;
        for (kind, count) in self.0.iter_mut().enumerate() {
            if card <= *count {
                *count = count.saturating_sub(1);
                return kind;
            }
            card -= *count;
        }
        TpccTransaction::NewOrder.index()
    }
}

/// Throws dice with as many sides as the weights add up to. BenchmarkSQL compares in this order;
/// New-Order has the rest.
#[inline]
fn throw(weights: &[u32; 5], rng: &mut Rng) -> TransactionId {
    let sides: u32 = weights.iter().sum();
    let mut left = rng.uniform(1, u64::from(sides)) as u32;
    for kind in [
        TpccTransaction::Payment,
        TpccTransaction::StockLevel,
        TpccTransaction::OrderStatus,
        TpccTransaction::Delivery,
    ] {
        let weight = weights[kind.index()];
        if left <= weight {
            return kind.index();
        }
        left -= weight;
    }
    TpccTransaction::NewOrder.index()
}

/// How long before the trial's begin terminals are thought to have begun at least, in mean cycles.
const CYCLES_BEFORE: f64 = 8.0;

#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    choice: TransactionChoice,
    /// Multiplied already.
    paces: PerKind<Pace>,
}

impl Pacing {
    pub(crate) fn new(options: &TpccOptions) -> Self {
        let none = Pace { keying_s: 0.0, think_mean_s: 0.0 };
        let paces = options.profile.pacing.unwrap_or([none; 5]).map(|pace| Pace {
            keying_s: pace.keying_s * options.keying_multiplier,
            think_mean_s: pace.think_mean_s * options.think_multiplier,
        });
        Pacing { choice: options.profile.choice, paces }
    }

    /// The share of a kind in the mix, 0 to 1.
    pub(crate) fn share(&self, kind: TpccTransaction) -> f64 {
        let shares = self.choice.shares();
        let sum: u32 = shares.iter().sum();
        f64::from(shares[kind.index()]) / f64::from(sum.max(1))
    }

    /// The mean time from one begin to the next if every response came at once, in seconds.
    pub(crate) fn cycle_s(&self) -> f64 {
        let of = |kind: TpccTransaction| {
            let pace = &self.paces[kind.index()];
            self.share(kind) * (pace.keying_s + pace.think_mean_s)
        };
        TpccTransaction::ALL.into_iter().map(of).sum()
    }

    /// The choice in the menu (clause 5.2.4).
    #[inline]
    pub(crate) fn choose(&self, terminal: &mut Terminal) -> TransactionId {
        match &self.choice {
            TransactionChoice::Weights(weights) => throw(weights, &mut terminal.rng),
            TransactionChoice::Deck(full) => terminal.deck.draw(full, &mut terminal.rng),
        }
    }

    /// What a terminal does after its last transaction: it thinks about that (clause 5.2.5.4),
    /// chooses the next one, whose form is there at once, and keys its input in (clause 5.2.5.2).
    /// The response time begins then (clause 5.2.5.3).
    #[inline]
    pub(crate) fn plan(&self, terminal: &mut Terminal) -> TerminalPlan {
        terminal.thought = terminal.chosen;
        let think_s = self.paces[usize::from(terminal.thought)].think_s(&mut terminal.rng);
        let transaction = self.choose(terminal);
        terminal.chosen = transaction as u8;
        terminal.think = (think_s * SECOND as f64) as Nanos;
        let pause_s = think_s + self.paces[transaction].keying_s;
        TerminalPlan { transaction, pause: (pause_s * SECOND as f64) as Nanos }
    }

    /// What a terminal does first. Terminals are spread over their first cycle as if they had been at
    /// it for a while: transactions come at an even rate from the first second on, not all at once.
    /// They are spread over their decks too: had all drawn the first cards of one, there would
    /// be more of the slow kinds than in the mix, because who got them is not as far.
    pub(crate) fn first(&self, terminal: &mut Terminal) -> TerminalPlan {
        let cycle = self.cycle_s() * SECOND as f64;
        let deck = match self.choice {
            TransactionChoice::Weights(_) => 1,
            TransactionChoice::Deck(cards) => cards.iter().sum(),
        };
        let mut before = cycle * (CYCLES_BEFORE + f64::from(deck) * terminal.rng.unit());
        loop {
            let plan = self.plan(terminal);
            if plan.pause as f64 >= before {
                return TerminalPlan { pause: plan.pause - before as Nanos, ..plan };
            }
            before -= plan.pause as f64;
        }
    }
}

/// Notes the pauses before a transaction of a terminal: keying is what the engine has waited beyond the think time,
/// which is unknown of its first one.
#[inline]
pub(super) fn note_pause(
    counters: &mut Counters,
    terminal: &mut Terminal,
    ended: &EndedTransaction,
) {
    let (kind, think) = (usize::from(terminal.thought), terminal.think);
    let waited = ended.due.saturating_sub(terminal.ended);
    let is_first = std::mem::replace(&mut terminal.ended, ended.ended) == 0;
    if ended.is_measured {
        let keyed = (!is_first).then(|| (ended.transaction, waited.saturating_sub(think)));
        counters.pause((kind, think), keyed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::TpccDatabase;
    use crate::profile::{BMSQL_5_0, SPEC};

    #[test]
    fn a_deck_deals_every_card_before_it_is_shuffled_again() {
        let mut rng = Rng::new(1, "deck", 0);
        let mut deck = Deck::default();
        let mut hands = Vec::new();
        for _ in 0..50 {
            let hand: Vec<usize> =
                (0..23).map(|_| deck.draw(&[10, 10, 1, 1, 1], &mut rng)).collect();
            let count = |kind| hand.iter().filter(|&&card| card == kind).count();
            assert_eq!([0, 1, 2, 3, 4].map(count), [10, 10, 1, 1, 1]);
            hands.push(hand);
        }
        hands.sort();
        hands.dedup();
        assert_eq!(hands.len(), 50, "shuffled differently each time");
    }

    #[test]
    fn dice_follow_the_weights() {
        let mut rng = Rng::new(1, "dice", 0);
        let mut counts = [0; 5];
        for _ in 0..100_000 {
            counts[throw(&[45, 43, 4, 4, 4], &mut rng)] += 1;
        }
        for (count, weight) in counts.iter().zip([45, 43, 4, 4, 4]) {
            assert!((count - weight * 1_000_i32).abs() < 950, "{counts:?}");
        }
        assert_eq!(throw(&[100, 0, 0, 0, 0], &mut rng), 0);
        assert_eq!(throw(&[0, 0, 0, 100, 0], &mut rng), TpccTransaction::Delivery.index());
        let mut counts = [0_i32; 5];
        for _ in 0..100_000 {
            counts[throw(&[4_420, 4_320, 420, 420, 420], &mut rng)] += 1;
        }
        for (count, weight) in counts.iter().zip([44_200, 43_200, 4_200, 4_200, 4_200]) {
            assert!(i32::abs(count - weight) < 950, "{counts:?}");
        }
    }

    fn terminal(number: u64) -> Terminal {
        Terminal::new(1, 1, Rng::new(8, "terminal", number))
    }

    fn options() -> TpccOptions {
        TpccOptions::new(SPEC, &TpccDatabase { warehouses: 1, c_last: 100 }, 7)
    }

    #[test]
    fn a_terminal_is_small() {
        assert!(size_of::<Terminal>() <= 80, "{}", size_of::<Terminal>());
    }

    #[test]
    fn pauses_are_think_and_keying_times_with_their_multipliers() {
        for (keying_multiplier, think_multiplier) in [(1.0, 1.0), (0.5, 2.0), (0.0, 0.1)] {
            let options = TpccOptions { keying_multiplier, think_multiplier, ..options() };
            let pacing = Pacing::new(&options);
            let mut terminal = terminal(0);
            let mut last = pacing.plan(&mut terminal).transaction;
            let mut thought = [(0.0, 0_u32); 5];
            for _ in 0..230_000 {
                let plan = pacing.plan(&mut terminal);
                let paces = SPEC.pacing.unwrap();
                let keying_s = paces[plan.transaction].keying_s * keying_multiplier;
                let think_s = plan.pause as f64 / 1e9 - keying_s;
                assert!(think_s > -1e-6);
                thought[last].0 += think_s;
                thought[last].1 += 1;
                last = plan.transaction;
            }
            for ((sum, count), pace) in thought.iter().zip(SPEC.pacing.unwrap()) {
                let (mean, expected) =
                    (sum / f64::from(*count), pace.think_mean_s * think_multiplier);
                // At least 10,000 times of an exponential distribution: a hundredth is a deviation.
                assert!((mean / expected - 1.0).abs() < 0.05, "{mean} {expected}");
            }
        }
    }

    #[test]
    fn terminals_begin_at_an_even_rate() {
        let pacing = Pacing::new(&options());
        assert!((pacing.cycle_s() - 20.696).abs() < 0.001);
        let mut kinds = [0; 5];
        // Begins of 20,000 terminals in each of 60 seconds.
        let mut seconds = [0_u32; 60];
        for number in 0..20_000 {
            let mut terminal = terminal(number);
            let mut plan = pacing.first(&mut terminal);
            let mut at = plan.pause;
            while let Some(second) = seconds.get_mut((at / SECOND) as usize) {
                *second += 1;
                kinds[plan.transaction] += 1;
                plan = pacing.plan(&mut terminal);
                at += plan.pause;
            }
        }
        // 966 a second, with a deviation of 31 at most.
        assert!(seconds.iter().all(|count| (840..1_090).contains(count)), "{seconds:?}");
        let all: u32 = kinds.iter().sum();
        for (count, cards) in kinds.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0]) {
            let expected = f64::from(all) * cards / 23.0;
            // 25,000 of the frequent kinds, 2,500 of the rare ones.
            let bound = if cards > 1.0 { 0.012 } else { 0.07 };
            assert!((f64::from(*count) / expected - 1.0).abs() < bound, "{kinds:?}");
        }
    }

    #[test]
    fn without_pauses_everything_is_due_at_once() {
        let no_pauses =
            TpccOptions::new(BMSQL_5_0, &TpccDatabase { warehouses: 1, c_last: 100 }, 7);
        let pacing = Pacing::new(&no_pauses);
        assert_eq!(pacing.first(&mut terminal(0)).pause, 0);
        assert_eq!(pacing.plan(&mut terminal(0)).pause, 0);
    }
}
