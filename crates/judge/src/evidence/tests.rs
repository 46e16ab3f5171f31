//! Trials and comparisons that tests make by hand.

use super::*;

/// A complete trial of this summary, on a machine apart from the load generator.
pub(crate) fn trial(summary: TrialSummary) -> Trial {
    Trial {
        label: "1".to_owned(),
        run: 1,
        target: summary.target.clone(),
        place: TargetPlace::Elsewhere,
        status: "complete",
        summary,
        level: None,
        adds_up: true,
        gaps: Vec::new(),
        series: Vec::new(),
        nodes: Vec::new(),
        counters: Vec::new(),
        checks: Vec::new(),
    }
}

/// An undecided row of eight pairs.
pub(crate) fn row(metric: Metric) -> VerdictRow {
    VerdictRow {
        metric,
        name: metric.name().into(),
        is_less_better: metric.better() == Better::Less,
        baseline: Spread::default(),
        candidate: Spread::default(),
        pairs: 8,
        units: 8,
        ratio: 1.0,
        bound: "",
        interval: Some(Bounds { low: 0.9, high: 1.1 }),
        withstood: None,
        half_width: Some(0.1),
        interval_t: None,
        p: 0.5,
        p_adjusted: Some(0.5),
        p_t: None,
        variation_baseline: Some(0.01),
        variation_candidate: Some(0.01),
        noise_floor: None,
        pairs_needed: Some(20),
        is_equivalent: false,
        call: Call::Undecided,
        words: Message::default(),
    }
}

/// Targets `a` and `b` in eight pairs, the trials of which are 1 to 16.
pub(crate) fn comparison(rows: Vec<VerdictRow>) -> PairedComparison {
    PairedComparison {
        number: 1,
        name: "x 8 workers: b / a".to_owned(),
        experiment: "x".to_owned(),
        title: "X".into(),
        experiment_index: 0,
        level: "8 workers".into(),
        baseline: "a".to_owned(),
        candidate: "b".to_owned(),
        is_aa: false,
        aa: AaKind::Trials,
        unit_pairs: 1,
        levels: None,
        order: PairOrder::Interleaved,
        pairs: (0..8).map(|at| [2 * at + 1, 2 * at + 2].map(|n: u32| n.to_string())).collect(),
        pairs_lost: 0,
        sessions: Vec::new(),
        stop: StopRule { pairs_least: 8, pairs_most: 8, ..StopRule::default() },
        margin: 0.03,
        rows,
        sentence: Message::default(),
        no_pair: Message::default(),
        checks: Vec::new(),
        vetoes: Vec::new(),
    }
}
