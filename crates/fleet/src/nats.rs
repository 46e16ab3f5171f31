//! The connection to NATS: a thread of its own with a runtime of its own, beside the loops that make load.

use crate::call::Caller;
use crate::error::{FleetError, FleetResult};
use crate::key::FleetKey;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use dyno_facts::SecretUrl;
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

const CONNECT: Duration = Duration::from_secs(10);
/// The longest pause between two attempts to connect again.
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// `nats://HOST:4222` or `tls://HOST:4222`, with user and password where needed; servers of a cluster are joined
    /// by commas.
    pub url: SecretUrl,
    /// The password or the token, where the URL has none.
    pub secret: Option<NatsSecret>,
    /// A file with credentials (JWT and key).
    pub credentials: Option<PathBuf>,
    /// PEM certificates that sign the server's; without them the system's.
    pub authority: Option<PathBuf>,
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The fleet's: what is not sealed with it is not heard.
    pub key: FleetKey,
}

/// The secret beside a user's name; Debug hides it.
#[derive(Clone)]
pub enum NatsSecret {
    Password(String),
    Token(String),
}

impl std::fmt::Debug for NatsSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NatsSecret")
    }
}

impl NatsOptions {
    pub fn new(url: impl Into<String>) -> Self {
        NatsOptions {
            url: SecretUrl::new(url),
            secret: None,
            credentials: None,
            authority: None,
            certificate: None,
            key: FleetKey::OPEN,
        }
    }

    /// True where the connection is refused unless it is encrypted.
    pub fn is_tls(&self) -> bool {
        let is_asked = self.authority.is_some() || self.certificate.is_some();
        is_asked || self.url.expose().split(',').all(|url| url.trim().starts_with("tls://"))
    }

    /// The servers without users: a token may stand in their place.
    pub fn shown(&self) -> String {
        let host = |url: &str| match url.rsplit_once('@') {
            Some((_, host)) => host.to_owned(),
            None => url.to_owned(),
        };
        let url = self.url.redacted();
        url.split(',').map(|url| host(url.trim())).collect::<Vec<_>>().join(",")
    }

    /// The addresses without logins, and the login of the first that has one.
    fn servers(&self) -> FleetResult<(Vec<ServerAddr>, Option<Login>)> {
        let mut login = None;
        let mut servers = Vec::new();
        for url in self.url.expose().split(',').map(str::trim) {
            let wrong = |why: &str| {
                let url = NatsOptions::new(url).shown();
                FleetError::new(format!("The NATS server `{url}` can't be understood: {why}."))
                    .with_hint("Write it as nats://HOST:4222, or tls://HOST:4222.")
            };
            let address: ServerAddr =
                url.parse().map_err(|_| wrong("it is no URL of a NATS server"))?;
            if address.is_websocket() {
                return Err(wrong("dyno speaks NATS without websockets"));
            }
            let mut plain = address.clone().into_inner();
            let cleared = plain.set_username("").and_then(|()| plain.set_password(None));
            cleared.map_err(|()| wrong("it has no host"))?;
            if let (Some(user), None) = (address.username(), &login) {
                login = Some((decoded(user), address.password().map(decoded)));
            }
            servers.push(ServerAddr::from_url(plain).map_err(|_| wrong("it has no host"))?);
        }
        Ok((servers, login))
    }

    fn login(&self, login: Option<Login>) -> FleetResult<ConnectOptions> {
        let options = ConnectOptions::new();
        Ok(match (login, &self.secret) {
            (Some((user, Some(password))), _) => options.user_and_password(user, password),
            (Some((user, None)), Some(NatsSecret::Password(password))) => {
                options.user_and_password(user, password.clone())
            }
            // What stands there may be a token: it isn't shown.
            (Some((_, None)), _) => {
                return Err(FleetError::new("The URL of NATS names a user without a password.")
                    .with_hint("Set DYNO_NATS_PASSWORD; a token goes to DYNO_NATS_TOKEN."));
            }
            (None, Some(NatsSecret::Token(token))) => options.token(token.clone()),
            (None, _) => options,
        })
    }

