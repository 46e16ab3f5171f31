//! From the connection options to a database that has answered once.

use super::options::{Connection, Settings};
use super::refusal::Refusal;
use dyno_core::{DbError, Nanos, Product, SECOND, Session};
use dyno_drivers::target::{
    LibpqOptions, TargetError, TargetUrl, UNLIMITED_CONNECT_S, find_password, system_user,
};
use dyno_load::Patience;
use dyno_reactor::{monotonic_now, timeout};
use dyno_runner::databases::{self, Database};
use dyno_runner::output;

/// A database that has answered.
pub(super) struct OpenedDatabase {
    pub(super) target: TargetUrl,
    pub(super) database: Database,
    pub(super) product: Product,
}

/// Connects once, to learn who answers and whether a password is needed. `purpose` is what pgbench
/// names as that of its first connection: `setup` or `initialization`.
pub(super) fn reach(settings: &Settings, purpose: &str) -> Result<OpenedDatabase, Refusal> {
    let unconnected =
        |refusal: Refusal| refusal.then(format_args!("could not create connection for {purpose}"));
    let refused = |error: TargetError| {
        let refusal = Refusal::error(&error);
        unconnected(match &error.hint {
            Some(hint) => refusal.with_hint(hint),
            None => refusal,
        })
    };
    let mut target = target(&settings.connection).map_err(refused)?;
    let login = find_password(&target, None);
    if let Some(warning) = &login.warning {
        output::talk_lines(&format!("pgbench: warning: {warning}"));
    }
    login.complete(&mut target);
    let first = open(&target);
    let opened = match first {
        Err(error) if databases::may_ask(&error, &target) => {
            let asked = databases::ask("Password: ");
            target.password =
                Some(asked.map_err(|failure| Refusal::error(failure.message.to_string()))?);
            open(&target)
        }
        other => other,
    };
    let (database, product) =
        opened.map_err(|error| unconnected(Refusal::unconnected(&error, target.dialect)))?;
    Ok(OpenedDatabase { target, database, product })
}

fn target(connection: &Connection) -> Result<TargetUrl, TargetError> {
    if let Some(url) = &connection.target {
        return url.parse();
    }
    let given = LibpqOptions {
        host: connection.host.as_deref(),
        port: connection.port.as_deref(),
        user: connection.user.as_deref(),
        fallback_application_name: Some("pgbench"),
    };
    let by_default = || default_database(&|name| std::env::var(name).ok(), system_user());
    TargetUrl::from_libpq(connection.dbname.clone().or_else(by_default).as_deref(), &given)
}

/// What pgbench gives libpq as the database where none is named: so neither a service nor -U decides.
fn default_database(
    variable: &dyn Fn(&str) -> Option<String>,
    system_user: Option<String>,
) -> Option<String> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    set("PGDATABASE").or_else(|| set("PGUSER")).or(system_user)
}

fn open(target: &TargetUrl) -> Result<(Database, Product), DbError> {
    let database = Database::open(target)?;
    // libpq would wait for ever for a server that takes the connection and says nothing.
    let patience = Patience::default().gives_up_after;
    let due = match target.connect_timeout_s() {
        UNLIMITED_CONNECT_S => monotonic_now() + patience,
        _ => Nanos::MAX,
    };
    let silent = || {
        let (hosts, seconds) = (&target.hosts, patience / SECOND);
        DbError::unreachable(format!("The server at {hosts} did not answer within {seconds} s."))
            .with_hint(
                "check host and port; connect_timeout or PGCONNECT_TIMEOUT set another limit",
            )
    };
    let product = databases::run(async {
        let admin = database.admin();
        let question = databases::in_session(&admin, async |session| Ok(session.product().clone()));
        timeout(due, question).await.unwrap_or_else(|_| Err(silent()))
    })?;
    Ok((database, product))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_database_is_that_of_a_variable_or_of_a_users_name() {
        let of = |variables: &[(&str, &str)]| {
            let variable = |wanted: &str| {
                let found = variables.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| (*value).to_owned())
            };
            default_database(&variable, Some("me".to_owned()))
        };
        assert_eq!(of(&[("PGSERVICE", "my")]).as_deref(), Some("me"));
        assert_eq!(of(&[("PGDATABASE", ""), ("PGUSER", "you")]).as_deref(), Some("you"));
        assert_eq!(of(&[("PGDATABASE", "db"), ("PGUSER", "you")]).as_deref(), Some("db"));
    }
}
