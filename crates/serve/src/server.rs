//! Listening, in a thread of its own or in the caller's.

use crate::gate::Gate;
use crate::routes::{self, App};
use crate::{ServeError, Token};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// How long the open pages have to take the last news when the server ends.
const GOODBYE: Duration = Duration::from_secs(2);
/// Lower than that of the loops that make load (nice value).
const PRIORITY: i32 = 10;

#[derive(Clone, Debug)]
pub struct Settings {
    pub runs: PathBuf,
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The user's own token; without one a token is drawn.
    pub token: Option<Token>,
    /// Names of this machine by which the page may be addressed, beside `localhost` and plain addresses.
    pub names: Vec<String>,
}

/// A server that has its port and does not answer yet.
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    settings: Settings,
}

impl fmt::Debug for BoundServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl BoundServer {
    /// Takes the port.
    ///
    /// # Errors
    /// When the address can be reached from other machines and there is no token of the user's own,
    /// or when it can't be listened on.
    pub fn bind(settings: Settings) -> Result<BoundServer, ServeError> {
        let listen = settings.listen;
        if !listen.ip().is_loopback() && settings.token.is_none() {
            return Err(ServeError::new(
                format!(
                    "{listen} can be reached from other machines, so the page needs a token of your own."
                ),
                "Give one in DYNO_SERVE_TOKEN, or listen on 127.0.0.1 and come by `ssh -L`.",
            ));
        }
        let token = match &settings.token {
            Some(token) => token.clone(),
            None => Token::draw()?,
        };
        let taken = TcpListener::bind(listen).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = taken.map_err(|error| cannot_listen(listen, &error))?;
        Ok(BoundServer { listener, address, token, settings })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the page with its token: whoever knows it may look.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}/?token={}", self.token.expose())
    }

    /// Answers in a thread of its own until [`RunningServer`] is dropped.
    pub fn start(self) -> Result<RunningServer, ServeError> {
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name("serve".to_owned())
            .spawn(move || self.answer(stopped))
            .map_err(|error| no_thread(&error))?;
        Ok(RunningServer { stop, thread: Some(thread) })
    }

    fn answer(self, stopped: watch::Receiver<bool>) -> Result<(), ServeError> {
        // The priority is that of this thread only; it is a courtesy, so it may fail.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), PRIORITY);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| no_thread(&error))?;
        let gate = Gate::new(self.token, self.address.port(), self.settings.names);
        let app = App::new(self.settings.runs, gate, stopped.clone());
        let answered = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let (mut ending, mut patience) = (stopped.clone(), stopped.clone());
            let serving = axum::serve(listener, routes::router(app))
                .with_graceful_shutdown(async move { ended(&mut ending).await });
            let serving = tokio::spawn(async move { serving.await });
            ended(&mut patience).await;
            // Whoever keeps a connection open for longer is cut off.
            let _ = tokio::time::timeout(GOODBYE, serving).await;
            io::Result::Ok(())
        });
        runtime.shutdown_background();
        answered.map_err(|error| cannot_listen(self.address, &error))
    }
}

async fn ended(stop: &mut watch::Receiver<bool>) {
    // An error: who could tell it is gone.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> ServeError {
    ServeError::new(
        format!("dyno can't listen on {address}: {error}."),
        "Choose another address or port with `--listen`; port 0 takes a free one.",
    )
}

fn no_thread(error: &io::Error) -> ServeError {
    ServeError::new(
        format!("The page can't be served: {error}."),
        "Look at the limits of this user with `ulimit -a`.",
    )
}

/// A server that answers. Dropping it tells the open pages what happened last, then stops it.
#[derive(Debug)]
pub struct RunningServer {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl RunningServer {
    /// Waits until it fails or another thread ends the process.
    pub fn wait(mut self) -> Result<(), ServeError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(answered)) => answered,
            // It has panicked; the panic's message is on the terminal already.
            Some(Err(_)) => Err(ServeError::new("The page's server ended.", "Start it again.")),
            None => Ok(()),
        }
    }

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
