//! pgpool-II over a PostgreSQL primary and its standbys: reads of statements outside of transactions that wrote are
//! spread over the standbys, everything else goes to the primary.
//!
//! Prepared statements are slow through it: the primary parses each of them, too.

use super::{Options, primary_and_readers, software, within_reach, write_private};
use crate::folder::fits_socket;
use crate::{Account, Backend, ClusterError, Launch, Place, Result, programs};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Libraries that the package asks for; the system rarely has them.
const LIBRARIES: [&str; 3] = ["libpcp.so.2", "libmemcached.so.11", "libhashkit.so.2"];
/// What the names of pgpool's sockets take of a path, in bytes.
const SOCKET_NAME_BYTES: usize = 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    program: PathBuf,
    /// Libraries that stand beside it, for a program that isn't installed.
    libraries: Vec<PathBuf>,
}

impl Software {
    /// Finds pgpool in the given folder, in that of `DYNO_PGPOOL`, else where packages put it.
    pub fn find(options: &Options) -> Result<Self> {
        let Some(root) = software(options, "DYNO_PGPOOL") else {
            let program = programs::find(&["pgpool"]).ok_or_else(|| {
                ClusterError::new("pgpool-II is not installed.").with_hint(
                    "install the package pgpool2 (on Debian it starts a server of its own: `apt-get \
                     download pgpool2 libpgpool2 libmemcached11 libhashkit2` and `dpkg -x FILE \
                     FOLDER` unpack it, and --pgpool FOLDER uses it)",
                )
            })?;
            return Ok(Software { program, libraries: Vec::new() });
        };
        let program = ["usr/sbin/pgpool", "usr/bin/pgpool", "bin/pgpool", "pgpool"]
            .map(|path| root.join(path))
            .into_iter()
            .find(|program| program.is_file());
        let program = program.ok_or_else(|| {
            failed!("There is no pgpool in {}.", root.display())
                .with_hint("it is expected as usr/sbin/pgpool, as the package pgpool2 has it")
        })?;
        let folders = [programs::libraries(&root), root.join("usr/lib"), root.join("lib")];
        let beside = |name: &str| folders.iter().map(|f| f.join(name)).find(|file| file.is_file());
        Ok(Software { program, libraries: LIBRARIES.into_iter().filter_map(beside).collect() })
    }
}

/// Writes `pgpool.conf`, who may log in, and the password for the servers.
pub fn prepare(
    place: &Place,
    backends: &[Backend],
    account: &Account,
    options: &Options,
) -> Result<Launch> {
    let software = Software::find(options)?;
    fits_socket(&place.folder, SOCKET_NAME_BYTES)?;
    let conf = write_private(place, "pgpool.conf", &configuration(place, backends, options)?)?;
    let pcp = write_private(place, "pcp.conf", "")?;
    let hba = "host all all 127.0.0.1/32 scram-sha-256\n";
    let hba = write_private(place, "pool_hba.conf", hba)?;
    // In clear, because scram asks the servers for a proof that only the password itself can give.
    let password = format!("{}:TEXT{}\n", account.user, account.password);
    write_private(place, "pool_passwd", &password)?;
    let mut environment = Vec::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    for library in &software.libraries {
        if let Some(folder) = within_reach(place, library)?.parent()
            && !folders.iter().any(|known| known == folder)
        {
            folders.push(folder.to_owned());
        }
    }
    if !folders.is_empty() {
        let joined = folders.iter().map(|f| f.as_os_str()).collect::<Vec<_>>();
        environment.push(("LD_LIBRARY_PATH".to_owned(), joined.join(&OsString::from(":"))));
    }
    // What an earlier start remembers of nodes may be wrong by now.
    let mut arguments = vec![OsString::from("-n"), OsString::from("-D")];
    for (option, file) in [("-f", conf), ("-F", pcp), ("-a", hba)] {
        arguments.extend([option.into(), file.into()]);
    }
    Ok(Launch {
        program: within_reach(place, &software.program)?,
        arguments,
        environment,
        folder: place.folder.clone(),
        log: place.folder.join("pgpool.log"),
    })
}

fn configuration(place: &Place, backends: &[Backend], options: &Options) -> Result<String> {
    let (primary, readers) = primary_and_readers(backends)?;
    let (folder, port) = (place.folder.display(), place.port);
    let mut text = format!(
        "listen_addresses = '127.0.0.1'\n\
         port = {port}\n\
         socket_dir = '{folder}'\n\
         pcp_listen_addresses = ''\n\
         pcp_socket_dir = '{folder}'\n\
         logdir = '{folder}'\n\
         work_dir = '{folder}'\n\
         pid_file_name = '{folder}/pgpool.pid'\n\
         log_destination = 'stderr'\n\
         enable_pool_hba = on\n\
         pool_passwd = 'pool_passwd'\n\
         allow_clear_text_frontend_auth = off\n\
         num_init_children = {clients}\n\
         max_pool = 1\n\
         memory_cache_enabled = off\n\
         backend_clustering_mode = 'streaming_replication'\n\
         load_balance_mode = on\n\
         statement_level_load_balance = on\n\
         disable_load_balance_on_write = 'transaction'\n\
         sr_check_period = 0\n\
         health_check_period = 0\n",
        clients = options.clients_max.max(1),
    );
    // With standbys behind it the primary takes no reads.
    let primary_weight = u8::from(readers.clone().next().is_none());
    let primary = (primary, primary_weight, "ALWAYS_PRIMARY|DISALLOW_TO_FAILOVER");
    let readers = readers.map(|backend| (backend, 1, "DISALLOW_TO_FAILOVER"));
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
    use super::super::tests::{backends, place};
    use super::*;

    #[test]
    fn reads_go_to_standbys_and_to_a_primary_that_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let options = Options { clients_max: 20, ..Options::default() };
        let nodes = backends(&["read_only", "primary", "read_only"]);
        let text = configuration(&place, &nodes, &options).unwrap();
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
        let alone = configuration(&place, &backends(&["primary"]), &options).unwrap();
        assert!(alone.contains("backend_weight0 = 1"), "{alone}");
        assert!(configuration(&place, &backends(&["read_only"]), &options).is_err());
    }

    #[test]
    fn a_folder_without_pgpool_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let software = Some(folder.path().to_owned());
        let error = Software::find(&Options { software, ..Options::default() }).unwrap_err();
        assert!(error.message.contains(&folder.path().display().to_string()), "{error}");
        assert!(error.hint.unwrap().contains("usr/sbin/pgpool"));
    }
}
