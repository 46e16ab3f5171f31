//! Why files were not written.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub enum FileError {
    /// A file is there already.
    Exists {
        path: PathBuf,
        others: usize,
    },
    Folder {
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    Write {
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    Stopped,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Exists { path, others: 0 } => {
                write!(f, "The file {} exists already.", path.display())
            }
            FileError::Exists { path, others } => {
                write!(f, "The file {} and {others} more exist already.", path.display())
            }
            FileError::Folder { path, error } => {
                write!(f, "The folder {} can't be made: {error}.", path.display())
            }
            FileError::Write { path, error } => write!(
                f,
                "The file {} can't be written: {error}. What was unfinished is removed; complete \
                 files are kept.",
                path.display()
            ),
            FileError::Stopped => {
                f.write_str("Stopped. What was unfinished is removed; complete files are kept.")
            }
        }
    }
}

impl std::error::Error for FileError {}

impl FileError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            FileError::Exists { .. } => {
                Some("Add --overwrite to replace them, or choose another folder with --out.")
            }
            FileError::Folder { .. } => Some("Choose a folder that you may write with --out."),
            FileError::Write { error, .. } => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
                    "Make room, choose another folder with --out, or write less: fewer --tables, \
                     or one --part of several --parts.",
                ),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("Choose a folder that you may write with --out.")
                }
                _ => None,
            },
            FileError::Stopped => None,
        }
    }
}
