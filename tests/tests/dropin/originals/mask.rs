//! Permitted differences between two programs with equal output.

/// Versions, paths and figures taken out of what `program` said.
pub(super) fn mask(text: &str, program: &str) -> String {
    let text = text.replace("sbtest_a", "sbtest_x").replace("sbtest_b", "sbtest_x");
    let lines = text.split_inclusive('\n').map(|line| match program {
        "sysbench" => sysbench(line),
        _ => pgbench(line),
    });
    without_decimals(&lines.collect::<String>())
}

fn sysbench(line: &str) -> String {
    if line.contains(" |*") {
        return "(a bar of the histogram)\n".to_owned();
    }
    if let Some((option, rest)) = option_and_help(line) {
        return format!("  {option} {rest}\n");
    }
    let mut line = between(line, "(using ", ")", "(using ...)");
    // The place in a script.
    line = between(&line, "/usr/share/sysbench/", ".lua:", "").replace(" : ", " ");
    match line.split_once("failed: ") {
        Some((before, after)) if after.starts_with(|letter: char| letter.is_ascii_digit()) => {
            let (_, after) = after.split_once(": ").unwrap_or(("", after));
            format!("{before}failed: {after}")
        }
        Some(_) | None => line.replace("FATAL: 28: ", "FATAL: "),
    }
}

/// An option of a help text, and its default: the words between are each program's own.
fn option_and_help(line: &str) -> Option<(&str, &str)> {
    let option = line.strip_prefix("  --")?.split([' ', '\n']).next()?;
    let start = line.find(option)?;
    let default = line.trim_end().strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
    let default = default.map(|(_, default)| default).filter(|_| line.contains(" "));
    Some((&line[start..start + option.len()], default.unwrap_or_default()))
}

fn pgbench(line: &str) -> String {
    if line.starts_with("pgbench (") {
        return "pgbench (...)\n".to_owned();
    }
    if line.ends_with(" receiving\n") {
        // As often as the socket had something.
        return String::new();
    }
    let line = &line.replace("(NaN%)", "(0.000%)");
    // Minor releases call the option by either name.
    let line = &line.replace("-c/--clients", "-c/--client");
    if line.contains("<pgsql-bugs@") || line.starts_with("PostgreSQL home page") {
        return String::new();
    }
    // The C library names the program by its path.
    match line.split_once("/pgbench: ") {
        Some((path, rest)) if path.starts_with('/') => format!("pgbench: {rest}"),
        _ => line.to_owned(),
    }
}

/// Replaces what stands from `begin` to `end`, both included.
fn between(line: &str, begin: &str, end: &str, by: &str) -> String {
    let range = line.find(begin).and_then(|start| {
        let length = line[start..].find(end)? + end.len();
        Some((start, start + length))
    });
    match range {
        Some((start, stop)) => format!("{}{by}{}", &line[..start], &line[stop..]),
        None => line.to_owned(),
    }
}

/// Numbers with a decimal point are measured ones, and so is how far they stand to the right.
fn without_decimals(text: &str) -> String {
    replace_numbers(text, |number| number.contains('.'))
}

/// One mark for any number, and one line where several are the same but for numbers.
pub(super) fn without_numbers(text: &str) -> String {
    let text = replace_numbers(text, |_| true).replace('#', "N");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn replace_numbers(text: &str, is_figure: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    let mut remaining = text;
    while let Some(start) = remaining.find(|letter: char| letter.is_ascii_digit()) {
        let length =
            remaining[start..].find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let number = remaining[start..start + length.unwrap_or(remaining.len() - start)]
            .trim_end_matches('.');
        out.push_str(&remaining[..start]);
        if is_figure(number) {
            let trimmed_length = out.trim_end_matches(' ').len();
            if trimmed_length + 1 < out.len() {
                out.truncate(trimmed_length + 1);
            }
            out.push('#');
        } else {
            out.push_str(number);
        }
        remaining = &remaining[start + number.len()..];
    }
    out + remaining
}

pub(super) fn sorted(text: &str) -> String {
    // Threads of the original write a sentence and its end one after the other, so that two may stand on a line.
    let mut text = text.replace("...", "...\n");
    for word in ["Creating", "Inserting", "Dropping"] {
        text = text.replace(&format!("'{word}"), &format!("'\n{word}"));
    }
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines.iter().map(|line| format!("{line}\n")).collect()
}
