//! Servers in the middle, which want the password itself.

use crate::fake::{Client, Fake, PASSWORD, RsaKey, SCRAMBLE};
use crate::fakes::{FULL_PATH, answer_and_leave, connect, log_in, run};
use dyno_core::Cause;
use dyno_testkit::{Certificates, ELSEWHERE, is_in_own_network, skipped};
use std::sync::Arc;

const TO_SHA256: &[&[u8]] = &[b"\xfesha256_password\0", SCRAMBLE, b"\0"];
const TO_CLEAR_TEXT: &[u8] = b"\xfemysql_clear_password\0";

/// The client must leave without another byte, and say where and what helps.
fn is_refused(fake: Fake, options: &str, remedy: &str) {
    let error = run(connect(&fake.url(options))).unwrap_err();
    assert_eq!(error.cause(), Cause::Rejected, "{error}");
    assert!(error.message().contains(&ELSEWHERE.to_string()), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains(remedy)), "{error:?}");
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    fake.join();
}

#[test]
fn a_server_in_the_middle_gets_no_password() {
    const NAME: &str = "disclosure::a_server_in_the_middle_gets_no_password";
    if !is_in_own_network(NAME) {
        return;
    }
    let key = match RsaKey::make() {
        Ok(key) => Arc::new(key),
        Err(why) => return skipped(NAME, &why),
    };
    // It hides TLS and wants to be asked for a key.
    is_refused(
        Fake::at(ELSEWHERE, move |client| {
            client.greet("caching_sha2_password");
            client.send(&TO_SHA256.concat());
            assert_silent(client);
        }),
        "?tls=prefer",
        "server_public_key=FILE",
    );
    is_refused(
        Fake::at(ELSEWHERE, move |client| {
            client.greet("caching_sha2_password");
            client.send(FULL_PATH);
            assert_silent(client);
        }),
        "",
        "get-server-public-key=true",
    );
    // A key that no one has asked for.
    let server_key = key.clone();
    is_refused(
        Fake::at(ELSEWHERE, move |client| {
            client.greet("caching_sha2_password");
            client.send(&[b"\x01", server_key.public_pem()].concat());
            assert_silent(client);
        }),
        "",
        "get-server-public-key=true",
    );
    // Its own key instead of a known one.
    let fake = Fake::at(ELSEWHERE, {
        let server_key = key.clone();
        move |client| {
            client.greet("caching_sha2_password");
            client.send(&[b"\x01", server_key.public_pem()].concat());
            assert_silent(client);
        }
    });
    let options = format!("?get-server-public-key=true&server_public_key={}", key.public_file());
    let error = run(connect(&fake.url(&options))).unwrap_err();
    assert!(error.message().contains("unexpected data"), "{error}");
    fake.join();
    for options in ["", "?get-server-public-key=true"] {
        is_refused(
            Fake::at(ELSEWHERE, move |client| {
                client.greet("caching_sha2_password");
                client.send(TO_CLEAR_TEXT);
                assert_silent(client);
            }),
            options,
            "allow_cleartext=true",
        );
    }
}

fn assert_silent(client: &mut Client) {
    assert_eq!(client.read_to_end(), b"");
}

/// That also applies to the servers' own clients. Only a verified certificate protects from a server in the middle.
#[test]
fn any_tls_takes_the_password_and_a_wrong_certificate_gets_none() {
    const NAME: &str = "disclosure::any_tls_takes_the_password_and_a_wrong_certificate_gets_none";
    if !is_in_own_network(NAME) {
        return;
    }
    let (certificates, others) = match (Certificates::make(), Certificates::make()) {
        (Ok(certificates), Ok(others)) => (certificates, others),
        (Err(why), _) | (_, Err(why)) => return skipped(NAME, &why),
    };
    let asking = Fake::at(ELSEWHERE, move |client| {
        client.start_tls(&certificates, "caching_sha2_password");
        client.read_login();
        client.send(FULL_PATH);
        assert_eq!(client.read(), [PASSWORD, b"\0"].concat());
        client.send(TO_CLEAR_TEXT);
        assert_eq!(client.read(), [PASSWORD, b"\0"].concat());
        answer_and_leave(client);
    });
    log_in(asking, "?tls=require");
    let meddler = Fake::at(ELSEWHERE, {
        let certificates = Certificates::make().unwrap();
        move |client| {
            client.start_tls(&certificates, "caching_sha2_password");
            assert_eq!(client.read_to_end(), b"");
        }
    });
    let options = format!("?tls=verify-ca&ca={}", others.ca());
    let error = run(connect(&meddler.url(&options))).unwrap_err();
    assert_eq!(error.cause(), Cause::Tls, "{error}");
    meddler.join();
}

#[test]
fn what_the_url_allows_is_sent() {
    const NAME: &str = "disclosure::what_the_url_allows_is_sent";
    if !is_in_own_network(NAME) {
        return;
    }
    let key = match RsaKey::make() {
        Ok(key) => Arc::new(key),
        Err(why) => return skipped(NAME, &why),
    };
    let server_key = key.clone();
    log_in(
        Fake::at(ELSEWHERE, move |client| {
            client.greet("caching_sha2_password");
            client.send(FULL_PATH);
            assert_eq!(client.read(), [2]);
            client.send(&[b"\x01", server_key.public_pem()].concat());
            assert_eq!(server_key.decrypt(&client.read()), [PASSWORD, b"\0"].concat());
            answer_and_leave(client);
        }),
        "?get-server-public-key=true",
    );
    // With a known key the server is not asked for one.
    let server_key = key.clone();
    log_in(
        Fake::at(ELSEWHERE, move |client| {
            client.greet("mysql_native_password");
            client.send(&TO_SHA256.concat());
            assert_eq!(server_key.decrypt(&client.read()), [PASSWORD, b"\0"].concat());
            answer_and_leave(client);
        }),
        &format!("?server_public_key={}", key.public_file()),
    );
    log_in(Fake::at(ELSEWHERE, ask_in_clear_text), "?allow_cleartext=true");
    // MariaDB's PAM: the kind of the question, and the question.
    let pam = Fake::at(ELSEWHERE, |client| {
        client.greet("caching_sha2_password");
        client.send(b"\xfedialog\0\x04Password: ");
        assert_eq!(client.read(), [PASSWORD, b"\0"].concat());
        answer_and_leave(client);
    });
    log_in(pam, "?allow_cleartext=true");
    log_in(Fake::tcp(ask_in_clear_text), "");
    log_in(Fake::unix(ask_in_clear_text), "");
}

/// Gets the password in clear text and accepts it.
fn ask_in_clear_text(client: &mut Client) {
    client.greet("caching_sha2_password");
    client.send(TO_CLEAR_TEXT);
    assert_eq!(client.read(), [PASSWORD, b"\0"].concat());
    answer_and_leave(client);
}
