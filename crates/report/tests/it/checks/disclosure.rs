//! H: disclosure.

use super::{AS_IT_IS, Case};
use dyno_facts::RunPlan;
use dyno_store::RunData;

/// Sets the address of the first target.
fn url(runs: &mut [RunData], url: &str) {
    runs[0].header.targets[0].url = dyno_facts::SecretUrl::new(url);
}

/// A plan whose sizes and windows were multiplied by this number.
fn shrunk(shrink: f64) -> Option<RunPlan> {
    Some(RunPlan { shrink, ..RunPlan::default() })
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "secrets",
        evidence: "URL of a target",
        fires: |runs| url(runs, "mysql://root:geheim@10.0.0.1/sbtest"),
        silent: |runs| url(runs, "mysql://root:***@10.0.0.1/sbtest"),
    },
    Case {
        id: "full-size",
        evidence: "shrunk to 0.01",
        fires: |runs| runs[0].header.plan = shrunk(0.01),
        silent: |runs| runs[0].header.plan = shrunk(1.0),
    },
    Case {
        id: "damaged-folder",
        evidence: "Trial 3 has no series.",
        fires: |runs| runs[0].warnings = vec!["Trial 3 has no series.".into()],
        silent: AS_IT_IS,
    },
    Case {
        id: "stated",
        evidence: "target new: vcpu = 8, disk = local SSD",
        fires: |runs| {
            let facts = &mut runs[0].header.targets[1];
            facts.vcpu = Some(8.0);
            facts.stated.insert("disk".to_owned(), "local SSD".to_owned());
        },
        silent: AS_IT_IS,
    },
    Case {
        id: "not-readable",
        evidence: "global status: denied",
        fires: |runs| {
            for facts in runs[0].trials.iter_mut().flat_map(|trial| trial.before.values_mut()) {
                facts.not_readable = vec!["global status: denied".into()];
            }
        },
        silent: AS_IT_IS,
    },
];
