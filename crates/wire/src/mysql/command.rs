//! Commands without parameters.

use super::packet::{begin_packet, finish_packet};

/// Appends a command with its argument. Returns the sequence number of the answer's first packet.
pub fn push_command(out: &mut Vec<u8>, command: u8, argument: &[u8]) -> u8 {
    let start = begin_packet(out);
    out.push(command);
    out.extend_from_slice(argument);
    finish_packet(out, start, 0)
}

/// Ends the session; there is no answer.
pub const COM_QUIT: u8 = 0x01;
pub const COM_QUERY: u8 = 0x03;
/// Ends a prepared statement; there is no answer.
pub const COM_STMT_CLOSE: u8 = 0x19;
pub const COM_STMT_PREPARE: u8 = 0x16;
