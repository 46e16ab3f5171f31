//! What a run really did against what it should have done: the rates that an auditor looks at, and the skew of what was drawn.
//!
//! Workers count what they executed; the counts are merged when they leave. Each share is compared
//! with its expected value, and each distribution with its exact one.

use crate::profile::{CustomerKey, PerKind, Profile, TpccTransaction, TransactionChoice};
use crate::random::{Constants, NuRand};
use crate::reach::{ReachRoute, any_order_line};
use dyno_core::Nanos;
use dyno_facts::{Message, say};
use serde::{Deserialize, Serialize};

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
    lines: u64,
    crossing_lines: u64,
    /// Committed ones.
    orders: u64,
    crossing_orders: u64,
    payments: u64,
    crossing_payments: u64,
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
    skipped_deliveries: u64,
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
    pub(crate) fn of_shards(shards: usize) -> Self {
        Counters { shards: vec![CrossingCounts::default(); shards], ..Counters::default() }
    }

    /// Notes on how many shards a New-Order or a Payment has its rows.
    #[inline]
    pub(crate) fn spread(&mut self, route: &ReachRoute, is_committed: bool) {
        let Some(counts) = self.shards.get_mut(route.home) else { return };
        match route.is_order {
            true => {
                counts.lines += route.rows;
                counts.crossing_lines += route.crossing;
                counts.orders += u64::from(is_committed);
                counts.crossing_orders += u64::from(is_committed && route.crossing > 0);
            }
            false => {
                counts.payments += 1;
                counts.crossing_payments += route.crossing;
            }
        }
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
        self.skipped_deliveries += u64::from(skipped);
        self.deliveries_with_skips += u64::from(skipped > 0);
    }

    pub(crate) fn add(&mut self, more: &Counters) {
        let add = |to: &mut [u64], from: &[u64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        add(&mut self.begun, &more.begun);
        add(&mut self.items, &more.items);
        add(&mut self.customer_ids, &more.customer_ids);
        add(&mut self.last_names, &more.last_names);
        self.orders += more.orders;
        self.payments += more.payments;
        self.rolled_back += more.rolled_back;
        self.lines += more.lines;
        self.remote_lines += more.remote_lines;
        self.remote_payments += more.remote_payments;
        self.named += more.named;
        self.customers += more.customers;
        self.deliveries += more.deliveries;
        self.skipped_deliveries += more.skipped_deliveries;
        self.deliveries_with_skips += more.deliveries_with_skips;
        for (to, from) in self.pauses.iter_mut().zip(&more.pauses) {
            to.thinks += from.thinks;
            to.think_ns += from.think_ns;
            to.keyings += from.keyings;
            to.keying_ns += from.keying_ns;
        }
        let shards = self.shards.len().max(more.shards.len());
        self.shards.resize(shards, CrossingCounts::default());
        for (to, from) in self.shards.iter_mut().zip(&more.shards) {
            to.lines += from.lines;
            to.crossing_lines += from.crossing_lines;
            to.orders += from.orders;
            to.crossing_orders += from.crossing_orders;
            to.payments += from.payments;
            to.crossing_payments += from.crossing_payments;
        }
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

    fn judge(&self, name: &'static str, found: &Histogram) -> Skew {
        Skew::new(name, found, &self.probabilities)
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
    /// By shard: the share of the warehouses other than one's own that lie on other shards.
    elsewhere: Vec<f64>,
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
            remote_line: remote(profile.remote_line_percent),
            remote_payment: remote(profile.remote_payment_percent),
            by_name: part(profile.by_name_percent),
            items: Classes::new(&constants.item()),
            customer_ids: Classes::new(&constants.customer()),
            last_names: Classes::new(&constants.last_name()),
            elsewhere: Vec::new(),
        }
    }

    /// The same for warehouses that lie on shards; `elsewhere` is by shard.
    pub(crate) fn on_shards(self, elsewhere: Vec<f64>) -> Self {
        Expected { elsewhere, ..self }
    }

    pub(crate) fn shards(&self) -> usize {
        self.elsewhere.len()
    }

    /// What crosses shards, of all: a shard's own share of it depends on how many warehouses it has.
    fn crossings(&self, found: &Counters) -> Vec<ObservedShare> {
        if self.elsewhere.is_empty() {
            return Vec::new();
        }
        let line = |elsewhere: f64| self.remote_line * elsewhere;
        let order = |elsewhere: f64| any_order_line(line(elsewhere));
        let payment = |elsewhere: f64| self.remote_payment * elsewhere;
        let share =
            |name, counts: fn(&CrossingCounts) -> [u64; 2], expected: &dyn Fn(f64) -> f64| {
                let (mut all, mut crossing, mut sum) = (0, 0, 0.0);
                for (shard, elsewhere) in found.shards.iter().zip(&self.elsewhere) {
                    let [cases, crossed] = counts(shard);
                    (all, crossing) = (all + cases, crossing + crossed);
                    sum += cases as f64 * expected(*elsewhere);
                }
                ObservedShare::new(name, crossing, all, sum / all.max(1) as f64)
            };
        vec![
            share("crossing_lines", |of| [of.lines, of.crossing_lines], &line),
            share("crossing_orders", |of| [of.orders, of.crossing_orders], &order),
            share("crossing_payments", |of| [of.payments, of.crossing_payments], &payment),
        ]
    }

    /// Compares. `terminals` have begun the transactions; `None` when those of some are missing.
    pub(crate) fn audit(&self, found: &Counters, terminals: Option<u32>) -> Audit {
        let all: u64 = found.begun.iter().sum();
        let (orders, payments) = (found.orders, found.payments);
        let decks = terminals.zip(self.cards);
        let names =
            ["mix_new_order", "mix_payment", "mix_order_status", "mix_delivery", "mix_stock_level"];
        let mut shares: Vec<ObservedShare> = names
            .into_iter()
            .zip(found.begun.iter().zip(self.shares))
            .map(|(name, (&count, share))| {
                let share = ObservedShare::new(name, count, all, share);
                decks.map_or(share.clone(), |(terminals, cards)| share.of_decks(terminals, cards))
            })
            .collect();
        shares.extend([
            ObservedShare::new("rollbacks", found.rolled_back, orders, self.rollback),
            ObservedShare::new("remote_lines", found.remote_lines, found.lines, self.remote_line),
            ObservedShare::new(
                "remote_payments",
                found.remote_payments,
                payments,
                self.remote_payment,
            ),
            ObservedShare::new("by_last_name", found.named, found.customers, self.by_name),
        ]);
        shares.extend(self.crossings(found));
        let mean = if orders == 0 { 0.0 } else { self.lines_per_order(found, orders) };
        Audit {
            shares,
            skews: vec![
                self.items.judge("items", &found.items),
                self.customer_ids.judge("customers", &found.customer_ids),
                self.last_names.judge("last_names", &found.last_names),
                Skew::new("mix", &found.begun, &self.shares),
            ],
            is_deck: self.cards.is_some(),
            orders,
            lines_per_order: mean,
            lines_bound: (orders >= 30).then(|| lines_bound(orders)),
            deliveries: found.deliveries,
            skipped_deliveries: found.skipped_deliveries,
            deliveries_with_skips: found.deliveries_with_skips,
        }
    }

    /// The lines that were entered; the unused one of a rollback isn't among the counted ones.
    fn lines_per_order(&self, found: &Counters, orders: u64) -> f64 {
        (found.lines + found.rolled_back) as f64 / orders as f64
    }
}

