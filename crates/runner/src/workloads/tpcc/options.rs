//! The options of an experiment with TPC-C.

use super::super::{flag, refuse_unknown, whole, wrong_value};
use crate::failure::Failure;
use crate::tpcc::{When, flight_name};
use dyno_core::nearest;
use dyno_suite::{Plan, PlannedExperiment, PlannedOption};
use dyno_tpcc::load::Loaded;
use dyno_tpcc::profile::{Binding, Choice, DeliveryMode, Kind, PerKind, Profile};
use dyno_tpcc::schema::{KeyTime, Shard};
use dyno_tpcc::{DISTRICTS, FlightMode, Isolation, TpccOptions, WAREHOUSES_MAX};

/// The names of all options; `weights` and `shard` have more behind a dot.
const NAMES: [&str; 14] = [
    "warehouses",
    "weights",
    "terminal_warehouse_fixed",
    "flight",
    "isolation",
    "sessions",
    "keying_multiplier",
    "think_multiplier",
    "delivery_log",
    "checks",
    "load_workers",
    "keys",
    "foreign_keys",
    "shard",
];
/// What only a profile with keying and think times has.
const OF_PAUSES: [&str; 4] = ["sessions", "keying_multiplier", "think_multiplier", "delivery_log"];
/// The names of the kinds of transactions that have a weight of their own.
const WEIGHTS: [Kind; 4] = [Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];
const SHARD: [&str; 6] = ["before", "suffix", "after", "item_before", "item_suffix", "item_after"];
const ISOLATIONS: [(&str, Isolation); 4] = [
    ("server", Isolation::ServerDefault),
    ("read-committed", Isolation::ReadCommitted),
    ("repeatable-read", Isolation::RepeatableRead),
    ("serializable", Isolation::Serializable),
];

/// Valid options.
pub(super) struct Options {
    pub(super) profile: Profile,
    pub(super) warehouses: u32,
    pub(super) flight: FlightMode,
    pub(super) isolation: Option<Isolation>,
    /// Sessions of a profile with pauses; `None` is the usual number.
    pub(super) sessions: Option<u32>,
    pub(super) checks: Option<When>,
    pub(super) load_workers: Option<u32>,
    pub(super) keys: Option<KeyTime>,
    pub(super) foreign_keys: bool,
    pub(super) shard: Option<Shard>,
    /// Keying times are so many times those of the profile.
    pub(super) keying: f64,
    /// Think times.
    pub(super) think: f64,
    /// Deferred Deliveries are noted in the run folder.
    pub(super) delivery_log: bool,
    weights: PerKind<Option<u32>>,
}

/// What is wrong with a value: what it takes.
type Wrong = String;

impl Options {
    /// Reads the options of an experiment.
    ///
    /// # Errors
    /// The first wrong one, with its place in the suite file.
    pub(super) fn new(plan: &Plan, experiment: &PlannedExperiment) -> Result<Self, Failure> {
        let refuse = |message: String, hint: &str| {
            let hint = Some(hint.to_owned());
            Failure::from(plan.experiment_error(&experiment.name, message, hint))
        };
        let Some(profile) = Profile::named(&experiment.test) else {
            let names = Profile::ALL.map(|profile| profile.name).join(", ");
            return Err(refuse(
                format!("`{}` is no test of tpcc.", experiment.test),
                &format!("Its tests are its profiles: {names}."),
            ));
        };
        refuse_unknown(plan, experiment, &NAMES)?;
        let mut options = Options::of(*profile);
        for option in &experiment.options {
            options.set(option).map_err(|wanted| wrong_value(plan, experiment, option, &wanted))?;
        }
        options.finish().map_err(|message| {
            refuse(message, "Lower a weight; New-Order has what the others leave of 100.")
        })?;
        let most = options.warehouses.saturating_mul(DISTRICTS);
        if let Some(threads) = experiment.threads.iter().find(|&&threads| threads > most) {
            return Err(refuse(
                format!(
                    "{threads} terminals are too many for warehouses = {}: a warehouse has \
                     {DISTRICTS}, one for each district.",
                    options.warehouses
                ),
                &format!(
                    "Use at most {most} terminals, or at least {} warehouses.",
                    threads.div_ceil(DISTRICTS)
                ),
            ));
        }
        if profile.pacing.is_some() && !experiment.rates.is_empty() {
            return Err(refuse(
                format!("Terminals of the profile `{}` have no rate.", profile.name),
                "Leave `rate` out: keying and think times say when a terminal begins.",
            ));
        }
        Ok(options)
    }

