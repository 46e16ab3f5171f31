//! The way to an open session: TLS by `sslmode`, authentication, startup.
//!
//! Cancel requests, each on its own connection.
//!
//! The methods of log-in that a target accepts: `require_auth` and `channel_binding`, as libpq has them.

use super::Settings;
use super::answers::{broken, login_error, unsendable};
use super::link::{Link, MESSAGE_BYTES};
use crate::database::Disclosure;
use crate::net::{Address, ServerHost, TlsMode, Transport, before, random};
use crate::target::{Secret, TargetUrl};
use dyno_core::{Cause, DbError, DbResult, ErrorClass, MILLISECOND, Nanos, SECOND, SessionProof};
use dyno_reactor::{now, sleep_until, timeout};
use dyno_wire::postgres::backend::{Authentication, BackendKey, SaslMechanisms};
use dyno_wire::postgres::frame::tag;
use dyno_wire::postgres::scram::{
    ChannelBinding, ClientFinal, ClientFirst, MECHANISM, MECHANISM_PLUS, ScramError,
    tls_server_end_point,
};
use dyno_wire::postgres::{WireError, backend, frontend, md5_password};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// More iterations of SCRAM are computed alongside the loop.
const LOOP_ITERATIONS: u32 = 20_000;

/// Use of TLS or of channel binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeatureUse {
    Never,
    IfOffered,
    Always,
}

/// The attempts of an `sslmode`, as in libpq. Unix sockets are never encrypted.
fn attempts(mode: TlsMode, address: &Address) -> (FeatureUse, Option<FeatureUse>) {
    match mode {
        _ if matches!(address, Address::Unix(_)) => (FeatureUse::Never, None),
        TlsMode::Disable => (FeatureUse::Never, None),
        TlsMode::Allow => (FeatureUse::Never, Some(FeatureUse::Always)),
        TlsMode::Prefer => (FeatureUse::IfOffered, Some(FeatureUse::Never)),
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => (FeatureUse::Always, None),
    }
}

/// A failed attempt, and whether the other way (with or without TLS) may succeed.
struct Failure {
    error: DbError,
    other_way: bool,
}

/// Opens a session; the key cancels what it executes.
pub(super) async fn open(
    settings: &Settings,
    host: &ServerHost,
    due: Nanos,
) -> DbResult<(Link, Option<BackendKey>)> {
    let (first, second) = attempts(settings.tls.mode, &host.address);
    let failure = match try_connect(settings, host, due, first).await {
        Ok(opened) => return Ok(opened),
        Err(failure) => failure,
    };
    let Some(second) = second.filter(|_| failure.other_way) else {
        return Err(failure.error);
    };
    match try_connect(settings, host, due, second).await {
        Ok(opened) => Ok(opened),
        // The error over TLS counts, unless the server has no TLS.
        Err(other) if second == FeatureUse::Always && other.other_way => Err(other.error),
        Err(_) => Err(failure.error),
    }
}

/// Connects without a log-in, with the target's encryption: for cancel requests.
pub(super) async fn dial(settings: &Settings, host: &ServerHost, due: Nanos) -> DbResult<Link> {
    let (first, _) = attempts(settings.tls.mode, &host.address);
    let mut link = Link::new(Transport::connect(host, due).await?);
    if first != FeatureUse::Never {
        start_tls(&mut link, settings, &host.address, first).await?;
    }
    Ok(link)
}

static OPENED: AtomicU64 = AtomicU64::new(0);

/// Sessions that this process has opened so far, on all servers, also those that have ended.
pub fn sessions_opened() -> u64 {
    OPENED.load(Ordering::Relaxed)
}

async fn try_connect(
    settings: &Settings,
    host: &ServerHost,
    due: Nanos,
    encryption: FeatureUse,
) -> Result<(Link, Option<BackendKey>), Failure> {
    let address = &host.address;
    let transport = Transport::connect(host, due).await;
    let mut link = Link::new(transport.map_err(|error| Failure { error, other_way: false })?);
    if encryption != FeatureUse::Never {
        let started = start_tls(&mut link, settings, address, encryption).await;
        started
            .map_err(|error| Failure { error, other_way: encryption == FeatureUse::IfOffered })?;
    }
    match login(&mut link, settings, address).await {
        Ok(key) => {
            OPENED.fetch_add(1, Ordering::Relaxed);
            Ok((link, key))
        }
        Err(error) => {
            // After "prefer" has fallen back to no TLS, no other way is left.
            let fell_back = encryption == FeatureUse::IfOffered && !link.transport.is_tls();
            let other_way = matches!(error.cause(), Cause::Rejected | Cause::Tls) && !fell_back;
            Err(Failure { error, other_way })
        }
    }
}

