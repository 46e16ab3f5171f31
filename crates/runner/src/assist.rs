//! A part of a trial of another process: what a load generator of a fleet does.

use super::family::{Driven, Families, experiment};
use super::permits::Permits;
use super::trial::{trial_spec, what};
use crate::calibration::Calibration;
use crate::databases::{Database, ReachedDatabase, reach_planned};
use crate::failure::{Failure, sentence};
use crate::output;
use dyno_drivers::target::TargetUrl;
use dyno_engine::{DriveError, TrialResult};
use dyno_facts::format::short;
use dyno_facts::{Environment, PlannedTrial, Purpose, SecretUrl, TargetFacts};
use dyno_fleet::{Assignment, GeneratorOrder, Reporter, TargetSecret};
use dyno_suite::Plan;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

pub struct Assist<'a> {
    order: &'a GeneratorOrder,
    reporter: &'a mut Reporter,
    environment: &'a Environment,
    permits: &'a Permits,
    stem: &'a Path,
}

pub type Left = (TrialResult, Vec<u8>);

/// Drives a part of a trial and reports it; says a line about it.
pub fn run(
    families: Families,
    assignment: Assignment,
    environment: &Environment,
    permits: &Permits,
) {
    let Assignment { order, mut reporter } = assignment;
    let title = format!("{} on {}", order.experiment, order.target);
    let control = reporter.control();
    let ended = Scratch::new().and_then(|scratch| {
        let stem = scratch.0.join("trial");
        let reporter = &mut reporter;
        Assist { order: &order, reporter, environment, permits, stem: &stem }.drive(families)
    });
    match ended {
        Ok(Some((result, left))) => {
            let seconds = result.length() as f64 / 1e9;
            let tps = result.total.counts().committed as f64 / seconds.max(1e-9);
            let p95_ms = result.total.latency().percentile(95.0) as f64 / 1e6;
            reporter.ended(result, &left);
            output::talk(&format!("{title}: {} tx/s, p95 {} ms", short(tps), short(p95_ms)));
        }
        Ok(None) => {
            reporter.failed("The trial was stopped before it began.", None, true);
            output::talk(&format!("{title}: stopped before it began"));
        }
        Err(failure) => {
            reporter.failed(
                &failure.message.to_string(),
                failure.hint.as_deref(),
                control.is_stopped(),
            );
            output::talk(&format!("{title}: {}", failure.message));
        }
    }
}

impl Assist<'_> {
    /// The whole trial.
    pub fn planned(&self) -> &PlannedTrial {
        &self.order.planned
    }

    /// Looks whether this load generator executes the script of a run, which may do what the process may.
    ///
    /// # Errors
    /// Its user has not allowed that.
    pub fn check_scripts(&self) -> Result<(), Failure> {
        self.permits.check_scripts()
    }

    /// `None` when it was stopped before it began.
    fn drive(self, families: Families) -> Result<Option<Left>, Failure> {
        let plan = read(&self.order.plan)?;
        let unknown = |what: &str| Failure::new(format!("The order names no {what} of its plan."));
        let planned = plan.experiment(&self.order.experiment);
        let planned = planned.ok_or_else(|| unknown("experiment"))?;
        let target = plan.target(&self.order.target).ok_or_else(|| unknown("target"))?;
        let experiment = experiment(families, &plan, planned)?;
        if !experiment.takes_fleet()? {
            let message = format!("The workload {} is not shared out.", planned.workload);
            return Err(Failure::new(message));
        }
        let (generator, generators) = (self.order.generator, self.order.generators);
        // The nodes of others are theirs: they may be out of reach from here.
        let target = target.of_generator(generator, generators);
        let target = completed(&target, &self.order.secrets, self.permits)?;
        let ReachedDatabase { database, .. } = reach_planned(&target, Path::new(""))
            .map_err(|failure| out_of_reach(&target, failure))?;
        experiment.assist(&database, self)
    }
}

