//! pgpool-II over a PostgreSQL primary and its standbys: spreads reads outside of transactions that wrote over the
//! standbys. The primary parses each prepared statement, too.

use super::{EndpointOptions, Front, software};
use crate::folder::fits_socket;
use crate::process::Launch;
use crate::{ClusterError, Result, machine};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Libraries of the package that systems rarely have.
const LIBRARIES: [&str; 3] = ["libpcp.so.2", "libmemcached.so.11", "libhashkit.so.2"];
/// Length of the names of pgpool's sockets, in bytes.
const SOCKET_NAME_BYTES: usize = 15;

#[derive(Debug)]
pub(super) struct PgpoolSoftware {
    program: PathBuf,
    /// Libraries alongside a program that isn't installed.
    libraries: Vec<PathBuf>,
}

impl PgpoolSoftware {
    /// Searches the given folder, that of `DYNO_PGPOOL`, or the places of packages.
    pub(super) fn find(options: &EndpointOptions) -> Result<Self> {
        let Some(root) = software(options, "DYNO_PGPOOL") else {
            let program = machine::find(&["pgpool"]).ok_or_else(|| {
                ClusterError::new("pgpool-II is not installed.").with_hint(
                    "install the package pgpool2 (on Debian it starts a server by itself: `apt-get \
                     download pgpool2 libpgpool2 libmemcached11 libhashkit2` and `dpkg -x FILE \
                     FOLDER` unpack it, and --pgpool FOLDER uses it)",
                )
            })?;
            return Ok(PgpoolSoftware { program, libraries: Vec::new() });
        };
        let program = ["usr/sbin/pgpool", "usr/bin/pgpool", "bin/pgpool", "pgpool"]
            .map(|path| root.join(path))
            .into_iter()
            .find(|program| program.is_file());
        let program = program.ok_or_else(|| {
            failed!("There is no pgpool in {}.", root.display())
                .with_hint("it is expected as usr/sbin/pgpool, as the package pgpool2 has it")
        })?;
        let folders = [machine::libraries(&root), root.join("usr/lib"), root.join("lib")];
        let libraries = LIBRARIES.into_iter().filter_map(|name| {
            folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file())
        });
        Ok(PgpoolSoftware { program, libraries: libraries.collect() })
    }
}

/// Writes the configuration and the password; returns how pgpool is started.
pub(super) fn prepare(front: &Front<'_>) -> Result<Launch> {
    let software = PgpoolSoftware::find(&front.options)?;
    fits_socket(&front.node.folder, SOCKET_NAME_BYTES)?;
    let conf = front.write_private("pgpool.conf", &configuration_text(front)?)?;
    let pcp = front.write_private("pcp.conf", "")?;
    let hba = "host all all 127.0.0.1/32 scram-sha-256\n";
    let hba = front.write_private("pool_hba.conf", hba)?;
    // In clear, because scram asks the servers for a proof that only the password itself can give.
    let password = format!("{}:TEXT{}\n", front.account.user, front.account.password);
    front.write_private("pool_passwd", &password)?;
    let mut folders: Vec<PathBuf> = Vec::new();
    for library in &software.libraries {
        folders.extend(front.within_reach(library)?.parent().map(PathBuf::from));
    }
    folders.dedup();
    // What an earlier start remembers of nodes may be wrong by now.
    let mut arguments = vec![OsString::from("-n"), OsString::from("-D")];
    for (option, file) in [("-f", conf), ("-F", pcp), ("-a", hba)] {
        arguments.extend([option.into(), file.into()]);
    }
    let mut launch = front.node.launch(front.within_reach(&software.program)?, arguments);
    if !folders.is_empty() {
        let path = folders.iter().map(|folder| folder.as_os_str()).collect::<Vec<_>>();
        launch.environment.push(("LD_LIBRARY_PATH".to_owned(), path.join(&OsString::from(":"))));
    }
    Ok(launch)
}

fn configuration_text(front: &Front<'_>) -> Result<String> {
    let primary = front.need_primary()?;
    let mut text = format!(
        include_str!("pgpool.conf"),
        folder = front.node.folder.display(),
        port = front.node.port,
        clients = front.options.clients_max.max(1),
    );
    // With standbys behind it the primary takes no reads.
    let primary_weight = u8::from(front.with_role("read_only").next().is_none());
    let primary = (primary, primary_weight, "ALWAYS_PRIMARY|DISALLOW_TO_FAILOVER");
    let readers = front.with_role("read_only").map(|node| (node, 1, "DISALLOW_TO_FAILOVER"));

    for (number, (backend, weight, flag)) in std::iter::once(primary).chain(readers).enumerate() {
        // Writing into a String can't fail.
        let _ = write!(
            text,
            "backend_hostname{number} = '127.0.0.1'\n\
             backend_port{number} = {}\n\
             backend_weight{number} = {weight}\n\
             backend_flag{number} = '{flag}'\n\
             backend_application_name{number} = '{}'\n",
            backend.port, backend.name
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{front, nodes};
    use super::*;

    #[test]
    fn reads_go_to_standbys_and_to_a_primary_that_is_alone() {
        fn configuration_for(roles: &[&str]) -> Result<String> {
            let nodes = nodes("".as_ref(), roles);
            let options = EndpointOptions { clients_max: 20, ..EndpointOptions::default() };
            configuration_text(&Front { options, ..front(&nodes) })
        }
        let text = configuration_for(&["read_only", "primary", "read_only"]).unwrap();
        for line in [
            "listen_addresses = '127.0.0.1'",
            "port = 5499",
            "num_init_children = 20",
            "backend_port0 = 5402",
            "backend_weight0 = 0",
            "backend_flag0 = 'ALWAYS_PRIMARY|DISALLOW_TO_FAILOVER'",
            "backend_port1 = 5401",
            "backend_weight1 = 1",
            "backend_port2 = 5403",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        let alone = configuration_for(&["primary"]).unwrap();
        assert!(alone.contains("backend_weight0 = 1"), "{alone}");
        assert!(configuration_for(&["read_only"]).is_err());
    }

    #[test]
    fn a_folder_without_pgpool_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let software = Some(folder.path().to_owned());
        let error =
            PgpoolSoftware::find(&EndpointOptions { software, ..EndpointOptions::default() })
                .unwrap_err();
        assert!(error.message.contains(&folder.path().display().to_string()), "{error}");
        assert!(error.hint.unwrap().contains("usr/sbin/pgpool"));
    }
}
