//! `--json`: the result for programs.

use crate::output::DataWriter;
use dyno_facts::{SeriesRow, TrialSummary};
use dyno_record::Frame;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the result goes. Made before the run, so that a folder that can't be written to is found
/// before the time is spent.
pub struct JsonFile {
    program: &'static str,
    path: PathBuf,
    out: Box<dyn Write>,
}

#[derive(Serialize)]
struct Document<'a> {
    program: &'static str,
    version: &'static str,
    /// As typed, passwords replaced.
    command_line: &'a [String],
    /// Percentiles of the latency asked for, in microseconds.
    percentiles_us: BTreeMap<String, f64>,
    #[serde(flatten)]
    summary: TrialSummary,
    /// One entry per interval, warm-up included.
    intervals: Vec<SeriesRow>,
}

impl JsonFile {
    /// Creates the file for a result of `program`; `-` is stdout.
    pub fn create(program: &'static str, path: &Path) -> Result<Self, String> {
        let out: Box<dyn Write> = if path.as_os_str() == "-" {
            Box::new(io::BufWriter::new(DataWriter))
        } else {
            let failed =
                |error| format!("The file of --json can't be made: {}: {error}", path.display());
            Box::new(File::create(path).map_err(failed)?)
        };
        Ok(JsonFile { program, path: path.to_owned(), out })
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
        let at = |percent: &f64| (percent.to_string(), latency.percentile(*percent) as f64 / 1e3);
        let document = Document {
            program: self.program,
            version: env!("CARGO_PKG_VERSION"),
            command_line,
            percentiles_us: percentiles.iter().map(at).collect(),
            summary,
            intervals,
        };
        serde_json::to_writer_pretty(&mut self.out, &document)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(self.out))
            .and_then(|()| self.out.flush())
            .map_err(|error| {
                format!("The file of --json can't be written: {}: {error}", self.path.display())
            })
    }
}
