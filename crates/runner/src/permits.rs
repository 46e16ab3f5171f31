//! Addresses that a load generator may reach, by its own user's permission: whoever may publish to its subjects names
//! the addresses at which it logs in with the passwords that it finds.

use crate::databases::cluster_nodes;
use crate::failure::{Failure, Result};
use dyno_drivers::net::Address;
use dyno_drivers::target::TargetUrl;
use dyno_facts::{SecretUrl, TargetFacts};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The prefix of the folder of a cluster of `dyno cluster`.
const CLUSTER: &str = "cluster:";

/// Options of a URL by which passwords go out readable to who listens or pretends to be the server.
const CLEARS: [&str; 2] = ["allow_cleartext", "get_server_public_key"];

#[derive(Clone, Debug, Default)]
pub struct Permits {
    /// Addresses; all that are reached over TCP where its user has named none.
    places: Option<Vec<Place>>,
    /// URLs with passwords, of clusters that its user has named.
    pub(super) cluster_urls: Vec<SecretUrl>,
    /// Set if Lua scripts of runs are executed.
    scripts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A host, and its port unless all are meant.
    Tcp(String, Option<u16>),
    Socket(PathBuf),
}

impl Permits {
    /// Reads `HOST`, `HOST:PORT`, the path of a socket or `cluster:FOLDER`; without any, nothing is forbidden
    /// that is reached over TCP. `scripts`: Lua scripts of runs are executed, which may do what the process may.
    pub fn new(named: &[String], scripts: bool) -> Result<Self> {
        let mut permits = Permits { scripts, ..Permits::default() };
        for text in named.iter().map(|text| text.trim()) {
            let mut places = permits.places.take().unwrap_or_default();
            match text.strip_prefix(CLUSTER) {
                Some(folder) => {
                    for node in cluster_nodes(folder)? {
                        let target: TargetUrl = node.url.expose().parse()?;
                        places.extend(target.hosts.0.iter().map(Place::from_address));
                        permits.cluster_urls.push(node.url);
                    }
                }
                None => places.push(Place::parse(text)?),
            }
            permits.places = Some(places);
        }
        Ok(permits)
    }

    /// Reads what [`Permits::named`] has written on another machine.
    pub(super) fn parse_named(named: &[String]) -> Result<Self> {
        let places: Vec<Place> =
            named.iter().map(|text| Place::parse(text)).collect::<Result<_, _>>()?;
        Ok(Permits { places: (!places.is_empty()).then_some(places), ..Permits::default() })
    }

    /// The named addresses as texts, which `parse_named` reads on another machine.
    pub fn named(&self) -> Vec<String> {
        self.places.iter().flatten().map(Place::to_string).collect()
    }

    pub(super) fn check_scripts(&self) -> Result<()> {
        if self.scripts {
            return Ok(());
        }
        let message = "The load generator may not execute Lua scripts of runs.";
        Err(Failure::new(message).with_hint(
            "A script may do what the load generator's user may. If that is meant, start it again with \
             --allow-scripts.",
        ))
    }

    /// Looks whether the passwords found in `places`, which belong to no address, can go to named addresses only.
    pub fn bind_passwords(&self, places: &[String]) -> Result<()> {
        let Some(place) = places.first() else { return Ok(()) };
        let reason = match &self.places {
            None => "nothing says to which servers it may be sent",
            Some(places) if places.iter().any(|place| matches!(place, Place::Tcp(_, None))) => {
                "--only-hosts names a host without its port"
            }
            Some(_) => return Ok(()),
        };
        Err(Failure::usage(format!("There is a password in {place}, and {reason}.")).with_hint(
            "Name the servers with --only-hosts HOST:PORT, or start the load generator without the password.",
        ))
    }

