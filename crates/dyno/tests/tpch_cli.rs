//! `dyno tpch` as a script sees it.

mod tpch {
    mod files;
    mod qgen;
    pub(crate) mod support;
}
