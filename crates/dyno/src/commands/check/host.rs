//! `dyno check --host`: how the load generator's own machine is set, alongside how white papers prepare theirs.
//!
//! Nothing is changed here: settings of a machine belong to its owner.

use dyno_core::counted;
use dyno_facts::format::grouped;
use dyno_facts::text_table;
use serde::{Serialize, Serializer};
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
const FLOWS_WHY: &str = "So that packets of a connection are handled where the thread runs that waits \
                         for them; the white papers remember 4,096 flows per queue, 32,768 in all.";

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Verdict {
        Fine = "fine",
        Set = "set it",
        NotNeeded = "not needed",
        NotReadable = "not readable",
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Setting {
    #[serde(rename = "setting")]
    name: String,
    now: String,
    wanted: String,
    verdict: Verdict,
    why: &'static str,
    /// Sets it until the machine is started again; `None` if that is not needed.
    command: Option<String>,
}

impl Setting {
    fn new(
        name: impl Into<String>,
        now: Option<String>,
        is_fine: impl Fn(&str) -> bool,
        wanted: impl Into<String>,
        why: &'static str,
        command: impl Into<String>,
    ) -> Self {
        let verdict = match &now {
            None => Verdict::NotReadable,
            Some(value) if is_fine(value) => Verdict::Fine,
            Some(_) => Verdict::Set,
        };
        let command = (verdict == Verdict::Set).then(|| command.into());
        let (name, wanted, now) = (name.into(), wanted.into(), now.unwrap_or_default());
        Setting { name, now, wanted, verdict, why, command }
    }

    /// Need not be set where this is false.
    fn needed_if(self, is_needed: bool) -> Self {
        match self.verdict {
            Verdict::Fine | Verdict::Set if !is_needed => {
                Setting { verdict: Verdict::NotNeeded, command: None, ..self }
            }
            _ => self,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct HostReport {
    cpus: usize,
    /// Interfaces with a device, and those that are up without one.
    interfaces: Vec<String>,
    #[serde(rename = "interfaces_without_device")]
    virtuals: Vec<String>,
    settings: Vec<Setting>,
}

impl HostReport {
    /// Reads the machine whose `/proc` and `/sys` are below `root`.
    pub(super) fn read(root: &Path) -> HostReport {
        let machine = Machine { root };
        let online = machine.read_text("/sys/devices/system/cpu/online");
        let cpus = online.map_or_else(BTreeSet::new, |list| parse_cpu_list(&list));
        let (interfaces, virtuals) = machine.interfaces();
        let mut settings = Vec::new();
        for name in &interfaces {
            settings.extend(machine.queue_settings(name, &cpus));
        }
        if !interfaces.is_empty() {
            let name = "net.core.rps_sock_flow_entries";
            let flows = machine.number_setting(name, FLOWS, FLOWS_WHY);
            let is_needed = cpus.len() > 1 || flows.verdict == Verdict::Fine;
            settings.push(flows.needed_if(is_needed));
        }
        settings.extend(machine.limit_settings());
        settings.extend(machine.clock_settings());
        HostReport { cpus: cpus.len(), interfaces, virtuals, settings }
    }

    /// Returns the report as it is printed, with the commands that set what is wrong.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "This machine as a load generator: {}, {} with a device.\n\n",
            counted(self.cpus as u64, "CPU"),
            counted(self.interfaces.len() as u64, "network interface"),
        );
        let rows = self.settings.iter().map(|setting| {
            let current = if setting.now.is_empty() { "-" } else { &setting.now };
            [&setting.name, current, &setting.wanted, setting.verdict.name()]
                .map(str::to_owned)
                .to_vec()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        text.push_str(&text_table(&["setting", "now", "wanted", "verdict"], &rows, |_| false));
        if !self.virtuals.is_empty() {
            text.push_str(&format!(
                "\nThere is no device behind {}: how its packets are received is set where the device is.\n",
                self.virtuals.join(", ")
            ));
        }
        let (mut explained, mut commands) = (BTreeSet::new(), String::new());
        let mut reasons = "\nWhy:\n".to_owned();
        for setting in &self.settings {
            let Some(command) = &setting.command else { continue };
            if explained.insert(setting.why) {
                reasons.push_str(&format!("  {}: {}\n", setting.name, setting.why));
            }
            commands.push_str(&format!("  {command}\n"));
        }
        if commands.is_empty() {
            return text + "\nNothing needs to be set.\n";
        }
        format!("{text}{reasons}\nAs root, until the machine is started again:\n{commands}")
    }
}

struct Machine<'a> {
    root: &'a Path,
}

impl Machine<'_> {
    fn read_text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(text.trim().to_owned())
    }

    fn list_names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path.trim_start_matches('/')));
        let mut names: Vec<String> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Interfaces with a device that are not down, and virtual ones that are up.
    fn interfaces(&self) -> (Vec<String>, Vec<String>) {
        let alive = self.list_names("/sys/class/net").into_iter().filter(|name| name != "lo");
        let alive = alive.filter(|name| {
            let state = self.read_text(&format!("/sys/class/net/{name}/operstate"));
            state.is_some_and(|state| state != "down")
        });
        alive.partition(|name| self.root.join(format!("sys/class/net/{name}/device")).exists())
    }

    fn queue_settings(&self, interface: &str, cpus: &BTreeSet<usize>) -> [Setting; 2] {
        let folder = format!("/sys/class/net/{interface}/queues");
        let queues: Vec<String> =
            self.list_names(&folder).into_iter().filter(|name| name.starts_with("rx-")).collect();
        let number = counted(queues.len() as u64, "receive queue");
        // With a queue for each CPU the interface itself spreads what it receives.
        let is_needed = cpus.len() > 1 && queues.len() < cpus.len();
        let setting = |file: &str, wanted: String, is_fine: &dyn Fn(&str) -> bool, why| {
            let values: Option<Vec<String>> = queues
                .iter()
                .map(|queue| self.read_text(&format!("{folder}/{queue}/{file}")))
                .collect();
            let current =
                values.filter(|values| !values.is_empty()).map(|values| join_distinct(&values));
            let command =
                format!("for queue in {folder}/rx-*; do echo {wanted} > $queue/{file}; done");
            Setting::new(
                format!("{interface}, {number}: {file}"),
                current,
                |values| values.split(", ").all(is_fine),
                wanted,
                why,
                command,
            )
            .needed_if(is_needed)
        };
        [
            setting(
                "rps_cpus",
                cpu_mask(cpus),
                &|value| cpus.iter().all(|cpu| has_cpu(value, *cpu)),
                "One CPU per queue handles all packets that come in, and is full before the others; \
                 the white papers spread them over all CPUs.",
            ),
            setting(
                "rps_flow_cnt",
                FLOWS_PER_QUEUE.to_string(),
                &|value| is_at_least(value, FLOWS_PER_QUEUE),
                FLOWS_WHY,
            ),
        ]
    }

    /// A number of the kernel that must be large enough.
    fn number_setting(&self, name: &str, min: u64, why: &'static str) -> Setting {
        let current = self.read_text(&format!("/proc/sys/{}", name.replace('.', "/")));
        let (command, wanted) = (format!("sysctl -w {name}={min}"), format!("{min} or more"));
        Setting::new(name, current, |value| is_at_least(value, min), wanted, why, command)
    }

    /// The limits of the number of connections.
    fn limit_settings(&self) -> [Setting; 3] {
        let range = self.read_text("/proc/sys/net/ipv4/ip_local_port_range").and_then(|text| {
            let mut ends = text.split_whitespace().map(|end| end.parse::<u64>().ok());
            Some((ends.next()??, ends.next()??))
        });
        let limits = self.read_text("/proc/self/limits").unwrap_or_default();
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let files = files.and_then(|line| line.split_whitespace().next()).map(str::to_owned);
        [
            self.number_setting(
                "net.core.somaxconn",
                BACKLOG,
                "Where servers run on this machine, connects above it at a time are dropped and tried \
                 again a second later.",
            ),
            Setting::new(
                "net.ipv4.ip_local_port_range",
                range.map(|(from, to)| format!("{from} to {to}")),
                |_| range.is_some_and(|(from, to)| (to + 1).saturating_sub(from) >= PORTS),
                format!("{} ports or more", grouped(PORTS)),
                "Each connection to one address of a server needs its own port.",
                "sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\"",
            ),
            Setting::new(
                "open files (ulimit -n)",
                files,
                |value| value == "unlimited" || is_at_least(value, FILES),
                format!("{FILES} or more"),
                "Each connection is an open file.",
                "ulimit -n 65536      in the shell that starts dyno",
            ),
        ]
    }

    fn clock_settings(&self) -> [Setting; 2] {
        let cpus = self.list_names("/sys/devices/system/cpu").into_iter().filter(|name| {
            name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<usize>().is_ok())
        });
        let governors = cpus.filter_map(|cpu| {
            self.read_text(&format!("/sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"))
        });
        let governors: Vec<String> = governors.collect();
        let folder = "/sys/devices/system/clocksource/clocksource0";
        let available =
            self.read_text(&format!("{folder}/available_clocksource")).unwrap_or_default();
        let mut clocks = available.split_whitespace();
        let better = clocks.find(|clock| !SLOW_CLOCKS.contains(clock)).unwrap_or("tsc");
        [
            Setting::new(
                "CPU frequency governor",
                // A virtual machine is not told, and can't choose.
                (!governors.is_empty()).then(|| join_distinct(&governors)),
                |governor| governor == "performance",
                "performance",
                "A CPU that slows down between requests adds to every latency that it takes.",
                "for cpu in /sys/devices/system/cpu/cpu[0-9]*; do echo performance > \
                 $cpu/cpufreq/scaling_governor; done",
            ),
            Setting::new(
                "clock source",
                self.read_text(&format!("{folder}/current_clocksource")),
                |clock| !SLOW_CLOCKS.contains(&clock),
                format!("none of {}", SLOW_CLOCKS.join(", ")),
                "Every transaction is timed, and each reading of a slow clock takes a microsecond.",
                format!("echo {better} > {folder}/current_clocksource"),
            ),
        ]
    }
}

