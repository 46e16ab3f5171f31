//! The words of libpq for what a server or the way to it says.

use super::refusal::Refusal;
use dyno_core::{DbError, Dialect};
use dyno_drivers::net::Address;
use dyno_drivers::target::Target;

/// Where a connection went, as libpq names it.
fn place(address: &Address) -> String {
    match address {
        Address::Tcp { host, port } => format!("at \"{host}\", port {port}"),
        Address::Unix(path) => format!("on socket \"{}\"", path.display()),
    }
}

fn libpq_words(error: &DbError, target: &Target) -> Option<String> {
    target.hosts.0.iter().find_map(|address| {
        let of_host = error.message().strip_prefix(&format!("The server at {address} "))?;
        let why = of_host.trim_end_matches('.');
        let failed = |why: &str| format!("connection to server {} failed: {why}", place(address));
        if let Some(why) = why.strip_prefix("refused the log-in: ") {
            return Some(failed(&format!("FATAL:  {why}")));
        }
        let why = why.strip_prefix("can't be reached: ")?;
        let why = why.split(" (os error").next().unwrap_or(why);
        let question = match address {
            Address::Tcp { .. } => "on that host and accepting TCP/IP connections?",
            Address::Unix(_) => "locally and accepting connections on that socket?",
        };
        Some(failed(&format!("{why}\n\tIs the server running {question}")))
    })
}

/// Why a connection could not be made.
pub(super) fn connection_failed(error: &DbError, target: &Target) -> Refusal {
    let words = match target.dialect {
        Dialect::Postgres => libpq_words(error, target),
        Dialect::Mysql | Dialect::Sqlite => None,
    };
    match words {
        Some(words) => Refusal::error(words),
        None => {
            let refusal = Refusal::error(error);
            match error.hint() {
                Some(hint) => refusal.with_hint(hint),
                None => refusal,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect_words(error: &DbError) -> String {
        let target: Target = "postgres://other:5432,db:5433/x".parse().expect("a URL");
        connection_failed(error, &target).to_string()
    }

    #[test]
    fn connections_fail_in_libpqs_words() {
        let refused =
            DbError::unreachable("The server at db:5433 can't be reached: No luck (os error 1).");
        assert_eq!(
            connect_words(&refused),
            "pgbench: error: connection to server at \"db\", port 5433 failed: No luck\n\
             \tIs the server running on that host and accepting TCP/IP connections?\n"
        );
        let message = "The server at db:5433 refused the log-in: role \"x\" does not exist.";
        let denied = DbError::rejected(0, *b"28000", message).with_hint("ours");
        assert_eq!(
            connect_words(&denied),
            "pgbench: error: connection to server at \"db\", port 5433 failed: FATAL:  role \"x\" \
             does not exist\n"
        );
        let other = DbError::unreachable("It is gone.").with_hint("look");
        assert_eq!(connect_words(&other), "pgbench: error: It is gone.\npgbench: hint: look\n");
    }
}
