//! Errors about answers that do not end, or do not begin: they name the server and the question.

use dyno_core::{Address, DbError, Nanos, Rows, SECOND};

const HINT: &str = "a question of dyno's own has no such answer: look what listens at this address; a statement of a \
                    script needs a LIMIT";

/// The beginning of a statement, as much as a sentence can hold.
fn shortened(sql: &str) -> String {
    const CHARS: usize = 100;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// More has come than [`Rows::overflow`] allows.
#[cold]
pub(crate) fn too_large(kept_bytes: usize) -> DbError {
    let mib = kept_bytes >> 20;
    DbError::protocol(format!("The server's answer is larger than {mib} MiB.")).with_hint(HINT)
}

/// The error with the server and the question that it did not answer; any other error unchanged.
#[cold]
pub(crate) fn explain_overflow(
    error: DbError,
    rows: &impl Rows,
    address: &Address,
    sql: &[u8],
) -> DbError {
    let Some(kept_bytes) = rows.overflow() else { return error };
    let (sql, mib) = (shortened(&String::from_utf8_lossy(sql)), kept_bytes >> 20);
    let text =
        format!("The answer of the server at {address} to `{sql}` is larger than {mib} MiB.");
    DbError::protocol(text).with_hint(HINT)
}

/// See [`dyno_core::Session::unanswered`]; `is_answering` where bytes of an answer have come, or continue coming.
pub(crate) fn unanswered(
    address: &Address,
    sql: &str,
    within: Nanos,
    is_answering: bool,
) -> DbError {
    let within_s = within / SECOND;
    if !is_answering {
        return DbError::unreachable(format!(
            "The server at {address} takes the log-in, and answers no question within {within_s} s."
        ));
    }
    let sql = shortened(sql);
    DbError::unreachable(format!(
        "The server at {address} answers without end: its answer to `{sql}` did not end within {within_s} s."
    ))
    .with_hint(HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_shortened_to_a_part_of_a_line() {
        assert_eq!(shortened("SELECT 1\n  FROM t"), "SELECT 1 FROM t");
        let long = shortened(&"é".repeat(200));
        assert_eq!(long, format!("{}...", "é".repeat(100)));
    }
}
