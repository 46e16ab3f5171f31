//! Free ports and memory of this machine.
//!
//! Programs of servers, and the user who runs them.
//!
//! Memory that processes share, which outlives them when they are killed: PostgreSQL's.

use crate::Result;
use crate::folder::random_hex;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Ports of servers lie below those that the system gives to clients: a restarted server must find its port free.
const PORTS: std::ops::Range<u16> = 13_000..31_000;
/// Least cache of a server, MiB.
const CACHE_MIB_MIN: u64 = 64;

pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    // From a random place on: two clusters made at once must not choose alike.
    let random = u64::from_str_radix(&random_hex(4)?, 16).unwrap_or_default();
    let span = u64::from(PORTS.end - PORTS.start);
    let begin = u16::try_from(random % span).unwrap_or_default();
    let candidates = (PORTS.start + begin..PORTS.end).chain(PORTS.start..PORTS.start + begin);
    let free = candidates.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let free: Vec<u16> = free.take(count).collect();
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
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available_kib = available.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    share_mib(available_kib.unwrap_or(1 << 20), servers)
}

fn share_mib(available_kib: u64, servers: usize) -> u64 {
    let share = available_kib / 1024 / 2 / servers.max(1) as u64;
    // A power of two: clusters that are made one after the other, to be compared, get caches of one size.
    1 << share.max(CACHE_MIB_MIN).ilog2()
}

/// Tells one start of this machine from another: numbers and times of processes begin again with it.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Places of servers that packages keep off the path of users.
const SERVER_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin"];
const NOBODY: (u32, u32) = (65_534, 65_534);

/// The first of these names on the path or in the usual places.
pub(crate) fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain(SERVER_FOLDERS.map(PathBuf::from)).collect();
    let candidates =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|path| path.is_file())
}

/// Like [`find`], or an error that names the package.
pub(crate) fn need(names: &[&str], package: &str) -> Result<PathBuf> {
    find(names).ok_or_else(|| {
        failed!("The program {} is not installed.", names.join(" or "))
            .with_hint(format!("install it: {package}"))
    })
}

/// Libraries in a package of this machine's architecture that was unpacked to `root`.
pub(crate) fn libraries(root: &Path) -> PathBuf {
    root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH))
}

/// The loader of an unpacked system and the words before the arguments of its `program`; `folders` hold the libraries.
pub(crate) fn loaded(
    root: &Path,
    program: &Path,
    folders: &[PathBuf],
) -> Option<(PathBuf, Vec<OsString>)> {
    let names = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
    let loader =
        names.map(|name| libraries(root).join(name)).into_iter().find(|it| it.is_file())?;
    let path = folders.iter().map(|folder| folder.as_os_str()).collect::<Vec<_>>();
    let (path, program) = (path.join(OsStr::new(":")), program.as_os_str().to_owned());
    let before = ["--argv0".into(), program.clone(), "--library-path".into(), path, program];
    Some((loader, before.into()))
}

/// Finds the first of these programs below an installation prefix (`bin`, `sbin`, `libexec`, `scripts`), as `make
/// install` and the archives of vendors lay it out.
pub fn installed(root: &Path, names: &[&str]) -> Option<PathBuf> {
    let folders = ["bin", "sbin", "libexec", "scripts"].map(|folder| root.join(folder));
    let mut programs =
        folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    programs.find(|path| path.is_file())
}

/// The folder `bin` of an installation of PostgreSQL, or the newest one of this machine, in which all of these are.
pub(crate) fn postgres_folder(root: Option<&Path>, names: &[&str]) -> Result<PathBuf> {
    let entries = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = entries.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((number, entry.path().join("bin")))
    });
    let mut versions: Vec<(u32, PathBuf)> = versions.collect();
    versions.sort();
    let versions = versions.into_iter().rev().map(|(_, folder)| folder);
    // A version on the path was put there on purpose.
    let on_path = find(&["initdb"]).and_then(|path| path.canonicalize().ok());
    let on_path = on_path.as_deref().and_then(Path::parent).map(Path::to_owned);
    let usual = ["/usr/pgsql/bin", "/usr/local/pgsql/bin"].map(PathBuf::from);
    let folders = on_path.into_iter().chain(versions).chain(usual);
    let mut folders = root.map_or_else(|| folders.collect(), |root| vec![root.join("bin")]);
    folders.retain(|folder| names.iter().all(|name| folder.join(name).is_file()));
    folders.into_iter().next().ok_or_else(|| {
        if let Some(root) = root {
            let programs = names.join(", ");
            return failed!("{} holds no PostgreSQL.", root.display())
                .with_hint(format!("its folder bin must hold {programs}"));
        }
        failed!("PostgreSQL's programs {} are not installed.", names.join(", "))
            .with_hint("install them: postgresql-15 (Debian 12), or postgresql of a later release")
    })
}

fn find_account(name: &str) -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// User and group of servers when root runs dyno: the first of these users that exists, else `nobody`.
pub(crate) fn unprivileged(names: &[&str]) -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    Some(names.iter().find_map(|name| find_account(name)).unwrap_or(NOBODY))
}

/// Files of PostgreSQL's dynamic shared memory.
const FILES: &str = "/dev/shm/PostgreSQL.";
/// Name of a segment of System V in the map of a process; the inode is its number.
const SEGMENT: &str = "/SYSV";

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedMemory {
    files: BTreeSet<PathBuf>,
    segments: BTreeSet<u32>,
}

impl SharedMemory {
    /// Notes what a living process shares.
    pub(crate) fn add(&mut self, pid: u32) {
        self.add_map(&fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default());
    }

    fn add_map(&mut self, map: &str) {
        for line in map.lines() {
            let mut words = line.split_whitespace().skip(4);
            let (Some(inode), Some(path)) = (words.next(), words.next()) else { continue };
            if path.starts_with(FILES) {
                self.files.insert(Path::new(path).to_owned());
            } else if path.starts_with(SEGMENT) {
                self.segments.extend(inode.parse::<u32>().ok());
            }
        }
    }

    /// Removes it. What its processes have removed themselves is gone, which is fine.
    pub(crate) fn remove(&self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for segment in &self.segments {
            let mut ipcrm = Command::new("ipcrm");
            ipcrm.args(["-m", &segment.to_string()]).stdin(Stdio::null());
            let _ = ipcrm.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_share_half_of_the_memory() {
        assert_eq!([24, 23, 17].map(|gib| share_mib(gib << 20, 1)), [8 << 10; 3]);
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

    #[test]
    fn what_a_postgres_shares_is_read_from_its_map() {
        let mut shared = SharedMemory::default();
        shared.add_map(
            "7f1a00000000-7f1a08000000 rw-s 00000000 00:01 1024      /dev/zero (deleted)\n\
             7f1b00000000-7f1b00100000 rw-s 00000000 00:1a 7         /dev/shm/PostgreSQL.1804289\n\
             7f1b00200000-7f1b00201000 rw-s 00000000 00:01 98304     /SYSV0052e2c1 (deleted)\n\
             7f1b00300000-7f1b00301000 rw-s 00000000 00:1a 8         /dev/shm/mine\n\
             7f1c00000000-7f1c00001000 r-xp 00000000 08:01 77        /usr/bin/postgres\n",
        );
        let files = BTreeSet::from([PathBuf::from("/dev/shm/PostgreSQL.1804289")]);
        assert_eq!(shared, SharedMemory { files, segments: BTreeSet::from([98_304]) });
    }
}
