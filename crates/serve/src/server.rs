//! Listening, in its own thread or in the caller's; what is requested, and who answers it.

use crate::follow::Follower;
use crate::gate::{Gate, Verdict};
use crate::{ServeError, Token, metrics, pages};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener as TokioListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, watch};

/// Time for the open pages to take the last news when the server ends.
const GOODBYE: Duration = Duration::from_secs(2);
/// Connections at once, half-open ones among them.
const CONNECTIONS: usize = 64;
/// Time limit of a request's head, and of a connection's wait for the next one.
const HEADER_WITHIN: Duration = Duration::from_secs(5);
/// Descriptors below the limit that the page leaves to what is measured in its process.
const RESERVED: u64 = 64;
const BREATH: Duration = Duration::from_millis(100);
/// Lower than that of the loops that make load (nice value).
const PRIORITY: i32 = 10;

#[derive(Clone, Debug)]
pub struct Settings {
    pub runs: PathBuf,
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The user's own token; without one a token is drawn.
    pub token: Option<Token>,
    /// Names of this machine by which the page may be addressed, alongside `localhost` and plain addresses.
    pub names: Vec<String>,
}

/// A server that has its port and does not answer yet.
#[derive(Debug)]
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    settings: Settings,
}

impl BoundServer {
    /// Takes the port.
    ///
    /// # Errors
    /// When the address can be reached from other machines and the settings have no token,
    /// or when it can't be listened on.
    pub fn bind(settings: Settings) -> Result<BoundServer, ServeError> {
        let listen = settings.listen;
        if !listen.ip().is_loopback() && settings.token.is_none() {
            let message = format!(
                "{listen} can be reached from other machines, so the page needs your own token."
            );
            return Err(ServeError::new(message).with_hint(
                "Give one in DYNO_SERVE_TOKEN, or listen on 127.0.0.1 and come by `ssh -L`.",
            ));
        }
        let token = match &settings.token {
            Some(token) => token.clone(),
            None => Token::generate()?,
        };
        let bound = TcpListener::bind(listen).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = bound.map_err(|error| cannot_listen(listen, &error))?;
        Ok(BoundServer { listener, address, token, settings })
    }

    /// The address that it listens on, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the page with the generated token, which grants access. A token that the user has chosen is left
    /// out.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let token = if self.settings.token.is_some() { "" } else { self.token.expose() };
        format!("http://{address}/?token={token}")
    }

    /// Answers in another thread until [`RunningServer`] is dropped.
    pub fn start(self) -> Result<RunningServer, ServeError> {
        let (stop, stopped) = watch::channel(false);
        let thread = thread::Builder::new()
            .name("serve".to_owned())
            .spawn(move || self.serve_connections(stopped))
            .map_err(|error| no_thread(&error))?;
        Ok(RunningServer { stop, thread: Some(thread) })
    }

    fn serve_connections(self, stopped: watch::Receiver<bool>) -> Result<(), ServeError> {
        // The priority is that of this thread only; it is a courtesy, so it may fail.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), PRIORITY);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| no_thread(&error))?;
        let gate = Gate::new(self.token, self.address.port(), self.settings.names)?;
        let app = App::new(self.settings.runs, gate, stopped.clone());
        let answered = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            accept(&listener, &router(app), stopped).await;
            io::Result::Ok(())
        });
        runtime.shutdown_background();
        answered.map_err(|error| cannot_listen(self.address, &error))
    }
}

/// Has the page's connections come on top of the descriptors that this process may have without them, as far as the
/// system allows; returns the number from which on they belong to what is measured.
fn descriptors() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    let raised = soft.saturating_add(2 * CONNECTIONS as u64);
    limit.current = Some(limit.maximum.map_or(raised, |hard| raised.min(hard)));
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(RESERVED)
}

