//! The dyno binary: [`dyno::main`] with the families of the registry.

use std::process::ExitCode;

fn main() -> ExitCode {
    share_arenas();
    // Those with which the program was relocated.
    dyno_engine::give_back_pages();
    dyno::main(dyno::families::FAMILIES, dyno::families::PAPERS)
}

/// glibc makes up to eight arenas for each core, one for each thread that comes first. Each stage of a soak has new
/// threads, and memory would grow with the stages until all arenas are there.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator is set by a call of C")]
fn share_arenas() {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    // SAFETY: it takes two numbers, and no other thread runs yet. A refusal leaves the default.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, cores as libc::c_int) };
}

#[cfg(not(target_env = "gnu"))]
fn share_arenas() {}
