//! Where the processes of a server are found.

use dyno_core::Address;
use dyno_drivers::target::TargetUrl;
use dyno_facts::TargetNode;
use dyno_observe::ServerProcess;
use dyno_topology::Cluster;
use std::path::{Path, PathBuf};

/// Where the processes of a node are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerPlace {
    /// On another machine, in this process, or behind several addresses.
    Unknown,
    Listening(Address),
    /// A node of a cluster of `dyno cluster`, perhaps in a network of its own.
    Cluster {
        folder: PathBuf,
        node: String,
    },
}

impl ServerPlace {
    pub(crate) fn of(target: &TargetUrl) -> Self {
        match target.hosts.0.as_slice() {
            [only] if !target.is_embedded() && only.is_local() => {
                ServerPlace::Listening(only.clone())
            }
            _ => ServerPlace::Unknown,
        }
    }

    pub(crate) fn of_node(node: &TargetNode, target: &TargetUrl) -> Self {
        match &node.cluster {
            Some(folder) => ServerPlace::Cluster { folder: folder.into(), node: node.name.clone() },
            None => ServerPlace::of(target),
        }
    }

    /// A server may have been started anew since the last trial.
    pub(crate) fn process(&self) -> Option<ServerProcess> {
        match self {
            ServerPlace::Unknown => None,
            ServerPlace::Listening(address) => ServerProcess::listening(address),
            ServerPlace::Cluster { folder, node } => of_cluster(folder, node),
        }
    }
}

fn of_cluster(folder: &Path, node: &str) -> Option<ServerProcess> {
    let pid = Cluster::open(folder).ok()?.node(node).ok()?.pid;
    (pid > 0).then(|| ServerProcess::numbered(pid))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_servers_are_on_this_machine() {
        let of = |url: &str| ServerPlace::of(&url.parse().expect("a URL"));
        let at =
            |host: &str| ServerPlace::Listening(Address::Tcp { host: host.to_owned(), port: 3306 });
        assert_eq!(of("mysql://localhost/x"), at("localhost"));
        assert_eq!(of("mysql://127.0.0.1/x"), at("127.0.0.1"));
        assert_eq!(of("mysql://db.example.org/x"), ServerPlace::Unknown);
        assert_eq!(of("mysql://127.0.0.1,127.0.0.2/x"), ServerPlace::Unknown);
        assert_eq!(of("sqlite:x.db"), ServerPlace::Unknown);
        assert_eq!(
            of("postgres://?host=/run/postgresql"),
            ServerPlace::Listening(Address::Unix("/run/postgresql/.s.PGSQL.5432".into()))
        );
    }
}