    fn of(profile: Profile) -> Self {
        Options {
            profile,
            warehouses: 1,
            flight: FlightMode::Statement,
            isolation: None,
            sessions: None,
            checks: None,
            load_workers: None,
            keys: None,
            foreign_keys: false,
            shard: None,
            keying: 1.0,
            think: 1.0,
            delivery_log: profile.delivery == DeliveryMode::Deferred,
            weights: [None; 5],
        }
    }

    /// What a trial on a database that `loaded` describes is asked to run.
    pub(super) fn of_run(&self, loaded: &Loaded, seed: u64) -> TpccOptions {
        TpccOptions {
            flight: self.flight,
            warehouses: self.warehouses,
            isolation: self.isolation,
            keying_multiplier: self.keying,
            think_multiplier: self.think,
            ..TpccOptions::new(self.profile, loaded, seed)
        }
    }

    /// Sessions that execute what so many terminals with pauses enter; `None` where each terminal
    /// has its own.
    pub(super) fn sessions_of(&self, terminals: u32) -> Option<u32> {
        let loaded = Loaded { warehouses: self.warehouses, c_last: 0 };
        let staff = self.of_run(&loaded, 0).staff(self.sessions);
        staff.terminals.map(|_| staff.workers.min(terminals))
    }

    /// When the conditions are checked.
    pub(super) fn checks(&self) -> When {
        self.checks.unwrap_or(When::usual(self.warehouses))
    }

