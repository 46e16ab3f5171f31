//! Questions over NATS.

use crate::error::{FleetError, FleetResult};
use crate::packet::{pack, unpack};
use crate::protocol::{Answer, Ask, Hello, Question, check_name};
use async_nats::client::Request;
use async_nats::{Client, RequestErrorKind};
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

pub(crate) type Answered = Result<(Answer, Vec<u8>), Silence>;

/// Time limit of one answer, after which the question is asked again.
pub(crate) const ONE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    Nobody,
    Late,
    Other(String),
}

/// Calls the load generators at `subject` for `time`.
pub(crate) async fn who(
    client: &Client,
    subject: String,
    time: Duration,
) -> FleetResult<Vec<Hello>> {
    let failed = |error: String| {
        FleetError::new(format!("Load generators can't be called: {error}."))
            .with_hint("The user needs the right to publish and subscribe dyno.> and _INBOX.>.")
    };
    let inbox = client.new_inbox();
    let mut answers =
        client.subscribe(inbox.clone()).await.map_err(|error| failed(error.to_string()))?;
    let call = pack(&Question { run: String::new(), ask: Ask::Who }, b"").into();
    let called = client.publish_with_reply(subject, inbox, call).await;
    called.map_err(|error| failed(error.to_string()))?;
    let until = Instant::now() + time;
    let mut found: Vec<Hello> = Vec::new();
    while let Ok(Some(message)) = timeout_at(until, answers.next()).await {
        // NATS answers with an empty message that nobody listens.
        if message.status.is_some() {
            break;
        }
        if let Ok((Answer::Here(hello), _)) = unpack::<Answer>(&message.payload)
            && is_plain(&hello)
        {
            found.push(*hello);
        }
    }
    Ok(found)
}

/// Checks the id, which becomes part of a subject, and the name, which is shown: both come from outside.
fn is_plain(hello: &Hello) -> bool {
    [&hello.id, &hello.name].iter().all(|word| check_name("load generator", word).is_ok())
}

pub(crate) async fn ask(
    client: &Client,
    subject: String,
    question: &Question,
    time: Duration,
) -> Answered {
    let request = Request::new().payload(pack(question, b"").into()).timeout(Some(time));
    let answered = client.send_request(subject, request).await;
    let message = answered.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => Silence::Nobody,
        RequestErrorKind::TimedOut => Silence::Late,
        _ => Silence::Other(error.to_string()),
    })?;
    let (answer, body) = unpack(&message.payload).map_err(|error| Silence::Other(error.message))?;
    Ok((answer, body.to_vec()))
}

/// Asks several at the same time: silent ones take no time from the others.
pub(crate) async fn ask_all(
    client: &Client,
    subjects: Vec<String>,
    question: &Question,
    time: Duration,
) -> Vec<Answered> {
    join_all(subjects.into_iter().map(|subject| ask(client, subject, question, time))).await
}

/// Asks until there is an answer, for `patience`. The question must be harmless when asked twice.
pub(crate) async fn insist(
    client: &Client,
    subject: String,
    question: &Question,
    patience: Duration,
) -> Answered {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match ask(client, subject.clone(), question, ONE.min(left)).await {
            Ok(answer) => return Ok(answer),
            Err(silence) if Instant::now() >= until => return Err(silence),
            Err(Silence::Late) => {}
            // After a loss of the connection it takes a moment until all listen again.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NatsOptions;
    use crate::nats::Link;
    use dyno_testkit::{Nats, server_or_skip};
    use std::sync::mpsc::channel;

    #[test]
    fn all_are_asked_before_anybody_answers() {
        let nats = server_or_skip!(Nats, "load generators that are asked together");
        let link = Link::open(&NatsOptions::new(nats.url("")), channel().0).expect("it answers");
        let client = link.client.clone();
        let answers = link
            .wait(async move {
                let subjects: Vec<String> =
                    (0..8).map(|number| format!("asked.{number}")).collect();
                let mut listening = Vec::new();
                for subject in &subjects {
                    listening.push(client.subscribe(subject.clone()).await.expect("a subject"));
                }
                client.flush().await.expect("the server knows the subjects");
                let answering = async {
                    let asked = join_all(listening.iter_mut().map(StreamExt::next)).await;
                    for message in asked.into_iter().flatten() {
                        let reply = message.reply.expect("a question");
                        let answer = pack(&Answer::Done, b"").into();
                        client.publish(reply, answer).await.expect("an answer");
                    }
                };
                let patience = Duration::from_secs(60);
                let who = Question { run: String::new(), ask: Ask::Who };
                let asking = ask_all(&client, subjects, &who, patience);
                let (answers, ()) = futures_util::future::join(asking, answering).await;
                // It listens and says nothing, as a process that hangs.
                let time = Duration::from_millis(50);
                let silent = ask(&client, "asked.0".to_owned(), &who, time).await;
                assert_eq!(silent, Err(Silence::Late));
                answers
            })
            .expect("they are asked");
        assert_eq!(answers, vec![Ok((Answer::Done, Vec::new())); 8]);
    }
}
