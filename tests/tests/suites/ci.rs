//! `dyno ci` in jobs of GitHub and GitLab, as `action.yml` and the template for GitLab call it.

use dyno_testkit::{
    Postgres, ProcessOutput, RunningDyno, Scratch, dyno, dyno_path, server_or_skip, wait_until,
};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A suite on tables that are there: a trigger on one side stays.
const SUITE: &str = "[suite]\nname = \"s\"\n[[experiment]]\nname = \"e\"\nworkload = \"pgbench\"\ntest = \"simple-update\"\n\
    workers = 2\nrate = 20\nwarmup_s = 0.5\nduration_s = 3\ninterval_s = 0.5\nprepare = false\ncleanup = false\n";
const WASTE: &str = "CREATE FUNCTION waste() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE i int; BEGIN FOR i IN 1..5000 \
    LOOP PERFORM 1; END LOOP; RETURN NEW; END'; CREATE TRIGGER waste AFTER UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE \
    FUNCTION waste()";

fn load(folder: &Path, server: &Postgres) {
    let output = dyno(folder, &["pgbench", "-i", "-q", "-s", "1", &server.url()]);
    assert_eq!(output.code, 0, "{output}");
}

/// Imitates a runner: fills the inputs into the variables of a template, and executes the script that the template
/// calls.
fn job(
    folder: &Path,
    template: &str,
    inputs: &[(&str, &str)],
    variables: &[(&str, &str)],
) -> ProcessOutput {
    fs::write(folder.join("s.toml"), SUITE).expect("a suite");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (script, template) = ("deploy/pipeline/run", text(&root, template));
    assert!(template.lines().any(|line| line.ends_with(script)), "{template}");
    let path = std::env::var("PATH").unwrap_or_default();
    let binary_folder = dyno_path().parent().expect("a folder").display();
    let mut command = Command::new(root.join(script));
    command.current_dir(folder).env("PATH", format!("{binary_folder}:{path}"));
    for name in ["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "CI_JOB_URL", "GITHUB_SHA"] {
        command.env_remove(name);
    }
    let inputs = [&[("suite", "s.toml"), ("budget", "1m")], inputs].concat();
    for line in template.lines() {
        // `BUDGET: ${{ inputs.budget }}` of GitHub, `BUDGET: $[[ inputs.budget ]]` of GitLab.
        let Some((name, input)) = line.trim().split_once(": $") else { continue };
        let Some((_, input)) = input.split_once(" inputs.") else { continue };
        let input = input.trim_end_matches([' ', '}', ']']);
        let provided = inputs.iter().find(|(name, _)| *name == input);
        let value = provided.map_or_else(|| input_default(&template, input), |(_, value)| *value);
        command.env(name, value);
    }
    command.envs(variables.iter().copied());
    ProcessOutput::capture(&mut command)
}

/// The default of an input; empty if it has none.
fn input_default<'t>(template: &'t str, input: &str) -> &'t str {
    let mut lines = template.lines().skip_while(|line| line.trim() != format!("{input}:")).skip(1);
    let default = lines.by_ref().take(3).find_map(|line| line.trim().strip_prefix("default: "));
    default.unwrap_or_default().trim_matches('"')
}

