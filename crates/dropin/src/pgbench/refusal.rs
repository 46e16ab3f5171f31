//! Why a command line can't be followed, in pgbench's lines.

use dyno_core::{DbError, Dialect, ErrorOrigin};
use dyno_drivers::postgres::libpq_connection_failure;
use std::fmt;

/// The lines for standard error, as pgbench writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(String);

impl Refusal {
    /// `pgbench: error: ...`
    pub(super) fn error(message: impl fmt::Display) -> Self {
        Refusal(format!("pgbench: error: {message}\n"))
    }

    /// Why a connection could not be made.
    pub(super) fn unconnected(error: &DbError, dialect: Dialect) -> Self {
        if dialect == Dialect::Postgres
            && let Some(mut words) = libpq_connection_failure(error)
        {
            if let Some(detail) = error.detail().filter(|_| error.is_from_server()) {
                words.push_str(&format!("\nDETAIL:  {detail}"));
            }
            let refusal = Refusal::error(words);
            return match error.hint() {
                // The last of several hosts failed for a reason of dyno's own.
                Some(hint) if error.origin() == ErrorOrigin::Dyno => refusal.with_hint(hint),
                _ => refusal,
            };
        }
        let refusal = Refusal::error(error);
        match error.hint() {
            Some(hint) => refusal.with_hint(hint),
            None => refusal,
        }
    }

    /// A complaint about the words themselves, with the advice that follows it.
    pub(super) fn words(complaint: impl fmt::Display) -> Self {
        Refusal(format!("pgbench: {complaint}\n")).with_advice()
    }

    /// Adds where all options are explained.
    pub(super) fn with_advice(self) -> Self {
        self.with_hint("Try \"pgbench --help\" for more information.")
    }

    /// Adds `pgbench: detail: ...`
    pub(super) fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.0.push_str(&format!("pgbench: detail: {detail}\n"));
        self
    }

    /// Adds `pgbench: hint: ...`
    pub(super) fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.push_str(&format!("pgbench: hint: {hint}\n"));
        self
    }

    /// Adds a further `pgbench: error: ...`
    pub(super) fn then(mut self, error: impl fmt::Display) -> Self {
        self.0.push_str(&format!("pgbench: error: {error}\n"));
        self
    }

    pub(super) fn with_text(mut self, text: &str) -> Self {
        self.0.push_str(text);
        self
    }
}

/// All lines, each with its line end.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Address;

    #[test]
    fn a_login_that_the_server_refuses_has_its_detail() {
        let at = Address::Tcp { host: "db".to_owned(), port: 1 };
        let error = DbError::login(0, *b"22023", "bad DateStyle").with_detail("No such word.");
        assert_eq!(
            Refusal::unconnected(&error.at(&at), Dialect::Postgres).to_string(),
            "pgbench: error: connection to server at \"db\", port 1 failed: FATAL:  bad DateStyle\n\
             DETAIL:  No such word.\n"
        );
    }
}
