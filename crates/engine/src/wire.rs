//! The form of errors between load generators.

use dyno_core::{Address, Cause, DbError, ErrorClass, ErrorOrigin, ErrorParts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(remote = "ErrorParts")]
struct PartsForm {
    #[serde(with = "crate::record::error_class")]
    class: ErrorClass,
    #[serde(with = "CauseForm")]
    cause: Cause,
    #[serde(with = "OriginForm")]
    origin: ErrorOrigin,
    #[serde(skip)]
    address: Option<Address>,
    errno: u32,
    sqlstate: [u8; 5],
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    statement: Option<String>,
    context: Option<String>,
    #[serde(skip)]
    earlier: Vec<DbError>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Cause")]
enum CauseForm {
    Unreachable,
    Tls,
    Rejected,
    Server,
    Lost,
    Protocol,
    Unsupported,
    Workload,
    Again,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ErrorOrigin")]
enum OriginForm {
    Server,
    System(i32),
    Dyno,
}

pub(crate) struct DbErrorForm;

impl DbErrorForm {
    pub(crate) fn serialize<S: Serializer>(
        error: &DbError,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // The sentence names the server.
        let message = error.sentence().into_owned();
        PartsForm::serialize(&ErrorParts { message, ..(**error).clone() }, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DbError, D::Error> {
        PartsForm::deserialize(from).map(DbError::from)
    }
}
