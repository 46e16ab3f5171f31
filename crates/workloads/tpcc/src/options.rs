//! The options of TPC-C: of suites, and of a run.

use crate::load::{TpccDatabase, TpccLoadOptions};
use crate::profile::{
    Binding, PerKind, Profile, SPEC as SPECIFIED, TPMC_PER_WAREHOUSE_MAX, TpccTransaction,
    TransactionChoice,
};
use crate::run::Pacing;
use crate::schema::KeyTime;
use crate::{DISTRICTS, WAREHOUSES_MAX};
use dyno_core::Dialect;
use dyno_core::offer::{DataSizing, Scale, TestOffer, UsualPace, WorkloadOffer};
use dyno_core::options::{OptionError, OptionRow, OptionValues as Values, describe, read};
use dyno_facts::{Message, say};
use dyno_load::default_sessions;

/// TPC-C as suites name it.
pub const OFFER: WorkloadOffer = WorkloadOffer {
    workers_alias: Some("terminals"),
    has_stages: false,
    pace: UsualPace { checked: 300_000.0, ..UsualPace::loading(100_000.0) },
    ..WorkloadOffer::new("tpcc", &[test("bmsql-5.0"), test(SPEC)], || describe(OPTIONS))
};

/// The profile with keying and think times.
const SPEC: &str = "spec";

/// The order lines of a warehouse are its largest table.
const fn test(name: &'static str) -> TestOffer {
    let size = DataSizing::Factor {
        factor: Scale { option: "warehouses", default: 1 },
        rows_per_unit: 300_000,
        rows: &[],
        workers_per_unit: Some(DISTRICTS),
    };
    TestOffer { name, size: Some(size) }
}

type Row = OptionRow<TpccSettings>;

pub const OPTIONS: &[OptionRow<TpccSettings>] = &[
    Row::new(
        "warehouses",
        "1",
        Values::Whole(1, WAREHOUSES_MAX, |o, n| (o.run.warehouses, o.load.warehouses) = (n, n)),
        "what is loaded, and used: about 500,000 rows and 100 MB each. A warehouse has ten terminals at most",
    ),
    Row::new(
        "isolation",
        "",
        Values::Choice(
            &["server", "read-committed", "repeatable-read", "serializable"],
            |o, at| {
                use Isolation::{ReadCommitted, RepeatableRead, Serializable, ServerDefault};
                o.run.isolation =
                    Some([ServerDefault, ReadCommitted, RepeatableRead, Serializable][at]);
            },
        ),
        "what sessions ask for; `server` is nothing. Without it `read-committed` on MySQL, elsewhere nothing",
    ),
    Row::new(
        "weights",
        "",
        Values::Table(&WEIGHT_NAMES, TpccSettings::set_weight),
        "percent of `payment` (43), `order_status`, `delivery` and `stock_level` (4 each); New-Order has what the \
         others leave of 100. Instead of the decks of `spec`, too",
    ),
    Row::new(
        "terminal_warehouse_fixed",
        "true",
        Values::Flag(|o, is_fixed| {
            o.run.profile.binding = if is_fixed { Binding::Drawn } else { Binding::Roaming };
        }),
        "with `false` a terminal keeps its district and draws the warehouse for each transaction",
    )
    .for_tests(&["bmsql-5.0"]),
    Row::new(
        "sessions",
        "",
        Values::Whole(1, 100_000, |o, n| o.sessions = Some(n)),
        "sessions that execute what the terminals enter; without it one for 100 terminals, at least 8",
    )
    .for_tests(&[SPEC]),
    Row::new(
        "keying_multiplier",
        "1",
        Values::Decimal(0.0, 1_000.0, |o, n| o.run.keying_multiplier = n),
        "keying times are those of clause 5.2.5.7 times this number",
    )
    .for_tests(&[SPEC]),
    Row::new(
        "think_multiplier",
        "1",
        Values::Decimal(0.0, 1_000.0, |o, n| o.run.think_multiplier = n),
        "think times are those of clause 5.2.5.7 times this number",
    )
    .for_tests(&[SPEC]),
    Row::new(
        "checks",
        "",
        Values::Choice(&["none", "after", "before-and-after"], |o, at| {
            o.checks = Some([CheckTime::Never, CheckTime::After, CheckTime::BeforeAndAfter][at]);
        }),
        "when the consistency conditions are checked: before and after each trial (so without this option up to 10 \
         warehouses), after it (so with more) or never",
    ),
    Row::new(
        "load_workers",
        "",
        Values::Whole(1, 10_000, |o, n| o.load.sessions = n),
        "sessions that load at once; without it two for each core, 2 to 16",
    ),
    Row::new(
        "keys",
        "",
        Values::Choice(&["before", "primary-before", "after"], |o, at| {
            use KeyTime::{AfterLoad, BeforeLoad, PrimaryBeforeLoad};
            o.load.keys = Some([BeforeLoad, PrimaryBeforeLoad, AfterLoad][at]);
        }),
        "when primary keys and indexes are made: `before` the rows, `primary-before` (without this option on MySQL \
         and SQLite) or `after` them (on PostgreSQL)",
    ),
    Row::new(
        "foreign_keys",
        "false",
        Values::Flag(|o, on| o.load.foreign_keys = on),
        "foreign keys, after the rows; not on SQLite",
    ),
    Row::new(
        "shard",
        "",
        Values::Table(
            &["before", "suffix", "after", "item_before", "item_suffix", "item_after"],
            TpccSettings::set_shard,
        ),
        "what a distributed database has to know of each table: statements `before` and `after` its CREATE TABLE and the \
         text `suffix` at its end; `item_before`, `item_suffix` and `item_after` are those of the catalog. `{table}` \
         and `{column}` (its warehouse) are filled in: \
         `shard = { suffix = \"dbpartition by hash({column})\", item_suffix = \"broadcast\" }`",
    ),
];

