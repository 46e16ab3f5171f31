//! Rules for passwords that the other side can read: one policy for all protocols, the table of `SECURITY.md`.
//!
//! A stranger between client and server can hide TLS, ask for another login method and send a key. So over TCP without
//! TLS, a password in clear text, or under a key that the server itself has sent, is sent only if an option allows it.
//! Any TLS will do, as for the servers' own clients: only a verified certificate protects from a server in the middle.

use crate::TargetUrl;
use crate::net::Transport;
use dyno_core::{Address, DbError, DbResult};
use std::sync::atomic::{AtomicBool, Ordering};

static HAS_USED_FETCHED_KEY: AtomicBool = AtomicBool::new(false);

/// True if this process has sent a password over TCP without TLS under a key that the server sent.
pub fn has_used_fetched_key() -> bool {
    HAS_USED_FETCHED_KEY.load(Ordering::Relaxed)
}

/// A server's request for the password itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disclosure {
    ClearText,
    /// The password under an RSA key that came from the server, unsigned.
    FetchedKey,
}

/// The disclosures that the target's options allow over TCP without TLS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OptIns {
    clear_text: bool,
    fetched_key: bool,
}

impl OptIns {
    pub(crate) fn of(target: &TargetUrl) -> Self {
        let is_set = |name: &str| target.options.get(name).is_some_and(|value| value == "true");
        OptIns {
            clear_text: is_set("allow_cleartext"),
            fetched_key: is_set("get_server_public_key"),
        }
    }
}

impl Disclosure {
    /// Refuses a request that others could read, or could have made.
    pub(crate) fn check(
        self,
        transport: &Transport,
        address: &Address,
        opt_ins: OptIns,
    ) -> DbResult<()> {
        if transport.is_private() {
            return Ok(());
        }
        match self {
            Disclosure::ClearText if opt_ins.clear_text => Ok(()),
            Disclosure::FetchedKey if opt_ins.fetched_key => {
                HAS_USED_FETCHED_KEY.store(true, Ordering::Relaxed);
                Ok(())
            }
            Disclosure::ClearText => Err(refused(format!(
                "The server at {address} asks for the password in clear text over a connection without TLS, where \
                 others could read it."
            ))
            .with_hint("connect with tls=require, or add allow_cleartext=true in the URL if the network is yours")),
            Disclosure::FetchedKey => Err(refused(format!(
                "The server at {address} asks for the password under its own key over a connection without TLS, where \
                 others could have sent theirs."
            ))
            .with_hint(
                "connect with tls=require, or add get-server-public-key=true or server_public_key=FILE in the URL if \
                 the network is yours",
            )),
        }
    }
}

fn refused(message: String) -> DbError {
    // Not 28000: another password would not help.
    DbError::rejected(0, *b"08004", message)
}
