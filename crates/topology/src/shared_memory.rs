//! Memory that processes share, which outlives them when they are killed: PostgreSQL's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files of PostgreSQL's dynamic shared memory.
const FILES: &str = "/dev/shm/PostgreSQL.";
/// How the kernel shows a segment of System V in the map of a process; its number stands for the inode.
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
