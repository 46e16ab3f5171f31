//! Programs of servers, and the user who runs them.

use crate::Result;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Places of servers that packages keep off the path of users.
const SERVER_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin"];
const NOBODY: (u32, u32) = (65_534, 65_534);

/// The first of these names on the path or in the usual places.
pub(crate) fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain(SERVER_FOLDERS.map(PathBuf::from)).collect();
    let found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    found.into_iter().find(|path| path.is_file())
}

/// As [`find`], or an error that names the package.
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

/// The newest folder of PostgreSQL's programs in which all of these are.
pub(crate) fn postgres_folder(names: &[&str]) -> Result<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let mut folders: Vec<PathBuf> = versions.into_iter().rev().map(|entry| entry.1).collect();
    // A version on the path was put there on purpose.
    let on_path = find(&["initdb"]).and_then(|path| path.canonicalize().ok());
    folders.splice(0..0, on_path.as_deref().and_then(Path::parent).map(Path::to_owned));
    folders.extend(["/usr/pgsql/bin", "/usr/local/pgsql/bin"].map(PathBuf::from));
    let has_all = |folder: &PathBuf| names.iter().all(|name| folder.join(name).is_file());
    folders.into_iter().find(has_all).ok_or_else(|| {
        failed!("PostgreSQL's programs {} are not installed.", names.join(", "))
            .with_hint("install them: postgresql-15 (Debian 12), or postgresql of a later release")
    })
}

fn account(name: &str) -> Option<(u32, u32)> {
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
    Some(names.iter().find_map(|name| account(name)).unwrap_or(NOBODY))
}
