//! Keeps passwords on the command line out of the process list.
//!
//! The kernel shows a process's arguments from that process's own memory. So they can be
//! overwritten: `/proc/self/stat` has their addresses, `/proc/self/mem` is that memory.

use dyno_core::is_like_password;
use std::fs::{File, OpenOptions};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::FileExt;

/// The replacement of every byte of a secret.
const FILLER: u8 = b'x';
/// No command line is longer: the kernel's own limit for all arguments and the environment.
const ARGUMENTS_MAX: u64 = 6 << 20;

/// Overwrites the values of the options in `names` (`mysql-password` for `--mysql-password=...`;
/// `-` and `_` are the same), the passwords of URLs and connection strings, and the word after the
/// word `password` or `--token`, in what the process list shows. To be called after the arguments have been read, as
/// early as possible.
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
    // The second field is the program's name in parentheses and may hold anything; field 3 follows
    // the last parenthesis.
    let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
    let mut fields = rest.split_whitespace().skip(45).map(str::parse::<u64>);
    match (fields.next(), fields.next()) {
        (Some(Ok(begin)), Some(Ok(end))) if begin < end && end - begin <= ARGUMENTS_MAX => {
            Ok((begin, end))
        }
        _ => Err(Error::new(ErrorKind::InvalidData, "/proc/self/stat has no argument range")),
    }
}

/// Ranges of the values of the options in `names`, the passwords of URLs and connection strings, and the text that
/// follows the word `password` (an override of `dyno benchmarksql`) or `--token` (of `dyno serve`) lie within arguments
/// that end with a zero byte each.
fn secret_ranges(arguments: &[u8], names: &[&str]) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut from = 0;
    let mut follows_key = false;
    for argument in arguments.split(|&byte| byte == 0) {
        let to = from + argument.len();
        let word = std::str::from_utf8(argument).unwrap_or_default();
        let is_override = !word.starts_with('-') && !word.contains('=');
        let is_key = argument == b"--token" || (is_override && is_like_password(word));
        if std::mem::replace(&mut follows_key, is_key) {
            ranges.push((from, to));
        } else if let Some(equals) = argument.iter().position(|&byte| byte == b'=')
            && (is_option(&argument[..equals], names)
                || std::str::from_utf8(&argument[..equals]).is_ok_and(is_like_password))
        {
            ranges.push((from + equals + 1, to));
        } else {
            let secrets = url_secrets(argument).into_iter();
            let secrets = secrets.chain(connection_string_password(argument));
            ranges.extend(secrets.map(|(begin, end)| (from + begin, from + end)));
        }
        from = to + 1;
    }
    ranges
}

/// Ranges of the password of `scheme://user:password@host`, and of all parameters, which may hold one too. A password
/// may hold any character, so it ends at the last `@`.
fn url_secrets(argument: &[u8]) -> Vec<(usize, usize)> {
    let Some(scheme) = argument.windows(3).position(|three| three == b"://") else {
        return Vec::new();
    };
    let user = scheme + 3;
    let [colon, question] =
        [b':', b'?'].map(|wanted| argument[user..].iter().position(|&byte| byte == wanted));
    let host = argument[user..].iter().rposition(|&byte| byte == b'@');
    let password = colon.zip(host).filter(|(colon, host)| colon < host);
    let secrets = match (password, question) {
        // The question mark may be the password's, and the `@` a parameter's.
        (Some((colon, host)), Some(question)) if question < host => {
            vec![(colon + 1, argument.len() - user)]
        }
        (password, question) => {
            let password = password.map(|(colon, host)| (colon + 1, host));
            let parameters = question.map(|question| (question + 1, argument.len() - user));
            password.into_iter().chain(parameters).collect()
        }
    };
    secrets.into_iter().map(|(from, to)| (user + from, user + to)).collect()
}

