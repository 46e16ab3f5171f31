//! Profiles of the workload. The transactions are the same code; a profile is data.

use crate::values::LAST_NAME_BYTES;
use crate::values::Short;

dyno_core::named! {
    /// The five transactions (clauses 2.4 to 2.8), in the order of all tables here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum TpccTransaction {
        /// Enters an order (clause 2.4).
        NewOrder = "new_order",
        /// Books a payment (clause 2.5).
        Payment = "payment",
        /// Reads a customer's last order (clause 2.6).
        OrderStatus = "order_status",
        /// Delivers the oldest order of each district (clause 2.7).
        Delivery = "delivery",
        /// Counts items of the last 20 orders that run low (clause 2.8).
        StockLevel = "stock_level",
    }
}

impl TpccTransaction {
    /// Index into [`TpccTransaction::ALL`] and into every [`PerKind`].
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// One value for each kind of transaction, in the order of [`TpccTransaction::ALL`].
pub type PerKind<T> = [T; 5];

/// Rule by which a terminal picks its next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionChoice {
    /// A throw of the dice each time (clause 5.2.4.1). Parts of their sum, such as percent.
    Weights(PerKind<u32>),
    /// Cards of a shuffled deck, shuffled again when it is used up (clause 5.2.4.2). How many of
    /// each.
    Deck(PerKind<u32>),
}

impl TransactionChoice {
    /// Frequency of each kind, as parts of the sum of all.
    pub fn shares(&self) -> PerKind<u32> {
        match *self {
            TransactionChoice::Weights(shares) | TransactionChoice::Deck(shares) => shares,
        }
    }
}

/// Warehouse and district of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Ten terminals for each warehouse, one for each of its districts, for ever (clauses 2.4.1.1,
    /// 2.8.1.1 and 4.2.2): terminal 0 has district 1 of warehouse 1.
    Home,
    /// Like `Home`, but drawn at random without repetition (BenchmarkSQL with
    /// `terminalWarehouseFixed=true`).
    Drawn,
    /// The district is kept, the warehouse is drawn again for each transaction (BenchmarkSQL with
    /// `terminalWarehouseFixed=false`).
    Roaming,
}

/// The pauses of a terminal around a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Time for entering the input, constant (clauses 5.2.5.2 and 5.2.5.7).
    pub keying_s: f64,
    /// Mean of the negative exponential distribution of the time for reading the output, cut at
    /// ten times the mean (clauses 5.2.5.4 and 5.2.5.7).
    pub think_mean_s: f64,
}

impl Pace {
    /// A think time in seconds (clause 5.2.5.4).
    #[inline]
    pub fn think_s(&self, rng: &mut dyno_core::Rng) -> f64 {
        rng.exponential(self.think_mean_s).min(10.0 * self.think_mean_s)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMode {
    /// The terminal itself, in one database transaction (BenchmarkSQL with as many connections as
    /// terminals).
    Inline,
    /// The terminal only queues it; it is executed later and noted in a log (clause 2.7.2.2).
    Deferred,
}

/// A declared way of running TPC-C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    pub name: &'static str,
    pub choice: TransactionChoice,
    pub binding: Binding,
    /// Keying and think times; `None` is none.
    pub pacing: Option<PerKind<Pace>>,
    pub delivery: DeliveryMode,
    /// New-Orders that are rolled back for an unused item, percent (clause 2.4.1.4).
    pub rollback_percent: u32,
    /// Payments and Order-Status that know the customer by last name, percent (clauses 2.5.1.2 and
    /// 2.6.1.2).
    pub by_name_percent: u32,
    /// Order-Status and Stock-Level end with ROLLBACK, as BenchmarkSQL 5.0 does, not with COMMIT.
    pub rolls_back_reads: bool,
}

/// Limits of the 90th percentile of the response times (clauses 5.2.5.3 and 5.2.5.7); for Delivery, of the terminal's
/// part.
pub const LIMITS_S: PerKind<f64> = [5.0, 5.0, 5.0, 5.0, 20.0];
/// The limit of the deferred part of Delivery (clause 2.7.2.2).
pub const DEFERRED_LIMIT_S: f64 = 80.0;
/// Order lines that another warehouse supplies, percent (clause 2.4.1.5).
pub const REMOTE_LINE_PERCENT: u32 = 1;
/// Payments of a customer of another warehouse, percent (clause 2.5.1.2).
pub const REMOTE_PAYMENT_PERCENT: u32 = 15;

/// Least shares of the mix in percent (clause 5.2.3); New-Order has none.
pub const MIX_LEAST_PERCENT: PerKind<f64> = [0.0, 43.0, 4.0, 4.0, 4.0];

/// The highest tpmC of a warehouse that keying and think times allow: what ten terminals can enter
/// (clause 4.2.2 derives the scaling rule from it).
pub const TPMC_PER_WAREHOUSE_MAX: f64 = 12.86;

/// BenchmarkSQL 5.0: weights, terminals bound at random, no pauses, Delivery inline.
pub const BMSQL_5_0: Profile = Profile {
    name: "bmsql-5.0",
    choice: TransactionChoice::Weights([45, 43, 4, 4, 4]),
    binding: Binding::Drawn,
    pacing: None,
    delivery: DeliveryMode::Inline,
    rollback_percent: 1,
    by_name_percent: 60,
    rolls_back_reads: true,
};

/// TPC-C 5.11: decks, home terminals, keying and think times, deferred Delivery.
pub const SPEC: Profile = Profile {
    name: "spec",
    choice: TransactionChoice::Deck([10, 10, 1, 1, 1]),
    binding: Binding::Home,
    pacing: Some([
        Pace { keying_s: 18.0, think_mean_s: 12.0 },
        Pace { keying_s: 3.0, think_mean_s: 12.0 },
        Pace { keying_s: 2.0, think_mean_s: 10.0 },
        Pace { keying_s: 2.0, think_mean_s: 5.0 },
        Pace { keying_s: 2.0, think_mean_s: 5.0 },
    ]),
    delivery: DeliveryMode::Deferred,
    rollback_percent: 1,
    by_name_percent: 60,
    rolls_back_reads: false,
};

impl Profile {
    pub const ALL: [&'static Profile; 2] = [&BMSQL_5_0, &SPEC];

    pub fn by_name(name: &str) -> Option<&'static Profile> {
        Profile::ALL.into_iter().find(|profile| profile.name == name)
    }

