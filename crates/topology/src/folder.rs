//! The folder of a cluster: `cluster.json`, the passwords, a lock.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::{fs, io};

use dyno_core::Context as _;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

use crate::process::{Launch, Process};
use crate::{ClusterError, Replication, Result, endpoint, guarded, machine};

/// Longest path of a unix socket that the system takes, in bytes.
const SOCKET_PATH_MAX: usize = 107;
const STATE: &str = "cluster.json";
const LOCK: &str = "lock";
const PASSWORD: &str = "password";
const SECRETS: &str = "secrets.json";

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Secrets {
    pub(crate) admin: String,
    pub(crate) replication: String,
    /// Password of the account by which MySQL Router reads its metadata.
    pub(crate) metadata: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// Names the file or folder that something could not be done with.
pub(crate) trait OrFailed<T> {
    fn or_failed(self, participle: &str, path: &Path) -> Result<T>;
}

impl<T> OrFailed<T> for io::Result<T> {
    fn or_failed(self, participle: &str, path: &Path) -> Result<T> {
        self.context(format_args!("{} can't be {participle}", path.display()))
    }
}

fn copied_error(folder: &Folder, home: &Home) -> ClusterError {
    let (copy, home) = (folder.0.display(), home.path.display());
    failed!(
        "{copy} is a copy of the cluster in {home}: whatever was done here would be done to its servers."
    )
    .with_hint(format!("--dir {home} names the cluster; the copy has no servers and can be deleted"))
}

/// Checks the owner of a folder: another user could replace files written into it, and decides what is in it.
fn check_owner(path: &Path) -> Result<()> {
    let owner = fs::metadata(path).or_failed("read", path)?.uid();
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(failed!("{} belongs to another user (number {owner}).", path.display())
        .with_hint("act as that user, or name your own folder with --dir"))
}

/// Random text of 2 x `bytes` hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String> {
    let mut buffer = vec![0; bytes];
    let got = getrandom(&mut buffer[..], GetRandomFlags::empty())
        .context("The kernel gives no random bytes")?;
    if got < bytes {
        return Err(ClusterError::new("The kernel gives too few random bytes."));
    }
    Ok(dyno_core::hex(&buffer))
}

#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that another thread is just starting has a copy of the
        // descriptor until it executes its program, and the lock would live as long.
        let _ = self.0.unlock();
    }
}

