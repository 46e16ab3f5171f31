//! Setting a degree in a session, and setting back what was changed.

use super::DegreeRule;
use dyno_core::{AdminSession, DbError, Dialect, Discard, Session};
use dyno_facts::{Message, say};
use dyno_load::query::answer;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The statements that set it, as they were sent.
    pub statements: Vec<String>,
    /// What bounds it, in sentences: variables that took another value or that no session changes.
    pub remarks: Vec<Message>,
    restore: Vec<String>,
}

impl DegreeRule {
    /// Sets the degree in a session. What was set is set back when it fails.
    pub async fn apply(
        &self,
        session: &mut AdminSession<'_>,
        degree: u32,
    ) -> Result<Applied, DbError> {
        let mut applied = Applied::default();
        if !self.is_parallel() {
            return Ok(applied);
        }
        match self.set_all(session, degree, &mut applied).await {
            Ok(()) => Ok(applied),
            Err(error) => {
                applied.restore(session).await.ok();
                Err(error)
            }
        }
    }

    async fn set_all(
        &self,
        session: &mut AdminSession<'_>,
        degree: u32,
        applied: &mut Applied,
    ) -> Result<(), DbError> {
        for setting in &self.settings {
            let template = if degree == 0 { &setting.off } else { &setting.on };
            let wanted = template.replace("{degree}", &degree.to_string());
            let before = value(session, &setting.name).await?;
            let Some(before) = before.filter(|_| !wanted.is_empty()) else { continue };
            let stays = setting.raise && number(&before) >= number(&wanted);
            if stays {
                continue;
            }
            let statement = assignment(session.dialect(), &setting.name, &wanted);
            match session.query(&statement, &mut Discard).await {
                Ok(_) => {}
                // The administrator's value bounds the degree; only the degree itself has to be set.
                Err(error) if is_of_server(&error) && !template.contains("{degree}") => {
                    if !before.eq_ignore_ascii_case(&wanted) {
                        let setting = &setting.name;
                        applied.remarks.push(say!(
                            setting_stays,
                            setting = setting,
                            before = before,
                            wanted = wanted
                        ));
                    }
                    continue;
                }
                Err(error) => return Err(error),
            }
            applied.statements.push(statement);
            applied.restore.push(assignment(session.dialect(), &setting.name, &before));
            let now = value(session, &setting.name).await?.unwrap_or_default();
            if number(&now).is_some_and(|now| Some(now) != number(&wanted)) {
                let setting = &setting.name;
                let remark = say!(setting_became, setting = setting, now = now, wanted = wanted);
                applied.remarks.push(remark);
            }
        }
        let own = if degree == 0 { &self.off } else { &self.set };
        if degree > 0 {
            applied.restore.extend(self.off.iter().cloned());
        }
        for statement in own {
            let statement = statement.replace("{degree}", &degree.to_string());
            session.query(&statement, &mut Discard).await?;
            applied.statements.push(statement);
        }
        for limit in self.limits.iter().filter(|_| degree > 0) {
            let bound = value(session, limit).await?;
            if let Some(bound) = bound.and_then(|bound| number(&bound))
                && bound < f64::from(degree)
            {
                applied.remarks.push(say!(setting_is, setting = limit, bound = bound.to_string()));
            }
        }
        Ok(())
    }
}

impl Applied {
    /// Sets back what was changed, the last first. Goes on after an error.
    pub async fn restore(&mut self, session: &mut AdminSession<'_>) -> Result<(), DbError> {
        let mut result = Ok(());
        while let Some(statement) = self.restore.pop() {
            let done = session.query(&statement, &mut Discard).await.map(drop);
            result = result.and(done);
        }
        result
    }
}

/// The value of a variable in a session; `None` where there is no such variable.
pub(super) async fn value(
    session: &mut AdminSession<'_>,
    name: &str,
) -> Result<Option<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => format!("show session variables where variable_name = '{name}'"),
        // Reading a variable that is not there is an error; this table isn't.
        _ => match session.capabilities().settings {
            Some(settings) => format!("{settings} where name = '{name}'"),
            None => return Ok(None),
        },
    };
    let table = answer(session, &sql).await?;
    Ok(table.rows.first().and_then(|row| row.get(1).cloned().flatten()))
}

/// MySQL's errors 1229 and 1238: the variable is that of the whole server, or can't be changed.
fn is_of_server(error: &DbError) -> bool {
    matches!(error.errno(), 1229 | 1238)
}

fn number(value: &str) -> Option<f64> {
    value.trim().parse().ok()
}

fn assignment(dialect: Dialect, name: &str, value: &str) -> String {
    let scope = if dialect == Dialect::Mysql { "session " } else { "" };
    // MySQL refuses numbers in quotes.
    match number(value) {
        Some(_) => format!("set {scope}{name} = {value}"),
        None => format!("set {scope}{name} = '{}'", value.replace('\'', "''")),
    }
}
