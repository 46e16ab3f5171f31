//! `/live`: what happens in a run, as server-sent events. Whoever comes late, or comes back, is told
//! everything first.

use crate::follow::{Follower, Update, run_folder, stored};
use crate::history::json;
use crate::routes::{App, not_found};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// How often the run folder is looked at.
const POLL: Duration = Duration::from_millis(500);
/// Something is sent at least this often, so that a page that has gone away is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
pub(crate) struct LiveQuery {
    /// Name of a run; without it the one that is executed.
    run: Option<String>,
}

pub(crate) async fn live(State(app): State<Arc<App>>, Query(wanted): Query<LiveQuery>) -> Response {
    let Ok(seat) = Arc::clone(&app.seats).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "Too many pages are open.").into_response();
    };
    let follower = Follower::new(&app.runs, wanted.run);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(events(follower, app.stopped.clone(), seat)).keep_alive(keep_alive).into_response()
}

#[derive(Debug, Deserialize)]
pub(crate) struct WantedTrial {
    run: String,
    trial: u32,
}

/// `/api/trial`: what was stored of a trial while it ran.
pub(crate) async fn trial(
    State(app): State<Arc<App>>,
    Query(wanted): Query<WantedTrial>,
) -> Response {
    match run_folder(&app.runs, &wanted.run) {
        Some(run) => json(&stored(&run, wanted.trial)),
        None => not_found(),
    }
}

struct Listener {
    follower: Follower,
    waiting: VecDeque<Update>,
    stopped: watch::Receiver<bool>,
    is_first: bool,
    has_ended: bool,
    _seat: OwnedSemaphorePermit,
}

fn events(
    follower: Follower,
    stopped: watch::Receiver<bool>,
    seat: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let waiting = VecDeque::new();
    let listener =
        Listener { follower, waiting, stopped, is_first: true, has_ended: false, _seat: seat };
    stream::unfold(listener, |mut listener| async {
        loop {
            if let Some(update) = listener.waiting.pop_front() {
                let event = Event::default().event(update.name()).data(update.json());
                return Some((Ok(event), listener));
            }
            if listener.has_ended {
                return None;
            }
            let is_stopped = match std::mem::take(&mut listener.is_first) {
                true => false,
                // Whether it is told to stop or whoever could tell it is gone: it ends.
                false => tokio::time::timeout(POLL, listener.stopped.wait_for(|stop| *stop))
                    .await
                    .is_ok(),
            };
            listener.has_ended = is_stopped;
            // Small reads of files that were just written: not worth a thread of their own.
            listener.waiting = listener.follower.poll().into();
            if is_stopped {
                listener.waiting.push_back(Update::Goodbye);
            }
        }
    })
}
