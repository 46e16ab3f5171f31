//! The result directory of a run, as BenchmarkSQL 5.0 writes it and its R scripts read it.
//!
//! - `name`: its name and the number of the run.
//! - `lines`: `data/result.csv`, a line per transaction. `summary`: `data/tx_summary.csv`.
//!
//! In the order of a run: [`next_run`], [`Results::create`], [`Results::log`] into the workload,
//! [`Results::opened`] when the workers are released, [`Results::finish`] after the trial.
//!
//! The README of `dyno-tpcc` lists where it departs from BenchmarkSQL's.

mod lines;
mod name;
mod summary;

pub(super) use name::next_run;

use super::console::WallClock;
use dyno_core::{MILLISECOND, Nanos};
use dyno_engine::Control;
use dyno_runner::failure::Failure;
use dyno_tpcc::TerminalLog;
use dyno_tpcc::profile::DeliveryMode;
use lines::{Format, ResultLines};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug)]
pub(super) struct Request<'a> {
    /// The property `resultDirectory`.
    pub(super) template: &'a str,
    /// The text of `run.properties`.
    pub(super) properties: String,
    /// The number of the run, of [`next_run`].
    pub(super) run: u32,
    pub(super) delivery: DeliveryMode,
    /// The property `db`.
    pub(super) db: &'a str,
    /// The columns of `data/runInfo.csv` behind `sessionStart`.
    pub(super) run_info: String,
    /// Tells local time.
    pub(super) clock: WallClock,
}

#[derive(Debug)]
pub(super) struct Results {
    // What writes into the folder ends before it.
    lines: ResultLines,
    folder: Folder,
    /// The columns of `data/runInfo.csv` before and behind `sessionStart`.
    run_info: [String; 2],
    clock: WallClock,
    control: Arc<Control>,
}

/// The directory. It goes again when the session did not begin: there is nothing in it, and the next
/// attempt may want the same name.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    has_begun: AtomicBool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.has_begun.load(Ordering::Relaxed) {
            // What can't be removed harms nobody.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl Results {
    /// Makes the directory, `run.properties` and `data/result.csv`, of which nothing existed. When a
    /// file can't be written later, `control` ends the run, and [`Results::finish`] says why. All of
    /// it is removed again when the session does not begin.
    pub(super) fn create(request: Request<'_>, control: &Arc<Control>) -> Result<Self, Failure> {
        let Request { template, properties, run, delivery, db, run_info, clock } = request;
        let path = name::expand(template, clock.now())?;
        make_folder(&path)?;
        let folder = Folder { path: path.clone(), has_begun: AtomicBool::new(false) };
        let data = path.join("data");
        fs::create_dir(&data).map_err(|error| not_made(&data, &error))?;
        let copy = path.join("run.properties");
        fs::write(&copy, properties).map_err(|error| not_made(&copy, &error))?;
        let csv = data.join("result.csv");
        let file = File::create_new(&csv).map_err(|error| not_made(&csv, &error))?;
        let control = Arc::clone(control);
        let lines = ResultLines::new(file, Format { run, delivery }, Arc::clone(&control));
        let run_info = [format!("{run},dyno,{},{db},", env!("CARGO_PKG_VERSION")), run_info];
        Ok(Results { lines, folder, run_info, clock, control })
    }

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
    /// A file that can't be written; the run is stopped then.
    pub(super) fn opened(&self, opens: Nanos) -> Result<(), Failure> {
        self.folder.has_begun.store(true, Ordering::Relaxed);
        let path = self.folder.path.join("data/runInfo.csv");
        let written = fs::write(&path, self.run_info(opens));
        written.and_then(|()| self.lines.start(opens)).map_err(|error| {
            self.control.stop();
            not_written(&path, &error.to_string())
        })
    }

    fn run_info(&self, opens: Nanos) -> String {
        let start = self.clock.at(opens);
        let (date, [hour, minute, second]) =
            (start.date(), [start.hour(), start.minute(), start.second()]);
        let [before, behind] = &self.run_info;
        let ms = start.millisecond();
        format!(
            "run,driver,driverVersion,db,sessionStart,runMins,loadWarehouses,runWarehouses,\
             numSUTThreads,limitTxnsPerMin,thinkTimeMultiplier,keyingTimeMultiplier\n\
             {before}{date} {hour:02}:{minute:02}:{second:02}.{ms:03},{behind}\n"
        )
    }

    /// Writes what is left and `data/tx_summary.csv`, after all workers have left. `window` is the
    /// length of the measured one; `tpmc_limit` the tpmC that keying and think times allow, where
    /// there are any.
    ///
    /// # Errors
    /// Files that are incomplete.
    pub(super) fn finish(self, window: Nanos, tpmc_limit: Option<f64>) -> Result<(), Failure> {
        let data = self.folder.path.join("data");
        let summary = self.lines.finish();
        let summary = summary.map_err(|why| not_written(&data.join("result.csv"), &why))?;
        let path = data.join("tx_summary.csv");
        // Whole milliseconds, as the closing lines count.
        let minutes = (window / MILLISECOND) as f64 / 60_000.0;
        fs::write(&path, summary.csv(minutes, tpmc_limit))
            .map_err(|error| not_written(&path, &error.to_string()))
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

#[cfg(test)]
mod tests;
