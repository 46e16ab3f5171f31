//! `dyno help` and `dyno completion`.

use crate::{CommandLine, CommandResult, offers};
use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use dyno_core::nearest;
use dyno_core::offer::WorkloadOffer;
use dyno_core::options::{fill, help};
use dyno_reactor::chosen_io;
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_suite::HANDBOOK;
use std::fs;
use std::path::PathBuf;

/// The topic that is not a verb and no workload.
const SUITE: &str = "suite";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A verb; or a workload of suites, whose options are listed then; or `suite`, for the format of suites, key by
    /// key.
    #[arg(value_name = "VERB, WORKLOAD or suite")]
    topic: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/completion.txt").trim_ascii_end())]
pub(crate) struct Shell {
    /// Shell that the script is for.
    shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManualPages {
    /// Folder that gets a page for each verb.
    folder: PathBuf,
    /// Write the reference of the book, in Markdown, instead.
    #[arg(long = "markdown")]
    has_markdown: bool,
}

/// Executes `dyno help`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let offers = offers();
    if let [name] = arguments.topic.as_slice()
        && let Some(workload) = offers.iter().find(|workload| workload.name == name)
    {
        output::data(&describe_workload(workload));
        return Ok(());
    }
    if arguments.topic == [SUITE] {
        output::data(HANDBOOK);
        return Ok(());
    }
    let mut command = CommandLine::command();
    command.build();
    let mut verb = &mut command;
    for word in &arguments.topic {
        let verbs: Vec<String> =
            verb.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        let workloads = offers.iter().map(|workload| workload.name);
        let topics = verbs.iter().map(String::as_str).chain(workloads).chain([SUITE]);
        let near = nearest(word, topics);
        let failure = Failure::usage(format!("There is no help on `{word}`."));
        let failure = match near {
            Some(near) => failure.with_hint(format!("did you mean `dyno help {near}`?")),
            None => failure.with_hint("`dyno help` lists the verbs."),
        };
        verb = verb.find_subcommand_mut(word).ok_or(failure)?;
    }
    output::data(&verb.render_long_help().to_string());
    if verb.get_name() == "suites" {
        output::data(&format!("\n{HANDBOOK}"));
    }
    Ok(())
}

fn describe_workload(workload: &WorkloadOffer) -> String {
    let tests: Vec<&str> = workload.tests.iter().map(|test| test.name).collect();
    let name = workload.name;
    let options = help(&(workload.options)());
    let mut text = format!(
        "The workload `{name}` in suites: `workload = \"{name}\"`.\n\nTests:\n{}\nOptions, in \
         `options = {{ NAME = VALUE }}`:\n{options}",
        fill(&tests.join(", "), 2)
    );
    if CommandLine::command().find_subcommand(name).is_some() {
        text.push_str(&format!("\n`dyno {name} --help` explains the verb of this name.\n"));
    }
    text
}

/// Executes `dyno completion`: prints the script for a shell.
pub(crate) fn complete(arguments: &Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut completion_command(), "dyno", &mut script);
    output::data(&String::from_utf8_lossy(&script));
    Ok(())
}

/// Writes `dyno.1` and a manual page for each verb, such as `dyno-run.1` and `dyno-cluster-up.1`; with `--markdown`, the pages
/// `verbs.md` and `workloads.md` of the book instead.
pub(crate) fn write_manual_pages(arguments: &ManualPages) -> CommandResult {
    let folder = &arguments.folder;
    let failed = |error| Failure::new(format!("{} can't be written: {error}.", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut command = CommandLine::command();
    if !arguments.has_markdown {
        return clap_mangen::generate_to(command, folder).map_err(failed);
    }
    let mut verbs = String::from("# Verbs\n");
    command.build();
    describe_verbs(&mut command, &mut verbs);
    fs::write(folder.join("verbs.md"), verbs).map_err(failed)?;
    let mut workloads = String::from("# Workloads of suites\n");
    for workload in offers() {
        let (name, text) = (workload.name, describe_workload(&workload));
        workloads.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", text.trim_end()));
    }
    fs::write(folder.join("workloads.md"), workloads).map_err(failed)
}

/// Appends the help of each verb below a command, and of the verbs below these.
fn describe_verbs(command: &mut clap::Command, text: &mut String) {
    for verb in command.get_subcommands_mut().filter(|verb| !verb.is_hide_set()) {
        let name = verb.get_bin_name().unwrap_or(verb.get_name()).to_owned();
        let help = verb.render_long_help().to_string();
        let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", lines.join("\n")));
        describe_verbs(verb, text);
    }
}

/// Version, commit, features and I/O backend of this program, a line each, for reports of faults.
pub(crate) fn describe_build() -> String {
    let pdf = if cfg!(feature = "pdf") { "PDF inside" } else { "PDF by the program typst" };
    format!(
        "dyno {}\ncommit: {}\ntarget: {}-{}\nfeatures: {pdf}\nI/O: {}\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("DYNO_COMMIT").unwrap_or("not recorded by this build"),
        std::env::consts::ARCH,
        if cfg!(target_env = "musl") { "linux-musl" } else { std::env::consts::OS },
        chosen_io()
    )
}

/// The command line with the names that only completion knows: verbs and workloads after `help`, bundled
/// suites, tests and options of sysbench.
fn completion_command() -> clap::Command {
    let command = CommandLine::command();
    let verbs = command.get_subcommands().map(|verb| verb.get_name().to_owned());
    let workloads = offers().into_iter().map(|workload| workload.name.to_owned());
    let mut topics: Vec<String> = verbs.chain(workloads).chain([SUITE.to_owned()]).collect();
    topics.sort();
    topics.dedup();
    let suites = dyno_suite::bundled().iter().map(|suite| suite.name.to_owned()).collect();
    let offer = dyno_sysbench::OFFER;
    let tests = offer.tests.iter().map(|test| test.name.to_owned());
    let options = (offer.options)();
    let options = options.iter().map(|option| format!("--{}=", option.name.replace('_', "-")));
    let command = with_names(command, "help", "topic", topics);
    let command = with_names(command, "suites", "suite", suites);
    with_names(command, "sysbench", "arguments", tests.chain(options).collect())
}

fn with_names(
    command: clap::Command,
    verb: &str,
    argument: &'static str,
    names: Vec<String>,
) -> clap::Command {
    let values = PossibleValuesParser::new(names);
    command.mut_subcommand(verb, |verb| verb.mut_arg(argument, |arg| arg.value_parser(values)))
}
