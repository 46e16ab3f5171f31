//! Builds LuaJIT such that errors of scripts need no exceptions: where panics abort, as in releases, those can't
//! cross functions of Rust.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // LuaJIT's own way; the other two flags are those that its Makefile sets.
    let flags = "-U_FORTIFY_SOURCE -fno-stack-protector -DLUAJIT_NO_UNWIND";
    // SAFETY: this program has one thread.
    #[expect(unsafe_code, reason = "the Makefile takes flags from the environment alone")]
    unsafe {
        env::set_var("TARGET_XCFLAGS", flags);
    }
    let built = luajit_src::Build::new().build();
    println!("cargo::rustc-link-search=native={}", built.lib_dir().display());
    for library in built.libs() {
        // Linkers that read archives once, in order, meet this one before `mlua-sys` needs it.
        println!("cargo::rustc-link-lib=static:+whole-archive={library}");
    }
}
