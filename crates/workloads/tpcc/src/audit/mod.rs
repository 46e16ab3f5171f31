//! What a run really did against what it should have done: the rates that an auditor looks at, and the skew of what was drawn.
//!
//! Workers count what they executed; the counts are merged when they leave. Each share is compared
//! with its expected value, and each distribution with its exact one.

use crate::facts::AuditLine;
use crate::profile::{
    CustomerKey, PerKind, Profile, REMOTE_LINE_PERCENT, REMOTE_PAYMENT_PERCENT, TpccTransaction,
    TransactionChoice,
};
use crate::values::{Constants, NuRand};
use crate::{LINES_MAX, LINES_MIN};
use dyno_core::Nanos;
use dyno_facts::{CheckVerdict, Message, say};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Classes of equal probability that a distribution is divided into.
const CLASSES: usize = 16;

/// Runs of [`TRIALS`] trials in which chance alone brings a figure out of its bound, at most.
const FALSE_ALARMS: f64 = 0.01;
const TRIALS: f64 = 1_000.0;
/// Figures of a trial that are held against chance: twelve shares, the lines of an order and four distributions
/// here; in checks of papers four least shares, five think times and the bound of tpmC.
const FIGURES: f64 = 27.0;

/// The level of all bounds: chance passes one with a probability of at most `2 exp(-level)`, 4e-7, so that a run has
/// a false alarm in less than 1 % (a sum over all figures of all trials, dependent or not).
fn level() -> f64 {
    (2.0 * FIGURES * TRIALS / FALSE_ALARMS).ln()
}

/// How far a sum of independent draws may be from its mean by chance, either way: Bernstein's inequality, which holds
/// for any number of draws. `variance` is that of the sum; no draw is further than `largest` from its mean.
pub(crate) fn chance_of_sum(variance: f64, largest: f64) -> f64 {
    let step = level() * largest / 3.0;
    step + (step * step + 2.0 * level() * variance).sqrt()
}

/// How far an observed share may be from the expected one by chance, either way.
pub(crate) fn chance_of_share(expected: f64, of: u64) -> f64 {
    let draws = of.max(1) as f64;
    // What must or can't happen does or doesn't.
    let is_drawn = expected > 0.0 && expected < 1.0;
    if is_drawn { chance_of_sum(draws * expected * (1.0 - expected), 1.0) / draws } else { 0.0 }
}

/// The least mean that chance leaves of so many draws of an exponential distribution, as a share of the distribution's
/// mean: sums of them are below it at most as a normal variable of the same variance is.
pub(crate) fn least_mean_of_exponentials(draws: u64) -> f64 {
    (1.0 - (2.0 * level() / draws.max(1) as f64).sqrt()).max(0.0)
}

/// Draws that each class has to be expected to have: with fewer, chi-square isn't one.
const LEAST_IN_CLASS: f64 = 10.0;

/// Drawn values by class.
type Histogram = [u64; CLASSES];

/// What the warehouses of one shard did that may lie on other shards, too, and how much of it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CrossingCounts {
    /// Of all and of those that cross, as of the others.
    lines: [u64; 2],
    /// Committed ones.
    orders: [u64; 2],
    payments: [u64; 2],
}

/// Pauses of terminals around transactions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PauseSums {
    pub(crate) thinks: u64,
    pub(crate) think_ns: u64,
    pub(crate) keyings: u64,
    pub(crate) keying_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// Transactions that were begun, however they ended: what terminals have chosen.
    begun: [u64; 5],
    orders: u64,
    payments: u64,
    rolled_back: u64,
    lines: u64,
    remote_lines: u64,
    remote_payments: u64,
    named: u64,
    customers: u64,
    deliveries: u64,
    deliveries_with_skips: u64,
    items: Histogram,
    customer_ids: Histogram,
    last_names: Histogram,
    /// In the measured window.
    pauses: PerKind<PauseSums>,
    /// By shard; empty where none are known.
    shards: Vec<CrossingCounts>,
}

