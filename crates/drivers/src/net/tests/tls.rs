//! TLS against a server thread with certificates made for the test.

use super::super::*;
use dyno_core::{Cause, DbResult, SECOND};
use dyno_reactor::{block_on, now};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tempfile::TempDir;

/// A CA, and a server certificate for `localhost` that it signed.
struct Papers {
    folder: TempDir,
    ca: CertifiedIssuer<'static, KeyPair>,
    server: ServerConfig,
}

impl Papers {
    fn new(ask_client: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.path().join("ca.pem"), ca.pem()).unwrap();

        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let cert = params.signed_by(&key, &ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if ask_client {
            let mut roots = RootCertStore::empty();
            roots.add(ca.der().clone()).unwrap();
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                provider,
            );
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let server = builder.with_single_cert(vec![cert.der().clone()], private).unwrap();
        Papers { folder, ca, server }
    }

    /// Path of a certificate or a key.
    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.path().join(name))
    }

    fn write_client(&self) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.ca).unwrap();
        std::fs::write(self.folder.path().join("client.pem"), cert.pem()).unwrap();
        std::fs::write(self.folder.path().join("client.key"), key.serialize_pem()).unwrap();
    }

    /// Serves one connection: echoes `ping` and then 200,000 bytes, and leaves.
    fn serve(&self) -> (ServerHost, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = Arc::new(self.server.clone());
        let thread = std::thread::spawn(move || {
            let socket = listener.accept().unwrap().0;
            let tls = ServerConnection::new(config).unwrap();
            let mut stream = StreamOwned::new(tls, socket);
            let mut buffer = vec![0; 200_000];
            for length in [4, 200_000] {
                // A client that refuses the certificate ends the stream here.
                if stream.read_exact(&mut buffer[..length]).is_err() {
                    return;
                }
                stream.write_all(&buffer[..length]).unwrap();
            }
        });
        let hosts = Hosts(vec![Address::Tcp { host: "127.0.0.1".to_owned(), port }]);
        (hosts.servers().unwrap().pick(0).clone(), thread)
    }

    /// Connects as `options` say, pretending that the host is called `name`.
    fn talk(&self, options: &TlsOptions, name: &str) -> DbResult<()> {
        let config = TlsConfig::new(options)?;
        let (host, server) = self.serve();
        let result = block_on(async {
            let due = now() + 10 * SECOND;
            let mut transport = Transport::connect(&host, due).await?;
            before(due, &host.address, converse(&mut transport, &config, name)).await
        });
        server.join().unwrap();
        result.unwrap()
    }
}

/// Starts TLS and checks that bytes come back.
async fn converse(transport: &mut Transport, config: &TlsConfig, name: &str) -> DbResult<()> {
    transport.start_tls(config, name).await?;
    assert!(transport.is_tls());
    assert!(transport.is_tls());
    let mut inbox = Inbox::new(1 << 20);
    for length in [4, 200_000] {
        let pattern: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        transport.send(&pattern).await?;
        while inbox.filled().len() < length {
            transport.recv(&mut inbox).await?;
        }
        assert_eq!(inbox.filled(), pattern);
        inbox.consume(length);
    }
    let error = transport.recv(&mut inbox).await.unwrap_err();
    assert_eq!(error.cause(), Cause::Lost);
    Ok(())
}

fn options(mode: TlsMode, ca: Option<PathBuf>) -> TlsOptions {
    TlsOptions { mode, ca, ..TlsOptions::default() }
}

#[test]
fn unverified_modes_take_any_certificate() {
    let papers = Papers::new(false);
    papers.talk(&options(TlsMode::Prefer, None), "elsewhere").unwrap();
    papers.talk(&options(TlsMode::Require, None), "127.0.0.1").unwrap();
}

/// Item 1: everybody can have a server's certificate, and bind a log-in to it.
#[test]
fn a_certificate_without_its_key_is_refused_where_the_key_must_be_proven() {
    let mut papers = Papers::new(false);
    let key_pair = KeyPair::generate().unwrap();
    let private_key = PrivateKeyDer::Pkcs8(key_pair.serialize_der().into());
    let provider = rustls::crypto::ring::default_provider();
    let key = provider.key_provider.load_private_key(private_key).unwrap();
    let mixed = CertifiedKey::new(vec![papers.ca.der().clone()], key);
    papers.server.cert_resolver = Arc::new(SingleCertAndKey::from(mixed));
    papers.talk(&options(TlsMode::Require, None), "localhost").unwrap();
    let proven = TlsOptions { proves_key: true, ..options(TlsMode::Require, None) };
    let error = papers.talk(&proven, "localhost").unwrap_err();
    assert_eq!(error.cause(), Cause::Tls, "{error}");
    Papers::new(false).talk(&proven, "elsewhere").unwrap();
}

