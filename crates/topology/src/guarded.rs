//! Files in folders that belong to the servers' user. Root writes and reads there too, and that user must not lead it
//! to other files: no link is followed, on no part of the way, and nothing is touched that has a second name.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

fn open_guarded(path: &Path, flags: OFlags, mode: u32) -> io::Result<File> {
    // A pipe in a file's place must not make anybody wait.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(mode);
    let opened = match openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS) {
        // Some containers forbid it; the last part of the way is watched all the same.
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, mode),
        opened => opened,
    };
    let file = File::from(opened?);
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.nlink() == 1 {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a plain file, or it has another name elsewhere"))
    }
}

/// Writes what is read from `from` to a file of its `owner`'s, readable by others as `mode` says.
pub(crate) fn copy(
    from: &mut impl Read,
    path: &Path,
    mode: u32,
    owner: Option<(u32, u32)>,
) -> io::Result<()> {
    let mut file = open_guarded(path, OFlags::WRONLY | OFlags::CREATE, mode)?;
    file.set_len(0)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    if let Some((user, group)) = owner {
        fchown(&file, Some(user), Some(group))?;
    }
    io::copy(from, &mut file)?;
    file.flush()
}

/// A file that grows.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    open_guarded(path, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND, 0o644)
}

/// A file to read from.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    open_guarded(path, OFlags::RDONLY, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_leads_root_to_other_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        let (own, node) = (root.join("shadow"), root.join("n1"));
        fs::write(&own, "root's").expect("written");
        fs::create_dir(&node).expect("made");
        fs::create_dir(root.join("etc")).expect("made");
        symlink(&own, node.join("server.cnf")).expect("linked");
        symlink(root.join("etc"), node.join("data")).expect("linked");
        fs::hard_link(&own, node.join("server.log")).expect("linked");
        rustix::fs::mkfifoat(CWD, node.join("pipe"), Mode::RUSR | Mode::WUSR).expect("made");
        for name in ["server.cnf", "data/postgresql.conf", "server.log", "pipe"] {
            let path = node.join(name);
            assert!(copy(&mut &b"evil"[..], &path, 0o644, None).is_err(), "{name}");
            assert!(append(&path).is_err(), "{name}");
            assert!(read(&path).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(&own).expect("read"), "root's");
        assert!(fs::read_dir(root.join("etc")).expect("read").next().is_none());
        let path = node.join("mine");
        copy(&mut &b"a longer text"[..], &path, 0o600, None).expect("written");
        copy(&mut &b"text"[..], &path, 0o600, None).expect("written again");
        assert_eq!(fs::read_to_string(&path).expect("read"), "text");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
