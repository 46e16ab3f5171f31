//! The lines of `-P`.

use std::fmt;

/// What one line of `-P` says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProgressLine {
    /// Seconds since the start or, as a time stamp, since 1970.
    pub(super) at_s: f64,
    pub(super) is_timestamp: bool,
    pub(super) tps: f64,
    pub(super) latency_ms: f64,
    pub(super) stddev_ms: f64,
    pub(super) failed: u64,
    /// With `-R`.
    pub(super) lag_ms: Option<f64>,
    /// With `-R` and `-L`.
    pub(super) skipped: Option<u64>,
    /// With `--max-tries`: transactions retried, and retries.
    pub(super) retries: Option<(u64, u64)>,
}

impl fmt::Display for ProgressLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = if self.is_timestamp { 3 } else { 1 };
        write!(
            f,
            "progress: {:.decimals$} s, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
            self.at_s, self.tps, self.latency_ms, self.stddev_ms, self.failed
        )?;
        if let Some(lag_ms) = self.lag_ms {
            write!(f, ", lag {lag_ms:.3} ms")?;
        }
        if let Some(skipped) = self.skipped {
            write!(f, ", {skipped} skipped")?;
        }
        if let Some((retried, retries)) = self.retries {
            write!(f, ", {retried} retried, {retries} retries")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that follows a word of a line.
    fn after(line: &str, word: &str) -> Option<f64> {
        let rest = line.split_once(word)?.1.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse().ok()
    }

    /// The number before a word of a line.
    fn before(line: &str, word: &str) -> Option<u64> {
        line.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
    }

    #[test]
    fn lines_have_every_byte_of_the_originals() {
        for original in include_str!("../golden/progress.txt").lines() {
            let need = |word: &str| after(original, word).unwrap_or_else(|| panic!("{original}"));
            let retries = before(original, " retried").zip(before(original, " retries"));
            let line = ProgressLine {
                at_s: need("progress:"),
                is_timestamp: need("progress:") > 1e6,
                tps: need("s,"),
                latency_ms: need("lat"),
                stddev_ms: need("stddev"),
                failed: before(original, " failed").unwrap_or_else(|| panic!("{original}")),
                lag_ms: after(original, "lag"),
                skipped: before(original, " skipped"),
                retries,
            };
            assert_eq!(line.to_string(), original);
        }
    }
}
