//! `data/result.csv`: a line for each transaction, written by its own thread.

use dyno_core::{Nanos, Outcome, push_int};
use dyno_engine::Control;
use dyno_tpcc::profile::{DeliveryMode, TpccTransaction};
use dyno_tpcc::{LogEntry, TerminalLog};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const HEADER: &str = "run,elapsed,latency,dblatency,ttype,rbk,dskipped,error\n";
/// The file grows this often while transactions are few.
const PERIOD: Duration = Duration::from_millis(250);
/// Text that is written at once.
const TEXT_BYTES: usize = 1 << 18;
/// Blocks of workers that may wait for a slow disk.
const WAITING_MAX: usize = 1 << 15;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultFormat {
    /// The number of the run, of [`super::next_run`].
    pub(crate) run: u32,
    pub(crate) delivery: DeliveryMode,
}

impl ResultFormat {
    /// Writes the lines of an entry: one, or two if a Delivery has no background transaction. `opens` is
    /// the start of the session.
    fn push(&self, out: &mut String, entry: &LogEntry, opens: Nanos) {
        let &LogEntry { transaction, due, began, ended, .. } = entry;
        let is_inline = self.delivery == DeliveryMode::Inline;
        let name = match TpccTransaction::ALL.get(transaction) {
            Some(TpccTransaction::NewOrder) => "NEW_ORDER",
            Some(TpccTransaction::Payment) => "PAYMENT",
            Some(TpccTransaction::OrderStatus) => "ORDER_STATUS",
            Some(TpccTransaction::StockLevel) => "STOCK_LEVEL",
            // The terminal waits for the queueing alone.
            Some(TpccTransaction::Delivery) if !is_inline => "DELIVERY",
            // Behind the five: what was deferred.
            Some(TpccTransaction::Delivery) | None => "DELIVERY_BG",
        };
        if name == "DELIVERY_BG" && is_inline {
            let queued = [began.saturating_sub(opens), 0, 0];
            self.push_line(out, "DELIVERY", queued, &LogEntry { skipped: 0, ..*entry });
        }
        let times = [opens, due, began].map(|from| ended.saturating_sub(from));
        self.push_line(out, name, times, entry);
    }

    /// `times` are those since the session's start, since the transaction was due, and since its begin.
    fn push_line(&self, out: &mut String, name: &str, times: [Nanos; 3], entry: &LogEntry) {
        push_int(out, i64::from(self.run));
        for time in times {
            out.push(',');
            // To the nearest millisecond.
            push_int(out, ((time + 500_000) / 1_000_000) as i64);
        }
        out.push(',');
        out.push_str(name);
        let is_rolled_back = entry.outcome == Outcome::RolledBack;
        out.push_str(if is_rolled_back { ",1," } else { ",0," });
        push_int(out, i64::from(entry.skipped));
        let is_error = matches!(entry.outcome, Outcome::Failed(_));
        out.push_str(if is_error { ",1\n" } else { ",0\n" });
    }
}

/// Takes what workers have noted, and ends the run where the disk can't follow.
#[derive(Debug)]
struct Queue {
    blocks: SyncSender<Vec<LogEntry>>,
    is_overrun: AtomicBool,
    control: Arc<Control>,
}

impl TerminalLog for Queue {
    fn take(&self, entries: &mut Vec<LogEntry>) {
        if let Err(TrySendError::Full(_)) = self.blocks.try_send(entries.clone()) {
            self.is_overrun.store(true, Ordering::Relaxed);
            self.control.stop();
        }
        entries.clear();
    }
}

/// The file while it is written.
#[derive(Debug)]
pub(super) struct ResultLines {
    queue: Arc<Queue>,
    /// Tells the writer the start of the session.
    start: Sender<Nanos>,
    writer: JoinHandle<io::Result<()>>,
}

impl ResultLines {
    /// Writes into `file` once the session starts. When writing fails, `control` ends the run.
    pub(super) fn new(file: File, format: ResultFormat, control: Arc<Control>) -> io::Result<Self> {
        let (blocks, receiver) = sync_channel(WAITING_MAX);
        let (start, started) = channel();
        let stopped = Arc::clone(&control);
        let writer = Builder::new().name("result.csv".to_owned()).spawn(move || {
            // Without a session there is nothing to write.
            let Ok(opens) = started.recv() else { return Ok(()) };
            write_blocks(&receiver, file, format, opens).inspect_err(|_| stopped.stop())
        })?;
        let queue = Arc::new(Queue { blocks, is_overrun: AtomicBool::new(false), control });
        Ok(ResultLines { queue, start, writer })
    }

    /// The log into which workers write their transactions.
    pub(super) fn log(&self) -> Arc<dyn TerminalLog> {
        Arc::clone(&self.queue) as Arc<dyn TerminalLog>
    }

    /// The session starts at `opens`.
    pub(super) fn start(&self, opens: Nanos) {
        let _ = self.start.send(opens);
    }

    /// Writes what still waits, after all workers have left.
    ///
    /// # Errors
    /// The reason why the file is incomplete, behind "can't be written: ".
    pub(super) fn finish(self) -> Result<(), String> {
        let is_overrun = self.queue.is_overrun.load(Ordering::Relaxed);
        drop(self.start);
        // An empty block is the end. A writer that has failed takes none.
        let _ = self.queue.blocks.send(Vec::new());
        let written = self.writer.join().map_err(|_| "its writer has panicked".to_owned())?;
        written.map_err(|error| error.to_string())?;
        if is_overrun { Err("its disk was too slow".to_owned()) } else { Ok(()) }
    }
}

