//! The state of a node at one moment, and the differences between two states.
//!
//! Settings and counters as a server states them, before and after a trial.

use super::Asker;
use super::{Asked, Sample, postgres};
use dyno_core::{AdminSession, DbResult, Dialect, Nanos};
use dyno_facts::{CommitWait, LogInFacts, Message, NodeConditions, ReplicaFacts, ServerFacts, say};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeState {
    pub sample: Sample,
    pub round_trip_us: Option<f64>,
    pub isolation: Option<String>,
    pub cache_bytes: Option<u64>,
    pub checkpoint_interval_s: Option<f64>,
    pub data_bytes: Option<u64>,
    pub query_cache: Option<bool>,
    pub tables_without_statistics: Vec<String>,
    pub schema_checksum: Option<String>,
    /// Like [`dyno_facts::ServerFacts`] has it.
    pub schema: BTreeMap<String, String>,
    pub table_rows: BTreeMap<String, u64>,
    pub row_bytes: BTreeMap<String, f64>,
    pub replicas: Vec<ReplicaFacts>,
    pub acknowledged_by: Option<CommitWait>,
    pub transport: Option<String>,
    /// The servers that an endpoint reaches by postgres_fdw.
    pub foreign_servers: Vec<String>,
    /// Sessions of clients that were ever opened, where the server counts these apart from its own processes.
    pub sessions: Option<u64>,
    /// Other connections, by process: since when they do nothing. `None` if that can't be seen, or if one does
    /// something. dyno's locks are left out.
    pub others: BTreeMap<String, Option<String>>,
    /// Statements that were sent to learn all this: servers count them too.
    pub asked: Asked,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerWindow {
    pub opened: Option<Sample>,
    /// When it closed, or the last one before that.
    pub closed: Option<Sample>,
    pub checkpoints: Option<u64>,
    /// Work of the server's own, at any moment of the window.
    pub background: Vec<String>,
    /// Replica lags that were sampled, seconds: by the names of replicas, a replica's own as `itself`.
    pub lags_s: BTreeMap<String, Vec<f64>>,
    /// States of the settings that decide what a commit promises.
    pub commit_settings: BTreeSet<String>,
    pub down: Option<Message>,
    pub asked: Asked,
    pub not_readable: Vec<Message>,
}

pub fn node_conditions(
    before: &NodeState,
    after: &NodeState,
    seen: &ServerWindow,
) -> NodeConditions {
    // Without samples from within, the window is taken to reach from before to after.
    let opened = seen.opened.as_ref().unwrap_or(&before.sample);
    let closed = seen.closed.as_ref().unwrap_or(&after.sample);
    let in_window = |get: fn(&Sample) -> Option<u64>| get(closed)?.checked_sub(get(opened)?);
    let requests = in_window(|sample| sample.page_requests);
    let missed = in_window(|sample| sample.page_misses);
    let is_one_life = !was_restarted(before, after, seen);
    let overall = |get: fn(&Sample) -> Option<u64>| {
        get(&after.sample)?.checked_sub(get(&before.sample)?).filter(|_| is_one_life)
    };
    let excluded = own_statements(before, seen);
    // A replica counts what it applies among its writes.
    let applies = overall(|sample| sample.replicated).is_some_and(|applied| applied > 0);
    let writes = overall(|sample| sample.writes).map(|all| all.saturating_sub(excluded.writes));
    let mut commit_settings = seen.commit_settings.clone();
    commit_settings
        .extend([before, after].iter().filter_map(|it| it.sample.commit_settings.clone()));
    let lags_s: Vec<f64> = seen.lags_s.values().flatten().copied().collect();
    let [size_before, size_after] =
        [before, after].map(|state| state.data_bytes.filter(|&bytes| bytes > 0));
    let window = seen.closed.as_ref().zip(seen.opened.as_ref()).filter(|_| is_one_life);
    NodeConditions {
        round_trip_us: before.round_trip_us,
        measures: window.map(|(closed, opened)| closed.used_since(opened)).unwrap_or_default(),
        cpu_share: None,
        isolation: before.isolation.clone(),
        cache_bytes: before.cache_bytes,
        data_bytes: before.data_bytes,
        hit_share: requests
            .zip(missed)
            .filter(|&(requests, _)| requests > 0)
            .map(|(requests, missed)| (1.0 - missed as f64 / requests as f64).max(0.0)),
        pages_read: in_window(|sample| sample.pages_read),
        dirty_share: before.sample.dirty_share,
        purge_backlog: before.sample.purge_backlog,
        checkpoint_age_share: before.sample.checkpoint_age_share,
        checkpoints: seen.checkpoints.or_else(|| in_window(|sample| sample.checkpoints)),
        checkpoint_interval_s: before.checkpoint_interval_s,
        background: seen.background.clone(),
        // Autocommit is not a commit to MySQL: if it counted none, nothing can be compared.
        commits: commits_grown(before, after, seen).filter(|&commits| commits > 0),
        rollbacks: overall(|sample| sample.rollbacks),
        transactions_elsewhere: overall(|sample| sample.transactions_elsewhere),
        elsewhere_s: after
            .sample
            .elsewhere_at_s
            .zip(before.sample.elsewhere_at_s)
            .map(|(new, old)| new - old),
        statements: overall(|sample| sample.statements).map(|all| all.saturating_sub(excluded.all)),
        reads: overall(|sample| sample.reads).map(|reads| reads.saturating_sub(excluded.reads)),
        writes: if applies { writes.and(after.sample.refuses_writes.then_some(0)) } else { writes },
        rows_fetched: overall(|sample| sample.rows_fetched),
        rows_written: overall(|sample| sample.rows_written),
        replicated: overall(|sample| sample.replicated),
        unacknowledged: overall(|sample| sample.unacknowledged),
        lag_max_s: lags_s.iter().copied().reduce(f64::max),
        lag_p95_s: percentile_95(lags_s),
        down: seen.down.clone(),
        commit_settings: commit_settings.into_iter().collect(),
        // Sessions that were there at that moment did so a little later than the others.
        was_reloaded: overall(|sample| sample.configured_s).is_some_and(|grown_s| grown_s > 1),
        growth_share: size_before.zip(size_after).map(|(old, new)| new as f64 / old as f64 - 1.0),
        query_cache: before.query_cache,
        tables_without_statistics: before.tables_without_statistics.clone(),
        schema_checksum: before.schema_checksum.clone(),
        table_rows: before.table_rows.clone(),
        row_bytes: before.row_bytes.clone(),
        replicas: after.replicas.clone(),
        acknowledged_by: weaker(&before.acknowledged_by, &after.acknowledged_by),
        transport: before.transport.clone(),
        foreign_servers: before.foreign_servers.clone(),
        ..NodeConditions::default()
    }
}

/// Statements of dyno's own between the counters of both looks.
fn own_statements(before: &NodeState, seen: &ServerWindow) -> Asked {
    let mut statements = before.asked;
    statements += seen.asked;
    statements
}

/// Returns true if counters may have begun again between the looks. They may have come further since than they
/// were before, so that they alone don't tell.
fn was_restarted(before: &NodeState, after: &NodeState, seen: &ServerWindow) -> bool {
    seen.down.is_some() || after.sample.was_restarted(&before.sample)
}

/// Commits of clients from one look to the other, without dyno's own questions and without what was
/// applied from other nodes; `None` if the server doesn't say, or was started again in between.
pub fn commits_grown(before: &NodeState, after: &NodeState, seen: &ServerWindow) -> Option<u64> {
    let (old, new) = (&before.sample, &after.sample);
    if old.blurs_commits || new.blurs_commits || was_restarted(before, after, seen) {
        return None;
    }
    let own_commits = if old.counts_own_commits { own_statements(before, seen).all } else { 0 };
    let applied = new.replicated.unwrap_or(0).saturating_sub(old.replicated.unwrap_or(0));
    Some(new.commits?.checked_sub(old.commits?)?.saturating_sub(own_commits + applied))
}

/// Returns true if it is certain that only dyno executed anything from one look to the other, when it `opened` this
/// many sessions: as many were opened in all, and who was connected before still does nothing since the same moment.
pub fn was_alone(before: &NodeState, after: &NodeState, seen: &ServerWindow, opened: u64) -> bool {
    let sessions = after.sessions.zip(before.sessions);
    !was_restarted(before, after, seen)
        && sessions.and_then(|(new, old)| new.checked_sub(old)) == Some(opened)
        && before
            .others
            .iter()
            .all(|(process, since)| since.is_some() && after.others.get(process) == Some(since))
}

/// The smallest value that at least 95 of 100 do not exceed.
fn percentile_95(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get((values.len() * 95).div_ceil(100).saturating_sub(1)).copied()
}

/// The event that a commit waits for, if that has changed in between: semi-synchronous replication falls
/// back to asynchronous when no replica answers in time, and says so nowhere else.
fn weaker(before: &Option<CommitWait>, after: &Option<CommitWait>) -> Option<CommitWait> {
    match (before, after) {
        (Some(old), Some(new)) if old != new => {
            let words = say!(acknowledgement_changed, before = old.words(), after = new.words());
            Some(if old.has_copy() || new.has_copy() {
                CommitWait::Copies(words)
            } else {
                CommitWait::Local(words)
            })
        }
        (Some(known), _) | (None, Some(known)) => Some(known.clone()),
        (None, None) => None,
    }
}

const SQLITE_PRAGMAS: &str = "journal_mode synchronous page_size page_count freelist_count cache_size mmap_size \
    temp_store locking_mode auto_vacuum wal_autocheckpoint busy_timeout";

/// Reads settings and counters. What the account may not see is listed, not fatal; an answer that does not end `within`
/// this time is.
pub async fn read_facts(session: &mut AdminSession<'_>, within: Nanos) -> DbResult<ServerFacts> {
    let mut asker = Asker { within: Some(within), ..Asker::new(session) };
    let mut facts = ask_facts(&mut asker).await?;
    facts.not_readable = asker.not_readable;
    Ok(facts)
}

/// The facts of a server, without what could not be read: the asker knows that.
pub(super) async fn ask_facts(asker: &mut Asker<'_, '_>) -> DbResult<ServerFacts> {
    let product = asker.session.product().clone();
    let (dialect, capabilities) = (asker.session.dialect(), asker.session.capabilities());
    let mut facts =
        ServerFacts { product: product.name, version: product.version, ..ServerFacts::default() };
    facts.log_in = asker.session.proof().map(|proof| LogInFacts {
        tls: proof.tls.map(|tls| tls.version.to_owned()),
        is_verified: proof.tls.is_some_and(|tls| tls.is_verified),
        method: proof.method.to_owned(),
    });
    if let Some(settings) = capabilities.settings {
        facts.settings = query_pairs(asker, "settings", settings).await?;
    }
    match dialect {
        Dialect::Mysql => {
            facts.counters = query_pairs(asker, "counters", "SHOW GLOBAL STATUS").await?;
        }
        Dialect::Postgres if !capabilities.server_views => {}
        Dialect::Postgres => {
            for sql in postgres::statistics(postgres::version(&facts)) {
                facts.counters.extend(query_pairs(asker, "counters", sql).await?);
            }
        }
        Dialect::Sqlite => {
            for pragma in SQLITE_PRAGMAS.split(' ') {
                let value = asker.text(pragma, &format!("PRAGMA {pragma}")).await?;
                facts.settings.extend(value.map(|value| (pragma.to_owned(), value)));
            }
        }
    }
    facts.settings.retain(|name, _| !is_secret(name));
    Ok(facts)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passphrase", "primary_conninfo", "secret"].iter().any(|word| name.contains(word))
        && !name.contains("password_encryption")
}

async fn query_pairs(
    asker: &mut Asker<'_, '_>,
    what: &str,
    sql: &str,
) -> DbResult<BTreeMap<String, String>> {
    let pairs = asker.rows(what, sql).await?.into_iter().filter_map(|row| {
        let mut columns = row.into_iter();
        let name = columns.next()??;
        Some((name, columns.next().flatten().unwrap_or_default()))
    });
    Ok(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state with these counters; all else is unknown.
    fn state(commits: u64, requests: u64, misses: u64, bytes: u64) -> NodeState {
        NodeState {
            sample: Sample {
                commits: Some(commits),
                page_requests: Some(requests),
                page_misses: Some(misses),
                pages_read: Some(misses),
                ..Sample::default()
            },
            data_bytes: Some(bytes),
            acknowledged_by: Some(CommitWait::Copies("1 semi-sync replica".into())),
            ..NodeState::default()
        }
    }

    #[test]
    fn growth_is_from_before_to_after() {
        let conditions = node_conditions(
            &state(10, 100, 0, 1000),
            &state(35, 300, 50, 1100),
            &ServerWindow::default(),
        );
        assert_eq!(
            (conditions.commits, conditions.hit_share, conditions.pages_read),
            (Some(25), Some(0.75), Some(50))
        );
        assert!((conditions.growth_share.expect("known") - 0.1).abs() < 1e-9);
        assert_eq!(conditions.statements, None);
        assert_eq!(conditions.acknowledged_by.unwrap().words(), &"1 semi-sync replica");
    }

    fn with_sessions(sessions: Option<u64>, others: &[(&str, Option<&str>)]) -> NodeState {
        let other_values =
            others.iter().map(|&(process, since)| (process.to_owned(), since.map(str::to_owned)));
        NodeState { sessions, others: other_values.collect(), ..NodeState::default() }
    }

    fn was_alone_with_four(before: &NodeState, after: &NodeState) -> bool {
        was_alone(before, after, &ServerWindow::default(), 4)
    }

    #[test]
    fn dyno_was_alone_only_if_no_one_else_came_or_did_something() {
        let idle = &[("7", Some("noon"))][..];
        assert!(was_alone_with_four(&with_sessions(Some(10), &[]), &with_sessions(Some(14), &[])));
        assert!(was_alone_with_four(
            &with_sessions(Some(10), idle),
            &with_sessions(Some(14), idle)
        ));
        // Somebody came and may have gone, or sessions of dyno's own went through a pool.
        assert!(!was_alone_with_four(&with_sessions(Some(10), &[]), &with_sessions(Some(15), &[])));
        assert!(!was_alone_with_four(&with_sessions(Some(10), &[]), &with_sessions(Some(13), &[])));
        // It did something, left, or can't be seen.
        for later in [&[("7", Some("one"))][..], &[("7", None)], &[]] {
            assert!(
                !was_alone_with_four(
                    &with_sessions(Some(10), idle),
                    &with_sessions(Some(14), later)
                ),
                "{later:?}"
            );
        }
        let hidden = &[("7", None)][..];
        assert!(!was_alone_with_four(
            &with_sessions(Some(10), hidden),
            &with_sessions(Some(14), hidden)
        ));
        // The server does not count them, or was started again.
        assert!(!was_alone_with_four(&with_sessions(None, &[]), &with_sessions(None, &[])));
        let down = ServerWindow { down: Some("gone".into()), ..ServerWindow::default() };
        assert!(!was_alone(&with_sessions(Some(10), &[]), &with_sessions(Some(14), &[]), &down, 4));
    }

    #[test]
    fn the_window_is_narrower_where_it_was_watched() {
        let window = ServerWindow {
            opened: Some(state(0, 200, 40, 0).sample),
            closed: Some(state(0, 300, 41, 0).sample),
            checkpoints: Some(2),
            ..ServerWindow::default()
        };
        let conditions = node_conditions(&state(10, 0, 0, 0), &state(10, 900, 50, 0), &window);
        assert_eq!((conditions.hit_share, conditions.pages_read), (Some(0.99), Some(1)));
        assert_eq!((conditions.checkpoints, conditions.growth_share), (Some(2), None));
        assert_eq!(conditions.commits, None, "nothing that the server counts as a commit");
    }

    #[test]
    fn other_databases_of_the_server_are_counted_apart() {
        let [before, after] = [(10, 7, 5.0), (35, 607, 75.0)].map(|(commits, elsewhere, at_s)| {
            let mut state = state(commits, 0, 0, 0);
            state.sample.transactions_elsewhere = Some(elsewhere);
            state.sample.elsewhere_at_s = Some(at_s);
            state
        });
        let conditions = node_conditions(&before, &after, &ServerWindow::default());
        assert_eq!((conditions.commits, conditions.transactions_elsewhere), (Some(25), Some(600)));
        assert_eq!(conditions.elsewhere_s, Some(70.0));
    }

    #[test]
    fn settings_that_were_others_for_a_while_are_told() {
        let [before, after, reloaded] = [10, 11, 70].map(|configured_s| {
            let mut state = state(0, 0, 0, 0);
            state.sample.commit_settings = Some("fsync = on".to_owned());
            state.sample.configured_s = Some(configured_s);
            state
        });
        let mut window = ServerWindow::default();
        let conditions = node_conditions(&before, &after, &window);
        assert_eq!(
            (&conditions.commit_settings[..], conditions.was_reloaded),
            (&["fsync = on".to_owned()][..], false)
        );
        window.commit_settings = ["fsync = off", "fsync = on"].map(str::to_owned).into();
        let conditions = node_conditions(&before, &reloaded, &window);
        assert_eq!(conditions.commit_settings, ["fsync = off", "fsync = on"]);
        assert!(conditions.was_reloaded);
        window.down = Some(Message::from("it was restarted"));
        assert!(!node_conditions(&before, &reloaded, &window).was_reloaded);
    }

    #[test]
    fn own_questions_are_no_commits() {
        let mut before = state(10, 0, 0, 0);
        before.sample.counts_own_commits = true;
        before.asked = Asked { all: 3, reads: 1, writes: 0 };
        let window = ServerWindow {
            asked: Asked { all: 2, reads: 2, writes: 0 },
            ..ServerWindow::default()
        };
        assert_eq!(node_conditions(&before, &state(35, 0, 0, 0), &window).commits, Some(20));
    }

    #[test]
    fn a_server_that_was_restarted_has_grown_by_nothing_known() {
        let conditions =
            node_conditions(&state(100, 100, 9, 10), &state(5, 5, 1, 10), &ServerWindow::default());
        assert_eq!(
            (conditions.commits, conditions.hit_share, conditions.pages_read),
            (None, None, None)
        );
    }

    #[test]
    fn counters_that_began_anew_and_came_further_tell_nothing() {
        let (mut before, mut after) = (state(10, 0, 0, 10), state(5_000, 0, 0, 10));
        (before.sample.statements, after.sample.statements) = (Some(100), Some(9_000));
        assert_eq!(node_conditions(&before, &after, &ServerWindow::default()).commits, Some(4_990));
        // Killed and started again while it was watched.
        let window = ServerWindow { down: Some("it was away".into()), ..ServerWindow::default() };
        let conditions = node_conditions(&before, &after, &window);
        assert_eq!((conditions.commits, conditions.statements), (None, None));
        let mut long_up = before;
        (long_up.sample.uptime_s, after.sample.uptime_s) = (Some(600.0), Some(38.0));
        assert_eq!(commits_grown(&long_up, &after, &ServerWindow::default()), None);
    }

    fn replicated_state(commits: u64, replicated: u64, writes: u64) -> NodeState {
        let mut state = state(commits, 0, 0, 0);
        state.sample.replicated = Some(replicated);
        state.sample.writes = Some(writes);
        state
    }

    #[test]
    fn what_a_replica_applies_is_neither_its_commits_nor_its_writes() {
        let conditions = node_conditions(
            &replicated_state(10, 5, 100),
            &replicated_state(60, 45, 300),
            &ServerWindow::default(),
        );
        assert_eq!(
            (conditions.commits, conditions.writes, conditions.replicated),
            (Some(10), None, Some(40))
        );
        let mut read_only = replicated_state(60, 45, 300);
        read_only.sample.refuses_writes = true;
        let conditions =
            node_conditions(&replicated_state(10, 5, 100), &read_only, &ServerWindow::default());
        assert_eq!(conditions.writes, Some(0), "no client's");
        let conditions = node_conditions(
            &replicated_state(10, 5, 100),
            &replicated_state(60, 5, 300),
            &ServerWindow::default(),
        );
        assert_eq!((conditions.commits, conditions.writes), (Some(50), Some(200)));
        let mut blurred = replicated_state(60, 0, 0);
        blurred.sample.blurs_commits = true;
        assert_eq!(
            commits_grown(&replicated_state(10, 0, 0), &blurred, &ServerWindow::default()),
            None
        );
    }

    #[test]
    fn lags_are_judged_by_their_largest_and_their_95th_percentile() {
        let lags = (1..=100).map(f64::from).collect();
        let window = ServerWindow {
            lags_s: [("itself".to_owned(), lags)].into(),
            ..ServerWindow::default()
        };
        let conditions = node_conditions(&NodeState::default(), &NodeState::default(), &window);
        assert_eq!((conditions.lag_max_s, conditions.lag_p95_s), (Some(100.0), Some(95.0)));
        assert_eq!((percentile_95(vec![2.0]), percentile_95(Vec::new())), (Some(2.0), None));
    }

    #[test]
    fn a_fall_back_to_asynchronous_is_told() {
        let mut after = state(1, 0, 0, 0);
        after.acknowledged_by = Some(CommitWait::Local("local".into()));
        let conditions = node_conditions(&state(0, 0, 0, 0), &after, &ServerWindow::default());
        assert_eq!(
            conditions.acknowledged_by.unwrap().words(),
            &"1 semi-sync replica, later local"
        );
    }

    #[test]
    fn secrets_are_left_out() {
        assert!(is_secret("ssl_passphrase_command"));
        assert!(is_secret("primary_conninfo"));
        assert!(is_secret("report_password"));
        assert!(!is_secret("password_encryption"));
        assert!(!is_secret("innodb_buffer_pool_size"));
    }
}