/// Mean number of lines of an order: that of 5..=15 (clause 2.4.1.3).
pub const LINES_MEAN: f64 = 10.0;

fn lines_bound(orders: u64) -> f64 {
    // Eleven values alike, 5 to 15: the variance is (11^2 - 1) / 12.
    chance_of_sum(10.0 * orders as f64, 5.0) / orders as f64
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedShare {
    /// Such as `remote_lines`.
    pub name: &'static str,
    pub count: u64,
    /// How often it could have happened.
    pub of: u64,
    /// The share that it should have, 0 to 1.
    pub expected: f64,
    /// How far the observed share may be from it, either way, by chance.
    pub bound: f64,
}

impl ObservedShare {
    fn new(name: &'static str, count: u64, of: u64, expected: f64) -> Self {
        ObservedShare { name, count, of, expected, bound: chance_of_share(expected, of) }
    }

    /// The bound where each terminal plays its cards from decks: only those of the decks that it was in
    /// at the begin and at the end vary. What a terminal draws of one of `cards` varies most when
    /// half of them are played, by a quarter of their number.
    fn of_decks(self, terminals: u32, cards: u32) -> Self {
        let (p, cards) = (self.expected, f64::from(cards));
        let variance = p * (1.0 - p) * cards / 4.0 * cards / (cards - 1.0).max(1.0);
        let variance = 2.0 * f64::from(terminals) * variance;
        let bound = chance_of_sum(variance, 1.0) / self.of.max(1) as f64;
        ObservedShare { bound: bound.min(self.bound), ..self }
    }

    pub fn title(&self) -> Message {
        match self.name {
            "mix_new_order" => say!(audit_mix_new_order),
            "mix_payment" => say!(audit_mix_payment),
            "mix_order_status" => say!(audit_mix_order_status),
            "mix_delivery" => say!(audit_mix_delivery),
            "mix_stock_level" => say!(audit_mix_stock_level),
            "rollbacks" => say!(audit_rollbacks),
            "remote_lines" => say!(audit_remote_lines),
            "remote_payments" => say!(audit_remote_payments),
            "crossing_lines" => say!(audit_crossing_lines),
            "crossing_orders" => say!(audit_crossing_orders),
            "crossing_payments" => say!(audit_crossing_payments),
            _ => say!(audit_by_last_name),
        }
    }

    /// The share that was observed, 0 to 1; 0 where nothing could have happened.
    pub fn observed(&self) -> f64 {
        if self.of == 0 { 0.0 } else { self.count as f64 / self.of as f64 }
    }

    /// True when chance explains the difference.
    pub fn is_right(&self) -> bool {
        self.of == 0 || (self.observed() - self.expected).abs() <= self.bound
    }
}

/// How well drawn values follow their distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Skew {
    /// `items`, `customers`, `last_names` or `mix`.
    pub name: &'static str,
    pub draws: u64,
    /// Chi-square of 16 classes of about equal probability, or of the five kinds.
    pub distance: f64,
    /// What chance rarely passes.
    pub limit: f64,
    /// False when there are too few values to say anything.
    pub is_judged: bool,
    /// True when chance explains the distance, and when there are too few values to say.
    pub is_right: bool,
}