/// Writes the blocks as lines until an empty one comes.
fn write_blocks(
    blocks: &Receiver<Vec<LogEntry>>,
    mut file: File,
    format: ResultFormat,
    opens: Nanos,
) -> io::Result<()> {
    let mut text = HEADER.to_owned();
    loop {
        let block = blocks.recv_timeout(PERIOD);
        let is_idle = block == Err(RecvTimeoutError::Timeout);
        let block = block.unwrap_or_default();
        let is_last = block.is_empty() && !is_idle;
        for entry in &block {
            format.push(&mut text, entry, opens);
        }
        if is_idle || is_last || text.len() >= TEXT_BYTES {
            file.write_all(text.as_bytes())?;
            text.clear();
        }
        if is_last {
            // A disk that is full may say so only now.
            file.sync_data()?;
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;

    const INLINE: ResultFormat = ResultFormat { run: 7, delivery: DeliveryMode::Inline };
    const MS: Nanos = 1_000_000;

    fn entry(transaction: usize, outcome: Outcome, skipped: u32) -> LogEntry {
        let (due, began, ended) = (1_010 * MS, 1_012 * MS, 1_040 * MS + MS / 2);
        LogEntry { transaction, outcome, skipped, due, began, ended }
    }

    fn text(format: ResultFormat, entry: &LogEntry) -> String {
        let mut out = String::new();
        format.push(&mut out, entry, 1_000 * MS);
        out
    }

    #[test]
    fn a_line_has_milliseconds_and_flags() {
        for (outcome, flags) in [
            (Outcome::Committed, "0,0,0"),
            (Outcome::RolledBack, "1,0,0"),
            (Outcome::Failed(ErrorClass::Deadlock), "0,0,1"),
        ] {
            let lines = text(INLINE, &entry(0, outcome, 0));
            assert_eq!(lines, format!("7,41,31,29,NEW_ORDER,{flags}\n"));
        }
        let names = [1, 2, 4].map(|kind| text(INLINE, &entry(kind, Outcome::Committed, 0)));
        assert_eq!(names[0], "7,41,31,29,PAYMENT,0,0,0\n");
        assert_eq!(names[1], "7,41,31,29,ORDER_STATUS,0,0,0\n");
        assert_eq!(names[2], "7,41,31,29,STOCK_LEVEL,0,0,0\n");
    }

    #[test]
    fn an_inline_delivery_has_two_lines_and_a_deferred_one_one_each() {
        let inline = text(INLINE, &entry(3, Outcome::Committed, 2));
        assert_eq!(inline, "7,12,0,0,DELIVERY,0,0,0\n7,41,31,29,DELIVERY_BG,0,2,0\n");
        let failed = text(INLINE, &entry(3, Outcome::Failed(ErrorClass::Deadlock), 0));
        assert_eq!(failed, "7,12,0,0,DELIVERY,0,0,1\n7,41,31,29,DELIVERY_BG,0,0,1\n");
        let deferred = ResultFormat { delivery: DeliveryMode::Deferred, ..INLINE };
        let [queued, done] = [3, 5].map(|kind| text(deferred, &entry(kind, Outcome::Committed, 0)));
        assert_eq!(queued, "7,41,31,29,DELIVERY,0,0,0\n");
        assert_eq!(done, "7,41,31,29,DELIVERY_BG,0,0,0\n");
    }

    struct Written {
        _folder: tempfile::TempDir,
        path: std::path::PathBuf,
        control: Arc<Control>,
        lines: ResultLines,
    }

    fn create() -> Written {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.csv");
        let control = Arc::new(Control::new());
        let file = File::create_new(&path).unwrap();
        let lines = ResultLines::new(file, INLINE, control.clone()).unwrap();
        Written { _folder: folder, path, control, lines }
    }

    #[test]
    fn many_workers_write_whole_lines_into_one_file() {
        let written = create();
        let log = written.lines.log();
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let log = log.clone();
                scope.spawn(move || {
                    for _ in 0..100 {
                        let record = entry(worker % 5, Outcome::Committed, 0);
                        log.take(&mut vec![record; 64]);
                    }
                });
            }
        });
        written.lines.start(1_000 * MS);
        written.lines.finish().unwrap();
        let text = std::fs::read_to_string(&written.path).unwrap();
        assert!(text.starts_with(HEADER));
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), 8, "{line}");
            let numbers = [0, 1, 2, 3, 5, 6, 7].map(|index| fields[index].parse::<u64>().is_ok());
            assert_eq!(numbers, [true; 7], "{line}");
        }
        // Worker 3 alone delivers: two lines each.
        assert_eq!(text.lines().count(), 1 + 9 * 6_400);
        assert!(!written.control.is_stopped());
    }

    #[test]
    fn a_full_disk_ends_the_run() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let control = Arc::new(Control::new());
        let lines = ResultLines::new(full, INLINE, control.clone()).unwrap();
        lines.start(0);
        lines.log().take(&mut vec![entry(0, Outcome::Committed, 0); 64]);
        while !control.is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = lines.finish().unwrap_err();
        assert!(error.contains("No space left"), "{error}");
    }

    #[test]
    fn a_disk_that_cannot_follow_ends_the_run() {
        // As long as the session has not begun nothing is written.
        let written = create();
        let log = written.lines.log();
        let mut block = vec![entry(0, Outcome::Committed, 0)];
        for _ in 0..WAITING_MAX {
            log.take(&mut block.clone());
        }
        assert!(!written.control.is_stopped());
        log.take(&mut block);
        assert!(written.control.is_stopped() && block.is_empty());
        let error = written.lines.finish().unwrap_err();
        assert!(error.contains("too slow"), "{error}");
    }
}