fn text(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// At most 20 lines of 80 columns on both streams, but for lines that only a runner reads.
fn is_mail_sized(output: &ProcessOutput) {
    let lines = output.stdout.lines().filter(|line| !line.starts_with("::"));
    let lines: Vec<&str> = lines.collect();
    assert!(lines.len() <= 18, "{output}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80 || !line.contains(' ')), "{output}");
}

#[test]
fn jobs_pass_fail_and_stay_open_as_the_cost_of_a_transaction_says() {
    let test = "jobs_pass_fail_and_stay_open_as_the_cost_of_a_transaction_says";
    let (a, b) = (server_or_skip!(Postgres, test), server_or_skip!(Postgres, test));
    let scratch = Scratch::new();
    let folder = scratch.path();
    load(folder, &a);
    load(folder, &b);
    let (a_url, b_url) = (a.url(), b.url());
    let summary = folder.join("step-summary.md");
    let run_on_github = |condition| {
        job(
            folder,
            "action.yml",
            &[("baseline", &*a_url), ("candidate", &*b_url), ("fail-if", condition)],
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_STEP_SUMMARY", summary.to_str().expect("UTF-8")),
            ],
        )
    };
    let passed = run_on_github("server_cpu_us.ratio < 3");
    assert_eq!(passed.code, 0, "{passed}");
    assert!(passed.stdout.contains("::notice title=dyno ci::No regression: "), "{passed}");
    is_mail_sized(&passed);
    // Equal servers: whether the interval lies below 1 is open, unless it is one in forty.
    let open = run_on_github("server_cpu_us.ratio < 1");
    assert!([3, 0].contains(&open.code), "{open}");
    if open.code == 3 {
        assert!(open.stdout.contains("::warning title=dyno ci::Undecided: "), "{open}");
        assert!(open.stdout.contains("Established: server CPU"), "{open}");
        assert!(text(folder, "dyno-ci/junit.xml").contains("<skipped message="));
    }
    b.sbtest(WASTE).expect("a trigger");
    let failed = run_on_github("server_cpu_us.ratio < 1.5");
    assert_eq!(failed.code, 5, "{failed}");
    assert!(failed.stdout.contains("::error title=dyno ci::Regression: "), "{failed}");
    is_mail_sized(&failed);
    let steps = text(folder, "step-summary.md");
    assert_eq!(steps.matches("| change | 95% interval |").count(), 3, "{steps}");
    // The same job of GitLab reads JUnit.
    let on_gitlab = job(
        folder,
        "deploy/pipeline/gitlab.yml",
        &[("baseline", &*a_url), ("candidate", &*b_url), ("fail-if", "server_cpu_us.ratio < 1.5")],
        &[("CI_JOB_URL", "https://gitlab.example/jobs/1"), ("CI_COMMIT_SHA", "abc")],
    );
    assert_eq!(on_gitlab.code, 5, "{on_gitlab}");
    assert!(!on_gitlab.stdout.contains("::error"), "{on_gitlab}");
    assert!(text(folder, "dyno-ci/junit.xml").contains("failures=\"1\""));
    assert!(text(folder, "dyno-ci/summary.md").contains("https://gitlab.example/jobs/1"));
    assert!(text(folder, "dyno-ci/otava.csv").contains(",abc,"));
    let bencher: serde_json::Value =
        serde_json::from_str(&text(folder, "dyno-ci/bencher.json")).expect("JSON");
    let place = bencher.as_object().expect("places").values().next().expect("one");
    assert!(place["server_cpu_us_ratio"]["lower_value"].as_f64() > Some(1.5), "{bencher}");
    let entries: serde_json::Value =
        serde_json::from_str(&text(folder, "dyno-ci/benchmark.json")).expect("JSON");
    assert!(entries[0]["value"].as_f64() > Some(1.5), "{entries}");
}

#[test]
fn a_candidate_that_dies_or_never_comes_up_fails_the_job() {
    let test = "a_candidate_that_dies_or_never_comes_up_fails_the_job";
    let (a, mut b) = (server_or_skip!(Postgres, test), server_or_skip!(Postgres, test));
    let scratch = Scratch::new();
    let folder = scratch.path();
    load(folder, &a);
    load(folder, &b);
    let (a_url, b_url) = (a.url(), b.url());
    let never = job(
        folder,
        "action.yml",
        &[("baseline", &a_url), ("candidate", "echo building; exit 1")],
        &[],
    );
    assert_eq!(never.code, 1, "{never}");
    assert!(never.stderr.contains("candidate: The command has printed no URL"), "{never}");
    assert!(text(folder, "dyno-ci/junit.xml").contains("errors=\"1\""));
    // A job that is canceled leaves no process behind.
    let sleeps = "echo $$ > sleeps; exec sleep 600";
    let mut canceled =
        RunningDyno::start(folder, &["ci", "--baseline", &a_url, "--candidate", sleeps]);
    canceled.wait_until("the command", |_| {
        fs::read_to_string(folder.join("sleeps")).is_ok_and(|text| text.ends_with('\n'))
    });
    canceled.signal(Signal::TERM);
    assert_eq!(canceled.end().code, 143);
    let process = text(folder, "sleeps");
    assert!(!Path::new("/proc").join(process.trim()).exists(), "it is left: {process}");
    // A command that prints a URL and stays: its process group ends with the job.
    let stays = format!("echo listening on {b_url}; echo $$ > stays; exec sleep 600");
    let died = std::thread::scope(|scope| {
        let stays = &stays;
        let job = scope.spawn(move || {
            job(
                folder,
                "action.yml",
                &[
                    ("baseline", &a_url),
                    ("candidate", stays),
                    ("fail-if", "server_cpu_us.ratio < 3"),
                ],
                &[],
            )
        });
        wait_until("trials", || {
            let updates = b.sbtest("SELECT count(*) FROM pgbench_history");
            updates.is_ok_and(|count| count.trim() != "0")
        });
        b.kill();
        job.join().expect("a job")
    });
    assert_eq!(died.code, 1, "{died}");
    assert!(text(folder, "dyno-ci/summary.md").contains("no verdict"), "{died}");
    let process = text(folder, "stays");
    assert!(!Path::new("/proc").join(process.trim()).exists(), "it is left: {process}");
}

#[test]
fn servers_that_are_installed_in_a_folder_are_started_and_removed() {
    let test = "servers_that_are_installed_in_a_folder_are_started_and_removed";
    let Some(software) = installed_postgres() else {
        return dyno_testkit::skipped(test, "no folder of PostgreSQL has bin/initdb");
    };
    let scratch = Scratch::new();
    let folder = scratch.path();
    let suite = SUITE.replace("prepare = false\ncleanup = false\n", "options = { scale = 1 }\n");
    fs::write(folder.join("own.toml"), suite).expect("a suite");
    let arguments =
        ["ci", "--baseline", &software, "--candidate", &software, "--suite", "own.toml"];
    let options = ["--fail-if", "server_cpu_us.ratio < 3", "--long"];
    let output = dyno(folder, &[&arguments[..], &options].concat());
    assert_eq!(output.code, 0, "{output}");
    // The candidate begins with a copy of the baseline's data.
    assert_eq!(output.to_string().matches(" rows by COPY").count(), 1, "{output}");
    let nothing = dyno(folder, &["ci", "--baseline", ".", "--candidate", "."]);
    assert_eq!(nothing.code, 2, "{nothing}");
    assert!(nothing.stderr.contains("holds no server"), "{nothing}");
}

/// The folder above `bin` of a PostgreSQL of this machine.
fn installed_postgres() -> Option<String> {
    let entries = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut folders =
        entries.map(|entry| entry.path()).filter(|path| path.join("bin/initdb").is_file());
    Some(folders.next()?.display().to_string())
}
