//! What stands in front of the nodes of a cluster: one address for all of them.
//!
//! Each endpoint is prepared in its folder (configuration, passwords in files that only its user can read) and
//! started by whoever manages the cluster. It is prepared anew whenever roles change. Nothing is downloaded: what
//! isn't on this machine is named with the way to get it.

pub mod pgpool;
pub mod router;
pub mod shardingsphere;

use crate::folder::{self, failed, give};
use crate::{Account, Backend, ClusterError, EndpointKind, Launch, Place, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// What can be said about an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// A folder that holds the program, unpacked; without it the program is looked for on this machine.
    pub software: Option<PathBuf>,
    /// Client connections that it takes at once.
    pub clients_max: u32,
    /// Tables of sysbench that a sharded cluster spreads, `sbtest1` to this number.
    pub sysbench_tables: u32,
    /// Whether the endpoint may listen on all addresses of this machine if it can't be told otherwise.
    pub allow_any_address: bool,
    /// The account that Router reads its metadata with, [`router::USER`]; its password. Other endpoints don't need it.
    #[serde(skip)]
    pub metadata_password: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            software: None,
            clients_max: 128,
            sysbench_tables: 256,
            allow_any_address: false,
            metadata_password: String::new(),
        }
    }
}

/// Whether the endpoint's program is here; asked before anything is started.
pub fn check(kind: EndpointKind, options: &Options) -> Result<()> {
    match kind {
        EndpointKind::Pgpool => pgpool::Software::find(options).map(drop),
        EndpointKind::Shardingsphere => shardingsphere::Software::find(options).map(drop),
        EndpointKind::Router => router::Software::find(options).map(drop),
    }
}

/// Writes an endpoint's configuration into its folder, and says how it is started. The backends are those of the
/// moment: a primary and read-only nodes, or shards.
pub fn prepare(
    kind: EndpointKind,
    place: &Place,
    backends: &[Backend],
    account: &Account,
    options: &Options,
) -> Result<Launch> {
    let spoils = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    if account.password.is_empty() || account.password.contains(spoils) {
        // Every endpoint has its own rules of quoting; those of dyno's clusters need none.
        return Err(ClusterError::new(
            "The password of a cluster's account must consist of letters and digits.",
        ));
    }
    match kind {
        EndpointKind::Pgpool => pgpool::prepare(place, backends, account, options),
        EndpointKind::Shardingsphere => shardingsphere::prepare(place, backends, account, options),
        EndpointKind::Router => router::prepare(place, backends, account, options),
    }
}

fn primary_and_readers(
    backends: &[Backend],
) -> Result<(&Backend, impl Iterator<Item = &Backend> + Clone)> {
    let primary = backends.iter().find(|backend| backend.role == "primary");
    let primary =
        primary.ok_or_else(|| ClusterError::new("An endpoint needs a primary behind it."))?;
    Ok((primary, backends.iter().filter(|backend| backend.role == "read_only")))
}

/// Writes a file that only the endpoint's user can read: it may hold a password.
fn write_private(place: &Place, name: &str, text: &str) -> Result<PathBuf> {
    let path = place.folder.join(name);
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        let made = fs::create_dir(folder).and_then(|()| hand_over(place, folder));
        made.map_err(|error| failed("made", folder, &error))?;
    }
    folder::write_private(&path, text, place.run_as)?;
    Ok(path)
}

fn hand_over(place: &Place, path: &Path) -> std::io::Result<()> {
    give(path, place.run_as)
}

/// The file itself where the endpoint's user can get to it, else a copy in the endpoint's folder: software unpacked in
/// the home of root serves a cluster that doesn't run as root, too.
fn within_reach(place: &Place, file: &Path) -> Result<PathBuf> {
    if is_within_reach(place, file) {
        return Ok(file.to_owned());
    }
    let folder = place.folder.join("software");
    let name = file.file_name().unwrap_or_default();
    let copy = folder.join(name);
    let make = || {
        fs::create_dir_all(&folder)?;
        hand_over(place, &folder)?;
        fs::copy(file, &copy)?;
        hand_over(place, &copy)
    };
    make().map_err(|error| failed("written", &copy, &error))?;
    Ok(copy)
}

fn is_within_reach(place: &Place, file: &Path) -> bool {
    let Some((user, group)) = place.run_as else { return true };
    let Ok(file) = file.canonicalize() else { return false };
    let may = |path: &Path, right: u32| {
        fs::metadata(path).is_ok_and(|metadata| folder::may(&metadata, user, group, right))
    };
    may(&file, 4) && file.ancestors().skip(1).all(|folder| may(folder, 1))
}

/// The folder that was asked for, or that a variable of the environment names.
fn software(options: &Options, variable: &str) -> Option<PathBuf> {
    let named = || std::env::var_os(variable).filter(|value| !value.is_empty());
    options.software.clone().or_else(|| named().map(PathBuf::from))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    pub(crate) fn account() -> Account {
        Account { user: "dyno".into(), password: "s3cret".into(), database: "dyno".into() }
    }

    pub(crate) fn backends(roles: &[&str]) -> Vec<Backend> {
        let backend = |(number, role): (u16, &&str)| Backend {
            name: format!("n{number}"),
            role: (*role).to_owned(),
            port: 5400 + number,
        };
        (1..).zip(roles).map(backend).collect()
    }

    pub(crate) fn place(folder: &Path) -> Place {
        Place { folder: folder.to_owned(), port: 5499, run_as: None }
    }

    #[test]
    fn files_with_passwords_are_their_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = write_private(&place(folder.path()), "conf/a", "text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(path).unwrap(), "text");
    }

    #[test]
    fn a_password_that_would_need_quotes_is_refused_without_being_shown() {
        let folder = tempfile::tempdir().unwrap();
        let account = Account { password: "it's: {x}".into(), ..account() };
        let error = prepare(
            EndpointKind::Pgpool,
            &place(folder.path()),
            &backends(&["primary"]),
            &account,
            &Options::default(),
        )
        .unwrap_err();
        assert!(error.message.contains("letters and digits"), "{error}");
        assert!(!error.message.contains("it's"), "{error}");
    }

    #[test]
    fn software_in_a_private_folder_is_out_of_reach_and_copied() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let file = folder.path().join("x.jar");
        fs::write(&file, "jar").unwrap();
        let own = place(folder.path());
        assert_eq!(within_reach(&own, &file).unwrap(), file);
        // A number of nobody: it has no rights in a private folder.
        let other = Place { run_as: Some((4_000_000, 4_000_000)), ..own };
        assert!(!is_within_reach(&other, &file));
        if rustix::process::geteuid().is_root() {
            let copy = within_reach(&other, &file).unwrap();
            assert_eq!(fs::read_to_string(&copy).unwrap(), "jar");
            assert_eq!(fs::metadata(&copy).unwrap().uid(), 4_000_000);
        }
    }
}
