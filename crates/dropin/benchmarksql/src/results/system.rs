//! What a machine did in each interval: samples of `/proc`, and the CSV files made of them.

use dyno_core::Nanos;
use dyno_observe::proc::{self, CPU_COLUMNS, CpuTicks, DiskCounters, NetCounters};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

/// The files below `/proc` that a sample is made of, in the order in which they are read.
pub(super) const FILES: [&str; 5] = ["uptime", "stat", "vmstat", "diskstats", "net/dev"];
/// More text than any machine has in one sample, in bytes.
const SAMPLE_MAX: u64 = 16 << 20;

/// The texts of [`FILES`]; empty where there is no such file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts(pub(super) [String; FILES.len()]);

impl Texts {
    pub(super) fn of_this_machine() -> Self {
        let mut texts = FILES
            .map(|file| std::fs::read_to_string(Path::new("/proc").join(file)).unwrap_or_default());
        // The clock of the loops is finer.
        texts[0].clear();
        Texts(texts)
    }

    /// Reads the next sample that [`remote_command`] has written. `None` at the end.
    pub(super) fn read(mut input: impl BufRead) -> io::Result<Option<Self>> {
        let mut texts = Texts::default();
        let mut current = None;
        let mut input = input.by_ref().take(SAMPLE_MAX);
        let mut line = Vec::new();
        loop {
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                // What was cut off is no sample.
                return match input.limit() {
                    0 => Err(io::Error::other("a sample without an end")),
                    _ => Ok(None),
                };
            }
            let text = String::from_utf8_lossy(&line);
            match (text.trim_end().strip_prefix('@'), current) {
                (Some("end"), _) => return Ok(Some(texts)),
                (Some(name), _) => current = FILES.iter().position(|&file| file == name),
                (None, Some(file)) => texts.0[file].push_str(&text),
                // Greetings of a login.
                (None, None) => {}
            }
        }
    }
}

/// A loop for any POSIX shell that writes a sample every `interval_s` seconds until nobody reads.
pub(super) fn remote_command(interval_s: u32) -> String {
    format!(
        "while :; do for f in {}; do echo \"@$f\" || exit; cat \"/proc/$f\" 2>/dev/null; done; \
         echo @end || exit; sleep {interval_s}; done",
        FILES.join(" ")
    )
}

/// The counters of a machine at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// When it was read, by the clock of the loops.
    pub(super) at: Nanos,
    /// By the clock of the machine itself, where that is another one.
    uptime_s: Option<f64>,
    cpu: Option<CpuTicks>,
    dirty_pages: Option<u64>,
    disks: BTreeMap<String, DiskCounters>,
    networks: BTreeMap<String, NetCounters>,
}

impl Sample {
    pub(super) fn new(at: Nanos, texts: &Texts) -> Self {
        let [uptime, stat, vmstat, diskstats, net_dev] = &texts.0;
        let owned = |name: &str| name.to_owned();
        Sample {
            at,
            uptime_s: uptime.split_whitespace().next().and_then(|word| word.parse().ok()),
            cpu: proc::cpu_ticks(stat),
            dirty_pages: proc::dirty_pages(vmstat),
            disks: proc::disks(diskstats).map(|(name, disk)| (owned(name), disk)).collect(),
            networks: proc::networks(net_dev).map(|(name, net)| (owned(name), net)).collect(),
        }
    }

    /// True when it comes from a Linux machine.
    pub(super) fn is_usable(&self) -> bool {
        self.cpu.is_some()
    }

    /// Names of all devices as the property has them.
    pub(super) fn devices(&self) -> Vec<String> {
        let networks = self.networks.keys().map(|name| format!("net_{name}"));
        networks.chain(self.disks.keys().map(|name| format!("blk_{name}"))).collect()
    }

    /// Length of the interval from `before` to here.
    fn seconds_since(&self, before: &Sample) -> f64 {
        match (before.uptime_s, self.uptime_s) {
            (Some(from), Some(to)) => to - from,
            _ => self.at.saturating_sub(before.at) as f64 / 1e9,
        }
    }
}