impl Counters {
    /// Notes how many lines of an order of a terminal of warehouse `home` come from other shards.
    #[inline]
    pub(crate) fn spread_order(
        &mut self,
        expected: &Expected,
        home: i64,
        suppliers: impl Iterator<Item = i64>,
        is_committed: bool,
    ) {
        let Some(counts) = expected.shard(home).and_then(|at| self.shards.get_mut(at)) else {
            return;
        };
        let (mut lines, mut crossing) = (0, 0);
        for supplier in suppliers {
            lines += 1;
            crossing += u64::from(expected.shard(supplier) != expected.shard(home));
        }
        counts.lines = [counts.lines[0] + lines, counts.lines[1] + crossing];
        counts.orders[0] += u64::from(is_committed);
        counts.orders[1] += u64::from(is_committed && crossing > 0);
    }

    /// Notes if the customer of a payment at warehouse `home` lies on another shard.
    #[inline]
    pub(crate) fn spread_payment(&mut self, expected: &Expected, home: i64, customer: i64) {
        let shard = expected.shard(home);
        if let Some(counts) = shard.and_then(|at| self.shards.get_mut(at)) {
            counts.payments[0] += 1;
            counts.payments[1] += u64::from(expected.shard(customer) != shard);
        }
    }

    /// The share of transactions of several shards among the New-Orders and Payments; `None` if unknown.
    pub(crate) fn crossing_share(&self) -> Option<f64> {
        let sum = |at: usize| {
            self.shards.iter().map(|it| it.orders[at] + it.payments[at]).sum::<u64>() as f64
        };
        (sum(0) > 0.0).then(|| sum(1) / sum(0))
    }

    /// A terminal has thought about its last transaction for so long; `keyed` is how long it has keyed in the one
    /// that it entered then, where that is known.
    #[inline]
    pub(crate) fn pause(&mut self, thought: (usize, Nanos), keyed: Option<(usize, Nanos)>) {
        let pauses = &mut self.pauses[thought.0];
        pauses.thinks += 1;
        pauses.think_ns += thought.1;
        if let Some((kind, keying)) = keyed {
            self.pauses[kind].keyings += 1;
            self.pauses[kind].keying_ns += keying;
        }
    }

    pub(crate) fn pauses(&self) -> &PerKind<PauseSums> {
        &self.pauses
    }

    #[inline]
    pub(crate) fn begin(&mut self, kind: TpccTransaction) {
        self.begun[kind.index()] += 1;
    }

    #[inline]
    pub(crate) fn order(&mut self, expected: &Expected, customer: i64, is_rolled_back: bool) {
        self.orders += 1;
        self.rolled_back += u64::from(is_rolled_back);
        self.customer_ids[expected.customer_ids.class(customer as u64)] += 1;
    }

    #[inline]
    pub(crate) fn line(&mut self, expected: &Expected, item: i64, is_remote: bool) {
        self.lines += 1;
        self.remote_lines += u64::from(is_remote);
        self.items[expected.items.class(item as u64)] += 1;
    }

    #[inline]
    pub(crate) fn payment(&mut self, is_remote: bool) {
        self.payments += 1;
        self.remote_payments += u64::from(is_remote);
    }

    #[inline]
    pub(crate) fn customer(&mut self, expected: &Expected, who: &CustomerKey) {
        self.customers += 1;
        match who {
            CustomerKey::Id(id) => self.customer_ids[expected.customer_ids.class(*id as u64)] += 1,
            CustomerKey::Name(number, _) => {
                self.named += 1;
                self.last_names[expected.last_names.class(*number)] += 1;
            }
        }
    }

    /// A Delivery was executed: by the terminal itself, or later.
    #[inline]
    pub(crate) fn delivered(&mut self, skipped: u32) {
        self.deliveries += 1;
        self.deliveries_with_skips += u64::from(skipped > 0);
    }

