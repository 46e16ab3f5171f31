//! The first page.

use crate::model::{Paper, RunFacts};
use crate::text::Message;
use serde::Serialize;

/// What stands on the first page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cover {
    /// The verdict in a sentence or two.
    pub verdict: Vec<Message>,
    /// Checks that make a claim unusable, without those that the run accepts.
    pub errors: usize,
    /// Checks that put a caveat beside a number.
    pub caveats: usize,
    /// Checks that disclose something.
    pub disclosures: usize,
    /// Checks that were made.
    pub checks: usize,
    /// When the first run began, RFC 3339.
    pub began: String,
    /// When the last run ended, RFC 3339; `None` while one still goes on.
    pub ended: Option<String>,
    /// Versions of dyno.
    pub versions: Vec<String>,
    /// SHA-256 of its binaries.
    pub hashes: Vec<String>,
    /// Products and versions of the targets.
    pub products: Vec<String>,
}

pub(super) fn cover(paper: &Paper) -> Cover {
    let [errors, caveats, disclosures] = paper.check_counts();
    let each = |of: fn(&RunFacts) -> &str| {
        let mut words: Vec<String> = paper.runs.iter().map(|run| of(run).to_owned()).collect();
        words.retain(|word| !word.is_empty());
        crate::format::unique(words)
    };
    let ends: Option<Vec<String>> =
        paper.runs.iter().map(|run| run.header.finished_at.clone()).collect();
    let products = paper.targets.iter().map(|target| target.product.clone());
    Cover {
        verdict: super::summary::headline(paper),
        errors,
        caveats,
        disclosures,
        checks: paper.checks.len(),
        began: each(|run| &run.header.started_at).into_iter().min().unwrap_or_default(),
        ended: ends.and_then(|ends| ends.into_iter().max()),
        versions: each(|run| &run.header.environment.dyno_version),
        hashes: each(|run| &run.header.environment.binary_sha256),
        products: crate::format::unique(products.filter(|product| !product.is_empty()).collect()),
    }
}
