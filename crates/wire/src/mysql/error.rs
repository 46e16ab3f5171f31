//! Error packets and their classes.

use super::{Malformed, Scanned, packet::PacketReader};
use dyno_core::{DbError, ErrorClass};

/// Error number of MariaDB's progress reports, which are no errors.
pub const PROGRESS_REPORT: u16 = 0xffff;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    pub errno: u16,
    /// `HY000` when the server sent none.
    pub sqlstate: [u8; 5],
    pub message: String,
}

impl ServerError {
    /// Before the log-in error packets have no SQLSTATE.
    pub fn parse(payload: &[u8]) -> Scanned<Self> {
        let mut reader = PacketReader::new(payload);
        if reader.u8()? != 0xff {
            return Err(Malformed("an error packet starts with another byte than 0xff"));
        }
        let errno = reader.u16()?;
        let mut sqlstate = *b"HY000";
        if let Some((b'#', rest)) = reader.rest().split_first()
            && let Some((state, message)) = rest.split_first_chunk::<5>()
        {
            sqlstate = crate::sqlstate(state).unwrap_or(sqlstate);
            reader = PacketReader::new(message);
        }
        let message = crate::server_text(reader.rest());
        Ok(ServerError { errno, sqlstate, message })
    }

    /// The error of a statement.
    pub fn into_db_error(self) -> DbError {
        let (errno, sqlstate, message) = (u32::from(self.errno), self.sqlstate, self.message);
        let error = match classify(self.errno, &sqlstate) {
            ErrorClass::ConnectionLost => DbError::closed(errno, sqlstate, message),
            class => DbError::server(class, errno, sqlstate, message),
        };
        match self.errno {
            1153 => error.with_hint("raise max_allowed_packet on the server"),
            _ => error,
        }
    }
}

/// Numbers decide before states: servers give several of these the catch-all state HY000.
pub fn classify(errno: u16, sqlstate: &[u8; 5]) -> ErrorClass {
    match errno {
        // ER_LOCK_DEADLOCK, ER_XA_RBDEADLOCK
        1213 | 1614 => ErrorClass::Deadlock,
        // ER_LOCK_WAIT_TIMEOUT, ER_XA_RBTIMEOUT, ER_LOCK_NOWAIT
        1205 | 1613 | 3572 => ErrorClass::LockTimeout,
        // ER_CHECKREAD (MariaDB's snapshot isolation), ER_TRANSACTION_ROLLBACK_DURING_COMMIT (group replication),
        // TiDB's write conflicts and changed schema.
        1020 | 3101 | 8002 | 8022 | 8028 | 9007 => ErrorClass::Serialization,
        // The connection is closed: shutdown, normal shutdown, forced close, aborted, packet too large, network errors,
        // aborted again, killed (MariaDB), lost (numbers of the client library, from proxies), killed and idle (MySQL).
        1053
        | 1079
        | 1080
        | 1152
        | 1153
        | 1158..=1161
        | 1184
        | 1927
        | 2006
        | 2013
        | 3169
        | 4031 => ErrorClass::ConnectionLost,
        // ER_CHECK_CONSTRAINT_VIOLATED has the state HY000 on MySQL.
        3819 => ErrorClass::Constraint,
        _ => match sqlstate {
            b"40001" => ErrorClass::Serialization,
            [b'2', b'3', ..] => ErrorClass::Constraint,
            _ => ErrorClass::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Cause;

    #[test]
    fn reads_packets_with_and_without_state() {
        let error = ServerError::parse(b"\xff\xbd\x04#40001Deadlock found").unwrap();
        assert_eq!((error.errno, &error.sqlstate), (1213, b"40001"));
        assert_eq!(error.message, "Deadlock found");
        let early = ServerError::parse(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!((early.errno, &early.sqlstate), (1040, b"HY000"));
        assert_eq!(early.message, "Too many connections");
        assert!(ServerError::parse(b"\xff\x10").is_err());
        assert!(ServerError::parse(b"\x00\x10\x04").is_err());
        assert_eq!(ServerError::parse(b"\xff\x10\x04#08").unwrap().message, "#08");
    }

    #[test]
    fn classes_follow_number_then_state() {
        for (errno, state, class) in [
            (1213, b"40001", ErrorClass::Deadlock),
            (1205, b"HY000", ErrorClass::LockTimeout),
            (3572, b"HY000", ErrorClass::LockTimeout),
            (1020, b"HY000", ErrorClass::Serialization),
            (1180, b"40001", ErrorClass::Serialization),
            (1062, b"23000", ErrorClass::Constraint),
            (1452, b"23000", ErrorClass::Constraint),
            (3819, b"HY000", ErrorClass::Constraint),
            (1053, b"08S01", ErrorClass::ConnectionLost),
            (1927, b"70100", ErrorClass::ConnectionLost),
            (1317, b"70100", ErrorClass::Other),
            (1047, b"08S01", ErrorClass::Other),
            (1146, b"42S02", ErrorClass::Other),
        ] {
            let message = "Sorry".to_owned();
            let error = ServerError { errno, sqlstate: *state, message }.into_db_error();
            let cause = match class {
                ErrorClass::ConnectionLost => Cause::Lost,
                _ => Cause::Server,
            };
            assert_eq!((error.class(), error.cause()), (class, cause), "{errno}");
            assert_eq!((error.errno(), error.sqlstate().as_bytes()), (errno.into(), &state[..]));
        }
    }
}
