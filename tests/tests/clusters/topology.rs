//! Clusters of real servers.

use crate::mine::{Mine, up};
use dyno_core::ErrorKind;
use dyno_testkit::{MySql, Scratch, skipped, wait_until};
use dyno_topology::{Cluster, Health, NodeProduct, Replication, Request, TopologyKind};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

const COUNT: &str = "SELECT count(*) FROM t";

/// Everything that holds for each cluster with a primary and two read-only nodes.
fn assert_serves(mine: &Mine) {
    mine.assert_up();
    mine.sql("n1", "CREATE TABLE t(id int primary key)");
    mine.sql("n1", "INSERT INTO t VALUES (1), (2), (3)");
    for replica in ["n2", "n3"] {
        mine.wait_for(replica, COUNT, "3");
        let error = mine.try_sql(replica, "INSERT INTO t VALUES (4)").unwrap_err();
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    secrets_are_kept(mine);
}

fn secrets_are_kept(mine: &Mine) {
    let password = fs::read_to_string(mine.dir().join("password")).unwrap().trim().to_owned();
    assert_eq!(password.len(), 32);
    for private in ["password", "secrets.json"] {
        let mode = fs::metadata(mine.dir().join(private)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{private}");
    }
    let secrets = fs::read_to_string(mine.dir().join("secrets.json")).unwrap();
    let secrets: Vec<&str> = secrets.split('"').filter(|text| text.len() == 32).collect();
    assert_eq!(secrets.len(), 3);
    for node in mine.cluster.nodes() {
        let log = fs::read(node.folder.join("server.log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        let line = fs::read_to_string(format!("/proc/{}/cmdline", node.pid)).unwrap();
        let environment = fs::read(format!("/proc/{}/environ", node.pid)).unwrap();
        let environment = String::from_utf8_lossy(&environment);
        let state = fs::read_to_string(mine.dir().join("cluster.json")).unwrap();
        for secret in secrets.iter().chain([&password.as_str()]) {
            for text in [&*log, line.as_str(), &*environment, state.as_str()] {
                assert!(!text.contains(secret), "{}", node.name);
            }
        }
        if rustix::process::geteuid().is_root() {
            assert_ne!(fs::metadata(format!("/proc/{}", node.pid)).unwrap().uid(), 0);
        }
    }
}

#[test]
fn mariadb_with_semi_synchronous_replicas() {
    let mine = up("mariadb", TopologyKind::Mariadb, |request| {
        request.replicas = 2;
        request.replication = Replication::SemiSync;
    });
    let Some(mine) = mine else { return };
    assert_serves(&mine);
    let semi_sync_status = |name: &str| {
        let sql = format!(
            "SELECT variable_value FROM information_schema.global_status \
             WHERE variable_name = 'Rpl_semi_sync_master_{name}'"
        );
        mine.sql("n1", &sql)
    };
    assert_eq!(semi_sync_status("status"), "ON");
    assert_eq!(semi_sync_status("clients"), "2");
    assert_eq!(semi_sync_status("no_tx"), "0");
    assert_eq!(mine.sql("n1", "SELECT @@rpl_semi_sync_master_wait_point"), "AFTER_SYNC");
    // No one gets in without a password.
    let node = mine.cluster.node("n1").unwrap();
    let url = format!("mysql://root@127.0.0.1:{}", node.port);
    let driver = dyno_drivers::mysql::MysqlDriver::new(&url.parse().unwrap()).unwrap();
    let result = dyno_reactor::block_on(dyno_core::Driver::connect(&driver, 0)).unwrap();
    assert_eq!(result.err().map(|error| error.errno()), Some(1045));
}

#[test]
fn postgres_with_a_quorum() {
    let mine = up("postgres", TopologyKind::Postgres, |request| {
        request.replicas = 2;
        request.replication = Replication::Quorum;
    });
    let Some(mine) = mine else { return };
    assert_serves(&mine);
    let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'";
    assert_eq!(mine.sql("n1", sql), "2");
    assert_eq!(mine.sql("n1", "SHOW synchronous_standby_names"), "ANY 1 (n2, n3)");
}

/// The primary dies, a read-only node takes over, the old one comes back.
fn fails_over(mine: &mut Mine) {
    mine.sql("n1", "CREATE TABLE t(id int primary key)");
    mine.sql("n1", "INSERT INTO t VALUES (1)");
    mine.cluster.kill("n1").unwrap();
    assert!(mine.try_sql("n1", COUNT).is_err());
    let healths: Vec<Health> = mine.cluster.status().iter().map(|node| node.health).collect();
    assert_eq!(healths[0], Health::Down);
    mine.cluster.promote("n2").unwrap();
    let roles = mine.roles();
    let role = |name: &str| roles.iter().find(|node| node.0 == name).unwrap().1.clone();
    assert_eq!(role("n1"), "read_only");
    assert_eq!(role("n2"), "primary");
    assert_eq!(mine.sql("n2", COUNT), "1", "what was acknowledged is there");
    mine.sql("n2", "INSERT INTO t VALUES (2)");
    mine.wait_for("n3", COUNT, "2");
    mine.cluster.rejoin("n1").unwrap();
    mine.assert_up();
    assert_eq!(mine.sql("n1", COUNT), "2");
    mine.sql("n2", "INSERT INTO t VALUES (3)");
    mine.wait_for("n1", COUNT, "3");
    assert!(mine.try_sql("n1", "INSERT INTO t VALUES (4)").is_err());
    // And back, in an orderly way this time.
    mine.cluster.promote("n1").unwrap();
    mine.sql("n1", "INSERT INTO t VALUES (5)");
    mine.cluster.rejoin("n2").unwrap();
    mine.assert_up();
    for node in ["n2", "n3"] {
        mine.wait_for(node, COUNT, "4");
    }
}

#[test]
fn mariadb_fails_over() {
    let mine = up("mariadb_fails_over", TopologyKind::Mariadb, |request| {
        request.replicas = 2;
        request.replication = Replication::SemiSync;
    });
    let Some(mut mine) = mine else { return };
    fails_over(&mut mine);
}

#[test]
fn postgres_fails_over() {
    let mine = up("postgres_fails_over", TopologyKind::Postgres, |request| {
        request.replicas = 2;
        request.replication = Replication::SemiSync;
    });
    let Some(mut mine) = mine else { return };
    fails_over(&mut mine);
}

/// Rows that only the old primary had are gone after it has come back: all nodes have the same data.
#[test]
fn a_diverged_mariadb_is_made_anew() {
    let mine = up("a_diverged_mariadb", TopologyKind::Mariadb, |request| request.replicas = 1);
    let Some(mut mine) = mine else { return };
    is_made_anew(&mut mine);
}

fn is_made_anew(mine: &mut Mine) {
    mine.sql("n1", "CREATE TABLE t(id int primary key)");
    mine.wait_for("n2", COUNT, "0");
    mine.cluster.freeze("n2").unwrap();
    let healths: Vec<Health> = mine.cluster.status().iter().map(|node| node.health).collect();
    assert_eq!(healths, [Health::Up, Health::Frozen]);
    mine.sql("n1", "INSERT INTO t VALUES (1)");
    mine.cluster.kill("n1").unwrap();
    mine.cluster.thaw("n2").unwrap();
    mine.cluster.promote("n2").unwrap();
    mine.sql("n2", "INSERT INTO t VALUES (2)");
    let had = mine.sql("n2", COUNT);
    mine.cluster.rejoin("n1").unwrap();
    mine.assert_up();
    assert_eq!(mine.sql("n1", COUNT), had);
}

/// MySQL is rarely installed alongside MariaDB: `tests/fetch-servers mysql` unpacks it.
fn mysql(
    test: &str,
    replicas: u32,
    replication: Replication,
    endpoint: Option<NodeProduct>,
) -> Option<Mine> {
    up(test, TopologyKind::Mysql, |request| {
        request.replicas = replicas;
        request.replication = replication;
        request.software = MySql::folder().ok();
        request.endpoint = endpoint;
        request.endpoint_options.software.clone_from(&request.software);
    })
}

#[test]
fn a_stopped_server_is_copied_with_its_data_and_passwords() {
    let test = "a_stopped_server_is_copied_with_its_data_and_passwords";
    for topology in [TopologyKind::Postgres, TopologyKind::Mariadb, TopologyKind::Mysql] {
        let is_mysql = topology == TopologyKind::Mysql;
        let software = MySql::folder().ok().filter(|_| is_mysql);
        let begin = |copy_of: Option<&Path>| {
            up(test, topology, |request| {
                request.copy_of = copy_of.map(Path::to_owned);
                request.software.clone_from(&software);
            })
        };
        let Some(mut source) = begin(None) else { continue };
        source.sql("n1", "CREATE TABLE t(id int primary key)");
        source.sql("n1", "INSERT INTO t VALUES (1), (2), (3)");
        let copy_of = Some(source.dir());
        let early = Request::new(source.scratch.file("early"), topology);
        let request = Request { copy_of, software: software.clone(), ..early };
        let Err(running) = Cluster::up(&request, &mut |_| ()) else { panic!("it was copied") };
        assert!(running.message.contains("runs"), "{running}");
        source.cluster.stop("n1").expect("stopped");
        let copy = begin(Some(&source.dir())).expect("a copy");
        assert_eq!(copy.sql("n1", COUNT), "3");
        assert_eq!(copy.password(), source.password());
        copy.sql("n1", "INSERT INTO t VALUES (4)");
        source.cluster.start("n1").expect("started");
        assert_eq!(source.sql("n1", COUNT), "3");
    }
}

#[test]
fn mysql_with_a_quorum() {
    let router = Some(NodeProduct::Router);
    let Some(mine) = mysql("mysql_with_a_quorum", 2, Replication::Quorum, router) else { return };
    assert_serves(&mine);
    assert_eq!(mine.sql("endpoint", COUNT), "3");
    let sql = "SELECT variable_value FROM performance_schema.global_status \
               WHERE variable_name = 'Rpl_semi_sync_source_clients'";
    assert_eq!(mine.sql("n1", sql), "2");
}

#[test]
fn mysql_fails_over() {
    let Some(mut mine) = mysql("mysql_fails_over", 2, Replication::SemiSync, None) else { return };
    fails_over(&mut mine);
}

#[test]
fn a_diverged_mysql_is_made_anew() {
    let Some(mut mine) = mysql("a_diverged_mysql", 1, Replication::Async, None) else { return };
    is_made_anew(&mut mine);
}

#[test]
fn an_endpoint_learns_who_the_primary_is() {
    let test = "an_endpoint_learns_who_the_primary_is";
    let mine = up(test, TopologyKind::Postgres, |request| {
        request.replicas = 1;
        request.endpoint = Some(NodeProduct::Pgpool);
    });
    let Some(mut mine) = mine else { return };
    mine.assert_up();
    mine.sql("endpoint", "CREATE TABLE t(id int primary key)");
    mine.cluster.promote("n2").unwrap();
    mine.sql("endpoint", "INSERT INTO t VALUES (1)");
    assert_eq!(mine.sql("n2", COUNT), "1");
    mine.cluster.rejoin("n1").unwrap();
    mine.assert_up();
    mine.cluster.kill("endpoint").unwrap();
    mine.cluster.start("endpoint").unwrap();
    assert_eq!(mine.sql("endpoint", COUNT), "1");
}

/// Number of questions of the stopped promotion.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// A lock of the caller's, as a shell leaves it open for what it starts.
fn leave_open(path: &Path) -> fs::File {
    let file = fs::File::create(path).unwrap();
    file.lock().unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    file
}

#[test]
fn servers_inherit_nothing_and_leave_no_shared_memory() {
    let scratch = Scratch::new();
    let locked = leave_open(&scratch.file("lock"));
    let name = "servers_inherit_nothing_and_leave_no_shared_memory";
    let Some(mut mine) = up(name, TopologyKind::Postgres, |_| {}) else { return };
    let pid = mine.cluster.node("n1").unwrap().pid;
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let open: Vec<_> = entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
    assert!(open.len() > 3 && !open.contains(&scratch.file("lock")), "{open:?}");
    drop(locked);
    let before = shared_by(&mine);
    mine.cluster.kill("n1").unwrap();
    mine.cluster.start("n1").unwrap();
    let after = shared_by(&mine);
    Cluster::down(&mine.dir()).unwrap();
    for file in before.files.iter().chain(&after.files) {
        assert!(!fs::exists(file).unwrap(), "{file} is left");
    }
    // The kernel removes a segment once nothing holds the memory of the dead: for an instant that may be another test
    // that reads the files of all processes.
    wait_until("the end of both segments", || {
        let segments = segments();
        !segments.contains(&before.segment) && !segments.contains(&after.segment)
    });
}

/// Memory that a PostgreSQL shares with its children.
struct Shared {
    files: Vec<String>,
    /// Its number, which the kernel gives to no other one; that of the process that made it comes again.
    segment: String,
}

fn shared_by(mine: &Mine) -> Shared {
    let pid = mine.cluster.node("n1").unwrap().pid;
    let map = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mappings = |start: &str| -> Vec<Vec<&str>> {
        let lines = map.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.filter(|words| words.get(5).is_some_and(|name| name.starts_with(start))).collect()
    };
    let files: Vec<String> =
        mappings("/dev/shm/").iter().map(|words| words[5].to_owned()).collect();
    let [segment] = &mappings("/SYSV")[..] else { panic!("{map}") };
    assert!(!files.is_empty() && segments().contains(&segment[4].to_owned()), "{map}");
    Shared { files, segment: segment[4].to_owned() }
}

/// Numbers of all segments.
fn segments() -> Vec<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let lines = table.lines().skip(1);
    lines.filter_map(|line| Some(line.split_whitespace().nth(1)?.to_owned())).collect()
}

#[test]
fn a_promotion_that_is_given_up_leaves_a_primary() {
    let test = "a_promotion_that_is_given_up_leaves_a_primary";
    let Some(mut mine) = up(test, TopologyKind::Mariadb, |request| request.replicas = 1) else {
        return;
    };
    mine.sql("n1", "CREATE TABLE t(id int primary key)");
    mine.wait_for("n2", COUNT, "0");
    // It receives and does not apply: whoever promotes it waits.
    mine.admin("n2", "STOP SLAVE SQL_THREAD");
    mine.sql("n1", "INSERT INTO t VALUES (1)");
    let stopped = Cluster::open(&mine.dir()).unwrap();
    let mut stopped = stopped.stopped_by(|| ASKED.fetch_add(1, Ordering::Relaxed) >= 2);
    let error = stopped.promote("n2").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Stopped, "{error}");
    mine.sql("n1", "INSERT INTO t VALUES (2)");
    // Nothing is begun any more that would be broken off.
    assert_eq!(stopped.promote("n2").unwrap_err().kind, ErrorKind::Stopped);
    assert_eq!(stopped.rejoin("n2").unwrap_err().kind, ErrorKind::Stopped);
    assert_eq!(stopped.primary().unwrap().name, "n1");
    mine.admin("n2", "START SLAVE SQL_THREAD");
    mine.cluster.promote("n2").unwrap();
    assert_eq!(mine.sql("n2", COUNT), "2");
}

#[test]
fn a_stopped_node_starts_again_in_its_role() {
    for topology in [TopologyKind::Mariadb, TopologyKind::Postgres] {
        let mine = up("a_stopped_node", topology, |request| request.replicas = 1);
        let Some(mut mine) = mine else { continue };
        mine.sql("n1", "CREATE TABLE t(id int primary key)");
        mine.cluster.stop("n2").unwrap();
        mine.sql("n1", "INSERT INTO t VALUES (1)");
        mine.cluster.start("n2").unwrap();
        mine.wait_for("n2", COUNT, "1");
        mine.cluster.stop("n1").unwrap();
        mine.cluster.start("n1").unwrap();
        mine.sql("n1", "INSERT INTO t VALUES (2)");
        mine.wait_for("n2", COUNT, "2");
        let error = mine.cluster.kill("n7").unwrap_err();
        assert_eq!(error.message, "The cluster has no node `n7`.");
        assert_eq!(error.hint.unwrap(), "its nodes are n1, n2");
    }
}

#[test]
fn down_leaves_nothing() {
    let mine = up("down_leaves_nothing", TopologyKind::Mariadb, |_| {});
    let Some(mine) = mine else { return };
    let pid = mine.cluster.nodes()[0].pid;
    assert!(fs::exists(format!("/proc/{pid}")).unwrap());
    let again = Cluster::up(&Request::new(mine.dir(), TopologyKind::Mariadb), &mut |_| ());
    let error = again.err().expect("the folder is in use");
    assert!(error.message.ends_with("holds a cluster already."), "{error}");
    assert!(error.hint.unwrap().contains("dyno cluster down --dir"));
    a_copy_is_no_cluster(&mine.dir(), pid);
    Cluster::down(&mine.dir()).unwrap();
    assert!(!mine.dir().exists());
    // A zombie is gone for us; it is waited for a moment later.
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    let error = Cluster::down(&mine.dir()).unwrap_err();
    assert!(error.message.starts_with("There is no cluster in "), "{error}");
}

/// A copied folder names the servers of the first one; a moved one is still the cluster.
fn a_copy_is_no_cluster(dir: &Path, pid: u32) {
    let copy = dir.with_file_name("copy");
    fs::create_dir(&copy).unwrap();
    for file in ["cluster.json", "secrets.json", "password"] {
        fs::copy(dir.join(file), copy.join(file)).unwrap();
    }
    for error in [Cluster::down(&copy).err(), Cluster::open(&copy).map(drop).err()] {
        let error = error.expect("it is a copy");
        assert!(error.message.contains("copy is a copy of the cluster in "), "{error}");
        assert!(error.hint.unwrap().contains(&format!("--dir {} names", dir.display())));
    }
    assert!(fs::exists(format!("/proc/{pid}")).unwrap(), "the server lives");
    let moved = dir.with_file_name("moved");
    fs::rename(dir, &moved).unwrap();
    let status = Cluster::open(&moved).map(|cluster| cluster.status());
    fs::rename(&moved, dir).unwrap();
    assert_eq!(status.unwrap()[0].health, Health::Up);
}

#[test]
fn what_is_stopped_is_taken_down() {
    static STEPS_LEFT: AtomicU32 = AtomicU32::new(0);
    for steps in 1..=3 {
        let scratch = Scratch::new();
        let dir = scratch.file("c");
        let mut request = Request::new(&dir, TopologyKind::Mariadb);
        request.replicas = 1;
        request.is_stopped = || STEPS_LEFT.load(Ordering::Relaxed) == 0;
        STEPS_LEFT.store(steps, Ordering::Relaxed);
        let mut step = |_: &str| {
            let _ = STEPS_LEFT
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        };
        let error = match Cluster::up(&request, &mut step) {
            Err(error) if error.message.contains("not installed") => {
                skipped("what_is_stopped_is_taken_down", &error.to_string());
                return;
            }
            Err(error) => error,
            Ok(_) => panic!("it was stopped after {steps} steps"),
        };
        assert_eq!(error.kind, ErrorKind::Stopped, "{error}");
        assert!(!dir.exists());
    }
}

#[test]
fn a_server_that_ends_by_itself_is_quoted() {
    let scratch = Scratch::new();
    let dir = scratch.file("c");
    let mut request = Request::new(&dir, TopologyKind::Mariadb);
    request.settings.push(("no_such_setting".to_owned(), "1".to_owned()));
    match Cluster::up(&request, &mut |_| ()) {
        Err(error) if error.message.contains("not installed") => {
            skipped("a_server_that_ends_by_itself_is_quoted", &error.to_string());
        }
        Err(error) => assert!(error.message.contains("no_such_setting"), "{error}"),
        Ok(_) => panic!("there is no such setting"),
    }
    assert!(!dir.exists());
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    let dir = scratch.file("c");
    let refusal_message = |change: &dyn Fn(&mut Request)| {
        let mut request = Request::new(&dir, TopologyKind::Mariadb);
        change(&mut request);
        let error = Cluster::up(&request, &mut |_| ()).err().expect("it can't be");
        assert!(error.hint.is_some(), "{error}");
        error.message
    };
    let message = refusal_message(&|request| request.replicas = 9);
    assert_eq!(message, "A cluster has at most 8 read-only nodes, not 9.");
    let message = refusal_message(&|request| request.replication = Replication::SemiSync);
    assert_eq!(message, "A cluster without read-only nodes has no semi-sync replication.");
    let message = refusal_message(&|request| {
        request.settings.push(("a".to_owned(), "1\nuser=root".to_owned()));
    });
    assert!(message.ends_with("isn't a setting of a server."), "{message}");
    assert!(!dir.exists());
}

#[test]
fn a_node_of_an_isolated_cluster_is_cut_off() {
    for topology in [TopologyKind::Mariadb, TopologyKind::Postgres] {
        let test = "a_node_of_an_isolated_cluster_is_cut_off";
        if !rustix::process::geteuid().is_root() {
            skipped(test, "only root may make network namespaces");
            return;
        }
        let mine = up(test, topology, |request| {
            request.replicas = 1;
            request.isolated = true;
        });
        let Some(mut mine) = mine else { continue };
        mine.assert_up();
        mine.sql("n1", "CREATE TABLE t(id int primary key)");
        mine.wait_for("n2", COUNT, "0");
        mine.cluster.partition("n2").unwrap();
        assert!(!mine.can_connect("n2"), "it is cut off");
        mine.sql("n1", "INSERT INTO t VALUES (1)");
        mine.cluster.heal("n2").unwrap();
        mine.wait_for("n2", COUNT, "1");
        // The primary is cut off: the other one takes over, and the first one comes back.
        mine.cluster.partition("n1").unwrap();
        mine.cluster.promote("n2").unwrap();
        mine.sql("n2", "INSERT INTO t VALUES (2)");
        mine.cluster.heal("n1").unwrap();
        mine.cluster.rejoin("n1").unwrap();
        mine.assert_up();
        mine.wait_for("n1", COUNT, "2");
    }
}

#[test]
fn a_node_without_a_network_of_its_own_cannot_be_cut_off() {
    let mine = up("a_node_without_a_network", TopologyKind::Postgres, |_| {});
    let Some(mut mine) = mine else { return };
    let error = mine.cluster.partition("n1").unwrap_err();
    assert!(error.message.contains("share one network"), "{error}");
    assert!(error.hint.unwrap().contains("freezing"));
}
