//! Ctrl-C.

use crate::watch::given_up;
use dyno_engine::Control;
use dyno_reactor::unless;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

/// The signal that came first. Signals belong to the whole process, so does this.
static FIRST: AtomicU8 = AtomicU8::new(SIGINT as u8);

static CAME: OnceLock<Instant> = OnceLock::new();

/// Time for which questions continue after a signal: a healthy server has answered by then.
const ANSWER_GRACE: Duration = Duration::from_secs(2);
/// Longest time after a signal until the process ends, whatever it waits for.
const END_WITHIN: Duration = Duration::from_millis(9500);

/// Work that is done to its end although a signal has come: it waits for no server of the user.
static HELD: AtomicU64 = AtomicU64::new(0);

/// While it lives, the process is not ended before its time.
pub struct ProcessHeld(());

/// Lets this process end after a signal only when the returned value is dropped.
pub fn hold_process() -> ProcessHeld {
    HELD.fetch_add(1, Ordering::Relaxed);
    ProcessHeld(())
}

impl Drop for ProcessHeld {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The answer to a question; `None` once a signal has come and the answer does not follow soon, or when it is given up.
pub async fn unless_stopped<F: Future>(question: F) -> Option<F::Output> {
    unless(|| came_before(ANSWER_GRACE) || given_up().is_some(), question).await
}

/// True after the first Ctrl-C or SIGTERM, for work that is not a trial.
pub fn has_come() -> bool {
    CAME.get().is_some()
}

/// Returns true if that is this long ago, for work that had better be ended properly.
pub fn came_before(grace: Duration) -> bool {
    CAME.get().is_some_and(|came| came.elapsed() >= grace)
}

/// The exit code of a process that a signal has stopped: 130 after Ctrl-C, 143 after SIGTERM.
pub fn exit_code() -> u8 {
    128 + FIRST.load(Ordering::Relaxed)
}

/// The signals that this process ignores, a bit each from 1 on: its parent has said so, as `nohup` does, and a shell
/// without job control for what it starts in the background.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Calls `stop` at Ctrl-C and where the terminal is lost, unless the parent has that ignored, and at SIGTERM
/// always; the second one ends the process at once.
pub fn on_interrupt(stop: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let ignored = ignored();
    let heeded = [SIGINT, SIGHUP].into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0);
    let mut signals = Signals::new(heeded.chain([SIGTERM]))?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut signals = signals.forever();
        if let Some(signal) = signals.next() {
            FIRST.store(signal as u8, Ordering::Relaxed);
            let _ = CAME.set(Instant::now());
            stop();
        }
        if let Some(signal) = signals.next() {
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// Says `kept` at Ctrl-C or SIGTERM and calls `stop`; the process ends within ten seconds then, at the second
/// one at once.
pub fn end_on_interrupt(
    kept: &'static str,
    stop: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    // A process may execute several runs, one after the other.
    static MESSAGE: Once = Once::new();
    on_interrupt(move || {
        MESSAGE.call_once(|| {
            crate::output::talk(&format!("Stopping; {kept}. Once more ends at once."));
        });
        stop();
        std::thread::spawn(|| {
            while !came_before(END_WITHIN) || HELD.load(Ordering::Relaxed) > 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
            crate::output::talk(
                "Ended without waiting for a server that does not answer; what was stored until now is kept.",
            );
            std::process::exit(i32::from(exit_code()))
        });
    })
}

/// Lets Ctrl-C and SIGTERM stop the trial; see [`end_on_interrupt`].
pub fn stop_on_interrupt(control: Arc<Control>) -> std::io::Result<()> {
    end_on_interrupt("what was measured is kept", move || control.stop())
}
