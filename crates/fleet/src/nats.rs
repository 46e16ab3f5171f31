//! The connection to NATS: its own thread with its own runtime, alongside the loops that make load.
//!
//! The key of a fleet: whoever has it may order load and report what was measured, and no one else.
//!
//! Every message has a seal: HMAC-SHA256 over what it is about and the message itself. A question is about
//! the subject that it is sent to, and holds a number used once and the end of its time; an answer is about the seal of
//! its question. So no message that was overheard can be sent again, to another load generator or to another question.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::client::Request;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, RequestErrorKind, ServerAddr};
use dyno_core::hex;
use dyno_facts::SecretUrl;
use futures_util::StreamExt;
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::percent_decode_str;
use sha2::Sha256;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::protocol::{Answer, Ask, Hello, Question, SentQuestion, check_name, pack, unpack};
use crate::{FleetError, FleetResult};

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

/// The secret alongside a user's name; Debug hides it.
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

    /// Returns true if the connection is refused unless it is encrypted.
    pub fn is_tls(&self) -> bool {
        let is_required = self.authority.is_some() || self.certificate.is_some();
        is_required || self.url.expose().split(',').all(|url| url.trim().starts_with("tls://"))
    }

    /// The servers without users: a token may be given in their place.
    pub fn shown(&self) -> String {
        let url = self.url.redacted();
        let hosts = url.split(',').map(str::trim);
        let hosts = hosts.map(|url| url.rsplit_once('@').map_or(url, |(_, host)| host));
        hosts.collect::<Vec<_>>().join(",")
    }

    /// The addresses without logins, and the login of the first that has one.
    fn servers(&self) -> FleetResult<(Vec<ServerAddr>, Option<Login>)> {
        let mut login = None;
        let mut servers = Vec::new();
        for url in self.url.expose().split(',').map(str::trim) {
            let address: ServerAddr =
                url.parse().map_err(|_| refuse_url(url, "it isn't the URL of a NATS server"))?;
            if address.is_websocket() {
                return Err(refuse_url(url, "dyno speaks NATS without websockets"));
            }
            let mut plain = address.clone().into_inner();
            let cleared = plain.set_username("").and_then(|()| plain.set_password(None));
            cleared.map_err(|()| refuse_url(url, "it has no host"))?;
            if let (Some(user), None) = (address.username(), &login) {
                login = Some((decode_percent(user), address.password().map(decode_percent)));
            }
            let server = ServerAddr::from_url(plain);
            servers.push(server.map_err(|_| refuse_url(url, "it has no host"))?);
        }
        Ok((servers, login))
    }

    fn options_with_login(&self, login: Option<Login>) -> FleetResult<ConnectOptions> {
        let options = ConnectOptions::new();
        Ok(match (login, &self.secret) {
            (Some((user, Some(password))), _) => options.user_and_password(user, password),
            (Some((user, None)), Some(NatsSecret::Password(password))) => {
                options.user_and_password(user, password.clone())
            }
            // The user may be a token: it isn't shown.
            (Some((_, None)), _) => {
                return Err(FleetError::new("The URL of NATS names a user without a password.")
                    .with_hint("Set DYNO_NATS_PASSWORD; a token goes to DYNO_NATS_TOKEN."));
            }
            (None, Some(NatsSecret::Token(token))) => options.token(token.clone()),
            (None, _) => options,
        })
    }

    async fn connect_client(&self, events: Sender<&'static str>) -> FleetResult<Client> {
        let (servers, login) = self.servers()?;
        let mut options = self.options_with_login(login)?;
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
                let notice = match event {
                    // The first connection isn't worth a notice.
                    Event::Connected => {
                        let was_lost = was_lost.swap(false, Ordering::Relaxed);
                        was_lost.then_some("The connection to NATS is back.")
                    }
                    Event::Disconnected => {
                        was_lost.store(true, Ordering::Relaxed);
                        Some("The connection to NATS is lost; dyno is reconnecting.")
                    }
                    _ => None,
                };
                if let Some(notice) = notice {
                    let _ = events.send(notice);
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

/// The refusal of a server's URL, which is shown without its login.
fn refuse_url(url: &str, why: &str) -> FleetError {
    let url = NatsOptions::new(url).shown();
    FleetError::new(format!("The NATS server `{url}` can't be understood: {why}."))
        .with_hint("Write it as nats://HOST:4222, or tls://HOST:4222.")
}

/// Undoes percent-encoding; invalid codes stay.
fn decode_percent(text: &str) -> String {
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
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(refused_by_system)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let (opened, open) = channel();
        let thread = std::thread::Builder::new().name("nats".to_owned()).spawn(move || {
            runtime.block_on(async {
                let connected = options.connect_client(events).await;
                let is_connected = connected.is_ok();
                let _ = opened.send(connected);
                if is_connected {
                    let _ = ended.await;
                }
            });
        });
        let thread = thread.map_err(refused_by_system)?;
        let client = open.recv().map_err(|_| ended_thread())??;
        let caller = Caller { client, key };
        Ok(Link { caller, runtime: handle, end: Some(end), thread: Some(thread) })
    }

    /// Starts a task on the thread of NATS; it runs until its end, or until the handle aborts it.
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

fn refused_by_system(error: std::io::Error) -> FleetError {
    FleetError::new(format!("The system refused what NATS needs: {error}."))
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

/// Bytes of a key, and of a seal.
const BYTES: usize = 32;

pub(crate) type Stamp = [u8; BYTES];

/// A secret of a fleet; Debug hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct FleetKey([u8; BYTES]);

impl std::fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetKey")
    }
}

/// The subject of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SealContext<'a> {
    QuestionTo(&'a str),
    AnswerTo(&'a Stamp),
}

impl FleetKey {
    /// The publicly known key that fleets without a key use.
    pub const OPEN: FleetKey = FleetKey([0; BYTES]);

    /// A new random key.
    pub fn draw() -> FleetResult<FleetKey> {
        Ok(FleetKey(random_bytes()?))
    }

    /// Reads the text of a key: 64 hexadecimal digits.
    ///
    /// # Errors
    /// When it is none. What it is instead is not said: it may be another secret.
    pub fn parse(text: &str) -> FleetResult<FleetKey> {
        let text = text.trim();
        if text.len() != 2 * BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refuse_key());
        }
        let mut key = [0; BYTES];
        for (place, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16)
                .map_err(|_| refuse_key())?;
        }
        match FleetKey(key) {
            FleetKey::OPEN => Err(refuse_key()),
            key => Ok(key),
        }
    }

    /// Reads a file with a key that only its owner can read.
    pub fn read(path: &Path) -> FleetResult<FleetKey> {
        use std::os::unix::fs::PermissionsExt;
        let show = path.display();
        let failed =
            |error| FleetError::new(format!("The fleet's key {show} can't be read: {error}."));
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        // systemd hands credentials out by lists of rights, which look like those of a group.
        let is_credential = std::env::var_os("CREDENTIALS_DIRECTORY")
            .is_some_and(|folder| path.starts_with(folder));
        if mode & 0o077 != 0 && !is_credential {
            let message = format!("Others can read the fleet's key {show}, so it isn't secret.");
            return Err(FleetError::new(message).with_hint(format!(
                "`chmod 600 {show}`, and make another key if others were here."
            )));
        }
        FleetKey::parse(&std::fs::read_to_string(path).map_err(failed)?)
    }

    /// Writes the key to a new file that only its owner can read.
    pub fn write(&self, path: &Path) -> FleetResult<()> {
        let mut text = hex(&self.0);
        text.push('\n');
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
            FleetError::new(format!("The key can't be written to {}: {error}.", path.display()))
                .with_hint("Name a file that does not exist yet.")
        })
    }

    /// The seal of a message, and the message with it in front, as it is sent.
    pub(crate) fn seal(&self, about: SealContext<'_>, packet: &[u8]) -> (Stamp, Vec<u8>) {
        let stamp: Stamp = self.compute_mac(about, packet).finalize().into_bytes().into();
        (stamp, [&stamp[..], packet].concat())
    }

    /// The message behind a seal and the seal; `None` if it was not made with this key, or about something else.
    pub(crate) fn open<'a>(
        &self,
        about: SealContext<'_>,
        sealed: &'a [u8],
    ) -> Option<(Stamp, &'a [u8])> {
        let (stamp, packet) = sealed.split_first_chunk::<BYTES>()?;
        self.compute_mac(about, packet).verify_slice(stamp).is_ok().then_some((*stamp, packet))
    }

    fn compute_mac(&self, about: SealContext<'_>, packet: &[u8]) -> Hmac<Sha256> {
        let mac: Hmac<Sha256> =
            Hmac::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        // A subject holds no zero byte, and a stamp has its length.
        let (kind, subject) = match about {
            SealContext::QuestionTo(subject) => (&b"question\0"[..], subject.as_bytes()),
            SealContext::AnswerTo(stamp) => (&b"answer\0"[..], &stamp[..]),
        };
        mac.chain_update(kind).chain_update(subject).chain_update(b"\0").chain_update(packet)
    }
}

