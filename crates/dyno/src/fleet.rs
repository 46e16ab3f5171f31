//! What `dyno generator` and `dyno run --nats` take alike: where NATS is.

use dyno_facts::SecretUrl;
use dyno_fleet::{FLEET, FleetKey, NatsOptions, NatsSecret, Versions};
use dyno_runner::failure::Failure;
use dyno_runner::output;
use std::path::PathBuf;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct NatsArguments {
    /// NATS server through which load generators are reached, such as nats://HOST:4222 or
    /// tls://HOST:4222; separate the servers of a cluster by commas.
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
    /// File with the client certificate (PEM), if the NATS server asks for one.
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    nats_cert: Option<PathBuf>,
    /// File with the key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    nats_key: Option<PathBuf>,
    /// File with the fleet's key, as `dyno fleet key` has made it; DYNO_FLEET_KEY may hold the key instead.
    #[arg(long, value_name = "FILE")]
    fleet_key: Option<PathBuf>,
    /// Work without a fleet key: anybody who may publish to the NATS server can then order load and forge results.
    #[arg(long, conflicts_with = "fleet_key")]
    insecure: bool,
}

impl NatsArguments {
    /// `None` without --nats.
    pub(crate) fn options(&self) -> Result<Option<NatsOptions>, Failure> {
        let Some(url) = &self.nats else { return Ok(None) };
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let password = || set("DYNO_NATS_PASSWORD").map(NatsSecret::Password);
        Ok(Some(NatsOptions {
            url: SecretUrl::new(url),
            secret: set("DYNO_NATS_TOKEN").map(NatsSecret::Token).or_else(password),
            credentials: self.nats_creds.clone(),
            authority: self.nats_ca.clone(),
            certificate: self.nats_cert.clone().zip(self.nats_key.clone()),
            key: self.key(set("DYNO_FLEET_KEY"))?,
        }))
    }

    fn key(&self, from_variable: Option<String>) -> Result<FleetKey, Failure> {
        if self.insecure {
            output::talk(
                "warning: --insecure: this fleet has no key. Whoever may publish to dyno.> on that NATS server can have its \
                 machines log in and make load wherever they may, and can make results up.",
            );
            return Ok(FleetKey::OPEN);
        }
        match (&self.fleet_key, from_variable) {
            (Some(file), _) => Ok(FleetKey::read(file)?),
            (None, Some(text)) => Ok(FleetKey::parse(&text)?),
            (None, None) => Err(Failure::usage("A fleet needs a key, which all its members share.")
                .with_hint(
                    "`dyno fleet key FILE` makes one: copy it to all machines and give --fleet-key FILE, or the key in \
                     DYNO_FLEET_KEY. --insecure does without.",
                )),
        }
    }
}

pub(crate) fn versions() -> Versions {
    Versions::this(env!("CARGO_PKG_VERSION"))
}
