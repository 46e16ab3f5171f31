//! From properties to what is meant by them.

use super::properties::{Entry, Properties, VERSION_6, key_warnings};
use dyno_core::Dialect;
use dyno_drivers::target::{Secret, TargetError, TargetUrl};
use dyno_runner::failure::{Failure, sentence};
use dyno_tpcc::profile::{BMSQL_5_0, Binding, Profile, SPEC, TransactionChoice};
use dyno_tpcc::{DISTRICTS, WAREHOUSES_MAX};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Terminals that one warehouse has (clause 4.2.2): one in each district.
const TERMINALS_PER_WAREHOUSE: u32 = DISTRICTS;
/// BenchmarkSQL's own number of loading connections.
const LOAD_WORKERS: u32 = 4;
/// Longest run or ramp-up, minutes.
const MINS_MAX: u32 = 1_000_000;
const SESSIONS_MAX: u32 = 100_000;
/// Weights are kept in hundredths of a percent: BenchmarkSQL 6 has them with decimal places.
const HUNDRED_PERCENT: u32 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The value of the key `db`: `postgres`, `mysql`, `mariadb` or `sqlite`.
    pub(super) db: String,
    pub(super) target: TargetUrl,
    pub(super) warehouses: u32,
}

/// Terminals with pauses, as BenchmarkSQL 6 has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pauses {
    /// Sessions that execute what the terminals enter; `None` is as many as are usual.
    pub(super) sut_threads: Option<u32>,
    /// The factor of keying times.
    pub(super) keying: f64,
    /// The factor of think times.
    pub(super) think: f64,
    /// Minutes before the measured window.
    pub(super) rampup_mins: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) profile: Profile,
    pub(super) terminals: u32,
    /// Minutes; 0 if the transactions of each terminal end the run.
    pub(super) mins: u32,
    pub(super) txns_per_terminal: u32,
    /// Transactions per minute of all terminals; `None` is not a limit.
    pub(super) limit_per_min: Option<u32>,
    /// With the profile `spec`.
    pub(super) pauses: Option<Pauses>,
    /// Seconds between two lines of the console.
    pub(super) report_interval_s: u32,
    /// The name of the folder for results, with `%tX`.
    pub(super) result_directory: Option<String>,
}

