//! Texts that users write: addresses, suites, scripts.

use dyno_core::offer::WorkloadOffer;
use dyno_drivers::TargetUrl;
use dyno_facts::SecretUrl;
use dyno_pgbench::script::{QueryMode, Script};
use dyno_suite::{Overrides, Plan, Suite};
use std::sync::OnceLock;

/// Addresses of dyno, JDBC and libpq.
pub(super) fn url(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let secret = SecretUrl::new(text.as_ref());
    let _ = (secret.redacted(), secret.to_string());
    match text.parse::<TargetUrl>() {
        Ok(target) => assert!(!target.to_string().is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

static FAMILIES: dyno_runner::family::Families = &[
    &dyno_sysbench::FAMILY,
    &dyno_pgbench::FAMILY,
    &dyno_tpcc::FAMILY,
    &dyno_tpch::FAMILY,
    &dyno_lua::FAMILY,
];

pub(super) fn suite(input: &[u8]) {
    static OFFERS: OnceLock<Vec<WorkloadOffer>> = OnceLock::new();
    let offers = OFFERS.get_or_init(|| dyno_runner::family::offers(FAMILIES));
    let text = String::from_utf8_lossy(input);
    let mut overrides = Overrides { shrink: Some(0.001), ..Overrides::default() };
    let built = Suite::parse("any.toml", &text, offers).and_then(|suite| {
        let names = suite.targets.iter().map(|target| target.name.value.clone());
        overrides.targets = names.map(|name| (name, SecretUrl::new("mysql://h/d"))).collect();
        Plan::build(&suite, &overrides)
    });
    match built {
        Ok(plan) => assert!(!plan.steps.is_empty()),
        Err(error) => assert!(!error.problems.is_empty() && !error.to_string().is_empty()),
    }
}

pub(super) fn pgbench_script(input: &[u8]) {
    for mode in QueryMode::ALL {
        if let Err(error) = Script::parse(input, "file", mode) {
            assert!(!error.to_string().is_empty());
        }
    }
}
