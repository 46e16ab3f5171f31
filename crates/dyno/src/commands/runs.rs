//! The runs that there are: `dyno ls`, `dyno show`, how verbs find one; `dyno serve`, and the page alongside a run.

use super::compare::print_results;
use super::paper::build_paper;
use crate::{CommandResult, env_variable};
use dyno_facts::{RunStatus, text_table};
use dyno_runner::failure::Failure;
use dyno_runner::{output, process_list, signals};
use dyno_serve::{BoundServer, RunningServer, Settings, Token};
use dyno_store::{RunData, RunEntry};
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// The folder of runs by default.
pub(crate) const RUNS: &str = "dyno-runs";

/// The option of all verbs that read or write runs.
#[derive(Debug, clap::Args)]
pub(crate) struct RunsFolder {
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArguments {
    /// A run: its folder, its name, the beginning of its name, or `last`.
    #[arg(default_value = "last")]
    run: String,
    #[command(flatten)]
    runs: RunsFolder,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArguments {
    /// Only runs with this in their name or title.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// Only runs in this state.
    #[arg(long, value_name = "STATUS", value_parser = STATUSES)]
    status: Option<String>,
    /// Print JSON: an array of objects with the columns of the table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    runs: RunsFolder,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArguments {
    /// Runs: their folders, names or beginnings of names.
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    runs: RunsFolder,
}

const STATUSES: [&str; 5] = ["running", "complete", "interrupted", "failed", "unreadable"];
const COLUMNS: [&str; 4] = ["run", "status", "trials", "title"];

/// `dyno ls`.
pub(crate) fn list(arguments: &ListArguments) -> CommandResult {
    let dir = &arguments.runs.dir;
    if arguments.text.as_ref().is_some_and(|text| text.contains("://")) {
        return Err(Failure::usage("`dyno ls` lists runs, and no run has a URL in its name.")
            .with_hint("`dyno bench URL` measures a database."));
    }
    let mut rows: Vec<[String; 4]> = dyno_store::list(dir)?.iter().map(run_row).collect();
    let text = arguments.text.as_deref().unwrap_or_default().to_lowercase();
    rows.retain(|[name, status, _, title]| {
        arguments.status.as_ref().is_none_or(|wanted| wanted == status)
            && [name, title].iter().any(|cell| cell.to_lowercase().contains(&text))
    });
    if arguments.json {
        let objects: Vec<BTreeMap<&str, String>> =
            rows.into_iter().map(|row| COLUMNS.into_iter().zip(row).collect()).collect();
        output::data(&crate::pretty(&objects)?);
        return Ok(());
    }
    if rows.is_empty() {
        let is_filtered = arguments.text.is_some() || arguments.status.is_some();
        let kind = if is_filtered { "such runs" } else { "runs" };
        output::talk(&format!("There are no {kind} in {}.", dir.display()));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    output::data(&text_table(&COLUMNS, &rows, |place| place >= 2));
    Ok(())
}

/// `dyno rm`.
pub(crate) fn remove(arguments: &RemoveArguments) -> CommandResult {
    let mut folders = Vec::new();
    for name in &arguments.names {
        let folder = find_run(&arguments.runs.dir, name)?;
        if dyno_store::is_growing(&folder) {
            return Err(Failure::usage(format!("The run {} hasn't ended.", folder.display()))
                .with_hint("Stop it first: Ctrl-C, or `kill` its process."));
        }
        folders.push(folder);
    }
    for folder in folders {
        std::fs::remove_dir_all(&folder).map_err(|error| {
            Failure::new(format!("{} can't be removed: {error}.", folder.display()))
        })?;
        output::data(&format!("{}\n", folder.display()));
    }
    Ok(())
}

/// `dyno show`.
pub(crate) fn show(arguments: &ShowArguments) -> CommandResult {
    let runs = read_runs(&arguments.runs.dir, std::slice::from_ref(&arguments.run))?;
    // Columns of notes have the numbers of the checks, which follow.
    print_results(&build_paper(&runs));
    Ok(())
}

fn folder_name(entry: &RunEntry) -> String {
    entry.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn run_row(entry: &RunEntry) -> [String; 4] {
    let status = match entry.status() {
        Some(RunStatus::Running) => "running",
        Some(RunStatus::Complete) => "complete",
        Some(RunStatus::Interrupted) => "interrupted",
        Some(RunStatus::Failed(_)) => "failed",
        None => "unreadable",
    };
    [
        folder_name(entry),
        status.to_owned(),
        entry.trials_ended.to_string(),
        match &entry.header {
            Ok(header) => header.title.clone(),
            Err(error) => error.to_string(),
        },
    ]
}

pub(crate) fn read_runs(runs: &Path, names: &[String]) -> Result<Vec<RunData>, Failure> {
    let stored_runs = names.iter().map(|name| {
        let data = dyno_store::read(&find_run(runs, name)?)?;
        for warning in &data.warnings {
            output::talk(&format!("warning: {warning}"));
        }
        Ok(data)
    });
    stored_runs.collect()
}

/// Finds a run by its path, by its name inside `runs`, by the beginning of that, or as `last`.
///
/// # Errors
/// When there is none, or more than one begins like that.
pub(crate) fn find_run(runs: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    if path.join("run.json").is_file() {
        return Ok(path.to_owned());
    }
    if runs.join(name).join("run.json").is_file() {
        return Ok(runs.join(name));
    }
    if name.contains("://") {
        return Err(Failure::usage(format!("`{name}` is a database, and a run is wanted."))
            .with_hint("`dyno bench URL URL` measures two databases and compares them."));
    }
    let entries = dyno_store::list(runs)?;
    let mut matches: Vec<&RunEntry> = match name {
        "last" => entries.iter().max_by_key(|entry| folder_name(entry)).into_iter().collect(),
        _ => entries.iter().filter(|entry| folder_name(entry).starts_with(name)).collect(),
    };
    match (matches.pop(), matches.len()) {
        (Some(entry), 0) => Ok(entry.path.clone()),
        (Some(_), _) => Err(Failure::usage(format!("Several runs begin with `{name}`."))
            .with_hint("Give more of the name; `dyno ls` lists them all.")),
        (None, _) if entries.is_empty() => {
            Err(Failure::usage(format!("There is no run `{name}`: {} has none.", runs.display()))
                .with_hint("`dyno quickstart` makes one; `--dir` names another folder of runs."))
        }
        (None, _) => {
            Err(Failure::usage(format!("There is no run `{name}` in {}.", runs.display()))
                .with_hint("`dyno ls` lists the runs; `--dir` names another folder of runs."))
        }
    }
}

/// The address of the page by default: this machine only, a free port.
pub(crate) const LISTEN: &str = "127.0.0.1:0";
const TOKEN_VARIABLE: &str = "DYNO_SERVE_TOKEN";

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/serve.txt").trim_ascii_end())]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    runs: RunsFolder,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = LISTEN)]
    listen: String,
    /// Your own token, at least 16 characters; DYNO_SERVE_TOKEN may hold it instead.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Name of this machine by which the page may be addressed, alongside localhost and plain addresses.
    #[arg(long = "allow-host", value_name = "NAME")]
    names: Vec<String>,
}

/// Executes `dyno serve`.
pub(crate) fn serve(arguments: &ServeArguments) -> CommandResult {
    if let (Some(_), Err(error)) = (&arguments.token, process_list::hide_values(&["token"])) {
        output::talk(&format!(
            "warning: the token can be seen in the process list: {error}. Give it in {TOKEN_VARIABLE}."
        ));
    }
    let server = bind_server(
        &arguments.runs.dir,
        &arguments.listen,
        arguments.token.as_deref(),
        arguments.names.clone(),
    )?;
    if !arguments.runs.dir.is_dir() {
        output::talk(&format!(
            "There is no folder {} yet; the first run makes it, and is shown then.",
            arguments.runs.dir.display()
        ));
    }
    let url = server.url();
    let running = server.start()?;
    signals::on_interrupt(running.stopper())
        .map_err(|error| Failure::new(format!("Signals can't be handled: {error}.")))?;
    output::data(&format!("{url}\n"));
    let add = if url.ends_with('=') { ", with your token at its end" } else { "" };
    output::talk(&format!("Open it in a browser{add}. Ctrl-C ends the page; runs continue."));
    Ok(running.wait()?)
}

/// Serves the page alongside a run until what is returned is dropped.
pub(crate) fn serve_alongside(runs: &Path, listen: &str) -> Result<RunningServer, Failure> {
    let server = bind_server(runs, listen, None, Vec::new())?;
    let url = server.url();
    let running = server.start()?;
    output::talk(&format!("The run can be watched at {url}"));
    Ok(running)
}

fn bind_server(
    runs: &Path,
    listen: &str,
    token: Option<&str>,
    names: Vec<String>,
) -> Result<BoundServer, Failure> {
    let token = token.map(str::to_owned).or(env_variable(TOKEN_VARIABLE));
    let token = token.map(|token| Token::own(&token)).transpose();
    let settings = Settings {
        runs: runs.to_owned(),
        listen: parse_address(listen)?,
        token: token.map_err(|error| Failure { code: 2, ..error.into() })?,
        names,
    };
    Ok(BoundServer::bind(settings)?)
}

fn parse_address(listen: &str) -> Result<SocketAddr, Failure> {
    let mut addresses = listen.to_socket_addrs().ok().into_iter().flatten();
    addresses.next().ok_or_else(|| {
        Failure::usage(format!("`{listen}` isn't an address to listen on."))
            .with_hint("Write an address of this machine and a port, such as 127.0.0.1:8000.")
    })
}
