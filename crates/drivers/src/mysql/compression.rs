//! Which compression a session asks for.

use crate::TargetUrl;
use dyno_core::{Address, DbError, DbResult};
use dyno_wire::mysql::CapabilityFlags;
use dyno_wire::mysql::compression::Compression;

const UNCOMPRESSED: &str = "uncompressed";

/// The ways of `compression=` in a URL, in their order; `None` is uncompressed.
#[derive(Debug, Default)]
pub(super) struct CompressionWish(Vec<Option<Compression>>);

impl CompressionWish {
    pub(super) fn of(target: &TargetUrl) -> DbResult<Self> {
        let Some(wanted) = target.options.get("compression") else { return Ok(Self::default()) };
        let way = |name: &str| match name.trim().to_ascii_lowercase().as_str() {
            UNCOMPRESSED => Ok(None),
            name => match Compression::ALL.into_iter().find(|known| known.name() == name) {
                Some(known) => Ok(Some(known)),
                None => Err(DbError::rejected(
                    0,
                    *b"08001",
                    format!("`{name}` is no compression of the MySQL protocol."),
                )
                .with_hint(
                    "compression= takes zlib, zstd and uncompressed, with commas between them",
                )),
            },
        };
        wanted.split(',').map(way).collect::<DbResult<_>>().map(CompressionWish)
    }

    /// The first way that the server has, too.
    pub(super) fn choose(
        &self,
        server: CapabilityFlags,
        address: &Address,
    ) -> DbResult<Option<Compression>> {
        let has = |way: &&Option<Compression>| way.is_none_or(|way| server.has(way.flag()));
        match self.0.iter().find(has) {
            Some(way) => Ok(*way),
            None if self.0.is_empty() => Ok(None),
            None => {
                let names: Vec<&str> = self.0.iter().flatten().map(|way| way.name()).collect();
                Err(DbError::rejected(
                    0,
                    *b"08001",
                    format!("The server at {address} does not compress by {}.", names.join(" or ")),
                )
                .with_hint(
                    "MariaDB has zlib; MySQL has what its protocol_compression_algorithms says; \
                     `uncompressed` at the end of the list does without",
                ))
            }
        }
    }
}
