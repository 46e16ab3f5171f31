//! Load generators that are killed, frozen and restarted at random, for as long as is requested: nothing is counted
//! twice, nothing is hidden, and the server's rows agree.
//!
//! `DYNO_STORM_MINUTES=20 cargo test -p dyno-tests --test clusters -- --ignored storm --nocapture`.

#![expect(clippy::print_stdout, reason = "a storm prints what it does")]

use super::Stage;
use dyno_facts::TrialStatus;
use dyno_store::TrialData;
use dyno_testkit::{Nats, Postgres, RunningDyno, only_run, server_or_skip};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const NAMES: [&str; 3] = ["a", "b", "c"];
const RATE: u64 = 600;
/// For so long a load generator may continue that no one hears: its lease, and what the coordinator waits.
const UNHEARD_S: u64 = 35;
const SUITE: &str = "[suite]\nname = \"storm\"\nsample_servers = false\n[target.main]\n[[experiment]]\n\
    name = \"storm\"\nworkload = \"pgbench\"\ntest = \"script\"\noptions = { scripts = [\"storm.sql\"], scale = 1 }\n\
    workers = 6\nrate = 600\nduration_s = 6\nrepeats = 1000\ncleanup = false\n";

/// Random numbers (xorshift) of a seed that is printed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

fn strike(stage: &mut Stage, dice: &mut Dice) {
    let number = dice.below(3) as usize;
    let name = NAMES[number];
    match dice.below(3) {
        0 => {
            let seconds = 1 + dice.below(14);
            println!("{name} is frozen for {seconds} s");
            stage.generators[number].signal(Signal::STOP);
            sleep(Duration::from_secs(seconds));
            stage.generators[number].signal(Signal::CONT);
        }
        how => {
            println!("{name} is {} and begins anew", if how == 1 { "killed" } else { "ended" });
            stage.generators[number].signal(if how == 1 { Signal::KILL } else { Signal::TERM });
            stage.generators[number].end();
            stage.add(name);
            let new = stage.generators.pop().expect("it was added");
            stage.generators[number] = new;
        }
    }
}

fn is_over(run: &RunningDyno) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", run.process()));
    status.map_or(true, |status| status.contains(") Z "))
}

/// Rows that may have been written beyond what was counted: what was in flight, and what those did that were lost.
fn uncounted_most(trial: &TrialData) -> u64 {
    let lost_members =
        trial.summary.conditions.members.iter().filter(|member| member.lost.is_some());
    let is_whole = matches!(trial.summary.status, TrialStatus::Complete | TrialStatus::Starved);
    let lost_members = if is_whole { lost_members.count() } else { NAMES.len() };
    trial.summary.in_flight + lost_members as u64 * RATE / 3 * UNHEARD_S
}

#[test]
#[ignore = "takes as many minutes as DYNO_STORM_MINUTES says, or three"]
fn storm_of_killed_frozen_and_restarted_load_generators() {
    let minutes = std::env::var("DYNO_STORM_MINUTES").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs_f64(60.0 * minutes.unwrap_or(3.0));
    let server = server_or_skip!(Postgres, "storm");
    let nats = server_or_skip!(Nats, "storm");
    server.sbtest("CREATE TABLE storm (seed bigint, client int)").expect("a table");
    let mut stage = Stage::new(&nats.url(""), &NAMES);
    let suite = stage.suite(SUITE);
    let script = "INSERT INTO storm VALUES (:random_seed, :client_id);\n";
    fs::write(stage.scratch.file("storm.sql"), script).expect("a script");
    let dice_seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs());
    println!("dice of {dice_seed}");
    let (mut dice, start) = (Dice(dice_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)), Instant::now());
    let mut starts = 0;
    let mut run = stage.start(&suite, &server.url(), &[]);
    while start.elapsed() < time {
        // A run whose load generators are all lost ends; the same command continues.
        if is_over(&run) {
            println!("the run has ended: {}", run.end().stderr.lines().last().unwrap_or_default());
            starts += 1;
            run = stage.start(&suite, &server.url(), &[]);
        }
        sleep(Duration::from_secs(1 + dice.below(6)));
        strike(&mut stage, &mut dice);
    }
    if !is_over(&run) {
        run.signal(Signal::INT);
    }
    run.end();
    // Whoever is left and unheard of ends with its lease.
    sleep(Duration::from_secs(UNHEARD_S));

    let data = dyno_store::read(&only_run(&stage.scratch.file("dyno-runs")).expect("one run"));
    let data = data.expect("a run");
    let rows = "SELECT seed || ' ' || count(*) FROM storm GROUP BY seed";
    let rows = server.sbtest(rows).expect("an answer");
    let pair = |line: &str| -> Option<(u64, u64)> {
        let (dice_seed, count) = line.trim().split_once(' ')?;
        Some((dice_seed.parse().ok()?, count.parse().ok()?))
    };
    let rows: BTreeMap<u64, u64> = rows.lines().filter_map(pair).collect();
    let mut reported: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for trial in &data.trials {
        let committed: u64 = trial.series.iter().map(|row| row.committed).sum();
        let seed_counts = reported.entry(trial.summary.seed).or_default();
        *seed_counts = (seed_counts.0 + committed, seed_counts.1 + uncounted_most(trial));
    }
    let mut uncounted = 0;
    for (seed, count) in &rows {
        let (counted, most) = reported.get(seed).copied().expect("every row belongs to a trial");
        assert!(counted <= *count, "{seed}: {counted} commits counted, {count} rows");
        assert!(*count <= counted + most, "{seed}: {count} rows, {counted} and {most} at most");
        uncounted += count - counted;
    }
    let count_trials = |has_status: fn(&TrialStatus) -> bool| {
        data.trials.iter().filter(|trial| has_status(&trial.summary.status)).count()
    };
    println!(
        "{} trials: {} complete, {} starved, {} failed; {starts} further starts; {} rows, {uncounted} of them uncounted, \
         in flight or of load generators that were lost",
        data.trials.len(),
        count_trials(|status| *status == TrialStatus::Complete),
        count_trials(|status| *status == TrialStatus::Starved),
        count_trials(|status| matches!(status, TrialStatus::Failed(_))),
        rows.values().sum::<u64>()
    );
    assert!(count_trials(|status| *status == TrialStatus::Complete) > 0, "none was complete");
}
