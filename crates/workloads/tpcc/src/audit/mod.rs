//! Audit of a run against its plan: the rates that an auditor checks, and the skew of the drawn values.
//!
//! Workers count what they executed; the counts are merged when they leave. Each share is compared
//! with its expected value, and each distribution with its exact one.

use crate::facts::AuditLine;
use crate::profile::{
    CustomerKey, PerKind, Profile, REMOTE_LINE_PERCENT, REMOTE_PAYMENT_PERCENT, TpccTransaction,
};
use crate::values::{Constants, NuRand};
use dyno_core::Nanos;
use dyno_facts::{CheckVerdict, Message, say};
use serde::{Deserialize, Serialize};

/// Classes of equal probability that a distribution is divided into.
const CLASSES: usize = 16;

/// Runs of [`TRIALS`] trials in which chance alone brings a figure out of its bound, at most.
const FALSE_ALARMS: f64 = 0.01;
const TRIALS: f64 = 1_000.0;
/// Figures of a trial that are held against chance: nine shares, the lines of an order and four distributions
/// here; in checks of papers four least shares, five think times and the bound of tpmC.
const FIGURES: f64 = 24.0;

/// The level of all bounds: chance passes one with a probability of at most `2 exp(-level)`, 4e-7, so that a run has
/// a false alarm in less than 1% (a sum over all figures of all trials, dependent or not).
fn level() -> f64 {
    (2.0 * FIGURES * TRIALS / FALSE_ALARMS).ln()
}

/// Largest deviation of a sum of independent draws from its mean by chance, either way: Bernstein's inequality, which
/// holds for any number of draws. `variance` is that of the sum; no draw is further than `largest` from its mean.
pub(crate) fn chance_of_sum(variance: f64, largest: f64) -> f64 {
    let step = level() * largest / 3.0;
    step + (step * step + 2.0 * level() * variance).sqrt()
}

/// Largest deviation of an observed share from the expected one by chance, either way.
pub(crate) fn chance_of_share(expected: f64, count: u64) -> f64 {
    let draws = count.max(1) as f64;
    // What must or can't happen does or doesn't.
    let is_drawn = expected > 0.0 && expected < 1.0;
    if is_drawn { chance_of_sum(draws * expected * (1.0 - expected), 1.0) / draws } else { 0.0 }
}

/// The least mean that chance leaves of `draws` draws of an exponential distribution, as a share of the distribution's
/// mean: sums of them are below it at most as a normal variable of the same variance is.
pub(crate) fn least_mean_of_exponentials(draws: u64) -> f64 {
    (1.0 - (2.0 * level() / draws.max(1) as f64).sqrt()).max(0.0)
}

/// Draws that each class has to be expected to have: with fewer, chi-square isn't one.
const MIN_EXPECTED_IN_CLASS: f64 = 10.0;

/// Drawn values by class.
type Histogram = [u64; CLASSES];

/// Cases, and those among them in which something happened.
pub(crate) type Cases = [u64; 2];

#[inline]
fn count_case(cases: &mut Cases, has_happened: bool) {
    cases[0] += 1;
    cases[1] += u64::from(has_happened);
}

/// Pauses of terminals around transactions of one kind: number and sum in nanoseconds of think times, and of keying
/// times.
pub(crate) type PauseSums = [[u64; 2]; 2];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// Transactions that were begun, however they ended: what terminals have chosen.
    begun: [u64; 5],
    /// New-Orders, and those that were rolled back.
    orders: Cases,
    /// Lines, and remote ones.
    lines: Cases,
    /// Payments, and remote ones.
    payments: Cases,
    /// Customers, and those by last name.
    customers: Cases,
    /// Deliveries, by the terminal itself or later, and those with a district that had no order.
    deliveries: Cases,
    items: Histogram,
    customer_ids: Histogram,
    last_names: Histogram,
    /// Pauses in the measured window.
    pub(crate) pauses: PerKind<PauseSums>,
    /// New-Orders that were committed and Payments, and those with rows on several shards.
    spread: Cases,
}