impl Folder {
    /// Makes an empty folder for a cluster, or takes one that is there.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).or_failed("made", path)?;
        let path = path.canonicalize().or_failed("found", path)?;
        check_owner(&path)?;
        let entries = fs::read_dir(&path).or_failed("read", &path)?;
        // An `up` that was killed early leaves only the lock.
        let mut other_entries =
            entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name() != LOCK));
        if path.join(STATE).is_file() {
            let show = path.display();
            return Err(failed!("{show} holds a cluster already.").with_hint(format!(
                "`dyno cluster down --dir {show}` takes it down; --dir names another folder"
            )));
        }
        if other_entries.next().is_some() {
            return Err(failed!("{} is not empty.", path.display())
                .with_hint("--dir names another folder; `down` will remove it with all it holds"));
        }
        // The servers' user has to get through to the folders of the nodes.
        fs::set_permissions(&path, Permissions::from_mode(0o755))
            .or_failed("opened to the servers' user", &path)?;
        Ok(Folder(path))
    }

    /// Opens the folder of a cluster and reads its state.
    pub(crate) fn open(path: &Path) -> Result<(Self, State)> {
        let file = path.join(STATE);
        let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failed!("There is no cluster in {}.", path.display())
                .with_hint(
                    "`dyno cluster up` makes one; --dir names the folder of one that exists",
                ),
            _ => failed!("{} can't be read: {error}.", file.display()),
        })?;
        check_owner(path)?;
        let mut state: State = serde_json::from_str(&text).map_err(|error| {
            failed!("{} can't be understood: {error}.", file.display())
                .with_hint("it was changed by hand, or made by another version of dyno")
        })?;
        if state.format > FORMAT {
            return Err(failed!(
                "{} was made by a newer dyno (format {}, this one reads up to {FORMAT}).",
                file.display(),
                state.format
            )
            .with_hint("use the dyno that made it"));
        }
        state.forget_earlier_boots(&machine::boot_id());
        let path = path.canonicalize().or_failed("found", path)?;
        let folder = Folder(path);
        match &state.home {
            Some(home) if !folder.is(home)? => Err(copied_error(&folder, home)),
            _ => Ok((folder, state)),
        }
    }

    /// Identifies this folder: a copy differs.
    pub(crate) fn home(&self) -> Result<Home> {
        let metadata = fs::metadata(&self.0).or_failed("read", &self.0)?;
        Ok(Home { path: self.0.clone(), device: metadata.dev(), inode: metadata.ino() })
    }

    /// Returns true for the folder itself, also after it was moved; numbers of file systems may change when the machine
    /// starts.
    fn is(&self, home: &Home) -> Result<bool> {
        let current = self.home()?;
        Ok(current.path == home.path
            || (current.device, current.inode) == (home.device, home.inode))
    }

    /// Its absolute path without links.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Takes the lock of all changes; fails at once if another process has it.
    pub(crate) fn lock(&self) -> Result<FolderLock> {
        let path = self.0.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .or_failed("opened", &path)?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock(file)),
            Err(TryLockError::WouldBlock) => Err(failed!(
                "Another dyno is just making or changing the cluster in {}.",
                self.0.display()
            )
            .with_hint("wait for it, or stop it with Ctrl-C")),
            Err(TryLockError::Error(error)) => Err(error).or_failed("locked", &path),
        }
    }

    /// Replaces `cluster.json` at once, so that it can be read at any moment.
    pub(crate) fn save(&self, state: &State) -> Result<()> {
        let path = self.0.join(STATE);
        let mut text =
            serde_json::to_string_pretty(state).context("The cluster has no text form")?;
        text.push('\n');
        self.replace_file(&path, &text).or_failed("written", &path)
    }

    fn replace_file(&self, path: &Path, text: &str) -> io::Result<()> {
        let new = self.0.join("cluster.json.new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The rename is durable only when the folder is; some file systems refuse that, harmlessly.
        let _ = File::open(&self.0).map(|folder| folder.sync_all());
        Ok(())
    }

    /// Makes passwords, or copies those of another folder.
    pub(crate) fn make_secrets(&self, source: Option<&Folder>) -> Result<Secrets> {
        if let Some(source) = source {
            for name in [SECRETS, PASSWORD] {
                let text = fs::read_to_string(source.0.join(name)).or_failed("read", &source.0)?;
                write_private(&self.0.join(name), &text, None)?;
            }
            return self.secrets();
        }
        let secrets = Secrets {
            admin: random_hex(16)?,
            replication: random_hex(16)?,
            metadata: random_hex(16)?,
        };
        let text = serde_json::to_string(&secrets).context("Passwords have no text form")?;
        write_private(&self.0.join(SECRETS), &text, None)?;
        write_private(&self.0.join(PASSWORD), &format!("{}\n", random_hex(16)?), None)?;
        Ok(secrets)
    }

    /// The passwords of dyno's own accounts.
    pub(crate) fn secrets(&self) -> Result<Secrets> {
        let path = self.0.join(SECRETS);
        let text = fs::read_to_string(&path).or_failed("read", &path)?;
        // The text is not repeated in the error: it holds passwords.
        serde_json::from_str(&text).map_err(|_| failed!("{} can't be understood.", path.display()))
    }

    /// The password of the load's account.
    pub(crate) fn password(&self) -> Result<String> {
        let path = self.0.join(PASSWORD);
        Ok(fs::read_to_string(&path).or_failed("read", &path)?.trim().to_owned())
    }

    /// Makes a folder inside that only the servers' user can read.
    pub(crate) fn make_inside(&self, name: &str, owner: Option<(u32, u32)>) -> Result<()> {
        let path = self.0.join(name);
        let result =
            DirBuilder::new().mode(0o700).create(&path).and_then(|()| set_owner(&path, owner));
        result.or_failed("made", &path)
    }

    /// Fails when the servers' user can't get through to the folder.
    pub(crate) fn check_reach(&self, owner: Option<(u32, u32)>) -> Result<()> {
        let Some((user, group)) = owner else { return Ok(()) };
        for ancestor in self.0.ancestors() {
            let metadata = fs::metadata(ancestor).or_failed("read", ancestor)?;
            if !may(&metadata, user, group, 1) {
                let show = ancestor.display();
                return Err(failed!(
                    "The servers don't run as root, and their user can't get through {show}."
                )
                .with_hint(
                    "--dir names a folder that everybody can reach, such as one below /var/tmp",
                ));
            }
        }
        Ok(())
    }

    /// Deletes the folder with all it holds.
    pub(crate) fn remove(&self) -> Result<()> {
        let mut last = Ok(());
        // Servers killed a moment ago may still have been writing.
        for _ in 0..3 {
            // `cluster.json` goes last: what is left after a crash must be found by the next `down`.
            last = self.remove_all_but_state().and_then(|()| fs::remove_dir_all(&self.0));
            if last.is_ok() {
                return Ok(());
            }
        }
        last.or_failed("removed", &self.0)
    }

    fn remove_all_but_state(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else if entry.file_name() != STATE {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Returns true if a user has a right (read 4, write 2, pass 1) to what has this metadata.
pub(crate) fn may(metadata: &Metadata, user: u32, group: u32, right: u32) -> bool {
    let shift = match (metadata.uid() == user, metadata.gid() == group) {
        (true, _) => 6,
        (_, true) => 3,
        _ => 0,
    };
    metadata.mode() >> shift & right == right
}

/// Fails where a unix socket of `bytes` bytes below a folder has too long a path.
pub(crate) fn fits_socket(path: &Path, bytes: usize) -> Result<()> {
    if path.as_os_str().len() + bytes <= SOCKET_PATH_MAX {
        return Ok(());
    }
    Err(failed!("The path {} is too long for a unix socket.", path.display())
        .with_hint("--dir names a folder with a shorter path"))
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str, owner: Option<(u32, u32)>) -> Result<()> {
    guarded::copy(&mut text.as_bytes(), path, 0o600, owner).or_failed("written", path)
}

/// Writes a file that the servers' user can read.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    guarded::copy(&mut text.as_bytes(), path, 0o644, None).or_failed("written", path)
}

/// Gives a file or folder to the user of the servers, if there is one.
pub(crate) fn set_owner(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    match owner {
        Some((user, group)) => lchown(path, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// The version of `cluster.json` that this program writes, the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TopologyKind {
        /// MariaDB: a primary and read-only nodes.
        Mariadb = "mariadb",
        /// MySQL: a primary and read-only nodes.
        Mysql = "mysql",
        /// PostgreSQL: a primary and streaming standbys.
        Postgres = "postgres",
        /// A stateless SQL layer over MariaDB nodes that hold a part of the data each.
        Sharded = "sharded",
        /// PostgreSQL nodes that hold a part of the data each, behind another one that reaches them by postgres_fdw.
        ShardedPostgres = "sharded-postgres",
    }
}

impl TopologyKind {
    /// Returns true if each node holds a part of the data.
    pub fn is_sharded(self) -> bool {
        matches!(self, TopologyKind::Sharded | TopologyKind::ShardedPostgres)
    }
}

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum NodeProduct {
        Mariadb = "MariaDB",
        Mysql = "MySQL",
        Postgres = "PostgreSQL",
        Pgpool = "pgpool-II",
        Shardingsphere = "ShardingSphere-Proxy",
        Router = "MySQL Router",
    }
}

impl NodeProduct {
    /// Returns true if it holds data: a proxy doesn't.
    pub(crate) fn is_server(self) -> bool {
        matches!(self, NodeProduct::Mariadb | NodeProduct::Mysql | NodeProduct::Postgres)
    }

    /// The scheme of its URLs, by its protocol.
    pub fn scheme(self) -> &'static str {
        match self {
            NodeProduct::Postgres | NodeProduct::Pgpool => "postgres",
            _ => "mysql",
        }
    }
}

/// The load's account. The password is made for each cluster and kept in a file that only its owner can read.
#[derive(Clone)]
pub struct Account {
    pub user: String,
    pub password: String,
    pub database: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateNode {
    pub name: String,
    pub product: NodeProduct,
    /// `primary`, `read_only`, `endpoint` or `shard`; changes when a read-only node is promoted.
    pub role: String,
    /// 127.0.0.1, or the address in its own network namespace.
    pub host: String,
    pub port: u16,
    pub folder: PathBuf,
    /// Its process; 0 when it was stopped.
    pub pid: u32,
    /// Start of that process, in clock ticks after the start of the system: identifies it alongside its number.
    pub pid_started_ticks: u64,
}

impl StateNode {
    /// Its process, as it was started last.
    pub(crate) fn process(&self) -> Process {
        Process { pid: self.pid, started_ticks: self.pid_started_ticks }
    }

    /// The data folder of its server.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The file that its output goes to.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// A program in the node's folder, whose output goes to the node's log.
    pub(crate) fn launch(&self, program: PathBuf, arguments: Vec<OsString>) -> Launch {
        let (folder, log) = (self.folder.clone(), self.log());
        Launch { program, arguments, environment: Vec::new(), folder, log }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    pub path: PathBuf,
    pub device: u64,
    /// Its number there, which a moved folder keeps.
    pub inode: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub format: u32,
    /// Random: the mark by which its processes are known.
    pub id: String,
    /// The start of the machine that its processes belong to.
    pub boot_id: String,
    /// The place where it was made: a copy of that folder is not a cluster.
    pub home: Option<Home>,
    pub topology: TopologyKind,
    pub replication: Replication,
    pub endpoint: Option<NodeProduct>,
    pub user: String,
    pub database: String,
    /// User and group of the servers, where root made the cluster.
    pub run_as: Option<(u32, u32)>,
    /// Set if each node has its own network namespace.
    pub isolated: bool,
    /// The folder of the programs that the request named.
    pub software: Option<PathBuf>,
    /// Memory for the cache of one server, MiB.
    pub cache_mib: u64,
    /// True once all nodes were ready; before, it can only be taken down.
    pub is_ready: bool,
    pub endpoint_options: endpoint::EndpointOptions,
    /// Settings of the servers alongside those of the template.
    pub settings: Vec<(String, String)>,
    /// All nodes, the primary first, the endpoint last.
    pub nodes: Vec<StateNode>,
}

impl State {
    /// Processes of an earlier start of the machine are gone, whoever has their numbers now.
    pub(crate) fn forget_earlier_boots(&mut self, now: &str) {
        if self.boot_id != now {
            for node in &mut self.nodes {
                (node.pid, node.pid_started_ticks) = (0, 0);
            }
            now.clone_into(&mut self.boot_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_although_somebody_has_a_copy_of_its_descriptor() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::create(&parent.path().join("c")).unwrap();
        let lock = folder.lock().unwrap();
        let _copy = lock.0.try_clone().unwrap();
        assert!(folder.lock().is_err(), "held");
        drop(lock);
        assert!(folder.lock().is_ok(), "released");
    }

    #[test]
    fn the_folder_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("c");
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
        let error = Folder::create(&path).unwrap_err();
        assert!(error.message.contains("belongs to another user (number 65534)"), "{error}");
        fs::write(path.join(STATE), "{}").unwrap();
        let error = Folder::open(&path).unwrap_err();
        assert!(error.message.contains("belongs to another user"), "{error}");
    }

    #[test]
    fn only_an_empty_folder_becomes_a_cluster() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("c");
        Folder::create(&path).unwrap().lock().unwrap();
        assert!(Folder::create(&path).is_ok(), "an `up` was killed before it had begun");
        fs::write(path.join("mine"), "").unwrap();
        let error = Folder::create(&path).unwrap_err();
        assert!(error.message.ends_with("is not empty."), "{error}");
    }
}