async fn start_tls(
    link: &mut Link,
    settings: &Settings,
    address: &Address,
    encryption: FeatureUse,
) -> DbResult<()> {
    link.out.clear();
    frontend::ssl_request(&mut link.out);
    link.transport.send(&link.out).await?;
    link.transport.recv(&mut link.inbox).await.map_err(|error| closed(error, address))?;
    link.out.clear();
    match link.inbox.filled() {
        b"S" => {
            link.inbox.consume(1);
            link.transport.start_tls(&settings.tls, address.tls_name()).await
        }
        b"N" => {
            link.inbox.consume(1);
            match encryption {
                FeatureUse::Always => Err(no_tls(address)),
                FeatureUse::IfOffered | FeatureUse::Never => Ok(()),
            }
        }
        // Bytes behind the S could be an attack.
        [b'S' | b'N', ..] => Err(broken(WireError("it sent more than one letter before TLS"))),
        [b'E', ..] => {
            let (_, body) = link.message().await.map_err(|error| closed(error, address))?;
            let report = backend::report(&body).map_err(broken)?;
            Err(login_error(&report))
        }
        _ => Err(broken(WireError("it did not understand the request for TLS"))),
    }
}

fn no_tls(address: &Address) -> DbError {
    let message = format!("The server at {address} does not offer TLS, which is demanded.");
    DbError::tls(0, *b"08001", message)
        .with_hint("set `ssl = on` on the server, or connect with tls=prefer or tls=disable")
}

/// Sends the startup message and answers the server's requests until it is ready.
async fn login(
    link: &mut Link,
    settings: &Settings,
    address: &Address,
) -> DbResult<Option<BackendKey>> {
    let parameters: Vec<_> =
        settings.startup.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    link.out.clear();
    frontend::startup(&mut link.out, &parameters).map_err(unsendable)?;
    link.transport.send(&link.out).await.map_err(|error| closed(error, address))?;

    let mut login = Login { settings, address, step: Step::Asked, method: "none" };
    let mut key = None;
    loop {
        let (tag, body) = link.message().await.map_err(|error| closed(error, address))?;
        match tag {
            tag::AUTHENTICATION => {
                link.out.clear();
                let request = backend::authentication(&body).map_err(broken)?;
                settings.methods.check(&request, login.method, address)?;
                if matches!(request, Authentication::Cleartext) {
                    Disclosure::ClearText.check(&link.transport, address, settings.opt_ins)?;
                }
                login.answer(request, &link.transport, &mut link.out).await?;
                if !link.out.is_empty() {
                    let result = link.transport.send(&link.out).await;
                    result.map_err(|error| closed(error, address))?;
                }
            }
            tag::ERROR => {
                let report = backend::report(&body).map_err(broken)?;
                return Err(login_error(&report));
            }
            // A note on minor versions and options that dyno does not ask for.
            tag::NEGOTIATE => {}
            tag::BACKEND_KEY => key = Some(backend::backend_key(&body).map_err(broken)?),
            tag::READY if matches!(login.step, Step::Accepted) => {
                link.state.status = backend::ready(&body).map_err(broken)?;
                link.inbox.raise_limit(MESSAGE_BYTES);
                link.proof = Some(SessionProof {
                    tls: link.transport.tls(),
                    method: login.method,
                    process: key.as_ref().map(|key| key.process),
                });
                return Ok(key);
            }
            _ => link.state.aside(tag, &body).map_err(broken)?,
        }
    }
}

/// A connection that ends before the session is open.
fn closed(error: DbError, address: &Address) -> DbError {
    if error.cause() != Cause::Lost {
        return error;
    }
    DbError::unreachable(format!(
        "The server at {address} ended the connection before the log-in was complete."
    ))
    .with_detail(error.message())
    .with_hint("is it a PostgreSQL server, and is it up? Its log may say more")
}

struct Login<'a> {
    settings: &'a Settings,
    address: &'a Address,
    step: Step,
    /// The method with which the server has been answered.
    method: &'static str,
}

enum Step {
    /// Nothing or everything is answered.
    Asked,
    ScramFirst(ClientFirst),
    ScramFinal(ClientFinal),
    Accepted,
}

