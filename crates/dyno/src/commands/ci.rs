//! `dyno ci`: two builds or databases, compared for a pipeline: servers are started and stopped, both are measured
//! together for cost and in turn for capacity, and the verdict is written as pipelines read it.

use super::compare::EndLength;
use super::paper::build_paper;
use super::run::{RunSettings, parse_seconds, run_and_store};
use super::runs::RunsFolder;
use crate::{CommandResult, env_variable};
use dyno_facts::statistics::Metric;
use dyno_facts::statistics::gate::{Gate, GateFigure};
use dyno_facts::{Design, Lang, StepAction};
use dyno_report::{PipelineSummary, junit_of_failure};
use dyno_runner::databases::add_target;
use dyno_runner::failure::Failure;
use dyno_runner::{output, signals};
use dyno_suite::{ComparisonWay, Overrides, Plan, Suite, Versus, WantedStop};
use dyno_topology::{Cluster, Request, TopologyKind, installed};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names of targets.
const SIDES: [&str; 2] = ["baseline", "candidate"];
const CONTROL: &str = "control";
/// The only server of a cluster.
const NODE: &str = "n1";
/// Pairs of concurrent trials that a cost may take: the fewest that decide, and the most.
const COST_PAIRS: (u32, u32) = (8, 80);
/// Pairs of trials that a capacity may take.
const CAPACITY_PAIRS: (u32, u32) = (7, 30);
/// The half-width of a cost's interval, as a share of the difference that is looked for: 95 of 100 differences of twice
/// that size are then found.
const HALF_WIDTH_SHARE: f64 = 1.0 / 3.0;
/// Differences that are looked for, whatever gates say: below the first the time would never suffice.
const MIN_DIFFERENCE: f64 = 0.01;
const MAX_DIFFERENCE: f64 = 0.3;
/// Shares of the budget: for cost, and for cost and capacity; the rest is for starting servers and loading.
const BUDGET_SHARES: [f64; 2] = [0.5, 0.8];
/// Time limit for a command to print its URL: it may build the server first.
const URL_WITHIN: Duration = Duration::from_secs(1_800);
/// Time limit for a command to end after SIGTERM.
const LEAVE_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/ci.txt").trim_ascii_end())]
pub(crate) struct Arguments {
    /// The side that is known to be good: a URL, `cluster:FOLDER`, a folder of installed servers (with `bin`), or a command
    /// that prints a URL.
    #[arg(long, value_name = "SIDE")]
    baseline: String,
    /// The side that is in question, given as the baseline is.
    #[arg(long, value_name = "SIDE")]
    candidate: String,
    /// A second build of the baseline's source. The difference between both builds is the noise of code layout; the verdict
    /// reports it.
    #[arg(long, value_name = "SIDE")]
    rebuild_control: Option<String>,
    /// A suite file, or the name of a bundled suite.
    #[arg(long, value_name = "SUITE", default_value = "ci")]
    suite: String,
    /// About how long the whole may take, such as 10m or 1h.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_seconds)]
    budget: f64,
    /// A regression: 'slower than 3%', or a gate that must be kept, such as 'server_cpu_us.ratio < 1.02'. May be repeated.
    #[arg(long = "fail-if", value_name = "CONDITION", default_value = "slower than 3%", value_parser = parse_condition)]
    conditions: Vec<Condition>,
    /// Folder for summary.md, junit.xml, bencher.json, benchmark.json and otava.csv; the run's own folder unless given.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print every step.
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    runs: RunsFolder,
}

#[derive(Clone, Debug)]
enum Condition {
    /// The candidate is slower by more than this share.
    Slower(f64),
    Gate(Gate),
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    if let Some(share) = text.trim().strip_prefix("slower than ") {
        let share = dyno_suite::share(share).ok_or("it takes a share from 0.01% to 50%")?;
        return Ok(Condition::Slower(share));
    }
    let gate: Gate = text.parse().map_err(|mistake: dyno_facts::statistics::gate::Mistake| {
        format!("{mistake} {} Or write 'slower than 3%'.", mistake.hint)
    })?;
    Ok(Condition::Gate(gate))
}

