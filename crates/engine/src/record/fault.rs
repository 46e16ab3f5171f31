//! Outages of the load after a fault.

use super::collector::error_summaries;
use super::{ErrorTable, MeasuredInterval, Phase};
use dyno_facts::{FaultFacts, RECOVERED_SHARE, ShardOutage};

/// Time for which it has to stay there.
const STEADY_S: f64 = 1.0;
/// A time without a commit is an outage if at least this number of commits would have been expected in it:
/// by chance that happens once in 20,000 times.
const EXPECTED_COMMITS: f64 = 10.0;
/// Ends of intervals are sums of lengths.
const ROUNDING_S: f64 = 1e-6;

/// Follows the intervals of a trial in which a fault happens, so that its times can be reported afterwards.
#[derive(Debug, Default)]
pub struct FaultWatch {
    at_s: f64,
    all: Beats,
    /// The writes acknowledged by the shard that the fault is done to, and its count so far.
    shard: Option<(Beats, u64)>,
    errors: ErrorTable,
}

/// Commits over time.
#[derive(Debug, Default)]
struct Beats(Vec<Beat>);

#[derive(Clone, Copy, Debug)]
struct Beat {
    from_s: f64,
    to_s: f64,
    committed: u64,
}

impl FaultWatch {
    /// For a fault that is planned for `at_s` seconds after the opening of the window.
    pub fn new(at_s: f64) -> Self {
        FaultWatch { at_s, ..FaultWatch::default() }
    }

    /// `of_shard`: what was acknowledged so far whose home is the shard that the fault is done to, if that is known.
    pub fn add(&mut self, interval: &MeasuredInterval, of_shard: Option<u64>) {
        let (from_s, to_s) = (interval.begins_s, interval.begins_s + interval.length_s);
        let is_measured = interval.phase == Phase::Measured;
        if let Some(count) = of_shard {
            let (beats, counted) = self.shard.get_or_insert_default();
            let committed = count.saturating_sub(std::mem::replace(counted, count));
            beats.0.extend(is_measured.then_some(Beat { from_s, to_s, committed }));
        }
        if !is_measured {
            return;
        }
        if to_s > self.at_s + ROUNDING_S {
            self.errors.add(&interval.frame.errors);
        }
        self.all.0.push(Beat { from_s, to_s, committed: interval.frame.counts().committed });
    }

    /// Writes the times, rates and errors into `facts`, whose `at_s` says when the fault began. Where doing
    /// it took until `done_s`, and the load stood still from some moment before that, that moment is the
    /// fault's: finding the processes of a node and killing them takes its time.
    pub fn tell(&self, facts: &mut FaultFacts, done_s: f64) {
        let began_s = facts.at_s;
        let before = self.all.tps(f64::NEG_INFINITY, began_s).unwrap_or(0.0);
        facts.at_s = match self.all.outage(began_s, before) {
            (from_s, Outage::Until(_) | Outage::ToTheEnd) if from_s <= done_s => from_s,
            _ => began_s,
        };
        let at_s = facts.at_s;
        facts.resolution_s = self.all.resolution_s();
        facts.errors = error_summaries(&self.errors);
        facts.shard = self.shard.as_ref().map(|(beats, _)| beats.after(at_s));
        let ShardOutage { per_s_before, noticed_s, first_success_after_s } = self.all.after(at_s);
        (facts.tps_before, facts.noticed_s) = (per_s_before, noticed_s);
        facts.first_success_after_s = first_success_after_s;
        let Some(first_success_after_s) = first_success_after_s else { return };
        let closes_s = self.all.closes_s();
        let min_tps = facts.tps_before * RECOVERED_SHARE;
        let first_s = at_s + first_success_after_s;
        // An outage ends where an interval with a commit begins; without one, the moment of the fault counts.
        let mut starts = self.all.0.iter().map(|beat| beat.from_s.max(at_s));
        let recovered_s = starts.find(|&from_s| {
            let is_possible =
                from_s + ROUNDING_S >= first_s && from_s + STEADY_S <= closes_s + ROUNDING_S;
            let tps = is_possible.then(|| self.all.tps(from_s, from_s + STEADY_S)).flatten();
            tps.is_some_and(|tps| tps > 0.0 && tps >= min_tps)
        });
        facts.recovered_after_s = recovered_s.map(|from_s| from_s - at_s);
        facts.tps_after = recovered_s.and_then(|from_s| self.all.tps(from_s, closes_s));
    }
}

impl Beats {
    /// The length of an interval.
    fn resolution_s(&self) -> f64 {
        self.0.iter().map(|beat| beat.to_s - beat.from_s).fold(0.0, f64::max)
    }

