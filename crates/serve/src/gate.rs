//! Access to the page: its secret, and the names by which it may be addressed.
//!
//! The page listens on this machine only, unless told otherwise, but every program and every web site
//! that is open on this machine reaches it there. So each request needs the token, and its `Host` must be a
//! name that no stranger can make point here (DNS rebinding).

use crate::ServeError;
use axum::http::{HeaderMap, Uri, header};
use dyno_core::hex;
use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;

/// The shortest token that is accepted: what can be guessed is not a secret.
const SHORTEST: usize = 16;
/// Bytes of a token that dyno draws.
const DRAWN: usize = 24;
/// Seconds that a browser keeps the cookie; the server takes it until it ends.
const COOKIE_LASTS_S: u32 = 12 * 3600;
/// Addresses that make papers, which takes a processor for seconds: only the page's user may ask for them.
const COSTLY: [&str; 3] = ["/paper", "/compare", "/api/compare"];

/// The secret that opens the page. It is shown to no one but the one who starts the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Draws a token.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn generate() -> Result<Token, ServeError> {
        let mut bytes = [0; DRAWN];
        let flags = rustix::rand::GetRandomFlags::empty();
        rustix::rand::getrandom(&mut bytes, flags).map_err(|error| {
            ServeError::new(format!("The system has no random bytes for a token: {error}."))
                .with_hint("Set your own token in DYNO_SERVE_TOKEN.")
        })?;
        Ok(Token(hex(&bytes)))
    }

    /// The token that the user has chosen.
    ///
    /// # Errors
    /// When it is shorter than 16 characters or holds one that has a meaning in a URL or a cookie.
    pub fn own(text: &str) -> Result<Token, ServeError> {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
        if text.len() < SHORTEST || !is_plain {
            let message = format!(
                "The token must have at least {SHORTEST} characters: letters, digits and `-._~`."
            );
            return Err(ServeError::new(message).with_hint(
                "`openssl rand -hex 24` makes one; without your own token dyno draws one.",
            ));
        }
        Ok(Token(text.to_owned()))
    }

    /// The token itself, for the one URL that is shown.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Takes as long for a token that is nearly right as for one that is all wrong.
    fn is(&self, other: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), other.as_bytes());
        let differing = own
            .iter()
            .enumerate()
            .fold(0, |sum, (at, byte)| black_box(sum | (byte ^ other.get(at).unwrap_or(&0))));
        differing == 0 && own.len() == other.len()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Welcome,
    /// Brought the token in its URL: the browser keeps it as a cookie and asks for this instead.
    Again(String),
    /// Was sent to a name that is not this server's.
    WrongHost,
    /// Brought no token, or a wrong one.
    NoToken,
    /// A page of another site may have sent it.
    OtherSite,
}

#[derive(Clone)]
pub(crate) struct Gate {
    token: Token,
    /// The value of the cookie of all browsers: drawn for this server, so no other server takes it, nor a later one.
    cookie: Token,
    port: u16,
    names: Vec<String>,
}

impl Gate {
    /// `names` are allowed alongside `localhost` and plain addresses.
    pub(crate) fn new(token: Token, port: u16, names: Vec<String>) -> Result<Self, ServeError> {
        Ok(Gate { token, cookie: Token::generate()?, port, names })
    }

    /// Decides how to answer a request, from the name it was sent to, its token, and the page that it comes from.
    pub(crate) fn judge(&self, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let host = header_text(headers, &header::HOST).or(uri.host()).unwrap_or_default();
        if !self.is_allowed_host(host) {
            return Verdict::WrongHost;
        }
        let query = uri.query().unwrap_or_default();
        let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        if let Some(token) = token {
            return if self.token.is(token) {
                Verdict::Again(without_token(uri))
            } else {
                Verdict::NoToken
            };
        }
        if self.has_token(headers) {
            return Verdict::Welcome;
        }
        if !self.has_cookie(headers) {
            Verdict::NoToken
        } else if COSTLY.contains(&uri.path()) && !is_own_click(headers, host) {
            Verdict::OtherSite
        } else {
            Verdict::Welcome
        }
    }

    /// The cookie of a browser that has brought the token. `Lax`: the page can be linked to, but no other site's page
    /// can have its parts loaded.
    pub(crate) fn set_cookie(&self) -> String {
        let (name, value) = (self.cookie_name(), self.cookie.expose());
        format!("{name}={value}; Path=/; Max-Age={COOKIE_LASTS_S}; HttpOnly; SameSite=Lax")
    }

    /// Browsers don't keep apart the cookies of two servers on one machine, so the port is part of the name.
    fn cookie_name(&self) -> String {
        format!("dyno_page_{}", self.port)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|it| it.trim().split_once('='));
        pairs.any(|(own, value)| own == name && self.cookie.is(value))
    }

    fn is_allowed_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let mut bearer = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        bearer.any(|token| self.token.is(token))
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns true if the user has asked for this in the page or in the browser's address bar. Browsers tell this machine;
/// to others, without encryption, only the page that was left tells.
fn is_own_click(headers: &HeaderMap, host: &str) -> bool {
    match header_text(headers, &header::HeaderName::from_static("sec-fetch-site")) {
        Some(site) => site == "same-origin" || site == "none",
        None => {
            let referer = header_text(headers, &header::REFERER).unwrap_or_default();
            referer
                .strip_prefix("http://")
                .and_then(|referer| referer.strip_prefix(host))
                .is_some_and(|path| path.starts_with('/'))
        }
    }
}

