//! The fleet that a run asks for, and the passwords that its load generators need.

use dyno_facts::SecretUrl;
use dyno_fleet::{FleetOptions, TargetSecret};

/// What a run does when a load generator is lost in a trial, which fails then in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLostGenerator {
    /// It goes on with those that are left.
    #[default]
    Continue,
    /// It ends.
    Fail,
}

#[derive(Clone, Debug)]
pub struct Muster {
    pub options: FleetOptions,
    pub lost: OnLostGenerator,
}

/// The passwords of a target and its nodes that this process knows from URLs and variables.
pub fn secrets(target: &dyno_facts::TargetFacts, run: &std::path::Path) -> Vec<TargetSecret> {
    let of_target = std::env::var(target.password_variable()).ok();
    let secret = |node: Option<&dyno_facts::TargetNode>, url: SecretUrl| {
        let own = node.and_then(|node| std::env::var(target.node_password_variable(node)).ok());
        let known = own.or_else(|| of_target.clone()).filter(|password| !password.is_empty());
        let url = match known.filter(|_| !url.has_password()) {
            Some(password) => with_password(url.expose(), &password)?,
            None if !url.has_password() => return None,
            None => url.expose().to_owned(),
        };
        let node = node.map(|node| node.name.clone());
        Some(TargetSecret { target: target.name.clone(), node, url })
    };
    if target.nodes.is_empty() {
        return secret(None, target.url_in(run)).into_iter().collect();
    }
    target.nodes.iter().filter_map(|node| secret(Some(node), node.url.clone())).collect()
}

/// The URL with a password; `None` where it names no user, to whom it could belong.
fn with_password(url: &str, password: &str) -> Option<String> {
    let begin = url.find("://")? + 3;
    let user_end = begin + url[begin..].rfind('@')?;
    let mut encoded = String::new();
    for byte in password.bytes() {
        match byte.is_ascii_alphanumeric() {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(format!("{}:{encoded}{}", &url[..user_end], &url[user_end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_encoded_into_urls() {
        let url = with_password("mysql://dyno@h:1/d?a=b", "p@s/s:%");
        assert_eq!(url.as_deref(), Some("mysql://dyno:p%40s%2Fs%3A%25@h:1/d?a=b"));
        assert_eq!(with_password("mysql://h:1/d", "x"), None);
        assert_eq!(with_password("sqlite:a.db", "x"), None);
    }
}