fn is_at_least(value: &str, min: u64) -> bool {
    value.parse::<u64>().is_ok_and(|value| value >= min)
}

fn join_distinct(values: &[String]) -> String {
    let values: BTreeSet<&str> = values.iter().map(String::as_str).collect();
    values.into_iter().collect::<Vec<_>>().join(", ")
}

/// The CPUs of a list such as `0-3,8`; none of a malformed one.
fn parse_cpu_list(list: &str) -> BTreeSet<usize> {
    let ranges = list.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<usize>().ok()?..=to.trim().parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

/// The kernel's mask of CPUs: 32 of them for each word of hexadecimal digits, the highest first.
fn cpu_mask(cpus: &BTreeSet<usize>) -> String {
    let highest = cpus.last().map_or(0, |last| last / 32);
    let mut words = vec![0_u32; highest + 1];
    for cpu in cpus {
        words[cpu / 32] |= 1_u32 << (cpu % 32);
    }
    let mut text = format!("{:x}", words[highest]);
    for word in words[..highest].iter().rev() {
        text.push_str(&format!(",{word:08x}"));
    }
    text
}

/// Returns true if such a mask has a CPU.
fn has_cpu(mask: &str, cpu: usize) -> bool {
    let digit = mask.chars().rev().filter_map(|digit| digit.to_digit(16)).nth(cpu / 4);
    digit.is_some_and(|bits| bits >> (cpu % 4) & 1 == 1)
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
        let setting = report.settings.iter().find(|setting| setting.name.contains(name));
        setting.unwrap_or_else(|| panic!("{name} is missing")).verdict
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
        let [squeezed, expected] = [text.as_str(), expected].map(|text| {
            let lines = text.lines().map(|line| Vec::from_iter(line.split_whitespace()).join(" "));
            Vec::from_iter(lines).join("\n")
        });
        assert!(squeezed.starts_with(expected.trim_end()), "{text}");
        for line in [
            "There is no device behind docker0",
            "  for queue in /sys/class/net/eth0/queues/rx-*; do echo f > $queue/rps_cpus; done\n",
            "  sysctl -w net.core.rps_sock_flow_entries=32768\n",
            "  ulimit -n 65536",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
        assert_eq!(text.matches("4,096 flows per queue").count(), 1, "each reason is given once");
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
        let value = serde_json::to_value(&report).expect("JSON");
        assert_eq!(value["settings"][0]["verdict"], "fine");
        assert_eq!(value["settings"][0]["command"], serde_json::Value::Null);
    }

    #[test]
    fn one_queue_too_few_is_told_and_a_queue_for_each_cpu_is_enough() {
        let queue_files: Vec<(String, &str)> = (1..4)
            .flat_map(|queue| {
                let folder = format!("sys/class/net/eth0/queues/rx-{queue}");
                [(format!("{folder}/rps_cpus"), "f"), (format!("{folder}/rps_flow_cnt"), "0")]
            })
            .collect();
        let changes: Vec<(&str, &str)> =
            queue_files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let three = read(&changes[..4]);
        assert_eq!(verdict(&three, "3 receive queues: rps_cpus"), Verdict::Set);
        assert!(three.text().contains("0, f"), "both values are shown");
        let four = read(&changes[..6]);
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
        let (current, available) =
            (format!("{folder}/current_clocksource"), format!("{folder}/available_clocksource"));
        let report = read(&[(&current, "hpet"), (&available, "hpet kvm-clock acpi_pm")]);
        assert_eq!(verdict(&report, "clock source"), Verdict::Set);
        assert!(report.text().contains("echo kvm-clock >"));
    }

    #[test]
    fn masks_are_those_of_the_kernel() {
        let cases = [("0", "1"), ("0-1", "3"), ("0-3,8", "10f"), ("0-39", "ff,ffffffff")];
        for (list, mask) in cases {
            assert_eq!(cpu_mask(&parse_cpu_list(list)), mask);
            let cpus: BTreeSet<usize> = (0..100).filter(|cpu| has_cpu(mask, *cpu)).collect();
            assert_eq!(cpus, parse_cpu_list(list));
        }
        assert!(has_cpu("00000000,0000000f", 3) && !has_cpu("00000000,0000000f", 4));
    }
}
