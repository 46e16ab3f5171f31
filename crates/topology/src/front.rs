//! What stands in front of the nodes: started, asked, told of new roles.

use crate::admin::Admin;
use crate::cluster::ENDPOINT;
use crate::endpoint::{self, router};
use crate::folder::{failed, give};
use crate::make::{PROBE_LIMIT_S, wait_for};
use crate::request::Watch;
use crate::{Backend, Cluster, ClusterError, EndpointKind, Launch, Place, Result, StateNode};

impl Cluster {
    /// Starts the endpoint, if the cluster has one.
    pub(crate) fn make_endpoint(&mut self, watch: &mut dyn Watch) -> Result<()> {
        let Some(node) = self.state.nodes.iter().find(|node| node.role == "endpoint") else {
            return Ok(());
        };
        watch.step(&format!("Starting {}.", node.product.name()));
        self.launch(ENDPOINT)?;
        self.wait_for_endpoint(&|| watch.is_stopped())
    }

    /// Writes the endpoint's configuration for the roles of the moment, and says how it is started.
    pub(crate) fn endpoint_launch(&self, node: &StateNode) -> Result<Launch> {
        let Some(kind) = self.state.endpoint else {
            return Err(ClusterError::new("The cluster has no endpoint."));
        };
        let backends: Vec<Backend> =
            self.servers().filter(|node| node.pid != 0).map(backend).collect();
        remove_leftovers(node);
        let place =
            Place { folder: node.folder.clone(), port: node.port, run_as: self.state.run_as };
        let mut options = self.state.endpoint_options.clone();
        if kind == EndpointKind::Router {
            options.metadata_password.clone_from(&self.secrets.metadata);
            self.make_metadata(&backends)?;
            self.lend_certificate(node)?;
        }
        let launch = endpoint::prepare(kind, &place, &backends, &self.account()?, &options)?;
        Ok(Launch { log: node.log(), ..launch })
    }

    /// Router reads who is who from tables on the primary.
    fn make_metadata(&self, backends: &[Backend]) -> Result<()> {
        let primary = self.primary().ok_or_else(|| ClusterError::new("No node takes writes."))?;
        let mut identities = Vec::new();
        for backend in backends {
            let admin = self.admin(self.node(&backend.name)?)?;
            identities.push(admin.ask("SELECT @@server_uuid")?.single().to_owned());
        }
        let statements = router::metadata(backends, &identities, &self.secrets.metadata)?;
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        self.admin(primary)?.ask_all(&statements).map(drop)
    }

    /// Router shows its clients the certificate that the primary made for itself.
    fn lend_certificate(&self, node: &StateNode) -> Result<()> {
        let Some(primary) = self.primary() else { return Ok(()) };
        for (from, to) in
            [("server-cert.pem", "client-cert.pem"), ("server-key.pem", "client-key.pem")]
        {
            let (from, to) = (primary.data().join(from), node.folder.join(to));
            let copy = || {
                std::fs::copy(&from, &to)?;
                give(&to, self.state.run_as)
            };
            copy().map_err(|error| failed("copied", &from, &error))?;
        }
        Ok(())
    }

    /// Waits until the endpoint takes log-ins and passes a question on.
    pub(crate) fn wait_for_endpoint(&self, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        let node = self.node(ENDPOINT)?;
        wait_for(is_stopped, node, || {
            self.check_alive(node)?;
            let asked = self.ask_endpoint(node);
            Ok(asked.err().map(|error| format!("doesn't take log-ins: {}", error.message)))
        })
    }

    /// Asks the endpoint something that a node behind it has to answer.
    pub(crate) fn ask_endpoint(&self, node: &StateNode) -> Result<()> {
        let account = self.account()?;
        let admin =
            Admin::of(node, &account.user, &account.password, &account.database, PROBE_LIMIT_S)?;
        admin.ask("SELECT 1").map(drop)
    }

    /// Tells the endpoint of new roles: it is started again, which ends its connections.
    pub(crate) fn renew_endpoint(&mut self) -> Result<()> {
        if self.state.nodes.iter().all(|node| node.role != "endpoint" || node.pid == 0) {
            return Ok(());
        }
        self.processes(self.node(ENDPOINT)?).kill()?;
        self.launch(ENDPOINT)?;
        self.wait_for_endpoint(&self.is_stopped)
    }
}

/// pgpool refuses to start beside the files of one that was killed.
fn remove_leftovers(node: &StateNode) {
    for entry in std::fs::read_dir(&node.folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name == "pgpool.pid" || name.to_string_lossy().starts_with(".s.PGSQL.") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn backend(node: &StateNode) -> Backend {
    Backend { name: node.name.clone(), role: node.role.clone(), port: node.port }
}
