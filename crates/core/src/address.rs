//! Where servers listen.

use std::fmt;
use std::path::PathBuf;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host name or IP address (IPv6 without brackets), and a port.
    Tcp {
        /// Host name or IP address.
        host: String,
        /// TCP port, 1 to 65535.
        port: u16,
    },
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The name that the server's certificate must carry: the host, or `localhost` behind a unix
    /// socket.
    pub fn tls_name(&self) -> &str {
        match self {
            Address::Tcp { host, .. } => host,
            Address::Unix(_) => "localhost",
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
