//! The machine on which dyno runs.

use crate::machine;
use dyno_facts::Environment;
use dyno_reactor::chosen_io;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};

pub fn environment() -> Environment {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let kernel = format!(
        "{} {} {}",
        line("/proc/sys/kernel/ostype"),
        line("/proc/sys/kernel/osrelease"),
        std::env::consts::ARCH
    );
    let memory_kib = field("/proc/meminfo", "MemTotal", ':')
        .and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
    Environment {
        host: line("/proc/sys/kernel/hostname"),
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
    fn this_machine_has_a_kernel_cores_memory_and_a_hash() {
        let environment = super::environment();
        assert!(environment.kernel.starts_with("Linux "), "{environment:?}");
        assert!(environment.cores > 0 && environment.memory_mib > 0.0);
        assert_eq!(environment.binary_sha256.len(), 64);
        assert_eq!(Some(environment.binary_sha256), binary_sha256());
    }
}
