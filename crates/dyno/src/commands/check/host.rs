//! `dyno check --host`: how the load generator's own machine is set, beside how white papers prepare theirs.
//!
//! Nothing is changed here: settings of a machine belong to its owner.

use crate::pretty;
use dyno_facts::format::grouped;
use dyno_facts::text_table;
use dyno_runner::failure::Failure;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Flows that the papers' load generators remember per receive queue, and in all.
const FLOWS_PER_QUEUE: u64 = 4_096;
const FLOWS: u64 = 32_768;
/// Connects that wait to be accepted; the kernel's own value since 5.4.
const BACKLOG: u64 = 4_096;
/// Twice what TPC-C's largest experiments of the papers connect.
const PORTS: u64 = 20_000;
const FILES: u64 = 16_384;
/// Each reading of these clocks leaves the CPU or the kernel's fast path: more than a microsecond.
const SLOW_CLOCKS: [&str; 3] = ["hpet", "acpi_pm", "jiffies"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Set,
    NotNeeded,
    NotReadable,
}

impl Verdict {
    fn of(is_fine: bool) -> Self {
        if is_fine { Verdict::Fine } else { Verdict::Set }
    }

    fn name(self) -> &'static str {
        match self {
            Verdict::Fine => "fine",
            Verdict::Set => "set it",
            Verdict::NotNeeded => "not needed",
            Verdict::NotReadable => "not readable",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    name: String,
    now: String,
    wanted: String,
    verdict: Verdict,
    why: &'static str,
    /// Sets it until the machine is started again.
    command: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostReport {
    cpus: usize,
    /// Interfaces with a device, and those that are up without one.
    interfaces: Vec<String>,
    virtuals: Vec<String>,
    settings: Vec<Setting>,
}

impl HostReport {
    /// Reads the machine whose `/proc` and `/sys` are below `root`.
    pub(super) fn read(root: &Path) -> HostReport {
        let machine = Machine { root };
        let cpus = machine.cpus();
        let (interfaces, virtuals) = machine.interfaces();
        let mut settings = Vec::new();
        for name in &interfaces {
            settings.extend(machine.queues(name, &cpus));
        }
        if !interfaces.is_empty() {
            settings.push(machine.flows(&cpus));
        }
        settings.push(machine.backlog());
        settings.push(machine.ports());
        settings.push(machine.files());
        settings.push(machine.governor());
        settings.push(machine.clock());
        HostReport { cpus: cpus.len(), interfaces, virtuals, settings }
    }

    pub(super) fn text(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        let mut text = format!(
            "This machine as a load generator: {}, {} with a device.\n\n",
            count(self.cpus, "CPU"),
            count(self.interfaces.len(), "network interface"),
        );
        let row = |setting: &Setting| {
            let verdict = setting.verdict.name().to_owned();
            let now = if setting.now.is_empty() { "-" } else { &setting.now };
            vec![setting.name.clone(), now.to_owned(), setting.wanted.clone(), verdict]
        };
        let rows: Vec<Vec<String>> = self.settings.iter().map(row).collect();
        text.push_str(&text_table(&["setting", "now", "wanted", "verdict"], &rows, |place| {
            place >= 4
        }));
        if !self.virtuals.is_empty() {
            text.push_str(&format!(
                "\nNo device stands behind {}: how its packets are received is set where the device is.\n",
                self.virtuals.join(", ")
            ));
        }
        let to_set: Vec<&Setting> =
            self.settings.iter().filter(|setting| setting.verdict == Verdict::Set).collect();
        if to_set.is_empty() {
            text.push_str("\nNothing needs to be set.\n");
            return text;
        }
        text.push_str("\nWhy:\n");
        let mut told: Vec<&str> = Vec::new();
        for setting in to_set.iter().filter(|setting| {
            let is_new = !told.contains(&setting.why);
            told.push(setting.why);
            is_new
        }) {
            text.push_str(&format!("  {}: {}\n", setting.name, setting.why));
        }
        text.push_str("\nAs root, until the machine is started again:\n");
        for setting in to_set {
            text.push_str(&format!("  {}\n", setting.command));
        }
        text
    }

    pub(super) fn json(&self) -> Result<String, Failure> {
        let setting = |setting: &Setting| {
            let is_to_set = setting.verdict == Verdict::Set;
            json!({
                "setting": setting.name,
                "now": setting.now,
                "wanted": setting.wanted,
                "verdict": setting.verdict.name(),
                "why": setting.why,
                "command": is_to_set.then_some(&setting.command),
            })
        };
        let settings: Vec<Value> = self.settings.iter().map(setting).collect();
        pretty(&json!({
            "cpus": self.cpus,
            "interfaces": self.interfaces,
            "interfaces_without_device": self.virtuals,
            "settings": settings,
        }))
    }
}

struct Machine<'a> {
    root: &'a Path,
}

impl Machine<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(text.trim().to_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path.trim_start_matches('/')));
        let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
        let mut names: Vec<String> =
            entries.into_iter().flatten().filter_map(|entry| name(entry.ok()?)).collect();
        names.sort();
        names
    }

    fn cpus(&self) -> BTreeSet<usize> {
        self.text("/sys/devices/system/cpu/online").map_or_else(BTreeSet::new, |list| listed(&list))
    }

    /// Those with a device that are not down, and virtual ones that are up.
    fn interfaces(&self) -> (Vec<String>, Vec<String>) {
        let folder = |name: &str| format!("/sys/class/net/{name}");
        let state = |name: &String| self.text(&format!("{}/operstate", folder(name)));
        let has_device = |name: &String| {
            self.root.join(folder(name).trim_start_matches('/')).join("device").exists()
        };
        let alive = self.names("/sys/class/net").into_iter().filter(|name| name != "lo");
        let alive = alive.filter(|name| state(name).is_some_and(|state| state != "down"));
        alive.partition(has_device)
    }

    fn queues(&self, interface: &str, cpus: &BTreeSet<usize>) -> [Setting; 2] {
        let folder = format!("/sys/class/net/{interface}/queues");
        let queues: Vec<String> =
            self.names(&folder).into_iter().filter(|name| name.starts_with("rx-")).collect();
        let values = |file: &str| -> Option<Vec<String>> {
            queues.iter().map(|queue| self.text(&format!("{folder}/{queue}/{file}"))).collect()
        };
        let number = queues.len();
        let of = match number {
            1 => format!("{interface}, 1 receive queue"),
            _ => format!("{interface}, {number} receive queues"),
        };
        // With a queue for each CPU the interface itself spreads what it receives.
        let is_needed = cpus.len() > 1 && number < cpus.len();
        let setting = |file: &str, wanted: String, is_fine: &dyn Fn(&str) -> bool, why| {
            let found = values(file).filter(|values| !values.is_empty());
            let verdict = match &found {
                None => Verdict::NotReadable,
                Some(_) if !is_needed => Verdict::NotNeeded,
                Some(values) => Verdict::of(values.iter().all(|value| is_fine(value))),
            };
            Setting {
                name: format!("{of}: {file}"),
                now: found.map_or_else(String::new, |values| distinct(&values)),
                command: format!(
                    "for queue in {folder}/rx-*; do echo {wanted} > $queue/{file}; done"
                ),
                wanted,
                verdict,
                why,
            }
        };
        [
            setting(
                "rps_cpus",
                mask_of(cpus),
                &|value| set_of(value).is_superset(cpus),
                "One CPU per queue handles all packets that come in, and is full before the others; \
                 the white papers spread them over all CPUs.",
            ),
            setting(
                "rps_flow_cnt",
                FLOWS_PER_QUEUE.to_string(),
                &|value| at_least(value, FLOWS_PER_QUEUE),
                FLOWS_WHY,
            ),
        ]
    }

    fn flows(&self, cpus: &BTreeSet<usize>) -> Setting {
        let file = "/proc/sys/net/core/rps_sock_flow_entries";
        let is_needed = cpus.len() > 1;
        let setting = self.number(file, "net.core.rps_sock_flow_entries", FLOWS, FLOWS_WHY);
        match setting.verdict {
            Verdict::Set if !is_needed => Setting { verdict: Verdict::NotNeeded, ..setting },
            _ => setting,
        }
    }

    fn backlog(&self) -> Setting {
        self.number(
            "/proc/sys/net/core/somaxconn",
            "net.core.somaxconn",
            BACKLOG,
            "Where servers run on this machine, connects above it at a time are dropped and tried \
             again a second later.",
        )
    }

    /// A number of the kernel that must be large enough.
    fn number(&self, file: &str, name: &str, least: u64, why: &'static str) -> Setting {
        let now = self.text(file);
        Setting {
            name: name.to_owned(),
            verdict: match &now {
                None => Verdict::NotReadable,
                Some(value) => Verdict::of(at_least(value, least)),
            },
            now: now.unwrap_or_default(),
            wanted: format!("{least} or more"),
            why,
            command: format!("sysctl -w {name}={least}"),
        }
    }

    fn ports(&self) -> Setting {
        let now = self.text("/proc/sys/net/ipv4/ip_local_port_range");
        let range = now.as_deref().and_then(|text| {
            let mut ends = text.split_whitespace().map(|end| end.parse::<u64>().ok());
            Some((ends.next()??, ends.next()??))
        });
        Setting {
            name: "net.ipv4.ip_local_port_range".to_owned(),
            verdict: match range {
                None => Verdict::NotReadable,
                Some((from, to)) => Verdict::of((to + 1).saturating_sub(from) >= PORTS),
            },
            now: range.map_or_else(String::new, |(from, to)| format!("{from} to {to}")),
            wanted: format!("{} ports or more", grouped(PORTS)),
            why: "Each connection to one address of a server needs a port of its own.",
            command: "sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\"".to_owned(),
        }
    }

    fn files(&self) -> Setting {
        let limits = self.text("/proc/self/limits");
        let line = limits
            .as_deref()
            .and_then(|text| text.lines().find_map(|line| line.strip_prefix("Max open files")));
        let now = line.and_then(|line| line.split_whitespace().next()).map(str::to_owned);
        Setting {
            name: "open files (ulimit -n)".to_owned(),
            verdict: match &now {
                None => Verdict::NotReadable,
                Some(value) => Verdict::of(value == "unlimited" || at_least(value, FILES)),
            },
            now: now.unwrap_or_default(),
            wanted: format!("{FILES} or more"),
            why: "Each connection is an open file.",
            command: "ulimit -n 65536      in the shell that starts dyno".to_owned(),
        }
    }

    fn governor(&self) -> Setting {
        let folder = "/sys/devices/system/cpu";
        let is_cpu = |name: &String| {
            name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<usize>().is_ok())
        };
        let cpus = self.names(folder).into_iter().filter(is_cpu);
        let found: Vec<String> = cpus
            .filter_map(|cpu| self.text(&format!("{folder}/{cpu}/cpufreq/scaling_governor")))
            .collect();
        Setting {
            name: "CPU frequency governor".to_owned(),
            verdict: match found.is_empty() {
                // A virtual machine is not told, and can't choose.
                true => Verdict::NotReadable,
                false => Verdict::of(found.iter().all(|governor| governor == "performance")),
            },
            now: distinct(&found),
            wanted: "performance".to_owned(),
            why: "A CPU that slows down between requests adds to every latency that it takes.",
            command: "for cpu in /sys/devices/system/cpu/cpu[0-9]*; do echo performance > \
                      $cpu/cpufreq/scaling_governor; done"
                .to_owned(),
        }
    }

    fn clock(&self) -> Setting {
        let folder = "/sys/devices/system/clocksource/clocksource0";
        let now = self.text(&format!("{folder}/current_clocksource"));
        let available = self.text(&format!("{folder}/available_clocksource")).unwrap_or_default();
        let is_slow = |clock: &&str| SLOW_CLOCKS.contains(clock);
        let better = available.split_whitespace().find(|clock| !is_slow(clock)).unwrap_or("tsc");
        Setting {
            name: "clock source".to_owned(),
            verdict: match now.as_deref() {
                None => Verdict::NotReadable,
                Some(clock) => Verdict::of(!is_slow(&clock)),
            },
            wanted: format!("none of {}", SLOW_CLOCKS.join(", ")),
            why: "Every transaction is timed, and each reading of a slow clock takes a microsecond.",
            command: format!("echo {better} > {folder}/current_clocksource"),
            now: now.unwrap_or_default(),
        }
    }
}

