//! TLS settings, and trust in a server's certificate.

use dyno_core::{DbError, DbResult};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

dyno_core::named! {
    /// The modes of libpq's `sslmode`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TlsMode {
        Disable = "disable",
        /// Only after the server refuses a connection without it (PostgreSQL only).
        Allow = "allow",
        /// When the server offers it, with an unchecked certificate; the default of both servers' own clients.
        #[default]
        Prefer = "prefer",
        /// Always, with an unchecked certificate; with a CA `VerifyCa`, as in libpq.
        Require = "require",
        /// Always, with a certificate that a trusted CA has signed.
        VerifyCa = "verify-ca",
        /// Always, with a certificate that a trusted CA has signed for this host name.
        VerifyFull = "verify-full",
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    pub mode: TlsMode,
    /// PEM file of trusted CAs, instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM file of the client's certificate chain; needs `key`.
    pub cert: Option<PathBuf>,
    /// PEM file of the client's private key; needs `cert`.
    pub key: Option<PathBuf>,
    /// The server proves that it has the key of its certificate, also of one that is not checked: without that a
    /// stranger can show the server's own.
    pub proves_key: bool,
}

/// Files read, CAs loaded; made once per driver.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    pub(crate) mode: TlsMode,
    /// A handshake proves that the server is the one that is meant.
    pub(super) verifies: bool,
    pub(super) client: Option<Arc<ClientConfig>>,
}

impl TlsConfig {
    /// Reads the files. Loads the system's CAs only if certificates are checked against them.
    pub fn new(options: &TlsOptions) -> DbResult<Self> {
        let mode = match options.mode {
            TlsMode::Require if options.ca.is_some() => TlsMode::VerifyCa,
            mode => mode,
        };
        let client = match mode {
            TlsMode::Disable => None,
            _ => Some(Arc::new(client_config(mode, options)?)),
        };
        let verifies = match mode {
            TlsMode::VerifyFull => true,
            // Any name will do there, and a public CA signs one for everybody.
            TlsMode::VerifyCa => options.ca.is_some(),
            _ => false,
        };
        Ok(TlsConfig { mode, verifies, client })
    }
}

fn client_config(mode: TlsMode, options: &TlsOptions) -> DbResult<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings_error =
        |error: Error| tls_error(format!("The TLS settings can't be used: {error}."));
    let mut verifier = Verifier {
        chain: None,
        trusted: Vec::new(),
        checks_name: mode == TlsMode::VerifyFull,
        proves_key: options.proves_key,
        provider: provider.clone(),
    };
    if matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull) {
        verifier.trusted =
            options.ca.as_deref().map(read_certificates).transpose()?.unwrap_or_default();
        let roots = Arc::new(load_roots(options.ca.as_deref(), &verifier.trusted)?);
        let chain = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
        verifier.chain =
            Some(chain.build().map_err(|error| {
                tls_error(format!("The CA certificates can't be used: {error}."))
            })?);
        verifier.proves_key = true;
    }
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(settings_error)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    match (&options.cert, &options.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let chain = read_certificates(cert)?;
            let private = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                tls_error(format!("The private key {} can't be read: {error}.", key.display()))
                    .with_hint("it must be a PEM file with an unencrypted private key")
            })?;
            builder.with_client_auth_cert(chain, private).map_err(settings_error)
        }
        _ => Err(tls_error(
            "The target has a client certificate without its private key, or a key alone.",
        )
        .with_hint("give both cert=FILE and key=FILE: a client certificate and its private key")),
    }
}

fn load_roots(ca: Option<&Path>, trusted: &[CertificateDer<'static>]) -> DbResult<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in trusted {
                roots.add(certificate.clone()).map_err(|error| {
                    let refusal =
                        format!("A CA certificate in {} is bad: {error}.", path.display());
                    match error {
                        Error::InvalidCertificate(problem) if is_unsupported_version(&problem) => {
                            tls_error(refusal).with_hint(VERSION_1)
                        }
                        _ => tls_error(refusal),
                    }
                })?;
            }
        }
        None => {
            let loaded = rustls_native_certs::load_native_certs();
            // Systems carry certificates that no library accepts; the others still count.
            roots.add_parsable_certificates(loaded.certs);
        }
    }
    if roots.is_empty() {
        return Err(tls_error("This system has no CA certificates.")
            .with_hint("install them (package ca-certificates) or give ca=FILE"));
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> DbResult<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>());
    let certificates = certificates.map_err(|error| {
        tls_error(format!("The certificate file {} can't be read: {error}.", path.display()))
            .with_hint("give the path of a PEM file that this user may read")
    })?;
    if certificates.is_empty() {
        return Err(tls_error(format!("The file {} holds no certificate.", path.display()))
            .with_hint("a PEM certificate begins with -----BEGIN CERTIFICATE-----"));
    }
    Ok(certificates)
}

