//! What is asked for, and who answers it.

use crate::follow::Follower;
use crate::gate::{Gate, Verdict};
use crate::{files, history, live, metrics, page};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore, watch};

/// Pages that can be open at once: each has the run folder looked at.
const SEATS: usize = 32;

pub(crate) struct App {
    pub(crate) runs: PathBuf,
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) seats: Arc<Semaphore>,
    /// Papers are made one at a time: they take a processor that may be measured on.
    pub(crate) press: Arc<Mutex<()>>,
    /// What `/metrics` knows from the last time it was asked.
    pub(crate) metrics: Mutex<Follower>,
    gate: Gate,
}

impl App {
    pub(crate) fn new(runs: PathBuf, gate: Gate, stopped: watch::Receiver<bool>) -> Arc<App> {
        Arc::new(App {
            metrics: Mutex::new(Follower::new(&runs, None)),
            seats: Arc::new(Semaphore::new(SEATS)),
            press: Arc::default(),
            runs,
            stopped,
            gate,
        })
    }
}

pub(crate) fn router(app: Arc<App>) -> Router {
    let pages = ["/", "/history", "/compare"];
    let router =
        pages.into_iter().fold(Router::new(), |router, path| router.route(path, get(page::shell)));
    router
        .route("/page/{name}", get(page::part))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/live", get(live::live))
        .route("/api/trial", get(live::trial))
        .route("/api/runs", get(history::runs))
        .route("/api/compare", get(history::compare))
        .route("/paper", get(history::paper))
        .route("/runs/{run}/{*file}", get(files::file))
        .route("/metrics", get(metrics::metrics))
        .fallback(|| async { not_found() })
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

/// Nothing is answered before the gate has spoken; no answer goes without the headers that keep other
/// sites away.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let verdict = app.gate.judge(request.uri(), request.headers());
    let mut response = match &verdict {
        Verdict::Welcome => next.run(request).await,
        Verdict::Again(path) => {
            let headers = [(header::LOCATION, path.clone()), (header::SET_COOKIE, app.gate.set_cookie())];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Verdict::WrongHost => (
            StatusCode::MISDIRECTED_REQUEST,
            "This page is not served under that name. Use the address that dyno printed, or start it with --allow-host NAME.\n",
        )
            .into_response(),
        Verdict::NoToken => (
            StatusCode::UNAUTHORIZED,
            "This page needs its token. Open the address that dyno printed when it started: it ends with ?token=...\n",
        )
            .into_response(),
        Verdict::OtherSite => (
            StatusCode::FORBIDDEN,
            "Papers are made only for who asks in the page itself. Open /history and follow its links.\n",
        )
            .into_response(),
    };
    let headers = response.headers_mut();
    if matches!(verdict, Verdict::NoToken | Verdict::WrongHost) {
        // Strangers keep no place.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let own = HeaderValue::from_static(page::POLICY);
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(own);
    response
}

pub(crate) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "There is no such page or file.\n").into_response()
}
