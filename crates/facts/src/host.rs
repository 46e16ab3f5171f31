//! The machine of the load generator.

use serde::{Deserialize, Serialize};

/// Settings of the machine that bear on measurements. `None` where the kernel doesn't say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The CPUs' frequency governor, such as `performance`; several are joined with a comma.
    pub governor: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Memory that can be swapped out to disk, MiB; 0 without swap.
    pub swap_mib: Option<u64>,
    /// Such as `virtual machine (Google Compute Engine)`, `container`; `none` on bare metal.
    pub virtualisation: Option<String>,
    /// What the file system of the root is on: `vda, ext4`, with the model where it has one.
    pub disk: Option<String>,
    /// Which CPUs the kernel hands received packets to (`rps_cpus`), by interface: `eth0 f`. `0` is
    /// the one that took the interrupt.
    pub packet_steering: Option<String>,
}

/// What the host did since the sample before. Shares are of all CPUs together, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct HostSample {
    /// Busy CPU: everything but idle and waiting for disks.
    pub cpu_share: f64,
    /// CPU taken by the hypervisor for others.
    pub steal_share: f64,
    /// CPU idle while a disk request was open.
    pub iowait_share: f64,
    /// Memory that programs can still get, MiB.
    pub memory_available_mib: f64,
    /// Bytes received on all interfaces but loopback, per second.
    pub network_received_bytes_per_s: f64,
    /// Bytes sent on all interfaces but loopback, per second.
    pub network_sent_bytes_per_s: f64,
}

/// The load generator's machine and binary. What can't be found out is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct Environment {
    pub host: String,
    /// Such as `Debian GNU/Linux 12 (bookworm)`.
    pub system: String,
    /// Such as `Linux 6.1.0-18-amd64 x86_64`.
    pub kernel: String,
    /// Such as `AMD EPYC 7B13`.
    pub cpu_model: String,
    /// Processors that dyno may use.
    pub cores: u32,
    /// Memory of the machine, MiB.
    pub memory_mib: f64,
    /// Settings of the machine that bear on measurements.
    pub machine: Machine,
    /// How loops receive and send: `io_uring` (loops of one or two workers use epoll unless `--io uring` was given), or
    /// `epoll` and why it is not io_uring.
    pub loops_io: String,
    pub dyno_version: String,
    /// SHA-256 of the running binary, hexadecimal.
    pub binary_sha256: String,
}