const VERSION_1: &str = "a certificate of version 1 can't be checked: make one of version 3 with subjectAltName, such as by \
                         `openssl req -x509 -addext`, or use tls=require without a CA, which encrypts without checking it";
const NO_NAME: &str = "the certificate has a common name alone, which is not compared: make one with subjectAltName, or use \
                       tls=verify-ca, which does not check the name";

/// Returns true if the error is this one of the crate webpki, which dyno does not depend on.
fn is_webpki_error(problem: &CertificateError, name: &str) -> bool {
    matches!(problem, CertificateError::Other(OtherError(cause)) if cause.to_string() == name)
}

fn is_unsupported_version(problem: &CertificateError) -> bool {
    is_webpki_error(problem, "UnsupportedCertVersion")
}

/// Returns true if no trusted CA has signed the certificate; one that signs itself counts as a CA's.
fn is_untrusted(problem: &CertificateError) -> bool {
    *problem == CertificateError::UnknownIssuer || is_webpki_error(problem, "CaUsedAsEndEntity")
}

pub(super) fn explain_failure(error: &Error, host: &str) -> DbError {
    let mut sentence = format!("TLS with {host} failed: {error}.");
    let hint = match error {
        Error::InvalidCertificate(problem) if is_untrusted(problem) => {
            sentence = format!(
                "TLS with {host} failed: no CA that is trusted here has signed its certificate."
            );
            "give the CA that signed the server's certificate with ca=FILE"
        }
        Error::InvalidCertificate(problem) if is_unsupported_version(problem) => VERSION_1,
        Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented, ..
        }) if presented.is_empty() => NO_NAME,
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "connect by a name that is in the server's certificate, or use tls=verify-ca, which does not check the name"
        }
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "renew the server's certificate, and check the clocks of both machines",
        Error::InvalidCertificate(_) => {
            "tls=require encrypts without checking the server's certificate"
        }
        Error::AlertReceived(_) => {
            "the server may demand a client certificate: give cert=FILE and key=FILE"
        }
        _ => "the server must speak TLS 1.2 or 1.3; tls=disable connects without TLS",
    };
    tls_error(sentence).with_hint(hint)
}

fn tls_error(message: impl Into<String>) -> DbError {
    DbError::tls(0, *b"08001", message)
}

/// Checks what the mode asks for.
#[derive(Debug)]
struct Verifier {
    /// Without one, every certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Content of the file of CAs. As in OpenSSL, the server's own certificate may be among them.
    trusted: Vec<CertificateDer<'static>>,
    checks_name: bool,
    proves_key: bool,
    provider: Arc<CryptoProvider>,
}

macro_rules! check_signature {
    ($check:ident) => {
        fn $check(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            if !self.proves_key {
                return Ok(HandshakeSignatureValid::assertion());
            }
            let algorithms = &self.provider.signature_verification_algorithms;
            rustls::crypto::$check(message, cert, dss, algorithms)
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        let checked =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(Error::InvalidCertificate(problem)) = &checked else { return checked };
        match problem {
            // The name is checked last, so the chain is sound when only the name is wrong.
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
                if !self.checks_name => {}
            // Not signed by a CA, or one of a CA used by a server.
            CertificateError::UnknownIssuer | CertificateError::Other(_)
                if self.trusted.contains(end_entity) && !is_unsupported_version(problem) =>
            {
                if self.checks_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
            }
            _ => return checked,
        }
        Ok(ServerCertVerified::assertion())
    }

    // The signature of an unchecked certificate proves nothing; a check would only refuse servers with old (version 1)
    // certificates.
    check_signature!(verify_tls12_signature);
    check_signature!(verify_tls13_signature);

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
