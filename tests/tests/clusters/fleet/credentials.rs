//! Logging in to NATS: a file with credentials, a token. What proves who one is stays where it is.

use super::{READS, Stage, members};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use dyno_testkit::{
    MariaDb, Nats, RunningDyno, Scratch, dyno, dyno_command, server_or_skip, skipped,
};
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A signed statement of `issuer` about `subject`, in the form of NATS.
fn signed(issuer: &KeyPair, subject: &str, name: &str, nats: &Value) -> String {
    let head = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let claims = json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "sub": subject, "name": name,
        "nats": nats,
    });
    let encode = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(head), encode(claims));
    let signature = issuer.sign(text.as_bytes()).expect("the key has its seed");
    format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// An account that an operator vouches for, and the keys of both.
struct Authority {
    operator: KeyPair,
    account: KeyPair,
}

impl Authority {
    fn new() -> Self {
        Authority { operator: KeyPair::new_operator(), account: KeyPair::new_account() }
    }

    /// The settings of a server that lets users of the account in, and no one else.
    fn settings(&self) -> String {
        let operator = json!({ "type": "operator", "version": 2 });
        let operator = signed(&self.operator, &self.operator.public_key(), "operator", &operator);
        let limits = json!({
            "subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1, "payload": -1,
            "wildcards": true,
        });
        let account = json!({ "type": "account", "version": 2, "limits": limits });
        let id = self.account.public_key();
        let account = signed(&self.operator, &id, "account", &account);
        format!("operator: {operator}\nresolver: MEMORY\nresolver_preload: {{ {id}: {account} }}\n")
    }

    /// A file with the credentials of a new user, who may do what dyno needs; and the secret in it.
    fn user(&self, file: PathBuf) -> (String, String) {
        let user = KeyPair::new_user();
        let rights = json!({ "allow": ["dyno.>", "_INBOX.>"] });
        let claims = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": rights,
            "sub": rights,
        });
        let jwt = signed(&self.account, &user.public_key(), "user", &claims);
        let seed = user.seed().expect("a new key has its seed");
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        fs::write(&file, text).expect("written");
        (file.display().to_string(), seed)
    }
}

/// All that is written in a folder, and in those in it.
fn folder_texts(folder: &Path) -> String {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let texts = entries.map(|path| {
        if path.is_dir() {
            folder_texts(&path)
        } else {
            String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned()
        }
    });
    texts.collect()
}

#[test]
fn a_file_with_credentials_lets_in_and_is_not_shown() {
    let server = server_or_skip!(MariaDb, "NATS credentials");
    let scratch = Scratch::new();
    let authority = Authority::new();
    let settings = scratch.file("nats.conf");
    fs::write(&settings, authority.settings()).expect("written");
    let nats = match Nats::start_with("127.0.0.1", &["-c", &settings.display().to_string()]) {
        Ok(nats) => nats,
        Err(why) => return skipped("NATS credentials", &why),
    };
    let (creds, seed) = authority.user(scratch.file("dyno.creds"));
    let (foreign, _) = Authority::new().user(scratch.file("foreign.creds"));
    let url = nats.url("");
    for more in [&[][..], &["--nats-creds", &foreign]] {
        let arguments = [&["generator", "--nats", &url][..], more].concat();
        let output = dyno(scratch.path(), &arguments);
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stderr.contains("NATS can't be reached"), "{output}");
        assert!(output.stderr.contains("--nats-creds"), "{output}");
    }
    // A file that is something else is not told.
    let other_file = scratch.file("other");
    fs::write(&other_file, "geheim").expect("written");
    let other_file = other_file.display().to_string();
    let output = dyno(scratch.path(), &["generator", "--nats", &url, "--nats-creds", &other_file]);
    assert_eq!(output.code, 1, "{output}");
    assert!(
        output.stderr.contains("can't be used") && !output.to_string().contains("geheim"),
        "{output}"
    );

    let mut stage = Stage::new(&url, &[]);
    stage.add_with("a", &["--nats-creds", &creds]);
    let suite = stage.suite(&READS.replace("duration_s = 3", "duration_s = 1"));
    let output = stage.run(&suite, &server.url(), &["--nats-creds", &creds]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(members(&trial_json(&stage)).len(), 1);
    let command_line = fs::read(format!("/proc/{}/cmdline", stage.generators[0].process()));
    let command_line = String::from_utf8_lossy(&command_line.expect("it runs")).into_owned();
    assert!(command_line.contains("dyno.creds") && !command_line.contains(&seed), "{command_line}");
    // What both have said and stored.
    let texts = output.to_string() + &folder_texts(stage.scratch.path());
    let secrets = fs::read_to_string(&creds).expect("read");
    let secrets: Vec<&str> =
        secrets.lines().filter(|line| line.len() > 40 && !line.starts_with('-')).collect();
    assert_eq!(secrets.len(), 2, "a statement and a seed");
    assert!(secrets.iter().all(|secret| !texts.contains(secret)), "credentials are shown");
}

fn trial_json(stage: &Stage) -> Value {
    super::json(&stage.only_run().join("trials/1.json"))
}

#[test]
fn a_token_lets_in_from_the_environment_only() {
    let nats = match Nats::start_with("127.0.0.1", &["--auth", "geheim"]) {
        Ok(nats) => nats,
        Err(why) => return skipped("NATS token", &why),
    };
    let scratch = Scratch::new();
    let mut command = dyno_command(scratch.path());
    command.args(["generator", "--nats", &nats.url("")]).env("DYNO_NATS_TOKEN", "geheim");
    let mut generator = RunningDyno::spawn(scratch.path(), command);
    generator.wait_until("a load generator", |it| it.stderr().contains("waiting for work"));
    assert!(!generator.stderr().contains("geheim"));
    // One that is written where a user is written is not shown either, whatever it is.
    for url in [nats.url(""), nats.url("geheim@")] {
        let output = dyno(scratch.path(), &["generator", "--nats", &url]);
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stderr.contains("DYNO_NATS_TOKEN"), "{output}");
        assert!(!output.to_string().contains("geheim"), "{output}");
    }
}
