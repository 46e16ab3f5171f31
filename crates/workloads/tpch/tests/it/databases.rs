//! What tests on databases share.

use dyno_core::{Driver, Session, Table};
use dyno_drivers::Target;
use dyno_reactor::block_on;

pub(crate) fn target(url: &str) -> Target {
    url.parse().unwrap()
}

/// Does something with one session.
pub(crate) fn with_session<D: Driver, T>(
    driver: &D,
    work: impl AsyncFn(&mut D::Session) -> T,
) -> T {
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let result = work(&mut session).await;
        session.close().await;
        result
    })
    .unwrap()
}

/// The one number that a statement answers with.
pub(crate) fn number<D: Driver>(driver: &D, sql: &str) -> u64 {
    with_session(driver, async |session: &mut D::Session| {
        let mut answer = Table::default();
        session.query(sql, &mut answer).await.unwrap();
        answer.single().unwrap().parse().unwrap()
    })
}