fn refuse_key() -> FleetError {
    FleetError::new("The fleet's key must have 64 hexadecimal digits.")
        .with_hint("`dyno fleet key FILE` makes one.")
}

/// A number that is used once.
pub(crate) fn nonce() -> FleetResult<String> {
    Ok(hex(&random_bytes::<16>()?))
}

fn random_bytes<const N: usize>() -> FleetResult<[u8; N]> {
    let mut bytes = [0; N];
    let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match count {
        Ok(count) if count == N => Ok(bytes),
        _ => Err(FleetError::new("The system has no random bytes.")),
    }
}

pub(crate) type CallResult = Result<(Answer, Vec<u8>), CallError>;

/// Time limit of one answer, after which the question is sent again.
pub(crate) const ONE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    NoResponder,
    TimedOut,
    Other(String),
}

/// The asker, and the key that all messages are sealed with.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) key: FleetKey,
}

/// The answers to a call.
#[derive(Default)]
pub(crate) struct CallAnswers {
    /// Generators with the time that each has taken.
    pub(crate) found: Vec<(Hello, Duration)>,
    /// Reasons why others do not work, in sentences.
    pub(crate) refused: Vec<String>,
}

/// Calls the load generators at `subject` for `time`.
pub(crate) async fn discover_generators(
    caller: &Caller,
    subject: String,
    time: Duration,
) -> FleetResult<CallAnswers> {
    let Caller { client, key } = caller;
    let inbox = client.new_inbox();
    let subscribed = client.subscribe(inbox.clone()).await;
    let mut answers = subscribed.map_err(|error| failed_call(&error.to_string()))?;
    let question = SentQuestion::new(&Question { run: String::new(), ask: Ask::Who })?;
    let (stamp, call) = key.seal(SealContext::QuestionTo(&subject), &pack(&question, b""));
    let called = client.publish_with_reply(subject, inbox, call.into()).await;
    called.map_err(|error| failed_call(&error.to_string()))?;
    let began_at = Instant::now();
    let deadline = began_at + time;
    let mut called = CallAnswers::default();
    while let Ok(Some(message)) = timeout_at(deadline, answers.next()).await {
        // NATS answers with an empty message that no one listens.
        if message.status.is_some() {
            break;
        }
        let opened = key.open(SealContext::AnswerTo(&stamp), &message.payload);
        match opened.and_then(|(_, packet)| unpack::<Answer>(packet).ok()) {
            Some((Answer::Here(hello), _)) if is_plain(&hello) => {
                called.found.push((*hello, began_at.elapsed()));
            }
            Some((Answer::Refused { why }, _)) => called.refused.push(why),
            _ => {}
        }
    }
    Ok(called)
}