const FLOWS_WHY: &str = "So that packets of a connection are handled where the thread runs that waits \
                         for them; the white papers remember 4,096 flows per queue, 32,768 in all.";

fn at_least(value: &str, least: u64) -> bool {
    value.parse::<u64>().is_ok_and(|value| value >= least)
}

fn distinct(values: &[String]) -> String {
    let values: BTreeSet<&str> = values.iter().map(String::as_str).collect();
    values.into_iter().collect::<Vec<_>>().join(", ")
}

/// `0-3,8` of a list of CPUs. What is no list is empty.
fn listed(list: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<usize>().ok()?..=to.trim().parse::<usize>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The kernel's mask of CPUs: 32 of them for each word of hexadecimal digits, the highest first.
fn mask_of(cpus: &BTreeSet<usize>) -> String {
    let words = cpus.last().map_or(0, |last| last / 32) + 1;
    let word = |number: usize| {
        cpus.iter()
            .filter(|cpu| **cpu / 32 == number)
            .fold(0_u32, |word, cpu| word | 1 << (cpu % 32))
    };
    let mut text = format!("{:x}", word(words - 1));
    for number in (0..words - 1).rev() {
        text.push_str(&format!(",{:08x}", word(number)));
    }
    text
}

/// The CPUs of such a mask.
fn set_of(mask: &str) -> BTreeSet<usize> {
    let words = mask.rsplit(',').map(|word| u32::from_str_radix(word.trim(), 16).unwrap_or(0));
    let of_word = |(number, word): (usize, u32)| {
        (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| number * 32 + bit)
    };
    words.enumerate().flat_map(of_word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A machine of four CPUs whose one interface has one queue, with all defaults.
    fn machine(changes: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  524288  files";
        let files = [
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
            ("sys/devices/system/cpu/cpufreq/policy0", "not a CPU"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet"),
            ("sys/class/net/lo/operstate", "unknown"),
            ("sys/class/net/docker0/operstate", "up"),
            ("sys/class/net/eth1/operstate", "down"),
            ("sys/class/net/eth1/device/vendor", "0x1d0f"),
            ("sys/class/net/eth0/operstate", "up"),
            ("sys/class/net/eth0/device/vendor", "0x1d0f"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0"),
            ("sys/class/net/eth0/queues/rx-0/rps_flow_cnt", "0"),
            ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0"),
            ("proc/sys/net/core/rps_sock_flow_entries", "0"),
            ("proc/sys/net/core/somaxconn", "128"),
            ("proc/sys/net/ipv4/ip_local_port_range", "32768\t40000"),
            ("proc/self/limits", limits),
        ];
        for (path, text) in files.iter().chain(changes) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, format!("{text}\n")).expect("written");
        }
        root
    }

    fn read(changes: &[(&str, &str)]) -> HostReport {
        HostReport::read(machine(changes).path())
    }

    fn verdict(report: &HostReport, name: &str) -> Verdict {
        let found = report.settings.iter().find(|setting| setting.name.contains(name));
        found.unwrap_or_else(|| panic!("{name} is missing")).verdict
    }

    #[test]
    fn a_machine_with_defaults_gets_all_advice() {
        let report = read(&[]);
        assert_eq!(report.interfaces, ["eth0"]);
        assert_eq!(report.virtuals, ["docker0"]);
        let expected = "\
This machine as a load generator: 4 CPUs, 1 network interface with a device.

setting                              now             wanted                         verdict
eth0, 1 receive queue: rps_cpus      0               f                              set it
eth0, 1 receive queue: rps_flow_cnt  0               4096                           set it
net.core.rps_sock_flow_entries       0               32768 or more                  set it
net.core.somaxconn                   128             4096 or more                   set it
net.ipv4.ip_local_port_range         32768 to 40000  20,000 ports or more           set it
open files (ulimit -n)               1024            16384 or more                  set it
CPU frequency governor               powersave       performance                    set it
clock source                         tsc             none of hpet, acpi_pm, jiffies  fine
";
        let text = report.text();
        let squeezed = |text: &str| {
            let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            text.lines().map(line).collect::<Vec<_>>().join("\n")
        };
        assert!(squeezed(&text).starts_with(squeezed(expected).trim_end()), "{text}");
        for line in [
            "No device stands behind docker0",
            "  for queue in /sys/class/net/eth0/queues/rx-*; do echo f > $queue/rps_cpus; done\n",
            "  sysctl -w net.core.rps_sock_flow_entries=32768\n",
            "  ulimit -n 65536",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
        assert_eq!(text.matches("4,096 flows per queue").count(), 1, "one reason is told once");
    }

    #[test]
    fn a_prepared_machine_is_left_alone() {
        let limits = "Max open files            65536                524288               files";
        let report = read(&[
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0000000f"),
            ("sys/class/net/eth0/queues/rx-0/rps_flow_cnt", "4096"),
            ("proc/sys/net/core/rps_sock_flow_entries", "32768"),
            ("proc/sys/net/core/somaxconn", "4096"),
            ("proc/sys/net/ipv4/ip_local_port_range", "32768 60999"),
            ("proc/self/limits", limits),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
        ]);
        assert!(report.settings.iter().all(|setting| setting.verdict == Verdict::Fine));
        assert!(report.text().ends_with("\nNothing needs to be set.\n"));
        let value: Value = serde_json::from_str(&report.json().expect("JSON")).expect("JSON");
        assert_eq!(value["settings"][0]["verdict"], "fine");
        assert_eq!(value["settings"][0]["command"], Value::Null);
    }

    #[test]
    fn one_queue_too_few_is_told_and_a_queue_for_each_cpu_is_enough() {
        let more: Vec<(String, &str)> = (1..4)
            .flat_map(|queue| {
                let folder = format!("sys/class/net/eth0/queues/rx-{queue}");
                [(format!("{folder}/rps_cpus"), "f"), (format!("{folder}/rps_flow_cnt"), "0")]
            })
            .collect();
        let changes = |number: usize| -> Vec<(&str, &str)> {
            more[..number].iter().map(|(path, text)| (path.as_str(), *text)).collect()
        };
        let three = read(&changes(4));
        assert_eq!(verdict(&three, "3 receive queues: rps_cpus"), Verdict::Set);
        assert!(three.text().contains("0, f"), "both values are shown");
        let four = read(&changes(6));
        assert_eq!(verdict(&four, "4 receive queues: rps_cpus"), Verdict::NotNeeded);
    }

    #[test]
    fn one_cpu_has_nothing_to_spread_over() {
        let report = read(&[("sys/devices/system/cpu/online", "0")]);
        for name in ["rps_cpus", "rps_flow_cnt", "rps_sock_flow_entries"] {
            assert_eq!(verdict(&report, name), Verdict::NotNeeded, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_advice() {
        let root = tempfile::tempdir().expect("a folder");
        let report = HostReport::read(root.path());
        assert!(report.settings.iter().all(|s| s.verdict == Verdict::NotReadable), "{report:?}");
        assert_eq!((report.cpus, report.settings.len()), (0, 5));
    }

    #[test]
    fn a_slow_clock_is_replaced_by_one_that_is_there() {
        let folder = "sys/devices/system/clocksource/clocksource0";
        let (now, all) =
            (format!("{folder}/current_clocksource"), format!("{folder}/available_clocksource"));
        let report = read(&[(&now, "hpet"), (&all, "hpet kvm-clock acpi_pm")]);
        assert_eq!(verdict(&report, "clock source"), Verdict::Set);
        assert!(report.text().contains("echo kvm-clock >"));
    }

    #[test]
    fn masks_are_those_of_the_kernel() {
        let cases = [("0", "1"), ("0-1", "3"), ("0-3,8", "10f"), ("0-39", "ff,ffffffff")];
        for (list, mask) in cases {
            assert_eq!(mask_of(&listed(list)), mask);
            assert_eq!(set_of(mask), listed(list));
        }
        assert_eq!(set_of("00000000,0000000f"), listed("0-3"));
    }
}
