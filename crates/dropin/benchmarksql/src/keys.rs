//! Every key of BenchmarkSQL's properties files.

use super::properties::{Place, Properties};
use dyno_core::nearest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Read by [`super::settings`].
    Used,
    /// Of no meaning here, for this reason; not worth a warning.
    Silent,
    /// Of no meaning here, for this reason.
    Ignored(&'static str),
    /// Not a key of BenchmarkSQL; what is meant is another one.
    Mistaken(&'static str),
}

use Role::{Ignored, Mistaken, Silent, Used};

/// Keys of 5.0 and 5.1, then those that only 6 has, then what forks and manuals have made of them.
const KEYS: &[(&str, Role)] = &[
    ("db", Used),
    // The class of a Java driver.
    ("driver", Silent),
    ("conn", Used),
    ("user", Used),
    ("password", Used),
    ("warehouses", Used),
    ("loadWorkers", Used),
    ("fileLocation", Used),
    ("csvNullValue", Used),
    ("terminals", Used),
    ("runTxnsPerTerminal", Used),
    ("runMins", Used),
    ("limitTxnsPerMin", Used),
    ("terminalWarehouseFixed", Used),
    ("newOrderWeight", Used),
    ("paymentWeight", Used),
    ("orderStatusWeight", Used),
    ("deliveryWeight", Used),
    ("stockLevelWeight", Used),
    ("resultDirectory", Used),
    ("osCollectorScript", Used),
    ("osCollectorInterval", Used),
    ("osCollectorSSHAddr", Used),
    ("osCollectorDevices", Used),
    ("useStoredProcedures", Used),
    ("application", Used),
    ("sutThreads", Used),
    ("rampupMins", Used),
    ("rampupSUTMins", Used),
    ("rampupTerminalMins", Used),
    ("reportIntervalSecs", Used),
    ("keyingTimeMultiplier", Used),
    ("thinkTimeMultiplier", Used),
    ("terminalMultiplier", Used),
    ("rollbackPercent", Used),
    ("useWarehouseFrom", Used),
    ("useWarehouseTo", Used),
    ("maxDeliveryBGThreads", Used),
    ("maxDeliveryBGPerWarehouse", Used),
    ("restartSUTThreadProbability", Used),
    ("traceTerminalIO", Used),
    ("monkeys", Ignored("terminals are tasks here, and need no threads")),
    ("iConn", Mistaken("conn")),
    ("iUser", Mistaken("user")),
    ("iPassword", Mistaken("password")),
    ("url", Mistaken("conn")),
    ("username", Mistaken("user")),
    ("runMinutes", Mistaken("runMins")),
    ("numTerminals", Mistaken("terminals")),
    ("numWarehouses", Mistaken("warehouses")),
];

/// Keys that only BenchmarkSQL 6 has and that say how its terminals work: a file with one of them
/// is one of BenchmarkSQL 6.
pub(super) const VERSION_6: &[&str] = &[
    "sutThreads",
    "rampupMins",
    "rampupSUTMins",
    "rampupTerminalMins",
    "keyingTimeMultiplier",
    "thinkTimeMultiplier",
    "terminalMultiplier",
    "maxDeliveryBGThreads",
    "maxDeliveryBGPerWarehouse",
    "monkeys",
    "useWarehouseFrom",
    "useWarehouseTo",
];

/// The names that count, for overrides of any case.
pub(super) fn names() -> Vec<&'static str> {
    KEYS.iter().filter(|(_, role)| !matches!(role, Mistaken(_))).map(|&(name, _)| name).collect()
}

/// A sentence for each key that does nothing here, with its place. Values are not quoted: one may be
/// a password.
pub(super) fn warnings(properties: &Properties) -> Vec<String> {
    let mut warnings = Vec::new();
    for (key, line) in &properties.repeated {
        let file = &properties.file;
        warnings.push(format!("{file}:{line}: {key} is given again further down, which counts."));
    }
    for entry in &properties.entries {
        let (place, key) = (properties.place(entry), entry.key.as_str());
        let role = KEYS.iter().find(|(name, _)| *name == key).map(|&(_, role)| role);
        let what = match role {
            Some(Used | Silent) => continue,
            // Comments in the style of Java.
            None if entry.place != Place::Override && key.starts_with("//") => continue,
            Some(Ignored(why)) => format!("{key} is ignored: {why}."),
            Some(Mistaken(meant)) => {
                format!("{key} is ignored: it is no key of BenchmarkSQL; write {meant}.")
            }
            None => match nearest(key, names()) {
                Some(name) => format!("{key} is unknown and ignored; was {name} meant?"),
                None => format!("{key} is unknown and ignored."),
            },
        };
        warnings.push(format!("{place}: {what}"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_nothing_is_told_with_its_place() {
        let text = b"db=mysql\n// comment\nterminal=3\niConn=jdbc:x\nmonkeys=8\nfoo=geheim\ndb=x\n";
        let mut properties = Properties::parse("props.my", text).expect("readable");
        properties.set("//x", "1", &names());
        assert_eq!(
            warnings(&properties),
            [
                "props.my:1: db is given again further down, which counts.",
                "props.my:3: terminal is unknown and ignored; was terminals meant?",
                "props.my:4: iConn is ignored: it is no key of BenchmarkSQL; write conn.",
                "props.my:5: monkeys is ignored: terminals are tasks here, and need no threads.",
                "props.my:6: foo is unknown and ignored.",
                "command line: //x is unknown and ignored.",
            ]
        );
    }
}
