//! From the connection options to a target.

use super::options::{DbDriver, IgnoredErrors, MysqlSettings, MysqlSsl, PgsqlSettings, Settings};
use dyno_core::{Dialect, ErrorClass};
use dyno_drivers::net::{Address, Hosts, TlsMode, TlsOptions};
use dyno_drivers::target::Spellings;
use dyno_drivers::{Secret, TargetUrl};
use dyno_engine::{ErrorPolicy, ErrorSet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where servers of MySQL put their socket when they are not told otherwise.
const MYSQL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// Numbers of the MySQL client library for lost connections: in the list of ignored errors they
/// ask for new connections.
const MYSQL_LOST: [&str; 4] = ["2006", "2011", "2013", "2055"];

const MYSQL_SPELLINGS: Spellings = &[
    ("tls=verify-full", "--mysql-ssl=VERIFY_IDENTITY"),
    ("tls=verify-ca", "--mysql-ssl=VERIFY_CA"),
    ("tls=require", "--mysql-ssl=REQUIRED"),
    ("tls=prefer", "--mysql-ssl=PREFERRED"),
    ("tls=disable", "--mysql-ssl=DISABLED"),
    ("cert=FILE and key=FILE", "--mysql-ssl-cert=FILE and --mysql-ssl-key=FILE"),
    ("ca=FILE", "--mysql-ssl-ca=FILE"),
    ("allow_cleartext=true", "--mysql-allow-cleartext=on"),
    (" in the URL", ""),
];

const PGSQL_SPELLINGS: Spellings = &[
    ("tls=", "--pgsql-sslmode="),
    ("ca=FILE", "--pgsql-sslrootcert=FILE"),
    ("allow_cleartext=true", "--pgsql-allow-cleartext=on"),
    (" in the URL", ""),
];

/// The target that the options describe. Passwords that were not given are taken from
/// `environment`.
pub(super) fn target(
    settings: &Settings,
    environment: impl Fn(&str) -> Option<String>,
) -> TargetUrl {
    // A server that does not answer is given up when the time of --thread-init-timeout is over.
    let seconds = settings.thread_init_timeout_s.to_string();
    let mut options = BTreeMap::from([("connect_timeout_s".to_owned(), seconds)]);
    let mut set_if = |condition: bool, name: &str, value: &str| {
        if condition {
            options.insert(name.to_owned(), value.to_owned());
        }
    };
    let password_from = |given: &Option<Secret>, name: &str| {
        given.clone().or_else(|| environment(name).map(Secret::new))
    };
    match settings.db_driver {
        DbDriver::Mysql => {
            let mysql = &settings.mysql;
            // As sysbench's client library does.
            set_if(true, "get_server_public_key", "true");
            set_if(mysql.allow_cleartext, "allow_cleartext", "true");
            set_if(mysql.compression, "compression", &mysql.compression_algorithms);
            let key = &mysql.server_public_key;
            set_if(!key.is_empty(), "server_public_key", key);
            TargetUrl {
                dialect: Dialect::Mysql,
                hosts: Hosts(mysql_addresses(mysql, |path| path.exists())),
                user: Some(mysql.user.clone()),
                password: password_from(&mysql.password, "MYSQL_PWD"),
                database: Some(mysql.db.clone()).filter(|name| !name.is_empty()),
                tls: mysql_tls(mysql, |path| path.exists()),
                options,
                spellings: MYSQL_SPELLINGS,
            }
        }
        DbDriver::Pgsql => {
            let pgsql = &settings.pgsql;
            set_if(pgsql.allow_cleartext, "allow_cleartext", "true");
            let encoding = environment("PGCLIENTENCODING").unwrap_or_default();
            set_if(!encoding.is_empty(), "set.client_encoding", &encoding);
            TargetUrl {
                dialect: Dialect::Postgres,
                hosts: Hosts(pgsql_addresses(pgsql)),
                user: Some(pgsql.user.clone()),
                password: password_from(&pgsql.password, "PGPASSWORD"),
                database: Some(pgsql.db.clone()).filter(|name| !name.is_empty()),
                tls: TlsOptions {
                    mode: pgsql.sslmode,
                    ca: pgsql.ssl_root_cert.clone(),
                    ..TlsOptions::default()
                },
                options,
                spellings: PGSQL_SPELLINGS,
            }
        }
        DbDriver::Sqlite => TargetUrl {
            dialect: Dialect::Sqlite,
            hosts: Hosts(Vec::new()),
            user: None,
            password: None,
            database: Some(settings.sqlite_db.to_string_lossy().into_owned()),
            tls: TlsOptions::default(),
            options: BTreeMap::new(),
            spellings: &[],
        },
    }
}

/// Hosts and ports in the order in which sysbench takes them: all ports of the first host, then
/// all of the next. Sockets replace both.
fn mysql_addresses(mysql: &MysqlSettings, exists: impl Fn(&Path) -> bool) -> Vec<Address> {
    if !mysql.sockets.is_empty() {
        return mysql.sockets.iter().cloned().map(Address::Unix).collect();
    }
    let socket = MYSQL_SOCKETS.iter().map(Path::new).find(|path| exists(path));
    let of_host = |host: &String| match socket {
        // The client library takes the socket even when a port is given, which nobody means.
        Some(socket) if host == "localhost" && !mysql.port_given => {
            vec![Address::Unix(socket.to_owned())]
        }
        _ => mysql.ports.iter().map(|&port| Address::Tcp { host: host.clone(), port }).collect(),
    };
    mysql.hosts.iter().flat_map(of_host).collect()
}

fn pgsql_addresses(pgsql: &PgsqlSettings) -> Vec<Address> {
    let address = |host: &String, port: u16| {
        if host.starts_with('/') {
            Address::Unix(Path::new(host).join(format!(".s.PGSQL.{port}")))
        } else {
            Address::Tcp { host: host.clone(), port }
        }
    };
    let of_host =
        |host: &String| pgsql.ports.iter().map(|&port| address(host, port)).collect::<Vec<_>>();
    pgsql.hosts.iter().flat_map(of_host).collect()
}

fn mysql_tls(mysql: &MysqlSettings, exists: impl Fn(&Path) -> bool) -> TlsOptions {
    let mode = match mysql.ssl {
        MysqlSsl::Off => TlsMode::Disable,
        MysqlSsl::WorkingDirectory => TlsMode::Prefer,
        MysqlSsl::Mode(mode) => mode,
    };
    // The names that 1.0 looks for.
    let here = |given: &Option<PathBuf>, name: &str| {
        let default = (mysql.ssl == MysqlSsl::WorkingDirectory).then(|| PathBuf::from(name));
        given.clone().or_else(|| default.filter(|path| exists(path)))
    };
    TlsOptions {
        mode,
        ca: here(&mysql.ssl_ca, "cacert.pem"),
        cert: here(&mysql.ssl_cert, "client-cert.pem"),
        key: here(&mysql.ssl_key, "client-key.pem"),
        ..TlsOptions::default()
    }
}

/// What follows an error: as in sysbench the errors of the list are tried again without end, every
/// other one ends the run. Unlike there, a failed attempt of a built-in test is rolled back first.
pub(super) fn error_policy(settings: &Settings) -> ErrorPolicy {
    let mut retry = ErrorSet::default();
    let mut reconnect = false;
    let ignored = match settings.db_driver {
        DbDriver::Mysql => &settings.mysql.ignore_errors,
        DbDriver::Pgsql => &settings.pgsql.ignore_errors,
        DbDriver::Sqlite => {
            // sysbench has no SQLite driver; a busy database is its deadlock.
            retry.classes.push(ErrorClass::LockTimeout);
            &IgnoredErrors::None
        }
    };
    match ignored {
        IgnoredErrors::None => {}
        IgnoredErrors::All => {
            retry.all = true;
            reconnect = true;
        }
        IgnoredErrors::Codes(codes) => {
            for code in codes {
                match code.parse() {
                    Ok(errno) if settings.db_driver == DbDriver::Mysql => retry.errnos.push(errno),
                    _ => retry.sqlstates.push(code.clone()),
                }
            }
            let asks_reconnect = |code: &String| match settings.db_driver {
                DbDriver::Mysql => MYSQL_LOST.contains(&code.as_str()),
                _ => code.starts_with("08"),
            };
            reconnect = codes.iter().any(asks_reconnect);
        }
    }
    if reconnect {
        retry.classes.push(ErrorClass::ConnectionLost);
    }
    ErrorPolicy {
        retry,
        max_retries: None,
        tolerate: ErrorSet::default(),
        reconnect,
        retire: false,
        pause: 0,
        ..ErrorPolicy::resilient()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysbench::command_line::read;
    use dyno_core::DbError;
    use dyno_engine::Action;

    fn settings(words: &[&str]) -> Settings {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read(&words).expect("a good command line").settings
    }

    fn addresses(words: &[&str], sockets_exist: bool) -> Vec<String> {
        let settings = settings(words);
        let addresses = match settings.db_driver {
            DbDriver::Pgsql => pgsql_addresses(&settings.pgsql),
            _ => mysql_addresses(&settings.mysql, |_| sockets_exist),
        };
        addresses.iter().map(Address::to_string).collect()
    }

    #[test]
    fn ports_rotate_before_hosts_and_sockets_replace_both() {
        let hosts = addresses(&["--mysql-host=a,b", "--mysql-port=1,2"], false);
        assert_eq!(hosts, ["a:1", "a:2", "b:1", "b:2"]);
        let sockets = addresses(&["--mysql-host=a", "--mysql-socket=/x,/y"], false);
        assert_eq!(sockets, ["/x", "/y"]);
        let pgsql =
            addresses(&["--db-driver=pgsql", "--pgsql-host=a,/run", "--pgsql-port=7"], false);
        assert_eq!(pgsql, ["a:7", "/run/.s.PGSQL.7"]);
    }

    #[test]
    fn localhost_is_the_socket_unless_a_port_is_given() {
        assert_eq!(addresses(&[], true), ["/run/mysqld/mysqld.sock"]);
        assert_eq!(addresses(&[], false), ["localhost:3306"]);
        assert_eq!(addresses(&["--mysql-port=3307"], true), ["localhost:3307"]);
        assert_eq!(addresses(&["--mysql-host=127.0.0.1"], true), ["127.0.0.1:3306"]);
    }

    #[test]
    fn passwords_come_from_the_command_line_before_the_environment() {
        let environment = |name: &str| (name == "MYSQL_PWD").then(|| "env".to_owned());
        let password = |words: &[&str]| {
            let target = target(&settings(words), environment);
            target.password.map(|password| password.reveal().to_owned())
        };
        assert_eq!(password(&["--mysql-password=typed"]).as_deref(), Some("typed"));
        assert_eq!(password(&[]).as_deref(), Some("env"));
        assert_eq!(password(&["--db-driver=pgsql"]), None);
    }

    #[test]
    fn tls_of_1_0_uses_the_files_of_the_working_directory_where_they_exist() {
        let tls = |words: &[&str], exist| mysql_tls(&settings(words).mysql, |_| exist);
        assert_eq!(tls(&[], true).mode, TlsMode::Disable);
        let on = tls(&["--mysql-ssl=on"], true);
        assert_eq!((on.mode, on.ca), (TlsMode::Prefer, Some("cacert.pem".into())));
        assert_eq!(tls(&["--mysql-ssl=on"], false).key, None);
        let required = tls(&["--mysql-ssl=REQUIRED", "--mysql-ssl-ca=/x.pem"], true);
        assert_eq!((required.mode, required.ca), (TlsMode::Require, Some("/x.pem".into())));
    }

    #[test]
    fn ignored_errors_are_tried_again_and_others_end_the_run() {
        let server = |errno, state| DbError::server(ErrorClass::Other, errno, state, "words");
        let policy = error_policy(&settings(&[]));
        assert_eq!(policy.action(&server(1213, *b"40001"), 1_000), Action::Retry);
        assert_eq!(policy.action(&server(1062, *b"23000"), 0), Action::Abort);
        assert_eq!(policy.action(&DbError::lost("gone"), 0), Action::Abort);
        let policy = error_policy(&settings(&["--mysql-ignore-errors=1062,2013"]));
        assert_eq!(policy.action(&server(1062, *b"23000"), 0), Action::Retry);
        assert_eq!(policy.action(&DbError::lost("gone"), 0), Action::Retry);
        let policy = error_policy(&settings(&["--db-driver=pgsql"]));
        assert_eq!(policy.action(&server(0, *b"40001"), 0), Action::Retry);
        assert_eq!(policy.action(&server(0, *b"42P01"), 0), Action::Abort);
        let policy = error_policy(&settings(&["--mysql-ignore-errors=all"]));
        assert_eq!(policy.action(&server(1, *b"HY000"), 0), Action::Retry);
        for nothing in ["none", ""] {
            let policy = error_policy(&settings(&[&format!("--mysql-ignore-errors={nothing}")]));
            assert_eq!(policy.action(&server(1213, *b"40001"), 0), Action::Abort);
            let option = format!("--pgsql-ignore-errors={nothing}");
            let policy = error_policy(&settings(&["--db-driver=pgsql", &option]));
            assert_eq!(policy.action(&server(0, *b"40001"), 0), Action::Abort);
        }
    }
}