/// Reads properties and notes what does not count.
pub(super) struct Reader<'a> {
    properties: &'a Properties,
    /// Sentences.
    pub(super) warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(properties: &'a Properties) -> Self {
        Reader { properties, warnings: key_warnings(properties) }
    }

    /// Adds a warning about the value of a key; `what` ends its sentence.
    fn warn(&mut self, entry: &Entry, what: impl Display) {
        self.warnings.push(format!("{}: {} {what}.", self.properties.place(entry), entry.key));
    }

    /// The entry of a key, unless its value is blank.
    fn nonblank(&self, key: &str) -> Option<&'a Entry> {
        self.properties.get(key).filter(|entry| !entry.value.trim().is_empty())
    }

    /// The failure for a key that the file lacks.
    fn missing(&self, key: &str, remedy: &str) -> Failure {
        let file = &self.properties.file;
        Failure::usage(format!("{file}: {key} is missing.")).with_hint(remedy)
    }

    /// Returns the failure for the value of a key; `what` ends its sentence.
    fn invalid(&self, entry: &Entry, what: impl Display) -> Failure {
        let place = self.properties.place(entry);
        Failure::usage(format!("{place}: {}={} {what}.", entry.key, entry.value.trim()))
    }

    /// Reads a number in this range; `None` if the key is missing or blank.
    fn number<T: FromStr + PartialOrd + Display>(
        &self,
        key: &str,
        allowed: RangeInclusive<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(entry) = self.nonblank(key) else { return Ok(None) };
        let number = entry.value.trim().parse().ok().filter(|number| allowed.contains(number));
        let (low, high) = (allowed.start(), allowed.end());
        number.map(Some).ok_or_else(|| {
            self.invalid(entry, "can't be used")
                .with_hint(format!("{key} is a number from {low} to {high}"))
        })
    }

    /// Java takes everything but `true` for false; a typing error does not count as false here.
    fn flag(&self, key: &str, usual: bool) -> Result<bool, Failure> {
        let Some(entry) = self.nonblank(key) else { return Ok(usual) };
        match entry.value.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.invalid(entry, "can't be used").with_hint("write true or false")),
        }
    }

    /// Reads which database to use, and how many warehouses it has.
    pub(super) fn place(&mut self) -> Result<Place, Failure> {
        let db = self.db()?;
        let Some(conn) = self.nonblank("conn") else {
            return Err(self.missing("conn", "write conn=jdbc:postgresql://host:port/database"));
        };
        let text = conn.value.trim();
        let is_jdbc = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("jdbc:"));
        let read = if is_jdbc {
            TargetUrl::from_jdbc(text).map(|jdbc| (jdbc.target, jdbc.warnings))
        } else {
            text.parse::<TargetUrl>().map(|target| (target, Vec::new()))
        };
        let at = self.properties.place(conn);
        let (mut target, warnings) = read.map_err(|error| wrong_target(&at, error))?;
        self.warnings.extend(warnings.into_iter().map(|what| format!("{at}: {what}")));
        let dialect = dialect(&db);
        if dialect != Some(target.dialect) || target.scheme() != target.dialect.name() {
            return Err(Failure::usage(format!(
                "{at}: conn is a URL of {}, and db is {db}.",
                target.scheme()
            ))
            .with_hint("let both name the same database"));
        }
        if let Some(user) = self.nonblank("user") {
            target.user = Some(user.value.trim().to_owned());
        }
        // A password may end with blanks.
        if let Some(password) = self.properties.get("password").filter(|e| !e.value.is_empty()) {
            target.password = Some(Secret::new(password.value.clone()));
        }
        let warehouses = self.number("warehouses", 1..=WAREHOUSES_MAX)?;
        let warehouses =
            warehouses.ok_or_else(|| self.missing("warehouses", "write warehouses=1 or more"))?;
        Ok(Place { db, target, warehouses })
    }

    /// Reads the key `db`, in lower case; it must name a known database.
    fn db(&self) -> Result<String, Failure> {
        const KNOWN: &str = "write db=postgres, mysql, mariadb or sqlite";
        let Some(entry) = self.nonblank("db") else {
            return Err(self.missing("db", KNOWN));
        };
        let db = entry.value.trim().to_ascii_lowercase();
        dialect(&db).map(|_| db).ok_or_else(|| {
            self.invalid(entry, "names a database that dyno doesn't speak with").with_hint(KNOWN)
        })
    }

    /// Number of sessions of a build.
    pub(super) fn load_workers(&self) -> Result<u32, Failure> {
        if let Some(entry) = self.nonblank("fileLocation") {
            let hint =
                "leave fileLocation out: dyno loads the tables itself, with COPY or LOAD DATA";
            return Err(self
                .invalid(entry, "asks for CSV files, which dyno doesn't write")
                .with_hint(hint));
        }
        Ok(self.number("loadWorkers", 1..=10_000)?.unwrap_or(LOAD_WORKERS))
    }

    /// The settings of a run. `asked` is the profile that the command line names.
    pub(super) fn run(
        &mut self,
        place: &Place,
        asked: Option<&'static Profile>,
    ) -> Result<Run, Failure> {
        // BenchmarkSQL 6 can run each transaction as a stored procedure: another workload.
        self.flag("useStoredProcedures", false)?;
        let plain = [("application", &["Generic"][..]), ("useStoredProcedures", &["false"])];
        self.refuse_others(plain, "would run stored procedures, which dyno doesn't have")?;
        let has_6 = VERSION_6.iter().any(|key| self.nonblank(key).is_some());
        let base = asked.unwrap_or(if has_6 { &SPEC } else { &BMSQL_5_0 });
        let is_spec = base.name == SPEC.name;
        let pauses = if is_spec { Some(self.pauses(place)?) } else { None };
        let terminals = if is_spec {
            let multiplier = self.number("terminalMultiplier", 1..=1_000)?.unwrap_or(1_u32);
            let per_warehouse = TERMINALS_PER_WAREHOUSE * multiplier;
            place.warehouses.saturating_mul(per_warehouse)
        } else {
            self.terminals(place.warehouses)?
        };
        let mut profile = Profile { choice: self.weights(base)?, ..*base };
        if !is_spec && !self.flag("terminalWarehouseFixed", true)? {
            profile.binding = Binding::Roaming;
        }
        profile.rollback_percent = self.rollback_percent(base)?;
        self.note_unused(is_spec)?;
        let (mins, txns_per_terminal) = self.length()?;
        Ok(Run {
            profile,
            terminals,
            mins,
            txns_per_terminal,
            limit_per_min: self
                .number("limitTxnsPerMin", 0..=u32::MAX)?
                .filter(|&limit| limit > 0 && !is_spec),
            pauses,
            report_interval_s: self.number("reportIntervalSecs", 1..=3_600)?.unwrap_or(1),
            result_directory: self.nonblank("resultDirectory").map(|e| e.value.trim().to_owned()),
        })
    }

    /// Refuses keys that have none of the usual values, for this reason.
    fn refuse_others(&self, keys: [(&str, &[&str]); 2], reason: &str) -> Result<(), Failure> {
        for (key, usual) in keys {
            let unusual = self.nonblank(key).filter(|entry| {
                !usual.iter().any(|word| entry.value.trim().eq_ignore_ascii_case(word))
            });
            if let Some(entry) = unusual {
                let remedy = format!("write {key}={}, or leave it out", usual[0]);
                return Err(self.invalid(entry, reason).with_hint(remedy));
            }
        }
        Ok(())
    }

    /// Minutes and transactions per terminal, one of which is 0.
    fn length(&self) -> Result<(u32, u32), Failure> {
        let txns_per_terminal = self.number("runTxnsPerTerminal", 0..=u32::MAX)?.unwrap_or(0);
        let mins = self.number("runMins", 0..=MINS_MAX)?.unwrap_or(0);
        if (mins > 0) != (txns_per_terminal > 0) {
            return Ok((mins, txns_per_terminal));
        }
        let problem = if mins > 0 { "both are given" } else { "neither is given" };
        Err(Failure::usage(format!(
            "{}: Must indicate either transactions per terminal or number of run minutes: of \
             runTxnsPerTerminal and runMins {problem}.",
            self.properties.file
        ))
        .with_hint("give one of both, and 0 for the other one"))
    }

    /// Reads the number of terminals, which the warehouses limit.
    fn terminals(&self, warehouses: u32) -> Result<u32, Failure> {
        let max_terminals = warehouses.saturating_mul(TERMINALS_PER_WAREHOUSE);
        let Some(entry) = self.nonblank("terminals") else {
            return Err(self.missing("terminals", "write terminals=1 or more"));
        };
        let terminals = entry.value.trim().parse().ok();
        terminals.filter(|terminals| (1..=max_terminals).contains(terminals)).ok_or_else(|| {
            self.invalid(entry, "can't be used (Invalid number of terminals!)").with_hint(format!(
                "a warehouse has ten terminals, so {warehouses} have 1 to {max_terminals}"
            ))
        })
    }

    /// Reads the keys of keying and think times, and of the ramp-up.
    fn pauses(&self, place: &Place) -> Result<Pauses, Failure> {
        // Several programs of BenchmarkSQL 6 can share the warehouses.
        let last = place.warehouses.to_string();
        for key in ["useWarehouseFrom", "useWarehouseTo"] {
            self.number(key, -1..=i64::from(place.warehouses))?;
        }
        // -1 is the original's default: all warehouses.
        let warehouse_ranges =
            [("useWarehouseFrom", &["1", "-1"][..]), ("useWarehouseTo", &[&last, "-1"])];
        self.refuse_others(
            warehouse_ranges,
            "would leave warehouses to other programs, which dyno can't do",
        )?;
        let sut_ramp = self.number("rampupSUTMins", 0..=MINS_MAX)?;
        let ramps = sut_ramp.max(self.number("rampupTerminalMins", 0..=MINS_MAX)?).unwrap_or(0);
        Ok(Pauses {
            sut_threads: self.number("sutThreads", 1..=SESSIONS_MAX)?,
            keying: self.number("keyingTimeMultiplier", 0.0..=1_000.0)?.unwrap_or(1.0),
            think: self.number("thinkTimeMultiplier", 0.0..=1_000.0)?.unwrap_or(1.0),
            rampup_mins: self.number("rampupMins", 0..=MINS_MAX)?.unwrap_or(ramps),
        })
    }

    /// A weight in hundredths of a percent.
    fn weight(&self, key: &str) -> Result<Option<u32>, Failure> {
        let percent = self.number(key, 0.0..=100.0)?;
        Ok(percent.map(|percent: f64| (percent * 100.0).round() as u32))
    }

    /// The profile's own choice unless a weight is given; New-Order has what the others leave.
    fn weights(&mut self, base: &Profile) -> Result<TransactionChoice, Failure> {
        let keys = ["paymentWeight", "orderStatusWeight", "deliveryWeight", "stockLevelWeight"];
        let mut weights = [None; 4];
        for (weight, key) in weights.iter_mut().zip(keys) {
            *weight = self.weight(key)?;
        }
        let new_order = self.weight("newOrderWeight")?;
        if weights.iter().all(Option::is_none) && new_order.is_none() {
            return Ok(base.choice);
        }
        // What BenchmarkSQL's own files have.
        let usual = [43_00, 4_00, 4_00, 4_00];
        let mut other_weights = [0; 4];
        for (at, weight) in other_weights.iter_mut().enumerate() {
            *weight = weights[at].unwrap_or(usual[at]);
        }
        let others_sum: u32 = other_weights.iter().sum();
        let sum = others_sum + new_order.unwrap_or(0);
        let Some(remainder) =
            HUNDRED_PERCENT.checked_sub(others_sum).filter(|_| sum <= HUNDRED_PERCENT)
        else {
            let file = &self.properties.file;
            return Err(Failure::usage(format!(
                "{file}: the weights add up to {} percent: Sum of percentage parameters exceeds \
                 100%!",
                f64::from(sum) / 100.0
            ))
            .with_hint("lower a weight; New-Order has what the others leave of 100"));
        };
        if let (Some(entry), Some(_)) =
            (self.nonblank("newOrderWeight"), new_order.filter(|&weight| weight != remainder))
        {
            let percent = f64::from(remainder) / 100.0;
            let problem = format!("is not what the others leave: New-Order has {percent} percent");
            self.warn(entry, problem);
        }
        let [payment, order_status, delivery, stock_level] = other_weights;
        let weights = [remainder, payment, order_status, delivery, stock_level];
        // Whole percents are shown as such.
        let unit = if weights.iter().all(|weight| weight % 100 == 0) { 100 } else { 1 };
        Ok(TransactionChoice::Weights(weights.map(|weight| weight / unit)))
    }

    /// Whole percents: clause 2.4.1.4 has 1, BenchmarkSQL 6 a little more to be safe.
    fn rollback_percent(&mut self, base: &Profile) -> Result<u32, Failure> {
        let Some(percent) = self.number("rollbackPercent", 0.0..=100.0)? else {
            return Ok(base.rollback_percent);
        };
        let percent: f64 = percent;
        let rounded = percent.round();
        if let (Some(entry), true) =
            (self.nonblank("rollbackPercent"), (rounded - percent).abs() > 1e-9)
        {
            self.warn(entry, format!("counts as {rounded}: rollbacks are whole percents here"));
        }
        Ok(rounded as u32)
    }

    /// Warns of keys that the profile has no use for.
    fn note_unused(&mut self, is_spec: bool) -> Result<(), Failure> {
        self.number("restartSUTThreadProbability", 0.0..=1.0)?;
        self.flag("traceTerminalIO", false)?;
        const UNUSED_BY_SPEC: &[&str] = &[
            "terminals",
            "maxDeliveryBGThreads",
            "maxDeliveryBGPerWarehouse",
            "terminalWarehouseFixed",
            "limitTxnsPerMin",
        ];
        let without_use = ["restartSUTThreadProbability", "traceTerminalIO"];
        for key in without_use.iter().chain(if is_spec { UNUSED_BY_SPEC } else { VERSION_6 }) {
            let effective = self.nonblank(key).filter(|entry| {
                let value = entry.value.trim().to_ascii_lowercase();
                *key == "terminalWarehouseFixed" || !["0", "0.0", "false"].contains(&&*value)
            });
            if let Some(entry) = effective {
                self.warn(entry, "is ignored: the profile has no use for it");
            }
        }
        Ok(())
    }
}

/// Returns the SQL dialect for a value of the key `db`; `None` if it is unknown.
fn dialect(db: &str) -> Option<Dialect> {
    match db {
        "postgres" | "postgresql" => Some(Dialect::Postgres),
        "mysql" | "mariadb" => Some(Dialect::Mysql),
        "sqlite" => Some(Dialect::Sqlite),
        _ => None,
    }
}

fn wrong_target(place: &str, error: TargetError) -> Failure {
    let failure = Failure::usage(sentence(&error.message)).at(format!("{place}: conn"));
    failure.hinted(error.hint)
}

#[cfg(test)]
mod tests;
