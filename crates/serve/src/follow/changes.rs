//! Whether it is worth while to read something again.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What was changed less than this ago may change again without another time stamp.
const SETTLED: Duration = Duration::from_secs(2);

/// Tells whether a file or folder was touched, without reading it.
#[derive(Debug, Default)]
pub(super) struct Changes {
    seen: Option<SystemTime>,
}

impl Changes {
    /// Whether it may have changed since the last call.
    pub(super) fn since_last(&mut self, path: &Path) -> bool {
        let Ok(modified) = fs::metadata(path).and_then(|metadata| metadata.modified()) else {
            return false;
        };
        let is_settled = modified.elapsed().is_ok_and(|age| age > SETTLED);
        let is_new = self.seen != Some(modified);
        // Only a time stamp that can't stand for another change is remembered.
        self.seen = is_settled.then_some(modified);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_is_told_once_and_what_is_new_until_it_has_settled() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        let mut changes = Changes::default();
        assert!(!changes.since_last(&path), "there is no such file");
        let file = fs::File::create(&path).expect("made");
        assert!(changes.since_last(&path) && changes.since_last(&path));
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        file.set_modified(long_ago).expect("set");
        assert!(changes.since_last(&path));
        assert!(!changes.since_last(&path));
    }
}
