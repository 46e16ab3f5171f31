//! What a run of TPC-C says of itself.

use crate::audit::AuditFigure;
use crate::facts::{TpccFacts, TpccKind};
use crate::load::TpccDatabase;
use crate::profile::{MIX_LEAST_PERCENT, PerKind, Profile, TpccTransaction};
use crate::{DISTRICTS, Tpcc};
use dyno_core::Workload;
use dyno_engine::TrialSpec;
use dyno_facts::KindSummary;

/// The facts of a run that has ended, from its kinds and the length of its window. The conditions are
/// left to [`super::look_after`].
pub fn facts(
    workload: &Tpcc,
    loaded: &TpccDatabase,
    spec: &TrialSpec,
    kinds: &[KindSummary],
    window_s: f64,
) -> TpccFacts {
    let options = workload.options();
    let profile = &options.profile;
    let terminals = spec.terminals.unwrap_or(spec.workers);
    let audit = workload.audit();
    let orders = workload.acknowledged().orders;
    let mut facts = TpccFacts {
        profile: profile.name.to_owned(),
        flight: options.flight.name().to_owned(),
        isolation: workload.isolation().name().map(str::to_owned),
        warehouses: options.warehouses,
        warehouses_loaded: loaded.warehouses,
        terminals,
        sessions: spec.workers,
        tpmc_limit: tpmc_limit(workload, terminals),
        kinds: kinds_facts(workload),
        orders_acknowledged: orders.acknowledged,
        orders_unknown: orders.unknown,
        deliveries: audit.deliveries,
        deliveries_with_skips: audit.deliveries_with_skips,
        shards: workload.shards(),
        reaches: workload.reaches(),
        audit: audit.figures.iter().map(AuditFigure::line).collect(),
        ..TpccFacts::default()
    };
    facts.set_rates(kinds, window_s);
    facts
}

/// The tpmC that keying and think times allow; `None` without them. More terminals than the ten of each
/// warehouse enter more.
pub fn tpmc_limit(workload: &Tpcc, terminals: u32) -> Option<f64> {
    let options = workload.options();
    let usual = f64::from(options.warehouses) * f64::from(DISTRICTS);
    let crowd = (f64::from(terminals) / usual.max(1.0)).max(1.0);
    options.tpmc_max().map(|limit| limit * crowd)
}

fn shares_percent(profile: &Profile) -> PerKind<f64> {
    let shares = profile.choice.shares();
    let sum: u32 = shares.iter().sum();
    shares.map(|share| 100.0 * f64::from(share) / f64::from(sum.max(1)))
}

fn kind_facts(profile: &Profile, name: &str) -> TpccKind {
    let kind = TpccTransaction::ALL.into_iter().find(|kind| kind.name() == name);
    let (limit_p90_s, share_percent, least_share_percent) = match kind {
        Some(kind) => (
            profile.limits_s[kind.index()],
            shares_percent(profile)[kind.index()],
            MIX_LEAST_PERCENT[kind.index()],
        ),
        // The deferred part of Delivery is no part of the mix.
        None => (profile.deferred_limit_s, 0.0, 0.0),
    };
    let name = name.to_owned();
    TpccKind { name, limit_p90_s, share_percent, least_share_percent, pauses: None }
}

fn kinds_facts(workload: &Tpcc) -> Vec<TpccKind> {
    let profile = &workload.options().profile;
    let kinds = workload.transactions().iter().map(|kind| kind_facts(profile, &kind.name));
    let mut kinds: Vec<TpccKind> = kinds.collect();
    for (kind, pauses) in kinds.iter_mut().zip(workload.pauses().into_iter().flatten()) {
        kind.pauses = Some(pauses);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TpccOptions;
    use crate::profile::{BMSQL_5_0, SPEC};
    use dyno_core::Dialect;
    use dyno_facts::CheckVerdict;
    use dyno_facts::Counts;

    fn kind(name: &str, committed: u64) -> KindSummary {
        let counts = Counts { committed, started: committed, ..Counts::default() };
        let (statements, latency) = Default::default();
        KindSummary { name: name.to_owned(), counts, statements, latency }
    }

    #[test]
    fn rates_count_commits_of_the_window_and_a_delivery_once() {
        let loaded = TpccDatabase { warehouses: 5, c_last: 100 };
        let options = TpccOptions { warehouses: 2, ..TpccOptions::new(BMSQL_5_0, &loaded, 1) };
        let workload = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap();
        let mut kinds = [kind("new_order", 45), kind("delivery", 4), kind("delivery_deferred", 4)];
        kinds[0].counts.rolled_back = 1;
        let spec = TrialSpec { terminals: Some(20), ..TrialSpec::closed(4) };
        let facts = facts(&workload, &loaded, &spec, &kinds, 30.0);
        assert_eq!((facts.tpmc, facts.tpmc_committed, facts.tpm_total), (92.0, 90.0, 98.0));
        assert_eq!((facts.warehouses, facts.warehouses_loaded), (2, 5));
        assert_eq!((facts.terminals, facts.sessions), (20, 4));
        assert_eq!(facts.isolation.as_deref(), Some("READ COMMITTED"));
        assert_eq!((facts.profile.as_str(), facts.flight.as_str()), ("bmsql-5.0", "statement"));
        assert_eq!(facts.tpmc_limit, None);
        let payment = &facts.kinds[1];
        assert_eq!((payment.limit_p90_s, payment.share_percent), (5.0, 43.0));
        assert_eq!(facts.audit.len(), 14, "nine shares, the lines, four distributions");
        assert!(facts.audit.iter().all(|line| line.verdict == CheckVerdict::NotMade));
    }

    #[test]
    fn pauses_bound_the_orders_of_a_warehouse() {
        let loaded = TpccDatabase { warehouses: 10, c_last: 100 };
        let options = TpccOptions::new(SPEC, &loaded, 1);
        let workload = Tpcc::new(options.clone(), &loaded, Dialect::Postgres).unwrap();
        let spec = TrialSpec { terminals: Some(100), ..TrialSpec::closed(8) };
        let facts = facts(&workload, &loaded, &spec, &[], 30.0);
        assert!((facts.tpmc_limit.unwrap() - 128.6).abs() < 1e-9);
        // Twenty terminals a warehouse, which key and think half as long.
        let (keying_multiplier, think_multiplier) = (0.5, 0.5);
        let options = TpccOptions { keying_multiplier, think_multiplier, ..options };
        let hasty = Tpcc::new(options, &loaded, Dialect::Postgres).unwrap();
        assert!((tpmc_limit(&hasty, 200).unwrap() - 4.0 * 128.6).abs() < 1e-9);
        assert_eq!(tpmc_limit(&workload, 1), facts.tpmc_limit, "so many may be there");
        assert_eq!((facts.isolation, facts.terminals, facts.sessions), (None, 100, 8));
        let names: Vec<&str> = facts.kinds.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(names.last(), Some(&TpccFacts::DEFERRED));
    }

    #[test]
    fn the_deferred_part_of_delivery_has_its_own_limit() {
        let deferred = kind_facts(&SPEC, TpccFacts::DEFERRED);
        assert_eq!((deferred.limit_p90_s, deferred.share_percent), (80.0, 0.0));
        assert_eq!(kind_facts(&SPEC, "stock_level").least_share_percent, 4.0);
    }
}
