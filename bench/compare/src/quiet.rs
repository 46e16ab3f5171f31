//! Checks that only the measured programs take the machine's CPU.

use std::cell::Cell;
use std::thread::sleep;
use std::time::Duration;

/// Time for which the machine is observed.
const LOOK: Duration = Duration::from_millis(300);
/// Looks until a busy machine is taken unchanged.
const LOOKS: u32 = 100;
/// Share of all cores that a quiet machine may use; a server that has just been loaded still writes.
const QUIET: f64 = 0.06;
/// Share after a round, when the server ends what it has begun.
const STILL_QUIET: f64 = 0.2;
/// Looks after a round: 64 sessions of PostgreSQL that end unmap a gigabyte each, for a second or two.
const LOOKS_AFTER: u32 = 10;

/// The machine is looked at between rounds, when no client runs.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    repeated: Cell<u32>,
    disturbed: Cell<u32>,
    never_quiet: Cell<u32>,
}

impl Quiet {
    /// Waits for a quiet machine, half a minute at most.
    pub(crate) fn wait(&self) {
        for _ in 0..LOOKS {
            if busy_share() <= QUIET {
                return;
            }
        }
        self.never_quiet.set(self.never_quiet.get() + 1);
    }

    /// Returns true if the round that has just ended counts: no other program took the CPU, or it was repeated often
    /// enough.
    pub(crate) fn accepts(&self, may_repeat: bool) -> bool {
        let mut busy = 1.0;
        for _ in 0..LOOKS_AFTER {
            busy = busy_share();
            if busy <= STILL_QUIET {
                return true;
            }
        }
        let (count, end) = if may_repeat {
            (&self.repeated, "it is repeated")
        } else {
            (&self.disturbed, "it counts, as it was repeated often enough")
        };
        count.set(count.get() + 1);
        crate::log(&format!(
            "the cores are {:.0}% busy although the round has ended: {end}",
            busy * 100.0
        ));
        !may_repeat
    }

    pub(crate) fn description(&self) -> String {
        format!(
            "rounds that began on a busy machine {}, repeated because something else took the CPU {}, counted \
             nevertheless {}",
            self.never_quiet.get(),
            self.repeated.get(),
            self.disturbed.get()
        )
    }
}

fn busy_share() -> f64 {
    let before = times();
    sleep(LOOK);
    let after = times();
    let (busy, all) = (after.0 - before.0, after.1 - before.1);
    if all > 0.0 { busy / all } else { 0.0 }
}

/// Busy and all ticks of all cores, stolen ones among the busy.
fn times() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    ticks(text.lines().next().unwrap_or_default())
}

fn ticks(line: &str) -> (f64, f64) {
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    let ticks: Vec<f64> =
        line.split_whitespace().skip(1).take(8).filter_map(|one| one.parse().ok()).collect();
    let total: f64 = ticks.iter().sum();
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    (total - idle, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_busy_and_waiting_for_disks_is_not() {
        assert_eq!(ticks("cpu  10 0 20 50 15 0 0 5 3 0"), (35.0, 100.0));
        assert_eq!(ticks(""), (0.0, 0.0));
    }
}