    /// Adds what another worker or load generator has counted.
    pub(crate) fn add(&mut self, mut more: Counters) {
        let shards = self.shards.len().max(more.shards.len());
        self.shards.resize(shards, CrossingCounts::default());
        more.shards.resize(shards, CrossingCounts::default());
        self.counts().into_iter().zip(more.counts()).for_each(|(sum, count)| *sum += *count);
    }

    /// All counts, in one order.
    fn counts(&mut self) -> Vec<&mut u64> {
        let mut counts = vec![
            &mut self.orders,
            &mut self.payments,
            &mut self.rolled_back,
            &mut self.lines,
            &mut self.remote_lines,
            &mut self.remote_payments,
            &mut self.named,
            &mut self.customers,
            &mut self.deliveries,
            &mut self.deliveries_with_skips,
        ];
        counts.extend(&mut self.begun);
        counts.extend(
            [&mut self.items, &mut self.customer_ids, &mut self.last_names].into_iter().flatten(),
        );
        for PauseSums { thinks, think_ns, keyings, keying_ns } in &mut self.pauses {
            counts.extend([thinks, think_ns, keyings, keying_ns]);
        }
        for shard in &mut self.shards {
            let CrossingCounts { lines, orders, payments } = shard;
            counts.extend([lines, orders, payments].into_iter().flatten());
        }
        counts
    }
}

/// The values of a distribution in classes, the most probable ones first.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    low: u64,
    of: Vec<u8>,
    probabilities: [f64; CLASSES],
}

impl Classes {
    /// Divides into classes of about equal probability: what is uniform instead fills the last
    /// ones, which hold most values.
    fn new(distribution: &NuRand) -> Self {
        let exact = distribution.probabilities();
        let mut order: Vec<usize> = (0..exact.len()).collect();
        order.sort_by(|&a, &b| exact[b].total_cmp(&exact[a]));
        let mut of = vec![0; exact.len()];
        let mut probabilities = [0.0; CLASSES];
        let mut sum = 0.0;
        for value in order {
            let class = ((sum * CLASSES as f64) as usize).min(CLASSES - 1);
            of[value] = class as u8;
            probabilities[class] += exact[value];
            sum += exact[value];
        }
        Classes { low: distribution.low, of, probabilities }
    }

    #[inline]
    fn class(&self, value: u64) -> usize {
        usize::from(self.of[(value - self.low) as usize])
    }
}

/// A value that chance brings chi-square above with a probability of at most `exp(-level)` (Laurent and Massart).
fn chi_square_limit(freedom: f64) -> f64 {
    freedom + 2.0 * (freedom * level()).sqrt() + 2.0 * level()
}

#[derive(Clone, Debug)]
pub(crate) struct Expected {
    shares: [f64; 5],
    /// Cards of a deck, where the mix comes from decks.
    cards: Option<u32>,
    rollback: f64,
    remote_line: f64,
    remote_payment: f64,
    by_name: f64,
    items: Classes,
    customer_ids: Classes,
    last_names: Classes,
    /// The shard of each warehouse; empty if unknown.
    shard_of: Vec<usize>,
    /// By shard: the share of the warehouses other than one's own that lie on other shards.
    elsewhere: Vec<f64>,
}

/// The share of orders with some line among those that are `share` of all lines. All numbers of lines are alike.
fn any_order_line(share: f64) -> f64 {
    let numbers = LINES_MIN..=LINES_MAX;
    let count = numbers.clone().count() as f64;
    1.0 - numbers.map(|lines| (1.0 - share).powi(lines as i32)).sum::<f64>() / count
}

impl Expected {
    pub(crate) fn new(profile: &Profile, warehouses: u32, constants: &Constants) -> Self {
        let shares = profile.choice.shares();
        let sum: u32 = shares.iter().sum();
        let part = |percent: u32| f64::from(percent) / 100.0;
        // There is no other warehouse where there is only one.
        let remote = |percent: u32| if warehouses > 1 { part(percent) } else { 0.0 };
        Expected {
            shares: shares.map(|share| f64::from(share) / f64::from(sum)),
            cards: matches!(profile.choice, TransactionChoice::Deck(_)).then_some(sum),
            rollback: part(profile.rollback_percent),
            remote_line: remote(REMOTE_LINE_PERCENT),
            remote_payment: remote(REMOTE_PAYMENT_PERCENT),
            by_name: part(profile.by_name_percent),
            items: Classes::new(&constants.item()),
            customer_ids: Classes::new(&constants.customer()),
            last_names: Classes::new(&constants.last_name()),
            shard_of: Vec::new(),
            elsewhere: Vec::new(),
        }
    }