fn without_token(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default().split('&');
    let parameters: Vec<&str> = query.filter(|pair| !pair.starts_with("token=")).collect();
    // Two slashes at the begin would be another host.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    if parameters.is_empty() { path } else { format!("{path}?{}", parameters.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    /// A gate with a token of 16 characters, on port 8000, that also answers to `bench-1`.
    fn gate() -> Gate {
        let token = Token::own("0123456789abcdef").expect("long enough");
        Gate::new(token, 8000, vec!["bench-1".to_owned()]).expect("random bytes")
    }

    fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
        pairs.collect()
    }

    /// The verdict of [`gate`] on a request.
    fn judge(uri: &str, headers: &[(header::HeaderName, &str)]) -> Verdict {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value")));
        gate().judge(&uri.parse().expect("a URI"), &headers.collect())
    }

    #[test]
    fn the_token_opens_by_url_cookie_or_header() {
        let host = (header::HOST, "127.0.0.1:8000");
        assert_eq!(judge("/", from_ref(&host)), Verdict::NoToken);
        assert_eq!(
            judge("/?token=0123456789abcdef", from_ref(&host)),
            Verdict::Again("/".to_owned())
        );
        assert_eq!(
            judge("//evil.example/x?a=1&token=0123456789abcdef&b=2", from_ref(&host)),
            Verdict::Again("/evil.example/x?a=1&b=2".to_owned())
        );
        let cookie = (header::COOKIE, "a=b; dyno_page_8000=0123456789abcdef");
        assert_eq!(judge("/", &[host.clone(), cookie]), Verdict::NoToken);
        let bearer = (header::AUTHORIZATION, "Bearer 0123456789abcdef");
        assert_eq!(judge("/", &[host, bearer]), Verdict::Welcome);
    }

    #[test]
    fn a_cookie_is_not_the_token_and_belongs_to_its_server() {
        let (gate, root) = (gate(), "/".parse().expect("a URI"));
        let set = gate.set_cookie();
        let (cookie, rest) = set.split_once(';').expect("attributes");
        assert!(!set.contains("0123456789abcdef") && rest.contains("Max-Age=43200"), "{set}");
        let restarted = Gate { cookie: Token::generate().expect("drawn"), ..gate.clone() };
        for (gate, cookie, verdict, origin) in [
            (&gate, cookie.to_owned(), Verdict::Welcome, "its own"),
            (&gate, cookie.replace("_8000=", "_8001="), Verdict::NoToken, "another port's"),
            (&gate, format!("{cookie}0"), Verdict::NoToken, "forged"),
            (&restarted, cookie.to_owned(), Verdict::NoToken, "another server's"),
        ] {
            let headers = header_map(&[("host", "localhost:8000"), ("cookie", cookie.as_str())]);
            assert_eq!(gate.judge(&root, &headers), verdict, "{origin}");
        }
    }

    #[test]
    fn papers_are_not_made_on_a_click_on_another_site() {
        let gate = gate();
        let set = gate.set_cookie();
        let cookie = set.split(';').next().expect("a cookie");
        let judge = |uri: &str, more: (&str, &str)| {
            let headers = header_map(&[("host", "10.0.0.9:8000"), ("cookie", cookie), more]);
            gate.judge(&uri.parse().expect("a URI"), &headers)
        };
        for path in COSTLY {
            for site in ["cross-site", "same-site"] {
                assert_eq!(judge(path, ("sec-fetch-site", site)), Verdict::OtherSite, "{path}");
            }
            for site in ["same-origin", "none"] {
                assert_eq!(judge(path, ("sec-fetch-site", site)), Verdict::Welcome, "{path}");
            }
            for other in ["http://10.0.0.9:80001/", "http://evil.example/10.0.0.9:8000/", ""] {
                assert_eq!(judge(path, ("referer", other)), Verdict::OtherSite, "{other}");
            }
            let same_site = ("referer", "http://10.0.0.9:8000/history");
            assert_eq!(judge(path, same_site), Verdict::Welcome);
        }
        assert_eq!(judge("/history", ("sec-fetch-site", "cross-site")), Verdict::Welcome);
        let bearer =
            header_map(&[("host", "localhost"), ("authorization", "Bearer 0123456789abcdef")]);
        assert_eq!(gate.judge(&"/paper".parse().expect("a URI"), &bearer), Verdict::Welcome);
    }

    #[test]
    fn a_wrong_token_stays_outside() {
        let host = (header::HOST, "localhost:8000");
        for wrong in ["", "0", "0123456789abcdeX", "0123456789abcdef0", "0123456789abcde"] {
            let by_url = judge(&format!("/?token={wrong}"), from_ref(&host));
            let bearer = format!("Bearer {wrong}");
            let by_header = judge("/", &[host.clone(), (header::AUTHORIZATION, &bearer)]);
            assert_eq!((by_url, by_header), (Verdict::NoToken, Verdict::NoToken), "{wrong}");
        }
    }

    #[test]
    fn only_names_that_no_stranger_can_point_here_are_answered() {
        let welcome = "Bearer 0123456789abcdef";
        let from =
            |host: &str| judge("/", &[(header::HOST, host), (header::AUTHORIZATION, welcome)]);
        for own in
            ["127.0.0.1", "127.0.0.1:1", "localhost:8000", "[::1]:8000", "BENCH-1", "10.0.0.9"]
        {
            assert_eq!(from(own), Verdict::Welcome, "{own}");
        }
        for other in ["", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[evil]"] {
            assert_eq!(from(other), Verdict::WrongHost, "{other}");
        }
        assert_eq!(judge("/", &[(header::AUTHORIZATION, welcome)]), Verdict::WrongHost);
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, two) = (Token::generate().expect("drawn"), Token::generate().expect("drawn"));
        assert!(one != two && one.expose().len() == 48);
        assert_eq!(format!("{one:?}"), "Token");
        for bad in ["short", "0123456789 abcdef", "0123456789;abcdef"] {
            assert!(Token::own(bad).is_err(), "{bad}");
        }
    }
}
