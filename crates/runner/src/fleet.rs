//! The load of a trial: made by this process, or by a fleet of load generators.
//!
//! With a fleet a run prepares, looks, samples, checks and stores as ever. `TrialSpec::part` shares the
//! trial out; the order carries an excerpt of the plan, without steps and commands; each load generator
//! makes its workload by `Driven::part`. What workloads keep themselves (ledgers, latencies of statements)
//! is handed over by `Driven::leave` and `Driven::absorb`, so that the checks after a trial see one
//! workload. Passes over TPC-H's queries and trials with faults stay with the coordinator.
//!
//! The fleet that a run asks for, and the passwords that its load generators need.
//!
//! A part of a trial of another process: what a load generator of a fleet does.

use crate::calibration::Calibration;
use crate::databases::{Database, ReachedDatabase, reach_planned};
use crate::failure::{Failure, Result, sentence};
use crate::family::{Driven, Families, Trials, experiment};
use crate::output;
use crate::permits::Permits;
use crate::trial::{describe_load, trial_spec};
use dyno_core::{DbError, Workload};
use dyno_drivers::target::TargetUrl;
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec};
use dyno_facts::format::short;
use dyno_facts::{
    Environment, GeneratorMember, Message, PlanStep, PlannedTrial, Purpose, Route, SecretUrl,
    TargetFacts,
};
use dyno_fleet::{
    Assignment, Fleet, FleetOptions, GeneratorOrder, Performance, Reporter, TargetSecret, Task,
};
use dyno_suite::Plan;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Waits for the load generators; `None` when the user has stopped it.
///
/// # Errors
/// Too few come, or the user of one of them does not let it reach a target of the plan.
pub fn gather(options: &FleetOptions, plan: &Plan, control: &Control) -> Result<Option<Fleet>> {
    let fleet = Fleet::gather(options, &output::talk, &|| control.is_stopped())?;
    let Some(fleet) = fleet else { return Ok(None) };
    output::talk(&format!("load generators: {}", fleet.names().join(", ")));
    let members = fleet.names().len() as u32;
    for (number, hello) in (0..).zip(fleet.hellos()) {
        let permits = Permits::parse_named(&hello.only_hosts)?;
        for target in &plan.targets {
            let checked = permits.check(&target.for_generator(number, members));
            checked.map_err(|failure| {
                failure.at(format!("target {}: load generator {}", target.name, hello.name))
            })?;
        }
    }
    Ok(Some(fleet))
}

pub(crate) struct Team<'a> {
    fleet: Option<&'a mut Fleet>,
    plan: &'a Plan,
    step: &'a PlanStep,
    planned: &'a PlannedTrial,
    run: PathBuf,
    performance: Option<Box<Performance>>,
}

impl<'a> Team<'a> {
    pub(super) fn new(
        fleet: Option<&'a mut Fleet>,
        plan: &'a Plan,
        (step, planned): (&'a PlanStep, &'a PlannedTrial),
        run: &Path,
    ) -> Self {
        Team { fleet, plan, step, planned, run: run.to_owned(), performance: None }
    }

    pub(super) fn is_fleet(&self) -> bool {
        self.fleet.is_some()
    }