/// Executes `dyno ci`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    if !arguments.long {
        output::hide_steps();
    }
    let report = Report::new(arguments);
    // Servers that were started must end, even if one of them does not answer.
    let _held = signals::hold_process();
    signals::end_on_interrupt("what was measured is kept, and started servers end", || {})
        .map_err(|error| Failure::new(format!("Signals can't be handled: {error}.")))?;
    // Servers that were started end when this does.
    let (mut servers, mut overrides) = (Vec::new(), Overrides::default());
    let [baseline, candidate] = SIDES;
    let mut sides = vec![(baseline, &arguments.baseline), (candidate, &arguments.candidate)];
    sides.extend(arguments.rebuild_control.as_ref().map(|side| (CONTROL, side)));
    let are_folders = sides.iter().all(|(_, side)| Path::new(side).is_dir());
    let mut loaded: Option<PathBuf> = None;
    for (name, side) in sides {
        let started = Server::start(name, side, loaded.as_deref()).and_then(|(url, server)| {
            servers.extend(server);
            add_target(&mut overrides, &format!("{name}={url}"))?;
            if let (true, None, [Server::Cluster(folder)]) = (are_folders, &loaded, &servers[..]) {
                let cluster = cluster_folder(folder);
                load_data(arguments, &overrides, folder.path())?;
                Cluster::open(&cluster)?.stop(NODE)?;
                loaded = Some(cluster);
            }
            Ok(())
        });
        if let Err(failure) = started {
            return report.fail(failure.at(name));
        }
    }
    if let Some(cluster) = loaded
        && let Err(error) = Cluster::open(&cluster).and_then(|mut cluster| cluster.start(NODE))
    {
        return report.fail(Failure::from(error).at(baseline));
    }
    let result = build_plan(arguments, overrides).and_then(|plan| {
        let dir = arguments.runs.dir.clone();
        let length = EndLength::Verdict;
        run_and_store(&plan, &RunSettings { dir, length, new: true, ..RunSettings::default() })
    });
    match result {
        Err(failure) => report.fail(failure),
        Ok(run) => report.write(&run.path, run.verdict),
    }
}

fn build_plan(arguments: &Arguments, overrides: Overrides) -> Result<Plan, Failure> {
    let suite = Suite::open(&arguments.suite, &crate::offers())?;
    let [baseline, candidate] = SIDES.map(str::to_owned);
    let ways = comparison_ways(arguments, suite.experiments.len());
    let control = arguments.rebuild_control.as_ref().map(|_| CONTROL.to_owned());
    let versus = Versus { baseline, candidate, control, ways, equivalence: None };
    Ok(Plan::build(&suite, &Overrides { compare: Some(versus), ..overrides })?)
}

/// Loads the data of the suite into the baseline, the only target so far: the other servers begin with a copy, so that tables
/// lie on the same pages.
fn load_data(arguments: &Arguments, overrides: &Overrides, folder: &Path) -> CommandResult {
    let suite = Suite::open(&arguments.suite, &crate::offers())?;
    let mut plan = Plan::build(&suite, overrides)?;
    plan.facts.steps.retain(|step| step.action == StepAction::Prepare);
    plan.experiments.iter_mut().for_each(|experiment| experiment.gates.clear());
    let dir = folder.join("load");
    let length = EndLength::Verdict;
    run_and_store(&plan, &RunSettings { dir, length, new: true, ..RunSettings::default() })?.verdict
}

/// Returns the way to compare the cost of a transaction, then the way to compare capacity; a way without a gate is left out.
fn comparison_ways(arguments: &Arguments, experiments: usize) -> Vec<ComparisonWay> {
    let (mut costs, mut capacities, mut min_difference) = (Vec::new(), Vec::new(), f64::INFINITY);
    for condition in &arguments.conditions {
        match condition {
            Condition::Slower(share) => {
                // A pass proves that cost stays within the limit. Latency and capacity vary more: they fail only if a loss is proven.
                let max_ratio = 1.0 + share;
                costs.push(format!("server_cpu_us.ratio < {max_ratio}"));
                costs.push(format!("mean_ms.ratio.low < {max_ratio}"));
                capacities.push(format!("tps.ratio.high > {}", 1.0 - share));
                min_difference = min_difference.min(*share);
            }
            Condition::Gate(gate) => {
                let is_capacity = matches!(gate.metric, Metric::Tps | Metric::Qps);
                let gates = if is_capacity { &mut capacities } else { &mut costs };
                gates.push(gate.text.clone());
                if gate.figure != GateFigure::Value {
                    min_difference = min_difference.min((gate.bound - 1.0).abs());
                }
            }
        }
    }
    let min_difference = min_difference.clamp(MIN_DIFFERENCE, MAX_DIFFERENCE);
    let [mut cost_share, mut whole_share] = BUDGET_SHARES;
    if arguments.rebuild_control.is_some() {
        // The control takes as long as the cost.
        cost_share /= 2.0;
        whole_share -= cost_share;
    }
    let cost_width = min_difference * HALF_WIDTH_SHARE;
    let ways = [
        (Design::Together, COST_PAIRS, cost_width, cost_share, costs),
        (Design::InTurn, CAPACITY_PAIRS, min_difference, whole_share, capacities),
    ];
    let ways = ways.map(|(design, pairs, half_width, share, gates)| {
        let stop = WantedStop {
            pairs: Some(pairs),
            half_width: Some(half_width),
            is_until_decided: false,
            budget_s: Some(share * arguments.budget / experiments.max(1) as f64),
        };
        ComparisonWay { design, stop, gates }
    });
    ways.into_iter().filter(|way| !way.gates.is_empty()).collect()
}

