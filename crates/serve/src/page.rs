//! The page itself: a shell, a style and scripts without any framework, all inside the binary.

use crate::routes::not_found;
use axum::extract::Path;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

/// Nothing but this server's own scripts and styles; nothing frames the page.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Papers bring their script and style along. They are in a sandbox: what a server's message might smuggle
/// into one could not ask this server for anything.
pub(crate) const PAPER_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; sandbox allow-scripts allow-downloads allow-popups";

const SCRIPT: &str = "text/javascript; charset=utf-8";

pub(crate) async fn shell() -> Html<&'static str> {
    Html(include_str!("../page/page.html"))
}

pub(crate) async fn part(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "style.css" => ("text/css; charset=utf-8", include_str!("../page/style.css")),
        "main.js" => (SCRIPT, include_str!("../page/main.js")),
        "charts.js" => (SCRIPT, include_str!("../page/charts.js")),
        "elements.js" => (SCRIPT, include_str!("../page/elements.js")),
        "live.js" => (SCRIPT, include_str!("../page/live.js")),
        "history.js" => (SCRIPT, include_str!("../page/history.js")),
        "words.js" => (SCRIPT, include_str!("../page/words.js")),
        _ => return not_found(),
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
