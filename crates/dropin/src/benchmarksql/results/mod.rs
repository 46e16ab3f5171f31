//! The result directory of a run, as BenchmarkSQL 5.0 writes it and its R scripts read it; the README of
//! `dyno-tpcc` lists the differences. `lines` has `data/result.csv`, a line per transaction.
//!
//! Sorted in the order of a run: [`next_run`], [`Results::create`], [`Results::log`] into the workload,
//! [`Results::opened`] when the workers are released, [`Results::finish`] after the trial.

use super::run::{WallClock, session_time};
use dyno_core::Nanos;
use dyno_engine::Control;
use dyno_runner::failure::Failure;
use dyno_tpcc::TerminalLog;
pub(super) use lines::ResultFormat;
use lines::ResultLines;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use time::OffsetDateTime;

mod lines;

#[derive(Debug)]
pub(super) struct Results {
    // What writes into the folder ends before it.
    lines: ResultLines,
    folder: Folder,
    /// The columns of `data/runInfo.csv` before and after `sessionStart`.
    run_info: [String; 2],
    clock: WallClock,
    control: Arc<Control>,
}

/// The directory. It is removed if the session did not begin: there is nothing in it, and the next attempt may want its
/// name.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    has_begun: AtomicBool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.has_begun.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl Results {
    /// Makes the directory that the property `resultDirectory` names, `run.properties` with the text `properties`, and
    /// `data/result.csv`, of which nothing existed. When a file can't be written later, `control` ends the run, and
    /// [`Results::finish`] says why.
    pub(super) fn create(
        template: &str,
        properties: String,
        format: ResultFormat,
        run_info: [String; 2],
        clock: WallClock,
        control: &Arc<Control>,
    ) -> Result<Self, Failure> {
        let path = expand(template, clock.now())?;
        make_folder(&path)?;
        let [data, copy] = ["data", "run.properties"].map(|name| path.join(name));
        let folder = Folder { path, has_begun: AtomicBool::new(false) };
        fs::create_dir(&data).map_err(|error| not_made(&data, &error))?;
        fs::write(&copy, properties).map_err(|error| not_made(&copy, &error))?;
        let csv = data.join("result.csv");
        let lines = File::create_new(&csv)
            .and_then(|file| ResultLines::new(file, format, Arc::clone(control)))
            .map_err(|error| not_made(&csv, &error))?;
        Ok(Results { lines, folder, run_info, clock, control: Arc::clone(control) })
    }

    /// Returns the folder of the results.
    pub(super) fn path(&self) -> &Path {
        &self.folder.path
    }

    /// For [`dyno_tpcc::Tpcc::with_log`].
    pub(super) fn log(&self) -> Arc<dyn TerminalLog> {
        self.lines.log()
    }

    /// The session starts at `opens`, by the clock of the loops: writes `data/runInfo.csv`.
    ///
    /// # Errors
    /// The file can't be written; the run is stopped then.
    pub(super) fn opened(&self, opens: Nanos) -> Result<(), Failure> {
        self.folder.has_begun.store(true, Ordering::Relaxed);
        self.lines.start(opens);
        let path = self.folder.path.join("data/runInfo.csv");
        let start = self.clock.at(opens);
        let [before, after] = &self.run_info;
        let text = format!(
            "run,driver,driverVersion,db,sessionStart,runMins,loadWarehouses,runWarehouses,\
             numSUTThreads,limitTxnsPerMin,thinkTimeMultiplier,keyingTimeMultiplier\n\
             {before}{}.{:03},{after}\n",
            session_time(start),
            start.millisecond()
        );
        fs::write(&path, text).map_err(|error| {
            self.control.stop();
            not_written(&path, &error.to_string())
        })
    }

    /// Writes what is left, after all workers have left.
    ///
    /// # Errors
    /// A file that is incomplete.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let path = self.folder.path.join("data/result.csv");
        self.lines.finish().map_err(|why| not_written(&path, &why))
    }
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    fs::create_dir(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::new(format!("The result directory {name} exists; nothing in it was changed."))
                .with_hint(
                    "Give resultDirectory another name, or one with the time in it, such as \
                     `my_result_%tY-%tm-%td_%tH%tM%tS`.",
                )
        }
        ErrorKind::NotFound => Failure::new(format!(
            "The result directory {name} can't be made, because the folder above it does not exist."
        )),
        _ => not_made(path, &error),
    })
}

fn not_made(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} can't be made: {error}.", path.display()))
}

fn not_written(path: &Path, why: &str) -> Failure {
    Failure::new(format!("{} can't be written: {why}. It is incomplete.", path.display()))
        .with_hint("Make room on its disk, or leave out resultDirectory.")
}

/// File of the current folder that holds the number of the last run, as BenchmarkSQL has it.
const SEQUENCE: &str = ".jTPCC_run_seq.dat";

/// The conversions of Java's dates that a name can hold: those that are numbers.
const KNOWN: &str = "Y y m d j H M S L";

/// Replaces each `%tX` of the property `resultDirectory` by that part of `now`, as Java writes it.
pub(super) fn expand(template: &str, now: OffsetDateTime) -> Result<PathBuf, Failure> {
    let mut pieces = template.split("%t");
    let mut name = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let mut letters = piece.chars();
        let letter = letters.next();
        name.push_str(&match letter {
            Some('Y') => format!("{:04}", now.year()),
            Some('y') => format!("{:02}", now.year().rem_euclid(100)),
            Some('m') => format!("{:02}", u8::from(now.month())),
            Some('d') => format!("{:02}", now.day()),
            Some('j') => format!("{:03}", now.ordinal()),
            Some('H') => format!("{:02}", now.hour()),
            Some('M') => format!("{:02}", now.minute()),
            Some('S') => format!("{:02}", now.second()),
            Some('L') => format!("{:03}", now.millisecond()),
            _ => {
                let letter = letter.map(String::from).unwrap_or_default();
                let message = format!(
                    "The property resultDirectory is `{template}`, and `%t{letter}` in it isn't part of a \
                     date or of a time."
                );
                let hint = format!("Known behind `%t` are: {KNOWN}.");
                return Err(Failure::new(message).with_hint(hint));
            }
        });
        name.push_str(letters.as_str());
    }
    Ok(PathBuf::from(name))
}

/// The number of the next run in `folder`: one more than the last one's, kept in a file that is made
/// when there is none.
pub(crate) fn next_run(folder: &Path) -> Result<u32, Failure> {
    let path = folder.join(SEQUENCE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => "0".to_owned(),
        Err(error) => return Err(sequence_failure(&path, &error.to_string())),
    };
    let number = text.trim().parse::<u32>().ok().and_then(|last| last.checked_add(1));
    let Some(number) = number else {
        let message = format!("{} holds no number of a run: `{}`.", path.display(), text.trim());
        return Err(Failure::new(message).with_hint("Delete the file to begin with run 1."));
    };
    // Whole or not at all: the file outlives a full disk.
    let written = dyno_store::write_atomically(&path, format!("{number}\n").as_bytes());
    written.map_err(|error| sequence_failure(&path, &error.to_string()))?;
    Ok(number)
}

/// Returns the failure to read or write the file of the next run's number.
fn sequence_failure(path: &Path, error: &str) -> Failure {
    let reason = error.trim_end_matches('.');
    Failure::new(format!("The number of the run can't be kept in {}: {reason}.", path.display()))
}

#[cfg(test)]
mod tests;