    /// For warehouses that lie on shards: `shard_of` has the shard of each one that is used.
    pub(crate) fn on_shards(self, shard_of: Vec<usize>) -> Self {
        let mut held = vec![0; shard_of.iter().max().map_or(0, |last| last + 1)];
        shard_of.iter().for_each(|&shard| held[shard] += 1);
        let others = shard_of.len().max(2) - 1;
        let share = |held: usize| (shard_of.len() - held) as f64 / others as f64;
        Expected { elsewhere: held.into_iter().map(share).collect(), shard_of, ..self }
    }

    #[inline]
    fn shard(&self, warehouse: i64) -> Option<usize> {
        self.shard_of.get(warehouse as usize - 1).copied()
    }

    /// Counters for as many shards as are known.
    pub(crate) fn counters(&self) -> Counters {
        let shards = vec![CrossingCounts::default(); self.elsewhere.len()];
        Counters { shards, ..Counters::default() }
    }

    /// The number of shards that warehouses lie on; `None` if unknown.
    pub(crate) fn shards(&self) -> Option<u32> {
        let shards: BTreeSet<usize> = self.shard_of.iter().copied().collect();
        (!shards.is_empty()).then_some(shards.len() as u32)
    }

    /// What crosses shards, of all: a shard's own share of it depends on how many warehouses it has.
    fn crossings(&self, found: &Counters) -> Vec<AuditFigure> {
        if self.elsewhere.is_empty() {
            return Vec::new();
        }
        let line = |elsewhere: f64| self.remote_line * elsewhere;
        let order = |elsewhere: f64| any_order_line(line(elsewhere));
        let payment = |elsewhere: f64| self.remote_payment * elsewhere;
        let share =
            |title, counts: fn(&CrossingCounts) -> [u64; 2], expected: &dyn Fn(f64) -> f64| {
                let (mut all, mut crossing, mut sum) = (0, 0, 0.0);
                for (shard, elsewhere) in found.shards.iter().zip(&self.elsewhere) {
                    let [cases, crossed] = counts(shard);
                    (all, crossing) = (all + cases, crossing + crossed);
                    sum += cases as f64 * expected(*elsewhere);
                }
                AuditFigure::share(title, (crossing, all), sum / all.max(1) as f64)
            };
        vec![
            share(say!(audit_crossing_lines), |it| it.lines, &line),
            share(say!(audit_crossing_orders), |it| it.orders, &order),
            share(say!(audit_crossing_payments), |it| it.payments, &payment),
        ]
    }