    fn closes_s(&self) -> f64 {
        self.0.last().map_or(0.0, |beat| beat.to_s)
    }

    /// The shard's outage after a fault.
    fn after(&self, at_s: f64) -> ShardOutage {
        let opens_s = self.0.first().map_or(0.0, |beat| beat.from_s);
        let per_s_before = self.tps(opens_s, at_s).unwrap_or(0.0);
        let resolution_s = self.resolution_s();
        let expected = per_s_before * resolution_s;
        let noticed_s = ((EXPECTED_COMMITS / expected).ceil() + 1.0) * resolution_s;
        let (_, outage) = self.outage(at_s, per_s_before);
        ShardOutage {
            per_s_before,
            noticed_s: noticed_s.min(self.closes_s() - at_s).max(0.0),
            first_success_after_s: match outage {
                Outage::None => Some(0.0),
                Outage::Until(to_s) => Some(to_s - at_s),
                Outage::ToTheEnd => None,
            },
        }
    }

    /// Commits per second of the intervals that begin in a stretch of time.
    fn tps(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let within =
            |beat: &&Beat| beat.from_s + ROUNDING_S >= from_s && beat.to_s <= to_s + ROUNDING_S;
        let (committed, length_s) =
            self.0.iter().filter(within).fold((0, 0.0), |(sum, length_s), beat| {
                (sum + beat.committed, length_s + beat.to_s - beat.from_s)
            });
        (length_s > 0.0).then(|| committed as f64 / length_s)
    }