#[test]
fn the_chain_is_verified_and_in_full_mode_the_name_too() {
    let papers = Papers::new(false);
    let ca = papers.file("ca.pem");
    papers.talk(&options(TlsMode::VerifyFull, ca.clone()), "localhost").unwrap();
    papers.talk(&options(TlsMode::VerifyCa, ca.clone()), "elsewhere").unwrap();

    let error = papers.talk(&options(TlsMode::VerifyFull, ca), "elsewhere").unwrap_err();
    assert_eq!(error.cause(), Cause::Tls);
    assert!(error.hint().unwrap().contains("verify-ca"), "{error}");

    let stranger = Papers::new(false);
    // A CA makes `require` verify, as in libpq.
    for mode in [TlsMode::VerifyCa, TlsMode::VerifyFull, TlsMode::Require] {
        let error = papers.talk(&options(mode, stranger.file("ca.pem")), "localhost").unwrap_err();
        assert_eq!(error.cause(), Cause::Tls);
        assert!(error.message().starts_with("TLS with localhost failed"), "{error}");
    }
}

/// A server with a self-signed certificate, which `ca.pem` holds.
fn self_signed(params: CertificateParams) -> Papers {
    let mut papers = Papers::new(false);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(papers.folder.path().join("ca.pem"), certificate.pem()).unwrap();
    let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let private = rustls::crypto::ring::default_provider().key_provider.load_private_key(private);
    let chain = vec![certificate.der().clone()];
    let certified_key = CertifiedKey::new(chain, private.unwrap());
    papers.server.cert_resolver = Arc::new(SingleCertAndKey::from(certified_key));
    papers
}

#[test]
fn the_servers_own_certificate_may_be_the_trusted_one() {
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = is_ca;
        let papers = self_signed(params);
        let ca = papers.file("ca.pem");
        papers.talk(&options(TlsMode::Require, ca.clone()), "elsewhere").unwrap();
        papers.talk(&options(TlsMode::VerifyFull, ca.clone()), "localhost").unwrap();
        papers.talk(&options(TlsMode::VerifyFull, ca), "elsewhere").unwrap_err();
    }
}

#[test]
fn a_name_that_is_no_alternative_name_gets_a_remedy() {
    let papers = self_signed(CertificateParams::new(Vec::new()).unwrap());
    let verified = options(TlsMode::VerifyFull, papers.file("ca.pem"));
    let error = papers.talk(&verified, "localhost").unwrap_err();
    assert!(error.hint().unwrap().contains("subjectAltName"), "{error}");
}

#[test]
fn client_certificates_are_shown_when_asked_for() {
    let papers = Papers::new(true);
    papers.write_client();
    let with = TlsOptions {
        mode: TlsMode::Require,
        cert: papers.file("client.pem"),
        key: papers.file("client.key"),
        ..TlsOptions::default()
    };
    papers.talk(&with, "localhost").unwrap();
    let error = papers.talk(&options(TlsMode::Require, None), "localhost").unwrap_err();
    assert!(error.hint().unwrap().contains("client certificate"), "{error:?} {:?}", error.hint());
}

#[test]
fn unusable_files_are_named() {
    let papers = Papers::new(false);
    let refusal_message =
        |options: TlsOptions| TlsConfig::new(&options).unwrap_err().message().to_owned();
    let missing = refusal_message(options(TlsMode::VerifyCa, Some("/no/such.pem".into())));
    assert!(missing.contains("/no/such.pem"), "{missing}");
    let empty = papers.folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing here").unwrap();
    let empty_message = refusal_message(options(TlsMode::VerifyCa, Some(empty.clone())));
    assert!(empty_message.contains("holds no certificate"), "{empty_message}");
    let lone = TlsOptions { cert: Some(Path::new("/c").into()), ..TlsOptions::default() };
    assert!(refusal_message(lone).contains("a client certificate without its private key"));
    let bad_key =
        TlsOptions { cert: papers.file("ca.pem"), key: Some(empty), ..TlsOptions::default() };
    assert!(refusal_message(bad_key).contains("private key"));
    assert!(TlsConfig::new(&options(TlsMode::Disable, Some("/no/such".into()))).is_ok());
}