    async fn connect(&self, events: Sender<&'static str>) -> FleetResult<Client> {
        let (servers, login) = self.servers()?;
        let mut options = self.login(login)?;
        if let Some(file) = &self.credentials {
            options = options.credentials_file(file).await.map_err(|error| {
                FleetError::new(format!("{} can't be used: {error}.", file.display()))
                    .with_hint("It must be a file with NATS credentials: a JWT and a key.")
            })?;
        }
        if let Some(file) = &self.authority {
            options = options.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let was_lost = AtomicBool::new(false);
        let connecting = options
            .name("dyno")
            .require_tls(self.is_tls())
            .connection_timeout(CONNECT)
            .ping_interval(Duration::from_secs(5))
            .reconnect_delay_callback(|attempt| {
                PAUSE_MAX.min(Duration::from_millis(100) * attempt as u32)
            })
            .event_callback(move |event| {
                let told = match event {
                    // The first connection is no news.
                    Event::Connected => {
                        let was_lost = was_lost.swap(false, Ordering::Relaxed);
                        was_lost.then_some("The connection to NATS stands again.")
                    }
                    Event::Disconnected => {
                        was_lost.store(true, Ordering::Relaxed);
                        Some("The connection to NATS is lost; it is being made again.")
                    }
                    _ => None,
                };
                if let Some(told) = told {
                    let _ = events.send(told);
                }
                std::future::ready(())
            })
            .connect(servers);
        let url = self.shown();
        let connected = tokio::time::timeout(CONNECT, connecting).await;
        let connected = connected.map_err(|_| {
            FleetError::new(format!("The NATS server {url} did not answer within 10 s."))
        })?;
        connected.map_err(|error| {
            let failed = FleetError::new(format!("NATS can't be reached at {url}: {error}."));
            match error.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => failed
                    .with_hint("Give user and password in the URL or in DYNO_NATS_PASSWORD, a token in DYNO_NATS_TOKEN, or --nats-creds."),
                ConnectErrorKind::Tls => failed
                    .with_hint("--nats-ca names the certificate that signs the server's."),
                _ => failed.with_hint("Start one there: `nats-server`."),
            }
        })
    }
}

type Login = (String, Option<String>);

/// Undoes percent-encoding; invalid codes stay.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// A connection to NATS. Its thread ends with it.
pub(crate) struct Link {
    pub(crate) caller: Caller,
    runtime: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Connects once; later losses are mended without end. `events` gets sentences about them.
    pub(crate) fn open(options: &NatsOptions, events: Sender<&'static str>) -> FleetResult<Link> {
        let (options, key) = (options.clone(), options.key.clone());
        let system = |error: std::io::Error| {
            FleetError::new(format!("The system refused what NATS needs: {error}."))
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(system)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let (opened, open) = channel();
        let thread = std::thread::Builder::new().name("nats".to_owned()).spawn(move || {
            runtime.block_on(async {
                let connected = options.connect(events).await;
                let is_connected = connected.is_ok();
                let _ = opened.send(connected);
                if is_connected {
                    let _ = ended.await;
                }
            });
        });
        let thread = thread.map_err(system)?;
        let client = open.recv().map_err(|_| ended_thread())??;
        let caller = Caller { client, key };
        Ok(Link { caller, runtime: handle, end: Some(end), thread: Some(thread) })
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.runtime.spawn(task).abort_handle()
    }

    /// Runs a task to its end; not to be called on the thread of NATS itself.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> FleetResult<T> {
        let (sender, receiver) = channel();
        self.runtime.spawn(async move {
            let _ = sender.send(task.await);
        });
        receiver.recv().map_err(|_| ended_thread())
    }
}

pub(crate) fn ended_thread() -> FleetError {
    FleetError::new("The thread for NATS has ended.")
}

impl Drop for Link {
    fn drop(&mut self) {
        // The last messages must leave before the connection ends.
        let client = self.caller.client.clone();
        let _ = self.wait(async move {
            let _ = tokio::time::timeout(Duration::from_secs(1), client.flush()).await;
        });
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_leave_the_addresses() {
        let options = NatsOptions::new("nats://u:p%40%2f%zz@h:5000, nats://k");
        let (servers, login) = options.servers().expect("both are URLs");
        let urls: Vec<&str> = servers.iter().map(ServerAddr::as_url_str).collect();
        assert_eq!(urls, ["nats://h:5000", "nats://k"]);
        assert_eq!(login, Some(("u".to_owned(), Some("p@/%zz".to_owned()))));
        assert!(!options.is_tls());
        assert!(!format!("{options:?}").contains("p%40"));
    }

    #[test]
    fn encryption_is_asked_for_all_servers_or_by_certificates() {
        assert!(NatsOptions::new("tls://a,tls://b").is_tls());
        assert!(!NatsOptions::new("tls://a,nats://b").is_tls());
        let authority = Some(PathBuf::from("ca.pem"));
        assert!(NatsOptions { authority, ..NatsOptions::new("nats://a") }.is_tls());
    }

    #[test]
    fn what_is_no_nats_server_is_refused_without_its_password() {
        for url in ["http://u:geheim@h", "ws://u:geheim@h:1"] {
            let error = NatsOptions::new(url).servers().expect_err(url);
            assert!(error.hint.is_some() && !error.message.contains("geheim"), "{error}");
        }
        let options = NatsOptions::new("nats://token@h");
        let (_, login) = options.servers().expect("it is a URL");
        let error = options.login(login).expect_err("a password is missing");
        assert_eq!(error.message, "The URL of NATS names a user without a password.");
        assert_eq!(options.shown(), "h");
    }
}