    /// The longest time without a commit that lies after the fault, and when it began.
    fn outage(&self, at_s: f64, tps_before: f64) -> (f64, Outage) {
        let mut longest = (0.0, at_s, Outage::None);
        let mut outage_start: Option<f64> = None;
        let mut end = |from_s: f64, to_s: f64, outage: Outage| {
            let length_s = to_s - from_s;
            if length_s * tps_before >= EXPECTED_COMMITS && length_s > longest.0 {
                longest = (length_s, from_s, outage);
            }
        };
        for beat in self.0.iter().filter(|beat| beat.to_s > at_s + ROUNDING_S) {
            match (beat.committed, outage_start) {
                (0, None) => outage_start = Some(beat.from_s.max(at_s)),
                (0, Some(_)) | (_, None) => {}
                (_, Some(from_s)) => {
                    end(from_s, beat.from_s, Outage::Until(beat.from_s));
                    outage_start = None;
                }
            }
        }
        if let (Some(from_s), Some(last)) = (outage_start, self.0.last()) {
            end(from_s, last.to_s, Outage::ToTheEnd);
        }
        let mut after = self.0.iter().filter(|beat| beat.to_s > at_s + ROUNDING_S);
        if after.any(|beat| beat.committed > 0) {
            (longest.1, longest.2)
        } else {
            (outage_start.unwrap_or(at_s), Outage::ToTheEnd)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outage {
    /// There was none that chance does not explain.
    None,
    /// Ended this many seconds after the opening of the window.
    Until(f64),
    ToTheEnd,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of a tenth of a second with this number of commits each, for `tenths` tenths.
    fn watch(stretches: &[(u64, usize)]) -> FaultWatch {
        let mut watch = FaultWatch::new(2.0);
        let mut tenth = 0_usize;
        for &(committed, tenths) in stretches {
            for _ in 0..tenths {
                let (from_s, to_s) = (tenth as f64 / 10.0, (tenth + 1) as f64 / 10.0);
                watch.all.0.push(Beat { from_s, to_s, committed });
                tenth += 1;
            }
        }
        watch
    }

    fn fault_facts(stretches: &[(u64, usize)]) -> FaultFacts {
        let mut facts = FaultFacts { at_s: 2.0, ..FaultFacts::default() };
        watch(stretches).tell(&mut facts, 2.0);
        facts
    }

    /// Returns true if the value is there and differs by less than a millionth.
    fn near(value: Option<f64>, wanted: f64) -> bool {
        value.is_some_and(|value| (value - wanted).abs() < 1e-6)
    }

    #[test]
    fn an_outage_is_followed_by_a_slow_start() {
        // 2 s at 500/s, 1.5 s of nothing, 1 s at half of it, then 480/s.
        let facts = fault_facts(&[(50, 20), (0, 15), (25, 10), (48, 30)]);
        assert!(near(Some(facts.tps_before), 500.0), "{facts:?}");
        assert!(near(facts.first_success_after_s, 1.5), "{facts:?}");
        // The first whole second at 450/s or more begins 9 tenths into the slow second.
        assert!(near(facts.recovered_after_s, 2.4), "{facts:?}");
        assert!(facts.tps_after.is_some_and(|tps| tps > 470.0 && tps < 480.0), "{facts:?}");
        assert!(near(Some(facts.resolution_s), 0.1), "{facts:?}");
    }

    #[test]
    fn nothing_happens_to_the_load_when_a_replica_is_lost() {
        let facts = fault_facts(&[(50, 60)]);
        assert!(near(facts.first_success_after_s, 0.0) && near(facts.recovered_after_s, 0.0));
        assert!(near(facts.tps_after, 500.0), "{facts:?}");
        // 50 commits in a tenth of a second: one that is empty is noticed wherever it begins.
        assert!(near(Some(facts.noticed_s), 0.2), "{facts:?}");
    }

    #[test]
    fn who_never_comes_back_has_no_times() {
        let facts = fault_facts(&[(50, 21), (0, 39)]);
        assert_eq!(facts.first_success_after_s, None);
        assert_eq!((facts.recovered_after_s, facts.tps_after), (None, None));
        let slow = fault_facts(&[(50, 20), (0, 10), (20, 30)]);
        assert!(near(slow.first_success_after_s, 1.0), "{slow:?}");
        assert_eq!((slow.recovered_after_s, slow.tps_after), (None, None));
        let late = fault_facts(&[(50, 20), (0, 20), (50, 9)]);
        assert!(near(late.first_success_after_s, 2.0), "{late:?}");
        assert_eq!((late.recovered_after_s, late.tps_after), (None, None), "less than a second");
        let just = fault_facts(&[(50, 20), (0, 20), (50, 10)]);
        assert!(near(just.recovered_after_s, 2.0) && near(just.tps_after, 500.0), "{just:?}");
    }

    #[test]
    fn pauses_that_chance_explains_are_no_outage() {
        // Ten commits a second: three empty tenths in a row are nothing.
        let facts = fault_facts(&[(1, 30), (0, 3), (1, 27)]);
        assert!(near(facts.first_success_after_s, 0.0), "{facts:?}");
        assert!(near(Some(facts.noticed_s), 1.1), "{facts:?}");
        let facts = fault_facts(&[(1, 30), (0, 12), (1, 27)]);
        assert!(near(facts.first_success_after_s, 2.2), "{facts:?}");
    }

    #[test]
    fn commits_right_after_the_fault_do_not_end_an_outage_that_follows() {
        let facts = fault_facts(&[(50, 22), (0, 10), (50, 30)]);
        assert!(near(facts.first_success_after_s, 1.2), "{facts:?}");
        assert!(near(facts.recovered_after_s, 1.2), "{facts:?}");
    }

    #[test]
    fn a_fault_that_takes_its_time_is_when_the_load_feels_it() {
        let mut facts = FaultFacts { at_s: 2.0, ..FaultFacts::default() };
        let slow = watch(&[(50, 26), (0, 10), (50, 30)]);
        slow.tell(&mut facts, 3.0);
        assert!(near(Some(facts.at_s), 2.6) && near(facts.first_success_after_s, 1.0), "{facts:?}");
        let mut facts = FaultFacts { at_s: 2.0, ..FaultFacts::default() };
        slow.tell(&mut facts, 2.3);
        assert!(near(Some(facts.at_s), 2.0) && near(facts.first_success_after_s, 1.6), "{facts:?}");
    }

    #[test]
    fn a_database_that_did_nothing_before_has_not_recovered() {
        let facts = fault_facts(&[(0, 60)]);
        assert_eq!((facts.tps_before, facts.recovered_after_s), (0.0, None));
        assert_eq!(facts.first_success_after_s, None);
        assert!(near(Some(facts.noticed_s), 4.0), "what could be noticed is finite: {facts:?}");
    }

    #[test]
    fn a_shard_is_away_while_the_others_go_on() {
        let mut watch = watch(&[(50, 60)]);
        let shard = super::tests::watch(&[(10, 20), (0, 25), (10, 15)]);
        watch.shard = Some((shard.all, 0));
        let mut facts = FaultFacts { at_s: 2.0, ..FaultFacts::default() };
        watch.tell(&mut facts, 2.0);
        let shard = facts.shard.expect("the shard");
        assert!(near(facts.first_success_after_s, 0.0), "{:?}", facts.first_success_after_s);
        assert!(near(shard.first_success_after_s, 2.5), "{shard:?}");
        assert!(near(Some(shard.per_s_before), 100.0), "{shard:?}");
    }
}
