//! Facts of a machine from Linux's `/proc`: counters since the start of the machine. Pure: texts
//! in, numbers out.
//!
//! The formats are those of proc(5).
//! Kernels add columns at the end of lines; missing ones are 0.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Ticks of all CPUs together: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks(pub [u64; 10]);

impl CpuTicks {
    /// All time there was. Guest time is inside user and nice.
    pub fn all(&self) -> u64 {
        self.0[..8].iter().sum()
    }

    /// Time neither idle nor waiting for disks.
    pub fn busy(&self) -> u64 {
        self.all() - self.idle() - self.iowait()
    }

    /// Ticks with nothing to do.
    pub fn idle(&self) -> u64 {
        self.0[3]
    }

    /// Idle ticks with an I/O under way.
    pub fn iowait(&self) -> u64 {
        self.0[4]
    }

    /// Ticks that the hypervisor gave to others.
    pub fn steal(&self) -> u64 {
        self.0[7]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetCounters {
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

/// The first `N` numbers of a list; what is missing or isn't a number is 0.
fn numbers<'a, const N: usize>(fields: impl Iterator<Item = &'a str>) -> [u64; N] {
    let mut numbers = [0; N];
    for (number, field) in numbers.iter_mut().zip(fields) {
        *number = field.parse().unwrap_or(0);
    }
    numbers
}

/// The CPU time in `/proc/stat`; `None` if it has no line of all CPUs.
pub fn cpu_ticks(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // A sum of ten must not overflow, whatever the text says.
    Some(CpuTicks(numbers(line.split_whitespace()).map(|ticks: u64| ticks.min(u64::MAX / 16))))
}

/// The interfaces in `/proc/net/dev`, `lo` among them, with their bytes.
pub fn networks(net_dev: &str) -> impl Iterator<Item = (&str, NetCounters)> {
    net_dev.lines().filter_map(|line| {
        // The two lines of titles have no colon.
        let (name, fields) = line.split_once(':')?;
        let [received_bytes, .., sent_bytes] = numbers::<9>(fields.split_whitespace());
        Some((name.trim(), NetCounters { received_bytes, sent_bytes }))
    })
}

/// The number after `name` in the first line that begins with it.
pub(crate) fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

pub fn swapped_pages(vmstat: &str) -> Option<u64> {
    Some(value(vmstat, "pswpin ")? + value(vmstat, "pswpout ")?)
}

/// Microseconds in which at least one task waited, from a file of `/proc/pressure`
/// (the kernel's `Documentation/accounting/psi.rst`).
pub fn pressure_us(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

/// Nanoseconds that a thread waited for a CPU although it could run: the second field of its
/// `schedstat` (the kernel's `Documentation/scheduler/sched-stats.rst`).
pub fn run_delay_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// The CPU group of this process by `/proc/self/cgroup`: the controllers of the tree
/// (empty for version 2) and the path in it.
pub fn cpu_group(cgroup: &str) -> Option<(&str, &str)> {
    let mut groups = cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let with_cpu = groups
        .clone()
        .find(|(controllers, _)| controllers.split(',').any(|controller| controller == "cpu"));
    with_cpu.or_else(|| groups.find(|(controllers, _)| controllers.is_empty()))
}

/// Microseconds for which a group was held back, from its `cpu.stat`: `throttled_usec` in version 2,
/// `throttled_time` in nanoseconds in version 1.
pub fn throttled_us(cpu_stat: &str) -> Option<u64> {
    value(cpu_stat, "throttled_usec ").or_else(|| Some(value(cpu_stat, "throttled_time ")? / 1000))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    pub sent: u64,
    pub retransmitted: u64,
}

/// Segments of TCP on all interfaces, from `/proc/net/snmp`: a line of names, then one of values.
pub fn segments(snmp: &str) -> Option<Segments> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    Some(Segments {
        sent: named_value(names, values, "OutSegs")?,
        retransmitted: named_value(names, values, "RetransSegs")?,
    })
}

/// The number at the place in `values` that `name` has in `names`.
fn named_value(names: &str, values: &str, name: &str) -> Option<u64> {
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(other, _)| *other == name)?.1.parse().ok()
}

/// Microseconds that a group has used, from its `cpu.stat` (version 2).
pub fn used_us(cpu_stat: &str) -> Option<u64> {
    value(cpu_stat, "usage_usec ")
}

/// A socket that listens, and whose it is where the kernel says that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOwner {
    pub inode: u64,
    pub user: Option<u32>,
}

