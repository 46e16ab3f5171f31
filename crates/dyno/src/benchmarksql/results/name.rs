//! The name of the result directory, and the number of the run.

use crate::failure::Failure;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

/// Where the number of the last run is kept, as BenchmarkSQL does: in the current folder.
const SEQUENCE: &str = ".jTPCC_run_seq.dat";

/// The conversions of Java's dates that a name can hold. Not among them: `%tZ` and `%tc`, which
/// need names of time zones, and `%tD`, which has slashes.
const KNOWN: &str = "Y y C m B b h d e j A a H k I l M S L N p z s Q F R T r";

/// Replaces each `%tX` of the property `resultDirectory` by that part of `now`, as Java writes it.
///
/// # Errors
/// An unknown X.
pub(super) fn expand(template: &str, now: OffsetDateTime) -> Result<PathBuf, Failure> {
    let mut pieces = template.split("%t");
    let mut name = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let mut letters = piece.chars();
        let letter = letters.next();
        let Some(part) = letter.and_then(|letter| part(letter, now)) else {
            let what = letter.map(String::from).unwrap_or_default();
            let message = format!(
                "The property resultDirectory is `{template}`, and `%t{what}` in it is no part of a \
                 date or of a time."
            );
            return Err(Failure::new(message).with_hint(format!("Known behind `%t` are: {KNOWN}.")));
        };
        name.push_str(&part);
        name.push_str(letters.as_str());
    }
    Ok(PathBuf::from(name))
}

/// One part of a date, as `java.util.Formatter` writes it in English.
fn part(letter: char, now: OffsetDateTime) -> Option<String> {
    let (hour, minute, second) = now.to_hms();
    let (year, month, day) = now.to_calendar_date();
    let hour_of_12 = (hour + 11) % 12 + 1;
    let half = if hour < 12 { "am" } else { "pm" };
    let short = |name: String| name[..3].to_owned();
    let parts = |letters: &str| -> Option<String> {
        let part_of = |letter: char| match letter.is_ascii_alphabetic() {
            true => part(letter, now),
            false => Some(letter.to_string()),
        };
        letters.chars().map(part_of).collect()
    };
    Some(match letter {
        'Y' => format!("{year:04}"),
        'y' => format!("{:02}", year.rem_euclid(100)),
        'C' => format!("{:02}", year.div_euclid(100)),
        'm' => format!("{:02}", u8::from(month)),
        'B' => month.to_string(),
        'b' | 'h' => short(month.to_string()),
        'd' => format!("{day:02}"),
        'e' => day.to_string(),
        'j' => format!("{:03}", now.ordinal()),
        'A' => now.weekday().to_string(),
        'a' => short(now.weekday().to_string()),
        'H' => format!("{hour:02}"),
        'k' => hour.to_string(),
        'I' => format!("{hour_of_12:02}"),
        'l' => hour_of_12.to_string(),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}"),
        'L' => format!("{:03}", now.millisecond()),
        'N' => format!("{:09}", now.nanosecond()),
        'p' => half.to_owned(),
        'z' => {
            let minutes = now.offset().whole_minutes();
            let sign = if minutes < 0 { '-' } else { '+' };
            format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60)
        }
        's' => now.unix_timestamp().to_string(),
        'Q' => (now.unix_timestamp_nanos() / 1_000_000).to_string(),
        'F' => parts("Y-m-d")?,
        'R' => parts("H:M")?,
        'T' => parts("H:M:S")?,
        'r' => format!("{} {}", parts("I:M:S")?, half.to_uppercase()),
        _ => return None,
    })
}

/// The number of the next run in `folder`: one more than the last one's, kept in a file that is made
/// when there is none.
///
/// # Errors
/// A file that can't be read or written, or holds no number.
pub(in crate::benchmarksql) fn next_run(folder: &Path) -> Result<u32, Failure> {
    let path = folder.join(SEQUENCE);
    let failed = |error| {
        let message =
            format!("The number of the run can't be kept in {}: {error}.", path.display());
        Failure::new(message)
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => "0".to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let number = text.trim().parse::<u32>().ok().and_then(|last| last.checked_add(1));
    let Some(number) = number else {
        let message = format!("{} holds no number of a run: `{}`.", path.display(), text.trim());
        return Err(Failure::new(message).with_hint("Delete the file to begin with run 1."));
    };
    // Whole or not at all: the file outlives a full disk.
    let fresh = folder.join(format!("{SEQUENCE}.{}", std::process::id()));
    let written = fs::File::create(&fresh)
        .and_then(|mut file| writeln!(file, "{number}"))
        .and_then(|()| fs::rename(&fresh, &path));
    if let Err(error) = written {
        let _ = fs::remove_file(&fresh);
        return Err(failed(error));
    }
    Ok(number)
}
