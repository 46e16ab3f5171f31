//! The server's side of a MySQL connection, played step by step by a test.

use dyno_testkit::Certificates;
use dyno_testkit::Scratch;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) const PASSWORD: &[u8] = b"s3cret word";
pub(crate) const SCRAMBLE: &[u8] = b"abcdefghijklmnopqrst";
pub(crate) const OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// A server that takes one connection.
pub(crate) struct Fake {
    place: String,
    thread: JoinHandle<()>,
    _folder: Option<Scratch>,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// The connection of one client.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    sequence: u8,
    /// Capabilities in the greeting.
    pub(crate) capabilities: u64,
}

/// The client's login.
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) response: Vec<u8>,
    pub(crate) database: String,
    pub(crate) plugin: String,
}

const TIMEOUT: Duration = Duration::from_secs(20);
const LONG_PASSWORD: u64 = 1;
pub(crate) const SSL: u64 = 1 << 11;

impl Fake {
    /// Starts a server on the loopback address.
    pub(crate) fn tcp(play: impl FnOnce(&mut Client) + Send + 'static) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), play)
    }

    /// Starts a server on this address.
    pub(crate) fn at(address: IpAddr, play: impl FnOnce(&mut Client) + Send + 'static) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            play(&mut Client::new(Box::new(stream)));
        });
        Fake { place, thread, _folder: None }
    }

    /// Starts a server on a socket file.
    pub(crate) fn unix(play: impl FnOnce(&mut Client) + Send + 'static) -> Self {
        let folder = Scratch::new();
        let path = folder.file("s");
        let listener = UnixListener::bind(&path).unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            play(&mut Client::new(Box::new(stream)));
        });
        Fake { place: path.display().to_string(), thread, _folder: Some(folder) }
    }

    /// A URL of this server; without options TLS is off on TCP.
    pub(crate) fn url(&self, options: &str) -> String {
        let account = "me:s3cret%20word";
        if self.place.starts_with('/') {
            return format!("mysql://{account}@localhost/db?socket={}", self.place);
        }
        let separator = if options.is_empty() { "?" } else { "&" };
        let tls = if options.contains("tls=") { "" } else { "tls=disable" };
        let separator = if tls.is_empty() { "" } else { separator };
        format!("mysql://{account}@{}/db{options}{separator}{tls}", self.place)
    }

    /// Ends with the panic of the server's side, if it had one.
    pub(crate) fn join(self) {
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Client {
    fn new(stream: Box<dyn Stream>) -> Self {
        // All that MySQL knows but TLS: each test adds it.
        Client { stream, sequence: 0, capabilities: 0xffff_ffff & !SSL }
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    /// Sends a payload as the next packet.
    pub(crate) fn send(&mut self, payload: &[u8]) {
        let packet = self.packet(payload);
        self.send_raw(&packet);
    }

    /// Makes the next packet.
    pub(crate) fn packet(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        packet.extend_from_slice(payload);
        packet
    }

    /// The next packet, which must have the next sequence number.
    pub(crate) fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).unwrap();
        assert_eq!(header[3], self.sequence, "sequence number");
        self.sequence = self.sequence.wrapping_add(1);
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    /// A new command, whose numbers start again.
    pub(crate) fn read_command(&mut self) -> Vec<u8> {
        self.sequence = 0;
        self.read()
    }

    pub(crate) fn expect_command(&mut self, wanted: &[u8]) {
        let command = self.read_command();
        assert_eq!(String::from_utf8_lossy(&command), String::from_utf8_lossy(wanted));
    }

    /// Answers the question for the longest packet: 4 KiB.
    pub(crate) fn answer_packet_limit(&mut self) {
        self.expect_command(b"\x03SELECT @@max_allowed_packet");
        self.send(&[1]);
        self.send(b"\x03def\0\0\0\x01x\0\x0c\x2d\0\xff\0\0\0\x08\0\0\0\0\0");
        self.send(b"\x044096");
        self.send(b"\xfe\0\0\x02\0\0\0");
    }

    /// Ends the session as MySQL 8.0.24 and later end idle ones: with an unsolicited error.
    pub(crate) fn send_farewell(&mut self) {
        self.sequence = 0;
        self.send(
            b"\xff\xbf\x0f#HY000The client was disconnected by the server because of inactivity.",
        );
    }

    /// Reads all that the client sends until it hangs up.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A reset ends it as well.
        let _ = self.stream.read_to_end(&mut bytes);
        bytes
    }

    /// Sends a greeting and, in the same write, other bytes.
    pub(crate) fn send_greeting_and(&mut self, plugin: &str, more: &[u8]) {
        let flags = self.capabilities.to_le_bytes();
        let mut payload = b"\x0a9.7.0-fake\0\x01\0\0\0".to_vec();
        payload.extend_from_slice(&SCRAMBLE[..8]);
        payload.push(0);
        payload.extend_from_slice(&flags[..2]);
        payload.extend_from_slice(&[45, 2, 0]);
        payload.extend_from_slice(&flags[2..4]);
        payload.push(21);
        payload.extend_from_slice(&[0; 10]);
        payload.extend_from_slice(&SCRAMBLE[8..]);
        payload.push(0);
        payload.extend_from_slice(plugin.as_bytes());
        payload.push(0);
        let mut bytes = self.packet(&payload);
        bytes.extend_from_slice(more);
        self.send_raw(&bytes);
    }

    /// Greets without TLS and reads the log-in.
    pub(crate) fn greet(&mut self, plugin: &str) -> Login {
        self.send_greeting_and(plugin, b"");
        self.read_login()
    }

    /// Greets with TLS and makes its handshake.
    pub(crate) fn start_tls(&mut self, certificates: &Certificates, plugin: &str) {
        self.capabilities |= SSL;
        self.send_greeting_and(plugin, b"");
        let request = self.read();
        assert_eq!(request.len(), 32);
        assert_ne!(u64::from(request[1]) << 8 & SSL, 0);
        let connection = rustls::ServerConnection::new(server_config(certificates)).unwrap();
        let plain = std::mem::replace(&mut self.stream, Box::new(std::io::empty()));
        self.stream = Box::new(rustls::StreamOwned::new(connection, plain));
    }

    pub(crate) fn read_login(&mut self) -> Login {
        let payload = self.read();
        let flags = u32::from_le_bytes(payload[..4].try_into().unwrap());
        assert_ne!(u64::from(flags) & LONG_PASSWORD, 0, "MySQL's way of the flags");
        assert_eq!(payload[8], 45, "utf8mb4");
        let (user, rest) = nul_text(&payload[32..]);
        let (response, rest) = rest[1..].split_at(usize::from(rest[0]));
        let (database, rest) = nul_text(rest);
        let (plugin, rest) = nul_text(rest);
        assert!(String::from_utf8_lossy(rest).contains("\u{c}program_name\u{4}dyno"));
        Login { user, response: response.to_vec(), database, plugin }
    }
}

