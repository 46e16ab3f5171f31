//! Files that are whole at any moment, files that grow by whole lines, and what goes wrong with them.

use dyno_core::Error;
use dyno_facts::FileSeal;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Files in a folder get permissions for those whom the folder is for.
fn permissions(path: &Path) -> u32 {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::metadata(folder.unwrap_or(Path::new("."))).map_or(0o700, |folder| folder.mode())
}

/// Returns true if folders of this user may be written to: one's own, root's, those of the user who became root by
/// sudo, and those of an unknown user, as file systems of other machines and namespaces show them.
fn is_trusted(owner: u32) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let by_sudo = std::env::var("SUDO_UID").ok().filter(|_| me == 0);
    let unknown = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    let mut user_ids = [by_sudo, unknown].into_iter().flatten();
    owner == me || owner == 0 || user_ids.any(|text| text.trim().parse::<u32>() == Ok(owner))
}

/// Refuses a folder, and a link to one, of another user: who owns it can replace what is written there, and lead it to
/// other files.
pub(crate) fn check_owner(path: &Path) -> Result<(), Error> {
    // A slash at the end would follow the link.
    let path: PathBuf = path.components().collect();
    for metadata in [fs::symlink_metadata(&path), fs::metadata(&path)] {
        let metadata = metadata.map_err(|error| io_error("look at", &path, &error))?;
        let owner = metadata.uid();
        if !is_trusted(owner) {
            let kind = if metadata.is_symlink() { "link" } else { "folder" };
            let path = path.display();
            return Err(Error::new(format!(
                "The {kind} {path} belongs to another user (number {owner})."
            ))
            .with_hint("Act as that user (in a container with --user), make it yours with chown, or choose another one with --dir."));
        }
    }
    Ok(())
}

/// Makes a folder within a folder.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    let result = DirBuilder::new().mode(permissions(path) & 0o777).create(path);
    result.map_err(|error| io_error("make the folder", path, &error))
}

/// Replaces `path` so that a reader, even after a crash, finds the old or the new text, never a mixture.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let create = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(permissions(path) & 0o666)
        .open(&temporary);
    let written = create.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if let Err(error) = written {
        // Nothing can be done when even this fails; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        return Err(io_error("write", path, &error));
    }
    // The rename is durable only when the folder is; some file systems refuse that, harmlessly.
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::new(format!("{} can't be stored: {error}.", path.display())))?;
    text.push(b'\n');
    write_atomically(path, &text)
}

/// A file that grows by whole lines. After a failed write the file is cut back to its last whole
/// line, so that later lines are not glued to a torn one.
#[derive(Debug)]
pub(crate) struct LineFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl LineFile {
    /// Opens `path` for appending; a torn last line of an earlier process is cut off.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        let mut lines = LineFile::open_for_append(path)?;
        lines.cut_torn_line()?;
        Ok(lines)
    }

    /// Opens the file that one process at a time writes to; `None` when another one has claimed it. Nothing is
    /// cut off before: its writer may be in the middle of the last line.
    pub(crate) fn open_claimed(path: PathBuf) -> Result<Option<Self>, Error> {
        let mut lines = LineFile::open_for_append(path)?;
        if !lines.claim() {
            return Ok(None);
        }
        lines.cut_torn_line()?;
        Ok(Some(lines))
    }

    fn open_for_append(path: PathBuf) -> Result<Self, Error> {
        let mode = permissions(&path) & 0o666;
        match OpenOptions::new().create(true).append(true).mode(mode).open(&path) {
            Ok(file) => Ok(LineFile { path, file, length: 0 }),
            Err(error) => Err(io_error("write", &path, &error)),
        }
    }

    fn cut_torn_line(&mut self) -> Result<(), Error> {
        let path = &self.path;
        let metadata = self.file.metadata().map_err(|error| io_error("read", path, &error))?;
        if metadata.len() > 0 {
            let text = fs::read(path).map_err(|error| io_error("read", path, &error))?;
            self.length = whole_lines(&text).len() as u64;
            if self.length < metadata.len() {
                self.cut_to_length();
            }
        }
        Ok(())
    }

    /// Returns when what was appended is on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        sync_file(&self.path, &self.file)
    }

    /// Appends text that ends with a line end.
    pub(crate) fn append(&mut self, text: &[u8]) -> Result<(), Error> {
        match self.file.write_all(text) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.cut_to_length();
                Err(io_error("write", &self.path, &error))
            }
        }
    }

    fn cut_to_length(&self) {
        // A device can't be cut; then there is nothing to keep whole either.
        let _ = self.file.set_len(self.length);
    }

    /// Returns false if another process has claimed the file.
    fn claim(&self) -> bool {
        /// Readers that look for a writer hold the lock for microseconds.
        const RETRIES: u32 = 20;
        for attempt in 0..=RETRIES {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            // File systems without locks (some network mounts) must not keep anyone from measuring.
            if !matches!(self.file.try_lock(), Err(fs::TryLockError::WouldBlock)) {
                return true;
            }
        }
        false
    }
}