/// All that follows the keyword in `host=h password=geheim`: values may be quoted, and it costs
/// nothing to hide what comes after them.
fn connection_string_password(argument: &[u8]) -> Option<(usize, usize)> {
    const KEYWORD: &[u8] = b"password";
    let keyword = argument.windows(KEYWORD.len()).position(|word| word == KEYWORD)?;
    // URLs of JDBC have `(password=p)`.
    let is_begin = keyword == 0 || b" \t\n(,;".contains(&argument[keyword - 1]);
    let value = &argument[keyword + KEYWORD.len()..];
    let equals = value.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let begin = keyword + KEYWORD.len() + equals + 1;
    (is_begin && value[equals] == b'=').then_some((begin, argument.len()))
}

fn is_option(word: &[u8], names: &[&str]) -> bool {
    let Some(word) = word.strip_prefix(b"--") else { return false };
    names.iter().any(|name| {
        let mut pairs = word.iter().zip(name.bytes());
        word.len() == name.len() && pairs.all(|(&a, b)| a == b || (a == b'_' && b == b'-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["mysql-password", "pgsql-password"];

    #[test]
    fn values_of_the_named_options_are_found_in_every_spelling() {
        let arguments = b"sysbench\0--mysql-password=geheim\0--mysql_password=a=b\0--threads=4\0\
                          --mysql-passwords=near\0--pgsql-password=\0--mysql-password\0run\0";
        let secrets: Vec<&[u8]> = secret_ranges(arguments, &NAMES)
            .into_iter()
            .map(|(from, to)| &arguments[from..to])
            .collect();
        assert_eq!(secrets, [&b"geheim"[..], b"a=b", b"near", b""]);
    }

    #[test]
    fn a_token_is_found_in_both_spellings() {
        let arguments = b"dyno\0serve\0--token\0geheim\0--token=geheim\0--dir\0runs\0";
        let secrets = secret_ranges(arguments, &["token"]);
        let secrets = secrets.into_iter().map(|(from, to)| &arguments[from..to]);
        assert_eq!(secrets.collect::<Vec<_>>(), [b"geheim", b"geheim"]);
    }

    #[test]
    fn passwords_of_urls_are_found() {
        let cases: [(&str, &[&str]); 15] = [
            ("a=postgres://me@/db?host=/run/postgresql", &["host=/run/postgresql"]),
            ("main=mysql://me:geheim@host:3306/db", &["geheim"]),
            ("--target=main=postgres://me:a@b:c/d@host/db", &["a@b:c/d"]),
            ("main=mysql://me:geheim@host/db?tls=prefer", &["geheim", "tls=prefer"]),
            ("mysql://me:geheim@host/db?tls=a&password=x", &["geheim", "tls=a&password=x"]),
            ("mysql://me:a?tls=b@host/db?tls=prefer", &["a?tls=b@host/db?tls=prefer"]),
            ("mysql://me:a@host/db?password=b@c", &["a@host/db?password=b@c"]),
            ("main=mysql://me@host/db?password=x", &["password=x"]),
            ("postgres://h/d?sslpassword=a&tls=b&c", &["sslpassword=a&tls=b&c"]),
            ("postgres://h/d?tls=require;password=a", &["tls=require;password=a"]),
            ("postgres://h/d?sslmode=require&token=a", &["sslmode=require&token=a"]),
            ("main=mysql://me@host:3306/db?tls=require", &["tls=require"]),
            ("main=mysql://me@host:3306/db", &[]),
            ("sqlite:x.db", &[]),
            ("://", &[]),
        ];
        for (argument, secrets) in cases {
            let ranges = url_secrets(argument.as_bytes()).into_iter();
            let texts: Vec<&str> = ranges.map(|(from, to)| &argument[from..to]).collect();
            assert_eq!(texts, secrets, "{argument}");
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
        let secrets: Vec<&[u8]> = secret_ranges(arguments, &[])
            .into_iter()
            .map(|(from, to)| &arguments[from..to])
            .collect();
        assert_eq!(secrets, [&b"geheim"[..]]);
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