impl Counters {
    /// Notes an order or a payment, and if it has rows on several shards.
    #[inline]
    pub(crate) fn spread(&mut self, is_crossing: bool) {
        count_case(&mut self.spread, is_crossing);
    }

    /// The share of transactions of several shards among the New-Orders and Payments; `None` if unknown.
    pub(crate) fn crossing_share(&self) -> Option<f64> {
        let [all, crossing] = self.spread;
        (all > 0).then(|| crossing as f64 / all as f64)
    }

    /// Counts the time that a terminal has thought about its last transaction; `keyed` is that of keying in the one
    /// that it entered then, if that is known.
    #[inline]
    pub(crate) fn pause(&mut self, thought: (usize, Nanos), keyed: Option<(usize, Nanos)>) {
        for (at, (kind, pause)) in [Some(thought), keyed].into_iter().flatten().enumerate() {
            let [number, sum_ns] = &mut self.pauses[kind][at];
            (*number, *sum_ns) = (*number + 1, *sum_ns + pause);
        }
    }

    #[inline]
    pub(crate) fn count_begin(&mut self, kind: TpccTransaction) {
        self.begun[kind.index()] += 1;
    }

    #[inline]
    pub(crate) fn count_order(&mut self, expected: &Expected, customer: i64, is_rolled_back: bool) {
        count_case(&mut self.orders, is_rolled_back);
        self.customer_ids[expected.customer_ids.class_index(customer as u64)] += 1;
    }

    #[inline]
    pub(crate) fn count_line(&mut self, expected: &Expected, item: i64, is_remote: bool) {
        count_case(&mut self.lines, is_remote);
        self.items[expected.items.class_index(item as u64)] += 1;
    }

    #[inline]
    pub(crate) fn count_payment(&mut self, is_remote: bool) {
        count_case(&mut self.payments, is_remote);
    }

    #[inline]
    pub(crate) fn count_customer(&mut self, expected: &Expected, who: &CustomerKey) {
        count_case(&mut self.customers, matches!(who, CustomerKey::Name(..)));
        match who {
            CustomerKey::Id(id) => {
                self.customer_ids[expected.customer_ids.class_index(*id as u64)] += 1
            }
            CustomerKey::Name(number, _) => {
                self.last_names[expected.last_names.class_index(*number)] += 1
            }
        }
    }

    #[inline]
    pub(crate) fn count_delivery(&mut self, skipped: u32) {
        count_case(&mut self.deliveries, skipped > 0);
    }

    /// Adds what another worker or load generator has counted.
    pub(crate) fn add(&mut self, mut more: Counters) {
        self.counts().zip(more.counts()).for_each(|(sum, count)| *sum += *count);
    }

    /// All counts, in one order.
    fn counts(&mut self) -> impl Iterator<Item = &mut u64> {
        let Counters { begun, orders, lines, payments, customers, deliveries, spread, .. } = self;
        let cases = [orders, lines, payments, customers, deliveries, spread].into_iter().flatten();
        let histograms = [&mut self.items, &mut self.customer_ids, &mut self.last_names];
        let pauses = self.pauses.as_flattened_mut().as_flattened_mut();
        begun.iter_mut().chain(cases).chain(histograms.into_iter().flatten()).chain(pauses)
    }
}

/// The values of a distribution in classes, the most probable ones first.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    low: u64,
    class_by_value: Vec<u8>,
    probabilities: [f64; CLASSES],
}

impl Classes {
    /// Divides into classes of about equal probability: what is uniform instead fills the last
    /// ones, which hold most values.
    fn new(distribution: &NuRand) -> Self {
        let exact = distribution.probabilities();
        let mut order: Vec<usize> = (0..exact.len()).collect();
        order.sort_by(|&a, &b| exact[b].total_cmp(&exact[a]));
        let mut class_by_value = vec![0; exact.len()];
        let mut probabilities = [0.0; CLASSES];
        let mut sum = 0.0;
        for value in order {
            let class = ((sum * CLASSES as f64) as usize).min(CLASSES - 1);
            class_by_value[value] = class as u8;
            probabilities[class] += exact[value];
            sum += exact[value];
        }
        Classes { low: distribution.low, class_by_value, probabilities }
    }