const WEIGHT_NAMES: [&str; 4] = ["payment", "order_status", "delivery", "stock_level"];

/// When the consistency conditions are checked: that reads all tables. The books are always read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckTime {
    Never,
    After,
    BeforeAndAfter,
}

impl CheckTime {
    /// Warehouses whose check takes minutes: it is not made twice.
    const LARGE: u32 = 10;

    /// When conditions are checked unless a run says so itself: with many warehouses only after it.
    pub fn usual(warehouses: u32) -> Self {
        if warehouses > Self::LARGE { CheckTime::After } else { CheckTime::BeforeAndAfter }
    }

    /// Warehouses after whose runs a check on one's own initiative would take longer than many a run.
    const CHECKED_UNASKED: u32 = 100;

    /// When a drop-in checks that was not told: its original checks nothing.
    pub fn unasked(warehouses: u32) -> Self {
        if warehouses > Self::CHECKED_UNASKED { CheckTime::Never } else { CheckTime::After }
    }

    /// Minutes that a check of this many warehouses takes, about: a warehouse with 30,000 orders takes a second
    /// (MariaDB 10.11 and PostgreSQL 15 on two cores, data in memory).
    pub fn minutes(warehouses: u32) -> u32 {
        warehouses.div_ceil(60)
    }
}

#[derive(Debug)]
pub struct TpccSettings {
    /// A run; its profile has the weights and the binding that options give it.
    pub run: TpccOptions,
    pub load: TpccLoadOptions,
    /// Sessions of a profile with pauses; `None` is the usual number.
    pub sessions: Option<u32>,
    checks: Option<CheckTime>,
    /// Sorted in the order of [`WEIGHT_NAMES`]; `None` if none is given.
    weights: Option<[u32; 4]>,
}

impl TpccSettings {
    /// Reads the options of the test `test`, which is the name of a profile.
    pub fn read<'a>(
        test: &str,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, OptionError> {
        let Some(profile) = Profile::by_name(test) else {
            let names = Profile::ALL.map(|profile| profile.name).join(", ");
            let hint = format!("Its tests are its profiles: {names}.");
            return Err(OptionError::experiment(format!("`{test}` isn't a test of tpcc."), &*hint));
        };
        let mut settings = TpccSettings::new(*profile);
        read(OPTIONS, (OFFER.name, test), given, &mut settings)?;
        if let Some(weights) = settings.weights {
            let hint = "Lower a weight; New-Order has what the others leave of 100.";
            let weighted = settings.run.profile.with_weights(weights);
            settings.run.profile =
                weighted.map_err(|message| OptionError::experiment(message, hint))?;
        }
        Ok(settings)
    }

    fn new(profile: Profile) -> Self {
        let one_warehouse = TpccDatabase { warehouses: 1, c_last: 0 };
        TpccSettings {
            run: TpccOptions::new(profile, &one_warehouse, 0),
            load: TpccLoadOptions { sessions: default_sessions(), ..TpccLoadOptions::new(1) },
            sessions: None,
            checks: None,
            weights: None,
        }
    }