impl Login<'_> {
    /// Appends the answer to a request, if it needs one.
    async fn answer(
        &mut self,
        request: Authentication<'_>,
        transport: &Transport,
        out: &mut Vec<u8>,
    ) -> DbResult<()> {
        let step = std::mem::replace(&mut self.step, Step::Asked);
        match (request, step) {
            (Authentication::Ok, Step::Asked) => self.step = Step::Accepted,
            (Authentication::Cleartext, Step::Asked) => {
                self.method = "password";
                frontend::password(out, self.password()?).map_err(unsendable)?;
            }
            (Authentication::Md5(salt), Step::Asked) => {
                self.method = "md5";
                let hashed = md5_password(&self.settings.user, self.password()?, salt);
                frontend::password(out, &hashed).map_err(unsendable)?;
            }
            (Authentication::Sasl(offered), Step::Asked) => {
                let binding = self.settings.methods.binding(offered, transport)?;
                let binding = binding.ok_or_else(|| self.unsupported_method())?;
                self.password()?;
                let mechanism;
                (mechanism, self.method) = match binding {
                    ChannelBinding::EndPoint(_) => (MECHANISM_PLUS, BOUND),
                    _ => (MECHANISM, "scram-sha-256"),
                };
                let first = ClientFirst::new("", &random::<18>()?, binding);
                frontend::sasl_initial(out, mechanism, first.message().as_bytes())
                    .map_err(unsendable)?;
                self.step = Step::ScramFirst(first);
            }
            (Authentication::SaslContinue(message), Step::ScramFirst(first)) => {
                let challenge =
                    first.server_first(message).map_err(|error| self.scram_error(&error))?;
                let password = self.password()?;
                let last = if challenge.iterations > LOOP_ITERATIONS {
                    let password = password.to_owned();
                    run_on_thread(move || challenge.answer(&password)).await?
                } else {
                    challenge.answer(password)
                };
                frontend::sasl_response(out, last.message.as_bytes()).map_err(unsendable)?;
                self.step = Step::ScramFinal(last);
            }
            (Authentication::SaslFinal(message), Step::ScramFinal(last)) => {
                last.server_final(message).map_err(|error| self.scram_error(&error))?;
            }
            (Authentication::Unsupported(_), Step::Asked) => return Err(self.unsupported_method()),
            // Also a server that accepts the user before SCRAM has proven that it knows the password.
            _ => return Err(broken(WireError("authentication took an impossible turn"))),
        }
        Ok(())
    }

    /// The given password, or an error that names the user.
    fn password(&self) -> DbResult<&str> {
        self.settings.password.as_ref().map(Secret::reveal).ok_or_else(|| {
            let user = &self.settings.user;
            let message = format!(
                "The server at {} asks for a password for the user {user}, and none is given.",
                self.address
            );
            DbError::rejected(0, *b"28P01", message)
                .with_hint("give it in PGPASSWORD, in ~/.pgpass or in the URL")
        })
    }

    fn scram_error(&self, error: &ScramError) -> DbError {
        let message = format!("The log-in at {} failed: {error}.", self.address);
        DbError::rejected(0, *b"28000", message)
            .with_hint("is this really your server? Check the address, and use tls=verify-full")
    }

    fn unsupported_method(&self) -> DbError {
        let message = format!(
            "The server at {} asks for an authentication method that dyno does not speak.",
            self.address
        );
        DbError::rejected(0, *b"28000", message)
            .with_hint("let this user in with scram-sha-256, md5 or password in pg_hba.conf")
    }
}

/// The result of work that would keep other sessions of the loop waiting.
async fn run_on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> DbResult<T> {
    let thread = thread::Builder::new().name("log-in".to_owned()).spawn(work);
    let thread = thread.map_err(|error| {
        DbError::unreachable(format!("The system refuses a thread for the log-in: {error}."))
    })?;
    while !thread.is_finished() {
        sleep_until(now() + MILLISECOND).await;
    }
    thread.join().map_err(|_| DbError::unreachable("The thread of the log-in has panicked."))
}

/// The time limit for a server to accept a cancel request.
const NOTES_WITHIN: Nanos = SECOND / 2;

/// Cancels the statement of one session; valid while the session lives.
#[derive(Clone)]
pub struct CancelToken {
    pub(super) settings: Arc<Settings>,
    number: u32,
    key: Option<Arc<BackendKey>>,
}

