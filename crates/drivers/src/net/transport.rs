//! A byte stream to a server: TCP or unix socket, plain or under TLS.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::OnceLock;
use std::task::{Poll, ready};
use std::time::Duration;
use std::{fmt, io};

use dyno_core::{Address, DbError, DbResult, MILLISECOND, Nanos, SECOND, SessionTls};
use dyno_reactor::{EventSource, Peek, SocketStream, now, sleep_until, timeout};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::inbox::{Inbox, Packed};
use super::tls::{TlsConfig, explain_failure};

/// An open connection, registered with its loop.
#[derive(Debug)]
pub struct Transport {
    socket: SocketStream,
    layer: Layer,
    is_local: bool,
    /// TCP to this machine itself.
    is_loopback: bool,
    /// TLS has proven who the server is.
    is_verified: bool,
    /// Set if data given by [`Transport::try_exchange`] have not been waited for: no answer can be there.
    is_unsent: bool,
}

#[derive(Debug)]
pub(super) enum Layer {
    Plain,
    // Boxed to spare plain connections the kilobyte of TLS state.
    Tls(Box<ClientConnection>),
    Packed(Box<Packed>),
}

impl Transport {
    /// A connection without encryption.
    fn plain(socket: SocketStream, is_local: bool, is_loopback: bool) -> Self {
        let (layer, is_verified, is_unsent) = (Layer::Plain, false, false);
        Transport { socket, layer, is_local, is_loopback, is_verified, is_unsent }
    }

    /// Tries all addresses of the host in order, until `due` on the loop's clock.
    pub async fn connect(host: &ServerHost, due: Nanos) -> DbResult<Self> {
        let address = &host.address;
        before(due, address, async {
            let Address::Unix(path) = address else {
                return connect_tcp(host, due).await;
            };
            let target =
                SocketAddrUnix::new(path).map_err(|errno| connect_error(address, errno))?;
            let socket = loop {
                let socket =
                    open_socket(AddressFamily::UNIX).map_err(|e| connect_error(address, e))?;
                match connect(&socket, &target) {
                    Ok(()) => break socket,
                    // A unix socket with a full backlog can't be waited for, only asked again.
                    Err(Errno::AGAIN) => sleep_until(now() + MILLISECOND).await,
                    Err(errno) => return Err(connect_error(address, errno)),
                }
            };
            Ok(Transport::plain(register(socket)?, true, false))
        })
        .await
    }

