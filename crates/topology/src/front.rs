//! The endpoint of a cluster: started, asked, renewed after changes of roles.

use crate::admin::Admin;
use crate::cluster::{ENDPOINT, PROBE_LIMIT_S};
use crate::endpoint::{self, Front, router};
use crate::folder::OrFailed;
use crate::process::Launch;
use crate::{Cluster, ClusterError, EndpointKind, Result, StateNode, guarded, postgres};

impl Cluster {
    /// Starts the endpoint, if the cluster has one; one that is a server runs already and is given the shards.
    pub(crate) fn make_endpoint(&mut self, step: &mut dyn FnMut(&str)) -> Result<()> {
        let Some(node) = self.state.nodes.iter().find(|node| node.role == "endpoint") else {
            return Ok(());
        };
        if node.product.is_server() {
            step("Joining the shards behind the coordinator.");
            postgres::replication::join(self, node)?;
        } else {
            step(&format!("Starting {}.", node.product.name()));
            self.launch(ENDPOINT)?;
        }
        self.wait_for_endpoint()
    }

    /// Writes the endpoint's configuration for the present roles; returns how it is started.
    pub(crate) fn endpoint_launch(&self, node: &StateNode) -> Result<Launch> {
        let Some(kind) = self.state.endpoint else {
            return Err(ClusterError::new("The cluster has no endpoint."));
        };
        remove_leftovers(node);
        let mut front = Front {
            node,
            run_as: self.state.run_as,
            // A shard that is away keeps its rows: they lie by the number of all shards.
            backends: self.servers().filter(|node| node.pid != 0 || node.role == "shard").collect(),
            account: self.account()?,
            options: self.state.endpoint_options.clone(),
        };
        if kind == EndpointKind::Router {
            front.options.metadata_password.clone_from(&self.secrets.metadata);
            self.make_metadata(&front.backends)?;
            self.lend_certificate(node)?;
        }
        endpoint::prepare(kind, &front)
    }

    /// Makes the tables on the primary that Router reads.
    fn make_metadata(&self, backends: &[&StateNode]) -> Result<()> {
        let mut identities = Vec::new();
        for node in backends {
            identities.push(self.admin(node)?.ask("SELECT @@server_uuid")?.single().to_owned());
        }
        let backends = backends.iter().copied().zip(identities);
        let statements = router::metadata(backends, &self.secrets.metadata);
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        self.admin(self.need_primary()?)?.ask_all(&statements).map(drop)
    }

    /// Gives Router the certificate of the primary.
    fn lend_certificate(&self, node: &StateNode) -> Result<()> {
        let Some(primary) = self.primary() else { return Ok(()) };
        for (from, to) in
            [("server-cert.pem", "client-cert.pem"), ("server-key.pem", "client-key.pem")]
        {
            let (from, to) = (primary.data().join(from), node.folder.join(to));
            let copy = || guarded::copy(&mut guarded::read(&from)?, &to, 0o600, self.state.run_as);
            copy().or_failed("copied", &from)?;
        }
        Ok(())
    }

    /// Waits until the endpoint takes log-ins and passes a question on.
    pub(crate) fn wait_for_endpoint(&self) -> Result<()> {
        let node = self.node(ENDPOINT)?;
        self.wait_for(node, || {
            self.check_alive(node)?;
            let asked = self.ask_endpoint(node);
            Ok(asked.err().map(|error| format!("doesn't take log-ins: {}", error.message)))
        })
    }

    pub(crate) fn ask_endpoint(&self, node: &StateNode) -> Result<()> {
        let account = self.account()?;
        let admin =
            Admin::of(node, &account.user, &account.password, &account.database, PROBE_LIMIT_S)?;
        admin.ask("SELECT 1").map(drop)
    }

    /// Starts the endpoint again for new roles, which ends its connections.
    pub(crate) fn renew_endpoint(&mut self) -> Result<()> {
        if self.state.nodes.iter().all(|node| node.role != "endpoint" || node.pid == 0) {
            return Ok(());
        }
        self.processes(self.node(ENDPOINT)?).kill()?;
        self.launch(ENDPOINT)?;
        self.wait_for_endpoint()
    }
}

/// Removes files of a killed pgpool, which refuses to start beside them.
fn remove_leftovers(node: &StateNode) {
    for entry in std::fs::read_dir(&node.folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name == "pgpool.pid" || name.to_string_lossy().starts_with(".s.PGSQL.") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
