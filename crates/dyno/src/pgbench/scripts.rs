//! Which scripts a run executes: built-in ones by name, files, and their weights.

use super::numbers::long;
use super::refusal::Refusal;

/// At most this many scripts are taken.
pub(super) const SCRIPTS_MAX: usize = 128;

/// A built-in script.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Builtin {
    pub(super) name: &'static str,
    /// As the report calls it.
    pub(super) description: &'static str,
    pub(super) text: &'static str,
}

pub(super) static BUILTINS: [Builtin; 3] = [
    Builtin { name: "tpcb-like", description: "<builtin: TPC-B (sort of)>", text: "" },
    Builtin { name: "simple-update", description: "<builtin: simple update>", text: "" },
    Builtin { name: "select-only", description: "<builtin: select only>", text: "" },
];

/// Where a script comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Builtin(&'static Builtin),
    /// `-` is standard input.
    File(String),
}

/// The list of `-b list`.
pub(super) fn list() -> String {
    let mut text = "Available builtin scripts:\n".to_owned();
    for Builtin { name, description, .. } in &BUILTINS {
        text.push_str(&format!("  {name:>13}: {description}\n"));
    }
    text.push('\n');
    text
}

/// The only built-in script whose name begins so.
///
/// # Errors
/// None or several do.
pub(super) fn find(prefix: &str) -> Result<&'static Builtin, Refusal> {
    let fitting: Vec<_> =
        BUILTINS.iter().filter(|builtin| builtin.name.starts_with(prefix)).collect();
    let complaint = match fitting.as_slice() {
        [only] => return Ok(only),
        [] => format!("no builtin script found for name \"{prefix}\""),
        several => format!(
            "ambiguous builtin name: {} builtin scripts found for prefix \"{prefix}\"",
            several.len()
        ),
    };
    Err(Refusal::error(complaint).with_text(&list()))
}

/// `SCRIPT@WEIGHT`: the weight is what follows the last `@`, 1 where there is none.
///
/// # Errors
/// A weight that is no number or out of range.
pub(super) fn split_weight(text: &str) -> Result<(&str, u32), Refusal> {
    let Some((script, weight)) = text.rsplit_once('@') else { return Ok((text, 1)) };
    match long(weight) {
        (Some(number), "") if !weight.is_empty() => match u32::try_from(number) {
            Ok(number) if i32::try_from(number).is_ok() => Ok((script, number)),
            _ => Err(Refusal::error(format_args!(
                "weight specification out of range (0 .. {}): {number}",
                i32::MAX
            ))),
        },
        _ => Err(Refusal::error(format_args!("invalid weight specification: @{weight}"))),
    }
}

/// The complaint about a script beyond the last one.
pub(super) fn too_many() -> Refusal {
    Refusal::error(format_args!("at most {SCRIPTS_MAX} SQL scripts are allowed"))
}