    #[inline]
    fn class_index(&self, value: u64) -> usize {
        usize::from(self.class_by_value[(value - self.low) as usize])
    }
}

/// A value that chance brings chi-square above with a probability of at most `exp(-level)` (Laurent and Massart).
fn chi_square_limit(freedom: f64) -> f64 {
    freedom + 2.0 * (freedom * level()).sqrt() + 2.0 * level()
}

#[derive(Clone, Debug)]
pub(crate) struct Expected {
    shares: [f64; 5],
    rollback: f64,
    remote_line: f64,
    remote_payment: f64,
    by_name: f64,
    items: Classes,
    customer_ids: Classes,
    last_names: Classes,
}

impl Expected {
    pub(crate) fn new(profile: &Profile, warehouses: u32, constants: &Constants) -> Self {
        let shares = profile.choice.shares();
        let sum: u32 = shares.iter().sum();
        // With a single warehouse, nothing is remote.
        let [line, payment] =
            if warehouses > 1 { [REMOTE_LINE_PERCENT, REMOTE_PAYMENT_PERCENT] } else { [0, 0] };
        let percents = [profile.rollback_percent, line, payment, profile.by_name_percent];
        let [rollback, remote_line, remote_payment, by_name] =
            percents.map(|percent| f64::from(percent) / 100.0);
        Expected {
            shares: shares.map(|share| f64::from(share) / f64::from(sum)),
            rollback,
            remote_line,
            remote_payment,
            by_name,
            items: Classes::new(&constants.item()),
            customer_ids: Classes::new(&constants.customer()),
            last_names: Classes::new(&constants.last_name()),
        }
    }

    /// Compares what was counted with the shares that the profile makes likely.
    pub(crate) fn audit(&self, found: &Counters) -> Audit {
        let transactions: u64 = found.begun.iter().sum();
        let Counters { orders, lines, payments, customers, deliveries, .. } = *found;
        let titles = [
            say!(audit_mix_new_order),
            say!(audit_mix_payment),
            say!(audit_mix_order_status),
            say!(audit_mix_delivery),
            say!(audit_mix_stock_level),
        ];
        let mut figures = Vec::new();
        for (title, (count, share)) in titles.into_iter().zip(found.begun.iter().zip(self.shares)) {
            figures.push(AuditFigure::share(title, [transactions, *count], share));
        }
        let shares = [
            (say!(audit_rollbacks), orders, self.rollback),
            (say!(audit_remote_lines), lines, self.remote_line),
            (say!(audit_remote_payments), payments, self.remote_payment),
            (say!(audit_by_last_name), customers, self.by_name),
        ];
        figures.extend(shares.map(|(title, found, share)| AuditFigure::share(title, found, share)));
        // The lines that were entered; the unused one of a rollback isn't among the counted ones.
        figures.push(AuditFigure::lines_per_order(lines[0] + orders[1], orders[0]));
        let skews = [
            (say!(audit_items), &found.items, &self.items, "NURand(8191)"),
            (say!(audit_customers), &found.customer_ids, &self.customer_ids, "NURand(1023)"),
            (say!(audit_last_names), &found.last_names, &self.last_names, "NURand(255)"),
        ];
        figures.extend(skews.map(|(title, found, classes, expected)| {
            AuditFigure::skew(title, found, &classes.probabilities, expected.into())
        }));
        let expected = say!(audit_as_in_profile);
        figures.push(AuditFigure::skew(say!(audit_mix), &found.begun, &self.shares, expected));
        let [deliveries, deliveries_with_skips] = deliveries;
        Audit { figures, orders: orders[0], deliveries, deliveries_with_skips }
    }
}

/// Mean number of lines of an order: that of 5..=15 (clause 2.4.1.3).
const LINES_MEAN: f64 = 10.0;
/// Orders from which on the mean of their lines is judged.
const MIN_JUDGED_ORDERS: u64 = 30;

/// A figure of the executed transactions next to its expected value. Its line is passed if chance explains the
/// difference, and not made if there are too few observations to say.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditFigure {
    /// The line in records and papers.
    pub line: AuditLine,
    /// 0 if nothing could have happened.
    pub observed: f64,
    /// 0 of a distance.
    pub expected: f64,
}