    /// Has the fleet drive the trial, or this process if there is none.
    pub(super) fn drive<F: Driven>(
        &mut self,
        family: &F,
        workload: &F::Workload,
        database: &Database,
        spec: &TrialSpec,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<TrialResult, DriveError> {
        let Some(fleet) = &mut self.fleet else {
            return family.drive(database, workload, spec, control, observer);
        };
        let reached_as = self.plan.reached_as(&self.step.target);
        let target = self.plan.target(reached_as);
        let task = Task {
            plan: excerpt(self.plan, &self.step.experiment, reached_as),
            experiment: &self.step.experiment,
            target: reached_as,
            planned: self.planned,
            secrets: target.map(|target| secrets(target, &self.run)).unwrap_or_default(),
            spec,
            kinds: workload.transactions().len(),
            tell: &output::talk,
        };
        match fleet.drive(&task, control, observer) {
            Ok(Some(performance)) => {
                let result = performance.result.clone();
                self.performance = Some(performance);
                Ok(result)
            }
            Ok(None) => Err(DriveError::Interrupted),
            Err(error) => {
                let failed = DbError::workload(error.message);
                Err(DriveError::Connect(match error.hint {
                    Some(hint) => failed.with_hint(hint),
                    None => failed,
                }))
            }
        }
    }

    /// Returns what only a fleet has to say. Gives the workload what it would know had this process driven the trial.
    pub(super) fn share<F: Driven>(self, family: &F, workload: &F::Workload) -> Result<FleetShare> {
        let Some(performance) = self.performance else { return Ok(FleetShare::default()) };
        let Performance { mut members, left, lost, notes, .. } = *performance;
        for bytes in left.iter().filter(|bytes| !bytes.is_empty()) {
            let state = serde_json::from_slice(bytes).map_err(|error| {
                Failure::new(format!(
                    "What a load generator has left of its workload can't be read: {error}."
                ))
            })?;
            family.absorb(workload, state)?;
        }
        let target = self.plan.target(self.plan.reached_as(&self.step.target));
        if let Some(target) = target.filter(|target| target.route == Route::Spread) {
            let generators = members.len() as u32;
            for (number, member) in (0..).zip(&mut members) {
                let part = target.for_generator(number, generators);
                member.nodes = part.nodes.into_iter().map(|node| node.name).collect();
            }
        }
        let loss = (!lost.is_empty()).then(|| Message::sentences(&lost));
        Ok(FleetShare { members, notes, lost: loss })
    }
}

/// The part of a fleet in a trial; empty if this process made the load.
#[derive(Default)]
pub(crate) struct FleetShare {
    pub(crate) members: Vec<GeneratorMember>,
    pub(crate) notes: Vec<Message>,
    /// The reason why not all that was done is known: load generators were lost.
    pub(crate) lost: Option<Message>,
}

/// Returns true if load generators share the trials of an experiment. A pass over queries is one client's, and who
/// takes over after a fault only this process knows.
pub(super) fn is_shared(plan: &Plan, name: &str, experiment: &dyn Trials) -> Result<bool> {
    let has_fault = plan.experiment(name).is_some_and(|planned| planned.fault.is_some());
    Ok(experiment.takes_fleet()? && !has_fault)
}

/// The part of a plan that a load generator needs: one experiment and its target. Commands stay here.
fn excerpt(plan: &Plan, experiment: &str, target: &str) -> serde_json::Value {
    let mut plan = plan.clone();
    plan.facts.steps.clear();
    plan.facts.notes.clear();
    plan.experiments.retain(|facts| facts.name == experiment);
    plan.targets.retain(|facts: &TargetFacts| facts.name == target);
    for experiment in &mut plan.experiments {
        experiment.restore = dyno_facts::Restore::None;
        experiment.published.clear();
    }
    // A plan is stored in this form in each run.
    serde_json::to_value(plan).unwrap_or_default()
}

/// The passwords of a target and its nodes that this process knows from URLs and variables.
pub fn secrets(target: &dyno_facts::TargetFacts, run: &std::path::Path) -> Vec<TargetSecret> {
    let target_password = std::env::var(target.password_variable()).ok();
    let places: Vec<(Option<&dyno_facts::TargetNode>, SecretUrl)> = if target.nodes.is_empty() {
        vec![(None, target.url_in(run))]
    } else {
        target.nodes.iter().map(|node| (Some(node), node.url.clone())).collect()
    };
    let secrets = places.into_iter().filter_map(|(node, url)| {
        let node_password =
            node.and_then(|node| std::env::var(target.node_password_variable(node)).ok());
        let password = node_password
            .or_else(|| target_password.clone())
            .filter(|password| !password.is_empty());
        let url = match password.filter(|_| !url.has_password()) {
            Some(password) => with_password(url.expose(), &password)?,
            None if !url.has_password() => return None,
            None => url.expose().to_owned(),
        };
        let node = node.map(|node| node.name.clone());
        Some(TargetSecret { target: target.name.clone(), node, url })
    });
    secrets.collect()
}

/// The URL with a password; `None` if it names no user, to whom it could belong.
fn with_password(url: &str, password: &str) -> Option<String> {
    let begin = url.find("://")? + 3;
    let user_end = begin + url[begin..].rfind('@')?;
    let mut encoded = String::new();
    for byte in password.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    Some(format!("{}:{encoded}{}", &url[..user_end], &url[user_end..]))
}

pub struct Assist<'a> {
    order: &'a GeneratorOrder,
    reporter: &'a mut Reporter,
    environment: &'a Environment,
    permits: &'a Permits,
    stem: &'a Path,
}

pub type Left = (TrialResult, Vec<u8>);