    /// Makes the TLS handshake. The server's certificate must carry the name `host`; see [`Address::tls_name`]. The
    /// inbox must be empty: earlier bytes are not part of the TLS stream.
    pub async fn start_tls(&mut self, config: &TlsConfig, host: &str) -> DbResult<()> {
        let Some(client) = config.client.clone() else {
            return Err(DbError::protocol("TLS is disabled for this target."));
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            DbError::tls(0, *b"08001", format!("TLS can't be used with the host name {host}."))
        })?;
        let mut tls =
            ClientConnection::new(client, name).map_err(|error| explain_failure(&error, host))?;
        while tls.is_handshaking() {
            flush_tls(&self.socket, &mut tls).await?;
            if tls.is_handshaking() {
                self.socket.readable().await;
                take_tls(&self.socket, &mut tls, host)?;
            }
        }
        flush_tls(&self.socket, &mut tls).await?;
        self.layer = Layer::Tls(Box::new(tls));
        self.is_verified = config.verifies;
        Ok(())
    }

    /// Sends all of `bytes`.
    #[inline]
    pub async fn send(&mut self, bytes: &[u8]) -> DbResult<()> {
        let mut unsent = bytes;
        while !self.try_send(&mut unsent)? {
            self.socket.writable().await;
        }
        Ok(())
    }

    /// Like [`Transport::send`]; may leave anything instead of `bytes`, which spares a copy.
    #[inline]
    pub async fn send_buffer(&mut self, bytes: &mut Vec<u8>) -> DbResult<()> {
        if self.layer_exchanges(bytes) {
            return Ok(());
        }
        self.send(bytes).await
    }

    /// Returns true if [`Transport::try_exchange`] may take something.
    #[inline]
    pub fn exchanges(&self) -> bool {
        matches!(self.layer, Layer::Plain) && self.socket.is_on_ring()
    }

    /// Takes all of `bytes` to be sent by the next wait and leaves others in their place, or does nothing: false. After
    /// true the same task must call [`Transport::poll_read`] or [`Transport::sends`] before it waits for anything else.
    #[inline]
    pub fn try_exchange(&mut self, bytes: &mut Vec<u8>) -> bool {
        self.is_unsent = self.layer_exchanges(bytes);
        self.is_unsent
    }

    /// Returns true if bytes that were taken are not sent, also because they can't be.
    pub fn has_unsent(&self) -> bool {
        self.socket.has_unsent()
    }

    /// Makes the next wait send what was given.
    #[inline]
    pub fn sends(&mut self) {
        self.is_unsent = false;
    }

    #[inline]
    fn layer_exchanges(&mut self, bytes: &mut Vec<u8>) -> bool {
        matches!(self.layer, Layer::Plain) && self.socket.try_exchange(bytes)
    }

    /// Waits for bytes and makes one receive of at least one byte into the free space of `inbox`.
    #[inline]
    pub async fn recv(&mut self, inbox: &mut Inbox) -> DbResult<()> {
        poll_fn(|_| self.poll_recv(inbox)).await
    }

    /// Like [`Transport::recv`], with an empty inbox. What `read` makes of all that has arrived is returned, and then
    /// nothing is left in the inbox.
    #[inline]
    pub fn poll_read<T>(
        &mut self,
        inbox: &mut Inbox,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Poll<DbResult<Option<T>>> {
        if std::mem::take(&mut self.is_unsent) {
            return Poll::Pending;
        }
        if let Layer::Plain = self.layer {
            match self.socket.peek(&mut read) {
                Peek::Nothing => return Poll::Pending,
                Peek::Taken(done) => return Poll::Ready(Ok(Some(done))),
                Peek::Refused => {}
            }
        }
        self.poll_recv_and_read(inbox, &mut read)
    }

    /// A pointer to `read`, so that the usual way alone is compiled with what it does.
    #[cold]
    fn poll_recv_and_read<T>(
        &mut self,
        inbox: &mut Inbox,
        read: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Poll<DbResult<Option<T>>> {
        ready!(self.poll_recv(inbox))?;
        let received = inbox.filled();
        let (len, done) = (received.len(), read(received));
        if done.is_some() {
            inbox.consume(len);
        }
        Poll::Ready(Ok(done))
    }

    #[inline]
    fn poll_recv(&mut self, inbox: &mut Inbox) -> Poll<DbResult<()>> {
        self.layer.poll_recv(&self.socket, inbox)
    }

    /// Receives without waiting; false when nothing has arrived.
    pub fn try_recv(&mut self, inbox: &mut Inbox) -> DbResult<bool> {
        self.layer.try_recv(&self.socket, inbox)
    }

    /// Returns true if bytes have come that no one has taken, or come now: the peer has not fallen silent.
    pub(crate) async fn is_sent_to(&mut self, inbox: &mut Inbox) -> bool {
        const LISTENS_FOR: Nanos = SECOND / 2;
        !inbox.filled().is_empty()
            || matches!(timeout(now() + LISTENS_FOR, self.recv(inbox)).await, Ok(Ok(())))
    }

    /// Sends all of `bytes`; whenever the send queue is full, receives into `inbox`. Otherwise a server that waits
    /// until its answers are read would stop both sides for ever.
    pub async fn send_receiving(&mut self, bytes: &[u8], inbox: &mut Inbox) -> DbResult<()> {
        let mut unsent = bytes;
        loop {
            if self.try_send(&mut unsent)? {
                return Ok(());
            }
            self.socket.either().await;
            self.try_recv(inbox)?;
        }
    }

    /// Sends from the front of `rest` until all is sent (true) or the send queue is full.
    #[inline]
    fn try_send(&mut self, rest: &mut &[u8]) -> DbResult<bool> {
        self.layer.try_send(&self.socket, rest)
    }

    /// Sends and receives frames of MySQL's compressed protocol from now on. From here on, what is sent at once are
    /// whole packets.
    pub(crate) fn start_compression(&mut self) {
        let below = std::mem::replace(&mut self.layer, Layer::Plain);
        self.layer = Layer::Packed(Box::new(Packed::new(below)));
    }

    pub fn is_tls(&self) -> bool {
        self.layer.tls_connection().is_some()
    }

    /// The certificate that the server has shown, in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.layer.tls_connection()?.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// The facts that TLS has proven.
    pub fn tls(&self) -> Option<SessionTls> {
        let tls = self.layer.tls_connection()?;
        let version = match tls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS 1.3",
        };
        Some(SessionTls { version, is_verified: self.is_verified })
    }

    /// Returns true for a unix socket.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// True if no listener can read it: a unix socket, loopback, or TLS with any certificate.
    pub fn is_private(&self) -> bool {
        self.is_local || self.is_loopback || self.is_tls()
    }
}

