//! What `dyno show` says of TPC-C trials.

use dyno_facts::{ConditionLine, ConditionState, KindSummary, TpccFacts, TrialSummary, Verdict};
use dyno_runner::table::{grouped, layout, number};
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
    type State = fn(&ConditionLine) -> Option<&ConditionState>;
    let moments: [(&str, State); 2] =
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
    if lines.iter().all(|line| (line.1, line.2) == (Verdict::NotMade, lines[0].2)) {
        return format!("trial {trial}: {what}: not made: {}\n", lines[0].2);
    }
    let passed = lines.iter().filter(|line| line.1 == Verdict::Passed).count();
    let mut text = format!("trial {trial}: {what}: {passed} of {} {good}\n", lines.len());
    // The same reason for many of them is told once.
    let mut groups: Vec<(Vec<&str>, Verdict, &str)> = Vec::new();
    for &(name, verdict, words) in lines.iter().filter(|line| line.1 != Verdict::Passed) {
        match groups.iter_mut().find(|group| (group.1, group.2) == (verdict, words)) {
            Some(group) => group.0.push(name),
            None => groups.push((vec![name], verdict, words)),
        }
    }
    for (names, verdict, words) in groups {
        let verdict = match verdict {
            Verdict::Failed => "FAILED",
            other => other.name(),
        };
        let names = if names.len() == lines.len() { "all".to_owned() } else { names.join(", ") };
        text.push_str(&format!("  {names}: {verdict}: {words}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{HostSample, RunHeader, TpccKind, TrialIdentity};
    use dyno_record::{Frame, Interval, Phase};
    use dyno_store::Run;

    #[test]
    fn a_trial_has_its_rates_and_its_kinds() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = Run::create(folder.path(), RunHeader::new("s", Vec::new(), 1)).expect("run");
        let limit = |name: &str, limit_p90_s| TpccKind {
            name: name.to_owned(),
            limit_p90_s,
            ..TpccKind::default()
        };
        let facts = TpccFacts {
            profile: "bmsql-5.0".to_owned(),
            flight: "statement".to_owned(),
            warehouses: 2,
            warehouses_loaded: 5,
            terminals: 10,
            sessions: 10,
            kinds: vec![limit("new_order", 5.0), limit("delivery_deferred", 0.001)],
            ..TpccFacts::default()
        };
        let kinds = ["new_order", "payment", "delivery_deferred"].map(str::to_owned);
        let identity =
            TrialIdentity { kinds: kinds.to_vec(), tpcc: Some(facts), ..TrialIdentity::default() };
        let mut trial = run.begin_trial(identity).expect("begun");
        let mut frame = Frame::new(3, false);
        for (kind, committed) in frame.kinds.iter_mut().zip([30_u64, 20, 5]) {
            (kind.counts.started, kind.counts.committed) = (committed, committed);
            (0..committed).for_each(|_| kind.latency.record(2_000_000));
        }
        let interval = Interval {
            phase: Phase::Measured,
            index: 0,
            begins_s: 0.0,
            length_s: 2.0,
            frame,
            host: HostSample::default(),
        };
        trial.interval(&interval).expect("stored");
        drop(trial);
        let text = tables(&dyno_store::read(run.path()).expect("read"));
        let words = |begin: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.contains(begin)).expect(begin);
            line.split_whitespace().map(str::to_owned).collect()
        };
        // Thirty New-Orders in two seconds; the deferred part is no transaction of its own.
        let rates = words("bmsql-5.0");
        assert_eq!(rates[rates.len() - 4..], ["900.0", "1,500", "-", "0"], "{text}");
        assert_eq!(words("new_order")[2..5], ["30", "60.00", "0"], "{text}");
        assert!(words("new_order").ends_with(&["5".into(), "s".into(), "met".into()]), "{text}");
        assert_eq!(words("payment").last().expect("a cell"), "-", "{text}");
        assert_eq!(words("delivery_deferred")[2..4], ["5", "-"], "{text}");
        assert_eq!(words("delivery_deferred").last().expect("a cell"), "EXCEEDED", "{text}");
        assert!(text.contains("trial 1: conditions after: not made"), "{text}");
    }

    #[test]
    fn what_did_not_hold_is_told_line_by_line() {
        let state = |verdict, evidence: &str| {
            Some(ConditionState { verdict, evidence: evidence.to_owned() })
        };
        let line = |id: &str, after| ConditionLine {
            id: id.to_owned(),
            rule: String::new(),
            before: state(Verdict::NotMade, "Left out."),
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
                "trial 4: conditions before: not made: Left out.",
                "trial 4: conditions after: 1 of 2 hold",
                "  X5: FAILED: 2 violations: s_w_id 1, s_i_id 7",
                "trial 4: audit: not made",
            ]
        );
    }
}
