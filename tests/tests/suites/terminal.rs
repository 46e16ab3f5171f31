//! dyno at a terminal, which the program `script` makes.

use dyno_testkit::{Scratch, dyno_path, skipped};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};

/// A server that says this to whoever starts a session; its port.
fn serve(said: &'static [u8]) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            let mut peer = peer.expect("a client");
            let _ = peer.read(&mut [0; 1024]).and_then(|_| peer.write_all(said));
            // Until the client has left.
            let _ = peer.read(&mut [0; 1024]);
        }
    });
    port
}

/// The terminal's content during pgbench at a server on this port, and the terminal's modes after it. `keys` are
/// pressed at the prompt for a password.
fn terminal_content(port: u16, keys: &[u8]) -> Option<String> {
    let dyno = dyno_path().display();
    let command = format!("{dyno} pgbench -h 127.0.0.1 -p {port} -U me d; stty -a");
    let home = Scratch::new();
    let mut script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("HOME", home.path())
        .env("PGSSLMODE", "disable")
        .env_remove("PGPASSWORD")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .inspect_err(|error| skipped("dyno at a terminal", &error.to_string()))
        .ok()?;
    let mut typing = script.stdin.take().expect("piped");
    let mut screen = script.stdout.take().expect("piped");
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    let mut has_prompt = false;
    while let Ok(count @ 1..) = screen.read(&mut piece) {
        shown.extend_from_slice(&piece[..count]);
        if !has_prompt && String::from_utf8_lossy(&shown).contains("Password: ") {
            has_prompt = true;
            typing.write_all(keys).expect("typed");
        }
    }
    script.wait().expect("it ends");
    Some(String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn ctrl_c_at_a_password_prompt_leaves_the_terminal_as_it_was() {
    // It asks for a password under MD5.
    let Some(shown) = terminal_content(serve(b"R\0\0\0\x0c\0\0\0\x05salt"), b"geheim\x03") else {
        return;
    };
    assert!(shown.contains("Password: "), "{shown}");
    assert!(!shown.contains("geheim"), "{shown}");
    for mode in [" icanon ", " echo ", "isig "] {
        assert!(shown.contains(mode), "no{mode}in {shown}");
    }
}

#[test]
fn texts_of_a_server_do_not_command_the_terminal() {
    let refusal = b"E\0\0\0\x2aSFATAL\0C3D000\0M\x1b[2J\x1b]0;owned\x07go away\0\0";
    assert_eq!(usize::from(refusal[4]) + 1, refusal.len());
    let Some(shown) = terminal_content(serve(refusal), b"\x03") else { return };
    assert!(shown.contains("go away"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
}