fn sync_file(path: &Path, file: &File) -> Result<(), Error> {
    match file.sync_all() {
        Ok(()) => Ok(()),
        // Pipes and some file systems have nothing that could be synced.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        Err(error) => Err(io_error("write", path, &error)),
    }
}

/// Has a file on the disk and says what it holds; `None` if there is none.
pub(crate) fn seal(path: &Path) -> Result<Option<FileSeal>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", path, &error)),
    };
    sync_file(path, &file)?;
    let hashed = compute_seal(file).map_err(|error| io_error("read", path, &error))?;
    Ok(Some(hashed))
}

/// Returns true if a file still holds what it held, or if there is none, which its name says.
pub(crate) fn is_sealed(path: &Path, seal: &FileSeal) -> bool {
    let Ok(file) = File::open(path) else { return true };
    let is_as_long = file.metadata().is_ok_and(|metadata| metadata.len() == seal.bytes);
    is_as_long && compute_seal(file).is_ok_and(|found| found == *seal)
}

fn compute_seal(mut file: File) -> io::Result<FileSeal> {
    let (mut sha256, mut bytes, mut part) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(FileSeal { bytes, sha256: dyno_core::hex(&sha256.finalize()) }),
            length => {
                sha256.update(&part[..length]);
                bytes += length as u64;
            }
        }
    }
}

pub(crate) fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    &text[..end]
}

/// The whole lines of a file, invalid UTF-8 replaced; `None` if it doesn't exist.
pub(crate) fn read_whole_lines(path: &Path) -> Result<Option<String>, Error> {
    match fs::read(path) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(whole_lines(&text)).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", path, &error)),
    }
}

/// An error of the run folder, with a remedy. `doing` completes the sentence "dyno can't ...", such as `write`.
pub(crate) fn io_error(doing: &str, path: &Path, error: &io::Error) -> Error {
    let failed = Error::new(format!("dyno can't {doing} {}: {error}.", path.display()));
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Free some space there, then give the same command again; what was measured so far is kept. `dyno paper last` writes \
             the papers of a complete run."
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "Make the folder writable for this user, or choose another folder for runs."
        }
        io::ErrorKind::NotFound => {
            "Look whether the folder still exists; `dyno ls` lists the runs."
        }
        io::ErrorKind::NotADirectory => {
            "A part of this path is a file; choose another folder for runs."
        }
        _ => return failed,
    };
    failed.with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_cut_off_before_the_next_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        fs::write(&path, "one\ntwo\nthr").expect("written");
        let mut lines = LineFile::open(path.clone()).expect("opened");
        lines.append(b"three\n").expect("appended");
        assert_eq!(fs::read_to_string(&path).expect("read"), "one\ntwo\nthree\n");
    }

    #[test]
    fn a_full_disk_is_one_error_with_path_and_remedy() {
        let full = Path::new("/dev/full");
        let mut lines = LineFile::open(full.to_path_buf()).expect("opened");
        let error = lines.append(b"line\n").expect_err("the disk is full");
        assert!(error.to_string().starts_with("dyno can't write /dev/full:"), "{error}");
        assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("space")), "{error:?}");
    }

    #[test]
    fn errors_that_the_user_can_remedy_have_hints() {
        let path = Path::new("a");
        let kinds = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::NotFound,
            io::ErrorKind::NotADirectory,
        ];
        let hints = kinds.map(|kind| io_error("write", path, &kind.into()).hint.expect("a remedy"));
        assert_eq!((&hints[0], &hints[2]), (&hints[1], &hints[3]));
        assert_eq!(std::collections::BTreeSet::from(hints).len(), 4);
        assert_eq!(io_error("write", path, &io::ErrorKind::Interrupted.into()).hint, None);
    }

    #[test]
    fn a_failed_replacement_keeps_the_old_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.json");
        write_atomically(&path, b"old").expect("written");
        // A folder where the temporary file should be makes the write fail, even for root.
        fs::create_dir(folder.path().join("run.json.tmp")).expect("created");
        let error = write_atomically(&path, b"new").expect_err("can't be written");
        assert!(error.to_string().contains("run.json"), "{error}");
        assert_eq!(fs::read(&path).expect("read"), b"old");
    }
}
