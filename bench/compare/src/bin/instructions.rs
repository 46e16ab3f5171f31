//! `instructions`: how many instructions of its own a loop of dyno executes per transaction, by function.
//!
//! Starts dyno, lets its first loop run one instruction at a time and counts where each one lies: exact, whatever
//! the machine does meanwhile, and without a processor's counters, which virtual machines often hide. System calls
//! count as one instruction.
//!
//!     cargo run --release -p dyno-bench --bin instructions -- target/release/dyno pgbench -n -S -M prepared -c 64 -j 1 -T 60 bench

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

const STEPS: usize = 500_000;
/// The function that is executed once per transaction.
const MARKER: &str = "dyno_engine::worker::Worker<W,D,S>::ended";
/// A function that is executed once a second, which in slow motion would be once per few transactions: it is left out,
/// with all that it calls.
const ONCE_A_SECOND: &str = "dyno_engine::record::recorder::Recorder<S>::hand_over";
/// Until all workers are connected, their buffers have grown, and the due times of their connecting have passed.
const WARM_UP: Duration = Duration::from_secs(35);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        let _ = writeln!(io::stderr(), "usage: instructions DYNO ARGUMENT...");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let report = command.spawn().map_err(|error| error.to_string()).and_then(|mut child| {
        std::thread::sleep(WARM_UP);
        let report = count(&child, Path::new(&program));
        end(&mut child);
        report
    });
    let printed = report.and_then(|text| {
        io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn count(child: &Child, program: &Path) -> Result<String, String> {
    let thread = first_loop(child.id())?;
    let base = base_address(child.id(), program)?;
    let symbols = symbols(program)?;
    let addresses = step(thread).map_err(|error| format!("the loop can't be stepped: {error}"))?;

    let mut by_function: HashMap<&str, usize> = HashMap::new();
    let (mut transactions, mut left_out) = (0, 0);
    let mut before = "";
    // The caller of what is left out, until it continues.
    let mut caller = None;
    for address in addresses {
        let at = address.wrapping_sub(base);
        let next = symbols.partition_point(|(start, _)| *start <= at);
        let (offset, name) = if next > 0 && next < symbols.len() {
            (at - symbols[next - 1].0, symbols[next - 1].1.as_str())
        } else {
            (1, "(outside of the program: libc, vdso)")
        };
        if offset == 0 && name.contains(ONCE_A_SECOND) {
            caller = Some(before);
        } else if caller == Some(name) {
            caller = None;
        }
        before = name;
        if caller.is_some() {
            left_out += 1;
            continue;
        }
        transactions += usize::from(offset == 0 && name.contains(MARKER));
        *by_function.entry(name).or_default() += 1;
    }
    if transactions == 0 {
        return Err(format!("no transaction ended within {STEPS} instructions"));
    }
    let per_transaction = |count: usize| count as f64 / transactions as f64;
    let instructions = by_function.values().sum();
    let mut text = format!(
        "{:.0} instructions per transaction, of {transactions}; {:.0} more are executed once a second\n",
        per_transaction(instructions),
        per_transaction(left_out)
    );
    let mut sorted: Vec<_> = by_function.into_iter().collect();
    sorted.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    for (name, count) in sorted.into_iter().take(40) {
        text.push_str(&format!("{:8.1} {name}\n", per_transaction(count)));
    }
    Ok(text)
}

/// The thread of the first event loop.
fn first_loop(process: u32) -> Result<Pid, String> {
    let threads =
        fs::read_dir(format!("/proc/{process}/task")).map_err(|error| error.to_string())?;
    for thread in threads.flatten() {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        let number = thread.file_name().to_string_lossy().parse();
        if let (Ok(number), "loop-0") = (number, name.trim()) {
            return Ok(Pid::from_raw(number));
        }
    }
    Err(format!("dyno has no event loop {} s after its start", WARM_UP.as_secs()))
}

/// Start of the program in the memory of its process.
fn base_address(process: u32, program: &Path) -> Result<u64, String> {
    let program = fs::canonicalize(program).map_err(|error| error.to_string())?;
    let maps =
        fs::read_to_string(format!("/proc/{process}/maps")).map_err(|error| error.to_string())?;
    let mapping = maps.lines().find(|line| line.ends_with(&*program.to_string_lossy()));
    let base = mapping.and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok());
    base.ok_or_else(|| format!("{} is not mapped by its own process", program.display()))
}

/// Functions by their addresses.
fn symbols(program: &Path) -> Result<Vec<(u64, String)>, String> {
    let listed = Command::new("nm").args(["-C", "--defined-only"]).arg(program).output();
    let listed = listed.map_err(|error| format!("nm (binutils) can't be started: {error}"))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let functions = text.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
        let address = u64::from_str_radix(address, 16).ok()?;
        matches!(kind, "t" | "T" | "w" | "W").then(|| (address, name.to_owned()))
    });
    let mut symbols: Vec<_> = functions.collect();
    symbols.sort();
    Ok(symbols)
}

/// Executes that many instructions of a thread one by one; where each of them lies.
fn step(thread: Pid) -> nix::Result<Vec<u64>> {
    ptrace::seize(thread, ptrace::Options::empty())?;
    ptrace::interrupt(thread)?;
    let wait_for_stop = || waitpid(thread, Some(WaitPidFlag::__WALL));
    wait_for_stop()?;
    let mut addresses = Vec::with_capacity(STEPS);
    while addresses.len() < STEPS {
        ptrace::step(thread, None)?;
        if let WaitStatus::Exited(..) | WaitStatus::Signaled(..) = wait_for_stop()? {
            break;
        }
        addresses.push(address(&ptrace::getregs(thread)?));
    }
    ptrace::detach(thread, None)?;
    Ok(addresses)
}

#[cfg(target_arch = "x86_64")]
fn address(registers: &nix::libc::user_regs_struct) -> u64 {
    registers.rip
}

#[cfg(target_arch = "aarch64")]
fn address(registers: &nix::libc::user_regs_struct) -> u64 {
    registers.pc
}