/// A server that is stopped when this value is dropped.
enum Server {
    Cluster(TempDir),
    Command(Child),
}

impl Server {
    /// Starts a side, if it needs that, and returns its URL. A server of a folder begins with a copy of `loaded`.
    fn start(
        name: &str,
        side: &str,
        loaded: Option<&Path>,
    ) -> Result<(String, Option<Server>), Failure> {
        let is_address = side.contains("://")
            || ["sqlite:", "cluster:"].iter().any(|scheme| side.starts_with(scheme));
        let is_word = !side.contains(char::is_whitespace);
        if is_word && is_address {
            return Ok((side.to_owned(), None));
        }
        let folder = Path::new(side);
        if folder.is_dir() {
            return start_cluster(name, folder, loaded);
        }
        start_command(name, side)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match self {
            Server::Cluster(folder) => {
                if let Err(error) = Cluster::down(&cluster_folder(folder)) {
                    output::talk(&format!("warning: {error}"));
                }
            }
            Server::Command(child) => stop_process_group(child),
        }
    }
}

fn cluster_folder(folder: &TempDir) -> PathBuf {
    folder.path().join("cluster")
}

/// The program of each product that a folder may hold.
const PROGRAMS: [(&str, TopologyKind); 3] = [
    ("postgres", TopologyKind::Postgres),
    ("mariadbd", TopologyKind::Mariadb),
    ("mysqld", TopologyKind::Mysql),
];

fn start_cluster(
    name: &str,
    software: &Path,
    loaded: Option<&Path>,
) -> Result<(String, Option<Server>), Failure> {
    let software = software.canonicalize().map_err(|error| Failure::new(format!("{error}.")))?;
    let mut programs = PROGRAMS.into_iter();
    let program = programs.find(|(program, _)| installed(&software, &[*program]).is_some());
    let Some((_, topology)) = program else {
        let message = format!("{} holds no server.", software.display());
        let hint = "Its folder `bin` must hold postgres, mariadbd or mysqld, as `make install` leaves them.";
        return Err(Failure::usage(message).with_hint(hint));
    };
    let folder = tempfile::Builder::new().prefix("dyno-ci-").tempdir();
    let folder =
        folder.map_err(|error| Failure::new(format!("No folder can be made: {error}.")))?;
    // The servers of root are another user's.
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(folder.path(), open).map_err(|error| Failure::new(format!("{error}.")))?;
    let dir = cluster_folder(&folder);
    let software = Some(software);
    let request =
        Request { software, is_stopped: signals::has_come, ..Request::new(&dir, topology) };
    output::talk(&format!("{name}: starting {}", topology.name()));
    let copy_result = loaded.map(|loaded| {
        let copy_of = Some(loaded.to_owned());
        Cluster::up(&Request { copy_of, ..request.clone() }, &mut |_| ())
    });
    if !matches!(copy_result, Some(Ok(_))) {
        // A server of another version may not read the data.
        if let Some(Err(error)) = copy_result {
            output::talk(&format!(
                "{name}: the copy of the data failed, so they are loaded again: {error}"
            ));
        }
        Cluster::up(&request, &mut |_| ())?;
    }
    Ok((format!("cluster:{}", dir.display()), Some(Server::Cluster(folder))))
}

/// Runs a command of the shell until it prints a URL. It may be the server itself, or have started it.
fn start_command(name: &str, command: &str) -> Result<(String, Option<Server>), Failure> {
    let started = Instant::now();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdout(Stdio::piped()).stdin(Stdio::null()).process_group(0);
    let child = shell.env("DYNO_SIDE", name).spawn();
    let mut child =
        child.map_err(|error| Failure::new(format!("sh can't be started: {error}.")))?;
    let stdout = child.stdout.take();
    let server = Server::Command(child);
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        // Read to the end: a server blocks when the pipe is full.
        for line in stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
            let Ok(line) = line else { return };
            let _ = sender.send(line);
        }
    });
    while started.elapsed() < URL_WITHIN && !signals::has_come() {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                let url = line.split_whitespace().find(|word| word.contains("://"));
                if let Some(url) = url {
                    return Ok((url.to_owned(), Some(server)));
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let message = "The command has printed no URL, and ended.";
                let hint = "It must print one such as postgres://USER:PASSWORD@HOST:PORT/DATABASE on standard output.";
                return Err(Failure::new(message).with_hint(hint));
            }
        }
    }
    if signals::has_come() {
        return Err(Failure::interrupted("Stopped before the server was there."));
    }
    Err(Failure::new("The command has printed no URL within half an hour."))
}

