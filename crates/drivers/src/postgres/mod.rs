//! Sessions that speak the PostgreSQL protocol.
//!
//! - `connect`: TLS by `sslmode`, authentication, `require_auth` and `channel_binding`, startup; cancel requests.
//! - `link`: one connection; sends flights and collects their answers. The hot path.
//! - `answers`: the progress of answers, the kinds of servers. `session`: statements, pipelines, transactions and bulk
//!   loads on top of a link. `error`: the server's errors.
//!
//! A session has the encoding of its database unless `set.client_encoding` names another: values are bytes. What dyno
//! itself loads and asks for is ASCII, so loaders need no encoding.
//!
//! Text parameters are declared `varchar`; for an index on a `char(n)` column, the statement needs a cast
//! (`c = $1::bpchar`).

mod answers;
mod connect;
mod link;
mod session;

pub use answers::libpq_connection_failure;
pub use connect::{CancelToken, sessions_opened};
pub use session::PostgresSession;

use crate::database::OptIns;
use crate::net::{Address, ServerHosts, TlsConfig, TlsMode, TlsOptions, before, random};
use crate::target::{Secret, Spellings, TargetUrl, spell_hint};
use answers::SessionAttributes;
use connect::AcceptedMethods;
use dyno_core::{Cause, DbError, DbResult, Dialect, Driver, Nanos, SECOND};
use dyno_reactor::now;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Opens sessions to one target. Names are looked up and certificates read when it is made.
#[derive(Clone, Debug)]
pub struct PostgresDriver {
    settings: Arc<Settings>,
}

#[derive(Debug)]
struct Settings {
    hosts: ServerHosts,
    tls: TlsConfig,
    user: String,
    password: Option<Secret>,
    opt_ins: OptIns,
    methods: AcceptedMethods,
    /// Names and values of the startup message, `user` and `database` among them.
    startup: Vec<(String, String)>,
    connect_timeout: Nanos,
    role: SessionAttributes,
    order: HostOrder,
    spellings: Spellings,
}

dyno_core::named! {
    /// The host that a connection tries first.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    enum HostOrder {
        /// Connection N takes host N, and no other unless it must be of a kind.
        #[default]
        Rotating = "rotate",
        /// The first host that answers.
        First = "disable",
        /// Any host, then the ones behind it.
        Random = "random",
    }
}

impl PostgresDriver {
    /// Looks up host names, which blocks.
    pub fn new(target: &TargetUrl) -> DbResult<Self> {
        let user = target.user_or_default().map_err(|error| {
            let hint = error.hint.unwrap_or_default();
            DbError::rejected(0, *b"28000", error.message).with_hint(hint)
        })?;
        let database = target.database.as_deref().unwrap_or(&user);
        let mut startup = vec![
            ("user", user.as_str()),
            ("database", database),
            ("application_name", target.option("application_name").unwrap_or("dyno")),
        ];
        startup.extend(target.option("options").map(|options| ("options", options)));
        startup.extend(target.session_variables());
        let startup = startup.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let role = target.option("target_session_attrs");
        let role = SessionAttributes::ALL.into_iter().find(|kind| role == Some(kind.name()));
        let order = target.option("load_balance_hosts");
        let order = HostOrder::ALL.into_iter().find(|known| order == Some(known.name()));
        let mut tls = with_default_files(&target.tls);
        tls.proves_key = target.option("channel_binding") == Some("require");
        let settings = Settings {
            hosts: target.hosts.servers()?,
            tls: TlsConfig::new(&tls)?,
            methods: AcceptedMethods::from_target(target)?,
            password: target.password.clone(),
            opt_ins: OptIns::from_target(target),
            startup,
            connect_timeout: target.connect_timeout_s().saturating_mul(SECOND),
            role: role.unwrap_or_default(),
            order: order.unwrap_or_default(),
            spellings: target.spellings,
            user,
        };
        Ok(PostgresDriver { settings: Arc::new(settings) })
    }

    /// Connects to the host of this number, or to the next one that fits.
    async fn connect_matching(
        &self,
        number: u32,
        role: SessionAttributes,
    ) -> DbResult<PostgresSession> {
        if role == SessionAttributes::Any && self.settings.order == HostOrder::Rotating {
            return self.connect_to(number).await;
        }
        let mut failures = Vec::new();
        for number in (0..self.settings.hosts.count()).map(|later| number.wrapping_add(later)) {
            let failure = match self.connect_to(number).await {
                Ok(mut session) => match role.objection(&mut session).await? {
                    None => return Ok(session),
                    Some(objection) => {
                        unwanted_server(&self.settings.hosts.pick(number).address, objection)
                    }
                },
                Err(error) => error,
            };
            // A server that refuses the user is one that answers.
            let is_last = role == SessionAttributes::Any && failure.cause() == Cause::Rejected;
            failures.push(failure);
            if is_last {
                break;
            }
        }
        let last = failures.pop();
        let last = last.unwrap_or_else(|| DbError::unreachable("The target has no host."));
        Err(last.after(failures))
    }

    async fn connect_to(&self, number: u32) -> DbResult<PostgresSession> {
        let host = self.settings.hosts.pick(number);
        let due = now().saturating_add(self.settings.connect_timeout);
        let opened = before(due, &host.address, connect::open(&self.settings, host, due)).await;
        let (link, key) =
            opened.map_err(|error| spell_hint(error.at(&host.address), self.settings.spellings))?;
        let cancel = CancelToken::new(self.settings.clone(), number, key);
        Ok(PostgresSession::new(link, cancel))
    }
}

fn unwanted_server(address: &Address, objection: &str) -> DbError {
    let message = format!("The server at {address} is not the one wanted: {objection}.");
    DbError::rejected(0, *b"08001", message)
        .at(address)
        .with_hint("name the right host, or change target_session_attrs")
}

impl Driver for PostgresDriver {
    type Session = PostgresSession;

    async fn connect(&self, number: u32) -> DbResult<PostgresSession> {
        let number = match self.settings.order {
            HostOrder::Rotating => number,
            HostOrder::First => 0,
            HostOrder::Random => u32::from_le_bytes(random::<4>()?),
        };
        let role = self.settings.role;
        if role == SessionAttributes::PreferStandby
            && let Ok(session) = self.connect_matching(number, SessionAttributes::Standby).await
        {
            return Ok(session);
        }
        self.connect_matching(number, role).await
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn place(&self) -> String {
        format!("the server at {}", self.settings.hosts.pick(0).address)
    }
}

/// Like libpq, takes `root.crt`, and `postgresql.crt` with `postgresql.key`, from `~/.postgresql` if the target names none.
fn with_default_files(options: &TlsOptions) -> TlsOptions {
    let mut options = options.clone();
    let Some(home) = std::env::var_os("HOME") else { return options };
    let folder = Path::new(&home).join(".postgresql");
    if options.ca.is_none() && options.mode >= TlsMode::Require {
        options.ca = Some(folder.join("root.crt")).filter(|path| path.is_file());
    }
    let (cert, key) = (folder.join("postgresql.crt"), folder.join("postgresql.key"));
    if options.cert.is_none()
        && options.key.is_none()
        && [&cert, &key].into_iter().all(|path| File::open(path).is_ok())
    {
        (options.cert, options.key) = (Some(cert), Some(key));
    }
    options
}
