//! What is run, by whom, on which part of the database.

use super::link::FlightMode;
use super::pacing::Pacing;
use crate::DISTRICTS;
use crate::load::TpccDatabase;
use crate::profile::{
    PerKind, Profile, SPEC, TPMC_PER_WAREHOUSE_MAX, TpccTransaction, TransactionChoice,
};
use dyno_core::Dialect;

/// How isolated transactions are (clause 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// What the server has by itself.
    ServerDefault,
    /// READ COMMITTED, what papers use.
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// What a dialect gets unless told otherwise. MySQL's own default lets a Delivery meet an order
    /// for ever that another session has taken.
    pub fn usual(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Mysql => Isolation::ReadCommitted,
            Dialect::Postgres => Isolation::ServerDefault,
            // It has no other one.
            Dialect::Sqlite => Isolation::Serializable,
        }
    }

    /// The name in SQL, for reports too; `None` for the server's own.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Isolation::ServerDefault => None,
            Isolation::ReadCommitted => Some("READ COMMITTED"),
            Isolation::RepeatableRead => Some("REPEATABLE READ"),
            Isolation::Serializable => Some("SERIALIZABLE"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TpccOptions {
    pub profile: Profile,
    pub flight: FlightMode,
    /// Warehouses used: 1 to those loaded.
    pub warehouses: u32,
    /// The isolation; `None` is what is usual for the dialect.
    pub isolation: Option<Isolation>,
    /// Seed of what all terminals share: NURand's constants, who works where.
    pub seed: u64,
    /// Keying times are this many times those of clause 5.2.5.7 (BenchmarkSQL 6:
    /// `keyingTimeMultiplier`). 1 is the specification's, 0 is none.
    pub keying_multiplier: f64,
    /// The same for think times (BenchmarkSQL 6: `thinkTimeMultiplier`).
    pub think_multiplier: f64,
}

/// Who executes a run: what [`TpccOptions::staff`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staff {
    /// Terminals with pauses, for the trial's `terminals`; `None` where each session is one.
    pub terminals: Option<u32>,
    /// Sessions, for the trial's `workers`.
    pub workers: u32,
}

/// The mix with as many New-Orders as clause 5.2.3 allows, percent.
const LEAST_SHARES: PerKind<u32> = [45, 43, 4, 4, 4];

/// Terminals that one session serves unless told otherwise: they start a transaction every 0.2
/// seconds.
const TERMINALS_PER_SESSION: u32 = 100;
/// Sessions unless told otherwise, least and most.
const USUAL_SESSIONS: std::ops::RangeInclusive<u32> = 8..=1_000;

impl TpccOptions {
    /// A profile on all warehouses that are loaded, statement by statement.
    pub fn new(profile: Profile, loaded: &TpccDatabase, seed: u64) -> Self {
        TpccOptions {
            profile,
            flight: FlightMode::Statement,
            warehouses: loaded.warehouses,
            isolation: None,
            seed,
            keying_multiplier: 1.0,
            think_multiplier: 1.0,
        }
    }

    /// Who executes a run with so many sessions, or with as many as are usual. A profile with
    /// keying and think times has ten terminals for each warehouse (clause 4.2.2) whatever its
    /// sessions; in others every session is a terminal.
    pub fn staff(&self, sessions: Option<u32>) -> Staff {
        if self.profile.pacing.is_none() {
            return Staff { terminals: None, workers: sessions.unwrap_or(1).max(1) };
        }
        let terminals = self.warehouses.saturating_mul(DISTRICTS);
        let (least, most) = USUAL_SESSIONS.into_inner();
        let usual = (terminals / TERMINALS_PER_SESSION).clamp(least, most);
        let workers = sessions.unwrap_or(usual).clamp(1, terminals.max(1));
        Staff { terminals: Some(terminals), workers }
    }

    /// The tpmC that keying and think times allow; `None` without them. 12.86 for each warehouse where
    /// these are the specification's (clause 4.2.2): ten terminals with the least shares of the other
    /// kinds. Other times change it as they change the mean time from one New-Order to the next;
    /// so do weights that give New-Order more than the specification allows.
    pub fn tpmc_max(&self) -> Option<f64> {
        self.profile.pacing?;
        let between_orders_s = |options: &TpccOptions| {
            let pacing = Pacing::new(options);
            pacing.cycle_s() / pacing.share(TpccTransaction::NewOrder)
        };
        let least = Profile { choice: TransactionChoice::Weights(LEAST_SHARES), ..SPEC };
        let specified =
            TpccOptions { keying_multiplier: 1.0, think_multiplier: 1.0, ..self.clone() };
        let specified = TpccOptions { profile: least, ..specified };
        let mut own = self.clone();
        let most = f64::from(LEAST_SHARES[TpccTransaction::NewOrder.index()]) / 100.0;
        if Pacing::new(self).share(TpccTransaction::NewOrder) <= most {
            own.profile.choice = least.choice;
        }
        let slowdown = between_orders_s(&own) / between_orders_s(&specified);
        (slowdown.is_finite() && slowdown > 0.0)
            .then(|| TPMC_PER_WAREHOUSE_MAX * f64::from(self.warehouses) / slowdown)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let multipliers = [("keying", self.keying_multiplier), ("think", self.think_multiplier)];
        for (name, multiplier) in multipliers {
            if !(0.0..=1e6).contains(&multiplier) {
                return Err(format!(
                    "The multiplier of {name} times must be from 0 to 1,000,000, not {multiplier}."
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::BMSQL_5_0;

    fn options(profile: Profile, warehouses: u32) -> TpccOptions {
        TpccOptions::new(profile, &TpccDatabase { warehouses, c_last: 100 }, 7)
    }

    #[test]
    fn ten_terminals_of_each_warehouse_share_the_sessions() {
        let staff = |terminals, workers| Staff { terminals, workers };
        assert_eq!(options(SPEC, 10_000).staff(Some(1_000)), staff(Some(100_000), 1_000));
        assert_eq!(options(SPEC, 10_000).staff(None), staff(Some(100_000), 1_000));
        assert_eq!(options(SPEC, 200).staff(None), staff(Some(2_000), 20));
        assert_eq!(options(SPEC, 1).staff(None), staff(Some(10), 8));
        assert_eq!(options(SPEC, 1).staff(Some(64)), staff(Some(10), 10));
        assert_eq!(options(BMSQL_5_0, 1).staff(Some(64)), staff(None, 64));
    }

    #[test]
    fn the_bound_of_tpmc_follows_the_pauses() {
        assert_eq!(options(BMSQL_5_0, 3).tpmc_max(), None);
        assert_eq!(options(SPEC, 3).tpmc_max(), Some(3.0 * 12.86));
        let half =
            TpccOptions { keying_multiplier: 0.5, think_multiplier: 0.5, ..options(SPEC, 3) };
        assert!((half.tpmc_max().unwrap() - 3.0 * 2.0 * 12.86).abs() < 1e-9);
        let orders_only = options(SPEC.with_weights(0, 0, 0, 0).unwrap(), 1).tpmc_max().unwrap();
        // One in 30 s.
        assert!((orders_only - 20.0).abs() < 0.01, "{orders_only}");
        let none = TpccOptions { keying_multiplier: 0.0, think_multiplier: 0.0, ..half };
        assert_eq!(none.tpmc_max(), None);
        for multiplier in [-1.0, f64::NAN, f64::INFINITY] {
            let wrong = TpccOptions { think_multiplier: multiplier, ..options(SPEC, 1) };
            assert!(wrong.check().unwrap_err().contains("think"));
        }
    }
}
