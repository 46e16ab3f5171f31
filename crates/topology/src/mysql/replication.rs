//! Replication of MariaDB and MySQL by global transaction identifiers.

use crate::admin::{Admin, Answer, REPLICATION};
use crate::{ClusterError, Product, StateNode};

/// What a read-only node says of its replication.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stream {
    /// True when it receives and applies.
    pub(crate) is_running: bool,
    /// Why it doesn't.
    pub(crate) error: Option<String>,
    /// Seconds behind the primary, as it says itself.
    pub(crate) lag_s: Option<f64>,
}

/// Has a node follow `source` from what it has.
pub(crate) fn follow(
    admin: &Admin,
    product: Product,
    source: &StateNode,
    password: &str,
) -> Result<(), ClusterError> {
    let (host, port) = (&source.host, source.port);
    let user = REPLICATION;
    if product == Product::Mariadb {
        let change = format!(
            "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', \
             MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1"
        );
        admin.ask_all(&["STOP SLAVE", &change, "START SLAVE"])?;
    } else {
        let change = format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', \
             SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1, SOURCE_CONNECT_RETRY=1"
        );
        admin.ask_all(&["STOP REPLICA", &change, "START REPLICA"])?;
    }
    Ok(())
}

/// What the node says of its replication; `None` where it has none.
pub(crate) fn stream(admin: &Admin, product: Product) -> Result<Option<Stream>, ClusterError> {
    let answer = admin.ask(show(product))?;
    Ok((!answer.is_empty()).then(|| read(&answer)))
}

fn show(product: Product) -> &'static str {
    if product == Product::Mariadb { "SHOW SLAVE STATUS" } else { "SHOW REPLICA STATUS" }
}

fn read(answer: &Answer) -> Stream {
    let is_yes = |names: &[&str]| answer.named(names).eq_ignore_ascii_case("yes");
    let receives = is_yes(&["Slave_IO_Running", "Replica_IO_Running"]);
    let applies = is_yes(&["Slave_SQL_Running", "Replica_SQL_Running"]);
    let errors = [answer.named(&["Last_IO_Error"]), answer.named(&["Last_SQL_Error"])];
    let error = errors.into_iter().find(|error| !error.is_empty()).map(str::to_owned);
    let lag_s = answer.named(&["Seconds_Behind_Master", "Seconds_Behind_Source"]).parse().ok();
    Stream { is_running: receives && applies, error, lag_s }
}

/// What a node has executed, in the words of its product.
pub(crate) fn position(admin: &Admin, product: Product) -> Result<String, ClusterError> {
    let sql = if product == Product::Mariadb {
        "SELECT @@GLOBAL.gtid_current_pos"
    } else {
        "SELECT @@GLOBAL.gtid_executed"
    };
    Ok(admin.ask(sql)?.single().replace(char::is_whitespace, ""))
}

/// Waits until a node has executed up to `position`; false when that took longer than `limit_s`.
pub(crate) fn wait_for(
    admin: &Admin,
    product: Product,
    position: &str,
    limit_s: u32,
) -> Result<bool, ClusterError> {
    let sql = if product == Product::Mariadb {
        format!("SELECT MASTER_GTID_WAIT('{position}', {limit_s})")
    } else {
        format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}', {limit_s})")
    };
    Ok(admin.ask(&sql)?.single() == "0")
}

/// Has the primary wait for its read-only nodes from now on, or not any more.
pub(crate) fn wait_for_replicas(
    admin: &Admin,
    product: Product,
    waits: bool,
) -> Result<(), ClusterError> {
    let word = if product == Product::Mariadb { "master" } else { "source" };
    let value = if waits { "ON" } else { "OFF" };
    admin.ask(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled={value}")).map(drop)
}

/// How many read-only nodes acknowledge to this primary.
pub(crate) fn acknowledging(admin: &Admin, product: Product) -> Result<usize, ClusterError> {
    let word = if product == Product::Mariadb { "master" } else { "source" };
    let answer = admin.ask(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_{word}_clients'"))?;
    Ok(answer.named(&["Value"]).parse().unwrap_or(0))
}
