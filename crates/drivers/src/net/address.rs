//! Name resolution before the first connection.

use dyno_core::{Address, DbError, DbResult};
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(pub Vec<Address>);

impl Hosts {
    /// Looks up all host names. Blocks, so drivers call it once.
    pub fn resolve(&self) -> DbResult<ResolvedHosts> {
        if self.0.is_empty() {
            return Err(DbError::unreachable("The target has no host."));
        }
        let hosts = self.0.iter().cloned().map(Resolved::new).collect::<Result<_, _>>()?;
        Ok(ResolvedHosts(hosts))
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Address::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

/// Addresses with their IP addresses; never empty.
#[derive(Clone, Debug)]
pub struct ResolvedHosts(Vec<Resolved>);

impl ResolvedHosts {
    /// The host of connection `number`: connections rotate over the hosts.
    pub fn pick(&self, number: u32) -> &Resolved {
        &self.0[number as usize % self.0.len()]
    }

    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

#[derive(Clone, Debug)]
pub struct Resolved {
    address: Address,
    sockets: Vec<SocketAddr>,
}

impl Resolved {
    fn new(address: Address) -> DbResult<Self> {
        let sockets = match &address {
            Address::Unix(_) => Vec::new(),
            Address::Tcp { host, port } => look_up(host, *port)?,
        };
        Ok(Resolved { address, sockets })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Empty for a unix socket.
    pub(super) fn sockets(&self) -> &[SocketAddr] {
        &self.sockets
    }
}

fn look_up(host: &str, port: u16) -> DbResult<Vec<SocketAddr>> {
    let failed = |why: String| {
        DbError::unreachable(format!("The host name {host} could not be looked up: {why}."))
            .with_hint("check the spelling of the host in the URL")
    };
    let mut found: Vec<SocketAddr> = Vec::new();
    for socket in (host, port).to_socket_addrs().map_err(|error| failed(error.to_string()))? {
        if !found.contains(&socket) {
            found.push(socket);
        }
    }
    if found.is_empty() { Err(failed("it has no address".to_owned())) } else { Ok(found) }
}
