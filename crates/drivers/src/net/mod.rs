//! Addresses, sockets, TLS and receive buffers. Connecting does not block the loop: a driver resolves its hosts and
//! builds its [`TlsConfig`] before.

mod inbox;
mod tls;
mod transport;

#[cfg(test)]
mod tests;

pub use dyno_core::Address;
pub use inbox::Inbox;
pub use tls::{TlsConfig, TlsMode, TlsOptions};
pub use transport::{Hosts, ServerHost, ServerHosts};
pub use transport::{Transport, before};

/// Random bytes for a log-in.
pub(crate) fn random<const N: usize>() -> dyno_core::DbResult<[u8; N]> {
    let mut bytes = [0; N];
    // The kernel answers such short requests completely.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(
        |error| {
            dyno_core::DbError::unreachable(format!("The kernel gives no random bytes: {error}."))
        },
    )?;
    Ok(bytes)
}
