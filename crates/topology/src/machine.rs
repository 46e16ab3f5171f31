//! Free ports and memory of this machine.

use crate::Result;
use crate::folder::random_hex;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};

/// Ports of servers lie below those that the system gives to clients: a restarted server must find its port free.
const PORTS: std::ops::Range<u16> = 13_000..31_000;
/// Least cache of a server, MiB.
const CACHE_MIB_MIN: u64 = 64;

pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    // From a random place on: two clusters made at once must not choose alike.
    let random = u64::from_str_radix(&random_hex(4)?, 16).unwrap_or_default();
    let span = u64::from(PORTS.end - PORTS.start);
    let begin = u16::try_from(random % span).unwrap_or_default();
    let all = (PORTS.start + begin..PORTS.end).chain(PORTS.start..PORTS.start + begin);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let free: Vec<u16> = all.filter(is_free).take(count).collect();
    if free.len() < count {
        return Err(failed!(
            "This machine has no {count} free ports between {} and {}.",
            PORTS.start,
            PORTS.end
        ));
    }
    Ok(free)
}

/// The cache of one of `servers`, MiB: half of the free memory for all servers; the load and the file cache share the
/// rest.
pub(crate) fn cache_mib(servers: usize) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available_kib = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok()
        })
        .unwrap_or(1 << 20);
    share_mib(available_kib, servers)
}

fn share_mib(available_kib: u64, servers: usize) -> u64 {
    let share = available_kib / 1024 / 2 / servers.max(1) as u64;
    (share / CACHE_MIB_MIN * CACHE_MIB_MIN).max(CACHE_MIB_MIN)
}

/// Tells one start of this machine from another: numbers and times of processes begin anew with it.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_share_half_of_the_memory() {
        assert_eq!(share_mib(24 << 20, 1), 12 << 10);
        assert_eq!(share_mib(24 << 20, 3), 4096);
        assert_eq!(share_mib(100 << 10, 9), 64);
    }

    #[test]
    fn ports_differ() {
        let mut ports = free_ports(9).unwrap();
        assert!(ports.iter().all(|port| PORTS.contains(port)));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 9);
    }
}