/// Drives a part of a trial and reports it; says a line about it.
pub fn assist(
    families: Families,
    assignment: Assignment,
    environment: &Environment,
    permits: &Permits,
) {
    let Assignment { order, mut reporter } = assignment;
    let title = format!("{} on {}", order.experiment, order.target);
    let control = reporter.control();
    let ended = create_scratch_folder().and_then(|scratch| {
        let stem = scratch.path().join("trial");
        let reporter = &mut reporter;
        Assist { order: &order, reporter, environment, permits, stem: &stem }.drive(families)
    });
    let outcome = match ended {
        Ok(Some((result, state))) => {
            let seconds = result.length() as f64 / 1e9;
            let tps = result.total.counts().committed as f64 / seconds.max(1e-9);
            let p95_ms = result.total.latency().percentile(95.0) as f64 / 1e6;
            reporter.ended(result, &state);
            format!("{} tx/s, p95 {} ms", short(tps), short(p95_ms))
        }
        Ok(None) => {
            reporter.failed("The trial was stopped before it began.", None, true);
            "stopped before it began".to_owned()
        }
        Err(Failure { message, hint, .. }) => {
            reporter.failed(&message.to_string(), hint.as_deref(), control.is_stopped());
            message.to_string()
        }
    };
    output::talk(&format!("{title}: {outcome}"));
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
    pub fn check_scripts(&self) -> Result<()> {
        self.permits.check_scripts()
    }

    /// `None` when it was stopped before it began.
    fn drive(self, families: Families) -> Result<Option<Left>> {
        let plan = parse_plan(&self.order.plan)?;
        let experiment_facts = plan
            .experiment(&self.order.experiment)
            .ok_or_else(|| Failure::new("The order names no experiment of its plan."))?;
        let target = plan
            .target(&self.order.target)
            .ok_or_else(|| Failure::new("The order names no target of its plan."))?;
        let experiment = experiment(families, &plan, experiment_facts)?;
        if !experiment.takes_fleet()? {
            let message = format!("The workload {} is not shared out.", experiment_facts.workload);
            return Err(Failure::new(message));
        }
        let (generator, generators) = (self.order.generator, self.order.generators);
        // The nodes of others are theirs: they may be out of reach from here.
        let target = target.for_generator(generator, generators);
        let target = with_secrets(&target, &self.order.secrets, self.permits)?;
        let ReachedDatabase { database, .. } = reach_planned(&target, Path::new(""))
            .map_err(|failure| out_of_reach(&target, failure))?;
        experiment.assist(&database, self)
    }
}

/// Adds what a user should know of a target that can't be reached from here.
fn out_of_reach(target: &TargetFacts, failure: Failure) -> Failure {
    let advice = format!(
        "It is the load generator's machine that must reach the target and know its password: set {} \
         there, name a cluster of `dyno cluster` with --only-hosts cluster:FOLDER there, or have both \
         connect to NATS by TLS.",
        target.password_variable()
    );
    let hint = match &failure.hint {
        Some(hint) => format!("{} {advice}", sentence(hint)),
        None => advice,
    };
    failure.at(format!("target {}", target.name)).with_hint(hint)
}

