mod jdbc;
mod libpq;

use super::password::find_with;
use super::url::{percent_decode, push_encoded, redact};
use super::*;
use crate::net::TlsMode;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

fn parse(text: &str) -> TargetUrl {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refuse(text: &str) -> TargetError {
    text.parse::<TargetUrl>().expect_err(text)
}

fn hosts(text: &str) -> Vec<String> {
    parse(text).hosts.0.iter().map(ToString::to_string).collect()
}

#[test]
fn a_full_mysql_url_is_understood() {
    let target = parse(
        "mysql://sb%40x:p%3Aw@db1:3307,[::1],db3:3309/sbtest?tls=require&ca=/x.pem&cert=/c&key=/k\
         &connect_timeout_s=5&set.sql_mode=ANSI%2CTRADITIONAL&set.autocommit=1",
    );
    assert_eq!(target.dialect, Dialect::Mysql);
    assert_eq!(target.user.as_deref(), Some("sb@x"));
    assert_eq!(target.password.as_ref().unwrap().reveal(), "p:w");
    assert_eq!(target.database.as_deref(), Some("sbtest"));
    let addresses: Vec<String> = target.hosts.0.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["db1:3307", "[::1]:3306", "db3:3309"]);
    assert_eq!(target.tls.mode, TlsMode::Require);
    assert_eq!(target.tls.ca, Some(PathBuf::from("/x.pem")));
    assert_eq!(target.connect_timeout_s(), 5);
    let variables: Vec<_> = target.session_variables().collect();
    assert_eq!(variables, [("autocommit", "1"), ("sql_mode", "ANSI,TRADITIONAL")]);
    assert_eq!(
        target.to_string(),
        "mysql://sb%40x:***@db1:3307,[::1]:3306,db3:3309/sbtest?tls=require&ca=/x.pem&cert=/c\
         &key=/k&connect_timeout_s=5&set.autocommit=1&set.sql_mode=ANSI,TRADITIONAL"
    );
    assert!(!format!("{target:?}").contains("p:w"));
}

#[test]
fn postgres_urls_take_libpq_words() {
    let target = parse(
        "postgresql://u@/db?host=/run/pg&port=5433&sslmode=verify-full&sslrootcert=/ca\
         &options=-c%20geqo%3Doff&connect_timeout=3",
    );
    assert_eq!(target.dialect, Dialect::Postgres);
    assert_eq!(target.hosts.0, [Address::Unix("/run/pg/.s.PGSQL.5433".into())]);
    assert_eq!(target.tls.mode, TlsMode::VerifyFull);
    assert_eq!(target.options["options"], "-c geqo=off");
    assert_eq!(target.connect_timeout_s(), 3);
    assert_eq!(hosts("postgres://"), ["localhost:5432"]);
    assert_eq!(hosts("postgres://%2Ftmp:6000/x"), ["/tmp/.s.PGSQL.6000"]);
    assert_eq!(hosts("postgres:///x?host=a,b&port=7"), ["a:7", "b:7"]);
    assert_eq!(hosts("postgres:///x?port=7&host=a,b"), ["a:7", "b:7"]);
}

#[test]
fn sockets_and_defaults() {
    assert_eq!(hosts("mysql://root@localhost/db?socket=/tmp/my.sock"), ["/tmp/my.sock"]);
    assert_eq!(hosts("mariadb://root@"), ["localhost:3306"]);
    assert_eq!(hosts("mysql://root@%2Ftmp%2Fa,b/"), ["/tmp/a", "b:3306"]);
    let target = parse("mysql://h");
    assert_eq!((target.user, target.password, target.database), (None, None, None));
    assert_eq!(target.tls.mode, TlsMode::Prefer);
    let bare = parse("mysql://u:p@w@h/db");
    assert_eq!(bare.password.unwrap().reveal(), "p@w");
}

#[test]
fn sqlite_urls() {
    let target = parse("sqlite:/tmp/a%3Fb.db?busy_timeout_ms=10&synchronous=FULL&journal=wal");
    assert_eq!(target.database.as_deref(), Some("/tmp/a?b.db"));
    assert_eq!(target.number("busy_timeout_ms"), Some(10));
    assert_eq!(target.options["synchronous"], "full");
    assert_eq!(
        target.to_string(),
        "sqlite:/tmp/a%3Fb.db?busy_timeout_ms=10&journal=wal&synchronous=full"
    );
    assert_eq!(parse("sqlite:///abs/x.db").database.as_deref(), Some("/abs/x.db"));
    assert_eq!(parse("sqlite:x.db").database.as_deref(), Some("x.db"));
    assert!(refuse("sqlite::memory:").hint.unwrap().contains("/dev/shm"));
    assert!(refuse("sqlite:").message.contains("names no file"));
}

