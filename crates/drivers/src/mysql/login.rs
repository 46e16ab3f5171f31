//! The log-in, from the server's greeting on.

use super::MysqlDriver;
use super::channel::malformed_error;
use crate::database::Disclosure;
use crate::net::{Address, Inbox, TlsConfig, TlsMode, Transport, random};
use dyno_core::{Cause, DbError, DbResult};
use dyno_wire::mysql::auth::{
    FAST_PATH_DONE, FULL_PATH, MORE_DATA, Plugin, PublicKey, SWITCH, clear_text,
};
use dyno_wire::mysql::handshake::{CapabilityFlags, Greeting, Login as LoginPacket};
use dyno_wire::mysql::packet::{Framed, Framing, PacketReader, begin_packet, finish_packet};
use dyno_wire::mysql::{Malformed, ServerError};

/// Longest packet of a log-in: a peer that is not MySQL server must not fill memory.
const INBOX_BYTES: usize = 64 << 10;
/// More than any method needs.
const MAX_ROUNDS: usize = 16;

pub(super) struct Login<'a> {
    pub(super) transport: Transport,
    inbox: Inbox,
    framing: Framing,
    out: Vec<u8>,
    driver: &'a MysqlDriver,
    address: &'a Address,
    plugin: Option<Plugin>,
    scramble: Vec<u8>,
    offers_tls: bool,
    /// The server's value after the log-in.
    pub(super) status: u16,
}

impl<'a> Login<'a> {
    pub(super) fn new(transport: Transport, driver: &'a MysqlDriver, address: &'a Address) -> Self {
        Login {
            transport,
            inbox: Inbox::new(INBOX_BYTES),
            framing: Framing::default(),
            out: Vec::new(),
            driver,
            address,
            plugin: None,
            scramble: Vec::new(),
            offers_tls: false,
            status: 0,
        }
    }

    /// Makes the connection ready for commands.
    pub(super) async fn run(&mut self) -> DbResult<(Greeting, CapabilityFlags)> {
        self.log_in(&self.driver.tls).await.map_err(|error| self.explain(error))
    }