fn nul_text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap();
    (String::from_utf8(bytes[..end].to_vec()).unwrap(), &bytes[end + 1..])
}

/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble)`.
pub(crate) fn caching_sha2(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let mask = Sha256::digest([&Sha256::digest(once)[..], scramble].concat());
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// An RSA key of the program openssl.
pub(crate) struct RsaKey {
    folder: Scratch,
    public: Vec<u8>,
}

impl RsaKey {
    /// Makes a key with the command `openssl`.
    pub(crate) fn make() -> Result<Self, String> {
        let folder = Scratch::new();
        for arguments in ["genrsa -out key.pem 2048", "rsa -in key.pem -pubout -out public.pem"] {
            let output = Command::new("openssl")
                .args(arguments.split(' '))
                .current_dir(folder.path())
                .output()
                .map_err(|error| format!("openssl can't be run: {error}"))?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
        }
        let public = std::fs::read(folder.file("public.pem")).map_err(|error| error.to_string())?;
        Ok(RsaKey { folder, public })
    }

    pub(crate) fn public_file(&self) -> String {
        self.folder.file("public.pem").display().to_string()
    }

    pub(crate) fn public_pem(&self) -> &[u8] {
        &self.public
    }

    /// Undoes the encryption, and the mixing with the scramble.
    pub(crate) fn decrypt(&self, cipher: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args("pkeyutl -decrypt -inkey key.pem -pkeyopt rsa_padding_mode:oaep".split(' '))
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(cipher).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        output.stdout.iter().zip(SCRAMBLE.iter().cycle()).map(|(a, b)| a ^ b).collect()
    }
}

fn server_config(certificates: &Certificates) -> Arc<rustls::ServerConfig> {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_file(certificates.file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificates.file("server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config)
}
