//! What happens on the first connection of a run: the tables are looked at and vacuumed.

use super::connection::OpenedDatabase;
use super::options::Settings;
use super::refusal::Refusal;
use dyno_core::{AdminDriver, AdminSession, DbError, Driver, Session};
use dyno_pgbench::init::{
    TableInfo, TableInfoError, table_info, vacuum_accounts, vacuum_before_run,
};
use dyno_pgbench::options::OFFER;
use dyno_pgbench::run::server_text;
use dyno_pgbench::script::Script;
use dyno_runner::{lock_holder, output, shared_warning};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) scale: i64,
    /// Method and number.
    pub(super) partitions: Option<(&'static str, u32)>,
}

/// Looks at the tables and vacuums them as far as the settings ask for it.
pub(super) fn set_up(
    reached: &OpenedDatabase,
    settings: &Settings,
    scripts: &[(Script, u32)],
    has_builtin: bool,
) -> Result<Tables, Refusal> {
    let tables = dyno_reactor::block_on(set_up_in_session(
        &reached.database.admin(),
        reached,
        settings,
        scripts,
        has_builtin,
    ));
    tables.unwrap_or_else(|error| Err(Refusal::error(error)))
}

async fn set_up_in_session(
    driver: &AdminDriver<'_>,
    reached: &OpenedDatabase,
    settings: &Settings,
    scripts: &[(Script, u32)],
    has_builtin: bool,
) -> Result<Tables, Refusal> {
    let connected = driver.connect(0).await;
    let mut session = connected.map_err(|error| {
        let refusal = Refusal::unconnected(&error, reached.target.dialect);
        refusal.then("could not create connection for setup")
    })?;
    let scale = settings.scale.map_or(1, i64::from);
    let mut tables = Tables { scale, partitions: None };
    if has_builtin {
        let holder = lock_holder(&mut session, OFFER.name).await;
        if let Some(who) =
            holder.map_err(|error| no_tables(&TableInfoError::Count(error), reached))?
        {
            output::talk(&format!("pgbench: warning: {}", shared_warning(&who)));
        }
        let found = table_info(&mut session).await.map_err(|error| no_tables(&error, reached))?;
        tables = Tables { scale: found.scale, partitions: partitions(&found) };
        if settings.scale.is_some() {
            output::talk_lines(&format!(
                "pgbench: warning: scale option ignored, using count from pgbench_branches table \
                 ({})",
                found.scale
            ));
        }
    } else if let Some(script) = uses_default_scale(settings, scripts) {
        warn_of_scale(&mut session, script).await;
    }
    if settings.vacuum {
        vacuum(&mut session, settings.vacuum_accounts).await;
    }
    session.close().await;
    Ok(tables)
}

fn partitions(found: &TableInfo) -> Option<(&'static str, u32)> {
    Some((found.partition_method?.name(), found.partitions))
}

fn no_tables(error: &TableInfoError, reached: &OpenedDatabase) -> Refusal {
    let refusal = match error {
        TableInfoError::Count(error) => Refusal::error(format_args!(
            "could not count number of branches: {}",
            server_text(error, "select count(*) from pgbench_branches")
        )),
        TableInfoError::NoAccounts => {
            Refusal::error("no pgbench_accounts table found in \"search_path\"")
        }
    };
    match error.hint(reached.target.database.as_deref().unwrap_or_default()) {
        Some(hint) => refusal.with_hint(hint),
        None => refusal,
    }
}

/// A script that uses `:scale` although nobody has said what it is.
fn uses_default_scale<'a>(settings: &Settings, scripts: &'a [(Script, u32)]) -> Option<&'a Script> {
    if settings.scale.is_some() || settings.variable("scale").is_some() {
        return None;
    }
    let uses = |script: &&Script| script.variables().iter().any(|name| name == "scale");
    scripts.iter().map(|(script, _)| script).find(uses)
}

async fn warn_of_scale(session: &mut AdminSession<'_>, script: &Script) {
    // Tables of one's own are no reason to warn.
    let Ok(TableInfo { scale: found, .. }) = table_info(session).await else { return };
    if found > 1 {
        output::talk_lines(&format!(
            "pgbench: warning: script \"{}\" uses :scale, which is 1 without -s, but the tables \
             have scale {found}\npgbench: hint: give -s {found} to use all of the data",
            script.description()
        ));
    }
}

async fn vacuum(session: &mut AdminSession<'_>, with_accounts: bool) {
    begin("starting vacuum...");
    end(&vacuum_before_run(session).await);
    if with_accounts {
        begin("starting vacuum pgbench_accounts...");
        end(&vacuum_accounts(session).await);
    }
}

fn begin(text: &str) {
    output::talk_unended(text);
}

fn end(errors: &[DbError]) {
    for error in errors {
        output::talk_lines(&format!(
            "pgbench: error: {}\npgbench: detail: (ignoring this error and continuing anyway)",
            server_text(error, "")
        ));
    }
    output::talk_lines("end.");
}
