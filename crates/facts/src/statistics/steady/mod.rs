//! Steadiness of a system in the measured window.

use crate::statistics::{mean, median, trend_line};

/// Largest difference between first and last third, as a share of the median.
pub const MOST_DRIFT: f64 = 0.03;
/// Least change of the level, as a share of it.
pub const LEAST_CHANGE: f64 = 0.05;
/// A second below this share of the median is a stall.
pub const STALL_SHARE: f64 = 0.5;
/// Windows with fewer intervals have no verdict.
pub const LEAST_SECONDS: usize = 12;
/// With fewer commits in an interval, half of them can be missing by chance.
const LEAST_COUNT: f64 = 40.0;
/// Seconds depend on their neighbors; sums over blocks hardly do.
const BLOCKS: usize = 60;
/// Least blocks on each side of a change point.
const LEAST_BLOCKS: usize = 5;
/// Standard errors by which two levels differ at a change point.
const CHANGE_ERRORS: f64 = 6.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// Seconds from the opening of the window.
    pub begins_s: f64,
    pub length_s: f64,
    /// Commits.
    pub count: f64,
}

impl Second {
    /// Commits per second.
    fn rate(&self) -> f64 {
        self.count / self.length_s
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steady {
    pub median_per_s: f64,
    /// `None` under [`LEAST_SECONDS`] intervals.
    pub warm_up: Option<WarmUp>,
    pub changes: Vec<LevelShift>,
    /// Seconds below half of the median, neighbors joined.
    pub stalls: Vec<Stall>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// Last third by first, minus 1.
    pub drift: f64,
    /// Theil-Sen slope over the whole window, as a share of the median.
    pub slope: f64,
    /// Two-sided p of no trend.
    pub p: f64,
    /// False when the thirds differ by more than [`MOST_DRIFT`] and the slope agrees with it.
    pub is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelShift {
    pub at_s: f64,
    /// Mean rate since the last change.
    pub before_per_s: f64,
    /// Mean rate until the next change.
    pub after_per_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    pub from_s: f64,
    pub to_s: f64,
    pub lowest_per_s: f64,
}

/// Intervals shorter than half of the longest (the last of an interrupted trial) are left out.
pub fn steady(seconds: &[Second]) -> Steady {
    let longest_s = seconds.iter().map(|second| second.length_s).fold(0.0, f64::max);
    let seconds: Vec<Second> = seconds
        .iter()
        .copied()
        .filter(|second| second.length_s > 0.0 && second.length_s >= longest_s / 2.0)
        .collect();
    let rates: Vec<f64> = seconds.iter().map(Second::rate).collect();
    let Some(median_per_s) = median(&rates) else { return Steady::default() };
    let blocks = blocks(&seconds);
    Steady {
        median_per_s,
        warm_up: warm_up(&rates, &blocks, median_per_s),
        changes: changes(&blocks, median_per_s),
        stalls: stalls(&seconds, median_per_s),
    }
}

/// Sums over neighbors, at most [`BLOCKS`] of them.
fn blocks(seconds: &[Second]) -> Vec<Second> {
    let size = seconds.len().div_ceil(BLOCKS).max(1);
    let full_chunks = seconds.chunks(size).filter(|chunk| chunk.len() == size);
    let blocks = full_chunks.map(|chunk| Second {
        begins_s: chunk[0].begins_s,
        length_s: chunk.iter().map(|second| second.length_s).sum(),
        count: chunk.iter().map(|second| second.count).sum(),
    });
    blocks.collect()
}

fn warm_up(rates: &[f64], blocks: &[Second], median_per_s: f64) -> Option<WarmUp> {
    if rates.len() < LEAST_SECONDS || median_per_s <= 0.0 {
        return None;
    }
    let third = rates.len() / 3;
    let first_per_s = median(&rates[..third])?;
    let last_per_s = median(&rates[rates.len() - third..])?;
    let points: Vec<(f64, f64)> =
        blocks.iter().map(|block| (block.begins_s, block.rate())).collect();
    let line = trend_line(&points)?;
    let (from, to) = (blocks.first()?.begins_s, blocks.last()?.begins_s);
    let drift = (last_per_s - first_per_s) / median_per_s;
    let agrees = line.p < 0.05 && line.slope.signum() == drift.signum();
    Some(WarmUp {
        drift: last_per_s / first_per_s - 1.0,
        slope: line.slope * (to - from) / median_per_s,
        p: line.p,
        is_over: !(drift.abs() > MOST_DRIFT && agrees),
    })
}

/// Binary segmentation: the split that explains most, then the same on both sides.
fn changes(blocks: &[Second], median_per_s: f64) -> Vec<LevelShift> {
    let rates: Vec<f64> = blocks.iter().map(Second::rate).collect();
    let mut ends = vec![0, rates.len()];
    split_levels(&rates, 0, median_per_s, &mut ends);
    ends.sort_unstable();
    let shifts = ends.windows(3).map(|ends| LevelShift {
        at_s: blocks[ends[1]].begins_s,
        before_per_s: mean(&rates[ends[0]..ends[1]]).unwrap_or_default(),
        after_per_s: mean(&rates[ends[1]..ends[2]]).unwrap_or_default(),
    });
    shifts.collect()
}

fn split_levels(rates: &[f64], from: usize, median_per_s: f64, ends: &mut Vec<usize>) {
    if rates.len() < 2 * LEAST_BLOCKS {
        return;
    }
    let splits = (LEAST_BLOCKS..=rates.len() - LEAST_BLOCKS)
        .map(|at| (at, squared_residuals(&rates[..at]) + squared_residuals(&rates[at..])));
    let Some((at, residuals)) = splits.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let (before, after) = rates.split_at(at);
    let step = (mean(after).unwrap_or_default() - mean(before).unwrap_or_default()).abs();
    let noise = (residuals / (rates.len() - 2) as f64).sqrt();
    let error = noise * (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt();
    if step <= LEAST_CHANGE * median_per_s || step <= CHANGE_ERRORS * error || is_slope(rates, at) {
        return;
    }
    ends.push(from + at);
    split_levels(before, from, median_per_s, ends);
    split_levels(after, from + at, median_per_s, ends);
}

/// The sum of the squared differences from the mean.
fn squared_residuals(rates: &[f64]) -> f64 {
    let mean = mean(rates).unwrap_or_default();
    rates.iter().map(|rate| (rate - mean).powi(2)).sum()
}

/// A slow drift is not a change: cut in two, each half climbs as the whole does.
fn is_slope(rates: &[f64], at: usize) -> bool {
    let slopes = [&rates[..at], &rates[at..], rates].map(|part| {
        let points: Vec<(f64, f64)> =
            part.iter().enumerate().map(|(x, rate)| (x as f64, *rate)).collect();
        trend_line(&points).filter(|line| line.p < 0.05).map(|line| line.slope)
    });
    match slopes {
        [Some(a), Some(b), Some(all)] => a.signum() == all.signum() && b.signum() == all.signum(),
        _ => false,
    }
}

/// Seconds below [`STALL_SHARE`] of the median, neighbors joined; none if seconds have too few commits.
fn stalls(seconds: &[Second], median_per_s: f64) -> Vec<Stall> {
    let lengths: Vec<f64> = seconds.iter().map(|second| second.length_s).collect();
    let expected = median_per_s * mean(&lengths).unwrap_or_default();
    if expected < LEAST_COUNT {
        return Vec::new();
    }
    let mut stalls: Vec<Stall> = Vec::new();
    for second in seconds.iter().filter(|second| second.rate() < STALL_SHARE * median_per_s) {
        let to_s = second.begins_s + second.length_s;
        match stalls.last_mut().filter(|last| (second.begins_s - last.to_s).abs() < 1e-3) {
            Some(last) => {
                last.to_s = to_s;
                last.lowest_per_s = last.lowest_per_s.min(second.rate());
            }
            None => {
                stalls.push(Stall { from_s: second.begins_s, to_s, lowest_per_s: second.rate() })
            }
        }
    }
    stalls
}

#[cfg(test)]
mod tests;
