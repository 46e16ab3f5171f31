//! Keeps passwords on the command line out of the process list.
//!
//! The kernel shows a process's arguments from that process's own memory. So they can be
//! overwritten: `/proc/self/stat` says where they lie, `/proc/self/mem` is that memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::FileExt;

/// What stands in the place of every byte of a secret.
const FILLER: u8 = b'x';
/// No command line is longer: the kernel's own limit for all arguments and the environment.
const ARGUMENTS_MAX: u64 = 6 << 20;

/// Overwrites the values of the options in `names` (`mysql-password` for `--mysql-password=...`;
/// `-` and `_` are the same), the passwords of URLs and connection strings, and the word after the
/// word `password` or `--token`, in what the process list shows. To be called after the arguments have been read, as early as possible.
///
/// # Errors
/// When `/proc` can't be read or written: the passwords stay visible then.
pub fn hide_values(names: &[&str]) -> io::Result<()> {
    let (begin, end) = argument_range(&std::fs::read_to_string("/proc/self/stat")?)?;
    let mut arguments = vec![0; (end - begin) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut arguments, begin)?;
    let secrets = secret_ranges(&arguments, names);
    if secrets.is_empty() {
        return Ok(());
    }
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    for (from, to) in secrets {
        memory.write_all_at(&vec![FILLER; to - from], begin + from as u64)?;
    }
    Ok(())
}

/// Fields 48 and 49 of `/proc/PID/stat`: where the arguments begin and end.
fn argument_range(stat: &str) -> io::Result<(u64, u64)> {
    let unknown = || Error::new(ErrorKind::InvalidData, "/proc/self/stat has no argument range");
    // The second field is the program's name in parentheses and may hold anything; field 3 follows
    // the last parenthesis.
    let (_, rest) = stat.rsplit_once(')').ok_or_else(unknown)?;
    let mut fields = rest.split_whitespace().skip(45).map(str::parse::<u64>);
    match (fields.next(), fields.next()) {
        (Some(Ok(begin)), Some(Ok(end))) if begin < end && end - begin <= ARGUMENTS_MAX => {
            Ok((begin, end))
        }
        _ => Err(unknown()),
    }
}

/// Where the values of the options in `names`, the passwords of URLs and connection strings, and what
/// follows the word `password` (an override of `dyno benchmarksql`) or `--token` (of `dyno serve`) lie within arguments that end with
/// a zero byte each.
fn secret_ranges(arguments: &[u8], names: &[&str]) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut from = 0;
    let mut follows_key = false;
    for argument in arguments.split(|&byte| byte == 0) {
        let to = from + argument.len();
        let is_key = argument.eq_ignore_ascii_case(b"password") || argument == b"--token";
        if std::mem::replace(&mut follows_key, is_key) {
            ranges.push((from, to));
        } else if let Some(equals) = argument.iter().position(|&byte| byte == b'=')
            && is_option(&argument[..equals], names)
        {
            ranges.push((from + equals + 1, to));
        } else {
            let found = [url_password(argument), connection_string_password(argument)];
            let place = |(begin, end)| (from + begin, from + end);
            ranges.extend(found.into_iter().flatten().map(place));
        }
        from = to + 1;
    }
    ranges
}

/// Where the password of `scheme://user:password@host` stands, and all that follows in a URL with
/// parameters, as a password may be one of them. It may hold any character, so it ends at the last
/// `@`.
fn url_password(argument: &[u8]) -> Option<(usize, usize)> {
    let user = argument.windows(3).position(|three| three == b"://")? + 3;
    let host = argument[user..].iter().rposition(|&byte| byte == b'@').map(|at| user + at);
    let colon = argument[user..].iter().position(|&byte| byte == b':').map(|at| user + at);
    let question = argument[user..].iter().position(|&byte| byte == b'?').map(|at| user + at);
    match (colon, host, question) {
        (Some(colon), Some(host), None) if colon < host => Some((colon + 1, host)),
        (Some(colon), Some(host), Some(_)) if colon < host => Some((colon + 1, argument.len())),
        (_, _, Some(question)) => Some((question + 1, argument.len())),
        _ => None,
    }
}

/// All that follows the keyword in `host=h password=geheim`: values may be quoted, and it costs
/// nothing to hide what comes after them.
fn connection_string_password(argument: &[u8]) -> Option<(usize, usize)> {
    const KEYWORD: &[u8] = b"password";
    let keyword = argument.windows(KEYWORD.len()).position(|word| word == KEYWORD)?;
    // `(password=p)` stands in URLs of JDBC.
    let is_begin = keyword == 0 || b" \t\n(,;".contains(&argument[keyword - 1]);
    let rest = &argument[keyword + KEYWORD.len()..];
    let equals = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let begin = keyword + KEYWORD.len() + equals + 1;
    (is_begin && rest[equals] == b'=').then_some((begin, argument.len()))
}

