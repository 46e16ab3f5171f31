//! Every key of BenchmarkSQL's properties files.

use super::properties::{Place, Properties};
use dyno_core::nearest;

/// Keys that [`super::settings`] reads: those of 5.0 and 5.1, then those that only 6 has.
const USED: &str = "\
     db conn user password warehouses loadWorkers fileLocation csvNullValue terminals \
     runTxnsPerTerminal runMins limitTxnsPerMin terminalWarehouseFixed newOrderWeight \
     paymentWeight orderStatusWeight deliveryWeight stockLevelWeight resultDirectory \
     useStoredProcedures application sutThreads rampupMins rampupSUTMins rampupTerminalMins \
     reportIntervalSecs keyingTimeMultiplier thinkTimeMultiplier terminalMultiplier \
     rollbackPercent useWarehouseFrom useWarehouseTo maxDeliveryBGThreads \
     maxDeliveryBGPerWarehouse restartSUTThreadProbability traceTerminalIO";

/// What is no key, or of no meaning here, and why: what forks and manuals have made of the keys.
const IGNORED: [(&str, &str); 10] = [
    ("monkeys", "terminals are tasks here, and need no threads"),
    ("osCollectorScript", "dyno samples the machines itself"),
    ("iConn", "it is no key of BenchmarkSQL; write conn"),
    ("iUser", "it is no key of BenchmarkSQL; write user"),
    ("iPassword", "it is no key of BenchmarkSQL; write password"),
    ("url", "it is no key of BenchmarkSQL; write conn"),
    ("username", "it is no key of BenchmarkSQL; write user"),
    ("runMinutes", "it is no key of BenchmarkSQL; write runMins"),
    ("numTerminals", "it is no key of BenchmarkSQL; write terminals"),
    ("numWarehouses", "it is no key of BenchmarkSQL; write warehouses"),
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

/// Keys that do nothing here: the class of a Java driver, which is not worth a warning, and those whose warning names all.
const SILENT: &str =
    "driver monkeys osCollectorScript osCollectorInterval osCollectorSSHAddr osCollectorDevices";

/// All known names, for overrides of any case.
pub(super) fn names() -> Vec<&'static str> {
    USED.split(' ').chain(SILENT.split(' ')).collect()
}

/// A sentence for each key that does nothing here, with its place. Values are not quoted: one may be
/// a password.
pub(super) fn warnings(properties: &Properties) -> Vec<String> {
    let mut warnings = Vec::new();
    for (key, line) in &properties.repeated {
        let file = &properties.file;
        warnings.push(format!("{file}:{line}: {key} is given again further down, which counts."));
    }
    let names = names();
    for entry in &properties.entries {
        let (place, key) = (properties.place(entry), entry.key.as_str());
        // Comments in the style of Java.
        let is_comment = entry.place != Place::Override && key.starts_with("//");
        let what = match IGNORED.iter().find(|(name, _)| *name == key) {
            Some((_, why)) => format!("{key} is ignored: {why}."),
            None if is_comment || names.contains(&key) => continue,
            None => match nearest(key, names.iter().copied()) {
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
        let text = b"db=mysql\n// comment\nterminal=3\niConn=jdbc:x\nmonkeys=8\nfoo=geheim\ndb=x\n\
            osCollectorScript=x\nosCollectorInterval=1\n";
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
                "props.my:8: osCollectorScript is ignored: dyno samples the machines itself.",
                "command line: //x is unknown and ignored.",
            ]
        );
    }
}
