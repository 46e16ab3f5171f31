//! What a machine is like that doesn't change while it is used.

use super::line_of;
use dyno_facts::Machine;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

pub fn machine() -> Machine {
    let huge_pages = line_of("/sys/kernel/mm/transparent_hugepage/enabled");
    let swaps = fs::read_to_string("/proc/swaps").ok();
    Machine {
        governor: governor(),
        huge_pages: huge_pages.and_then(|text| chosen(&text)),
        swap_mib: swaps.map(|text| swap_kib(&text) / 1024),
        virtualisation: virtualisation(),
        disk: fs::read_to_string("/proc/self/mountinfo").ok().and_then(|text| disk(&text)),
        packet_steering: packet_steering(),
    }
}

/// The CPUs' frequency governor, such as `performance`; several are joined with a comma.
pub fn governor() -> Option<String> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").ok()?;
    let governor = |entry: fs::DirEntry| {
        let path = entry.path().join("cpufreq/scaling_governor");
        Some(fs::read_to_string(path).ok()?.trim().to_owned())
    };
    let names: BTreeSet<String> = cpus.filter_map(|entry| governor(entry.ok()?)).collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(","))
}

/// The word in brackets.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// `/proc/swaps`: a line of titles, then a line per device, sizes in KiB.
fn swap_kib(text: &str) -> u64 {
    let size = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
    text.lines().skip(1).filter_map(size).sum()
}

fn virtualisation() -> Option<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").ok()?;
    let is_guest = cpu
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let is_contained = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"]
        .iter()
        .any(|path| Path::new(path).exists());
    let product = line_of("/sys/class/dmi/id/product_name").filter(|_| is_guest);
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
    let mut found = BTreeSet::new();
    for interface in fs::read_dir("/sys/class/net").ok()?.flatten() {
        let name = interface.file_name().to_string_lossy().into_owned();
        let Ok(queues) = fs::read_dir(interface.path().join("queues")) else { continue };
        for queue in queues.flatten().filter(|_| name != "lo") {
            if let Ok(cpus) = fs::read_to_string(queue.path().join("rps_cpus")) {
                found.insert(format!("{name} {}", cpus.trim()));
            }
        }
    }
    (!found.is_empty()).then(|| found.into_iter().collect::<Vec<_>>().join(", "))
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
        assert!(machine.virtualisation.is_some() && machine.swap_mib.is_some(), "{machine:?}");
    }
}
