//! `data/tx_summary.csv`: what BenchmarkSQL's R scripts compute from `result.csv`, computed while it
//! is written, from the same times in milliseconds.

use std::collections::BTreeMap;
use std::fmt::Write;

dyno_core::named! {
    /// The types of `result.csv`, in the order of the summary.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Type {
        NewOrder = "NEW_ORDER",
        Payment = "PAYMENT",
        OrderStatus = "ORDER_STATUS",
        StockLevel = "STOCK_LEVEL",
        /// What the terminal waits for: the queueing.
        Delivery = "DELIVERY",
        /// What is done in the background.
        DeliveryBackground = "DELIVERY_BG",
    }
}

impl Type {
    /// What the 90th percentile must not exceed, seconds (clauses 5.2.5.3 and 2.7.2.2).
    fn limit(self) -> &'static str {
        match self {
            Type::StockLevel => "20.0",
            Type::DeliveryBackground => "80.0",
            _ => "5.0",
        }
    }
}

/// A line of `result.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) kind: Type,
    /// From the start of the session to the end of the transaction.
    pub(super) elapsed_ms: u64,
    /// From when it was due to its end.
    pub(super) latency_ms: u64,
    /// From its begin to its end.
    pub(super) dblatency_ms: u64,
    /// The rollback that the profile wants.
    pub(super) is_rolled_back: bool,
    /// Districts without an order.
    pub(super) skipped: u32,
    pub(super) is_error: bool,
}

/// Latencies in milliseconds, exactly: how often each of them was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Milliseconds {
    counts: BTreeMap<u64, u64>,
    count: u64,
}

impl Milliseconds {
    fn add(&mut self, latency_ms: u64) {
        *self.counts.entry(latency_ms).or_default() += 1;
        self.count += 1;
    }

    /// The value at a rank from 0.
    fn at(&self, rank: u64) -> u64 {
        let mut before = 0;
        for (&latency_ms, &count) in &self.counts {
            before += count;
            if rank < before {
                return latency_ms;
            }
        }
        self.max().unwrap_or(0)
    }

    /// The 90th percentile as R computes it: between two ranks in proportion.
    fn p90(&self) -> Option<f64> {
        let last = self.count.checked_sub(1)?;
        // In integers: tenths of a rank.
        let tenths = last as u128 * 9;
        let rank = (tenths / 10) as u64;
        let part = (tenths % 10) as f64 / 10.0;
        let [low, high] = [rank, (rank + 1).min(last)].map(|rank| self.at(rank) as f64);
        Some(low + (high - low) * part)
    }