/// The sockets that listen at a port, from `/proc/net/tcp` or `tcp6`, with their addresses.
pub fn tcp_listeners(tcp: &str, port: u16) -> impl Iterator<Item = (IpAddr, SocketOwner)> {
    const LISTENS: &str = "0A";
    tcp.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, at) = fields.get(1)?.split_once(':')?;
        let is_listener = *fields.get(3)? == LISTENS && u16::from_str_radix(at, 16) == Ok(port);
        let owner = SocketOwner {
            inode: fields.get(9)?.parse().ok()?,
            user: Some(fields.get(7)?.parse().ok()?),
        };
        is_listener.then_some((ip_address(address)?, owner))
    })
}

/// An address as `/proc/net` has it: words of 32 bits in the machine's order.
fn ip_address(hexadecimal: &str) -> Option<IpAddr> {
    let words = (0..hexadecimal.len())
        .step_by(8)
        .map(|at| Some(u32::from_str_radix(hexadecimal.get(at..at + 8)?, 16).ok()?.to_ne_bytes()));
    let words = words.collect::<Option<Vec<[u8; 4]>>>()?;
    match words[..] {
        [word] => Some(Ipv4Addr::from(word).into()),
        [_, _, _, _] => {
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// The inodes of sockets that listen at a path, from `/proc/net/unix`.
pub fn unix_listeners(unix: &str, path: &Path) -> impl Iterator<Item = u64> {
    /// `__SO_ACCEPTCON`.
    const LISTENS: u64 = 0x1_0000;
    unix.lines().skip(1).filter_map(move |line| {
        // The path is last and may hold blanks.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let inode = fields.get(6)?;
        let at = line.split_once(&format!(" {inode} "))?.1;
        let flags = u64::from_str_radix(fields.get(3)?, 16).ok()?;
        (flags & LISTENS != 0 && Path::new(at) == path).then(|| inode.parse().ok())?
    })
}

/// Growth of a counter. A counter of 32 bits may have passed its end; one that went back
/// otherwise was reset, which is `None`.
pub fn counter_growth(before: u64, after: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    match after.checked_sub(before) {
        Some(count) => Some(count),
        None if before < WRAP => {
            let count = after + WRAP - before;
            (count < WRAP / 2).then_some(count)
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1001      12    0    0    0     0          0         0     1001      12    0    0    0     0       0          0
eth0.7:33554432 200 0 0 0 0 0 9 500 3 0 0 0 0 0 0
";

    #[test]
    fn cpu_time_is_that_of_all_cpus() {
        let stat = "cpu  10 2 30 400 5 6 7 8 3 1\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 99\n";
        let ticks = cpu_ticks(stat).unwrap();
        assert_eq!(ticks.0, [10, 2, 30, 400, 5, 6, 7, 8, 3, 1]);
        assert_eq!((ticks.all(), ticks.busy(), ticks.steal()), (468, 63, 8));
        // Kernels before 2.6.33 have fewer columns.
        assert_eq!(cpu_ticks("cpu 1 2 3 4\n").unwrap().all(), 10);
        assert_eq!(cpu_ticks("cpu0 1 2 3 4\n"), None);
    }

    #[test]
    fn interfaces_have_names_with_anything_but_a_colon() {
        let interfaces: Vec<_> = networks(NET).collect();
        assert_eq!(interfaces.len(), 2);
        assert_eq!(interfaces[0].0, "lo");
        let vlan = NetCounters { received_bytes: 33_554_432, sent_bytes: 500 };
        assert_eq!(interfaces[1], ("eth0.7", vlan));
    }

    #[test]
    fn swap_goes_both_ways() {
        assert_eq!(swapped_pages("pswpin 3\npswpout 4\nnr_dirty 1\n"), Some(7));
        assert_eq!(swapped_pages("pswpin 3\n"), None);
    }

    #[test]
    fn pressure_is_that_of_some_task() {
        let text = "some avg10=13.41 avg60=51.22 avg300=27.10 total=28335305227\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(pressure_us(text), Some(28_335_305_227));
        assert_eq!(pressure_us("full avg10=0.00 total=9\n"), None);
    }

    #[test]
    fn waiting_for_a_cpu_is_the_second_number() {
        assert_eq!(run_delay_ns("1094248 11089731 2\n"), Some(11_089_731));
        assert_eq!(run_delay_ns("0\n"), None);
    }

    #[test]
    fn quotas_are_those_of_either_version() {
        let first = "9:name=systemd:/\n2:cpu,cpuacct:/a/b\n1:cpuset:/c\n0::/\n";
        assert_eq!(cpu_group(first), Some(("cpu,cpuacct", "/a/b")));
        assert_eq!(cpu_group("0::/user.slice\n"), Some(("", "/user.slice")));
        assert_eq!(cpu_group("1:memory:/\n"), None);
        assert_eq!(throttled_us("nr_throttled 1\nthrottled_time 5000\n"), Some(5));
        assert_eq!(throttled_us("usage_usec 9\nthrottled_usec 7\n"), Some(7));
        assert_eq!(throttled_us("usage_usec 9\n"), None);
    }

    #[test]
    fn sockets_that_listen_have_an_address_and_an_owner() {
        let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   112        0 4711 1 0 100
   1: 0100007F:0CEA 0100007F:9999 01 00000000:00000000 00:00000000 00000000   112        0 4712 1 0 100
   2: 00000000:0CEB 00000000:0000 0A 00000000:00000000 00:00000000 00000000   112        0 4713 1 0 100
";
        let listeners: Vec<_> = tcp_listeners(tcp, 3306).collect();
        let owner = SocketOwner { inode: 4711, user: Some(112) };
        assert_eq!(listeners, [(IpAddr::from([127, 0, 0, 1]), owner)]);
        assert_eq!(
            ip_address("00000000000000000000000001000000"),
            Some("::1".parse().expect("an address"))
        );
        assert_eq!(ip_address("0100"), None);
        let unix = "Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 16641 /run/a b.sock
0000000000000000: 00000003 00000000 00000000 0001 03 16642 /run/a b.sock
0000000000000000: 00000002 00000000 00010000 0001 01 16643 /run/a
0000000000000000: 00000003 00000000 00000000 0001 03 16644
";
        for (path, inode) in [("/run/a b.sock", 16641_u64), ("/run/a", 16643)] {
            assert_eq!(unix_listeners(unix, Path::new(path)).collect::<Vec<_>>(), [inode]);
        }
    }

    #[test]
    fn segments_are_found_by_name() {
        let text = "Ip: Forwarding\nIp: 2\nTcp: InSegs OutSegs RetransSegs\nTcp: 9 100 3\n";
        assert_eq!(segments(text), Some(Segments { sent: 100, retransmitted: 3 }));
        assert_eq!(segments("Tcp: OutSegs\n"), None);
    }

    #[test]
    fn counters_wrap_at_32_bits_or_are_reset() {
        assert_eq!(counter_growth(5, 12), Some(7));
        assert_eq!(counter_growth(u64::from(u32::MAX) - 9, 10), Some(20));
        assert_eq!(counter_growth(1_000, 0), None);
        assert_eq!(counter_growth(1 << 40, 3), None);
    }
}
