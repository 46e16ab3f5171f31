//! Several numbers of workers in one command line of a drop-in, such as `1,2,4`: each is a run of its own, and a table
//! ends them.

use crate::exit::Exit;
use dyno_engine::TrialResult;
use dyno_facts::format::{grouped, ms, short};
use dyno_facts::text_table;

/// What a run at one number of workers has measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepLevel {
    workers: u32,
    tps: f64,
    qps: f64,
    mean_us: f64,
    p95_us: f64,
    errors: u64,
}

impl SweepLevel {
    pub fn of(workers: u32, result: &TrialResult) -> Self {
        let (frame, latency) = (&result.total, result.total.latency());
        let work = frame.work();
        let seconds = (result.length() as f64 / 1e9).max(1e-9);
        SweepLevel {
            workers,
            tps: frame.counts().committed as f64 / seconds,
            qps: (work.reads + work.writes + work.others) as f64 / seconds,
            mean_us: latency.mean() / 1e3,
            p95_us: latency.percentile(95.0) as f64 / 1e3,
            errors: frame.errors.total(),
        }
    }
}

/// The numbers of a list such as `1,2,4`; `None` where there is only one, or something else.
pub fn levels(text: &str) -> Option<Vec<u32>> {
    let levels: Option<Vec<u32>> =
        text.split(',').map(|number| number.trim().parse().ok()).collect();
    levels.filter(|levels| levels.len() > 1)
}

/// Executes a run for each level until one fails, and says the table. `run` leaves what it has measured.
pub fn sweep(
    what: &str,
    levels: &[u32],
    mut run: impl FnMut(u32, &mut Option<SweepLevel>) -> Exit,
) -> (Exit, String) {
    let mut measured = Vec::new();
    let mut exit = Exit::Done;
    for &level in levels {
        let mut own = None;
        exit = run(level, &mut own);
        measured.extend(own);
        if exit != Exit::Done {
            break;
        }
    }
    (exit, table(what, &measured))
}

fn table(what: &str, levels: &[SweepLevel]) -> String {
    let row = |level: &SweepLevel| {
        vec![
            level.workers.to_string(),
            short(level.tps),
            short(level.qps),
            ms(level.mean_us),
            ms(level.p95_us),
            grouped(level.errors),
        ]
    };
    let rows: Vec<Vec<String>> = levels.iter().map(row).collect();
    let titles =
        [what, "transactions/s", "statements/s", "mean, ms", "95th percentile, ms", "errors"];
    format!("\n{}", text_table(&titles, &rows, |_| true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_sweep() {
        assert_eq!(levels("1,2, 4"), Some(vec![1, 2, 4]));
        for other in ["8", "", "1,x", "1,"] {
            assert_eq!(levels(other), None, "{other}");
        }
    }

    #[test]
    fn a_sweep_ends_with_its_first_failure() {
        let level = |workers| SweepLevel {
            workers,
            tps: 1_000.0 * f64::from(workers),
            qps: 20_000.0,
            mean_us: 1_500.0,
            p95_us: 2_000.0,
            errors: 3,
        };
        let mut executed = Vec::new();
        let (exit, table) = sweep("threads", &[1, 2, 4], |workers, measured| {
            executed.push(workers);
            *measured = Some(level(workers)).filter(|_| workers == 1);
            if workers == 1 { Exit::Done } else { Exit::Failed }
        });
        assert_eq!((exit, executed), (Exit::Failed, vec![1, 2]));
        let lines: Vec<&str> = table.trim().lines().map(str::trim).collect();
        assert_eq!(lines.len(), 2, "{table}");
        assert!(lines[0].starts_with("threads") && lines[1].starts_with('1'), "{table}");
        assert!(lines[1].contains("20,000") && lines[1].contains("1.50"), "{table}");
    }
}