    /// Compares. `terminals` have begun the transactions; `None` when those of some are missing.
    pub(crate) fn audit(&self, found: &Counters, terminals: Option<u32>) -> Audit {
        let all: u64 = found.begun.iter().sum();
        let Counters { orders, payments, lines, customers, .. } = *found;
        let titles = [
            say!(audit_mix_new_order),
            say!(audit_mix_payment),
            say!(audit_mix_order_status),
            say!(audit_mix_delivery),
            say!(audit_mix_stock_level),
        ];
        let mix = titles.into_iter().zip(found.begun.iter().zip(self.shares));
        let mut figures: Vec<AuditFigure> = mix
            .map(|(title, (&count, share))| {
                let figure = AuditFigure::share(title, (count, all), share);
                match terminals.zip(self.cards) {
                    Some((terminals, cards)) => figure.in_decks(terminals, cards),
                    None => figure,
                }
            })
            .collect();
        let remote_lines = (found.remote_lines, lines);
        let remote_payments = (found.remote_payments, payments);
        figures.extend([
            AuditFigure::share(say!(audit_rollbacks), (found.rolled_back, orders), self.rollback),
            AuditFigure::share(say!(audit_remote_lines), remote_lines, self.remote_line),
            AuditFigure::share(say!(audit_remote_payments), remote_payments, self.remote_payment),
            AuditFigure::share(say!(audit_by_last_name), (found.named, customers), self.by_name),
        ]);
        figures.extend(self.crossings(found));
        // The lines that were entered; the unused one of a rollback isn't among the counted ones.
        figures.push(AuditFigure::lines_per_order(lines + found.rolled_back, orders));
        let skew = |title, found: &[u64], classes: &Classes, expected: &str| {
            AuditFigure::skew(title, found, &classes.probabilities, expected.into())
        };
        figures.extend([
            skew(say!(audit_items), &found.items, &self.items, "NURand(8191)"),
            skew(say!(audit_customers), &found.customer_ids, &self.customer_ids, "NURand(1023)"),
            skew(say!(audit_last_names), &found.last_names, &self.last_names, "NURand(255)"),
            AuditFigure::skew(
                say!(audit_mix),
                &found.begun,
                &self.shares,
                say!(audit_as_in_profile),
            ),
        ]);
        Audit {
            figures,
            orders,
            deliveries: found.deliveries,
            deliveries_with_skips: found.deliveries_with_skips,
        }
    }
}

/// Mean number of lines of an order: that of 5..=15 (clause 2.4.1.3).
const LINES_MEAN: f64 = 10.0;
/// Orders from which on the mean of their lines is judged.
const LEAST_ORDERS: u64 = 30;

/// The kind of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureForm {
    /// A share, 0 to 1.
    Share,
    Mean,
    /// Chi-square of 16 classes of about equal probability, or of the five kinds; of this distribution.
    ChiSquare(Message),
}

/// A figure of the executed transactions next to its expected value.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditFigure {
    pub title: Message,
    pub form: FigureForm,
    /// 0 where nothing could have happened.
    pub observed: f64,
    pub expected: f64,
    /// The largest difference that chance explains, either way.
    pub bound: f64,
    /// Observations.
    pub of: u64,
    /// Passed if chance explains the difference; not made if there are too few observations to say.
    pub verdict: CheckVerdict,
}

impl AuditFigure {
    /// A figure that chance explains if it is within the bound; `is_judged` is false for too few observations.
    fn new(
        title: Message,
        form: FigureForm,
        [observed, expected, bound]: [f64; 3],
        of: u64,
        is_judged: bool,
    ) -> Self {
        let verdict = match (is_judged, (observed - expected).abs() <= bound) {
            (false, _) => CheckVerdict::NotMade,
            (true, true) => CheckVerdict::Passed,
            (true, false) => CheckVerdict::Failed,
        };
        AuditFigure { title, form, observed, expected, bound, of, verdict }
    }

    pub(crate) fn share(title: Message, (count, of): (u64, u64), expected: f64) -> Self {
        let observed = count as f64 / of.max(1) as f64;
        let bound = chance_of_share(expected, of);
        AuditFigure::new(title, FigureForm::Share, [observed, expected, bound], of, of > 0)
    }

    /// The bound where each terminal plays its cards from decks: only those of the decks that it was in
    /// at the begin and at the end vary. What a terminal draws of one of `cards` varies most when
    /// half of them are played, by a quarter of their number.
    fn in_decks(self, terminals: u32, cards: u32) -> Self {
        let AuditFigure { title, form, observed, expected, of, .. } = self;
        let cards = f64::from(cards);
        let variance = expected * (1.0 - expected) * cards / 4.0 * cards / (cards - 1.0).max(1.0);
        let variance = 2.0 * f64::from(terminals) * variance;
        let bound = self.bound.min(chance_of_sum(variance, 1.0) / of.max(1) as f64);
        AuditFigure::new(title, form, [observed, expected, bound], of, of > 0)
    }

