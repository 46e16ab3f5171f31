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

use dyno_core::{DbError, DbResult, Dialect, Driver};
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

#[derive(Clone, Copy, Debug)]
struct Seat {
    /// Its own one, as a place in their list.
    own: usize,
    /// How many sessions of lower numbers have the same one.
    turn: usize,
}

impl Seat {
    /// The places of `count` nodes in the order in which a session looks for a living one: its own, then
    /// the others, among which the sessions of a dead node are dealt out evenly. A later attempt begins
    /// further on: a node that takes connections and never answers holds up one attempt only.
    fn order(self, count: usize, attempt: u32) -> impl Iterator<Item = usize> {
        let place = move |step: usize| match (step + attempt as usize) % count {
            0 => self.own,
            step => (self.own + 1 + (self.turn + step - 1) % (count - 1)) % count,
        };
        (0..count).map(place)
    }
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
    pub fn single(node: D) -> Self {
        let view = View { nodes: Arc::from([node]), writable: Arc::default(), way: Way::Primary };
        Routed { view, primary: None }
    }

    /// A target with several nodes. `loads` is how sessions reach it that load, look and check: to the
    /// node that takes writes, `writable`, or to an endpoint.
    pub fn new(nodes: Vec<D>, writable: usize, way: Way, loads: Way) -> DbResult<Self> {
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

    pub fn writable(&self) -> usize {
        self.view.writable.load(Ordering::Relaxed)
    }

    /// The number of the node that session `number` reads from outside of transactions when it is opened.
    pub fn reads_at(&self, number: u32) -> usize {
        self.view.reads_at(number)
    }

    pub fn nodes(&self) -> &[D] {
        &self.view.nodes
    }
}

impl<D: Driver> View<D> {
    /// The node of an endpoint, else the one that takes writes.
    fn main(&self) -> usize {
        match self.way {
            Way::Through(node) => node,
            _ => self.writable.load(Ordering::Relaxed),
        }
    }

    /// The nodes that are read from where these are others than [`View::main`].
    fn readers(&self) -> Vec<usize> {
        let writable = self.main();
        match &self.way {
            Way::Primary | Way::Through(_) => Vec::new(),
            Way::Spread(readers) => readers.clone(),
            // A node that has been promoted is not read from any more.
            Way::Split(readers) => readers.iter().copied().filter(|it| *it != writable).collect(),
        }
    }

    fn seat(count: usize, number: u32) -> Seat {
        let number = number as usize;
        Seat { own: number % count, turn: number / count }
    }

    /// The node that session `number` reads from when it is opened.
    fn reads_at(&self, number: u32) -> usize {
        match self.readers().as_slice() {
            [] => self.main(),
            readers => readers[Self::seat(readers.len(), number).own],
        }
    }

    /// A session on the first node that opens one, in the order of [`Seat::order`].
    async fn living(&self, readers: &[usize], number: u32, attempt: u32) -> DbResult<D::Session> {
        let mut refused = DbError::unreachable("There is no node that could be read from.");
        for place in Self::seat(readers.len(), number).order(readers.len(), attempt) {
            match self.nodes[readers[place]].connect(number).await {
                Ok(session) => return Ok(session),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

impl<D: Driver + Send> Driver for Routed<D> {
    type Session = RoutedSession<D::Session>;

    /// A session on its own nodes: a trial does not begin on other nodes than its plan says.
    async fn connect(&self, number: u32) -> DbResult<RoutedSession<D::Session>> {
        let nodes = &self.view.nodes;
        let (main, reader) = (self.view.main(), self.view.reads_at(number));
        let Way::Split(_) = self.view.way else {
            return nodes[reader].connect(number).await.map(RoutedSession::on);
        };
        let session = nodes[main].connect(number).await?;
        match reader == main {
            true => Ok(RoutedSession::on(session)),
            false => Ok(RoutedSession::split(session, nodes[reader].connect(number).await?)),
        }
    }

    /// A session whose read-only node is gone goes to another one, and with [`Way::Split`], where none is
    /// left, reads from the node that takes writes. It stays there until it is lost, as behind most
    /// endpoints; whatever is opened later tries its own node first.
    async fn reconnect(&self, number: u32, attempt: u32) -> DbResult<RoutedSession<D::Session>> {
        let (view, readers) = (&self.view, self.view.readers());
        if readers.is_empty() {
            return self.connect(number).await;
        }
        if let Way::Spread(_) = view.way {
            return view.living(&readers, number, attempt).await.map(RoutedSession::on);
        }
        let main = view.nodes[view.main()].connect(number).await?;
        match view.living(&readers, number, attempt).await {
            Ok(reader) => Ok(RoutedSession::split(main, reader)),
            Err(_) => Ok(RoutedSession::on(main)),
        }
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