impl Layer {
    fn tls_connection(&self) -> Option<&ClientConnection> {
        match self {
            Layer::Plain => None,
            Layer::Tls(tls) => Some(tls),
            Layer::Packed(packed) => packed.below.tls_connection(),
        }
    }

    #[inline]
    pub(super) fn poll_recv(
        &mut self,
        socket: &SocketStream,
        inbox: &mut Inbox,
    ) -> Poll<DbResult<()>> {
        match self {
            Layer::Plain => socket.poll_recv(inbox.space()?).map(|it| took(it, inbox).map(drop)),
            Layer::Tls(tls) => poll_recv_tls(socket, tls, inbox),
            Layer::Packed(packed) => packed.poll_recv(socket, inbox),
        }
    }

    pub(super) fn try_recv(&mut self, socket: &SocketStream, inbox: &mut Inbox) -> DbResult<bool> {
        match self {
            Layer::Plain => try_recv_plain(socket, inbox),
            Layer::Tls(tls) => loop {
                if try_recv_tls(tls, inbox)? {
                    return Ok(true);
                }
                if !take_tls(socket, tls, "the server")? {
                    return Ok(false);
                }
            },
            Layer::Packed(packed) => packed.try_recv(socket, inbox),
        }
    }

    #[inline]
    pub(super) fn try_send(&mut self, socket: &SocketStream, rest: &mut &[u8]) -> DbResult<bool> {
        match self {
            Layer::Plain => try_send_plain(socket, rest),
            Layer::Tls(tls) => loop {
                if !try_flush_tls(socket, tls)? {
                    return Ok(false);
                }
                if rest.is_empty() {
                    return Ok(true);
                }
                let accepted = tls.writer().write(rest).map_err(|error| broken_error(&error))?;
                *rest = &rest[accepted..];
            },
            Layer::Packed(packed) => packed.try_send(socket, rest),
        }
    }
}

/// Lets `future` run until `due` on the loop's clock: for connects and log-ins.
pub async fn before<T>(
    due: Nanos,
    address: &Address,
    future: impl Future<Output = DbResult<T>>,
) -> DbResult<T> {
    let began = now();
    timeout(due, future).await.unwrap_or_else(|_| {
        let waited_s = due.saturating_sub(began) as f64 / SECOND as f64;
        Err(DbError::unreachable(format!(
            "The server at {address} did not answer within {waited_s:.1} seconds."
        ))
        .with_hint("check host, port and firewall, or raise connect_timeout_s in the URL"))
    })
}

