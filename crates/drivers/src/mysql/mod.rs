//! Sessions that speak the MySQL protocol: MySQL, MariaDB and others.

mod channel;
mod login;
mod session;

pub use session::MysqlSession;

use crate::TargetUrl;
use crate::database::OptIns;
use crate::net::{ServerHosts, TlsConfig, Transport, before};
use crate::target::{Secret, Spellings, TargetError, spell_hint};
use channel::Channel;
use dyno_core::{
    DbError, DbResult, Dialect, Discard, Driver, Product, SECOND, Session, in_one_line,
};
use dyno_reactor::now;
use dyno_wire::mysql::CapabilityFlags;
use dyno_wire::mysql::auth::PublicKey;
use dyno_wire::mysql::row::push_literal;
use dyno_wire::server_text;
use login::Login;

#[derive(Debug)]
pub struct MysqlDriver {
    hosts: ServerHosts,
    tls: TlsConfig,
    user: String,
    password: Secret,
    database: String,
    opt_ins: OptIns,
    /// The server's RSA key, if the URL names it.
    public_key: Option<PublicKey>,
    compresses: bool,
    variables: Vec<(String, String)>,
    connect_timeout_s: u64,
    spellings: Spellings,
}

impl MysqlDriver {
    /// Looks up the hosts, reads certificate files, without connecting.
    pub fn new(target: &TargetUrl) -> DbResult<Self> {
        let variables = target.session_variables();
        Ok(MysqlDriver {
            hosts: target.hosts.servers()?,
            tls: TlsConfig::new(&target.tls)?,
            user: target.user_or_default().map_err(settings_error)?,
            password: target.password.clone().unwrap_or_else(|| Secret::new("")),
            database: target.database.clone().unwrap_or_default(),
            opt_ins: OptIns::from_target(target),
            public_key: target.options.get("server_public_key").map(read_key).transpose()?,
            compresses: target.options.get("compression").is_some_and(|way| way == "zlib"),
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            connect_timeout_s: target.connect_timeout_s(),
            spellings: target.spellings,
        })
    }

    /// The statement that sets the session variables; none without variables. Numbers and `DEFAULT` are sent bare,
    /// everything else as text.
    fn set_statement(&self) -> Option<String> {
        let mut sql = Vec::new();
        for (name, value) in &self.variables {
            sql.extend_from_slice(if sql.is_empty() { b"SET " } else { b", " });
            sql.extend_from_slice(name.as_bytes());
            sql.push(b'=');
            if value.parse::<f64>().is_ok_and(f64::is_finite)
                || value.eq_ignore_ascii_case("default")
            {
                sql.extend_from_slice(value.as_bytes());
            } else {
                push_literal(&mut sql, value.as_bytes(), true);
            }
        }
        (!sql.is_empty()).then(|| String::from_utf8_lossy(&sql).into_owned())
    }
}

impl Driver for MysqlDriver {
    type Session = MysqlSession;

    async fn connect(&self, number: u32) -> DbResult<MysqlSession> {
        let host = self.hosts.pick(number);
        let due = now() + self.connect_timeout_s * SECOND;
        let opened = before(due, &host.address, async {
            let transport = Transport::connect(host, due).await?;
            let mut login = Login::new(transport, self, &host.address);
            let (greeting, capabilities) = login.run().await?;
            let product = Product {
                name: greeting.product_name().to_owned(),
                version: in_one_line(&server_text(greeting.version.as_bytes())).into_owned(),
            };
            let method = login.method();
            let channel = Channel::new(login.transport, capabilities, login.status);
            let files = capabilities.has(CapabilityFlags::LOCAL_FILES);
            let mut session = MysqlSession::new(channel, product, files, method, &host.address);
            session.variables.clone_from(&self.variables);
            if let Some(sql) = self.set_statement() {
                session.query(&sql, &mut Discard).await.map_err(|error| variables_error(&error))?;
            }
            Ok(session)
        });
        opened.await.map_err(|error| spell_hint(error.at(&host.address), self.spellings))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn place(&self) -> String {
        format!("the server at {}", self.hosts.pick(0).address)
    }
}

fn read_key(path: &String) -> DbResult<PublicKey> {
    let key = std::fs::read(path).map_err(|error| error.to_string()).and_then(|pem| {
        PublicKey::from_pem(&pem).map_err(|_| "it holds no RSA key in PEM".to_owned())
    });
    key.map_err(|reason| {
        let message = format!("The server's public key {path} can't be read: {reason}.");
        DbError::rejected(0, *b"08001", message).with_hint(
            "server_public_key= names a PEM file, such as a copy of the server's public_key.pem",
        )
    })
}

fn settings_error(error: TargetError) -> DbError {
    let rejected = DbError::rejected(0, *b"08001", error.message);
    match error.hint {
        Some(hint) => rejected.with_hint(hint),
        None => rejected,
    }
}

fn variables_error(error: &DbError) -> DbError {
    let mut sqlstate = *b"HY000";
    sqlstate.copy_from_slice(error.sqlstate().as_bytes());
    let message = format!("The session variables can't be set: {}", error.message());
    DbError::rejected(error.errno(), sqlstate, message)
        .with_hint("check the set.NAME=VALUE keys in the URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(url: &str) -> DbResult<MysqlDriver> {
        MysqlDriver::new(&url.parse().unwrap())
    }

    #[test]
    fn variables_become_one_statement() {
        let query = "set.autocommit=1&set.sql_mode=ANSI,it's&set.big_tables=Default";
        let it = driver(&format!("mysql://me@127.0.0.1/db?{query}")).unwrap();
        let sql = "SET autocommit=1, big_tables=Default, sql_mode='ANSI,it''s'";
        assert_eq!(it.set_statement().unwrap(), sql);
        assert_eq!(driver("mysql://me@127.0.0.1/db").unwrap().set_statement(), None);
        assert!("mysql://me@h/db?set.a%3D1;%20DROP%20TABLE%20t=1".parse::<TargetUrl>().is_err());
    }
}
