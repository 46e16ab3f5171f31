//! Accounts that log in from another host for the first time: nothing but the network lies between.

use dyno_testkit::{
    Certificates, MySql, Network, Postgres, ProcessOutput, Scratch, dyno_command, query_url,
    skipped,
};
use std::cell::Cell;

const CLIENT: u32 = 2;

/// The expected end of a login.
enum End {
    LoggedIn,
    /// With the sentence on standard error that the password went under a key of the server.
    Noted,
    /// With a hint that has these words.
    Refused(&'static str),
}

use End::{LoggedIn, Noted, Refused};

/// A server on this host, whose clients are on another one.
struct Remote<S> {
    server: S,
    host: String,
    port: u16,
    certificates: Certificates,
    folder: Scratch,
    network: Network,
    accounts: Cell<u32>,
}

impl<S> Remote<S> {
    /// # Errors
    /// In words, where networks, certificates or the server can't be had.
    fn start(
        start: impl Fn(&str, &Certificates) -> Result<(S, u16), String>,
    ) -> Result<Remote<S>, String> {
        let network = Network::new(1)?;
        let host = network.address(1);
        let certificates = Certificates::make_at(&host)?;
        let (server, port) = start(&host, &certificates)?;
        let (folder, accounts) = (Scratch::new(), Cell::new(0));
        Ok(Remote { server, host, port, certificates, folder, network, accounts })
    }

    fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Runs a front end on the other host and compares the end of its login.
    fn check(&self, words: &[String], variables: &[(&str, &str)], end: &End) {
        let mut command = dyno_command(self.folder.path());
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGREQUIREAUTH", "PGSSLMODE"] {
            command.env_remove(name);
        }
        command.args(words).envs(variables.iter().copied());
        let output = ProcessOutput::capture(&mut self.network.on_host(CLIENT, &command));
        let place = format!("{words:?} {variables:?}: {output}");
        assert!(!output.to_string().contains("s3cr3t"), "{place}");
        let notes = output.stderr.matches("note: the password was sent").count();
        assert_eq!(notes, usize::from(matches!(end, Noted)), "{place}");
        match end {
            LoggedIn | Noted => assert_eq!(output.code, 0, "{place}"),
            Refused(words) => {
                assert_ne!(output.code, 0, "{place}");
                let hint = output.stderr.lines().find(|line| line.contains("hint: "));
                assert!(hint.is_some_and(|hint| hint.contains(words)), "{place}");
            }
        }
    }

