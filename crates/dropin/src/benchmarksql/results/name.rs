//! The name of the result directory, and the number of the run.

use dyno_runner::failure::Failure;
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
pub(crate) fn next_run(folder: &Path) -> Result<u32, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use time::{Date, Month, Time, UtcOffset};

    /// A Thursday, the 64th day of a leap year, shortly after noon in Newfoundland.
    fn now() -> OffsetDateTime {
        let date = Date::from_calendar_date(2032, Month::March, 4).unwrap();
        let time = Time::from_hms_nano(12, 5, 9, 12_345_678).unwrap();
        OffsetDateTime::new_in_offset(date, time, UtcOffset::from_hms(-3, -30, 0).unwrap())
    }

    fn expanded(template: &str) -> String {
        expand(template, now()).unwrap().display().to_string()
    }

    #[test]
    fn the_name_of_the_sample_file_is_expanded() {
        let name = expanded("my_result_%tY-%tm-%td_%tH%tM%tS");
        assert_eq!(name, "my_result_2032-03-04_120509");
        assert_eq!(expanded("100%/no parts"), "100%/no parts");
        assert_eq!(expanded("%tYtail"), "2032tail");
    }

    #[test]
    fn every_part_is_written_as_java_writes_it() {
        // Of java.util.Formatter, in this order, for this moment.
        let java = "2032 32 20 03 March Mar Mar 04 4 064 Thursday Thu 12 12 12 12 05 09 012 \
                    012345678 pm -0330 1962027309 1962027309012 2032-03-04 12:05 12:05:09 \
                    12:05:09 PM";
        let template: Vec<String> = KNOWN.split(' ').map(|letter| format!("%t{letter}")).collect();
        assert_eq!(expanded(&template.join(" ")), java);
        let midnight = now().replace_time(time::Time::MIDNIGHT);
        let name = expand("%tH %tk %tI %tl %tp", midnight).unwrap();
        assert_eq!(name.display().to_string(), "00 0 12 12 am");
    }

    #[test]
    fn what_is_no_part_is_refused_with_those_that_are() {
        for (template, what) in [("a_%tx", "`%tx`"), ("a_%t", "`%t`"), ("%tD", "`%tD`")] {
            let failure = expand(template, now()).unwrap_err();
            assert!(failure.message.to_string().contains(what), "{failure:?}");
            assert!(failure.hint.unwrap().contains(KNOWN));
        }
    }

    #[test]
    fn runs_are_numbered_from_1_in_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let next = || next_run(folder.path());
        assert_eq!((next(), next(), next()), (Ok(1), Ok(2), Ok(3)));
        let file = folder.path().join(SEQUENCE);
        assert_eq!(fs::read_to_string(&file).unwrap(), "3\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        for text in ["three\n", "", "-1", "4294967295"] {
            fs::write(&file, text).unwrap();
            let failure = next().unwrap_err();
            assert!(failure.message.to_string().contains("holds no number"), "{failure:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text, "left as it is");
        }
        let failure = next_run(&folder.path().join("none")).unwrap_err();
        assert!(failure.message.to_string().contains("can't be kept"), "{failure:?}");
    }
}
