//! What the tests of MySQL sessions share.

use dyno_core::{DbError, Discard, Driver, Param, ParamType, Row, Rows, Session, Table};
use dyno_drivers::mysql::{MysqlDriver, MysqlSession};
use dyno_testkit::{Counting, Scratch};
use std::process::{Command, Stdio};

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    dyno_reactor::block_on(future).unwrap()
}

pub(crate) fn driver(url: &str) -> MysqlDriver {
    MysqlDriver::new(&url.parse().unwrap()).unwrap()
}

pub(crate) async fn connect(url: &str) -> Result<MysqlSession, DbError> {
    MysqlDriver::new(&url.parse().unwrap())?.connect(0).await
}

pub(crate) fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// All rows of an answer to text.
pub(crate) async fn ask(session: &mut MysqlSession, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut table = Table::default();
    session.query(sql, &mut table).await.unwrap();
    table.rows
}

/// Executes statements that must succeed.
pub(crate) async fn run_sql(session: &mut MysqlSession, statements: &[&str]) {
    for sql in statements {
        session.query(sql, &mut Discard).await.unwrap();
    }
}

/// Text longer than a packet and answers as long, both ways.
pub(crate) async fn big_packets(session: &mut MysqlSession, sizes: &[usize]) {
    let sum = session.prepare("SELECT LENGTH(?), 'end'", &[ParamType::Text]).await.unwrap();
    for &size in sizes {
        let long = vec![b'z'; size];
        let mut ints = Ints::default();
        session.execute(sum, &[Param::Text(&long)], &mut ints).await.unwrap();
        assert_eq!(ints.0, [Some(size as i64)]);
        let sql = format!("SELECT REPEAT('z', {size}) UNION ALL SELECT 'end'");
        let rows = ask(session, &sql).await;
        assert_eq!(rows[0][0].as_ref().map(String::len), Some(size));
        assert_eq!(rows[1][0], text("end"));
        let counted = session.query(&sql, &mut Discard).await.unwrap();
        assert_eq!(counted.rows, 2);
    }
}

/// Keeps the numbers of the first column.
#[derive(Default)]
pub(crate) struct Ints(pub(crate) Vec<Option<i64>>);

impl Rows for Ints {
    fn row<R: Row>(&mut self, row: &R) {
        self.0.push(row.int(0));
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two CAs of one's own, and a server certificate for localhost and 127.0.0.1 of the first.
pub(crate) struct Certificates(Scratch);

impl Certificates {
    /// Makes them with the program openssl.
    pub(crate) fn make() -> Result<Self, String> {
        let scratch = Scratch::new();
        let folder = scratch.path().to_owned();
        let openssl = |arguments: &str| {
            let output = Command::new("openssl")
                .args(arguments.split(' '))
                .current_dir(&folder)
                .stdin(Stdio::null())
                .output()
                .map_err(|error| format!("openssl can't be run: {error}"))?;
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(words) }
        };
        for ca in ["ca", "other"] {
            openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout \
                 {ca}.key -out {ca}.pem -subj /CN=test-{ca} -addext keyUsage=critical,keyCertSign"
            ))?;
        }
        openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key \
             -out server.csr -subj /CN=localhost",
        )?;
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
        std::fs::write(folder.join("names"), names).map_err(|error| error.to_string())?;
        openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -extfile names -out server.pem",
        )?;
        // The server runs as another user and must read its key.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.join("server.key"), PermissionsExt::from_mode(0o644))
            .map_err(|error| error.to_string())?;
        Ok(Certificates(scratch))
    }

    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.file(name)
    }

    pub(crate) fn ca(&self) -> String {
        self.0.file("ca.pem").display().to_string()
    }

    pub(crate) fn other_ca(&self) -> String {
        self.0.file("other.pem").display().to_string()
    }

    pub(crate) fn server_options(&self) -> Vec<String> {
        [("ssl-ca", "ca.pem"), ("ssl-cert", "server.pem"), ("ssl-key", "server.key")]
            .map(|(option, file)| format!("--{option}={}", self.0.file(file).display()))
            .to_vec()
    }
}