    /// The method by which the user has logged in.
    pub(super) fn method(&self) -> &'static str {
        self.plugin.map_or("none", Plugin::name)
    }

    async fn log_in(&mut self, tls: &TlsConfig) -> DbResult<(Greeting, CapabilityFlags)> {
        let packet = self.read().await?;
        let greeting = Greeting::parse(&packet).map_err(malformed_error)?;
        self.offers_tls = greeting.capabilities.has(CapabilityFlags::SSL);
        let mut capabilities =
            CapabilityFlags::negotiate(greeting.capabilities).map_err(malformed_error)?;
        if self.driver.database.is_empty() {
            capabilities = capabilities.without(CapabilityFlags::CONNECT_WITH_DB);
        }
        if self.driver.compresses {
            if !greeting.capabilities.has(CapabilityFlags::COMPRESS) {
                let address = self.address;
                let message = format!("The server at {address} does not compress by zlib.");
                return Err(DbError::rejected(0, *b"08001", message)
                    .with_hint("add zlib to its protocol_compression_algorithms, or connect with compression=uncompressed"));
            }
            capabilities = capabilities.with(CapabilityFlags::COMPRESS);
        }
        if self.wants_tls(tls.mode)? {
            capabilities = capabilities.with(CapabilityFlags::SSL);
            let request = self.login_packet(capabilities, "", &[]);
            let mut out = Vec::new();
            let next = request.push_tls_request(&mut out, self.framing.next_sequence());
            self.transport.send(&out).await?;
            self.framing.expect(next);
            if !self.inbox.filled().is_empty() {
                return Err(malformed_error(Malformed("it sent more before the TLS handshake")));
            }
            self.transport.start_tls(tls, self.address.tls_name()).await?;
        }
        self.scramble = greeting.scramble.clone();
        // An unknown first method is not an obstacle: the account may have another one.
        let plugin = Plugin::from_name(&greeting.plugin).unwrap_or(Plugin::Native);
        self.plugin = Some(plugin);
        let response = self.auth_response(plugin)?;
        let mut out = Vec::new();
        let next = self
            .login_packet(capabilities, plugin.name(), &response)
            .push(&mut out, self.framing.next_sequence());
        self.framing.expect(next);
        self.transport.send(&out).await?;
        self.authenticate().await?;
        if !self.inbox.filled().is_empty() {
            return Err(malformed_error(Malformed("it sent more after the log-in")));
        }
        if self.driver.compresses {
            self.transport.start_compression();
        }
        Ok((greeting, capabilities))
    }

    fn login_packet<'b>(
        &'b self,
        capabilities: CapabilityFlags,
        plugin: &'b str,
        response: &'b [u8],
    ) -> LoginPacket<'b> {
        LoginPacket {
            capabilities,
            user: &self.driver.user,
            database: &self.driver.database,
            plugin,
            response,
            attributes: &[
                ("program_name", "dyno"),
                ("_client_name", "dyno"),
                ("_client_version", env!("CARGO_PKG_VERSION")),
            ],
        }
    }

    /// Like the server's own clients, encrypts a unix socket only on demand.
    fn wants_tls(&self, mode: TlsMode) -> DbResult<bool> {
        let offered = self.offers_tls;
        match mode {
            TlsMode::Disable | TlsMode::Allow => Ok(false),
            TlsMode::Prefer => Ok(offered && !self.transport.is_local()),
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull if offered => Ok(true),
            _ => Err(DbError::tls(
                2026,
                *b"HY000",
                format!("The server at {} does not offer TLS.", self.address),
            )
            .with_hint("give the server a certificate, or use tls=prefer or tls=disable with an account that need not encrypt")),
        }
    }

    fn auth_response(&self, plugin: Plugin) -> DbResult<Vec<u8>> {
        match plugin.response(self.driver.password.reveal().as_bytes(), &self.scramble) {
            Some(response) => Ok(response),
            None => self.whole_password(plugin),
        }
    }

    /// For methods that need the password itself: in clear text, or under the server's key where the server takes the
    /// channel for an open one.
    fn whole_password(&self, plugin: Plugin) -> DbResult<Vec<u8>> {
        if self.driver.password.reveal().is_empty() {
            return Ok(clear_text(b""));
        }
        if matches!(plugin, Plugin::ClearText | Plugin::Dialog) || self.seems_secure() {
            self.check(Disclosure::ClearText)?;
            return Ok(clear_text(self.driver.password.reveal().as_bytes()));
        }
        if let Some(key) = &self.driver.public_key {
            return self.encrypt_password(key);
        }
        self.check(Disclosure::FetchedKey)?;
        Ok(vec![plugin.key_request()])
    }

    /// To a server each TLS is secure, also with a certificate that no one has checked.
    fn seems_secure(&self) -> bool {
        self.transport.is_tls() || self.transport.is_local()
    }

    /// Refuses a disclosure that others on the network could read.
    fn check(&self, disclosure: Disclosure) -> DbResult<()> {
        disclosure.check(&self.transport, self.address, self.driver.opt_ins)
    }

    fn encrypt_password(&self, key: &PublicKey) -> DbResult<Vec<u8>> {
        key.encrypt_password(self.driver.password.reveal().as_bytes(), &self.scramble, random()?)
            .map_err(malformed_error)
    }

    /// Answers the server's requests until it accepts or refuses the user.
    async fn authenticate(&mut self) -> DbResult<()> {
        for _ in 0..MAX_ROUNDS {
            let packet = self.read().await?;
            match packet.split_first() {
                Some((0, ok)) => {
                    self.status = parse_status(ok).unwrap_or_default();
                    return Ok(());
                }
                Some((&SWITCH, request)) => self.switch(request).await?,
                Some((&MORE_DATA, data)) => self.go_on(data).await?,
                _ => return Err(malformed_error(Malformed("an unknown packet during the log-in"))),
            }
        }
        Err(malformed_error(Malformed("the log-in does not come to an end")))
    }

    /// Takes the account's method, if the greeting named another one.
    async fn switch(&mut self, request: &[u8]) -> DbResult<()> {
        let mut reader = PacketReader::new(request);
        let name = match reader.until_nul() {
            Ok(name) => dyno_wire::server_text(name),
            Err(_) => "mysql_old_password".to_owned(),
        };
        let Some(plugin) = Plugin::from_name(&name) else {
            let message = format!(
                "The account {} logs in with the method `{name}`, which dyno does not speak.",
                &self.driver.user
            );
            return Err(DbError::rejected(2059, *b"HY000", message).with_hint(
                "use an account with caching_sha2_password, sha256_password, mysql_native_password or ed25519",
            ));
        };
        let data = reader.rest();
        self.scramble = match (plugin, data) {
            // The scrambles of other methods end with a NUL.
            (Plugin::Ed25519, data) => data.to_vec(),
            (_, data) => data.strip_suffix(&[0]).unwrap_or(data).to_vec(),
        };
        self.plugin = Some(plugin);
        let response = self.auth_response(plugin)?;
        self.send(&response).await
    }

    /// The second half of the SHA-256 methods.
    async fn go_on(&mut self, data: &[u8]) -> DbResult<()> {
        let plugin = self.plugin;
        match (plugin, data) {
            (Some(Plugin::CachingSha2), [FAST_PATH_DONE]) => Ok(()),
            (Some(method @ Plugin::CachingSha2), [FULL_PATH]) => {
                let response = self.whole_password(method)?;
                self.send(&response).await
            }
            (Some(Plugin::CachingSha2 | Plugin::Sha256), pem)
                if !self.seems_secure() && self.driver.public_key.is_none() =>
            {
                // Also of a key that no one has asked for.
                self.check(Disclosure::FetchedKey)?;
                let key = PublicKey::from_pem(pem).map_err(malformed_error)?;
                let encrypted = self.encrypt_password(&key)?;
                self.send(&encrypted).await
            }
            _ => Err(malformed_error(Malformed("unexpected data during the log-in"))),
        }
    }

    /// Sends a payload as the next packet.
    async fn send(&mut self, payload: &[u8]) -> DbResult<()> {
        self.out.clear();
        let start = begin_packet(&mut self.out);
        self.out.extend_from_slice(payload);
        let next = finish_packet(&mut self.out, start, self.framing.next_sequence());
        self.framing.expect(next);
        self.transport.send(&self.out).await
    }

    /// The next packet that is not an error.
    async fn read(&mut self) -> DbResult<Vec<u8>> {
        loop {
            let (payload, consumed) =
                match self.framing.next_payload(self.inbox.filled()).map_err(malformed_error)? {
                    Framed::Partial(consumed) => (None, consumed),
                    Framed::Payload(bytes, consumed) => (Some(bytes.to_vec()), consumed),
                };
            self.inbox.consume(consumed);
            match payload {
                None => self.transport.recv(&mut self.inbox).await?,
                Some(packet) if packet.first() == Some(&0xff) => {
                    return Err(
                        self.rejected(ServerError::parse(&packet).map_err(malformed_error)?)
                    );
                }
                Some(packet) => return Ok(packet),
            }
        }
    }

    /// The server's refusal, with a remedy for likely mistakes.
    fn rejected(&self, error: ServerError) -> DbError {
        if error.errno == 1053 {
            // The same as an absent server.
            return DbError::unreachable(format!(
                "The server at {} is shutting down.",
                self.address
            ));
        }
        let hint = match error.errno {
            1040 | 1203 | 1226 => "raise max_connections on the server, or use fewer workers",
            1044 => "GRANT the user access to the database, or name another one in the URL",
            1045 | 1698 if self.driver.password.reveal().is_empty() => {
                "no password was given: give it in the URL or in ~/.my.cnf"
            }
            1045 | 1698 => "check user and password, and from which hosts the user may log in",
            1049 => "create the database first: CREATE DATABASE with that name",
            1129 => "the server blocks this host after errors: FLUSH HOSTS on the server",
            1130 => "the user may not log in from this host: CREATE USER 'name'@'host'",
            1251 | 1275 => "give the account a password of the current format",
            3159 => "the server takes encrypted connections only: add tls=require in the URL",
            _ => "",
        };
        let demand = match error.errno {
            1045 | 1698 if self.transport.is_tls() => {
                "; an account with REQUIRE X509 needs cert=FILE and key=FILE"
            }
            1045 | 1698 if self.offers_tls => "; an account with REQUIRE SSL needs tls=require",
            1045 | 1698 => "; the server offers no TLS, so no account with REQUIRE SSL can log in",
            _ => "",
        };
        let refusal = DbError::login(u32::from(error.errno), error.sqlstate, error.message);
        if hint.is_empty() { refusal } else { refusal.with_hint(format!("{hint}{demand}")) }
    }

    /// Rewords errors of an unfinished log-in for a user who connects.
    fn explain(&self, error: DbError) -> DbError {
        let address = self.address;
        match error.cause() {
            Cause::Lost => DbError::unreachable(format!(
                "The server at {address} hung up during the log-in: {}",
                error.message()
            ))
            .with_hint("the server's error log says why"),
            Cause::Protocol => DbError::unreachable(format!("At {address}: {}", error.message()))
                .with_hint("is this the address of a MySQL or MariaDB server?"),
            _ => error,
        }
    }
}

/// The status in an OK packet, whose first byte is taken off.
fn parse_status(ok: &[u8]) -> Result<u16, Malformed> {
    let mut reader = PacketReader::new(ok);
    let _affected = reader.lenenc()?;
    let _last_insert_id = reader.lenenc()?;
    reader.u16()
}