    fn lines_per_order(lines: u64, orders: u64) -> Self {
        let count = orders.max(1) as f64;
        // Eleven values alike, 5 to 15: the variance is (11^2 - 1) / 12.
        let bound = chance_of_sum(10.0 * count, 5.0) / count;
        let figures = [lines as f64 / count, LINES_MEAN, bound];
        let (title, is_judged) = (say!(audit_lines_per_order), orders >= LEAST_ORDERS);
        AuditFigure::new(title, FigureForm::Mean, figures, orders, is_judged)
    }

    /// The distance of counts from a distribution.
    fn skew(title: Message, found: &[u64], probabilities: &[f64], distribution: Message) -> Self {
        let draws: u64 = found.iter().sum();
        let mut distance = 0.0;
        let mut classes = 0;
        let mut least = f64::MAX;
        for (&count, &probability) in found.iter().zip(probabilities) {
            let expected = probability * draws as f64;
            if expected > 0.0 {
                distance += (count as f64 - expected).powi(2) / expected;
                classes += 1;
                least = least.min(expected);
            } else if count > 0 {
                distance = f64::INFINITY;
            }
        }
        let limit = chi_square_limit(f64::from(classes.max(2) - 1));
        let is_judged = draws > 0 && least >= LEAST_IN_CLASS && classes > 1;
        let form = FigureForm::ChiSquare(distribution);
        AuditFigure::new(title, form, [distance, 0.0, limit], draws, is_judged)
    }

    /// The figure as records and papers have it.
    pub(crate) fn line(&self) -> AuditLine {
        let percent = |share: f64| format!("{:.3} %", 100.0 * share);
        let [observed, expected, bound]: [Message; 3] = match &self.form {
            FigureForm::Share => [
                percent(self.observed).into(),
                percent(self.expected).into(),
                format!("± {}", percent(self.bound)).into(),
            ],
            FigureForm::Mean => [
                format!("{:.3}", self.observed).into(),
                self.expected.to_string().into(),
                match self.verdict {
                    CheckVerdict::NotMade => "-".into(),
                    _ => format!("± {:.3}", self.bound).into(),
                },
            ],
            FigureForm::ChiSquare(distribution) => [
                say!(audit_chi_square, value = format!("{:.1}", self.observed)),
                distribution.clone(),
                say!(audit_at_most, value = format!("{:.1}", self.bound)),
            ],
        };
        let (name, of, verdict) = (self.title.clone(), self.of, self.verdict);
        AuditLine { name, observed, expected, bound, of, verdict }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// The mix, rollbacks, remote lines and payments, customers by last name; the lines of orders; the distributions of
    /// NURand, and the mix as a whole.
    pub figures: Vec<AuditFigure>,
    /// New-Orders, rolled back ones among them.
    pub orders: u64,
    /// Deliveries executed; of deferred ones the deferred part.
    pub deliveries: u64,
    /// Deliveries with a district that had no undelivered order: over 1 % have to be explained (clause 2.7.4.2).
    pub deliveries_with_skips: u64,
}

impl Audit {
    fn with(&self, verdict: CheckVerdict) -> impl Iterator<Item = &AuditFigure> {
        self.figures.iter().filter(move |figure| figure.verdict == verdict)
    }

    /// The figures for which there are too few observations.
    pub fn unjudged(&self) -> Vec<Message> {
        self.with(CheckVerdict::NotMade).map(|figure| figure.title.clone()).collect()
    }

    /// A sentence for everything that chance does not explain.
    pub fn problems(&self) -> Vec<Message> {
        let problem = |figure: &AuditFigure| {
            let AuditLine { name, observed, expected, bound, of, .. } = figure.line();
            say!(
                audit_wrong,
                name = name,
                observed = observed,
                expected = expected,
                bound = bound,
                of = of
            )
        };
        self.with(CheckVerdict::Failed).map(problem).collect()
    }
}

#[cfg(test)]
mod tests;
