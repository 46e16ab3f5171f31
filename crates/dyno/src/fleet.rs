//! What `dyno generator` and `dyno run --nats` take alike: where NATS is.

use dyno_facts::SecretUrl;
use dyno_fleet::{FLEET, NatsOptions, NatsSecret, Versions};
use std::path::PathBuf;

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

pub(crate) fn versions() -> Versions {
    Versions::this(env!("CARGO_PKG_VERSION"))
}
