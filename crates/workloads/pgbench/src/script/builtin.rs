//! The scripts that everybody has.

use super::{QueryMode, Script, ScriptError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    pub description: &'static str,
    pub text: &'static str,
}

impl Builtin {
    /// The script, read for a mode.
    ///
    /// # Errors
    /// None: the texts are good.
    pub fn script(&self, mode: QueryMode) -> Result<Script, ScriptError> {
        Script::parse(self.text.as_bytes(), self.description, mode)
    }
}

/// Draws of the scripts that write; their order decides which numbers a seed gives.
macro_rules! draws {
    () => {
        "\\set aid random(1, 100000 * :scale)\n\
         \\set bid random(1, 1 * :scale)\n\
         \\set tid random(1, 10 * :scale)\n\
         \\set delta random(-5000, 5000)\n\
         BEGIN;\n\
         UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    };
}

macro_rules! history {
    () => {
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
         VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
         END;\n"
    };
}

const BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        text: concat!(
            draws!(),
            "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n",
            "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n",
            history!()
        ),
    },
    Builtin {
        name: "simple-update",
        description: "<builtin: simple update>",
        text: concat!(draws!(), history!()),
    },
    Builtin {
        name: "select-only",
        description: "<builtin: select only>",
        text: "\\set aid random(1, 100000 * :scale)\n\
               SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    },
];

/// The built-in scripts in the order in which pgbench lists them.
pub fn builtins() -> &'static [Builtin] {
    &BUILTINS
}

/// The only built-in script whose name begins with `prefix`.
pub fn find_builtin(prefix: &str) -> Result<&'static Builtin, String> {
    let found: Vec<_> = BUILTINS.iter().filter(|one| one.name.starts_with(prefix)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("no builtin script found for name \"{prefix}\"")),
        many => Err(format!(
            "ambiguous builtin name: {} builtin scripts found for prefix \"{prefix}\"",
            many.len()
        )),
    }
}
