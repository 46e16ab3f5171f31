//! Who may look: the secret of the page, and the names by which it may be addressed.
//!
//! The page listens on this machine only, unless told otherwise, but every program and every web site
//! that is open on this machine reaches it there. So each request needs the token, and its `Host` must be a
//! name that no stranger can make point here (DNS rebinding).

use crate::ServeError;
use axum::http::{HeaderMap, Uri, header};
use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;

/// The shortest token that is accepted: what can be guessed is no secret.
const SHORTEST: usize = 16;
/// Bytes of a token that dyno draws.
const DRAWN: usize = 24;

/// The secret that opens the page. It is shown to nobody but the one who starts the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn draw() -> Result<Token, ServeError> {
        let mut bytes = [0; DRAWN];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(
            |error| {
                ServeError::new(
                    format!("The system has no random bytes for a token: {error}."),
                    "Give a token of your own in DYNO_SERVE_TOKEN.",
                )
            },
        )?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// A token of the user's own.
    ///
    /// # Errors
    /// When it is shorter than 16 characters or holds one that has a meaning in a URL or a cookie.
    pub fn own(text: &str) -> Result<Token, ServeError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        if text.len() < SHORTEST || !text.chars().all(fits) {
            return Err(ServeError::new(
                format!(
                    "The token must have at least {SHORTEST} characters: letters, digits and `-._~`."
                ),
                "`openssl rand -hex 24` makes one; without a token of your own dyno draws one.",
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
    /// It brought the token in its URL: the browser keeps it as a cookie and asks for this instead.
    Again(String),
    /// It was sent to a name that is not this server's.
    WrongHost,
    /// It brought no token, or a wrong one.
    NoToken,
}

#[derive(Clone, Debug)]
pub(crate) struct Gate {
    token: Token,
    cookie: String,
    names: Vec<String>,
}

impl Gate {
    /// `names` are allowed beside `localhost` and plain addresses. The port is part of the cookie's
    /// name: browsers don't keep apart the cookies of two servers on one machine.
    pub(crate) fn new(token: Token, port: u16, names: Vec<String>) -> Self {
        Gate { token, cookie: format!("dyno_token_{port}"), names }
    }

    pub(crate) fn judge(&self, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        if !host.or(uri.host()).is_some_and(|host| self.is_own(host)) {
            return Verdict::WrongHost;
        }
        let query = uri.query().unwrap_or_default();
        let given = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        if let Some(given) = given {
            return match self.token.is(given) {
                true => Verdict::Again(without_token(uri)),
                false => Verdict::NoToken,
            };
        }
        match self.has_token(headers) {
            true => Verdict::Welcome,
            false => Verdict::NoToken,
        }
    }

    /// The cookie that keeps the token. `Lax`: the page can be linked to, but no other site's page
    /// can have its parts loaded.
    pub(crate) fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Lax", self.cookie, self.token.expose())
    }

    fn is_own(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let bearer = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let cookie = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        });
        bearer.chain(cookie).any(|token| self.token.is(token))
    }
}

fn without_token(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default().split('&');
    let rest: Vec<&str> = query.filter(|pair| !pair.starts_with("token=")).collect();
    // Two slashes at the begin would be another host.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    match rest.is_empty() {
        true => path,
        false => format!("{path}?{}", rest.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    fn gate() -> Gate {
        let token = Token::own("0123456789abcdef").expect("long enough");
        Gate::new(token, 8000, vec!["bench-1".to_owned()])
    }

    fn judge(uri: &str, headers: &[(header::HeaderName, &str)]) -> Verdict {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value")));
        gate().judge(&uri.parse().expect("a URI"), &headers.collect())
    }

    #[test]
    fn the_token_opens_by_url_cookie_or_header() {
        let host = (header::HOST, "127.0.0.1:8000");
        let with = |name, value| judge("/", &[host.clone(), (name, value)]);
        assert_eq!(judge("/", from_ref(&host)), Verdict::NoToken);
        assert_eq!(
            judge("/?token=0123456789abcdef", from_ref(&host)),
            Verdict::Again("/".to_owned())
        );
        assert_eq!(
            judge("//evil.example/x?a=1&token=0123456789abcdef&b=2", from_ref(&host)),
            Verdict::Again("/evil.example/x?a=1&b=2".to_owned())
        );
        assert_eq!(with(header::COOKIE, "a=b; dyno_token_8000=0123456789abcdef"), Verdict::Welcome);
        assert_eq!(with(header::COOKIE, "dyno_token_8001=0123456789abcdef"), Verdict::NoToken);
        assert_eq!(with(header::AUTHORIZATION, "Bearer 0123456789abcdef"), Verdict::Welcome);
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
    fn only_names_that_nobody_else_can_point_here_are_answered() {
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
        let (one, two) = (Token::draw().expect("drawn"), Token::draw().expect("drawn"));
        assert!(one != two && one.expose().len() == 48);
        assert_eq!(format!("{one:?}"), "Token");
        for bad in ["short", "0123456789 abcdef", "0123456789;abcdef"] {
            assert!(Token::own(bad).is_err(), "{bad}");
        }
    }
}