    /// Looks whether all that a target is reached by may be.
    pub(super) fn check(&self, target: &TargetFacts) -> Result<()> {
        let target_url = target.nodes.is_empty().then(|| target.url_in(Path::new("")));
        for url in target.nodes.iter().map(|node| node.url.clone()).chain(target_url) {
            let place: TargetUrl = url.expose().parse()?;
            if place.options.contains_key("passfile") {
                let message = "A load generator opens no password file that a run names.";
                let hint = "PGPASSFILE names it on the load generator's own machine.";
                return Err(Failure::new(message).with_hint(hint));
            }
            if let Some(key) = CLEARS.into_iter().find(|key| place.options.contains_key(*key)) {
                let message =
                    format!("A load generator sends no password as `{key}` would have it.");
                return Err(Failure::new(message)
                    .with_hint("Leave it out of the URL: with TLS it is not needed."));
            }
            let forbidden = place.hosts.0.iter().find(|address| match &self.places {
                Some(places) => !places.iter().any(|place| place.matches(address)),
                // Behind a socket the server may take this process's user for its password.
                None => !matches!(address, Address::Tcp { .. }),
            });
            if let Some(address) = forbidden {
                return Err(self.refuse_address(address));
            }
        }
        Ok(())
    }

    fn refuse_address(&self, address: &Address) -> Failure {
        let reason = match &self.places {
            Some(_) => "its user has started it with --only-hosts and has not named this address",
            None => "its user has not named this socket with --only-hosts",
        };
        Failure::new(format!("The load generator may not reach {address}: {reason}.")).with_hint(
            format!(
                "If it should, its user starts it again with {address} among --only-hosts. Nothing \
                 else on its machine or here changes that."
            ),
        )
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(host, None) => f.write_str(host),
            Place::Tcp(host, Some(port)) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Place::Tcp(host, Some(port)) => write!(f, "{host}:{port}"),
            Place::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Place {
    fn from_address(address: &Address) -> Place {
        match address {
            Address::Tcp { host, port } => Place::Tcp(host.clone(), Some(*port)),
            Address::Unix(path) => Place::Socket(path.clone()),
        }
    }

    /// Reads `HOST`, `HOST:PORT`, `[IPv6]:PORT`, or the path of a socket.
    fn parse(text: &str) -> Result<Place> {
        if text.starts_with('/') {
            return Ok(Place::Socket(text.into()));
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| refuse_place(text))?;
                match port.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if port.is_empty() => (host, None),
                    None => return Err(refuse_place(text)),
                }
            }
            // An IPv6 address without brackets has no port.
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let mut letters = host.chars();
        if host.is_empty() || !letters.all(|c| c.is_ascii_alphanumeric() || "-._:%".contains(c)) {
            return Err(refuse_place(text));
        }
        let port = port.map(|port| {
            port.parse().ok().filter(|port| *port > 0).ok_or_else(|| refuse_place(text))
        });
        Ok(Place::Tcp(host.to_owned(), port.transpose()?))
    }

    /// Returns true if this is the address, or a host without a port that is the host of the address.
    fn matches(&self, address: &Address) -> bool {
        match (self, address) {
            (Place::Socket(path), Address::Unix(other)) => path == other,
            (Place::Tcp(host, port), Address::Tcp { host: other, port: to }) => {
                // As they are written: names are not looked up, so that no name server decides over this.
                let is_same_host = match (host.parse::<IpAddr>(), other.parse::<IpAddr>()) {
                    (Ok(host), Ok(other)) => host == other,
                    _ => host.eq_ignore_ascii_case(other),
                };
                is_same_host && port.is_none_or(|port| port == *to)
            }
            _ => false,
        }
    }
}