/// Values of a device in an interval; `None` when it was not there all the time, or was reset.
fn device_rates(device: &str, before: &Sample, after: &Sample) -> Option<Vec<f64>> {
    let seconds = after.seconds_since(before);
    if seconds <= 0.0 {
        return None;
    }
    // (counter before, counter after, units of the counter in one unit of the column)
    let columns = if let Some(name) = device.strip_prefix("net_") {
        let (a, b) = (before.networks.get(name)?, after.networks.get(name)?);
        vec![
            (a.received_packets, b.received_packets, 1.0),
            (a.received_bytes, b.received_bytes, 1_024.0),
            (a.sent_packets, b.sent_packets, 1.0),
            (a.sent_bytes, b.sent_bytes, 1_024.0),
        ]
    } else {
        let name = device.strip_prefix("blk_")?;
        let (a, b) = (before.disks.get(name)?, after.disks.get(name)?);
        vec![
            (a.reads, b.reads, 1.0),
            (a.reads_merged, b.reads_merged, 1.0),
            // Sectors of 512 bytes.
            (a.sectors_read, b.sectors_read, 2.0),
            (a.writes, b.writes, 1.0),
            (a.writes_merged, b.writes_merged, 1.0),
            (a.sectors_written, b.sectors_written, 2.0),
        ]
    };
    let rate = |(before, after, unit): (u64, u64, f64)| {
        Some(proc::counted(before, after)? as f64 / unit / seconds)
    };
    columns.into_iter().map(rate).collect()
}

/// Shares of all CPU time in an interval, in the order of [`CPU_COLUMNS`].
fn cpu_shares(before: CpuTicks, after: CpuTicks) -> Option<[f64; 10]> {
    let all = after.all().checked_sub(before.all()).filter(|&all| all > 0)? as f64;
    let mut shares = [0.0; 10];
    for (share, (before, after)) in shares.iter_mut().zip(before.0.iter().zip(after.0)) {
        // The time waited for disks may go back a little (proc(5)).
        *share = after.saturating_sub(*before) as f64 / all;
    }
    Some(shares)
}

/// `data/sys_info.csv` and a file per device.
#[derive(Debug)]
pub(super) struct Tables {
    run: u32,
    system: File,
    devices: Vec<(String, File)>,
    /// Devices that had no values in some interval.
    missed: Vec<String>,
}

impl Tables {
    /// Makes the files with their titles in the folder `data`.
    pub(super) fn create(data: &Path, run: u32, devices: &[String]) -> io::Result<Self> {
        let create = |name: &str, titles: &str| {
            let mut file = File::create_new(data.join(format!("{name}.csv")))?;
            file.write_all(format!("run,elapsed,{titles}\n").as_bytes())?;
            io::Result::Ok(file)
        };
        let cpu = CPU_COLUMNS.map(|column| format!("cpu_{column}")).join(",");
        let titles = |device: &str| match device.starts_with("net_") {
            true => "device,rxpktsps,rxkbps,txpktsps,txkbps",
            false => "device,rdiops,rdmerges,rdkbps,wriops,wrmerges,wrkbps",
        };
        let device = |device: &String| Ok((device.clone(), create(device, titles(device))?));
        Ok(Tables {
            run,
            system: create("sys_info", &format!("{cpu},vm_nr_dirty"))?,
            devices: devices.iter().map(device).collect::<io::Result<_>>()?,
            missed: Vec::new(),
        })
    }

    /// Writes the interval between two samples, which ends `elapsed_ms` after the start of the
    /// session.
    pub(super) fn write(
        &mut self,
        elapsed_ms: u64,
        before: &Sample,
        after: &Sample,
    ) -> io::Result<()> {
        let run = self.run;
        let cpus = before.cpu.zip(after.cpu);
        if let Some(shares) = cpus.and_then(|(before, after)| cpu_shares(before, after)) {
            let mut line = format!("{run},{elapsed_ms}");
            push_all(&mut line, &shares, 6);
            // Writing to a String can't fail.
            let _ = writeln!(line, ",{}", after.dirty_pages.unwrap_or(0));
            self.system.write_all(line.as_bytes())?;
        }
        for (device, file) in &mut self.devices {
            match device_rates(device, before, after) {
                Some(rates) => {
                    let mut line = format!("{run},{elapsed_ms},{device}");
                    push_all(&mut line, &rates, 3);
                    line.push('\n');
                    file.write_all(line.as_bytes())?;
                }
                None if self.missed.contains(device) => {}
                None => self.missed.push(device.clone()),
            }
        }
        Ok(())
    }

