//! Refuses a build in which the first error of a script would abort the program.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TARGET_XCFLAGS");
    let has = |name: &str, value: &str| env::var(name).is_ok_and(|all| all.contains(value));
    if has("CARGO_CFG_PANIC", "abort") && !has("TARGET_XCFLAGS", "LUAJIT_NO_UNWIND") {
        println!(
            "cargo::error=where panics abort, LuaJIT must not unwind by exceptions: set \
             TARGET_XCFLAGS as .cargo/config.toml does, or build in a folder of the repository"
        );
    }
}
