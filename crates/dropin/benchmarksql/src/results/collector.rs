//! Collects what a machine does while the session runs: this one, or another one over ssh.

use super::system::{Sample, Tables, Texts, remote_command};
use dyno_core::{MILLISECOND, Nanos, SECOND};
use dyno_engine::Control;
use dyno_reactor::monotonic_now;
use dyno_runner::failure::{Failure, sentence};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is collected how: BenchmarkSQL's properties `osCollector...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectorOptions {
    /// Length of an interval in seconds, at least 1.
    pub(crate) interval_s: u32,
    /// The machine for ssh; `None` is this one.
    pub(crate) ssh: Option<String>,
    /// Names like `net_eth0` and `blk_sda`, between blanks.
    pub(crate) devices: String,
}

/// How often a collector looks whether the session has begun.
const LOOK: Nanos = 20 * MILLISECOND;
/// What is kept of the words of ssh, in bytes.
const WORDS_MAX: usize = 2_000;

#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) data: &'a Path,
    pub(super) run: u32,
    /// The start of the session, once it is known. Nothing is written before.
    pub(super) opens: Arc<OnceLock<Nanos>>,
    /// Ends the run when a file can't be written.
    pub(super) control: Arc<Control>,
}

#[derive(Debug)]
pub(super) struct Collector {
    is_stopped: Arc<AtomicBool>,
    wake: Sender<()>,
    ssh: Option<Child>,
    thread: Option<JoinHandle<Result<Vec<String>, String>>>,
}

impl Collector {
    /// Takes a first sample, makes the files and starts to collect.
    pub(super) fn start(options: &CollectorOptions, place: &Place<'_>) -> Result<Self, Failure> {
        let interval_s = options.interval_s.max(1);
        let (wake, woken) = channel();
        let (mut source, ssh) = match &options.ssh {
            None => {
                let interval = u64::from(interval_s) * SECOND;
                (Source::Here(Here { interval, due: None, woken }), None)
            }
            Some(address) => {
                let (remote, child) = Remote::connect(address, interval_s)?;
                (Source::Remote(remote), Some(child))
            }
        };
        // From here on an error ends ssh, too.
        let is_stopped = Arc::new(AtomicBool::new(false));
        let mut collector = Collector { is_stopped, wake, ssh, thread: None };
        let first = source.first()?;
        let devices = devices(&options.devices, &first, options.ssh.as_deref())?;
        let failed = |error: io::Error| {
            Failure::new(format!("The files of the OS collector can't be made: {error}."))
        };
        let tables = Tables::create(place.data, place.run, &devices).map_err(failed)?;
        let is_stopped = Arc::clone(&collector.is_stopped);
        let (opens, control) = (Arc::clone(&place.opens), Arc::clone(&place.control));
        let follow = move || {
            let followed = follow(source, first, tables, &opens, &is_stopped);
            if followed.is_err() {
                control.stop();
            }
            followed
        };
        let thread = std::thread::Builder::new().name("os-collector".to_owned());
        collector.thread = Some(thread.spawn(follow).map_err(failed)?);
        Ok(collector)
    }

    /// Ends the collection. Returns warnings, in sentences.
    ///
    /// # Errors
    /// Why the files are incomplete, behind "can't be written: ".
    pub(super) fn finish(mut self) -> Result<Vec<String>, String> {
        self.stop().unwrap_or_else(|| Ok(Vec::new()))
    }

    fn stop(&mut self) -> Option<Result<Vec<String>, String>> {
        self.is_stopped.store(true, Ordering::Relaxed);
        // A collector that has ended by itself does not listen.
        let _ = self.wake.send(());
        if let Some(mut ssh) = self.ssh.take() {
            // Its helpers, such as proxies, are in its group.
            let group = Pid::from_child(&ssh);
            let _ = kill_process_group(group, Signal::TERM);
            let _ = ssh.wait();
        }
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|_| Err("the OS collector has panicked".to_owned())))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop();
    }
}

fn devices(asked: &str, first: &Sample, address: Option<&str>) -> Result<Vec<String>, Failure> {
    let known = first.devices();
    let mut devices: Vec<String> = Vec::new();
    for device in asked.split_whitespace() {
        // A name is part of a file's name.
        if !known.iter().any(|known| known == device) || device.contains('/') {
            let machine = address.unwrap_or("This machine");
            let message = format!("{machine} has no device `{device}` (osCollectorDevices).");
            return Err(Failure::new(message).with_hint(format!("It has: {}.", known.join(", "))));
        }
        if !devices.iter().any(|known| known == device) {
            devices.push(device.to_owned());
        }
    }
    Ok(devices)
}

/// The collector's thread: a line for each interval within the session.
fn follow(
    mut source: Source,
    first: Sample,
    mut tables: Tables,
    opens: &OnceLock<Nanos>,
    is_stopped: &AtomicBool,
) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    let mut before = first;
    loop {
        let next = source.next(opens);
        if is_stopped.load(Ordering::Relaxed) {
            break;
        }
        let Some(after) = next.unwrap_or_else(|error| {
            warnings.push(source.lost(Some(&error)));
            None
        }) else {
            if warnings.is_empty() {
                warnings.push(source.lost(None));
            }
            break;
        };
        // What lies mostly before the start is no interval of the session.
        if let Some(&opens) = opens.get()
            && before.at.midpoint(after.at) >= opens
        {
            let elapsed_ms = after.at.saturating_sub(opens) / MILLISECOND;
            tables.write(elapsed_ms, &before, &after).map_err(|error| error.to_string())?;
        }
        before = after;
    }
    for device in tables.missed() {
        warnings.push(format!(
            "The device {device} was gone or reset for a while: its file lacks those intervals."
        ));
    }
    Ok(warnings)
}