impl CancelToken {
    pub(super) fn new(settings: Arc<Settings>, number: u32, key: Option<BackendKey>) -> Self {
        CancelToken { settings, number, key: key.map(Arc::new) }
    }

    /// The address of the server.
    pub(super) fn address(&self) -> &Address {
        &self.settings.hosts.pick(self.number).address
    }

    /// Asks the server to cancel, and waits until it has taken note, half a second at most. A canceled statement ends
    /// with SQLSTATE 57014.
    pub async fn cancel(&self) -> DbResult<()> {
        let Some(key) = &self.key else {
            return Err(DbError::protocol(
                "The server gave this session no key to cancel it with.",
            )
            .with_class(ErrorClass::Other));
        };
        let host = self.settings.hosts.pick(self.number);
        let due = now().saturating_add(self.settings.connect_timeout);
        before(due, &host.address, async {
            let mut link = dial(&self.settings, host, due).await?;
            frontend::cancel_request(&mut link.out, key.process, &key.secret);
            link.transport.send(&link.out).await?;
            // The server closes the connection silently after the signal.
            let closing = async { while link.transport.recv(&mut link.inbox).await.is_ok() {} };
            let _ = timeout(now() + NOTES_WITHIN, closing).await;
            Ok(())
        })
        .await
    }
}

impl fmt::Debug for CancelToken {
    /// Hides the key, which would let others cancel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelToken")
    }
}

/// The authentication methods of libpq; dyno implements the first four.
const METHODS: [&str; 7] = ["none", "password", "md5", "scram-sha-256", "gss", "sspi", "oauth"];

/// The method when channel binding was part of it.
const BOUND: &str = "scram-sha-256-plus";

#[derive(Clone, Debug)]
pub(super) struct AcceptedMethods {
    /// Text as it is written; `None` accepts all.
    required: Option<String>,
    accepted: Vec<&'static str>,
    binding: FeatureUse,
}

impl AcceptedMethods {
    pub(super) fn from_target(target: &TargetUrl) -> DbResult<Self> {
        let required = target.options.get("require_auth").filter(|text| !text.is_empty());
        let binding = match target.options.get("channel_binding").map(String::as_str) {
            Some("disable") => FeatureUse::Never,
            Some("require") => FeatureUse::Always,
            _ => FeatureUse::IfOffered,
        };
        let accepted = match required {
            Some(list) => accepted(list)?,
            None => METHODS.to_vec(),
        };
        Ok(AcceptedMethods { required: required.cloned(), accepted, binding })
    }

    /// Refuses a request for a method that is not accepted. `answered` is the method that the server has been
    /// answered by before.
    pub(super) fn check(
        &self,
        request: &Authentication<'_>,
        answered: &'static str,
        address: &Address,
    ) -> DbResult<()> {
        let method = match request {
            Authentication::Ok => answered,
            Authentication::Cleartext => "password",
            Authentication::Md5(_) => "md5",
            Authentication::Sasl(offered) if offered.contains(MECHANISM_PLUS) => BOUND,
            Authentication::Sasl(_) => "scram-sha-256",
            Authentication::SaslContinue(_)
            | Authentication::SaslFinal(_)
            | Authentication::Unsupported(_) => return Ok(()),
        };
        if self.binding == FeatureUse::Always && method != BOUND {
            let message = format!(
                "The server at {address} logs in without channel binding, which channel_binding=require demands."
            );
            return Err(refusal_error(message).with_hint(
                "give the user a password of scram-sha-256 and the server TLS, and connect with tls=require or higher",
            ));
        }
        let method = if method == BOUND { "scram-sha-256" } else { method };
        if let Some(required) = &self.required
            && !self.accepted.contains(&method)
        {
            let message = format!(
                "The server at {address} logs in by the method {method}, which require_auth={required} excludes."
            );
            return Err(
                refusal_error(message).with_hint("name the method in require_auth if it is meant")
            );
        }
        Ok(())
    }

