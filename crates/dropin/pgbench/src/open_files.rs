//! A connection is an open file, and systems allow few unless they are asked.

use super::refusal::Refusal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open beside the clients' connections: the three standard streams, as pgbench counts.
const OTHERS: u64 = 3;

/// Raises the limit of open files so far that `clients` can connect, as pgbench does since 18.
///
/// # Errors
/// When the system's hard limit is lower.
pub(super) fn allow(clients: u32) -> Result<(), Refusal> {
    let needed = u64::from(clients) + OTHERS;
    // Each client may be alone on its loop, which has an event queue and a log.
    let comfortable = needed * 3 + 64;
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current.filter(|&soft| soft < comfortable) else { return Ok(()) };
    let raised = limit.maximum.map_or(comfortable, |hard| hard.min(comfortable)).max(soft);
    let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
    let allowed = setrlimit(Resource::Nofile, wanted).map_or(soft, |()| raised);
    if allowed >= needed {
        return Ok(());
    }
    Err(Refusal::error(format_args!(
        "need at least {needed} open files, but system limit is {allowed}"
    ))
    .with_hint("Reduce number of clients, or use limit/ulimit to increase the system limit."))
}
