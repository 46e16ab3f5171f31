use super::*;
use dyno_core::Rng;

/// Seconds around a level, each dependent on the one before as measured ones are.
fn seconds(count: u32, seed: u64, level: impl Fn(f64) -> f64) -> Vec<Second> {
    let mut rng = Rng::new(seed, "test", 0);
    let mut noise = 0.0;
    (0..count)
        .map(|second| {
            noise = 0.5 * noise + 0.04 * (rng.unit() - 0.5);
            let begins_s = f64::from(second);
            Second { begins_s, length_s: 1.0, count: level(begins_s) * (1.0 + noise) }
        })
        .collect()
}

#[test]
fn a_steady_window_has_nothing_to_remark() {
    let remarks = (0..200).filter(|seed| {
        let analysis = steady(&seconds(120, *seed, |_| 1000.0));
        assert!(analysis.stalls.is_empty());
        !analysis.changes.is_empty() || analysis.warm_up.is_none_or(|warm_up| !warm_up.is_over)
    });
    let remarks = remarks.count();
    assert!(remarks <= 4, "{remarks} of 200");
}

#[test]
fn a_climb_is_a_warm_up_that_is_not_over() {
    for seed in 0..20 {
        let analysis = steady(&seconds(120, seed, |at| 900.0 + at));
        let warm_up = analysis.warm_up.expect("120 s");
        assert!(!warm_up.is_over && warm_up.drift > 0.05 && warm_up.slope > 0.05, "{warm_up:?}");
        assert!(analysis.changes.is_empty(), "{:?}", analysis.changes);
    }
}

#[test]
fn a_step_is_a_change() {
    for seed in 0..20 {
        let analysis = steady(&seconds(180, seed, |at| if at < 100.0 { 1000.0 } else { 800.0 }));
        let [change] = analysis.changes.as_slice() else { panic!("{:?}", analysis.changes) };
        assert!((change.at_s - 100.0).abs() <= 6.0, "{change:?}");
        assert!(change.before_per_s > 970.0 && change.after_per_s < 830.0, "{change:?}");
    }
}

#[test]
fn stalls_are_joined() {
    let mut window = seconds(60, 1, |_| 1000.0);
    window[20].count = 0.0;
    window[21].count = 300.0;
    window[40].count = 450.0;
    let analysis = steady(&window);
    let spans: Vec<(f64, f64, f64)> = analysis
        .stalls
        .iter()
        .map(|stall| (stall.from_s, stall.to_s, stall.lowest_per_s))
        .collect();
    assert_eq!(spans, [(20.0, 22.0, 0.0), (40.0, 41.0, 450.0)]);
    assert!(analysis.changes.is_empty());
}

#[test]
fn little_is_known_from_little() {
    assert_eq!(steady(&[]), Steady::default());
    assert_eq!(steady(&seconds(11, 1, |_| 1000.0)).warm_up, None);
    // Two commits in ten seconds: empty seconds are not stalls.
    let mut window = seconds(60, 1, |_| 1.0);
    window[20].count = 0.0;
    assert!(steady(&window).stalls.is_empty());
    // The rest of a second after an interruption.
    let mut window = seconds(60, 1, |_| 1000.0);
    window.push(Second { begins_s: 60.0, length_s: 0.1, count: 0.0 });
    assert!(steady(&window).stalls.is_empty());
}
