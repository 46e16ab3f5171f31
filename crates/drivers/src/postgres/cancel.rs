//! Cancel requests, each on its own connection.

use super::{Settings, connect};
use crate::net::{Address, before};
use dyno_core::{DbError, DbResult, ErrorClass, Nanos, SECOND};
use dyno_reactor::{now, timeout};
use dyno_wire::postgres::backend::BackendKey;
use dyno_wire::postgres::frontend;
use std::fmt;
use std::sync::Arc;

/// How long a server may take to note a request that has been sent to it: one that hangs never does.
const NOTES_WITHIN: Nanos = SECOND / 2;

/// Cancels the statement of one session; valid while the session lives.
#[derive(Clone)]
pub struct CancelToken {
    pub(super) settings: Arc<Settings>,
    number: u32,
    key: Option<Arc<BackendKey>>,
}

impl CancelToken {
    pub(super) fn new(settings: Arc<Settings>, number: u32, key: Option<BackendKey>) -> Self {
        CancelToken { settings, number, key: key.map(Arc::new) }
    }

    /// Of the server.
    pub(super) fn address(&self) -> &Address {
        self.settings.hosts.pick(self.number).address()
    }

    /// Asks the server to cancel, and waits until it has taken note, half a second at most. A cancelled statement ends with SQLSTATE 57014.
    pub async fn cancel(&self) -> DbResult<()> {
        let Some(key) = &self.key else {
            return Err(DbError::protocol(
                "The server gave this session no key to cancel it with.",
            )
            .with_class(ErrorClass::Other));
        };
        let host = self.settings.hosts.pick(self.number);
        let due = now().saturating_add(self.settings.connect_timeout);
        before(due, host.address(), async {
            let mut link = connect::dial(&self.settings, host, due).await?;
            frontend::cancel_request(&mut link.out, key.process, &key.secret);
            link.transport.send(&link.out).await?;
            // The server closes the connection silently after the signal.
            let noted = async { while link.transport.recv(&mut link.inbox).await.is_ok() {} };
            let _ = timeout(now() + NOTES_WITHIN, noted).await;
            Ok(())
        })
        .await
    }
}

impl fmt::Debug for CancelToken {
    /// Hides the key, which would let others cancel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelToken")
    }
}
