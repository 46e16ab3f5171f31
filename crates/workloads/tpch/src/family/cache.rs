//! What the caches hold when a trial begins.

use crate::facts::CacheFacts;
use crate::options::Cache;
use crate::warm::{as_found, emptied, warm};
use dyno_core::AdminDriver;
use dyno_engine::Control;
use dyno_load::settings::adopt;
use dyno_reactor::{block_on, unless};
use dyno_runner::databases::in_session;
use dyno_runner::failure::Failure;
use dyno_runner::family::{ShellCommand, run_command};

/// Brings the caches into the state that is asked for; `None` when the user has stopped it.
pub(super) fn bring(
    driver: &AdminDriver<'_>,
    target: &str,
    cache: &Cache,
    control: &Control,
) -> Result<Option<CacheFacts>, Failure> {
    let brought = block_on(async {
        match cache {
            Cache::AsFound => Ok(Some(as_found())),
            Cache::Warm => match unless(
                || control.is_stopped(),
                in_session(driver, async |session| {
                    adopt(session).await?;
                    warm(session).await
                }),
            )
            .await
            {
                Some(warmed) => warmed.map(Some).map_err(|error| Failure::from(&error)),
                None => Ok(None),
            },
            Cache::Cold(command) => cooled(driver, target, command, control).await,
        }
    });
    brought.map_err(|error| Failure::new(format!("No event loop: {error}.")))?
}

async fn cooled(
    driver: &AdminDriver<'_>,
    target: &str,
    text: &str,
    control: &Control,
) -> Result<Option<CacheFacts>, Failure> {
    let (told, does, key) = (&[], "empties the caches".into(), "cold_command");
    let command = ShellCommand { target, told, text, does, key, limit: None };
    let took = run_command(driver, &command, control).await?;
    Ok(took.map(|took| emptied(text, took.ended_s, took.back_s)))
}