    /// `dyno benchmarksql` destroys what is not there.
    fn check_jdbc(&self, verb: &str, db: &str, user: &str, conn: &str, end: &End) {
        let text =
            format!("db={db}\ndriver=x\nconn={conn}\nuser={user}\npassword=s3cr3t\nwarehouses=1\n");
        std::fs::write(self.folder.file("props"), text).expect("a file");
        self.check(&words(&format!("benchmarksql {verb} props")), &[], end);
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

const SCRIPT: &str = "function thread_init()\n con = sysbench.sql.driver():connect()\nend\n\
                      function event()\n con:query('SELECT 1')\nend\n";

const TABLE: &str = "CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60))";
const ROW: &str = "INSERT INTO sbtest1 VALUES (1, 1, '', '')";

fn start_mysql(host: &str, certificates: &Certificates) -> Result<(MySql, u16), String> {
    let certificate_path = |name: &str| certificates.file(name).display().to_string();
    let options = [
        format!("--bind-address=127.0.0.1,{host}"),
        format!("--ssl-ca={}", certificate_path("ca.pem")),
        format!("--ssl-cert={}", certificate_path("server.pem")),
        format!("--ssl-key={}", certificate_path("server.key")),
    ];
    let server = MySql::start_with(&options.each_ref().map(String::as_str))?;
    let port = server.port;
    Ok((server, port))
}

impl Remote<MySql> {
    fn sql(&self, text: &str) {
        query_url(&self.server.url(), text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// The name of an account that the server has never seen logging in.
    fn fresh(&self) -> String {
        self.accounts.set(self.accounts.get() + 1);
        let user = format!("fresh{}", self.accounts.get());
        self.sql(&format!("CREATE USER {user} IDENTIFIED BY 's3cr3t'"));
        self.sql(&format!("GRANT ALL ON sbtest.* TO {user}"));
        user
    }

    fn key(&self) -> String {
        format!("{}/data/public_key.pem", self.server.server.folder().display())
    }

    fn check_sysbench(&self) {
        let (ca, key) = (self.certificates.ca(), self.key());
        for (ssl, end) in [
            ("", Noted),
            (" --mysql-ssl=off", Noted),
            (" --mysql-ssl=DISABLED", Noted),
            (&format!(" --mysql-server-public-key={key}"), LoggedIn),
            (" --mysql-ssl=on", LoggedIn),
            (" --mysql-ssl=PREFERRED", LoggedIn),
            (" --mysql-ssl=REQUIRED", LoggedIn),
            (&format!(" --mysql-ssl=VERIFY_CA --mysql-ssl-ca={ca}"), LoggedIn),
            (&format!(" --mysql-ssl=VERIFY_IDENTITY --mysql-ssl-ca={ca}"), LoggedIn),
            (" --mysql-ssl=VERIFY_IDENTITY", Refused("--mysql-ssl-ca=FILE")),
        ] {
            for test in ["oltp_point_select", "own.lua"] {
                let (host, port, user) = (&self.host, self.port, self.fresh());
                let line = format!(
                    "sysbench --mysql-host={host} --mysql-port={port} --mysql-user={user} \
                     --mysql-password=s3cr3t --table-size=1 --events=1{ssl} {test} run"
                );
                self.check(&words(&line), &[], &end);
            }
        }
    }

    fn check_urls(&self) {
        let (ca, key) = (self.certificates.ca(), self.key());
        let no_tls =
            "tls=require, or add get-server-public-key=true or server_public_key=FILE in the URL";
        for (query, end) in [
            ("", LoggedIn),
            ("?tls=disable", Refused(no_tls)),
            ("?tls=disable&get-server-public-key=true", LoggedIn),
            (&format!("?tls=disable&server_public_key={key}"), LoggedIn),
            ("?tls=require", LoggedIn),
            (&format!("?tls=verify-full&ca={ca}"), LoggedIn),
            ("?tls=verify-full", Refused("ca=FILE")),
        ] {
            let fresh_url =
                || format!("mysql://{}:s3cr3t@{}/sbtest{query}", self.fresh(), self.place());
            // The first one makes the tables that the second one checks.
            for command in ["pgbench -i --target", "check"] {
                self.check(&words(&format!("{command} {}", fresh_url())), &[], &end);
            }
            // The tables that it would make are there, as it sees after the login.
            let end = match end {
                LoggedIn => Refused("name another database"),
                other => other,
            };
            self.check(&words(&format!("bench {}", fresh_url())), &[], &end);
        }
    }

    fn check_benchmarksql(&self) {
        let (ca, key) = (self.certificates.ca(), self.key());
        let no_tls = "sslMode=REQUIRED, or add allowPublicKeyRetrieval=true or \
                      serverRSAPublicKeyFile=FILE in the URL";
        for (driver, query, end) in [
            ("mysql", "", LoggedIn),
            ("mysql", "?useSSL=false", Refused(no_tls)),
            ("mysql", "?sslMode=DISABLED", Refused(no_tls)),
            ("mysql", "?sslMode=DISABLED&allowPublicKeyRetrieval=true", LoggedIn),
            ("mysql", &format!("?sslMode=DISABLED&serverRSAPublicKeyFile={key}"), LoggedIn),
            ("mysql", "?sslMode=REQUIRED", LoggedIn),
            ("mysql", &format!("?sslMode=VERIFY_IDENTITY&serverSslCert={ca}"), LoggedIn),
            ("mysql", "?sslMode=VERIFY_IDENTITY", Refused("serverSslCert=FILE")),
            // Of MariaDB's driver this is without TLS.
            ("mariadb", "", Refused(no_tls)),
            ("mariadb", "?sslMode=trust", LoggedIn),
        ] {
            let conn = format!("jdbc:{driver}://{}/sbtest{query}", self.place());
            self.check_jdbc("destroy", "mysql", &self.fresh(), &conn, &end);
        }
        let conn = format!("jdbc:mysql://{}/sbtest", self.place());
        self.check_jdbc("build", "mysql", &self.fresh(), &conn, &LoggedIn);
    }
}

#[test]
fn remote_mysql_of_an_account_never_used() {
    let remote = match Remote::start(start_mysql) {
        Ok(remote) => remote,
        Err(why) => return skipped("remote_mysql_of_an_account_never_used", &why),
    };
    std::fs::write(remote.folder.file("own.lua"), SCRIPT).expect("a script");
    remote.sql(TABLE);
    remote.sql(ROW);
    remote.check_sysbench();
    remote.check_urls();
    remote.check_benchmarksql();
}

fn start_postgres(host: &str, certificates: &Certificates) -> Result<(Postgres, u16), String> {
    let certificate_path = |name: &str| certificates.file(name).display().to_string();
    let hba = "host all postgres 127.0.0.1/32 trust\nhost all hashed all md5\n\
               host all plain all password\nhostssl all encrypted all trust\n";
    std::fs::write(certificates.file("hba"), hba).expect("a file");
    let options = [
        format!("listen_addresses=127.0.0.1,{host}"),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", certificate_path("server.pem")),
        format!("ssl_key_file={}", certificate_path("own.key")),
        format!("hba_file={}", certificate_path("hba")),
    ];
    let options: Vec<&str> = options.iter().flat_map(|text| ["-c", text.as_str()]).collect();
    let server = Postgres::start_with(&options)?;
    let port = server.port;
    Ok((server, port))
}

impl Remote<Postgres> {
    fn check_pgbench(&self) {
        let ca = self.certificates.ca();
        let no_tls = "sslmode=require, or add allow_cleartext=true in the connection string";
        let password = ("PGPASSWORD", "s3cr3t");
        let password_and = |name, value| [password, (name, value)];
        for (user, text, variables, end) in [
            ("plain", "", &[password][..], LoggedIn),
            ("plain", "sslmode=disable", &[password], Refused(no_tls)),
            ("plain", "sslmode=allow", &[password], LoggedIn),
            ("plain", "", &password_and("PGSSLMODE", "disable"), Refused(no_tls)),
            ("plain", "sslmode=disable allow_cleartext=true", &[password], LoggedIn),
            ("plain", "sslmode=require", &[password], LoggedIn),
            ("plain", &format!("sslmode=verify-full sslrootcert={ca}"), &[password], LoggedIn),
            ("plain", "sslmode=verify-full", &[password], Refused("sslrootcert=FILE or in ~/.po")),
            ("plain", "", &password_and("PGREQUIREAUTH", "scram-sha-256"), Refused("require_auth")),
            ("plain", "require_auth=!password", &[password], Refused("require_auth")),
            ("hashed", "sslmode=disable", &[password], LoggedIn),
        ] {
            let mut line = words("pgbench -n -t 1 -f one.sql");
            let (host, port) = (&self.host, self.port);
            line.push(format!("host={host} port={port} user={user} dbname=sbtest {text}"));
            self.check(&line, variables, &end);
        }
    }

    fn check_urls(&self) {
        for (query, end) in [
            ("", LoggedIn),
            ("?sslmode=disable", Refused("tls=require, or add allow_cleartext=true in the URL")),
            ("?sslmode=disable&allow_cleartext=true", LoggedIn),
            ("?sslmode=require", LoggedIn),
        ] {
            let mut line = words("pgbench -n -t 1 -f one.sql --target");
            line.push(format!("postgres://plain@{}/sbtest{query}", self.place()));
            self.check(&line, &[("PGPASSWORD", "s3cr3t")], &end);
        }
        for (query, end) in [
            ("", LoggedIn),
            ("?ssl=false", Refused("sslmode=require, or add allowCleartext=true in the URL")),
            ("?ssl=false&allowCleartext=true", LoggedIn),
            ("?sslmode=require", LoggedIn),
        ] {
            let conn = format!("jdbc:postgresql://{}/sbtest{query}", self.place());
            self.check_jdbc("destroy", "postgres", "plain", &conn, &end);
        }
    }

    fn check_sysbench(&self) {
        let no_tls = "--pgsql-sslmode=require, or add --pgsql-allow-cleartext=on";
        for (ssl, end) in [
            ("", LoggedIn),
            (" --pgsql-sslmode=disable", Refused(no_tls)),
            (" --pgsql-sslmode=disable --pgsql-allow-cleartext=on", LoggedIn),
            (" --pgsql-sslmode=require", LoggedIn),
            (
                " --pgsql-sslmode=disable --pgsql-user=encrypted",
                Refused("connect with --pgsql-sslmode=require"),
            ),
        ] {
            let (host, port) = (&self.host, self.port);
            let line = format!(
                "sysbench --db-driver=pgsql --pgsql-host={host} --pgsql-port={port} --pgsql-user=plain \
                 --pgsql-password=s3cr3t --table-size=1 --events=1{ssl} oltp_point_select run"
            );
            self.check(&words(&line), &[], &end);
        }
    }
}

#[test]
fn remote_postgres_that_asks_for_the_password_in_clear_text() {
    let remote = match Remote::start(start_postgres) {
        Ok(remote) => remote,
        Err(why) => {
            return skipped("remote_postgres_that_asks_for_the_password_in_clear_text", &why);
        }
    };
    let roles = "CREATE ROLE plain LOGIN PASSWORD 's3cr3t'; SET password_encryption = 'md5'; \
                 CREATE ROLE hashed LOGIN PASSWORD 's3cr3t'; CREATE ROLE encrypted LOGIN; \
                 GRANT ALL ON DATABASE sbtest TO PUBLIC";
    remote.server.sql(roles).expect("roles");
    let grants = "GRANT ALL ON SCHEMA public TO PUBLIC";
    let sql = format!("{TABLE}; {ROW}; {grants}; GRANT ALL ON sbtest1 TO PUBLIC");
    remote.server.sbtest(&sql).expect("a table");
    std::fs::write(remote.folder.file("one.sql"), "SELECT 1;\n").expect("a script");
    remote.check_pgbench();
    remote.check_urls();
    remote.check_sysbench();
}
