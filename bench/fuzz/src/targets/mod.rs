//! The targets: every reader of what somebody else has written.

mod lua;
mod stored;
mod texts;
mod wire;

use crate::Target;

pub const TARGETS: [Target; 10] = [
    Target { name: "fleet", read: dyno_fleet::probe },
    Target { name: "histograms", read: stored::histograms },
    Target { name: "run-folder", read: stored::run_folder },
    Target { name: "lua", read: lua::bindings },
    Target { name: "mysql-login", read: wire::mysql_login },
    Target { name: "mysql-answer", read: wire::mysql_answer },
    Target { name: "postgres", read: wire::postgres },
    Target { name: "urls", read: texts::url },
    Target { name: "suites", read: texts::suite },
    Target { name: "pgbench-scripts", read: texts::pgbench_script },
];