#[derive(Debug)]
enum Source {
    Here(Here),
    Remote(Remote),
}

impl Source {
    fn first(&mut self) -> Result<Sample, Failure> {
        let sample = match self {
            Source::Here(_) => Some(Sample::new(monotonic_now(), &Texts::of_this_machine())),
            Source::Remote(remote) => remote.next().ok().flatten(),
        };
        match (sample, self) {
            (Some(sample), _) if sample.is_usable() => Ok(sample),
            (_, Source::Here(_)) => Err(Failure::new(
                "The OS collector reads /proc/stat, and this machine has none that it understands.",
            )),
            (Some(_), Source::Remote(Remote { address, .. })) => Err(Failure::new(format!(
                "The OS collector reads /proc/stat, and {address} has none that it understands."
            ))),
            (None, Source::Remote(remote)) => {
                let (words, address) = (remote.words(), &remote.address);
                let message = format!("The OS collector can't reach {address} by ssh{words}");
                Err(Failure::new(message).with_hint(format!(
                    "Make `ssh -o BatchMode=yes {address} true` work without a password, or leave \
                     out osCollectorSSHAddr."
                )))
            }
        }
    }

    /// The next sample; `None` at the end.
    fn next(&mut self, opens: &OnceLock<Nanos>) -> io::Result<Option<Sample>> {
        match self {
            Source::Here(here) => Ok(here.next(opens)),
            Source::Remote(remote) => remote.next(),
        }
    }

    /// What to say about an end that nobody asked for.
    fn lost(&self, error: Option<&io::Error>) -> String {
        let why = error.map(|error| format!(" ({error})")).unwrap_or_default();
        match self {
            Source::Here(_) => format!("The OS collector has ended early{why}."),
            Source::Remote(remote) => format!(
                "The OS collector has lost {} before the end of the session{why}; what it had \
                 collected is kept{}",
                remote.address,
                remote.words()
            ),
        }
    }
}

#[derive(Debug)]
struct Here {
    interval: Nanos,
    /// When the next sample is due, once the session has begun.
    due: Option<Nanos>,
    woken: Receiver<()>,
}

impl Here {
    /// Waits for the start of the session, then for the end of each interval since.
    fn next(&mut self, opens: &OnceLock<Nanos>) -> Option<Sample> {
        loop {
            let due = self.due.or_else(|| opens.get().copied());
            let now = monotonic_now();
            let pause = due.unwrap_or(now + LOOK).saturating_sub(now);
            match self.woken.recv_timeout(Duration::from_nanos(pause)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            }
            let Some(due) = due else { continue };
            let now = monotonic_now();
            // A machine that was asleep does not catch up.
            let missed = now.saturating_sub(due) / self.interval;
            self.due = Some(due + (missed + 1) * self.interval);
            return Some(Sample::new(now, &Texts::of_this_machine()));
        }
    }
}

/// Another machine, by ssh.
#[derive(Debug)]
struct Remote {
    address: String,
    output: BufReader<ChildStdout>,
    words: Arc<Mutex<Vec<u8>>>,
}

impl Remote {
    /// Starts the loop over there.
    fn connect(address: &str, interval_s: u32) -> Result<(Self, Child), Failure> {
        let failed = |error: io::Error| {
            Failure::new(format!("The OS collector can't start `ssh`: {error}."))
                .with_hint("Install an SSH client, or leave out osCollectorSSHAddr.")
        };
        let mut child = Command::new("ssh")
            // No questions, and an end where the network is silent.
            .args([
                "-o",
                "BatchMode=yes",
                "-o",
                "ConnectTimeout=20",
                "-o",
                "ServerAliveInterval=10",
            ])
            .args(["--", address, &remote_command(interval_s)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the run.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let words = Arc::default();
        if let Some(errors) = child.stderr.take() {
            let words = Arc::clone(&words);
            std::thread::spawn(move || listen(errors, &words));
        }
        let output = child.stdout.take().ok_or_else(|| failed(io::Error::other("no output")))?;
        let output = BufReader::new(output);
        Ok((Remote { address: address.to_owned(), output, words }, child))
    }

    fn next(&mut self) -> io::Result<Option<Sample>> {
        let texts = Texts::read(&mut self.output)?;
        Ok(texts.map(|texts| Sample::new(monotonic_now(), &texts)))
    }

    /// The end of a sentence: what ssh has said.
    fn words(&self) -> String {
        // Its output may end before its last words are read.
        std::thread::sleep(Duration::from_millis(100));
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&words);
        match words.trim() {
            "" => ".".to_owned(),
            words => format!(": {}", sentence(&words.lines().collect::<Vec<_>>().join(" "))),
        }
    }
}

/// Keeps the last words of ssh, so that it never waits for a reader.
fn listen(mut errors: ChildStderr, words: &Mutex<Vec<u8>>) {
    let mut piece = [0; 512];
    while let Ok(length @ 1..) = errors.read(&mut piece) {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend_from_slice(&piece[..length]);
        let excess = words.len().saturating_sub(WORDS_MAX);
        words.drain(..excess);
    }
}