    /// The binding to answer an offer with; `None` if nothing that is offered will do.
    fn binding(
        &self,
        offered: SaslMechanisms<'_>,
        transport: &Transport,
    ) -> DbResult<Option<ChannelBinding>> {
        let is_bound = offered.contains(MECHANISM_PLUS);
        if is_bound && !transport.is_tls() {
            return Err(broken(WireError("it offers channel binding without TLS")));
        }
        let certificate = transport.certificate().filter(|_| self.binding != FeatureUse::Never);
        Ok(match certificate.and_then(tls_server_end_point) {
            Some(hash) if is_bound => Some(ChannelBinding::EndPoint(hash)),
            _ if !offered.contains(MECHANISM) || self.binding == FeatureUse::Always => None,
            Some(_) => Some(ChannelBinding::Unoffered),
            None => Some(ChannelBinding::Impossible),
        })
    }
}

/// Reads `scram-sha-256,md5` or `!password,!none`.
fn accepted(list: &str) -> DbResult<Vec<&'static str>> {
    let is_negative = list.starts_with('!');
    let mut names = Vec::new();
    for word in list.split(',') {
        let name = if is_negative { word.strip_prefix('!') } else { Some(word) };
        if name.is_none_or(|name| !METHODS.contains(&name)) {
            let message = format!("invalid require_auth value: \"{list}\"");
            return Err(refusal_error(message).with_hint(format!(
                "it is a list of {}, or of these with a ! before each",
                METHODS.join(", ")
            )));
        }
        names.extend(name);
    }
    Ok(METHODS.into_iter().filter(|method| names.contains(method) != is_negative).collect())
}

fn refusal_error(message: String) -> DbError {
    // Not 28000: another password would not help.
    DbError::rejected(0, *b"08004", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashing_leaves_the_loop_to_others() {
        let (go, wait) = std::sync::mpsc::channel();
        let hashing = async { run_on_thread(move || wait.recv().unwrap()).await.unwrap() };
        let timed_task = async move {
            sleep_until(now() + MILLISECOND).await;
            go.send(7).unwrap();
            0
        };
        let tasks: [std::pin::Pin<Box<dyn Future<Output = i32>>>; 2] =
            [Box::pin(hashing), Box::pin(timed_task)];
        assert_eq!(dyno_reactor::run_all(tasks).unwrap(), [7, 0]);
    }

    #[test]
    fn sslmode_means_what_libpq_means() {
        let tcp = Address::Tcp { host: "h".to_owned(), port: 1 };
        let unix = Address::Unix("/s".into());
        for (mode, expected) in [
            (TlsMode::Disable, (FeatureUse::Never, None)),
            (TlsMode::Allow, (FeatureUse::Never, Some(FeatureUse::Always))),
            (TlsMode::Prefer, (FeatureUse::IfOffered, Some(FeatureUse::Never))),
            (TlsMode::Require, (FeatureUse::Always, None)),
            (TlsMode::VerifyCa, (FeatureUse::Always, None)),
            (TlsMode::VerifyFull, (FeatureUse::Always, None)),
        ] {
            assert_eq!(attempts(mode, &tcp), expected, "{mode:?}");
            assert_eq!(attempts(mode, &unix), (FeatureUse::Never, None), "{mode:?}");
        }
    }

    /// The accepted methods of a URL with this query.
    fn methods(query: &str) -> DbResult<AcceptedMethods> {
        AcceptedMethods::from_target(&format!("postgres://me@h/d?{query}").parse().unwrap())
    }

    #[test]
    fn require_auth_means_what_libpq_means() {
        let address = Address::Tcp { host: "h".to_owned(), port: 1 };
        let requests = [
            (Authentication::Ok, "none"),
            (Authentication::Cleartext, "none"),
            (Authentication::Md5([0; 4]), "none"),
            (Authentication::Ok, "scram-sha-256"),
        ];
        for (query, accepted) in [
            ("", [true; 4]),
            ("require_auth=", [true; 4]),
            ("require_auth=scram-sha-256", [false, false, false, true]),
            ("require_auth=md5,password", [false, true, true, false]),
            ("require_auth=!none,!password", [false, false, true, true]),
            ("channel_binding=require", [false; 4]),
        ] {
            let methods = methods(query).unwrap();
            let is_allowed =
                requests.each_ref().map(|(it, by)| methods.check(it, by, &address).is_ok());
            assert_eq!(is_allowed, accepted, "{query}");
        }
        let bound = methods("channel_binding=require&require_auth=scram-sha-256").unwrap();
        assert_eq!(bound.check(&Authentication::Ok, BOUND, &address), Ok(()));
        for wrong in ["x", "md5,!password", "!md5,password", "md5,", "!"] {
            assert!(methods(&format!("require_auth={wrong}")).is_err(), "{wrong}");
        }
    }
}
