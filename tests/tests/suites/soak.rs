//! Soaks: long trials at a rate on a PostgreSQL, while dyno and the server are killed. Every row of the server is
//! accounted for by the stage, or the attempt at one, that has written it.
//!
//! The long one is ignored: `DYNO_SOAK_MINUTES=60 cargo test -p dyno-tests --test suites -- --ignored soak
//! --nocapture`.

#![expect(clippy::print_stdout, reason = "a soak prints its figures")]

use dyno_facts::{RunStatus, TrialStatus};
use dyno_store::{RunData, TrialData};
use dyno_testkit::{
    Postgres, ProcessOutput, RunningDyno, Scratch, commits, dyno, only_run, server_or_skip,
};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const WORKERS: u64 = 8;

struct Soak {
    seconds: f64,
    stage_s: f64,
    rate: f64,
    /// Events with their stages, in their order.
    events: Vec<(u64, Event)>,
    serves: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    DynoKilled,
    ServerKilled,
}

/// Observations from outside.
#[derive(Default)]
struct ProcessMemory {
    /// Memory that each process has of its own, in its 30th second and at most since, KiB. Pages of the program itself
    /// are not among it: the end of the first stage reads code that nothing has read before.
    memory: Vec<(u64, u64)>,
}

impl Soak {
    fn suite(&self, folder: &Path, url: &str) {
        let text = format!(
            "[suite]\nname = \"soak\"\n[target.main]\nurl = \"{url}\"\n[[experiment]]\nname = \"soak\"\n\
             workload = \"pgbench\"\ntest = \"script\"\noptions = {{ scripts = [\"soak.sql\"], scale = 1 }}\n\
             workers = {WORKERS}\nrate = {}\nwarmup_s = 1\nduration_s = {}\nstage_s = {}\nretry_starved = 2\ncleanup = false\n",
            self.rate, self.seconds, self.stage_s
        );
        fs::write(folder.join("soak.toml"), text).expect("a suite can be written");
        let script = "INSERT INTO soak VALUES (:random_seed, :client_id);\n";
        fs::write(folder.join("soak.sql"), script).expect("a script can be written");
    }

    fn arguments(&self) -> Vec<&'static str> {
        let options: &[&str] = if self.serves { &["--serve"] } else { &[] };
        [&["run", "soak.toml", "--dir", "runs"], options].concat()
    }

    fn play(&self, folder: &Path, server: &mut Postgres) -> (ProcessOutput, ProcessMemory) {
        self.suite(folder, &server.url());
        let mut process_memory = ProcessMemory::default();
        for (number, event) in &self.events {
            let mut running = RunningDyno::start(folder, &self.arguments());
            watch(&mut running, &mut process_memory, |_| is_within(folder, *number));
            match event {
                Event::DynoKilled => {
                    running.signal(Signal::KILL);
                    running.end();
                }
                Event::ServerKilled => {
                    server.kill();
                    let output = running.end();
                    assert_eq!(output.code, 1, "{output}");
                    server.restart().expect("it starts again");
                }
            }
        }
        let mut running = RunningDyno::start(folder, &self.arguments());
        let is_over = |running: &RunningDyno| {
            let status = fs::read_to_string(format!("/proc/{}/stat", running.process()));
            status.map_or(true, |status| status.contains(") Z "))
        };
        watch(&mut running, &mut process_memory, is_over);
        (running.end(), process_memory)
    }
}

/// Waits, for as long as it takes, and notes how much memory dyno has.
fn watch(
    running: &mut RunningDyno,
    process_memory: &mut ProcessMemory,
    mut is_so: impl FnMut(&RunningDyno) -> bool,
) {
    let start = Instant::now();
    let mut memory: Option<(u64, u64)> = None;
    while !is_so(running) {
        assert!(start.elapsed() < Duration::from_secs(7_200), "{}", running.stderr());
        if let Some(current) = own_memory_kib(running.process())
            && start.elapsed() > Duration::from_secs(30)
        {
            let (first, most) = memory.unwrap_or((current, current));
            memory = Some((first, most.max(current)));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    process_memory.memory.extend(memory);
}

fn own_memory_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns true if two intervals of this stage, or a later one, were measured.
fn is_within(folder: &Path, stage: u64) -> bool {
    let Some(run) = only_run(&folder.join("runs")) else { return false };
    let trials = fs::read_dir(run.join("trials")).into_iter().flatten().flatten();
    let running = trials.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number: u32 = name.strip_suffix(".partial.json")?.parse().ok()?;
        let start = fs::read(entry.path()).ok()?;
        let start: serde_json::Value = serde_json::from_slice(&start).ok()?;
        let reached_stage = start["stage"]["number"].as_u64()?;
        (reached_stage >= stage).then_some(number)
    });
    running.max().is_some_and(|trial| commits(&run, trial).len() > 1)
}

/// Commits that dyno has stored of a trial, warm-up included.
fn recorded(trial: &TrialData) -> u64 {
    trial.series.iter().map(|row| row.committed).sum()
}