    fn set(&mut self, option: &PlannedOption) -> Result<(), Wrong> {
        let (name, value) = (option.name.as_str(), option.value.as_str());
        if let Some(kind) = name.strip_prefix("weights.") {
            return self.set_weight(kind, value);
        }
        if let Some(clause) = name.strip_prefix("shard.") {
            return self.set_shard(clause, value);
        }
        if OF_PAUSES.contains(&name) && self.profile.pacing.is_none() {
            return Err(format!(
                "no value in the profile `{}`, which has a session for each terminal and no pauses",
                self.profile.name
            ));
        }
        match name {
            "warehouses" => self.warehouses = whole(value, WAREHOUSES_MAX)?,
            "sessions" => self.sessions = Some(whole(value, 100_000)?),
            "load_workers" => self.load_workers = Some(whole(value, 10_000)?),
            "delivery_log" => self.delivery_log = flag(value)?,
            "keying_multiplier" => self.keying = multiplier(value)?,
            "think_multiplier" => self.think = multiplier(value)?,
            "foreign_keys" => self.foreign_keys = flag(value)?,
            "terminal_warehouse_fixed" => self.set_binding(flag(value)?)?,
            "flight" => {
                let modes = [FlightMode::Statement, FlightMode::Pipelined];
                let found = modes.into_iter().find(|mode| flight_name(*mode) == value);
                self.flight = found.ok_or("statement or pipelined")?;
            }
            "isolation" => {
                let found = ISOLATIONS.iter().find(|(name, _)| *name == value);
                let wanted = "server, read-committed, repeatable-read or serializable";
                self.isolation = Some(found.ok_or(wanted)?.1);
            }
            "checks" => {
                self.checks = Some(match value {
                    "none" => When::None,
                    "after" => When::After,
                    "before-and-after" => When::BeforeAndAfter,
                    _ => return Err("none, after or before-and-after".to_owned()),
                });
            }
            "keys" => {
                self.keys = Some(match value {
                    "before" => KeyTime::BeforeLoad,
                    "primary-before" => KeyTime::PrimaryBeforeLoad,
                    "after" => KeyTime::AfterLoad,
                    _ => return Err("before, primary-before or after".to_owned()),
                });
            }
            "weights" => return Err("a table: `weights = { payment = 43 }`".to_owned()),
            "shard" => return Err("a table: `shard = { suffix = \"...\" }`".to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn set_binding(&mut self, is_fixed: bool) -> Result<(), Wrong> {
        match (self.profile.binding, is_fixed) {
            (Binding::Home, true) => {}
            (Binding::Home, false) => {
                return Err("true: terminals of this profile have a home warehouse".to_owned());
            }
            (_, true) => self.profile.binding = Binding::Drawn,
            (_, false) => self.profile.binding = Binding::Roaming,
        }
        Ok(())
    }

    fn set_weight(&mut self, name: &str, value: &str) -> Result<(), Wrong> {
        let known = WEIGHTS.map(Kind::name);
        let Some(kind) = WEIGHTS.into_iter().find(|kind| kind.name() == name) else {
            let near = nearest(name, known.iter().copied());
            return Err(match (name == Kind::NewOrder.name(), near) {
                (true, _) => "no value: New-Order has what the others leave of 100".to_owned(),
                (false, Some(near)) => format!("no value; did you mean `weights.{near}`?"),
                (false, None) => format!("no value; kinds with a weight: {}", known.join(", ")),
            });
        };
        let percent = value.parse().ok().filter(|percent| *percent <= 100);
        let percent = percent.ok_or("a whole number of percent from 0 to 100")?;
        self.weights[kind.index()] = Some(percent);
        Ok(())
    }

    fn set_shard(&mut self, name: &str, value: &str) -> Result<(), Wrong> {
        if !SHARD.contains(&name) {
            return Err(match nearest(name, SHARD.iter().copied()) {
                Some(near) => format!("no value; did you mean `shard.{near}`?"),
                None => format!("no value; its keys: {}", SHARD.join(", ")),
            });
        }
        let shard = self.shard.get_or_insert_default();
        let (clauses, name) = match name.strip_prefix("item_") {
            Some(name) => (&mut shard.item, name),
            None => (&mut shard.by_warehouse, name),
        };
        let text = Some(value.to_owned());
        match name {
            "before" => clauses.before = text,
            "suffix" => clauses.suffix = text,
            _ => clauses.after = text,
        }
        Ok(())
    }

    /// What several options decide together.
    fn finish(&mut self) -> Result<(), String> {
        if self.weights.iter().any(Option::is_some) {
            // What BenchmarkSQL's own files have, unless told otherwise.
            let usual = dyno_tpcc::profile::BMSQL_5_0.choice.shares();
            let weight = |kind: Kind| self.weights[kind.index()].unwrap_or(usual[kind.index()]);
            let [payment, order_status, delivery, stock_level] = WEIGHTS.map(weight);
            let profile = self.profile.with_weights(payment, order_status, delivery, stock_level);
            self.profile = profile.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// How terminals choose and where they work, in a sentence.
    pub(super) fn words(&self) -> String {
        let shares = self.profile.choice.shares().map(|share| share.to_string()).join(", ");
        let choice = match self.profile.choice {
            Choice::Weights(_) => "weights",
            Choice::Deck(_) => "decks of cards",
        };
        let place = match self.profile.binding {
            Binding::Home => "a home warehouse and district each",
            Binding::Drawn => "a warehouse and district each, drawn once",
            Binding::Roaming => "a district each, the warehouse drawn for each transaction",
        };
        format!(
            "Items and customers are drawn by NURand. Terminals have {place}; they choose by \
             {choice} of {shares}."
        )
    }
}

fn multiplier(value: &str) -> Result<f64, Wrong> {
    let number = value.parse().ok().filter(|number| (0.0..=1_000.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 1000".to_owned())
}
