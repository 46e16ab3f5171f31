//! What went wrong with a run folder, and the remedy.

use dyno_facts::Message;
use std::fmt;
use std::io;
use std::path::Path;

/// An error of the run folder: a sentence that names the path, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    message: Message,
    hint: Option<String>,
}

impl StoreError {
    pub(crate) fn new(message: impl Into<Message>) -> Self {
        StoreError { message: message.into(), hint: None }
    }

    pub(crate) fn hint_is(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// `doing` completes the sentence "dyno can't ...", such as `write`.
    pub(crate) fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let message = format!("dyno can't {doing} {}: {error}.", path.display());
        let hint = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "Free some space there, then give the same command again; what was measured so far is kept. `dyno paper last` writes \
                 the papers of a complete run."
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                "Make the folder writable for this user, or choose another folder for runs."
            }
            io::ErrorKind::NotFound => {
                "Look whether the folder still exists; `dyno ls` lists the runs."
            }
            io::ErrorKind::NotADirectory => {
                "A part of this path is a file; choose another folder for runs."
            }
            _ => return StoreError::new(message),
        };
        StoreError::new(message).hint_is(hint)
    }

    pub(crate) fn into_message(self) -> Message {
        self.message
    }

    /// What to do about it, without a leading `hint:`.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl std::error::Error for StoreError {}
