//! The loop on epoll: one `send` and one `recv` an answer.

use crate::Run;
use crate::connection::Connection;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::time::Instant;

const EVENTS: usize = 128;
const ANSWER_BYTES: usize = 512;

pub(crate) fn run(connections: &mut [Connection], run: &mut Run) -> io::Result<()> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    for (key, connection) in connections.iter_mut().enumerate() {
        let flags = EventFlags::IN | EventFlags::ET | EventFlags::RDHUP;
        epoll::add(&poll, connection.fd(), EventData::new_u64(key as u64), flags)?;
        connection.renew(Instant::now());
        send_request(connection)?;
    }
    let mut events = Vec::with_capacity(EVENTS);
    let mut answer = [0; ANSWER_BYTES];
    loop {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let connection = &mut connections[event.data.u64() as usize];
            let len = match recv(connection.fd(), &mut answer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((len, _)) => len,
                Err(Errno::AGAIN) => continue,
                Err(error) => return Err(error.into()),
            };
            if connection.is_complete(&answer[..len]) {
                if !run.count_answers(connection) {
                    return Ok(());
                }
                send_request(connection)?;
            }
        }
    }
}

fn send_request(connection: &Connection) -> io::Result<()> {
    let sent_bytes = send(connection.fd(), connection.request(), SendFlags::NOSIGNAL)?;
    if sent_bytes == connection.request().len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}