    /// The profile with other weights of all kinds but New-Order, in percent, as BenchmarkSQL's properties give them:
    /// New-Order gets what they leave.
    pub fn with_weights(self, others: [u32; 4]) -> Result<Self, String> {
        let sum: u64 = others.iter().map(|&weight| u64::from(weight)).sum();
        let Some(new_order) = 100_u64.checked_sub(sum) else {
            return Err(format!(
                "The weights of Payment, Order-Status, Delivery and Stock-Level add up to {sum}, \
                 which is more than 100."
            ));
        };
        let [payment, order_status, delivery, stock_level] = others;
        let weights = [new_order as u32, payment, order_status, delivery, stock_level];
        Ok(Profile { choice: TransactionChoice::Weights(weights), ..self })
    }
}

/// Way in which a transaction asks for a customer (2.5.1.2): by number, or by last name, 60% of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CustomerKey {
    Id(i64),
    Name(u64, Short<LAST_NAME_BYTES>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;

    #[test]
    fn the_mixes_meet_the_least_shares_of_the_clause_where_it_is_claimed() {
        for profile in Profile::ALL {
            let shares = profile.choice.shares();
            let sum: u32 = shares.iter().sum();
            for (kind, (share, least)) in
                TpccTransaction::ALL.iter().zip(shares.iter().zip(MIX_LEAST_PERCENT))
            {
                let percent = 100.0 * f64::from(*share) / f64::from(sum);
                assert!(percent >= least, "{} {}: {percent}", profile.name, kind.name());
            }
        }
    }

    #[test]
    fn ten_terminals_of_the_spec_enter_12_86_orders_a_minute_at_most() {
        // Clause 5.2.5.7 with response times of zero and the least shares of the other kinds.
        let pacing = SPEC.pacing.unwrap();
        let share = [45.0, 43.0, 4.0, 4.0, 4.0];
        let cycle: f64 = pacing
            .iter()
            .zip(share)
            .map(|(pace, percent)| (pace.keying_s + pace.think_mean_s) * percent / 100.0)
            .sum();
        let orders_per_minute = 10.0 * 60.0 / cycle * 0.45;
        assert!((orders_per_minute - TPMC_PER_WAREHOUSE_MAX).abs() < 0.15, "{orders_per_minute}");
    }

    #[test]
    fn new_order_has_what_the_other_weights_leave() {
        let profile = BMSQL_5_0.with_weights([40, 5, 5, 5]).unwrap();
        assert_eq!(profile.choice, TransactionChoice::Weights([45, 40, 5, 5, 5]));
        let error = BMSQL_5_0.with_weights([98, 1, 1, 1]).unwrap_err();
        assert!(error.contains("add up to 101"), "{error}");
        assert_eq!(Profile::by_name("spec"), Some(&SPEC));
        assert_eq!(Profile::by_name("tpcc"), None);
    }

    #[test]
    fn think_times_have_their_mean_and_end_at_ten_times_it() {
        let pace = Pace { keying_s: 0.0, think_mean_s: 5.0 };
        let mut rng = Rng::new(3, "think", 0);
        let times: Vec<f64> = (0..200_000).map(|_| pace.think_s(&mut rng)).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean - 5.0).abs() < 0.06, "{mean}");
        assert!(times.iter().all(|&time| (0.0..=50.0).contains(&time)));
        assert!(times.contains(&50.0), "the cut is met about nine times in 200,000");
    }
}
