//! Reads what was added to a file that grows by whole lines.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    read: u64,
    /// The first line, for a file whose first line names its columns.
    columns: Option<String>,
}

impl Tail {
    pub(crate) fn new(path: PathBuf) -> Self {
        Tail { path, read: 0, columns: None }
    }

    /// The whole lines that were added since the last call; empty where there are none or no file.
    pub(crate) fn lines(&mut self) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut text)
        });
        // What can't be read now is read at the next call.
        let whole = match (read, text.iter().rposition(|&byte| byte == b'\n')) {
            (Ok(_), Some(end)) => &text[..=end],
            _ => return String::new(),
        };
        self.read += whole.len() as u64;
        String::from_utf8_lossy(whole).into_owned()
    }

    /// The same for a file with columns: the line that names them stands before the new ones.
    pub(crate) fn table(&mut self) -> Option<String> {
        let mut text = self.lines();
        if self.columns.is_none() {
            let end = text.find('\n')? + 1;
            self.columns = Some(text.drain(..end).collect());
        }
        let columns = self.columns.as_deref()?;
        (!text.is_empty()).then(|| format!("{columns}{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_come_once_and_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.csv");
        let (mut lines, mut table) = (Tail::new(path.clone()), Tail::new(path.clone()));
        assert_eq!((lines.lines(), table.table()), (String::new(), None));
        let mut file = File::create(&path).expect("made");
        file.write_all(b"a,b\n1,2\n3,").expect("written");
        assert_eq!(lines.lines(), "a,b\n1,2\n");
        assert_eq!(table.table().as_deref(), Some("a,b\n1,2\n"));
        assert_eq!((lines.lines(), table.table()), (String::new(), None));
        file.write_all(b"4\n").expect("written");
        assert_eq!(lines.lines(), "3,4\n");
        assert_eq!(table.table().as_deref(), Some("a,b\n3,4\n"));
    }
}
