//! The form of errors between load generators.

use dyno_core::{Address, Cause, DbError, ErrorClass, ErrorOrigin, ErrorParts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;

#[derive(Serialize, Deserialize)]
#[serde(remote = "ErrorParts")]
struct PartsForm {
    #[serde(with = "crate::record::error_class")]
    class: ErrorClass,
    #[serde(with = "CauseForm")]
    cause: Cause,
    #[serde(with = "OriginForm")]
    origin: ErrorOrigin,
    #[serde(with = "address")]
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
    ClientCopy,
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

#[derive(Serialize, Deserialize)]
#[serde(remote = "Address")]
enum AddressForm {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

mod address {
    use super::{Address, AddressForm, Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Known(#[serde(with = "AddressForm")] Address);

    /// Writes the address in its known form.
    pub(super) fn serialize<S: Serializer>(
        address: &Option<Address>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        address.clone().map(Known).serialize(serializer)
    }

    /// Reads an address in its known form.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Address>, D::Error> {
        Ok(Option::<Known>::deserialize(from)?.map(|Known(address)| address))
    }
}

pub(crate) struct DbErrorForm;

impl DbErrorForm {
    /// Writes the parts of an error.
    pub(crate) fn serialize<S: Serializer>(
        error: &DbError,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        PartsForm::serialize(error, serializer)
    }

    /// Reads an error from its parts.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DbError, D::Error> {
        PartsForm::deserialize(from).map(DbError::from)
    }
}
