//! Addresses, sockets, TLS and receive buffers: everything below the protocols.
//!
//! A driver resolves its hosts and builds its [`TlsConfig`] once, when it is made; connecting then
//! does nothing that would block the loop:
//!
//! ```no_run
//! # use dyno_drivers::net::{Hosts, Inbox, TlsConfig, TlsOptions, Transport, before};
//! # async fn connect(hosts: Hosts, number: u32) -> dyno_core::DbResult<()> {
//! let hosts = hosts.resolve()?; // once per driver
//! let tls = TlsConfig::new(&TlsOptions::default())?; // once per driver
//!
//! let host = hosts.pick(number);
//! let due = dyno_reactor::now() + 10 * dyno_core::SECOND;
//! let mut transport = Transport::connect(host, due).await?;
//! let mut inbox = Inbox::new(64 << 20);
//! before(due, host.address(), async {
//!     transport.start_tls(&tls, host.address().tls_name()).await?;
//!     transport.send(b"hello").await?;
//!     transport.recv(&mut inbox).await
//! })
//! .await
//! # }
//! ```

mod address;
mod inbox;
mod tls;
mod transport;

#[cfg(test)]
mod tests;

pub use address::{Hosts, Resolved, ResolvedHosts};
pub use dyno_core::Address;
pub use inbox::Inbox;
pub use tls::{TlsConfig, TlsMode, TlsOptions};
pub use transport::{Transport, before};

/// Random bytes for a log-in.
pub(crate) fn random<const N: usize>() -> dyno_core::DbResult<[u8; N]> {
    let mut bytes = [0; N];
    // Requests this short are answered whole.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(
        |error| {
            dyno_core::DbError::unreachable(format!("The kernel gives no random bytes: {error}."))
        },
    )?;
    Ok(bytes)
}
