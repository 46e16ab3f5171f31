//! Properties of a machine that don't change while it is used.
//!
//! The machine on which dyno runs.

use super::read_line;
use dyno_facts::{Environment, Machine};
use dyno_reactor::chosen_io;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The machine on which this process runs; what can't be read is `None`.
pub fn machine() -> Machine {
    let huge_pages = read_line("/sys/kernel/mm/transparent_hugepage/enabled");
    let swaps = fs::read_to_string("/proc/swaps").ok();
    Machine {
        governor: governor(),
        huge_pages: huge_pages.and_then(|text| chosen(&text)),
        swap_mib: swaps.map(|text| swap_kib(&text) / 1024),
        virtualization: virtualization(),
        disk: fs::read_to_string("/proc/self/mountinfo").ok().and_then(|text| disk(&text)),
        packet_steering: packet_steering(),
    }
}

/// The CPUs' frequency governor, such as `performance`; several are joined with a comma.
pub fn governor() -> Option<String> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").ok()?;
    let names = cpus.filter_map(|entry| {
        let path = entry.ok()?.path().join("cpufreq/scaling_governor");
        Some(fs::read_to_string(path).ok()?.trim().to_owned())
    });
    let names: BTreeSet<String> = names.collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(","))
}

/// The word in brackets.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// `/proc/swaps`: a line of titles, then a line per device, sizes in KiB.
fn swap_kib(text: &str) -> u64 {
    let lines = text.lines().skip(1);
    lines.filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum()
}

/// The kind of virtual machine or container, such as `virtual machine (KVM)`; `none` on bare metal.
fn virtualization() -> Option<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").ok()?;
    let is_guest = cpu
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let is_contained = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"]
        .iter()
        .any(|path| Path::new(path).exists());
    let product = read_line("/sys/class/dmi/id/product_name").filter(|_| is_guest);
    let machine = match product {
        Some(product) => format!("virtual machine ({product})"),
        None => "virtual machine".to_owned(),
    };
    Some(match (is_guest, is_contained) {
        (true, true) => format!("container on a {machine}"),
        (true, false) => machine,
        (false, true) => "container".to_owned(),
        (false, false) => "none".to_owned(),
    })
}

/// `/proc/self/mountinfo`: the fifth field is the place; after a dash follow type and device.
fn disk(mounts: &str) -> Option<String> {
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"))?;
    let mut about = root.split_once(" - ")?.1.split(' ');
    let (system, device) = (about.next()?, about.next()?);
    let device = device.trim_start_matches("/dev/");
    // A partition's folder lies inside its disk's.
    let folder = fs::canonicalize(format!("/sys/class/block/{device}")).ok();
    let model = folder.and_then(|folder| {
        let places = [folder.join("device/model"), folder.parent()?.join("device/model")];
        places.iter().find_map(|path| fs::read_to_string(path).ok())
    });
    Some(match model {
        Some(model) => format!("{device} ({}), {system}", model.trim()),
        None => format!("{device}, {system}"),
    })
}

fn packet_steering() -> Option<String> {
    let mut steering = BTreeSet::new();
    for interface in fs::read_dir("/sys/class/net").ok()?.flatten() {
        let name = interface.file_name().to_string_lossy().into_owned();
        let Ok(queues) = fs::read_dir(interface.path().join("queues")) else { continue };
        for queue in queues.flatten().filter(|_| name != "lo") {
            if let Ok(cpus) = fs::read_to_string(queue.path().join("rps_cpus")) {
                steering.insert(format!("{name} {}", cpus.trim()));
            }
        }
    }
    (!steering.is_empty()).then(|| steering.into_iter().collect::<Vec<_>>().join(", "))
}

/// The hardware, system and binary that a run is recorded with.
pub fn environment() -> Environment {
    let kernel = format!(
        "{} {} {}",
        read_line("/proc/sys/kernel/ostype").unwrap_or_default(),
        read_line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        std::env::consts::ARCH
    );
    let memory_kib = field("/proc/meminfo", "MemTotal", ':')
        .and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
    Environment {
        host: read_line("/proc/sys/kernel/hostname").unwrap_or_default(),
        system: field("/etc/os-release", "PRETTY_NAME", '=').unwrap_or_default(),
        kernel: kernel.trim().to_owned(),
        cpu_model: field("/proc/cpuinfo", "model name", ':').unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(0, |cores| cores.get() as u32),
        memory_mib: memory_kib.map_or(0.0, |kib| (kib / 1024.0).round()),
        machine: machine(),
        loops_io: chosen_io().to_string(),
        dyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        binary_sha256: binary_sha256().unwrap_or_default(),
    }
}

/// The first value of `name` in a file of `name<separator>value` lines.
fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let lines = BufReader::new(File::open(path).ok()?).lines();
    lines.map_while(Result::ok).find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn binary_sha256() -> Option<String> {
    let mut file = BufReader::with_capacity(1 << 20, File::open("/proc/self/exe").ok()?);
    let mut hash = Sha256::new();
    loop {
        let part = file.fill_buf().ok()?;
        if part.is_empty() {
            break;
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
    Some(dyno_core::hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("always"), None);
    }

    #[test]
    fn swap_is_added_up() {
        let text = "Filename Type Size Used Priority\n/dev/zram0 partition 2048 0 100\n/swap file 1024 5 -2\n";
        assert_eq!(swap_kib(text), 3072);
        assert_eq!(swap_kib("Filename Type Size Used Priority\n"), 0);
    }

    #[test]
    fn the_disk_is_that_of_the_root() {
        let text = "22 27 0:21 / /proc rw - proc proc rw\n27 1 254:0 / / rw,relatime - ext4 /dev/no-such-disk rw\n";
        assert_eq!(disk(text).as_deref(), Some("no-such-disk, ext4"));
        assert_eq!(disk("22 27 0:21 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn this_machine_says_something_of_itself() {
        let machine = super::machine();
        assert!(machine.virtualization.is_some() && machine.swap_mib.is_some(), "{machine:?}");
    }

    #[test]
    fn this_machine_has_a_kernel_cores_memory_and_a_hash() {
        let environment = super::environment();
        assert!(environment.kernel.starts_with("Linux "), "{environment:?}");
        assert!(environment.cores > 0 && environment.memory_mib > 0.0);
        assert_eq!(environment.binary_sha256.len(), 64);
        assert_eq!(Some(environment.binary_sha256), binary_sha256());
    }
}
