//! `--json`: the result for programs.

use crate::output::DataWriter;
use dyno_core::harmless_json;
use dyno_engine::record::Frame;
use dyno_facts::{SeriesRow, TrialStatus, TrialSummary};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the result goes. Opened before the run, so that a folder that can't be written to is found
/// before the time is spent; what is there stays until there is a result.
pub struct JsonFile {
    program: &'static str,
    path: PathBuf,
    /// `None` is stdout.
    file: Option<File>,
    is_new: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    program: &'static str,
    version: &'static str,
    /// As typed, passwords replaced.
    command_line: &'a [String],
    /// Percentiles of the latency asked for, in microseconds.
    percentiles_us: BTreeMap<String, f64>,
    /// Why the run is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    summary: TrialSummary,
    /// One entry per interval, warm-up included.
    intervals: Vec<SeriesRow>,
}

impl JsonFile {
    /// Creates the file for a result of `program`; `-` is stdout.
    pub fn create(program: &'static str, path: &Path) -> Result<Self, String> {
        let mut json = JsonFile { program, path: path.to_owned(), file: None, is_new: false };
        if path.as_os_str() != "-" {
            json.is_new = !path.exists();
            let opened = File::options().write(true).create(true).truncate(false).open(path);
            json.file = Some(opened.map_err(|error| {
                format!("The file of --json can't be made: {}: {error}", path.display())
            })?);
        }
        Ok(json)
    }

    pub fn write(
        mut self,
        command_line: &[String],
        summary: TrialSummary,
        total: &Frame,
        percentiles: &[f64],
        intervals: Vec<SeriesRow>,
    ) -> Result<(), String> {
        let latency = total.latency();
        let error = match &summary.status {
            TrialStatus::Failed(why) => Some(why.to_string()),
            _ => None,
        };
        let at = |percent: &f64| (percent.to_string(), latency.percentile(*percent) as f64 / 1e3);
        let document = Document {
            program: self.program,
            version: env!("CARGO_PKG_VERSION"),
            command_line,
            percentiles_us: percentiles.iter().map(at).collect(),
            error,
            summary,
            intervals,
        };
        self.put(&document).map_err(|error| {
            format!("The file of --json can't be written: {}: {error}", self.path.display())
        })
    }

    fn put(&mut self, document: &Document<'_>) -> io::Result<()> {
        let text = harmless_json(&serde_json::to_string_pretty(document)?) + "\n";
        match &mut self.file {
            None => {
                DataWriter.write_all(text.as_bytes())?;
                DataWriter.flush()
            }
            Some(file) => {
                // A pipe has no length to set.
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                self.is_new = false;
                file.write_all(text.as_bytes())
            }
        }
    }
}

/// A run that did not begin leaves no empty file.
impl Drop for JsonFile {
    fn drop(&mut self) {
        if self.is_new {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