/// What a user should know of a target that can't be reached from here.
fn out_of_reach(target: &TargetFacts, failure: Failure) -> Failure {
    let here = format!(
        "It is the load generator's machine that must reach the target and know its password: set {} \
         there, name a cluster of `dyno cluster` with --only-hosts cluster:FOLDER there, or have both \
         connect to NATS by TLS.",
        target.password_variable()
    );
    let hint = match &failure.hint {
        Some(hint) => format!("{} {here}", sentence(hint)),
        None => here,
    };
    failure.at(format!("target {}", target.name)).with_hint(hint)
}

/// Drives the part that [`Assist`] describes, for families that are not [`Driven`] themselves; `None` when it was stopped
/// before it began.
///
/// # Errors
/// As [`drive`], or that there is no part.
pub fn drive_part<F: Driven>(
    family: &F,
    database: &Database,
    part: Assist<'_>,
) -> Result<Option<Left>, Failure> {
    let Assist { order, reporter, environment, stem, .. } = part;
    let mut spec = trial_spec(&order.planned);
    family.tune(&mut spec);
    let whole = what(&spec, Purpose::Measure);
    let nothing = || Failure::new("There are more load generators than workers.");
    let spec = spec.part(order.generator, order.generators).ok_or_else(nothing)?;
    output::talk(&format!("{} on {}: {} of {whole}", order.experiment, order.target, spec.workers));
    let workload = family.part(database, &spec, stem)?;
    let control = reporter.control();
    let mut result = match family.drive(database, &workload, &spec, &control, reporter) {
        Ok(result) => result,
        Err(DriveError::Interrupted) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let statements = dyno_engine::record::statement_counts(result.total.work()).total();
    let qps = statements as f64 * 1e9 / (result.length() as f64).max(1.0);
    let calibration = Calibration::of(environment);
    let headroom = |proof: Calibration| proof.headroom(database.dialect(), spec.workers, qps);
    result.conditions.headroom = calibration.and_then(headroom);
    let left = match family.leave(&workload)? {
        Some(kept) => serde_json::to_vec(&kept).map_err(|error| {
            Failure::new(format!("What the workload has kept can't be sent: {error}."))
        })?,
        None => Vec::new(),
    };
    Ok(Some((result, left)))
}

/// A target with the passwords that were sent along, or that this machine's user has named.
///
/// # Errors
/// One of its URLs, also of those, is no server's, or one that may not be reached: an order must not open files
/// of this machine, nor log in wherever it likes.
fn completed(
    planned: &TargetFacts,
    secrets: &[TargetSecret],
    permits: &Permits,
) -> Result<TargetFacts, Failure> {
    let own = |secret: &&TargetSecret| secret.target == planned.name;
    let mut target = planned.clone();
    for node in &mut target.nodes {
        // The folder is one of the coordinator's machine.
        node.cluster = None;
    }
    for node in &planned.nodes {
        if let Some(url) = permits.password_of(&node.url) {
            target.set_secret(Some(&node.name), url);
        }
    }
    for secret in secrets.iter().filter(own) {
        let node = secret.node.as_ref().and_then(|name| {
            planned.nodes.iter().find(|node| node.name == *name).map(|node| node.url.clone())
        });
        let url = node.unwrap_or_else(|| planned.url_in(Path::new("")));
        if !goes_to(&secret.url, url.expose()) {
            return Err(Failure::new(format!(
                "A password of the target {} was sent along for another server than the plan names.",
                target.name
            )));
        }
        target.set_secret(secret.node.as_deref(), &SecretUrl::new(&secret.url));
    }
    let nodes = target.nodes.iter().map(|node| node.url.clone());
    let is_server = std::iter::once(target.url_in(Path::new("")))
        .chain(nodes)
        .all(|url| is_server(url.expose()));
    if !is_server {
        return Err(embedded(&target.name));
    }
    permits.check(&target).map_err(|failure| failure.at(format!("target {}", target.name)))?;
    Ok(target)
}

/// Whether two URLs name the same servers and user: a password belongs to them, and to nobody else.
fn goes_to(url: &str, planned: &str) -> bool {
    let read = |url: &str| {
        let target: TargetUrl = url.parse().ok()?;
        Some((target.hosts, target.user))
    };
    read(url).is_some_and(|of| Some(of) == read(planned))
}

/// True for the URL of a database that is reached over a network.
pub(super) fn is_server(url: &str) -> bool {
    const SCHEMES: [&str; 4] = ["mysql", "mariadb", "postgres", "postgresql"];
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)))
}

