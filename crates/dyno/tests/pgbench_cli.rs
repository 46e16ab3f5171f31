//! `dyno pgbench` as a script sees it, beside the original where that is installed.

mod pgbench {
    mod command_line;
    pub(crate) mod support;
}
