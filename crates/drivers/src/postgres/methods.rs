//! The methods of log-in that a target accepts: `require_auth` and `channel_binding`, as libpq has them.

use super::error::broken;
use crate::net::{Address, Transport};
use crate::target::TargetUrl;
use dyno_core::{DbError, DbResult};
use dyno_wire::postgres::backend::{Authentication, SaslMechanisms};
use dyno_wire::postgres::scram::{ChannelBinding, MECHANISM, MECHANISM_PLUS};
use dyno_wire::postgres::{WireError, tls_server_end_point};

/// Those of libpq; dyno speaks the first four.
const METHODS: [&str; 7] = ["none", "password", "md5", "scram-sha-256", "gss", "sspi", "oauth"];

/// The method when channel binding was part of it.
const BOUND: &str = "scram-sha-256-plus";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Never,
    IfOffered,
    Always,
}

#[derive(Clone, Debug)]
pub(super) struct AcceptedMethods {
    /// As it is written; `None` accepts all.
    required: Option<String>,
    is_accepted: [bool; METHODS.len()],
    binding: Wish,
}

impl AcceptedMethods {
    pub(super) fn of(target: &TargetUrl) -> DbResult<Self> {
        let required = target.options.get("require_auth").filter(|text| !text.is_empty());
        let binding = match target.options.get("channel_binding").map(String::as_str) {
            Some("disable") => Wish::Never,
            Some("require") => Wish::Always,
            _ => Wish::IfOffered,
        };
        let is_accepted = match required {
            Some(list) => accepted(list)?,
            None => [true; METHODS.len()],
        };
        Ok(AcceptedMethods { required: required.cloned(), is_accepted, binding })
    }

    pub(super) fn requires_binding(&self) -> bool {
        self.binding == Wish::Always
    }

    /// Refuses a request for a method that is not accepted. `answered` is the method that the server has been
    /// answered by before.
    pub(super) fn check(
        &self,
        request: &Authentication<'_>,
        answered: &'static str,
        address: &Address,
    ) -> DbResult<()> {
        let (method, is_bound) = match request {
            Authentication::Ok => (answered, answered == BOUND),
            Authentication::Cleartext => ("password", false),
            Authentication::Md5(_) => ("md5", false),
            Authentication::Sasl(offered) => ("scram-sha-256", offered.contains(MECHANISM_PLUS)),
            Authentication::SaslContinue(_)
            | Authentication::SaslFinal(_)
            | Authentication::Unsupported(_) => return Ok(()),
        };
        if self.requires_binding() && !is_bound {
            let message = format!(
                "The server at {address} logs in without channel binding, which channel_binding=require demands."
            );
            return Err(refused(message).with_hint(
                "give the user a password of scram-sha-256 and the server TLS, and connect with tls=require or higher",
            ));
        }
        let kind = if method == BOUND { "scram-sha-256" } else { method };
        let mut accepted = METHODS.iter().zip(self.is_accepted);
        if let Some(required) = &self.required
            && !accepted.any(|(name, is_accepted)| is_accepted && *name == kind)
        {
            let message = format!(
                "The server at {address} logs in by the method {kind}, which require_auth={required} excludes."
            );
            return Err(
                refused(message).with_hint("name the method in require_auth if it is meant")
            );
        }
        Ok(())
    }

    /// The binding to answer an offer with.
    pub(super) fn binding(
        &self,
        offered: SaslMechanisms<'_>,
        transport: &Transport,
    ) -> DbResult<Option<ChannelBinding>> {
        let is_bound = offered.contains(MECHANISM_PLUS);
        if is_bound && !transport.is_tls() {
            return Err(broken(WireError("it offers channel binding without TLS")));
        }
        let wanted = transport.certificate().filter(|_| self.binding != Wish::Never);
        Ok(match wanted.and_then(tls_server_end_point) {
            Some(hash) if is_bound => Some(ChannelBinding::EndPoint(hash)),
            _ if !offered.contains(MECHANISM) || self.requires_binding() => None,
            Some(_) => Some(ChannelBinding::Unoffered),
            None => Some(ChannelBinding::Impossible),
        })
    }
}

/// The name of a SCRAM method, as [`SessionProof`](dyno_core::SessionProof) has it.
pub(super) fn scram_method(binding: &ChannelBinding) -> &'static str {
    match binding {
        ChannelBinding::EndPoint(_) => BOUND,
        ChannelBinding::Impossible | ChannelBinding::Unoffered => "scram-sha-256",
    }
}

/// Reads `scram-sha-256,md5` or `!password,!none`.
fn accepted(list: &str) -> DbResult<[bool; METHODS.len()]> {
    let is_negative = list.starts_with('!');
    let mut accepted = [is_negative; METHODS.len()];
    for word in list.split(',') {
        let name = word.strip_prefix('!').unwrap_or(word);
        let number = METHODS.iter().position(|method| *method == name);
        let Some(number) = number.filter(|_| word.starts_with('!') == is_negative) else {
            let message = format!("invalid require_auth value: \"{list}\"");
            return Err(refused(message).with_hint(format!(
                "it is a list of {}, or of these with a ! before each",
                METHODS.join(", ")
            )));
        };
        accepted[number] = !is_negative;
    }
    Ok(accepted)
}

fn refused(message: String) -> DbError {
    // Not 28000: another password would not help.
    DbError::rejected(0, *b"08004", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methods(query: &str) -> DbResult<AcceptedMethods> {
        AcceptedMethods::of(&format!("postgres://me@h/d?{query}").parse().unwrap())
    }

    #[test]
    fn require_auth_means_what_libpq_means() {
        let address = Address::Tcp { host: "h".to_owned(), port: 1 };
        let requests = [
            (Authentication::Ok, "none"),
            (Authentication::Cleartext, "none"),
            (Authentication::Md5([0; 4]), "none"),
            (Authentication::Ok, "scram-sha-256"),
        ];
        for (query, accepted) in [
            ("", [true; 4]),
            ("require_auth=", [true; 4]),
            ("require_auth=scram-sha-256", [false, false, false, true]),
            ("require_auth=md5,password", [false, true, true, false]),
            ("require_auth=!none,!password", [false, false, true, true]),
            ("channel_binding=require", [false; 4]),
        ] {
            let methods = methods(query).unwrap();
            let found = requests.each_ref().map(|(it, by)| methods.check(it, by, &address).is_ok());
            assert_eq!(found, accepted, "{query}");
        }
        let bound = methods("channel_binding=require&require_auth=scram-sha-256").unwrap();
        assert_eq!(bound.check(&Authentication::Ok, BOUND, &address), Ok(()));
        for wrong in ["x", "md5,!password", "!md5,password", "md5,", "!"] {
            assert!(methods(&format!("require_auth={wrong}")).is_err(), "{wrong}");
        }
    }
}