/// The plan of an order. Whoever sends commands along is refused, though nothing here would execute them.
fn read(plan: &serde_json::Value) -> Result<Plan, Failure> {
    let plan: Plan = serde_json::from_value(plan.clone())
        .map_err(|error| Failure::new(format!("The plan can't be understood: {error}.")))?;
    match plan.experiments.iter().any(|one| one.commands().next().is_some()) {
        true => Err(Failure::new("A load generator executes no commands, and the plan has one.")),
        false => Ok(plan),
    }
}

pub(super) fn embedded(target: &str) -> Failure {
    Failure::usage(format!(
        "The target {target} is an embedded database, which no other machine can reach."
    ))
    .with_hint("Leave --nats out, or give a server.")
}

/// How the folders of trials begin; the process and a number follow.
const FOLDER: &str = "dyno-generator-";

/// The process that has made the folder of a trial.
fn maker(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix(FOLDER)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

/// Removes the folders that load generators of this user have left because they were killed.
pub fn remove_stale_folders() {
    remove_stale(&std::env::temp_dir());
}

fn remove_stale(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_dead = |process: u32| !Path::new(&format!("/proc/{process}")).exists();
        let is_stale = entry.file_name().to_str().and_then(maker).is_some_and(is_dead);
        // Of a link this is the link's own.
        let is_own = || entry.metadata().is_ok_and(|own| own.is_dir() && own.uid() == user);
        if is_stale && is_own() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder of this trial's own, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let mut names = (0..100).map(|number| {
            std::env::temp_dir().join(format!("{FOLDER}{}-{number}", std::process::id()))
        });
        // What exists may be somebody else's.
        let made = names.find(|path| DirBuilder::new().mode(0o700).create(path).is_ok());
        made.map(Scratch).ok_or_else(|| {
            Failure::new(format!("No folder can be made in {}.", std::env::temp_dir().display()))
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_suite::{Overrides, Suite};

    fn plan(folder: &Path, target: &str, experiment: &str) -> Plan {
        let suite = format!(
            "[suite]\nname = 's'\n[target.t]\n{target}\n[[experiment]]\nname = 'e'\n{experiment}\n"
        );
        let file = folder.join("s.toml").display().to_string();
        let suite = Suite::parse(&file, &suite, &[dyno_sysbench::OFFER]).expect("a suite");
        Plan::build(&suite, &Overrides::default()).expect("a plan")
    }

    const READS: &str =
        "workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = 1\nduration_s = 5";

    fn target(target: &str) -> TargetFacts {
        plan(Path::new(""), target, READS).target("t").expect("the target").clone()
    }

    fn secret(node: Option<&str>, url: &str) -> TargetSecret {
        TargetSecret { target: "t".to_owned(), node: node.map(str::to_owned), url: url.to_owned() }
    }

    fn open(planned: &TargetFacts, secrets: &[TargetSecret]) -> Result<TargetFacts, Failure> {
        completed(planned, secrets, &Permits::default())
    }

    #[test]
    fn folders_of_the_dead_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let dead = u32::MAX;
        let living = std::process::id();
        let stale = format!("dyno-generator-{dead}-0");
        let kept = [
            format!("dyno-generator-{living}-0"),
            format!("dyno-generator-{dead}"),
            format!("dyno-{dead}-0"),
        ];
        for name in kept.iter().chain([&stale]) {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
            std::fs::write(folder.path().join(name).join("trial.csv"), "x").expect("a file");
        }
        let link = folder.path().join(format!("dyno-generator-{dead}-1"));
        std::os::unix::fs::symlink(folder.path().join(&kept[2]), &link).expect("a link");
        remove_stale(folder.path());
        assert!(!folder.path().join(&stale).exists());
        for name in &kept {
            assert!(folder.path().join(name).join("trial.csv").exists(), "{name}");
        }
        assert!(link.is_symlink());
    }

    #[test]
    fn an_order_opens_no_files() {
        let server = target("url = 'mysql://u@h/d'");
        let url = "MySQL://u:geheim@h/d";
        let completed_target = open(&server, &[secret(None, url)]).expect("a server");
        assert_eq!(completed_target.url_in(Path::new("")).expose(), url);
        let foreign = ["sqlite:/tmp/x", "SQLITE:/tmp/x", "cluster:/tmp", ""];
        for url in foreign {
            assert!(!is_server(url), "{url}");
            if !url.is_empty() {
                assert!(open(&server, &[secret(None, url)]).is_err(), "{url}");
            }
        }
        let nodes = target(
            "route = 'split'\nnodes = [{ name = 'a', role = 'primary', url = 'mysql://u@h/d' }, { name = \
             'b', role = 'read_only', url = 'mysql://u@i/d' }]",
        );
        assert!(open(&nodes, &[]).is_ok());
        for url in ["sqlite:/tmp/x", "mysql://u@i/d?socket=/run/mysqld/mysqld.sock"] {
            assert!(open(&nodes, &[secret(Some("b"), url)]).is_err(), "{url}");
        }
        // A cluster's folder has its password in it.
        let mut foreign = nodes.clone();
        foreign.nodes[0].cluster = Some("/somewhere".to_owned());
        let completed_target = open(&foreign, &[]).expect("servers");
        assert!(completed_target.nodes.iter().all(|node| node.cluster.is_none()));
    }

    #[test]
    fn an_order_goes_only_where_the_own_user_lets_it() {
        let permits = Permits::new(&["h".to_owned(), "i:3306".to_owned()]).expect("hosts");
        let server = target("url = 'mysql://u@h/d'");
        assert!(completed(&server, &[], &permits).is_ok());
        let evil = target("url = 'mysql://u@evil/d'");
        let refused = completed(&evil, &[secret(None, "mysql://u:geheim@evil/d")], &permits);
        let refused = refused.expect_err("another host").message.to_string();
        assert!(
            refused.starts_with("target t: The load generator may not reach evil:3306"),
            "{refused}"
        );
        assert!(!refused.contains("geheim"));
        let nodes = target(
            "route = 'spread'\nnodes = [{ name = 'a', role = 'primary', url = 'mysql://u@p/d' }, { name = \
             'b', role = 'read_only', url = 'mysql://u@i/d' }, { name = 'c', role = 'read_only', url = \
             'mysql://u@j/d' }]",
        );
        // The nodes of others are not reached.
        assert!(completed(&nodes.of_generator(0, 2), &[], &permits).is_ok());
        assert!(completed(&nodes.of_generator(1, 2), &[], &permits).is_err());
    }

    #[test]
    fn a_password_goes_to_its_own_server_only() {
        let server = target("url = 'mysql://u@h/d'");
        assert!(open(&server, &[secret(None, "mysql://u:geheim@h:3306/d")]).is_ok());
        for other in
            ["mysql://u:geheim@evil/d", "mysql://u:geheim@h:3307/d", "mysql://v:geheim@h/d"]
        {
            let refused = open(&server, &[secret(None, other)]).expect_err(other);
            let refused = refused.message.to_string();
            assert!(refused.contains("for another server"), "{refused}");
            assert!(!refused.contains("geheim"));
        }
    }

    #[test]
    fn an_order_executes_no_commands() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = "url = 'mysql://u@h/d'";
        let given = |experiment: &str| {
            let plan = plan(folder.path(), target, experiment);
            serde_json::to_value(plan).expect("JSON")
        };
        assert!(read(&given(READS)).is_ok());
        let fault =
            "fault = { action = 'command', at_s = 2, command = 'true', heal_command = 'true' }";
        for command in ["restore = 'touch x'", fault] {
            let refused = read(&given(&format!("{READS}\n{command}"))).expect_err(command);
            assert!(
                refused.message.to_string().contains("executes no commands"),
                "{}",
                refused.message
            );
        }
    }
}