async fn connect_tcp(host: &ServerHost, due: Nanos) -> DbResult<Transport> {
    let sockets = host.sockets()?;
    let mut last = DbError::unreachable(format!("The host {} has no address.", host.address));
    for (index, target) in sockets.iter().enumerate() {
        // A silent address must leave time for the others.
        let remaining_sockets = (sockets.len() - index) as u64;
        let share = now() + due.saturating_sub(now()) / remaining_sockets;
        match before(share, &host.address, connect_one(target, &host.address)).await {
            Ok(transport) => return Ok(transport),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Ends a connection after two minutes without a sign of life: the machine of the server may be gone during a query of
/// hours.
fn keep_alive(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(socket, 6)
}

async fn connect_one(target: &SocketAddr, address: &Address) -> DbResult<Transport> {
    let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = open_socket(family).and_then(|socket| {
        sockopt::set_tcp_nodelay(&socket, true)?;
        keep_alive(&socket)?;
        Ok(socket)
    });
    let socket = socket.map_err(|errno| connect_error(address, errno))?;
    let in_progress = match connect(&socket, target) {
        Ok(()) => false,
        Err(Errno::INPROGRESS) => true,
        Err(errno) => return Err(connect_error(address, errno)),
    };
    if in_progress {
        let connecting = EventSource::new(&socket).map_err(|error| watch_error(&error))?;
        // Fresh sources count as writable; this one is writable once it is connected.
        connecting.not_writable();
        connecting.writable().await;
        let status = sockopt::socket_error(&socket).and_then(|status| status);
        status.map_err(|errno| connect_error(address, errno))?;
    }
    Ok(Transport::plain(register(socket)?, false, target.ip().to_canonical().is_loopback()))
}

fn open_socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(family, SocketType::STREAM, flags, None)
}

/// Hands a socket to the event loop.
fn register(socket: OwnedFd) -> DbResult<SocketStream> {
    SocketStream::new(socket).map_err(|error| watch_error(&error))
}

fn watch_error(error: &io::Error) -> DbError {
    DbError::unreachable(format!("The event loop can't watch another connection: {error}."))
}

/// Sends from the front of `bytes` until all is sent (true) or the send queue is full.
#[inline]
fn try_send_plain(socket: &SocketStream, bytes: &mut &[u8]) -> DbResult<bool> {
    while !bytes.is_empty() {
        match socket.try_send(bytes) {
            Ok(Some(sent)) => *bytes = &bytes[sent..],
            Ok(None) => return Ok(false),
            Err(errno) => return Err(broken_error(&errno.into())),
        }
    }
    Ok(true)
}

/// False when nothing has arrived.
#[inline]
fn try_recv_plain(socket: &SocketStream, inbox: &mut Inbox) -> DbResult<bool> {
    let received = socket.try_recv(inbox.space()?).transpose();
    received.map_or(Ok(false), |received| took(received, inbox))
}

/// True: something has arrived.
#[inline]
fn took(received: Result<usize, Errno>, inbox: &mut Inbox) -> DbResult<bool> {
    match received {
        Ok(0) => Err(closed_error()),
        Ok(count) => {
            inbox.received(count);
            Ok(true)
        }
        Err(errno) => Err(broken_error(&errno.into())),
    }
}

fn poll_recv_tls(
    socket: &SocketStream,
    tls: &mut ClientConnection,
    inbox: &mut Inbox,
) -> Poll<DbResult<()>> {
    while !try_recv_tls(tls, inbox)? {
        // Key updates ask for an answer.
        if !try_flush_tls(socket, tls)? {
            ready!(socket.poll_writable());
            continue;
        }
        ready!(socket.poll_readable());
        take_tls(socket, tls, "the server")?;
    }
    Poll::Ready(Ok(()))
}

/// Takes decrypted bytes; false when there are none.
fn try_recv_tls(tls: &mut ClientConnection, inbox: &mut Inbox) -> DbResult<bool> {
    match tls.reader().read(inbox.space()?) {
        Ok(0) => Err(closed_error()),
        Ok(count) => {
            inbox.received(count);
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(broken_error(&error)),
    }
}

/// Receives encrypted bytes and decrypts them; false when none have arrived.
fn take_tls(socket: &SocketStream, tls: &mut ClientConnection, host: &str) -> DbResult<bool> {
    match tls.read_tls(&mut Descriptor(socket)) {
        Ok(0) => return Err(closed_error()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
        Err(error) => return Err(broken_error(&error)),
    }
    if let Err(error) = tls.process_new_packets() {
        // Sends the server an alert; the error to report is ours.
        let _ = tls.write_tls(&mut Descriptor(socket));
        return Err(explain_failure(&error, host));
    }
    Ok(true)
}

async fn flush_tls(socket: &SocketStream, tls: &mut ClientConnection) -> DbResult<()> {
    while !try_flush_tls(socket, tls)? {
        socket.writable().await;
    }
    Ok(())
}

/// Sends what is encrypted until all is sent (true) or the send queue is full.
fn try_flush_tls(socket: &SocketStream, tls: &mut ClientConnection) -> DbResult<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut Descriptor(socket)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(broken_error(&error)),
        }
    }
    Ok(true)
}

/// The socket for rustls.
struct Descriptor<'a>(&'a SocketStream);