#[test]
fn mistakes_are_named_with_a_remedy_and_without_the_password() {
    let cases = [
        ("mysql://u:secret@h/db?tsl=require", "unknown key `tsl`", "did you mean `tls`?"),
        ("mysql://u:secret@h/db?conect_timeout_s=1", "unknown key", "`connect_timeout_s`"),
        ("mysql://u:secret@h/db?frobnicate=1", "unknown key", "known keys are user, password"),
        ("postgres://u:secret@h/db?tls=maybe", "tls=maybe, but one of disable, allow, prefer", ""),
        ("mysql://u:secret@h/db?tls=allow", "tls=allow, but one of disable, prefer", ""),
        ("mysql://u:secret@h:0/db", "number from 1 to 65535", "brackets"),
        ("mysql://u:secret/db", "number from 1 to 65535", "password is followed by @"),
        ("mysql://u:sec%ret@h/db", "bad percent-encoding in its password", "%25"),
        ("oracle://u:secret@h/db", "unknown scheme", "mysql://user@host"),
        ("u:secret@h", "unknown scheme", "mysql://user@host"),
        ("nonsense", "has no scheme", "mysql://user@host"),
        ("mysql:u:secret@h/db", "lacks the //", "mysql://user@host"),
        ("mysql://u:secret@h/db?cert=/c", "lacks key=", "together"),
        ("mysql://u:secret@far/db?socket=/x", "both a socket and a host", "localhost"),
        ("mysql://u:pa?secret@h/db", "number from 1 to 65535", "password is followed by @"),
        ("mysql://u:12?secret@h/db", "unknown key", "%3F"),
        ("postgres://h/db?password=secret&x=1", "unknown key", "known keys"),
    ];
    for (url, message, hint) in cases {
        let error = refuse(url);
        let actual_hint = error.hint.as_deref().unwrap_or_default();
        assert!(error.message.contains(message), "{url}: {}", error.message);
        assert!(actual_hint.contains(hint), "{url}: {actual_hint}");
        assert!(!error.message.contains("sec"), "{url}: {}", error.message);
        assert!(!actual_hint.contains("sec"), "{url}: {actual_hint}");
    }
    for url in [
        "mysql://[::1/db",
        "mysql://[::1]x/db",
        "mysql://h/db?connect_timeout_s=0",
        "mysql://h/db?connect_timeout_s=soon",
        "mysql://h/db?socket=rel",
        "sqlite:x?journal=paper",
        "mysql://h/db?set.=1",
        "mysql://h/db?set.a;drop=1",
        "sqlite:x?set.a=1",
    ] {
        refuse(url);
    }
}

#[test]
fn the_user_is_asked_for_when_nobody_knows_it() {
    assert_eq!(parse("mysql://me@h").user_or_default().unwrap(), "me");
}

/// A home folder that goes away with the test.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Home(TempDir::new().unwrap())
    }

    /// Writes a file with these permissions.
    fn write(&self, file: &str, mode: u32, text: &str) {
        let path = self.0.path().join(file);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Searches for a password with this folder as home.
    fn find(&self, url: &str, name: Option<&str>) -> FoundPassword {
        let home = self.0.path();
        find_with(&parse(url), name, &|variable: &str| match variable {
            "HOME" => Some(home.display().to_string()),
            "DYNO_PASSWORD_MY_DB_1" => Some("from the environment".to_owned()),
            "USER" => Some("me".to_owned()),
            _ => None,
        })
    }

    fn password(&self, url: &str) -> Option<String> {
        self.find(url, None).password.map(|secret| secret.reveal().to_owned())
    }
}

#[test]
fn the_url_comes_before_the_environment_and_that_before_files() {
    let home = Home::new();
    home.write(".pgpass", 0o600, "*:*:*:*:from the file\n");
    for (url, name, expected) in [
        ("postgres://u:url@h/db", "my-db.1", "url"),
        ("postgres://u@h/db", "my-db.1", "from the environment"),
        ("postgres://u@h/db", "other", "from the file"),
        ("mysql://u@h/db", "my-db.1", "from the environment"),
    ] {
        assert_eq!(home.find(url, Some(name)).password.unwrap().reveal(), expected);
    }
    assert_eq!(home.find("mysql://u@h/db", None), FoundPassword::default());
    assert_eq!(home.find("sqlite:x", None), FoundPassword::default());
}

