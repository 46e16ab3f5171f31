//! Ctrl-C.

use dyno_engine::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The signal that came first. Signals belong to the whole process, so does this.
static FIRST: AtomicU8 = AtomicU8::new(SIGINT as u8);

static CAME: OnceLock<Instant> = OnceLock::new();

/// True after the first Ctrl-C or SIGTERM, for work that is no trial.
pub fn has_come() -> bool {
    CAME.get().is_some()
}

/// True when that is this long ago, for work that had better be ended properly.
pub fn came_before(grace: Duration) -> bool {
    CAME.get().is_some_and(|came| came.elapsed() >= grace)
}

/// The exit code of a process that a signal has stopped: 130 after Ctrl-C, 143 after SIGTERM.
pub fn exit_code() -> u8 {
    128 + FIRST.load(Ordering::Relaxed)
}

/// Calls `stop` at Ctrl-C or SIGTERM, also where the parent has these ignored; the second one ends
/// the process at once.
pub fn on_interrupt(stop: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
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

/// Lets Ctrl-C and SIGTERM stop the trial; the second one ends the process at once.
pub fn stop_on_interrupt(control: Arc<Control>) -> std::io::Result<()> {
    on_interrupt(move || {
        crate::output::talk("Stopping; what was measured is kept. Once more ends at once.");
        control.stop();
    })
}