    /// Checks the load that an experiment makes with these settings.
    ///
    /// # Errors
    /// More terminals than the warehouses have, or a rate alongside pauses.
    pub fn check_load(&self, workers: &[u32], has_rates: bool) -> Result<(), OptionError> {
        let max_terminals = self.run.warehouses.saturating_mul(DISTRICTS);
        if let Some(terminals) = workers.iter().find(|&&terminals| terminals > max_terminals) {
            let message = format!(
                "{terminals} terminals are too many for warehouses = {}: a warehouse has {DISTRICTS}, one for each \
                 district.",
                self.run.warehouses
            );
            let min_warehouses = terminals.div_ceil(DISTRICTS);
            let hint = format!(
                "Use at most {max_terminals} terminals, or at least {min_warehouses} warehouses."
            );
            return Err(OptionError::experiment(message, &*hint));
        }
        if self.run.profile.pacing.is_some() && has_rates {
            let name = self.run.profile.name;
            let message = format!("Terminals of the profile `{name}` have no rate.");
            let hint = "Leave `rate` out: keying and think times say when a terminal begins.";
            return Err(OptionError::experiment(message, hint));
        }
        Ok(())
    }

    /// Sessions that execute what this many terminals with pauses enter; `None` if each terminal
    /// has its own.
    pub fn session_count(&self, terminals: u32) -> Option<u32> {
        let staff = self.run.staff(self.sessions);
        staff.terminals.map(|_| staff.workers.min(terminals))
    }

    /// When conditions are checked: as chosen, else as usual for the number of warehouses.
    pub fn checks(&self) -> CheckTime {
        self.checks.unwrap_or(CheckTime::usual(self.run.warehouses))
    }

    fn set_weight(&mut self, name: &str, value: &str) -> Result<(), String> {
        let percent = value.parse().ok().filter(|percent| *percent <= 100);
        let percent = percent.ok_or("a whole number of percent from 0 to 100")?;
        let at = WEIGHT_NAMES.iter().position(|known| *known == name).ok_or("no value")?;
        // Those that are not given are of BenchmarkSQL's own files.
        self.weights.get_or_insert([43, 4, 4, 4])[at] = percent;
        Ok(())
    }

    fn set_shard(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.load.shard.get_or_insert_default().insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// The terminals' choices and places, in a sentence.
    pub fn words(&self) -> Message {
        let shares = self.run.profile.choice.shares().map(|share| share.to_string()).join(", ");
        let choice = match self.run.profile.choice {
            TransactionChoice::Weights(_) => say!(choice_weights),
            TransactionChoice::Deck(_) => say!(choice_decks),
        };
        let place = match self.run.profile.binding {
            Binding::Home => say!(place_home),
            Binding::Drawn => say!(place_drawn),
            Binding::Roaming => say!(place_roaming),
        };
        say!(drawn_by_nurand, place, how = choice, shares)
    }
}

/// Isolation level of transactions (clause 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ServerDefault,
    /// READ COMMITTED, what papers use.
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// Default of a dialect. MySQL's own default lets a Delivery meet an order
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
    /// Warehouses used: 1 to those loaded.
    pub warehouses: u32,
    /// The isolation; `None` is what is usual for the dialect.
    pub isolation: Option<Isolation>,
    /// Seed of what all terminals share: NURand's constants, who works where.
    pub seed: u64,
    /// Keying times are this many times those of clause 5.2.5.7 (BenchmarkSQL 6:
    /// `keyingTimeMultiplier`). 1 is the specification's, 0 is none.
    pub keying_multiplier: f64,
    /// Think times are multiplied by this (BenchmarkSQL 6: `thinkTimeMultiplier`).
    pub think_multiplier: f64,
}

/// Sessions and terminals of a run: see [`TpccOptions::staff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staff {
    /// Terminals with pauses, for the trial's `terminals`; `None` if each session is one.
    pub terminals: Option<u32>,
    /// Sessions, for the trial's `workers`.
    pub workers: u32,
}

/// The mix with as many New-Orders as clause 5.2.3 allows, percent.
const MIN_SHARES: PerKind<u32> = [45, 43, 4, 4, 4];

/// Terminals that one session serves unless told otherwise: they start a transaction every 0.2
/// seconds.
const TERMINALS_PER_SESSION: u32 = 100;
/// Sessions unless told otherwise, least and most.
const USUAL_SESSIONS: std::ops::RangeInclusive<u32> = 8..=1_000;