#[test]
fn pgpass_lines_match_as_in_libpq() {
    let home = Home::new();
    let lines = "# a comment\n\
                 h:5432:db:u:first\n\
                 h:*:*:u:se\\:co\\\\nd\n\
                 a\\:b:5432:*:u:colon\n\
                 localhost:5432:me:me:socket\n\
                 /my/run:5433:*:u:folder\n\
                 \\*:5432:*:u:star\n\
                 short:line\n";
    home.write(".pgpass", 0o600, lines);
    assert_eq!(home.password("postgres://u@h/db").as_deref(), Some("first"));
    assert_eq!(home.password("postgres://u@h/other").as_deref(), Some("se:co\\nd"));
    assert_eq!(home.password("postgres://u@[a:b]/db").as_deref(), Some("colon"));
    assert_eq!(home.password("postgres://?host=/var/run/postgresql").as_deref(), Some("socket"));
    assert_eq!(home.password("postgres://u@/x?host=/my/run&port=5433").as_deref(), Some("folder"));
    assert_eq!(home.password("postgres://v@h/db"), None);
    assert_eq!(home.password("postgres://u@x,h/db").as_deref(), Some("first"));

    home.write(".pgpass", 0o640, lines);
    let protected = home.find("postgres://u@h/db", None);
    assert_eq!(protected.password, None);
    assert!(protected.warning.unwrap().contains("chmod 600"));
}

#[test]
fn my_cnf_is_read_as_mysql_does() {
    let home = Home::new();
    home.write(
        ".my.cnf",
        0o600,
        "[mysqld]\npassword=wrong\n[client]\n; note\nuser = app # who\n\
         password=old\npassword = \"a#b\\\"c\\\\d\" # why\n[mysqldump]\npassword=wrong\n",
    );
    let credentials = home.find("mysql://h/db", None);
    assert_eq!(credentials.password.unwrap().reveal(), "a#b\"c\\d");
    assert_eq!(credentials.user.as_deref(), Some("app"));
    assert_eq!(home.find("mysql://u@h/db", None).user, None);
    let credentials = home.find("mysql://:pw@h/db", None);
    assert_eq!(
        (credentials.password.unwrap().reveal(), credentials.user.as_deref()),
        ("pw", Some("app"))
    );

    home.write(".my.cnf", 0o600, "[client]\npassword=x\n[client-mariadb]\npassword=y\n");
    let password = home.find("mysql://h/db", None).password;
    assert_eq!(password.unwrap().reveal(), "y");
    home.write(".my.cnf", 0o666, "[client]\npassword=x\n");
    let credentials = home.find("mysql://h/db", None);
    assert!(credentials.password.is_none() && credentials.warning.is_some());
}

#[test]
fn tls_of_my_cnf_is_for_urls_that_say_nothing_of_it() {
    let home = Home::new();
    let tls = |text: &str, url: &str| {
        home.write(".my.cnf", 0o600, &format!("[client]\npassword=x\n{text}"));
        let (credentials, mut target) = (home.find(url, None), parse(url));
        let warning = credentials.warning.clone();
        credentials.complete(&mut target);
        assert_eq!(target.password.unwrap().reveal(), "x");
        (target.tls.mode, target.tls.ca.map(|path| path.display().to_string()), warning)
    };
    let (own, file) = ("mysql://u@h/db", "ssl-mode=VERIFY_IDENTITY\nssl_ca = '/x y.pem'\n");
    let ca = Some("/x y.pem".to_owned());
    assert_eq!(tls(file, own), (TlsMode::VerifyFull, ca.clone(), None));
    assert_eq!(tls(file, "mysql://u@h/db?tls=require"), (TlsMode::Require, None, None));
    assert_eq!(tls("ssl-mode=DISABLED", own), (TlsMode::Disable, None, None));
    // As the server's own clients.
    assert_eq!(tls("ssl-ca=/x y.pem", own), (TlsMode::VerifyCa, ca, None));
    let (mode, _, warning) = tls("ssl-mode=sometimes", own);
    assert_eq!(mode, TlsMode::Prefer);
    assert!(warning.unwrap().contains(".my.cnf were ignored"));
}

