//! How loops speak with the kernel, chosen once for the whole process.

use crate::ring::Ring;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::OnceLock;

/// How a loop receives and sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// A system call per receive and per send, and one per wait.
    #[default]
    Epoll,
    /// One system call per wait, which sends and receives for all sockets. Linux 6.1 or newer; containers often
    /// forbid it.
    Uring,
}

impl Io {
    /// Whether this thread could make a loop of this kind now.
    pub fn probe(self) -> io::Result<()> {
        match self {
            Io::Epoll => Ok(()),
            Io::Uring => Ring::new(1).map(drop),
        }
    }
}

/// What the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring where it can be had.
    #[default]
    Auto,
    Only(Io),
}

impl IoChoice {
    /// The wish of the environment, in `DYNO_IO`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn of_environment() -> Result<Option<Self>, String> {
        let Ok(text) = std::env::var("DYNO_IO") else { return Ok(None) };
        text.parse().map(Some).map_err(|why| format!("DYNO_IO: {why}."))
    }
}

impl FromStr for IoChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(IoChoice::Auto),
            "uring" => Ok(IoChoice::Only(Io::Uring)),
            "epoll" => Ok(IoChoice::Only(Io::Epoll)),
            _ => Err(format!("`{text}` is not one of auto, uring, epoll")),
        }
    }
}

/// Tasks up to which a loop is better off with epoll. Few answers arrive together, so a ring saves few system calls.
/// And a send that returns through the scheduler hands its core to the server's thread, whose answer then wakes no
/// other core: two loops with a worker each had 1.1 to 1.3 times the queries of rings (`bench/tried.md`).
const FEW_TASKS: u32 = 2;

/// What the loops of this process use.
#[derive(Debug)]
pub struct ChosenIo {
    pub io: Io,
    /// The user wants no other.
    is_forced: bool,
    /// Why it is not io_uring, where that was wanted.
    pub refusal: Option<String>,
}

impl ChosenIo {
    /// The way of a loop of `tasks` tasks with a socket each.
    pub fn for_tasks(&self, tasks: u32) -> Io {
        if self.is_forced || tasks > FEW_TASKS { self.io } else { Io::Epoll }
    }
}

/// Such as `io_uring`, `epoll (io_uring: Operation not permitted (os error 1))`.
impl fmt::Display for ChosenIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.io, &self.refusal) {
            (Io::Uring, _) => f.write_str("io_uring"),
            (Io::Epoll, None) => f.write_str("epoll"),
            (Io::Epoll, Some(why)) => write!(f, "epoll (io_uring: {why})"),
        }
    }
}

static CHOSEN: OnceLock<ChosenIo> = OnceLock::new();

fn resolved(choice: IoChoice) -> io::Result<ChosenIo> {
    match choice {
        IoChoice::Only(io) => io.probe().map(|()| ChosenIo { io, is_forced: true, refusal: None }),
        IoChoice::Auto => Ok(match Io::Uring.probe() {
            Ok(()) => ChosenIo { io: Io::Uring, is_forced: false, refusal: None },
            Err(error) => {
                let refusal = Some(error.to_string());
                ChosenIo { io: Io::Epoll, is_forced: false, refusal }
            }
        }),
    }
}

/// Chooses for all loops that are made from now on; the first choice of a process holds.
///
/// # Errors
/// Why io_uring can't be used, when nothing else was wanted.
pub fn choose_io(choice: IoChoice) -> io::Result<()> {
    let _ = CHOSEN.set(resolved(choice)?);
    Ok(())
}

/// What was chosen; by the environment where nobody has chosen, when the first loop is made.
pub fn chosen_io() -> &'static ChosenIo {
    CHOSEN.get_or_init(|| {
        let wanted = IoChoice::of_environment().ok().flatten().unwrap_or_default();
        // What can't be had leaves epoll.
        resolved(wanted).unwrap_or(ChosenIo { io: Io::Epoll, is_forced: false, refusal: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_few_tasks_use_epoll_unless_the_user_wants_a_ring() {
        let with = |io, is_forced| ChosenIo { io, is_forced, refusal: None };
        for (choice, few, many) in [
            (with(Io::Uring, false), Io::Epoll, Io::Uring),
            (with(Io::Uring, true), Io::Uring, Io::Uring),
            (with(Io::Epoll, true), Io::Epoll, Io::Epoll),
            (with(Io::Epoll, false), Io::Epoll, Io::Epoll),
        ] {
            assert_eq!([1, 2, 3, 64].map(|tasks| choice.for_tasks(tasks)), [few, few, many, many]);
        }
    }
}
