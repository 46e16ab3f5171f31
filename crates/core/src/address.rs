//! Addresses of servers.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// IPv6 without brackets. The port is 1 to 65535.
    Tcp { host: String, port: u16 },
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The name in the server's certificate: the host, or `localhost` behind a unix socket.
    pub fn tls_name(&self) -> &str {
        match self {
            Address::Tcp { host, .. } => host,
            Address::Unix(_) => "localhost",
        }
    }

    /// True when it is surely on this machine; the machine's own address in a network is not recognized.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
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
