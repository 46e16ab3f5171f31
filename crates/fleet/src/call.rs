//! Questions over NATS.

use crate::nats::{FleetKey, SealContext};
use crate::protocol::{Answer, Ask, Hello, Question, SentQuestion, check_name, pack, unpack};
use crate::{FleetError, FleetResult};
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

/// Who asks, and the key that all messages are sealed with.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) key: FleetKey,
}

/// Who has answered a call.
#[derive(Default)]
pub(crate) struct Called {
    /// How long each has taken.
    pub(crate) found: Vec<(Hello, Duration)>,
    /// Why others do not work, in sentences.
    pub(crate) refused: Vec<String>,
}

/// Calls the load generators at `subject` for `time`.
pub(crate) async fn who(caller: &Caller, subject: String, time: Duration) -> FleetResult<Called> {
    let Caller { client, key } = caller;
    let failed = |error: String| {
        FleetError::new(format!("Load generators can't be called: {error}."))
            .with_hint("The user needs the right to publish and subscribe dyno.> and _INBOX.>.")
    };
    let inbox = client.new_inbox();
    let mut answers =
        client.subscribe(inbox.clone()).await.map_err(|error| failed(error.to_string()))?;
    let asked = SentQuestion::now(&Question { run: String::new(), ask: Ask::Who })?;
    let (stamp, call) = key.seal(SealContext::QuestionTo(&subject), &pack(&asked, b""));
    let called = client.publish_with_reply(subject, inbox, call.into()).await;
    called.map_err(|error| failed(error.to_string()))?;
    let begun = Instant::now();
    let until = begun + time;
    let mut called = Called::default();
    while let Ok(Some(message)) = timeout_at(until, answers.next()).await {
        // NATS answers with an empty message that nobody listens.
        if message.status.is_some() {
            break;
        }
        let opened = key.open(SealContext::AnswerTo(&stamp), &message.payload);
        match opened.and_then(|(_, packet)| unpack::<Answer>(packet).ok()) {
            Some((Answer::Here(hello), _)) if is_plain(&hello) => {
                called.found.push((*hello, begun.elapsed()));
            }
            Some((Answer::Refused { why }, _)) => called.refused.push(why),
            _ => {}
        }
    }
    Ok(called)
}

/// Checks the id, which becomes part of a subject, and the name, which is shown: both come from outside.
fn is_plain(hello: &Hello) -> bool {
    [&hello.id, &hello.name].iter().all(|word| check_name("load generator", word).is_ok())
}

pub(crate) async fn ask(
    caller: &Caller,
    subject: String,
    question: &Question,
    time: Duration,
) -> Answered {
    let Caller { client, key } = caller;
    let asked = SentQuestion::now(question).map_err(|error| Silence::Other(error.message))?;
    let (stamp, sealed) = key.seal(SealContext::QuestionTo(&subject), &pack(&asked, b""));
    let request = Request::new().payload(sealed.into()).timeout(Some(time));
    let answered = client.send_request(subject, request).await;
    let message = answered.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => Silence::Nobody,
        RequestErrorKind::TimedOut => Silence::Late,
        _ => Silence::Other(error.to_string()),
    })?;
    let opened = key.open(SealContext::AnswerTo(&stamp), &message.payload);
    let forged = || Silence::Other("its answer is not sealed with the fleet's key".to_owned());
    let (_, packet) = opened.ok_or_else(forged)?;
    let (answer, body) = unpack(packet).map_err(|error| Silence::Other(error.message))?;
    Ok((answer, body.to_vec()))
}

/// Asks several at the same time: silent ones take no time from the others.
pub(crate) async fn ask_all(
    caller: &Caller,
    subjects: Vec<String>,
    question: &Question,
    time: Duration,
) -> Vec<Answered> {
    join_all(subjects.into_iter().map(|subject| ask(caller, subject, question, time))).await
}

/// Asks until there is an answer, for `patience`. The question must be harmless when asked twice.
pub(crate) async fn insist(
    caller: &Caller,
    subject: String,
    question: &Question,
    patience: Duration,
) -> Answered {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match ask(caller, subject.clone(), question, ONE.min(left)).await {
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
        let caller = link.caller.clone();
        let answers = link
            .wait(async move {
                let subjects: Vec<String> =
                    (0..8).map(|number| format!("asked.{number}")).collect();
                let mut listening = Vec::new();
                for subject in &subjects {
                    listening
                        .push(caller.client.subscribe(subject.clone()).await.expect("a subject"));
                }
                caller.client.flush().await.expect("the server knows the subjects");
                let answering = async {
                    let asked = join_all(listening.iter_mut().map(StreamExt::next)).await;
                    for message in asked.into_iter().flatten() {
                        let reply = message.reply.expect("a question");
                        let about = SealContext::QuestionTo(&message.subject);
                        let opened = caller.key.open(about, &message.payload);
                        let (stamp, _) = opened.expect("it is sealed");
                        let answer = pack(&Answer::Done, b"");
                        let (_, answer) = caller.key.seal(SealContext::AnswerTo(&stamp), &answer);
                        caller.client.publish(reply, answer.into()).await.expect("an answer");
                    }
                };
                let patience = Duration::from_secs(60);
                let who = Question { run: String::new(), ask: Ask::Who };
                let asking = ask_all(&caller, subjects, &who, patience);
                let (answers, ()) = futures_util::future::join(asking, answering).await;
                // It listens and says nothing, as a process that hangs.
                let time = Duration::from_millis(50);
                let silent = ask(&caller, "asked.0".to_owned(), &who, time).await;
                assert_eq!(silent, Err(Silence::Late));
                answers
            })
            .expect("they are asked");
        assert_eq!(answers, vec![Ok((Answer::Done, Vec::new())); 8]);
    }
}
