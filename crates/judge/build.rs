//! Makes Rust of `messages/*.toml`.

fn main() {
    dyno_catalogue::generate();
}
