//! The dyno binary: [`dyno::main`] with the families of the registry.

use std::process::ExitCode;

fn main() -> ExitCode {
    dyno::main(dyno_families::FAMILIES, dyno_families::PAPERS)
}
