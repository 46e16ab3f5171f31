//! What `dyno generator` and `dyno run --nats` take alike: where NATS is.

use crate::failure::Failure;
use dyno_fleet::{
    FLEET, FleetError, FleetOptions, NatsOptions, NatsSecret, TargetSecret, Versions,
};
use dyno_suite::SecretUrl;
use std::path::PathBuf;

/// Where NATS is, and how one logs in there.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct NatsArguments {
    /// NATS server through which load generators are reached, such as nats://HOST:4222 or
    /// tls://HOST:4222; several servers of one cluster are joined by commas.
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Name of the fleet: load generators and runs of the same name find each other.
    #[arg(long, value_name = "NAME", default_value = FLEET)]
    pub(crate) fleet: String,
    /// File with NATS credentials (JWT and key).
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// File with the certificates that sign the NATS server's (PEM); only encrypted connections are
    /// made then.
    #[arg(long, value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// File with the own certificate (PEM), where the NATS server asks for one.
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    nats_cert: Option<PathBuf>,
    /// File with the key of the own certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    nats_key: Option<PathBuf>,
}

impl NatsArguments {
    /// The same for the library; `None` without a URL.
    pub(crate) fn options(&self) -> Option<NatsOptions> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let password = || set("DYNO_NATS_PASSWORD").map(NatsSecret::Password);
        Some(NatsOptions {
            url: SecretUrl::new(self.nats.as_ref()?),
            secret: set("DYNO_NATS_TOKEN").map(NatsSecret::Token).or_else(password),
            credentials: self.nats_creds.clone(),
            authority: self.nats_ca.clone(),
            certificate: self.nats_cert.clone().zip(self.nats_key.clone()),
        })
    }
}

/// What this program speaks.
pub(crate) fn versions() -> Versions {
    Versions::this(env!("CARGO_PKG_VERSION"))
}

/// What a run does when a load generator is lost in a trial, which fails then in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lost {
    /// It goes on with those that are left.
    #[default]
    Continue,
    /// It ends.
    Fail,
}

/// The fleet that a run asks for.
#[derive(Clone, Debug)]
pub(crate) struct Muster {
    /// Who is called, and how many.
    pub(crate) options: FleetOptions,
    /// What follows a loss.
    pub(crate) lost: Lost,
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let failure = Failure::new(error.message);
        match error.hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// The passwords of a target and its nodes that this process knows from URLs and variables.
pub(crate) fn secrets(
    target: &dyno_suite::PlannedTarget,
    run: &std::path::Path,
) -> Vec<TargetSecret> {
    let of_target = std::env::var(target.password_variable()).ok();
    let secret = |node: Option<&dyno_suite::PlannedNode>, url: SecretUrl| {
        let own = node.and_then(|node| std::env::var(target.node_password_variable(node)).ok());
        let known = own.or_else(|| of_target.clone()).filter(|password| !password.is_empty());
        let url = match known.filter(|_| url.redacted() == url.expose()) {
            Some(password) => with_password(url.expose(), &password)?,
            None if url.redacted() == url.expose() => return None,
            None => url.expose().to_owned(),
        };
        let node = node.map(|node| node.name.clone());
        Some(TargetSecret { target: target.name.clone(), node, url })
    };
    if target.nodes.is_empty() {
        return secret(None, target.url_in(run)).into_iter().collect();
    }
    target.nodes.iter().filter_map(|node| secret(Some(node), node.secret_url())).collect()
}

/// The URL with a password; `None` where it names no user, to whom it could belong.
fn with_password(url: &str, password: &str) -> Option<String> {
    let begin = url.find("://")? + 3;
    let user_end = begin + url[begin..].rfind('@')?;
    let mut encoded = String::new();
    for byte in password.bytes() {
        match byte.is_ascii_alphanumeric() {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(format!("{}:{encoded}{}", &url[..user_end], &url[user_end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_encoded_into_urls() {
        let url = with_password("mysql://dyno@h:1/d?a=b", "p@s/s:%");
        assert_eq!(url.as_deref(), Some("mysql://dyno:p%40s%2Fs%3A%25@h:1/d?a=b"));
        assert_eq!(with_password("mysql://h:1/d", "x"), None);
        assert_eq!(with_password("sqlite:a.db", "x"), None);
    }
}
