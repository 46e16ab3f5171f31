//! Making the rows of a load allocates nothing per row.

#[path = "init/recorder.rs"]
mod recorder;

use dyno_core::Driver;
use dyno_load::LoadObserver;
use dyno_pgbench::init::{InitOptions, InitStep, initialize};
use dyno_testkit::{Counting, allocations};
use recorder::Recorder;
use std::sync::atomic::{AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread at the first and the last time that rows were reported.
#[derive(Default)]
struct AllocationMarks {
    first: AtomicU64,
    last: AtomicU64,
}

impl LoadObserver for AllocationMarks {
    fn rows_done(&self, _rows: u64) {
        let count = allocations();
        let _ = self.first.compare_exchange(0, count, Ordering::Relaxed, Ordering::Relaxed);
        self.last.store(count, Ordering::Relaxed);
    }
}

#[test]
fn no_row_allocates() {
    assert!(allocations() > 0, "the counting allocator is installed");
    let marks = AllocationMarks::default();
    let options = InitOptions {
        scale: 3,
        steps: vec![InitStep::CreateTables, InitStep::ClientData],
        ..InitOptions::default()
    };
    let report = initialize(&Recorder::new("15.20").admin(), &options, &marks).unwrap();
    assert_eq!(report.loaded.rows_loaded, 300_000);
    assert!(marks.first.load(Ordering::Relaxed) > 0);
    assert_eq!(marks.first.load(Ordering::Relaxed), marks.last.load(Ordering::Relaxed));
}