/// Answers connections until it is stopped; those that stay open for long after that are cut off.
async fn accept(listener: &TokioListener, router: &Router, stopped: watch::Receiver<bool>) {
    let (seats, descriptors) = (Arc::new(Semaphore::new(CONNECTIONS)), descriptors());
    let accepting = async {
        while let Ok(seat) = Arc::clone(&seats).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) if (stream.as_raw_fd() as u64) < descriptors => {
                    let attending = attend(stream, router.clone(), stopped.clone());
                    tokio::spawn(async move {
                        attending.await;
                        drop(seat);
                    });
                }
                Ok(_) => {}
                // Such as no descriptor left: one has to be closed first.
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        }
    };
    select(pin!(accepting), pin!(wait_for_stop(&mut stopped.clone()))).await;
    let _ = tokio::time::timeout(GOODBYE, seats.acquire_many(CONNECTIONS as u32)).await;
}

/// Answers what one connection asks.
async fn attend(stream: TcpStream, router: Router, mut stopped: watch::Receiver<bool>) {
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WITHIN)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut answered = pin!(answered);
    if let Either::Right(_) = select(answered.as_mut(), pin!(wait_for_stop(&mut stopped))).await {
        answered.as_mut().graceful_shutdown();
        let _ = answered.await;
    }
}

async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // An error: who could tell it is gone.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> ServeError {
    ServeError::new(format!("dyno can't listen on {address}: {error}."))
        .with_hint("Choose another address or port with `--listen`; port 0 takes a free one.")
}

fn no_thread(error: &io::Error) -> ServeError {
    ServeError::new(format!("The page can't be served: {error}."))
        .with_hint("Look at the limits of this user with `ulimit -a`.")
}

/// A server that answers. Dropping it tells the open pages what happened last, then stops it.
#[derive(Debug)]
pub struct RunningServer {
    stop: watch::Sender<bool>,
    thread: Option<thread::JoinHandle<Result<(), ServeError>>>,
}

impl RunningServer {
    /// Waits until it fails or another thread ends the process.
    pub fn wait(mut self) -> Result<(), ServeError> {
        match self.thread.take().map(thread::JoinHandle::join) {
            Some(Ok(answered)) => answered,
            // It has panicked; the panic's message is on the terminal already.
            Some(Err(_)) => {
                Err(ServeError::new("The page's server ended.").with_hint("Start it again."))
            }
            None => Ok(()),
        }
    }

    /// Returns what stops the server, such as at a signal; [`RunningServer::wait`] then returns.
    pub fn stopper(&self) -> impl FnOnce() + Send + 'static {
        let stop = self.stop.clone();
        move || {
            stop.send_replace(true);
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Pages that can be open at once: each has the run folder looked at.
const SEATS: usize = 32;

pub(crate) struct App {
    pub(crate) runs: PathBuf,
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) seats: Arc<Semaphore>,
    /// Papers are made one at a time: they take a processor that may be measured on.
    pub(crate) press: Arc<Mutex<()>>,
    /// The state of `/metrics` since the last request.
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

/// The addresses of the page, all behind the gate.
pub(crate) fn router(app: Arc<App>) -> Router {
    let pages = ["/", "/history", "/compare"];
    let router =
        pages.into_iter().fold(Router::new(), |router, path| router.route(path, get(pages::shell)));
    router
        .route("/page/{name}", get(pages::page_asset))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/live", get(pages::live))
        .route("/api/trial", get(pages::trial))
        .route("/api/runs", get(pages::runs))
        .route("/api/compare", get(pages::compare))
        .route("/paper", get(pages::paper))
        .route("/runs/{run}/{*file}", get(pages::file))
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
            let cookie = app.gate.set_cookie();
            let headers = [(header::LOCATION, path.clone()), (header::SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Verdict::WrongHost => refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "This page is not served under that name. Use the address that dyno printed, or start it with --allow-host NAME.\n",
        ),
        Verdict::NoToken => refuse(
            StatusCode::UNAUTHORIZED,
            "This page needs its token. Open the address that dyno printed when it started: it ends with ?token=...\n",
        ),
        Verdict::OtherSite => refuse(
            StatusCode::FORBIDDEN,
            "Papers are made only for who asks in the page itself. Open /history and follow its links.\n",
        ),
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
    let policy = HeaderValue::from_static(pages::POLICY);
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    response
}

/// An answer that is a status and its reason.
fn refuse(status: StatusCode, reason: &'static str) -> Response {
    (status, reason).into_response()
}

pub(crate) fn not_found() -> Response {
    refuse(StatusCode::NOT_FOUND, "There is no such page or file.\n")
}