impl Skew {
    pub fn title(&self) -> Message {
        match self.name {
            "items" => say!(audit_items),
            "customers" => say!(audit_customers),
            "last_names" => say!(audit_last_names),
            _ => say!(audit_mix),
        }
    }

    /// The distance of counts from what is expected.
    fn new(name: &'static str, found: &[u64], probabilities: &[f64]) -> Self {
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
        let is_judged = draws > 0 && least >= LEAST_IN_CLASS && classes > 1;
        let limit = chi_square_limit(f64::from(classes.max(2) - 1));
        Skew { name, draws, distance, limit, is_judged, is_right: !is_judged || distance <= limit }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// The mix, rollbacks, remote lines and payments, customers by last name.
    pub shares: Vec<ObservedShare>,
    /// The distributions of NURand, and the mix as a whole.
    pub skews: Vec<Skew>,
    /// The mix comes from decks: it deviates less than dice do.
    pub is_deck: bool,
    /// New-Orders, rolled back ones among them.
    pub orders: u64,
    /// Lines that were entered, per order; [`LINES_MEAN`] are expected.
    pub lines_per_order: f64,
    /// How far from that chance may lead; `None` when there are too few orders to say.
    pub lines_bound: Option<f64>,
    /// Deliveries executed; of deferred ones the deferred part.
    pub deliveries: u64,
    /// Districts of them that had no undelivered order.
    pub skipped_deliveries: u64,
    /// Deliveries with such a district: over 1 % have to be explained (clause 2.7.4.2).
    pub deliveries_with_skips: u64,
}

impl Audit {
    /// True when chance explains how many lines orders have, and when there are too few to say.
    pub fn are_lines_right(&self) -> bool {
        let difference = (self.lines_per_order - LINES_MEAN).abs();
        self.lines_bound.is_none_or(|bound| difference <= bound)
    }

    /// The name of the lines per order in papers.
    pub fn lines_title() -> Message {
        say!(audit_lines_per_order)
    }

    /// The figures for which there are too few observations.
    pub fn unjudged(&self) -> Vec<Message> {
        let shares = self.shares.iter().filter(|share| share.of == 0).map(ObservedShare::title);
        let lines = self.lines_bound.is_none().then(Audit::lines_title);
        let skews = self.skews.iter().filter(|skew| !skew.is_judged).map(Skew::title);
        shares.chain(lines).chain(skews).collect()
    }

    /// A sentence for everything that chance does not explain.
    pub fn problems(&self) -> Vec<Message> {
        let percent = |share: f64| format!("{:.3}", 100.0 * share);
        let share = |share: &ObservedShare| {
            say!(
                audit_share_wrong,
                what = share.title(),
                share = percent(share.observed()),
                all = share.of,
                expected = percent(share.expected),
                bound = percent(share.bound)
            )
        };
        let skew = |skew: &Skew| {
            let (found, limit) = (format!("{:.1}", skew.distance), format!("{:.1}", skew.limit));
            let (what, n) = (skew.title(), skew.draws);
            say!(audit_skew_wrong, what = what, found = found, n = n, limit = limit)
        };
        let mut problems: Vec<Message> =
            self.shares.iter().filter(|share| !share.is_right()).map(share).collect();
        problems.extend(self.skews.iter().filter(|skew| !skew.is_right).map(skew));
        if let (false, Some(bound)) = (self.are_lines_right(), self.lines_bound) {
            let (found, expected) =
                (format!("{:.3}", self.lines_per_order), LINES_MEAN.to_string());
            let bound = format!("{bound:.3}");
            problems.push(say!(
                audit_lines_wrong,
                found = found,
                expected = expected,
                bound = bound
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests;