/// Holds the server's rows against what dyno has stored; returns both sums.
fn account(run: &RunData, server: &Postgres, rate: f64) -> (u64, u64) {
    let rows = "SELECT seed || ' ' || count(*) FROM soak GROUP BY seed";
    let rows = server.sbtest(rows).expect("an answer");
    let parse_pair = |line: &str| -> Option<(u64, u64)> {
        let (seed, count) = line.trim().split_once(' ')?;
        Some((seed.parse().ok()?, count.parse().ok()?))
    };
    let mut rows: BTreeMap<u64, u64> = rows.lines().filter_map(parse_pair).collect();
    let total_rows: u64 = rows.values().sum();
    let mut accounted = 0;
    for trial in run.trials.iter().filter(|trial| trial.summary.status == TrialStatus::Stage) {
        // What was in flight when the window closed has ended since, and is told.
        let stage_rows = recorded(trial) + trial.summary.in_flight;
        let seed_rows = rows.get_mut(&trial.summary.seed).expect("rows of each stage");
        *seed_rows =
            seed_rows.checked_sub(stage_rows).expect("no commit is counted that is no row");
        accounted += stage_rows;
    }
    for trial in &run.trials {
        let is_attempt =
            trial.summary.stage.is_some() && trial.summary.status != TrialStatus::Stage;
        if !is_attempt {
            continue;
        }
        let seed_rows = rows.get_mut(&trial.summary.seed).expect("rows of each attempt");
        let stored = recorded(trial);
        let extra = seed_rows.checked_sub(stored).expect("no commit is counted that is no row");
        // What an attempt did after its last stored interval no one has counted: two intervals at most, and what was in
        // flight.
        let unknown_most = (2.5 * rate) as u64 + WORKERS;
        let number = trial.summary.trial;
        assert!(extra <= unknown_most, "attempt {number}: {extra} rows beyond {stored}");
        println!("attempt {number}: {stored} commits stored, {extra} rows beyond them");
        accounted += *seed_rows;
        *seed_rows = 0;
    }
    assert!(rows.values().all(|left| *left == 0), "rows that belong to no stage: {rows:?}");
    (total_rows, accounted)
}

fn size_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| match entry.metadata().expect("it is there") {
            metadata if metadata.is_dir() => size_bytes(&entry.path()),
            metadata => metadata.len(),
        })
        .sum()
}

fn run_soak(soak: &Soak, server: &mut Postgres) -> (RunData, ProcessMemory) {
    let scratch = Scratch::new();
    server.sbtest("CREATE TABLE soak (seed bigint, client int)").expect("a table");
    let (output, process_memory) = soak.play(scratch.path(), server);
    assert_eq!(output.code, 0, "{output}");
    let path = only_run(&scratch.path().join("runs")).expect("one run");
    let run = dyno_store::read(&path).expect("a run");
    assert_eq!(run.status(), RunStatus::Complete);
    let (total_rows, accounted) = account(&run, server, soak.rate);
    println!("the server has {total_rows} rows, stages and attempts have written {accounted}");
    assert_eq!(total_rows, accounted);
    let sum = &run.trials.last().expect("trials").summary;
    let stages = run.trials.iter().filter(|trial| trial.summary.status == TrialStatus::Stage);
    let stage_commits: u64 = stages.map(|trial| trial.summary.counts.committed).sum();
    assert_eq!((&sum.status, sum.counts.committed), (&TrialStatus::Complete, stage_commits));
    let bytes_per_hour = size_bytes(&path) as f64 * 3_600.0 / soak.seconds;
    println!("the run folder has {} bytes: {bytes_per_hour:.0} an hour", size_bytes(&path));
    // The paper is not a matter of time.
    let series = size_bytes(&path.join("trials")) as f64 * 3_600.0 / soak.seconds;
    println!("of these trials/ {} bytes: {series:.0} an hour", size_bytes(&path.join("trials")));
    let summary = dyno(scratch.path(), &["show", &path.to_string_lossy()]).good().stdout;
    assert!(summary.contains("Stages of trials"), "{summary}");
    println!("{summary}");
    (run, process_memory)
}

#[test]
fn no_row_of_a_soak_is_lost_or_counted_twice_when_dyno_is_killed() {
    let name = "no_row_of_a_soak_is_lost_or_counted_twice_when_dyno_is_killed";
    let mut server = server_or_skip!(Postgres, name);
    let events = vec![(2, Event::DynoKilled), (3, Event::ServerKilled)];
    let soak = Soak { seconds: 12.0, stage_s: 3.0, rate: 300.0, events, serves: false };
    let (run, _) = run_soak(&soak, &mut server);
    let failed = run.trials.iter().filter(|it| matches!(it.summary.status, TrialStatus::Failed(_)));
    assert_eq!(failed.count(), 1, "the stage whose server was killed");
}

#[test]
#[ignore = "takes as many minutes as DYNO_SOAK_MINUTES says, or six"]
fn soak_at_2000_tx_s_while_dyno_is_killed_twice_and_the_server_once() {
    let minutes = std::env::var("DYNO_SOAK_MINUTES").ok().and_then(|text| text.parse().ok());
    let seconds = 60.0 * minutes.unwrap_or(6.0);
    let mut server = server_or_skip!(Postgres, "soak");
    // At least eight stages, of five minutes at most.
    let stage_s = (seconds / 8.0_f64).min(300.0);
    let events = vec![(2, Event::DynoKilled), (4, Event::ServerKilled), (6, Event::DynoKilled)];
    let soak = Soak { seconds, stage_s, rate: 2_000.0, events, serves: true };
    let (_, process_memory) = run_soak(&soak, &mut server);
    for (first, most) in &process_memory.memory {
        println!("own memory of a dyno: {first} KiB in its 30th second, {most} KiB at most since");
        assert!(most - first <= 5 << 10, "it has grown by more than 5 MiB");
    }
}
