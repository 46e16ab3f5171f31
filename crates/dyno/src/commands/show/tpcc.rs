//! What `dyno show` says of TPC-C trials.

use crate::table::{grouped, layout, number};
use dyno_measure::{ConditionLine, ConditionState, KindSummary, TpccFacts, TrialSummary, Verdict};
use dyno_store::RunData;

/// tpmC, the mix with its response times, conditions and audit of all TPC-C trials; nothing where
/// there are none.
pub(super) fn tables(data: &RunData) -> String {
    let trials: Vec<(&TrialSummary, &TpccFacts)> = data
        .trials
        .iter()
        .filter_map(|trial| Some((&trial.summary, trial.summary.tpcc.as_ref()?)))
        .collect();
    if trials.is_empty() {
        return String::new();
    }
    let rates: Vec<Vec<String>> = trials.iter().map(|(trial, facts)| rates(trial, facts)).collect();
    let kinds: Vec<Vec<String>> = trials
        .iter()
        .flat_map(|(trial, facts)| trial.kinds.iter().map(|kind| row(trial, facts, kind)))
        .collect();
    let mut text = format!("\nTPC-C-like, not a TPC result:\n{}", layout(&RATES, &rates, 4));
    text.push_str(&format!("\n{}", layout(&KINDS, &kinds, 2)));
    for (trial, facts) in trials {
        text.push_str(&evidence(trial.trial, facts));
    }
    text
}

const RATES: [&str; 11] = [
    "trial",
    "profile",
    "flight",
    "isolation",
    "terminals",
    "sessions",
    "warehouses",
    "tpmC",
    "tpmTOTAL",
    "bound",
    "unknown",
];

fn rates(trial: &TrialSummary, facts: &TpccFacts) -> Vec<String> {
    vec![
        trial.trial.to_string(),
        facts.profile.clone(),
        facts.flight.clone(),
        facts.isolation.clone().unwrap_or_else(|| "the server's own".to_owned()),
        grouped(&facts.terminals.to_string()),
        grouped(&facts.sessions.to_string()),
        format!("{} of {}", facts.warehouses, facts.warehouses_loaded),
        number(facts.tpmc),
        number(facts.tpm_total),
        facts.tpmc_limit.map_or_else(|| "-".to_owned(), number),
        grouped(&facts.orders_unknown.to_string()),
    ]
}

const KINDS: [&str; 13] = [
    "trial",
    "transaction",
    "committed",
    "share %",
    "rolled back",
    "failed",
    "retries",
    "mean ms",
    "p90",
    "p95",
    "p99",
    "max",
    "limit of p90",
];

fn row(trial: &TrialSummary, facts: &TpccFacts, kind: &KindSummary) -> Vec<String> {
    let ms = |us: f64| number(us / 1e3);
    let n = |count: u64| grouped(&count.to_string());
    let executed = |kind: &KindSummary| kind.counts.committed + kind.counts.rolled_back;
    let in_mix = trial.kinds.iter().filter(|kind| kind.name != TpccFacts::DEFERRED);
    let all: u64 = in_mix.map(executed).sum();
    let share = match kind.name == TpccFacts::DEFERRED || all == 0 {
        true => "-".to_owned(),
        false => format!("{:.2}", 100.0 * executed(kind) as f64 / all as f64),
    };
    let limit = facts.kinds.iter().find(|known| known.name == kind.name);
    let limit = limit.map_or_else(
        || "-".to_owned(),
        |known| {
            let is_met = kind.latency.p90_us <= known.limit_p90_s * 1e6;
            format!("{} s {}", known.limit_p90_s, if is_met { "met" } else { "EXCEEDED" })
        },
    );
    vec![
        trial.trial.to_string(),
        kind.name.clone(),
        n(kind.counts.committed),
        share,
        n(kind.counts.rolled_back),
        n(kind.counts.failed),
        n(kind.counts.retries),
        ms(kind.latency.mean_us),
        ms(kind.latency.p90_us),
        ms(kind.latency.p95_us),
        ms(kind.latency.p99_us),
        ms(kind.latency.max_us),
        if kind.latency.count == 0 { "-".to_owned() } else { limit },
    ]
}

/// Conditions and audit of a trial: how many held, and what did not, line by line.
fn evidence(trial: u32, facts: &TpccFacts) -> String {
    let mut text = String::from("\n");
    let moments: [(&str, fn(&ConditionLine) -> Option<&ConditionState>); 2] =
        [("before", |line| line.before.as_ref()), ("after", |line| line.after.as_ref())];
    for (moment, of) in moments {
        let states: Vec<(&str, Verdict, &str)> = facts
            .conditions
            .iter()
            .filter_map(|line| {
                let state = of(line)?;
                Some((line.id.as_str(), state.verdict, state.evidence.as_str()))
            })
            .collect();
        text.push_str(&told(trial, &format!("conditions {moment}"), "hold", &states));
    }
    let audit: Vec<(&str, Verdict, String)> = facts
        .audit
        .iter()
        .map(|line| {
            let words = format!("{}, expected {} ({})", line.observed, line.expected, line.bound);
            (line.name.as_str(), line.verdict, words)
        })
        .collect();
    let audit: Vec<(&str, Verdict, &str)> =
        audit.iter().map(|(name, verdict, words)| (*name, *verdict, words.as_str())).collect();
    text.push_str(&told(trial, "audit", "within their bounds", &audit));
    text
}

fn told(trial: u32, what: &str, good: &str, lines: &[(&str, Verdict, &str)]) -> String {
    if lines.is_empty() {
        return format!("trial {trial}: {what}: not made\n");
    }
    let passed = lines.iter().filter(|line| line.1 == Verdict::Passed).count();
    let mut text = format!("trial {trial}: {what}: {passed} of {} {good}\n", lines.len());
    for (name, verdict, words) in lines.iter().filter(|line| line.1 != Verdict::Passed) {
        let verdict = match verdict {
            Verdict::Failed => "FAILED",
            other => other.name(),
        };
        text.push_str(&format!("  {name}: {verdict}: {words}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_hold_is_told_line_by_line() {
        let state = |verdict, evidence: &str| {
            Some(ConditionState { verdict, evidence: evidence.to_owned() })
        };
        let line = |id: &str, after| ConditionLine {
            id: id.to_owned(),
            rule: String::new(),
            before: state(Verdict::Passed, ""),
            after,
        };
        let facts = TpccFacts {
            conditions: vec![
                line("C1", state(Verdict::Passed, "")),
                line("C11", None),
                line("X5", state(Verdict::Failed, "2 violations: s_w_id 1, s_i_id 7")),
            ],
            ..TpccFacts::default()
        };
        let text = evidence(4, &facts);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "",
                "trial 4: conditions before: 3 of 3 hold",
                "trial 4: conditions after: 1 of 2 hold",
                "  X5: FAILED: 2 violations: s_w_id 1, s_i_id 7",
                "trial 4: audit: not made",
            ]
        );
    }
}
