//! One driver for all nodes of a target: it decides once per session which node that goes to.

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
    /// Sessions are spread over these nodes.
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
}

impl<D> Clone for View<D> {
    fn clone(&self) -> Self {
        let (nodes, writable) = (Arc::clone(&self.nodes), Arc::clone(&self.writable));
        View { nodes, writable, way: self.way.clone() }
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
        let view = View { nodes: Arc::from([node]), writable: Arc::default(), way: Way::Primary };
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
        let writable = Arc::new(AtomicUsize::new(writable));
        let view = View { nodes: nodes.into(), writable, way };
        let primary = View { way: loads, ..view.clone() };
        Ok(Routed { view, primary: Some(Box::new(Routed { view: primary, primary: None })) })
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

impl<D: Driver + Send> Driver for Routed<D> {
    type Session = RoutedSession<D::Session>;

    async fn connect(&self, number: u32) -> Result<RoutedSession<D::Session>, DbError> {
        let nodes = &self.view.nodes;
        let writable = self.writable();
        let node = match &self.view.way {
            Way::Primary => writable,
            Way::Through(node) => *node,
            Way::Spread(readers) => readers[number as usize % readers.len()],
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