#[test]
fn files_that_cannot_be_used_are_no_obstacle() {
    let home = Home::new();
    // A folder that is a file: what is below can't be looked at, as below the home of another user.
    home.write("file", 0o600, "");
    let below = home.0.path().join("file").display().to_string();
    for url in ["postgres://u@h/db", "mysql://u@h/db"] {
        let matches =
            find_with(&parse(url), None, &|name: &str| (name == "HOME").then(|| below.clone()));
        assert_eq!(matches, FoundPassword::default(), "{url}");
    }
    for (file, url) in [(".pgpass", "postgres://u@h/db"), (".my.cnf", "mysql://u@h/db")] {
        std::fs::create_dir(home.0.path().join(file)).unwrap();
        assert!(home.find(url, None).warning.unwrap().contains("not a plain file"));
        std::fs::remove_dir(home.0.path().join(file)).unwrap();
    }
    let text = b"h:5432:db:other:p\xe4ss\n*:*:*:u:mine\n";
    home.write(".pgpass", 0o600, "");
    std::fs::write(home.0.path().join(".pgpass"), text).unwrap();
    assert_eq!(home.password("postgres://u@h/db").as_deref(), Some("mine"));
}

fn any_address(dialect: Dialect) -> impl Strategy<Value = Address> {
    let tcp = ("[a-z][a-z0-9.-]{0,9}|::1|fe80::2", 1_u16..)
        .prop_map(|(host, port)| Address::Tcp { host, port });
    let socket = ("/[a-z ,%@]{1,9}", 1_u16..).prop_map(move |(path, port)| match dialect {
        Dialect::Postgres => postgres_socket(&path, port),
        _ => Address::Unix(path.into()),
    });
    prop_oneof![4 => tcp, 1 => socket]
}

prop_compose! {
    fn any_target()(dialect in prop_oneof![Just(Dialect::Mysql), Just(Dialect::Postgres)])(
        dialect in Just(dialect),
        hosts in prop::collection::vec(any_address(dialect), 1..4),
        user in prop::option::of("\\PC{1,8}"),
        password in prop::option::of("\\PC{0,8}"),
        database in prop::option::of("\\PC{1,8}"),
        mode in prop::sample::select(vec![TlsMode::Disable, TlsMode::Prefer, TlsMode::VerifyFull]),
        ca in prop::option::of("/\\PC{1,8}"),
        variables in prop::collection::btree_map("set\\.[a-z_]{1,8}", "\\PC{0,8}", 0..3),
        timeout in prop::option::of(1_u64..=3600),
    ) -> TargetUrl {
        let mut options = variables;
        options.extend(timeout.map(|s| ("connect_timeout_s".to_owned(), s.to_string())));
        let tls = TlsOptions { mode, ca: ca.map(PathBuf::from), ..TlsOptions::default() };
        let password = password.map(Secret::new);
        let (hosts, spellings) = (Hosts(hosts), &[][..]);
        TargetUrl { dialect, hosts, user, password, database, tls, options, spellings }
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(target in any_target()) {
        let mut password = String::new();
        if let Some(secret) = &target.password {
            push_encoded(&mut password, secret.reveal(), b"");
        }
        let url = url::print(&target, &password);
        prop_assert_eq!(url.parse::<TargetUrl>().unwrap(), target, "{}", url);
    }

    #[test]
    fn no_text_makes_the_parser_panic(
        text in "(mysql|postgres|sqlite|x)?:?/?/?[a-z%@:?&=/,\\[\\].0-9é]{0,40}|\\PC{0,40}"
    ) {
        let _ = text.parse::<TargetUrl>().map(|target| target.to_string());
    }

    #[test]
    fn a_password_before_an_at_never_shows(
        start in "(mysql|postgres|x)://[a-z]{0,5}:[a-z?&=/:@]{0,6}",
        between in "[?&=/:@]?(tls=|port=|set\\.)?",
        end in "@[a-z%:?&=/,\\[\\].0-9]{0,30}",
    ) {
        let url = format!("{start}{between}QWERTZ{end}");
        prop_assert!(!redact(&url).contains("QWERTZ"));
        let debug_text = match url.parse::<TargetUrl>() {
            Ok(target) => format!("{target} {target:?}"),
            Err(error) => format!("{error:?}"),
        };
        prop_assert!(!debug_text.contains("QWERTZ"), "{}", debug_text);
    }

    #[test]
    fn percent_encoding_is_undone(text in "\\PC{0,30}") {
        let mut encoded = String::new();
        push_encoded(&mut encoded, &text, b"/");
        prop_assert!(encoded.is_ascii());
        prop_assert_eq!(percent_decode(&encoded), Some(text));
    }
}