impl TpccOptions {
    /// A profile on all warehouses that are loaded.
    pub fn new(profile: Profile, loaded: &TpccDatabase, seed: u64) -> Self {
        TpccOptions {
            profile,
            warehouses: loaded.warehouses,
            isolation: None,
            seed,
            keying_multiplier: 1.0,
            think_multiplier: 1.0,
        }
    }

    /// Sessions and terminals of a run with this many sessions, or with the usual number. A profile with
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
        let least_profile = Profile { choice: TransactionChoice::Weights(MIN_SHARES), ..SPECIFIED };
        let (keying_multiplier, think_multiplier) = (1.0, 1.0);
        let specified = TpccOptions {
            profile: least_profile,
            keying_multiplier,
            think_multiplier,
            ..self.clone()
        };
        let mut adjusted = self.clone();
        let max_share = Pacing::new(&specified).share(TpccTransaction::NewOrder);
        if Pacing::new(self).share(TpccTransaction::NewOrder) <= max_share {
            adjusted.profile.choice = least_profile.choice;
        }
        let [adjusted_s, specified_s] = [&adjusted, &specified].map(|options| {
            let pacing = Pacing::new(options);
            pacing.cycle_s() / pacing.share(TpccTransaction::NewOrder)
        });
        let slowdown = adjusted_s / specified_s;
        (slowdown.is_finite() && slowdown > 0.0)
            .then(|| TPMC_PER_WAREHOUSE_MAX * f64::from(self.warehouses) / slowdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::BMSQL_5_0;
    use dyno_core::options::check_table;

    #[test]
    fn the_table_takes_what_it_says() {
        check_table(OPTIONS, || TpccSettings::new(BMSQL_5_0));
        let names = TpccTransaction::ALL[1..].iter().map(|kind| kind.name());
        assert!(names.eq(WEIGHT_NAMES));
        let profiles = Profile::ALL.map(|profile| profile.name);
        assert_eq!(OFFER.tests.iter().map(|test| test.name).collect::<Vec<_>>(), profiles);
        let binding = [("terminal_warehouse_fixed", "off"), ("weights.payment", "50")];
        let settings = TpccSettings::read("bmsql-5.0", binding).expect("good options");
        assert_eq!(settings.run.profile.binding, Binding::Roaming);
        assert_eq!(settings.run.profile.choice.shares()[TpccTransaction::Payment.index()], 50);
    }

    fn new_options(profile: Profile, warehouses: u32) -> TpccOptions {
        TpccOptions::new(profile, &TpccDatabase { warehouses, c_last: 100 }, 7)
    }

    #[test]
    fn ten_terminals_of_each_warehouse_share_the_sessions() {
        for (profile, warehouses, wanted, terminals, workers) in [
            (SPECIFIED, 10_000, Some(1_000), Some(100_000), 1_000),
            (SPECIFIED, 10_000, None, Some(100_000), 1_000),
            (SPECIFIED, 200, None, Some(2_000), 20),
            (SPECIFIED, 1, None, Some(10), 8),
            (SPECIFIED, 1, Some(64), Some(10), 10),
            (BMSQL_5_0, 1, Some(64), None, 64),
        ] {
            let staff = new_options(profile, warehouses).staff(wanted);
            assert_eq!(staff, Staff { terminals, workers }, "{warehouses} {wanted:?}");
        }
    }

    #[test]
    fn the_bound_of_tpmc_follows_the_pauses() {
        assert_eq!(new_options(BMSQL_5_0, 3).tpmc_max(), None);
        assert_eq!(new_options(SPECIFIED, 3).tpmc_max(), Some(3.0 * 12.86));
        let half = TpccOptions {
            keying_multiplier: 0.5,
            think_multiplier: 0.5,
            ..new_options(SPECIFIED, 3)
        };
        assert!((half.tpmc_max().unwrap() - 3.0 * 2.0 * 12.86).abs() < 1e-9);
        let orders_only =
            new_options(SPECIFIED.with_weights([0; 4]).unwrap(), 1).tpmc_max().unwrap();
        // One in 30 s.
        assert!((orders_only - 20.0).abs() < 0.01, "{orders_only}");
        let none = TpccOptions { keying_multiplier: 0.0, think_multiplier: 0.0, ..half };
        assert_eq!(none.tpmc_max(), None);
    }
}
