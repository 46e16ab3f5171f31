//! One driver for all nodes of a target, which chooses the node of each session.
//!
//! With [`NodeRouting::Split`] a session has two connections: a statement goes by its class, which its text shows once
//! when it is prepared, and by the state of the transaction in the servers' answers. With one node this costs one
//! predictable branch per statement. The node for writes is an atomic number that all clones share and that is read
//! when a session is opened, so failover costs the load nothing before it happens.

mod class;
mod session;
#[cfg(test)]
mod tests;

pub use session::RoutedSession;

use dyno_core::{DbError, DbResult, Dialect, Driver, ShardMap, ShardNode, Shards};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The way of sessions to their nodes, which are numbers in the list of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRouting {
    /// All sessions go to the node that takes writes.
    Primary,
    /// All sessions go to this node, even after a failover.
    Through(usize),
    /// Transactions and writes go to the node that takes writes; reads outside of transactions and transactions begun
    /// as read-only go to one of these nodes, each session to its own.
    Split(Vec<usize>),
    /// Sessions are spread over these nodes.
    Spread(Vec<usize>),
}

impl NodeRouting {
    /// Returns true if a target with this number of nodes has all the nodes of the route.
    fn is_possible(&self, nodes: usize) -> bool {
        match self {
            NodeRouting::Primary => true,
            NodeRouting::Through(index) => *index < nodes,
            NodeRouting::Split(readers) | NodeRouting::Spread(readers) => {
                !readers.is_empty() && readers.iter().all(|index| *index < nodes)
            }
        }
    }
}

/// The places of `count` nodes in the order in which session `number` searches for a living one: its own, then the
/// others, which share the sessions of a dead node evenly. Later attempts begin further on: a node that accepts
/// connections and never answers holds up one attempt only.
fn order(count: usize, number: u32, attempt: u32) -> impl Iterator<Item = usize> {
    // Its own place, and the number of earlier sessions there.
    let (own, turn) = (number as usize % count, number as usize / count);
    (0..count).map(move |step| match (step + attempt as usize) % count {
        0 => own,
        step => (own + 1 + (turn + step - 1) % (count - 1)) % count,
    })
}

/// Drivers of the nodes of one target, and the way to them. A clone shares the nodes and the number of the one that
/// takes writes.
#[derive(Debug)]
pub struct Routed<D> {
    pub nodes: Arc<[D]>,
    /// The node that takes writes, read when a session is opened.
    writable: Arc<AtomicUsize>,
    routing: NodeRouting,
    /// For [`Driver::primary`]; `None` if that is this one.
    primary: Option<Box<Routed<D>>>,
    shards: Option<Arc<Shards<Routed<D>>>>,
}

impl<D> Clone for Routed<D> {
    fn clone(&self) -> Self {
        let (nodes, writable) = (Arc::clone(&self.nodes), Arc::clone(&self.writable));
        let (primary, shards) = (self.primary.clone(), self.shards.clone());
        Routed { nodes, writable, routing: self.routing.clone(), primary, shards }
    }
}

impl<D: Driver + Send> Routed<D> {
    /// `loads` is the way of sessions that load, look and check: to the node that takes writes, `writable`, or to an
    /// endpoint.
    pub fn new(
        nodes: Vec<D>,
        writable: usize,
        routing: NodeRouting,
        loads: NodeRouting,
    ) -> DbResult<Self> {
        let count = nodes.len();
        if writable >= count || !routing.is_possible(count) || !loads.is_possible(count) {
            return Err(DbError::unreachable(
                "A route leads to a node that the target does not have.",
            ));
        }
        let writable = Arc::new(AtomicUsize::new(writable));
        let loading =
            Routed { nodes: nodes.into(), writable, routing: loads, primary: None, shards: None };
        Ok(Routed { routing, primary: Some(Box::new(loading.clone())), ..loading })
    }

