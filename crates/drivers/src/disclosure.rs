//! Where a password may go that the other side can read: one policy for all protocols.
//!
//! A stranger between client and server can hide TLS, ask for another method of log-in and send a key of its own.
//! So a password in clear text, or under a key that the server itself has sent, goes only where nobody can stand in
//! between, or where the target's URL says so.

use crate::TargetUrl;
use crate::net::Transport;
use dyno_core::{Address, DbError, DbResult};

/// What a server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disclosure {
    ClearText,
    /// The password under an RSA key that came from the server, unsigned.
    FetchedKey,
}

/// What the target's URL allows on channels that are open to others.
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
    /// Refuses what others could read.
    pub(crate) fn check(
        self,
        transport: &Transport,
        address: &Address,
        opt_ins: OptIns,
    ) -> DbResult<()> {
        if self.is_allowed(transport.is_private(), opt_ins) {
            return Ok(());
        }
        let channel = if transport.is_tls() {
            "TLS whose certificate is not checked"
        } else {
            "a connection without TLS"
        };
        Err(match self {
            Disclosure::ClearText => refused(format!(
                "The server at {address} asks for the password in clear text over {channel}, where others could read it."
            ))
            .with_hint(
                "connect with tls=verify-full (and ca=FILE), or say allow_cleartext=true in the URL if the network is yours",
            ),
            Disclosure::FetchedKey => refused(format!(
                "The server at {address} asks for the password under a key of its own over {channel}, where others could \
                 have sent theirs."
            ))
            .with_hint(
                "connect with tls=verify-full (and ca=FILE), give the server's key as server_public_key=FILE, or say \
                 get-server-public-key=true in the URL if the network is yours",
            ),
        })
    }

    fn is_allowed(self, is_private: bool, opt_ins: OptIns) -> bool {
        let opted_in = match self {
            Disclosure::ClearText => opt_ins.clear_text,
            Disclosure::FetchedKey => opt_ins.fetched_key,
        };
        is_private || opted_in
    }
}

fn refused(message: String) -> DbError {
    // Not 28000: another password would not help.
    DbError::rejected(0, *b"08004", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_opt_in_is_for_its_own_disclosure() {
        let opt_ins = |query: &str| {
            OptIns::of(&format!("mysql://me:geheim@db.example/d?{query}").parse().unwrap())
        };
        let allowed = |query: &str| {
            [Disclosure::ClearText, Disclosure::FetchedKey]
                .map(|what| what.is_allowed(false, opt_ins(query)))
        };
        assert_eq!(allowed(""), [false, false]);
        assert_eq!(allowed("allow_cleartext=true"), [true, false]);
        assert_eq!(allowed("get-server-public-key=true"), [false, true]);
        assert_eq!(allowed("get_server_public_key=false&allow_cleartext=false"), [false, false]);
        assert!(Disclosure::ClearText.is_allowed(true, opt_ins("")));
    }
}