fn failed_call(error: &str) -> FleetError {
    FleetError::new(format!("Load generators can't be called: {error}."))
        .with_hint("The user needs the right to publish and subscribe dyno.> and _INBOX.>.")
}

/// Checks the id, which becomes part of a subject, and the name, which is shown: both come from outside.
fn is_plain(hello: &Hello) -> bool {
    [&hello.id, &hello.name].iter().all(|word| check_name("load generator", word).is_ok())
}

pub(crate) async fn send_question(
    caller: &Caller,
    subject: String,
    question: &Question,
    time: Duration,
) -> CallResult {
    let Caller { client, key } = caller;
    let sent_question =
        SentQuestion::new(question).map_err(|error| CallError::Other(error.message))?;
    let (stamp, sealed) = key.seal(SealContext::QuestionTo(&subject), &pack(&sent_question, b""));
    let request = Request::new().payload(sealed.into()).timeout(Some(time));
    let answered = client.send_request(subject, request).await;
    let message = answered.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => CallError::NoResponder,
        RequestErrorKind::TimedOut => CallError::TimedOut,
        _ => CallError::Other(error.to_string()),
    })?;
    let opened = key.open(SealContext::AnswerTo(&stamp), &message.payload);
    let (_, packet) = opened.ok_or_else(|| {
        CallError::Other("its answer is not sealed with the fleet's key".to_owned())
    })?;
    let (answer, body) = unpack(packet).map_err(|error| CallError::Other(error.message))?;
    Ok((answer, body.to_vec()))
}

/// Asks several at the same time: silent ones take no time from the others.
pub(crate) async fn send_to_all(
    caller: &Caller,
    subjects: Vec<String>,
    question: &Question,
    time: Duration,
) -> Vec<CallResult> {
    join_all(subjects.into_iter().map(|subject| send_question(caller, subject, question, time)))
        .await
}