impl AuditFigure {
    /// A figure that chance explains if it is within the bound; `is_judged` is false for too few observations.
    fn new(
        name: Message,
        [observed, expected, bound]: [f64; 3],
        texts: [Message; 3],
        observations: u64,
        is_judged: bool,
    ) -> Self {
        let verdict = match (is_judged, (observed - expected).abs() <= bound) {
            (false, _) => CheckVerdict::NotMade,
            (true, true) => CheckVerdict::Passed,
            (true, false) => CheckVerdict::Failed,
        };
        let [is, should_be, bound] = texts;
        let bound = if is_judged { bound } else { "-".into() };
        let line =
            AuditLine { name, observed: is, expected: should_be, bound, of: observations, verdict };
        AuditFigure { line, observed, expected }
    }

    /// A figure that is the share of `count` in `total` cases.
    pub(crate) fn share(name: Message, [total, count]: Cases, expected: f64) -> Self {
        let observed = count as f64 / total.max(1) as f64;
        let figures = [observed, expected, chance_of_share(expected, total)];
        let texts = with_bound(figures.map(|value| format!("{:.3}%", 100.0 * value)));
        AuditFigure::new(name, figures, texts, total, total > 0)
    }

    fn lines_per_order(lines: u64, orders: u64) -> Self {
        let count = orders.max(1) as f64;
        // Eleven values alike, 5 to 15: the variance is (11^2 - 1) / 12.
        let bound = chance_of_sum(10.0 * count, 5.0) / count;
        let figures = [lines as f64 / count, LINES_MEAN, bound];
        let texts = with_bound(figures.map(|value| format!("{value:.3}")));
        let (name, is_judged) = (say!(audit_lines_per_order), orders >= MIN_JUDGED_ORDERS);
        AuditFigure::new(name, figures, texts, orders, is_judged)
    }

    /// The distance of counts from a distribution.
    fn skew(name: Message, found: &[u64], probabilities: &[f64], distribution: Message) -> Self {
        let draws: u64 = found.iter().sum();
        let mut distance = 0.0;
        let mut classes = 0;
        let mut min_expected = f64::MAX;
        for (&count, &probability) in found.iter().zip(probabilities) {
            let expected = probability * draws as f64;
            if expected > 0.0 {
                distance += (count as f64 - expected).powi(2) / expected;
                classes += 1;
                min_expected = min_expected.min(expected);
            } else if count > 0 {
                distance = f64::INFINITY;
            }
        }
        let limit = chi_square_limit(f64::from(classes.max(2) - 1));
        let is_judged = draws > 0 && min_expected >= MIN_EXPECTED_IN_CLASS && classes > 1;
        let texts = [
            say!(audit_chi_square, value = format!("{distance:.1}")),
            distribution,
            say!(audit_at_most, value = format!("{limit:.1}")),
        ];
        AuditFigure::new(name, [distance, 0.0, limit], texts, draws, is_judged)
    }
}

fn with_bound([observed, expected, bound]: [String; 3]) -> [Message; 3] {
    [observed.into(), expected.into(), format!("± {bound}").into()]
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
    /// Deliveries with a district that had no undelivered order: over 1% have to be explained (clause 2.7.4.2).
    pub deliveries_with_skips: u64,
}

impl Audit {
    fn lines_with(&self, verdict: CheckVerdict) -> impl Iterator<Item = &AuditLine> {
        self.figures.iter().map(|figure| &figure.line).filter(move |line| line.verdict == verdict)
    }

    /// The figures for which there are too few observations.
    pub fn unjudged(&self) -> Vec<Message> {
        self.lines_with(CheckVerdict::NotMade).map(|line| line.name.clone()).collect()
    }

    /// A sentence for everything that chance does not explain.
    pub fn problems(&self) -> Vec<Message> {
        let problems = self.lines_with(CheckVerdict::Failed).map(|line| {
            let AuditLine { name, observed, expected, bound, of, .. } = line.clone();
            say!(audit_wrong, name, observed, expected, bound, of)
        });
        problems.collect()
    }
}

#[cfg(test)]
mod tests;