fn is_option(word: &[u8], names: &[&str]) -> bool {
    let same = |a: u8, b: u8| a == b || (a == b'_' && b == b'-');
    let is = |name: &&str| {
        word.strip_prefix(b"--").is_some_and(|word| {
            word.len() == name.len() && word.iter().zip(name.bytes()).all(|(&a, b)| same(a, b))
        })
    };
    names.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["mysql-password", "pgsql-password"];

    #[test]
    fn values_of_the_named_options_are_found_in_every_spelling() {
        let arguments = b"sysbench\0--mysql-password=geheim\0--mysql_password=a=b\0--threads=4\0\
                          --mysql-passwords=no\0--pgsql-password=\0--mysql-password\0run\0";
        let found: Vec<&[u8]> = secret_ranges(arguments, &NAMES)
            .into_iter()
            .map(|(from, to)| &arguments[from..to])
            .collect();
        assert_eq!(found, [&b"geheim"[..], b"a=b", b""]);
    }

    #[test]
    fn a_token_is_found_in_both_spellings() {
        let arguments = b"dyno\0serve\0--token\0geheim\0--token=geheim\0--dir\0runs\0";
        let found = secret_ranges(arguments, &["token"]);
        let secrets = found.into_iter().map(|(from, to)| &arguments[from..to]);
        assert_eq!(secrets.collect::<Vec<_>>(), [b"geheim", b"geheim"]);
    }

    #[test]
    fn passwords_of_urls_are_found() {
        let cases = [
            ("main=mysql://me:geheim@host:3306/db", "geheim"),
            ("--target=main=postgres://me:a@b:c/d@host/db", "a@b:c/d"),
            ("main=mysql://me:geheim@host/db?tls=prefer", "geheim@host/db?tls=prefer"),
            ("main=mysql://me@host/db?password=x", "password=x"),
        ];
        for (argument, secret) in cases {
            let (from, to) = url_password(argument.as_bytes()).expect(argument);
            assert_eq!(&argument[from..to], secret);
        }
        for argument in ["main=mysql://me@host:3306/db", "sqlite:x.db", "run", "://"] {
            assert_eq!(url_password(argument.as_bytes()), None, "{argument}");
        }
    }

    #[test]
    fn passwords_of_connection_strings_are_found() {
        for (argument, secret) in [
            ("password=geheim", "geheim"),
            ("host=h password = 'a b' port=1", " 'a b' port=1"),
            ("jdbc:mysql://address=(host=h)(password=geheim)/db", "geheim)/db"),
        ] {
            let (from, to) = connection_string_password(argument.as_bytes()).expect(argument);
            assert_eq!(&argument[from..to], secret);
        }
        for argument in ["--mysql-password=x", "password", "passwords=1", "host=h"] {
            assert_eq!(connection_string_password(argument.as_bytes()), None, "{argument}");
        }
    }

    #[test]
    fn the_word_after_password_is_found() {
        let arguments = b"dyno\0benchmarksql\0build\0props.pg\0PASSWORD\0geheim\0warehouses\x001\0";
        let found: Vec<&[u8]> = secret_ranges(arguments, &[])
            .into_iter()
            .map(|(from, to)| &arguments[from..to])
            .collect();
        assert_eq!(found, [&b"geheim"[..]]);
    }

    #[test]
    fn the_range_is_read_whatever_the_program_is_called() {
        let numbers: Vec<String> = (3..=52).map(|field| (field * 100).to_string()).collect();
        let stat = format!("17 (a) b (c) {}", numbers.join(" "));
        assert_eq!(argument_range(&stat).expect("fields 48 and 49"), (4800, 4900));
        assert!(argument_range("17 (x) S 1 2").is_err());
        assert!(argument_range("").is_err());
    }

    #[test]
    fn this_process_has_a_range_that_holds_its_name() {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
        let (begin, end) = argument_range(&stat).expect("a real range");
        let mut arguments = vec![0; (end - begin) as usize];
        let memory = File::open("/proc/self/mem").expect("own memory");
        memory.read_exact_at(&mut arguments, begin).expect("own arguments");
        let first = std::env::args().next().expect("a name");
        assert!(arguments.starts_with(first.as_bytes()));
    }
}
