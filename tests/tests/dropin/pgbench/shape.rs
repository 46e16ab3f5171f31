//! The output without times and counts that differ from run to run.

/// Labels of lines whose numbers must be the same.
const EXACT: [&str; 12] = [
    "scaling factor: ",
    "partitions: ",
    "number of clients: ",
    "number of threads: ",
    "maximum number of tries: ",
    "number of transactions per client: ",
    "duration: ",
    "debug(",
    "SQL script ",
    " - weight: ",
    "pgbench: setting random seed to ",
    "pgbench: warning: scale option ignored",
];

/// One `#` for each number, one blank where there are several.
fn without_numbers(line: &str) -> String {
    let mut shape = String::new();
    let mut last = '\n';
    for c in line.chars() {
        let next = if c.is_ascii_digit() || (c == '.' && last == '#') { '#' } else { c };
        if !(next == last && (next == '#' || next == ' ')) {
            shape.push(next);
        }
        last = next;
    }
    shape.replace("NaN", "#")
}

/// The shape of standard output or of standard error, line by line. Lines that come as often as
/// the run happens to need (progress, errors of clients) are there once.
pub(crate) fn shape(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        // dyno names itself, says how many clients stopped, and doesn't repeat the server's notices.
        let is_extra_line = line.starts_with("pgbench (")
            || line.contains(" clients stopped after an error")
            || line.starts_with("NOTICE:  ");
        if is_extra_line {
            continue;
        }
        // What dyno measures the original computes, failures included.
        let line = line.strip_suffix(" (including failures)").unwrap_or(line);
        let is_exact = EXACT.iter().any(|label| line.starts_with(label))
            || (line.starts_with("number of transactions actually processed: ")
                && line.contains('/'));
        let line = if is_exact { line.to_owned() } else { without_numbers(line) };
        let is_repeated = line.starts_with("progress: ") || line.starts_with("pgbench: ");
        if !(is_repeated && lines.contains(&line)) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

#[test]
fn times_go_and_what_was_asked_for_stays() {
    let text = "pgbench (15.20)\nscaling factor: 20\nlatency average = 12.345 ms (including failures)\n\
                progress: 1.0 s, 3 tps\nprogress: 2.0 s, 14 tps\n         0.250           0  END;\n\
                number of transactions actually processed: 30/30\n";
    let expected = "scaling factor: 20\nlatency average = # ms\nprogress: # s, # tps\n # # END;\n\
                    number of transactions actually processed: 30/30";
    assert_eq!(shape(text), expected);
}