/// Stops a command and every process in its process group: SIGTERM, then SIGKILL after 20 s.
fn stop_process_group(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(group) = group else { return };
    let started = Instant::now();
    let _ = kill_process_group(group, Signal::TERM);
    while started.elapsed() < LEAVE_WITHIN {
        let _ = child.try_wait();
        if rustix::process::test_kill_process_group(group).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Files, annotations and text for a pipeline.
struct Report<'a> {
    arguments: &'a Arguments,
    is_github: bool,
    /// Link to the job, where its service gives one; papers are among its artifacts.
    link: Option<String>,
    commit: String,
}

impl<'a> Report<'a> {
    fn new(arguments: &'a Arguments) -> Self {
        let commit = ["GITHUB_SHA", "CI_COMMIT_SHA"].into_iter().find_map(env_variable);
        Report {
            arguments,
            is_github: env_variable("GITHUB_ACTIONS").is_some(),
            link: github_link().or_else(|| env_variable("CI_JOB_URL")),
            commit: commit.unwrap_or_default(),
        }
    }

    /// Reports a failure without a verdict, and returns it.
    fn fail(&self, failure: Failure) -> CommandResult {
        let message = failure.message.line(Lang::En);
        let out = self.arguments.out.as_deref().unwrap_or(&self.arguments.runs.dir);
        let markdown = format!("**dyno: no verdict.** {message}\n");
        let files = [("summary.md", markdown.clone()), ("junit.xml", junit_of_failure(&message))];
        self.store(out, &files)?;
        self.annotate("error", &message, &markdown)?;
        Err(failure)
    }

    /// Writes the files of the verdict, annotates the job, and returns the verdict.
    fn write(&self, run: &Path, verdict: CommandResult) -> CommandResult {
        let exit_code = verdict.as_ref().map_or_else(|failure| failure.code, |()| 0);
        let is_judged = matches!(exit_code, 0 | 3 | 5);
        let data = dyno_store::read(run)?;
        if !is_judged || data.trials.is_empty() {
            return verdict.or_else(|failure| self.fail(failure));
        }
        let paper = build_paper(&[data]);
        let file = run.join("paper.html").display().to_string();
        let link = self.link.as_deref().unwrap_or(&file);
        let summary = PipelineSummary { paper: &paper, exit_code, link };
        let markdown = summary.markdown();
        let files = [
            ("summary.md", markdown.clone()),
            ("junit.xml", summary.junit()),
            ("bencher.json", crate::pretty(&summary.bencher())?),
            ("benchmark.json", crate::pretty(&summary.benchmark_action())?),
            ("otava.csv", summary.otava(&self.commit)),
        ];
        self.store(self.arguments.out.as_deref().unwrap_or(run), &files)?;
        output::data(&summary.text());
        let kind = match exit_code {
            0 => "notice",
            3 => "warning",
            _ => "error",
        };
        self.annotate(kind, &summary.headline(), &markdown)?;
        verdict
    }

    /// Writes these files into a folder, which is created if it is missing.
    fn store(&self, folder: &Path, files: &[(&str, String)]) -> CommandResult {
        let written = fs::create_dir_all(folder).and_then(|()| {
            files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
        });
        written.map_err(|error| {
            Failure::new(format!("{} can't be written: {error}.", folder.display()))
                .with_hint("Name another folder: `--out FOLDER`.")
        })
    }

    /// Writes an annotation and the summary of the step, if this is a job of GitHub.
    fn annotate(&self, kind: &str, message: &str, markdown: &str) -> CommandResult {
        if !self.is_github {
            return Ok(());
        }
        let message = message.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        output::data(&format!("::{kind} title=dyno ci::{message}\n"));
        let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY") else { return Ok(()) };
        let opened = fs::OpenOptions::new().create(true).append(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(markdown.as_bytes()));
        let file = file.display();
        written.map_err(|error| Failure::new(format!("{file} can't be written: {error}.")))
    }
}

/// Returns the address of the run on GitHub; `None` elsewhere.
fn github_link() -> Option<String> {
    let [server, repository, run] =
        ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"].map(env_variable);
    Some(format!("{}/{}/actions/runs/{}", server?, repository?, run?))
}
