//! The form in which errors travel from one load generator to another.

use dyno_core::{Cause, DbError, ErrorClass};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// [`DbError`] as it travels.
#[derive(Serialize, Deserialize)]
pub(crate) struct DbErrorForm {
    #[serde(with = "dyno_measure::wire::error_class")]
    class: ErrorClass,
    cause: CauseForm,
    errno: u32,
    sqlstate: String,
    message: String,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    hint: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Cause")]
enum CauseNames {
    Unreachable,
    Rejected,
    Server,
    Lost,
    Protocol,
    Workload,
}

#[derive(Serialize, Deserialize)]
struct CauseForm(#[serde(with = "CauseNames")] Cause);

impl DbErrorForm {
    /// # Errors
    /// Those of the format.
    pub(crate) fn serialize<S: Serializer>(
        error: &DbError,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let form = DbErrorForm {
            class: error.class(),
            cause: CauseForm(error.cause()),
            errno: error.errno(),
            sqlstate: error.sqlstate().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
        };
        Serialize::serialize(&form, serializer)
    }

    /// # Errors
    /// When it is none.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DbError, D::Error> {
        let form: DbErrorForm = Deserialize::deserialize(from)?;
        Ok(form.error())
    }

    fn error(self) -> DbError {
        let DbErrorForm { class, cause: CauseForm(cause), errno, sqlstate, message, detail, hint } =
            self;
        let state = <[u8; 5]>::try_from(sqlstate.as_bytes()).unwrap_or(*b"00000");
        let mut error = match cause {
            Cause::Server => DbError::server(class, errno, state, message),
            Cause::Rejected => DbError::rejected(errno, state, message),
            Cause::Unreachable => DbError::unreachable(message),
            Cause::Lost => DbError::closed(errno, state, message),
            Cause::Protocol if state == *b"0A000" => DbError::unsupported(message),
            Cause::Protocol => DbError::protocol(message),
            Cause::Workload => DbError::workload(message),
        }
        .with_class(class);
        if let Some(detail) = detail {
            error = error.with_detail(detail);
        }
        if let Some(hint) = hint {
            error = error.with_hint(hint);
        }
        error
    }
}