    fn max(&self) -> Option<u64> {
        self.counts.last_key_value().map(|(&latency_ms, _)| latency_ms)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfType {
    count: u64,
    rolled_back: u64,
    errors: u64,
    skipped: u64,
    /// Of transactions without an error.
    latencies: Milliseconds,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary([OfType; 6]);

impl Summary {
    /// Takes a line of `result.csv`.
    pub(super) fn take(&mut self, line: &Line) {
        let of_type = &mut self.0[line.kind as usize];
        of_type.count += 1;
        of_type.rolled_back += u64::from(line.is_rolled_back);
        of_type.skipped += u64::from(line.skipped);
        match line.is_error {
            true => of_type.errors += 1,
            false => of_type.latencies.add(line.latency_ms),
        }
    }

    fn of(&self, kind: Type) -> &OfType {
        &self.0[kind as usize]
    }

    /// New-Orders that were completed, by a commit or by the rollback that is asked for.
    fn orders(&self) -> u64 {
        let OfType { count, errors, .. } = self.of(Type::NewOrder);
        count - errors
    }

    /// Committed transactions; a Delivery counts once.
    fn committed(&self) -> u64 {
        let foreground = Type::ALL.into_iter().filter(|&kind| kind != Type::DeliveryBackground);
        let committed = |kind| {
            let OfType { count, rolled_back, errors, .. } = self.of(kind);
            count - rolled_back - errors
        };
        foreground.map(committed).sum()
    }

    /// The text of `tx_summary.csv` for a session of `minutes`. `tpmc_limit` is the tpmC that keying
    /// and think times allow, where there are any.
    pub(super) fn csv(&self, minutes: f64, tpmc_limit: Option<f64>) -> String {
        let mut text = String::from(
            "tx_name,tx_count,tx_percent,tx_90th,tx_max,tx_limit,tx_rbk,tx_error,tx_dskipped\n",
        );
        let foreground = Type::ALL.into_iter().filter(|&kind| kind != Type::DeliveryBackground);
        let all: u64 = foreground.map(|kind| self.of(kind).count).sum();
        for kind in Type::ALL {
            let OfType { count, rolled_back, errors, skipped, latencies } = self.of(kind);
            let is_background = kind == Type::DeliveryBackground;
            let columns = [
                kind.name().to_owned(),
                count.to_string(),
                given((!is_background).then(|| percent(*count, all)).flatten()),
                given(latencies.p90().map(seconds)),
                given(latencies.max().map(|max_ms| seconds(max_ms as f64))),
                kind.limit().to_owned(),
                given((kind == Type::NewOrder).then(|| percent(*rolled_back, *count)).flatten()),
                errors.to_string(),
                given(is_background.then(|| skipped.to_string())),
            ];
            text.push_str(&columns.join(","));
            text.push('\n');
        }
        let per_minute = |count: u64| if minutes > 0.0 { count as f64 / minutes } else { 0.0 };
        let tpmc = per_minute(self.orders());
        let share = tpmc_limit.filter(|&limit| limit > 0.0).map(|limit| 100.0 * tpmc / limit);
        let share = given(share.map(|share| format!("{share:.3}%")));
        // Writing to a String can't fail.
        let _ = writeln!(text, "tpmC,{tpmc:.2},{share},N/A,N/A,N/A,N/A,N/A,N/A");
        let total = per_minute(self.committed());
        let _ = writeln!(text, "tpmTotal,{total:.2},N/A,N/A,N/A,N/A,N/A,N/A,N/A");
        text
    }
}

fn given(text: Option<String>) -> String {
    text.unwrap_or_else(|| "N/A".to_owned())
}

fn percent(part: u64, all: u64) -> Option<String> {
    (all > 0).then(|| format!("{:.3}%", 100.0 * part as f64 / all as f64))
}

fn seconds(milliseconds: f64) -> String {
    format!("{:.3}s", milliseconds / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: Type, latency_ms: u64) -> Line {
        Line {
            kind,
            elapsed_ms: 0,
            latency_ms,
            dblatency_ms: latency_ms,
            is_rolled_back: false,
            skipped: 0,
            is_error: false,
        }
    }

    #[test]
    fn percentiles_are_those_of_r() {
        // R: quantile(c(...), 0.9).
        for (latencies, p90) in [
            (vec![7], 7.0),
            (vec![1, 2], 1.9),
            (vec![10, 20, 30, 40, 50, 60, 70, 80, 90, 100], 91.0),
            ((1..=11).collect(), 10.0),
            (vec![5; 40], 5.0),
        ] {
            let mut milliseconds = Milliseconds::default();
            latencies.iter().rev().for_each(|&latency_ms| milliseconds.add(latency_ms));
            let got = milliseconds.p90().unwrap();
            assert!((got - p90).abs() < 1e-9, "{latencies:?}: {got}");
        }
        assert_eq!(Milliseconds::default().p90(), None);
    }

    #[test]
    fn what_failed_is_no_throughput_and_a_delivery_counts_once() {
        let mut summary = Summary::default();
        for latency_ms in [10, 20, 30, 40] {
            summary.take(&line(Type::NewOrder, latency_ms));
        }
        summary.take(&Line { is_rolled_back: true, ..line(Type::NewOrder, 50) });
        summary.take(&Line { is_error: true, ..line(Type::NewOrder, 60_000) });
        summary.take(&line(Type::Payment, 1_234));
        summary.take(&line(Type::Delivery, 0));
        summary.take(&Line { skipped: 3, ..line(Type::DeliveryBackground, 99) });
        let expected = "\
tx_name,tx_count,tx_percent,tx_90th,tx_max,tx_limit,tx_rbk,tx_error,tx_dskipped
NEW_ORDER,6,75.000%,0.046s,0.050s,5.0,16.667%,1,N/A
PAYMENT,1,12.500%,1.234s,1.234s,5.0,N/A,0,N/A
ORDER_STATUS,0,0.000%,N/A,N/A,5.0,N/A,0,N/A
STOCK_LEVEL,0,0.000%,N/A,N/A,20.0,N/A,0,N/A
DELIVERY,1,12.500%,0.000s,0.000s,5.0,N/A,0,N/A
DELIVERY_BG,1,N/A,0.099s,0.099s,80.0,N/A,0,3
tpmC,10.00,N/A,N/A,N/A,N/A,N/A,N/A,N/A
tpmTotal,12.00,N/A,N/A,N/A,N/A,N/A,N/A,N/A
";
        assert_eq!(summary.csv(0.5, None), expected);
        // One warehouse with think times.
        let text = summary.csv(0.5, Some(12.86));
        assert!(text.contains("\ntpmC,10.00,77.760%,N/A"), "{text}");
    }

    #[test]
    fn nothing_is_no_number() {
        let text = Summary::default().csv(0.0, Some(12.86));
        assert!(text.contains("\nNEW_ORDER,0,N/A,N/A,N/A,5.0,N/A,0,N/A\n"), "{text}");
        assert!(text.contains("\ntpmC,0.00,0.000%,"), "{text}");
    }
}