fn refuse_place(text: &str) -> Failure {
    Failure::usage(format!("--only-hosts can't be `{text}`."))
        .with_hint("Write HOST, HOST:PORT, [::1]:PORT, the path of a socket or cluster:FOLDER.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_suite::{Overrides, Plan, Suite};

    fn new_target(url: &str) -> TargetFacts {
        let suite = format!(
            "[suite]\nname = 's'\n[target.t]\nurl = '{url}'\n[[experiment]]\nname = 'e'\nworkload = \
             'sysbench'\ntest = 'oltp_read_only'\nworkers = 1\nduration_s = 5\n"
        );
        let suite = Suite::parse("s.toml", &suite, &[dyno_sysbench::OFFER]).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        plan.target("t").expect("the target").clone()
    }

    fn new_permits(named: &[&str]) -> Permits {
        let addresses: Vec<String> = named.iter().map(|&text| text.to_owned()).collect();
        Permits::new(&addresses, false).expect("addresses")
    }

    #[test]
    fn only_what_was_named_may_be_reached() {
        let permits =
            new_permits(&["db.example", "10.0.0.1:3307", "[::1]:5432", "fe80::1", "/run/m.sock"]);
        let received = Permits::parse_named(&permits.named()).expect("addresses");
        assert_eq!(received.places, permits.places);
        assert!(
            Permits::parse_named(&["cluster:x".to_owned()]).is_err(),
            "no folder of this machine"
        );
        for url in [
            "mysql://u@DB.example/d",
            "mysql://u@db.example:3310/d",
            "mysql://u@10.0.0.1:3307/d",
            "postgres://u@[0:0::1]/d",
            "postgres://u@[fe80::1]:6000,db.example/d",
            "mysql://u@/d?socket=/run/m.sock",
        ] {
            assert!(permits.check(&new_target(url)).is_ok(), "{url}");
        }
        for url in [
            "mysql://u@10.0.0.1/d",
            "mysql://u@db.example.org/d",
            "mysql://u@db.example,evil/d",
            "postgres://u@db.example/d?host=evil",
            "postgres://u@[::1]:5433/d",
            "mysql://u@/d",
            "mysql://u@db.example/d?socket=/run/other.sock",
            "postgres:///d?host=/run/m.sock",
        ] {
            assert!(permits.check(&new_target(url)).is_err(), "{url}");
        }
        let refusal =
            permits.check(&new_target("mysql://u:geheim@evil:1/d")).expect_err("not named");
        assert_eq!(
            refusal.message,
            "The load generator may not reach evil:1: its user has started it with --only-hosts and has \
             not named this address."
        );
    }

    #[test]
    fn sockets_and_password_files_are_named_by_the_own_user_only() {
        let any = new_permits(&[]);
        assert!(any.check(&new_target("mysql://u@anywhere:1/d")).is_ok());
        for url in ["mysql://root@/d?socket=/run/m.sock", "postgres:///d?host=/run/postgresql"] {
            assert!(any.check(&new_target(url)).is_err(), "{url}");
        }
        for permits in [any, new_permits(&["h"])] {
            let refusal =
                permits.check(&new_target("postgres://u@h/d?passfile=/root/x")).expect_err("no");
            assert!(
                refusal.message.to_string().contains("no password file"),
                "{}",
                refusal.message
            );
        }
    }

    #[test]
    fn passwords_need_addresses_with_ports() {
        let variables = ["DYNO_PASSWORD_MAIN".to_owned()];
        for (named, is_fine) in [
            (&[][..], false),
            (&["db.example"], false),
            (&["db.example:3306", "10.0.0.1"], false),
            (&["db.example:3306"], true),
            (&["/run/m.sock", "[::1]:5432"], true),
        ] {
            let permits = new_permits(named);
            assert_eq!(permits.bind_passwords(&variables).is_ok(), is_fine, "{named:?}");
            assert!(permits.bind_passwords(&[]).is_ok(), "none is there");
        }
        let message =
            new_permits(&[]).bind_passwords(&variables).expect_err("anywhere").message.to_string();
        assert!(message.contains("DYNO_PASSWORD_MAIN"), "{message}");
    }

    #[test]
    fn no_order_has_a_password_sent_in_clear_text() {
        for option in ["allow_cleartext=true", "get-server-public-key=true"] {
            let target = new_target(&format!("mysql://u@h/d?{option}"));
            let message = new_permits(&["h"]).check(&target).expect_err(option).message.to_string();
            assert!(message.contains("sends no password"), "{message}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["", "h:", "h:0", "h:70000", "[::1", "[::1]3", "http://h", "u@h", "cluster:/nowhere"]
        {
            assert!(Permits::new(&[text.to_owned()], false).is_err(), "{text}");
        }
    }
}
