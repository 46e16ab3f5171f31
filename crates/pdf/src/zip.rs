//! Archives as office documents are: deflated files, in the order in which they are given, without times.

use crate::PdfError;
use flate2::Compression;
use flate2::Crc;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// What marks a name as UTF-8.
const UTF8: u16 = 1 << 11;
const DEFLATED: u16 = 8;
/// 1980-01-01, the first day there is.
const DAY: u16 = 1 << 5 | 1;

/// An archive of files with their paths; the same files give the same bytes.
///
/// # Errors
/// When it is larger than 4 GiB or has more than 65,535 files.
pub fn zip<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Vec<u8>, PdfError> {
    let large = |_| PdfError::new("The docx is too large for its format (4 GiB, 65,535 files).");
    let mut out = Vec::new();
    let mut directory = Vec::new();
    let mut count = 0_usize;
    for (name, data) in files {
        let at = u32::try_from(out.len()).map_err(large)?;
        let mut crc = Crc::new();
        crc.update(data);
        let packed = deflated(data)?;
        let sizes = [packed.len(), data.len()].map(u32::try_from);
        let [packed_len, len] = [sizes[0].map_err(large)?, sizes[1].map_err(large)?];
        let mut entry = Vec::new();
        for word in [20, UTF8, DEFLATED, 0, DAY] {
            entry.extend_from_slice(&word.to_le_bytes());
        }
        for number in [crc.sum(), packed_len, len] {
            entry.extend_from_slice(&number.to_le_bytes());
        }
        for word in [u16::try_from(name.len()).map_err(large)?, 0] {
            entry.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&entry);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&packed);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&entry);
        // No comment, first disk, no attributes.
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&at.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
        count += 1;
    }
    let ends = [directory.len(), out.len()].map(u32::try_from);
    let count = u16::try_from(count).map_err(large)?;
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    for end in ends {
        out.extend_from_slice(&end.map_err(large)?.to_le_bytes());
    }
    out.extend_from_slice(&[0; 2]);
    Ok(out)
}

fn deflated(data: &[u8]) -> Result<Vec<u8>, PdfError> {
    let failed =
        |error: std::io::Error| PdfError::new(format!("The document can't be packed: {error}."));
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).map_err(failed)?;
    encoder.finish().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn other_programs_can_read_it() {
        let long = "x".repeat(100_000);
        let files = [("a.txt", b"one".as_slice()), ("b/\u{e9}.txt", long.as_bytes())];
        let archive = zip(files).expect("made");
        assert!(archive.len() < 1_000, "it is packed: {}", archive.len());
        assert_eq!(archive, zip(files).expect("made"), "the same bytes");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.zip");
        std::fs::write(&path, &archive).expect("written");
        // Python is on every machine that builds dyno's tests; it checks the sums, too.
        let script = "import sys,zipfile;z=zipfile.ZipFile(sys.argv[1]);assert z.testzip() is None;\
                      print([(n,len(z.read(n))) for n in z.namelist()])";
        let ran =
            Command::new("python3").args(["-c", script]).arg(&path).output().expect("python3");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(said.trim(), "[('a.txt', 3), ('b/\u{e9}.txt', 100000)]", "{wrong}");
    }
}