    /// Devices that have intervals without a line.
    pub(super) fn missed(&self) -> &[String] {
        &self.missed
    }
}

fn push_all(line: &mut String, values: &[f64], decimals: usize) {
    for value in values {
        // Writing to a String can't fail.
        let _ = write!(line, ",{value:.decimals$}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Nanos = 1_000_000_000;

    fn sample(at_s: Nanos, cpu: &str, disk: &str, net: &str) -> Sample {
        let vmstat = "nr_dirty 42\n".to_owned();
        let texts = [String::new(), format!("cpu  {cpu}\n"), vmstat, disk.into(), net.into()];
        Sample::new(at_s * SECOND, &Texts(texts))
    }

    /// The lines of all files, without titles.
    fn written(samples: &[Sample], devices: &[&str]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
        let mut tables = Tables::create(folder.path(), 7, &devices).unwrap();
        for pair in samples.windows(2) {
            tables.write(pair[1].at / 1_000_000, &pair[0], &pair[1]).unwrap();
        }
        let mut lines = Vec::new();
        for name in std::iter::once("sys_info").chain(devices.iter().map(String::as_str)) {
            let text = std::fs::read_to_string(folder.path().join(format!("{name}.csv"))).unwrap();
            lines.extend(text.lines().skip(1).map(str::to_owned));
        }
        (lines, tables.missed().to_vec())
    }

    #[test]
    fn intervals_are_differences_not_averages_since_the_start() {
        let samples = [
            sample(
                0,
                "100 0 100 800 0 0 0 0 0 0",
                "8 0 sda 10 0 100 0 5 1 8 0\n",
                "eth0: 1024 8 0 0 0 0 0 0 0 0\n",
            ),
            sample(
                2,
                "150 0 110 820 10 0 0 10 0 0",
                "8 0 sda 30 2 140 0 5 1 8 0\n",
                "eth0: 5120 10 0 0 0 0 0 0 2048 4\n",
            ),
            sample(
                4,
                "150 0 110 920 10 0 0 10 0 0",
                "8 0 sda 30 2 140 0 9 5 108 0\n",
                "eth0: 5120 10 0 0 0 0 0 0 2048 4\n",
            ),
        ];
        let (lines, missed) = written(&samples, &["blk_sda", "net_eth0"]);
        assert_eq!(
            lines,
            [
                "7,2000,0.500000,0.000000,0.100000,0.200000,0.100000,0.000000,0.000000,0.100000,0.000000,0.000000,42",
                "7,4000,0.000000,0.000000,0.000000,1.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,42",
                "7,2000,blk_sda,10.000,1.000,10.000,0.000,0.000,0.000",
                "7,4000,blk_sda,0.000,0.000,0.000,2.000,2.000,25.000",
                "7,2000,net_eth0,1.000,2.000,2.000,1.000",
                "7,4000,net_eth0,0.000,0.000,0.000,0.000",
            ]
        );
        assert!(missed.is_empty());
    }

    #[test]
    fn wrapped_counters_go_on_and_reset_or_vanished_devices_have_no_line() {
        let net = |bytes: u64| format!("eth0: {bytes} 0 0 0 0 0 0 0 0 0\n");
        let wrapped = u64::from(u32::MAX) - 1_023;
        let samples = [
            sample(1, "1 1 1 1", "8 0 sda 1000 0 0 0 0 0 0 0\n", &net(wrapped)),
            sample(2, "1 1 1 2", "8 0 sda 3 0 0 0 0 0 0 0\n", &net(1_024)),
            sample(3, "1 1 1 3", "", &net(2_048)),
            sample(4, "1 1 1 4", "8 0 sda 3 0 0 0 0 0 0 0\n", &net(2_048)),
            sample(5, "1 1 1 5", "8 0 sda 8 0 0 0 0 0 0 0\n", &net(2_048)),
        ];
        let (lines, missed) = written(&samples, &["blk_sda", "net_eth0"]);
        assert_eq!(lines[4], "7,5000,blk_sda,5.000,0.000,0.000,0.000,0.000,0.000");
        assert_eq!(lines[5], "7,2000,net_eth0,0.000,2.000,0.000,0.000");
        assert_eq!(lines.len(), 9);
        assert_eq!(missed, ["blk_sda"]);
    }

    #[test]
    fn the_clock_of_the_machine_itself_counts() {
        let texts = |uptime: &str, bytes: u32| {
            let net = format!("eth0: {bytes} 0 0 0 0 0 0 0 0 0\n");
            Texts([uptime.into(), "cpu 1 1 1 1\n".into(), String::new(), String::new(), net])
        };
        let before = Sample::new(10 * SECOND, &texts("100.00 5\n", 0));
        // A network that held the sample back.
        let after = Sample::new(19 * SECOND, &texts("102.00 6\n", 4_096));
        assert_eq!(device_rates("net_eth0", &before, &after).unwrap()[1], 2.0);
    }

    #[test]
    fn the_shell_loop_is_understood() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", &remote_command(0)])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = io::BufReader::new(child.stdout.take().unwrap());
        let samples: Vec<Sample> =
            (0..3).map(|at| Sample::new(at, &Texts::read(&mut input).unwrap().unwrap())).collect();
        // Nobody reads any more: the loop ends by itself.
        drop(input);
        assert!(!child.wait().unwrap().success());
        for sample in &samples {
            assert!(sample.is_usable() && sample.uptime_s.is_some(), "{sample:?}");
        }
        assert_eq!(samples[0].devices(), Sample::new(0, &Texts::of_this_machine()).devices());
    }

    #[test]
    fn greetings_are_skipped_and_a_cut_sample_is_none() {
        let text = "Welcome!\n@stat\ncpu 1 2 3 4\n@vmstat\nnr_dirty 9\n@end\n@stat\ncpu 1";
        let mut input = text.as_bytes();
        let texts = Texts::read(&mut input).unwrap().unwrap();
        assert_eq!(texts.0, ["", "cpu 1 2 3 4\n", "nr_dirty 9\n", "", ""]);
        assert_eq!(Texts::read(&mut input).unwrap(), None);
        let endless = io::repeat(b'x');
        assert!(Texts::read(&mut io::BufReader::new(endless)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_can_be_sampled(
            texts in prop::array::uniform5("([a-z_0-9 :.@-]{0,30}[0-9]{1,22} ?|\n|cpu |sda |eth0: |nr_dirty ){0,12}"),
            others in prop::array::uniform5("([a-z_0-9 :.@-]{0,30}[0-9]{1,22} ?|\n|cpu |sda |eth0: |nr_dirty ){0,12}"),
        ) {
            let [before, after] = [texts, others].map(|texts| Sample::new(0, &Texts(texts)));
            let after = Sample { at: SECOND, uptime_s: None, ..after };
            if let Some((before, after)) = before.cpu.zip(after.cpu)
                && let Some(shares) = cpu_shares(before, after)
            {
                prop_assert!(shares.iter().all(|share| share.is_finite() && *share >= 0.0));
            }
            for device in after.devices() {
                let rates = device_rates(&device, &before, &after);
                prop_assert!(rates.into_iter().flatten().all(|rate| rate.is_finite() && rate >= 0.0));
            }
        }

        #[test]
        fn what_the_shell_writes_is_read_back(
            texts in prop::array::uniform5("([a-z0-9 :]{0,20}\n){0,5}"),
        ) {
            let mut sent = String::new();
            for (file, text) in FILES.iter().zip(&texts) {
                sent.push_str(&format!("@{file}\n{text}"));
            }
            sent.push_str("@end\n");
            prop_assert_eq!(Texts::read(&mut sent.as_bytes()).unwrap(), Some(Texts(texts)));
        }
    }
}