/// Drives the part that [`Assist`] describes, for families that are not [`Driven`] themselves; `None` when it was
/// stopped before it began.
///
/// # Errors
/// Like [`drive`]; also when there are fewer workers than load generators.
pub fn drive_part<F: Driven>(
    family: &F,
    database: &Database,
    part: Assist<'_>,
) -> Result<Option<Left>> {
    let Assist { order, reporter, environment, stem, .. } = part;
    let mut spec = trial_spec(&order.planned);
    family.tune(&mut spec);
    let total_load = describe_load(&spec, Purpose::Measure);
    let spec = spec
        .part(order.generator, order.generators)
        .ok_or_else(|| Failure::new("There are more load generators than workers."))?;
    output::talk(&format!(
        "{} on {}: {} of {total_load}",
        order.experiment, order.target, spec.workers
    ));
    let workload = family.part(database, &spec, stem)?;
    let control = reporter.control();
    let mut result = match family.drive(database, &workload, &spec, &control, reporter) {
        Ok(result) => result,
        Err(DriveError::Interrupted) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let statements = dyno_engine::record::statement_counts(result.total.work()).total();
    let qps = statements as f64 * 1e9 / (result.length() as f64).max(1.0);
    let calibration = Calibration::for_environment(environment);
    result.conditions.headroom =
        calibration.and_then(|proof| proof.headroom(database.dialect(), spec.workers, qps));
    let state = match family.leave(&workload)? {
        Some(state) => serde_json::to_vec(&state).map_err(|error| {
            Failure::new(format!("What the workload has kept can't be sent: {error}."))
        })?,
        None => Vec::new(),
    };
    Ok(Some((result, state)))
}

/// A target with the passwords that were sent along, or that this machine's user has named.
///
/// # Errors
/// One of its URLs, also of those, is not a server's, or one that may not be reached: an order must not open files
/// of this machine, nor log in wherever it likes.
fn with_secrets(
    planned: &TargetFacts,
    secrets: &[TargetSecret],
    permits: &Permits,
) -> Result<TargetFacts> {
    let mut target = planned.clone();
    for node in &mut target.nodes {
        // The folder is one of the coordinator's machine.
        node.cluster = None;
    }
    for node in &planned.nodes {
        let mut urls = permits.cluster_urls.iter();
        if let Some(url) = urls.find(|url| url.redacted() == node.url.redacted()) {
            target.set_secret(Some(&node.name), url);
        }
    }
    for secret in secrets.iter().filter(|secret| secret.target == planned.name) {
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
        return Err(embedded_failure(&target.name));
    }
    permits.check(&target).map_err(|failure| failure.at(format!("target {}", target.name)))?;
    Ok(target)
}

/// Returns true if two URLs name the same servers and user: a password belongs to them alone.
fn goes_to(url: &str, planned: &str) -> bool {
    let [place, planned_place] = [url, planned].map(|url| {
        let target: TargetUrl = url.parse().ok()?;
        Some((target.hosts, target.user))
    });
    place.is_some() && place == planned_place
}

/// Returns true for the URL of a database that is reached over a network.
pub(super) fn is_server(url: &str) -> bool {
    url.parse().is_ok_and(|target: TargetUrl| !target.is_embedded())
}

/// The plan of an order. Whoever sends commands along is refused, though nothing here would execute them.
fn parse_plan(plan: &serde_json::Value) -> Result<Plan> {
    let plan: Plan = serde_json::from_value(plan.clone())
        .map_err(|error| Failure::new(format!("The plan can't be understood: {error}.")))?;
    if plan.experiments.iter().any(|experiment| experiment.commands().next().is_some()) {
        return Err(Failure::new("A load generator executes no commands, and the plan has one."));
    }
    Ok(plan)
}

pub(super) fn embedded_failure(target: &str) -> Failure {
    Failure::usage(format!(
        "The target {target} is an embedded database, which no other machine can reach."
    ))
    .with_hint("Leave --nats out, or give a server.")
}

/// A folder of this trial's own, removed with it.
fn create_scratch_folder() -> Result<TempDir> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("dyno-generator-").permissions(Permissions::from_mode(0o700));
    folder.tempdir().map_err(|error| Failure::new(format!("No folder can be made: {error}.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_suite::{Overrides, Suite};

    #[test]
    fn passwords_are_encoded_into_urls() {
        let url = with_password("mysql://dyno@h:1/d?a=b", "p@s/s:%");
        assert_eq!(url.as_deref(), Some("mysql://dyno:p%40s%2Fs%3A%25@h:1/d?a=b"));
        assert_eq!(with_password("mysql://h:1/d", "x"), None);
        assert_eq!(with_password("sqlite:a.db", "x"), None);
    }

    fn new_plan(folder: &Path, target: &str, experiment: &str) -> Plan {
        let suite = format!(
            "[suite]\nname = 's'\n[target.t]\n{target}\n[[experiment]]\nname = 'e'\n{experiment}\n"
        );
        let file = folder.join("s.toml").display().to_string();
        let suite = Suite::parse(&file, &suite, &[dyno_sysbench::OFFER]).expect("a suite");
        Plan::build(&suite, &Overrides::default()).expect("a plan")
    }

    const READS: &str =
        "workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = 1\nduration_s = 5";

    fn new_target(target: &str) -> TargetFacts {
        new_plan(Path::new(""), target, READS).target("t").expect("the target").clone()
    }

    fn new_secret(node: Option<&str>, url: &str) -> TargetSecret {
        TargetSecret { target: "t".to_owned(), node: node.map(str::to_owned), url: url.to_owned() }
    }

    fn complete_target(
        planned: &TargetFacts,
        secrets: &[TargetSecret],
    ) -> Result<TargetFacts, Failure> {
        with_secrets(planned, secrets, &Permits::default())
    }

    #[test]
    fn an_order_opens_no_files() {
        let server = new_target("url = 'mysql://u@h/d'");
        let url = "MySQL://u:geheim@h/d";
        let completed_target =
            complete_target(&server, &[new_secret(None, url)]).expect("a server");
        assert_eq!(completed_target.url_in(Path::new("")).expose(), url);
        let foreign = ["sqlite:/tmp/x", "SQLITE:/tmp/x", "cluster:/tmp", ""];
        for url in foreign {
            assert!(!is_server(url), "{url}");
            if !url.is_empty() {
                assert!(complete_target(&server, &[new_secret(None, url)]).is_err(), "{url}");
            }
        }
        let nodes = new_target(
            "route = 'split'\nnodes = [{ name = 'a', role = 'primary', url = 'mysql://u@h/d' }, { name = \
             'b', role = 'read_only', url = 'mysql://u@i/d' }]",
        );
        assert!(complete_target(&nodes, &[]).is_ok());
        for url in ["sqlite:/tmp/x", "mysql://u@i/d?socket=/run/mysqld/mysqld.sock"] {
            assert!(complete_target(&nodes, &[new_secret(Some("b"), url)]).is_err(), "{url}");
        }
        // A cluster's folder has its password in it.
        let mut foreign = nodes.clone();
        foreign.nodes[0].cluster = Some("/somewhere".to_owned());
        let completed_target = complete_target(&foreign, &[]).expect("servers");
        assert!(completed_target.nodes.iter().all(|node| node.cluster.is_none()));
    }

    #[test]
    fn an_order_goes_only_where_the_own_user_lets_it() {
        let permits = Permits::new(&["h".to_owned(), "i:3306".to_owned()], false).expect("hosts");
        let server = new_target("url = 'mysql://u@h/d'");
        assert!(with_secrets(&server, &[], &permits).is_ok());
        let evil = new_target("url = 'mysql://u@evil/d'");
        let refusal = with_secrets(&evil, &[new_secret(None, "mysql://u:geheim@evil/d")], &permits);
        let refusal = refusal.expect_err("another host").message.to_string();
        assert!(
            refusal.starts_with("target t: The load generator may not reach evil:3306"),
            "{refusal}"
        );
        assert!(!refusal.contains("geheim"));
        let nodes = new_target(
            "route = 'spread'\nnodes = [{ name = 'a', role = 'primary', url = 'mysql://u@p/d' }, { name = \
             'b', role = 'read_only', url = 'mysql://u@i/d' }, { name = 'c', role = 'read_only', url = \
             'mysql://u@j/d' }]",
        );
        // The nodes of others are not reached.
        assert!(with_secrets(&nodes.for_generator(0, 2), &[], &permits).is_ok());
        assert!(with_secrets(&nodes.for_generator(1, 2), &[], &permits).is_err());
    }

    #[test]
    fn a_password_goes_to_its_own_server_only() {
        let server = new_target("url = 'mysql://u@h/d'");
        assert!(complete_target(&server, &[new_secret(None, "mysql://u:geheim@h:3306/d")]).is_ok());
        for other in
            ["mysql://u:geheim@evil/d", "mysql://u:geheim@h:3307/d", "mysql://v:geheim@h/d"]
        {
            let refusal = complete_target(&server, &[new_secret(None, other)]).expect_err(other);
            let refusal = refusal.message.to_string();
            assert!(refusal.contains("for another server"), "{refusal}");
            assert!(!refusal.contains("geheim"));
        }
    }

    #[test]
    fn an_order_executes_no_commands() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = "url = 'mysql://u@h/d'";
        let plan = new_plan(folder.path(), target, READS);
        assert!(parse_plan(&serde_json::to_value(plan).expect("JSON")).is_ok());
        let fault =
            "fault = { action = 'command', at_s = 2, command = 'true', heal_command = 'true' }";
        for command in ["restore = 'touch x'", fault] {
            let plan = new_plan(folder.path(), target, &format!("{READS}\n{command}"));
            let plan = serde_json::to_value(plan).expect("JSON");
            let failure = parse_plan(&plan).expect_err(command);
            assert!(
                failure.message.to_string().contains("executes no commands"),
                "{}",
                failure.message
            );
        }
    }
}
