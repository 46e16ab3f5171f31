//! Clusters of real servers.

use dyno_topology::{Cluster, Health, Replication, Request, TopologyKind, Watch};
use std::path::PathBuf;

/// Says each step, for whoever reads the output of a failed test.
struct Steps;

impl Watch for Steps {
    fn step(&mut self, text: &str) {
        let _ = text;
    }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    // Reachable for the servers' user, unlike what `tempdir` makes.
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    std::fs::set_permissions(parent.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let dir = parent.path().join("c");
    (parent, dir)
}

#[test]
fn mariadb() {
    let (_parent, dir) = folder();
    let mut request = Request::new(&dir, TopologyKind::Mariadb);
    request.replicas = 2;
    request.replication = Replication::SemiSync;
    request.settings.push(("innodb_buffer_pool_size".to_owned(), "128M".to_owned()));
    let begin = std::time::Instant::now();
    let cluster = Cluster::up(&request, &mut Steps).unwrap_or_else(|e| panic!("{e}"));
    println!("up {:?}", begin.elapsed());
    for status in cluster.status() {
        println!("{status:?}");
        assert_eq!(status.health, Health::Up);
    }
    Cluster::down(&dir).unwrap();
    assert!(!dir.exists());
}

#[test]
fn postgres() {
    let (_parent, dir) = folder();
    let mut request = Request::new(&dir, TopologyKind::Postgres);
    request.replicas = 2;
    request.replication = Replication::Quorum;
    request.settings.push(("shared_buffers".to_owned(), "128MB".to_owned()));
    let begin = std::time::Instant::now();
    let cluster = Cluster::up(&request, &mut Steps).unwrap_or_else(|e| panic!("{e}"));
    println!("up {:?}", begin.elapsed());
    for status in cluster.status() {
        println!("{status:?}");
        assert_eq!(status.health, Health::Up);
    }
    Cluster::down(&dir).unwrap();
    assert!(!dir.exists());
}
