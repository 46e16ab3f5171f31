//! Listeners, loops and the handle that stops them.

use crate::connection::{Connection, ConnectionFate, Protocol};
use crate::counters::{Cells, Counters, Notes};
use crate::protocol::{Lent, LoopState};
use crate::{mysql, postgres};
use clap::Parser;
use clap::builder::TypedValueParser;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, listen, sockopt};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const BATCH: usize = 256;
const INPUT_BYTES: usize = 256 * 1024;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// PostgreSQL's port when no TCP port names its socket file.
const POSTGRES_PORT: u16 = 5432;

/// A server that answers the MySQL and the PostgreSQL protocol with canned rows and checks every request, so that only
/// a client's own cost shows. Binds 127.0.0.1 only. SIGTERM and SIGINT stop it: then it prints one JSON line of
/// counters to stdout and exits with 1 after protocol violations.
#[derive(Clone, Debug, Default, Parser)]
#[command(version)]
pub struct Config {
    /// TCP port of the MySQL protocol; 0 takes a free one.
    #[arg(long, value_name = "PORT")]
    pub mysql_port: Option<u16>,
    /// Unix socket of the MySQL protocol.
    #[arg(long, value_name = "FILE")]
    pub mysql_socket: Option<PathBuf>,
    /// TCP port of the PostgreSQL protocol; 0 takes a free one.
    #[arg(long, value_name = "PORT")]
    pub postgres_port: Option<u16>,
    /// Folder of PostgreSQL's Unix socket, .s.PGSQL.PORT.
    #[arg(long, value_name = "FOLDER")]
    pub postgres_socket_dir: Option<PathBuf>,
    /// Loops, each with its own thread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64).map(usize::from))]
    pub threads: usize,
    /// Shows no table in the catalog, for clients that create tables; else it shows sbtest1.
    #[arg(long = "empty")]
    pub is_empty: bool,
}

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    pub counters: Counters,
    /// The first violations; the counters have their number.
    pub violations: Vec<String>,
}

/// The counters of one loop, on their own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LoopCells {
    mysql: Cells,
    postgres: Cells,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WireProtocol {
    Mysql,
    Postgres,
}

struct Listener {
    socket: OwnedFd,
    wire_protocol: WireProtocol,
    is_tcp: bool,
}

/// Accepted sockets on their way to another loop.
struct Inbox {
    wake: OwnedFd,
    sockets: Mutex<Vec<(OwnedFd, WireProtocol)>>,
}

impl Inbox {
    fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Inbox { wake, sockets: Mutex::new(Vec::new()) })
    }

    fn wake(&self) {
        // A full event counter has woken the loop already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn sockets(&self) -> std::sync::MutexGuard<'_, Vec<(OwnedFd, WireProtocol)>> {
        self.sockets.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

struct Shared {
    cells: Vec<LoopCells>,
    inboxes: Vec<Inbox>,
    notes: Notes,
    delay_ns: AtomicU64,
    stop: AtomicBool,
}

/// A running server. Dropping it stops the server too.
pub struct Handle {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// With the ports that were bound.
    pub config: Config,
    files: Vec<PathBuf>,
}

pub fn start(mut config: Config) -> io::Result<Handle> {
    raise_file_limit();
    let mut listeners = Vec::new();
    let mut files = Vec::new();
    let ports = [&mut config.mysql_port, &mut config.postgres_port];
    for (port, wire_protocol) in
        ports.into_iter().zip([WireProtocol::Mysql, WireProtocol::Postgres])
    {
        if let Some(port) = port {
            *port = listen_tcp(*port, wire_protocol, &mut listeners)?;
        }
    }
    if let Some(path) = &config.mysql_socket {
        listen_unix(path, WireProtocol::Mysql, &mut listeners)?;
        files.push(path.clone());
    }
    if let Some(folder) = &config.postgres_socket_dir {
        let port = config.postgres_port.unwrap_or(POSTGRES_PORT);
        let path = folder.join(format!(".s.PGSQL.{port}"));
        listen_unix(&path, WireProtocol::Postgres, &mut listeners)?;
        files.push(path);
    }
    let count = config.threads.max(1);
    let shared = Arc::new(Shared {
        cells: (0..count).map(|_| LoopCells::default()).collect(),
        inboxes: (0..count).map(|_| Inbox::new()).collect::<io::Result<_>>()?,
        notes: Notes::default(),
        delay_ns: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    let mut handle = Handle { shared, threads: Vec::with_capacity(count), config, files };
    for index in 0..count {
        // The first loop accepts for all.
        let loop_listeners = if index == 0 { std::mem::take(&mut listeners) } else { Vec::new() };
        let (shared, config) = (Arc::clone(&handle.shared), handle.config.clone());
        let thread = std::thread::Builder::new().name(format!("null-{index}"));
        handle
            .threads
            .push(thread.spawn(move || Loop::new(index, shared, loop_listeners, &config)?.run())?);
    }
    Ok(handle)
}

impl Handle {
    /// All counters so far, with every request that was answered.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for cells in &self.shared.cells {
            cells.mysql.add_to(&mut counters.mysql);
            cells.postgres.add_to(&mut counters.postgres);
        }
        counters
    }

    pub fn violations(&self) -> Vec<String> {
        self.shared.notes.all()
    }

    /// From now on each answer takes so much longer: a known effect.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.delay_ns.store(delay.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Cuts all connections and stops the loops.
    pub fn stop(mut self) -> io::Result<Report> {
        self.halt()?;
        Ok(Report { counters: self.counters(), violations: self.violations() })
    }

    fn halt(&mut self) -> io::Result<()> {
        self.shared.stop.store(true, Ordering::Release);
        for inbox in &self.shared.inboxes {
            inbox.wake();
        }
        for file in self.files.drain(..) {
            // Another process may have removed it.
            let _ = std::fs::remove_file(file);
        }
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(result) => result?,
                Err(_) => return Err(io::Error::other("a loop of the null server panicked")),
            }
        }
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // stop() returns the error.
        let _ = self.halt();
    }
}

