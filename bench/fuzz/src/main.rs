//! The long run: all targets, for so many inputs together, on all cores.

use clap::Parser;
use dyno_fuzz::{Outcome, TARGETS, Target};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Reads hostile inputs by every target and prints what came of it; ends with 1 after a finding.
#[derive(Parser)]
struct Arguments {
    /// Inputs of all targets together
    #[arg(long, default_value_t = 100_000_000)]
    inputs: u64,
    /// Seconds after which it ends all the same
    #[arg(long, default_value_t = u64::MAX)]
    seconds: u64,
    /// Threads for each target, one target after the other
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// The random streams begin with this one; the same number makes the same inputs
    #[arg(long, default_value_t = 0)]
    stream: u64,
    /// Targets; all, unless some are named
    targets: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_wanted = |target: &&Target| {
        arguments.targets.is_empty() || arguments.targets.iter().any(|name| name == target.name)
    };
    let targets: Vec<&Target> = TARGETS.iter().filter(is_wanted).collect();
    if targets.is_empty() {
        let names = TARGETS.map(|target| target.name).join(", ");
        print_line(&format!("error: there is no such target; there are {names}"));
        return ExitCode::from(2);
    }
    let (mut inputs, mut findings, start) = (0, 0, Instant::now());
    let mut remaining_inputs = arguments.inputs;
    for (number, target) in (1..).zip(&targets) {
        let remaining_targets = (targets.len() - number + 1) as u64;
        let share = remaining_inputs / remaining_targets;
        let remaining_s = arguments.seconds.saturating_sub(start.elapsed().as_secs());
        let outcome = on_threads(
            target,
            &arguments,
            share,
            Duration::from_secs(remaining_s / remaining_targets),
        );
        let name = target.name;
        let (read, seconds) = (outcome.inputs, outcome.seconds);
        print_line(&format!(
            "{name:<16} {read:>11} inputs {seconds:>9.1} s  {} findings",
            outcome.findings.len()
        ));
        for (why, input) in &outcome.findings {
            let file = std::env::temp_dir().join(format!("dyno-fuzz-{name}-{findings}"));
            let saved_path = std::fs::write(&file, input).map(|()| file.display().to_string());
            print_line(&format!(
                "  {why}: {}",
                saved_path.unwrap_or_else(|error| error.to_string())
            ));
            findings += 1;
        }
        remaining_inputs = remaining_inputs.saturating_sub(read);
        inputs += read;
    }
    print_line(&format!(
        "{inputs} inputs, {:.0} s, {findings} findings",
        start.elapsed().as_secs_f64()
    ));
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn on_threads(target: &Target, arguments: &Arguments, inputs: u64, time: Duration) -> Outcome {
    let (begun, taken) = (Instant::now(), AtomicU64::new(0));
    let threads = arguments.threads.max(1);
    let run = &|thread: u64| {
        target.run(arguments.stream + thread, |_| {
            taken.fetch_add(1, Ordering::Relaxed) >= inputs || begun.elapsed() > time
        })
    };
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    let mut sum = Outcome::default();
    for outcome in outcomes {
        sum.inputs += outcome.inputs;
        sum.findings.extend(outcome.findings);
    }
    sum.seconds = begun.elapsed().as_secs_f64();
    sum
}

#[expect(clippy::print_stdout, reason = "it is what the program is for")]
fn print_line(line: &str) {
    println!("{line}");
}