    /// Adds the names and numbers of the nodes that are the shards behind its endpoint. The
    /// map is for as many shards.
    #[must_use]
    pub fn with_shards(self, shards: Vec<(String, usize)>, map: Option<ShardMap>) -> Self {
        let nodes = shards.into_iter().map(|(name, number)| {
            let routing = NodeRouting::Through(number);
            ShardNode {
                name,
                driver: Routed { routing, primary: None, shards: None, ..self.clone() },
            }
        });
        let shards = Some(Arc::new(Shards { nodes: nodes.collect(), map }));
        let primary = self.primary.map(|primary| Routed { shards: shards.clone(), ..*primary });
        Routed { primary: primary.map(Box::new), shards, ..self }
    }

    /// Has sessions opened from now on write to another node. Unknown numbers change nothing.
    pub fn switch_primary(&self, node: usize) {
        if node < self.nodes.len() {
            self.writable.store(node, Ordering::Relaxed);
        }
    }

    /// Number of the node that takes writes.
    pub fn writable(&self) -> usize {
        self.writable.load(Ordering::Relaxed)
    }

    /// The node of an endpoint, or the one that takes writes.
    fn main(&self) -> usize {
        match self.routing {
            NodeRouting::Through(node) => node,
            _ => self.writable.load(Ordering::Relaxed),
        }
    }

    /// The nodes for reads if these differ from [`Routed::main`].
    fn readers(&self) -> Vec<usize> {
        let writable = self.main();
        match &self.routing {
            NodeRouting::Primary | NodeRouting::Through(_) => Vec::new(),
            NodeRouting::Spread(readers) => readers.clone(),
            // A promoted node is no longer read from.
            NodeRouting::Split(readers) => {
                readers.iter().copied().filter(|it| *it != writable).collect()
            }
        }
    }

    /// The node that new session `number` reads from outside of transactions.
    pub fn reads_at(&self, number: u32) -> usize {
        match self.readers().as_slice() {
            [] => self.main(),
            readers => readers[number as usize % readers.len()],
        }
    }

    /// A session on the first node that opens one, in the order of [`order`].
    async fn living(&self, readers: &[usize], number: u32, attempt: u32) -> DbResult<D::Session> {
        let mut last_error = DbError::unreachable("No node could be read from.");
        for place in order(readers.len(), number, attempt) {
            match self.nodes[readers[place]].connect(number).await {
                Ok(session) => return Ok(session),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }
}

impl<D: Driver + Send> Driver for Routed<D> {
    type Session = RoutedSession<D::Session>;

    /// Only on its own nodes: a trial begins on the nodes of its plan.
    async fn connect(&self, number: u32) -> DbResult<RoutedSession<D::Session>> {
        let nodes = &self.nodes;
        let (main, reader) = (self.main(), self.reads_at(number));
        let NodeRouting::Split(_) = self.routing else {
            return nodes[reader].connect(number).await.map(RoutedSession::on);
        };
        let session = nodes[main].connect(number).await?;
        if reader == main {
            Ok(RoutedSession::on(session))
        } else {
            Ok(RoutedSession::split(session, nodes[reader].connect(number).await?))
        }
    }

    /// Moves a session whose read-only node is gone to another one; with [`NodeRouting::Split`] and none left, to the
    /// node that takes writes. It stays there until it is lost, as behind most endpoints; later sessions try their own
    /// nodes first.
    async fn reconnect(&self, number: u32, attempt: u32) -> DbResult<RoutedSession<D::Session>> {
        let readers = self.readers();
        if readers.is_empty() {
            return self.connect(number).await;
        }
        if let NodeRouting::Spread(_) = self.routing {
            return self.living(&readers, number, attempt).await.map(RoutedSession::on);
        }
        let main = self.nodes[self.main()].connect(number).await?;
        match self.living(&readers, number, attempt).await {
            Ok(reader) => Ok(RoutedSession::split(main, reader)),
            Err(_) => Ok(RoutedSession::on(main)),
        }
    }

    fn dialect(&self) -> Dialect {
        self.nodes[0].dialect()
    }

    fn blocks(&self) -> bool {
        self.nodes[0].blocks()
    }

    fn place(&self) -> String {
        self.nodes[self.reads_at(0)].place()
    }

    fn primary(&self) -> &Self {
        self.primary.as_deref().unwrap_or(self)
    }

    fn shards(&self) -> Option<&Shards<Self>> {
        self.shards.as_deref()
    }
}