/// Asks until there is an answer, for `patience`. The question must be harmless when asked twice.
pub(crate) async fn send_until_answered(
    caller: &Caller,
    subject: String,
    question: &Question,
    patience: Duration,
) -> CallResult {
    let deadline = Instant::now() + patience;
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match send_question(caller, subject.clone(), question, ONE.min(remaining)).await {
            Ok(answer) => return Ok(answer),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(CallError::TimedOut) => {}
            // After a loss of the connection it takes a moment until all listen again.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NatsOptions;
    use crate::nats::Link;
    use dyno_testkit::{Nats, server_or_skip};
    use std::sync::mpsc::channel;

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
        let error = options.options_with_login(login).expect_err("a password is missing");
        assert_eq!(error.message, "The URL of NATS names a user without a password.");
        assert_eq!(options.shown(), "h");
    }

    #[test]
    fn a_seal_holds_for_one_key_one_message_and_one_place() {
        let (key, other) = (FleetKey::draw().expect("drawn"), FleetKey::draw().expect("drawn"));
        let (stamp, sealed) = key.seal(SealContext::QuestionTo("dyno.default.call"), b"who?");
        fn open_question(key: &FleetKey, to: &str, sealed: &[u8]) -> Option<Vec<u8>> {
            key.open(SealContext::QuestionTo(to), sealed).map(|(_, packet)| packet.to_vec())
        }
        assert_eq!(
            open_question(&key, "dyno.default.call", &sealed).as_deref(),
            Some(&b"who?"[..])
        );
        assert_eq!(open_question(&other, "dyno.default.call", &sealed), None, "another key");
        assert_eq!(open_question(&FleetKey::OPEN, "dyno.default.call", &sealed), None, "no key");
        assert_eq!(
            open_question(&key, "dyno.default.generator.a", &sealed),
            None,
            "somebody else's"
        );
        assert!(key.open(SealContext::AnswerTo(&stamp), &sealed).is_none(), "no answer");
        for place in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[place] ^= 1;
            assert_eq!(open_question(&key, "dyno.default.call", &forged), None, "{place}");
            assert_eq!(open_question(&key, "dyno.default.call", &sealed[..place]), None, "{place}");
        }
        let (_, answer) = key.seal(SealContext::AnswerTo(&stamp), b"me");
        assert!(key.open(SealContext::AnswerTo(&stamp), &answer).is_some());
        assert!(
            key.open(SealContext::AnswerTo(&[0; BYTES]), &answer).is_none(),
            "of another question"
        );
    }

    #[test]
    fn a_key_is_a_file_of_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("fleet.key");
        let key = FleetKey::draw().expect("drawn");
        key.write(&file).expect("written");
        assert_eq!(FleetKey::read(&file), Ok(key.clone()));
        assert!(key.write(&file).is_err(), "no key is written over another");
        let mut permissions = std::fs::metadata(&file).expect("there").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
        permissions.set_mode(0o640);
        std::fs::set_permissions(&file, permissions).expect("set");
        let error = FleetKey::read(&file).expect_err("others can read it");
        assert!(error.message.starts_with("Others can read"), "{error}");
        for text in ["", "0", &"0".repeat(64), &"g".repeat(64), &"a".repeat(63)] {
            assert!(FleetKey::parse(text).is_err(), "{text}");
        }
        assert_eq!(format!("{key:?}"), "FleetKey");
    }

    #[test]
    fn all_are_asked_before_anybody_answers() {
        let nats = server_or_skip!(Nats, "load generators that are called together");
        let link = Link::open(&NatsOptions::new(nats.url("")), channel().0).expect("it answers");
        let caller = link.caller.clone();
        let answers = link
            .wait(async move {
                let subjects: Vec<String> =
                    (0..8).map(|number| format!("asked.{number}")).collect();
                let mut listening = Vec::new();
                for subject in &subjects {
                    listening
                        .push(caller.client.subscribe(subject.clone()).await.expect("a subject"));
                }
                caller.client.flush().await.expect("the server knows the subjects");
                let answering = async {
                    let messages = join_all(listening.iter_mut().map(StreamExt::next)).await;
                    for message in messages.into_iter().flatten() {
                        let reply = message.reply.expect("a question");
                        let about = SealContext::QuestionTo(&message.subject);
                        let opened = caller.key.open(about, &message.payload);
                        let (stamp, _) = opened.expect("it is sealed");
                        let answer = pack(&Answer::Done, b"");
                        let (_, answer) = caller.key.seal(SealContext::AnswerTo(&stamp), &answer);
                        caller.client.publish(reply, answer.into()).await.expect("an answer");
                    }
                };
                let patience = Duration::from_secs(60);
                let who = Question { run: String::new(), ask: Ask::Who };
                let asking = send_to_all(&caller, subjects, &who, patience);
                let (answers, ()) = futures_util::future::join(asking, answering).await;
                // It listens and says nothing, as a process that hangs.
                let time = Duration::from_millis(50);
                let silent = send_question(&caller, "asked.0".to_owned(), &who, time).await;
                assert_eq!(silent, Err(CallError::TimedOut));
                answers
            })
            .expect("they are called");
        assert_eq!(answers, vec![Ok((Answer::Done, Vec::new())); 8]);
    }
}