/// Thousands of connections need more files than the usual soft limit of 1,024.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without permission the old limit stays; accepting then waits for closed connections.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn name_place<T>(result: io::Result<T>, place: &str) -> io::Result<T> {
    result
        .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {place}: {error}")))
}

fn listen_tcp(
    port: u16,
    wire_protocol: WireProtocol,
    listeners: &mut Vec<Listener>,
) -> io::Result<u16> {
    let listener =
        name_place(TcpListener::bind((Ipv4Addr::LOCALHOST, port)), &format!("127.0.0.1:{port}"))?;
    let bound = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    listen(&listener, BACKLOG)?;
    listeners.push(Listener { socket: listener.into(), wire_protocol, is_tcp: true });
    Ok(bound)
}

fn listen_unix(
    path: &Path,
    wire_protocol: WireProtocol,
    listeners: &mut Vec<Listener>,
) -> io::Result<()> {
    let mut bound = UnixListener::bind(path);
    let in_use = bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
    if in_use
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        // A dead server left its socket file.
        std::fs::remove_file(path)?;
        bound = UnixListener::bind(path);
    }
    let listener = name_place(bound, &path.display().to_string())?;
    listener.set_nonblocking(true)?;
    listen(&listener, BACKLOG)?;
    listeners.push(Listener { socket: listener.into(), wire_protocol, is_tcp: false });
    Ok(())
}

const WAKE: u64 = u64::MAX;
const LISTENERS: u64 = 1 << 32;

