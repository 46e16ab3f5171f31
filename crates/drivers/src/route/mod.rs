//! One driver for all nodes of a target: it decides once per session which node that goes to.
//!
//! With [`Way::Split`] a session has two connections: a statement goes by its class, which its text tells
//! once when it is prepared, and by the state of the transaction, which both servers' own answers tell.
//! Where there is one node, this costs one predictable branch per statement. Which node takes writes is an
//! atomic number that all clones share and that is read when a session is opened, so a failover costs the
//! load nothing before it happens.

mod class;
mod session;
#[cfg(test)]
mod tests;
mod words;

pub use session::RoutedSession;

use dyno_core::{DbError, Dialect, Driver};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How sessions find their node. Numbers are those of the list of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// All sessions go to the node that takes writes.
    Primary,
    /// All sessions go to this node, whatever becomes of the others.
    Through(usize),
    /// Transactions and writes go to the node that takes writes; reads outside of transactions, and
    /// transactions begun as read-only, go to one of these nodes, each session to its own one.
    Split(Vec<usize>),
    /// Sessions are spread over these nodes; of several load generators, each takes its part of them.
    Spread(Vec<usize>),
}

/// Drivers of the nodes of one target, and which of them a session goes to. A clone shares the nodes, and
/// whatever is known of who takes writes.
#[derive(Debug)]
pub struct Routed<D> {
    view: View<D>,
    /// What [`Driver::primary`] hands out; `None` where that is this one itself.
    primary: Option<Box<Routed<D>>>,
}

#[derive(Debug)]
struct View<D> {
    nodes: Arc<[D]>,
    /// The node that takes writes. Read when a session is opened, never by a session.
    writable: Arc<AtomicUsize>,
    way: Way,
    /// Number of this load generator, and how many there are.
    generator: usize,
    generators: usize,
}

impl<D> Clone for View<D> {
    fn clone(&self) -> Self {
        let (nodes, writable) = (Arc::clone(&self.nodes), Arc::clone(&self.writable));
        let way = self.way.clone();
        View { nodes, writable, way, generator: self.generator, generators: self.generators }
    }
}

impl<D> Clone for Routed<D> {
    fn clone(&self) -> Self {
        Routed { view: self.view.clone(), primary: self.primary.clone() }
    }
}

impl<D: Driver + Send> Routed<D> {
    /// A target with one node.
    pub fn single(node: D) -> Self {
        let view = View {
            nodes: Arc::from([node]),
            writable: Arc::default(),
            way: Way::Primary,
            generator: 0,
            generators: 1,
        };
        Routed { view, primary: None }
    }

    /// A target with several nodes. `loads` is how sessions reach it that load, look and check: to the
    /// node that takes writes, `writable`, or to an endpoint.
    ///
    /// # Errors
    /// A node is not in the list, or the list of those that are read from is empty.
    pub fn new(nodes: Vec<D>, writable: usize, way: Way, loads: Way) -> Result<Self, DbError> {
        let is_there = |index: &usize| *index < nodes.len();
        let is_sound = |way: &Way| match way {
            Way::Primary => true,
            Way::Through(index) => is_there(index),
            Way::Split(readers) | Way::Spread(readers) => {
                !readers.is_empty() && readers.iter().all(is_there)
            }
        };
        if !is_there(&writable) || !is_sound(&way) || !is_sound(&loads) {
            return Err(DbError::unreachable(
                "A route leads to a node that the target does not have.",
            ));
        }
        let view = View {
            nodes: nodes.into(),
            writable: Arc::new(AtomicUsize::new(writable)),
            way,
            generator: 0,
            generators: 1,
        };
        let primary = View { way: loads, ..view.clone() };
        Ok(Routed { view, primary: Some(Box::new(Routed { view: primary, primary: None })) })
    }

    /// The same for load generator `generator` of `generators`, counted from 0.
    #[must_use]
    pub fn of_generator(mut self, generator: u32, generators: u32) -> Self {
        self.view.generators = generators.max(1) as usize;
        self.view.generator = generator as usize % self.view.generators;
        self
    }

    /// Has all sessions that are opened from now on write to another node. Sessions that are open stay
    /// where they are. A number that no node has changes nothing.
    pub fn switch_primary(&self, node: usize) {
        if node < self.view.nodes.len() {
            self.view.writable.store(node, Ordering::Relaxed);
        }
    }

    /// The number of the node that takes writes.
    pub fn writable(&self) -> usize {
        self.view.writable.load(Ordering::Relaxed)
    }

    /// The drivers of all nodes.
    pub fn nodes(&self) -> &[D] {
        &self.view.nodes
    }
}

impl<D> View<D> {
    /// The node for connection `number` of those that are read from. Of several load generators, number
    /// `g` of `n` takes nodes `g`, `g + n`, ...; with more generators than nodes, some share one.
    fn dealt(&self, readers: &[usize], number: u32) -> usize {
        let (first, step) = (self.generator % readers.len(), self.generators);
        let own = (readers.len() - first).div_ceil(step);
        readers[first + number as usize % own * step]
    }
}

impl<D: Driver + Send> Driver for Routed<D> {
    type Session = RoutedSession<D::Session>;

    async fn connect(&self, number: u32) -> Result<RoutedSession<D::Session>, DbError> {
        let nodes = &self.view.nodes;
        let writable = self.writable();
        let node = match &self.view.way {
            Way::Primary => writable,
            Way::Through(node) => *node,
            Way::Spread(readers) => self.view.dealt(readers, number),
            Way::Split(readers) => {
                // A node that has been promoted is not read from any more.
                let readers = || readers.iter().copied().filter(|reader| *reader != writable);
                let main = nodes[writable].connect(number).await?;
                let reader = readers().nth(number as usize % readers().count().max(1));
                let Some(reader) = reader else { return Ok(RoutedSession::on(main)) };
                return Ok(RoutedSession::split(main, nodes[reader].connect(number).await?));
            }
        };
        nodes[node].connect(number).await.map(RoutedSession::on)
    }

    fn dialect(&self) -> Dialect {
        self.view.nodes[0].dialect()
    }

    fn blocks(&self) -> bool {
        self.view.nodes[0].blocks()
    }

    fn primary(&self) -> &Self {
        self.primary.as_deref().unwrap_or(self)
    }
}
