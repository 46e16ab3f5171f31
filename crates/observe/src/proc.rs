//! What Linux says about a machine in `/proc`: counters since the start of the machine. Pure: texts
//! in, numbers out.
//!
//! The formats are those of proc(5) and of the kernel's `Documentation/admin-guide/iostats.rst`.
//! Kernels add columns at the end of lines; missing ones are 0.

pub const CPU_COLUMNS: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// Ticks of all CPUs together, in the order of [`CPU_COLUMNS`].
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

    pub fn idle(&self) -> u64 {
        self.0[3]
    }

    pub fn iowait(&self) -> u64 {
        self.0[4]
    }

    pub fn steal(&self) -> u64 {
        self.0[7]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetCounters {
    pub received_bytes: u64,
    pub received_packets: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
}

/// Traffic of a block device. A sector is 512 bytes, whatever the device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    pub reads: u64,
    /// Reads merged with others before they were queued.
    pub reads_merged: u64,
    pub sectors_read: u64,
    pub writes: u64,
    /// Writes merged with others before they were queued.
    pub writes_merged: u64,
    pub sectors_written: u64,
}

/// The first `N` numbers of a list; what is missing or no number is 0.
fn numbers<'a, const N: usize>(fields: impl Iterator<Item = &'a str>) -> [u64; N] {
    let mut numbers = [0; N];
    for (number, field) in numbers.iter_mut().zip(fields) {
        *number = field.parse().unwrap_or(0);
    }
    numbers
}

/// The CPU time in `/proc/stat`; `None` where it has no line of all CPUs.
pub fn cpu_ticks(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // A sum of ten must not overflow, whatever the text says.
    Some(CpuTicks(numbers(line.split_whitespace()).map(|ticks: u64| ticks.min(u64::MAX / 16))))
}

pub fn networks(net_dev: &str) -> impl Iterator<Item = (&str, NetCounters)> {
    net_dev.lines().filter_map(|line| {
        // The two lines of titles have no colon.
        let (name, fields) = line.split_once(':')?;
        let [received_bytes, received_packets, _, _, _, _, _, _, sent_bytes, sent_packets] =
            numbers(fields.split_whitespace());
        let counters = NetCounters { received_bytes, received_packets, sent_bytes, sent_packets };
        Some((name.trim(), counters))
    })
}

/// The devices in `/proc/diskstats`, partitions among them.
pub fn disks(diskstats: &str) -> impl Iterator<Item = (&str, DiskCounters)> {
    diskstats.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let name = fields.next()?;
        let [reads, reads_merged, sectors_read, _, writes, writes_merged, sectors_written] =
            numbers(fields);
        let counters = DiskCounters {
            reads,
            reads_merged,
            sectors_read,
            writes,
            writes_merged,
            sectors_written,
        };
        Some((name, counters))
    })
}

pub fn dirty_pages(vmstat: &str) -> Option<u64> {
    value(vmstat, "nr_dirty ")
}

/// The number behind a name, where a line begins with it.
fn value(text: &str, name: &str) -> Option<u64> {
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

/// Where `/proc/self/cgroup` says that this process's CPU is counted: the controllers of the tree
/// (empty for version 2) and the path in it.
pub fn cpu_group(cgroup: &str) -> Option<(&str, &str)> {
    let groups = || {
        cgroup.lines().filter_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            Some((controllers, path))
        })
    };
    let is_cpu = |&(controllers, _): &(&str, &str)| controllers.split(',').any(|one| one == "cpu");
    groups().find(is_cpu).or_else(|| groups().find(|(controllers, _)| controllers.is_empty()))
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
    let value = |wanted: &str| {
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        pairs.find(|&(name, _)| name == wanted)?.1.parse::<u64>().ok()
    };
    Some(Segments { sent: value("OutSegs")?, retransmitted: value("RetransSegs")? })
}

/// How far a counter has come. A counter of 32 bits may have passed its end; one that went back
/// otherwise was reset, which is `None`.
pub fn counted(before: u64, after: u64) -> Option<u64> {
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
        let all: Vec<_> = networks(NET).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].0, "lo");
        let vlan = NetCounters {
            received_bytes: 33_554_432,
            received_packets: 200,
            sent_bytes: 500,
            sent_packets: 3,
        };
        assert_eq!(all[1], ("eth0.7", vlan));
    }

    #[test]
    fn disks_have_reads_before_writes() {
        let text =
            "   8       0 sda 100 7 2048 31 50 6 4096 12 0 40 43 0 0 0 0\n 259 1 nvme0n1p1 1 2 3\n";
        let all: Vec<_> = disks(text).collect();
        let sda = DiskCounters {
            reads: 100,
            reads_merged: 7,
            sectors_read: 2048,
            writes: 50,
            writes_merged: 6,
            sectors_written: 4096,
        };
        assert_eq!(all[0], ("sda", sda));
        assert_eq!((all[1].0, all[1].1.sectors_read, all[1].1.writes), ("nvme0n1p1", 3, 0));
    }

    #[test]
    fn dirty_pages_are_no_thresholds() {
        let text = "nr_dirty_threshold 9\nnr_dirty 42\nnr_writeback 1\n";
        assert_eq!(dirty_pages(text), Some(42));
        assert_eq!(dirty_pages("nr_dirty_threshold 9\n"), None);
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
    fn segments_are_found_by_name() {
        let text = "Ip: Forwarding\nIp: 2\nTcp: InSegs OutSegs RetransSegs\nTcp: 9 100 3\n";
        assert_eq!(segments(text), Some(Segments { sent: 100, retransmitted: 3 }));
        assert_eq!(segments("Tcp: OutSegs\n"), None);
    }

    #[test]
    fn counters_wrap_at_32_bits_or_are_reset() {
        assert_eq!(counted(5, 12), Some(7));
        assert_eq!(counted(u64::from(u32::MAX) - 9, 10), Some(20));
        assert_eq!(counted(1_000, 0), None);
        assert_eq!(counted(1 << 40, 3), None);
    }
}
