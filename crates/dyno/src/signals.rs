//! Ctrl-C.

use dyno_engine::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;

/// Lets Ctrl-C and SIGTERM stop the trial; the second one ends the process at once.
pub(crate) fn stop_on_interrupt(control: Arc<Control>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if control.is_stopped() {
                std::process::exit(128 + signal);
            }
            crate::output::talk("Stopping; what was measured is kept. Once more ends at once.");
            control.stop();
        }
    })?;
    Ok(())
}