impl Read for Descriptor<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_recv(bytes)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Descriptor<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_send(bytes)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cold]
fn closed_error() -> DbError {
    DbError::lost("The server closed the connection.")
}

#[cold]
fn broken_error(error: &io::Error) -> DbError {
    DbError::lost(format!("The connection broke: {error}."))
}

#[cold]
fn connect_error(address: &Address, errno: Errno) -> DbError {
    let error = DbError::not_connected(address.clone(), errno.raw_os_error());
    match errno {
        Errno::CONNREFUSED => error.with_hint("is the server running, and is this its address?"),
        Errno::NOENT => error.with_hint("no such socket: is the server running on this machine?"),
        Errno::ACCESS => error.with_hint("this user may not open the socket"),
        Errno::MFILE | Errno::NFILE => {
            error.with_hint("too many open files: raise the limit with `ulimit -n`")
        }
        Errno::ADDRNOTAVAIL => error.with_hint(
            "no free local port: widen net.ipv4.ip_local_port_range or use fewer connections",
        ),
        Errno::NAMETOOLONG => error.with_hint("a unix socket's path has at most 107 bytes"),
        _ => error,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(pub Vec<Address>);

impl Hosts {
    /// The servers to connect to. An error if there are none.
    pub fn servers(&self) -> DbResult<ServerHosts> {
        if self.0.is_empty() {
            return Err(DbError::unreachable("The target has no host."));
        }
        Ok(ServerHosts(self.0.iter().cloned().map(ServerHost::new).collect()))
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.0.iter().map(Address::to_string).collect();
        f.write_str(&hosts.join(", "))
    }
}

/// Servers of which each connection gets one; never empty.
#[derive(Clone, Debug)]
pub struct ServerHosts(Vec<ServerHost>);

impl ServerHosts {
    /// The host of connection `number`: connections rotate over the hosts.
    pub fn pick(&self, number: u32) -> &ServerHost {
        &self.0[number as usize % self.0.len()]
    }

    /// Number of hosts of the target.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// The address of a server, whose host name is looked up when it is first connected to.
#[derive(Clone, Debug)]
pub struct ServerHost {
    pub address: Address,
    /// IP addresses with the port; empty for a unix socket.
    sockets: OnceLock<Vec<SocketAddr>>,
}

impl ServerHost {
    fn new(address: Address) -> Self {
        ServerHost { address, sockets: OnceLock::new() }
    }

    /// Blocks the first time. A failure is not kept: the next connection looks the name up again.
    pub(super) fn sockets(&self) -> DbResult<&[SocketAddr]> {
        if let Some(known) = self.sockets.get() {
            return Ok(known);
        }
        let sockets = match &self.address {
            Address::Unix(_) => Vec::new(),
            Address::Tcp { host, port } => look_up(host, *port)?,
        };
        Ok(self.sockets.get_or_init(|| sockets))
    }
}

fn look_up(host: &str, port: u16) -> DbResult<Vec<SocketAddr>> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    let mut reason = "it has no address".to_owned();
    match (host, port).to_socket_addrs() {
        Ok(sockets) => {
            for socket in sockets {
                if !addresses.contains(&socket) {
                    addresses.push(socket);
                }
            }
        }
        Err(error) => reason = error.to_string(),
    }
    if addresses.is_empty() {
        let message = format!("The host name {host} could not be looked up: {reason}.");
        let hint = "check the spelling of the host in the URL";
        return Err(DbError::unreachable(message).with_hint(hint));
    }
    Ok(addresses)
}