struct Loop {
    index: usize,
    epoll: OwnedFd,
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    /// No file was left for accepting: it is tried again when a connection closes.
    starved: bool,
    dealt: usize,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    state: LoopState,
    /// Buffers of the loop, which connections borrow: idle ones own nearly nothing and a busy loop stays in the cache.
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Loop {
    fn new(
        index: usize,
        shared: Arc<Shared>,
        listeners: Vec<Listener>,
        config: &Config,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &shared.inboxes[index].wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        for (number, listener) in listeners.iter().enumerate() {
            let data = EventData::new_u64(LISTENERS + number as u64);
            epoll::add(&epoll, &listener.socket, data, EventFlags::IN | EventFlags::ET)?;
        }
        Ok(Loop {
            index,
            epoll,
            shared,
            listeners,
            starved: false,
            dealt: 0,
            connections: Vec::new(),
            free: Vec::new(),
            state: LoopState::new(config, index),
            input: vec![0; INPUT_BYTES],
            output: Vec::new(),
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(BATCH);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let (flags, key) = (event.flags, event.data.u64());
                if key < LISTENERS {
                    self.serve(key as usize, flags);
                } else if key == WAKE {
                    if self.shared.stop.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    self.adopt_all();
                } else {
                    self.accept_from((key - LISTENERS) as usize);
                }
            }
        }
    }

    fn serve(&mut self, key: usize, flags: EventFlags) {
        let Some(Some(connection)) = self.connections.get_mut(key) else { return };
        let cells = &self.shared.cells[self.index];
        let cells = match connection.protocol {
            Protocol::Mysql(_) => &cells.mysql,
            Protocol::Postgres(_) => &cells.postgres,
        };
        let (notes, out) = (&self.shared.notes, &mut self.output);
        let delay = Duration::from_nanos(self.shared.delay_ns.load(Ordering::Relaxed));
        let mut lent = Lent { cells, notes, out, delay, shared: &mut self.state };
        let fate = connection.serve(flags, &mut lent, &mut self.input);
        self.apply_fate(key, fate);
    }

    fn apply_fate(&mut self, key: usize, fate: ConnectionFate) {
        let Some(Some(connection)) = self.connections.get(key) else { return };
        let interest_flags = match fate {
            ConnectionFate::Open => return,
            ConnectionFate::Blocked => interest() | EventFlags::OUT,
            ConnectionFate::Unblocked => interest(),
            ConnectionFate::Closed => return self.close(key),
        };
        let data = EventData::new_u64(key as u64);
        if epoll::modify(&self.epoll, connection.socket.as_fd(), data, interest_flags).is_err() {
            self.close(key);
        }
    }

    fn close(&mut self, key: usize) {
        self.connections[key] = None;
        self.free.push(key);
        if std::mem::take(&mut self.starved) {
            for number in 0..self.listeners.len() {
                self.accept_from(number);
            }
        }
    }

    fn accept_from(&mut self, number: usize) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            let listener = &self.listeners[number];
            let wire_protocol = listener.wire_protocol;
            let socket = match accept_with(&listener.socket, flags) {
                Ok(socket) => socket,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.starved = true;
                    return;
                }
            };
            if listener.is_tcp && sockopt::set_tcp_nodelay(&socket, true).is_err() {
                continue;
            }
            let target = self.dealt % self.shared.inboxes.len();
            self.dealt += 1;
            if target == self.index {
                self.adopt(socket, wire_protocol);
            } else {
                let inbox = &self.shared.inboxes[target];
                inbox.sockets().push((socket, wire_protocol));
                inbox.wake();
            }
        }
    }

    fn adopt_all(&mut self) {
        let shared = Arc::clone(&self.shared);
        let inbox = &shared.inboxes[self.index];
        let mut counter = [0; 8];
        // Only resets the counter; a spurious wake-up has none.
        let _ = rustix::io::read(&inbox.wake, &mut counter);
        let sockets = std::mem::take(&mut *inbox.sockets());
        for (socket, wire_protocol) in sockets {
            self.adopt(socket, wire_protocol);
        }
    }

    fn adopt(&mut self, socket: OwnedFd, wire_protocol: WireProtocol) {
        let cells = &self.shared.cells[self.index];
        let (cells, protocol) = match wire_protocol {
            WireProtocol::Mysql => {
                (&cells.mysql, Protocol::Mysql(mysql::Connection::new(&mut self.state)))
            }
            WireProtocol::Postgres => {
                (&cells.postgres, Protocol::Postgres(postgres::Connection::new(&mut self.state)))
            }
        };
        let key = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let connection = Box::new(Connection::new(socket, protocol));
        let connection = self.connections[key].insert(connection);
        let data = EventData::new_u64(key as u64);
        if epoll::add(&self.epoll, connection.socket.as_fd(), data, interest()).is_err() {
            return self.close(key);
        }
        let (notes, out) = (&self.shared.notes, &mut self.output);
        let delay = Duration::ZERO;
        let mut lent = Lent { cells, notes, out, delay, shared: &mut self.state };
        let fate = connection.greet(&mut lent);
        self.apply_fate(key, fate);
    }
}

/// Without OUT, which a Unix socket would report for each answer that the client takes.
fn interest() -> EventFlags {
    EventFlags::IN | EventFlags::RDHUP | EventFlags::ET
}
