//! H: disclosure.

use super::*;

pub(super) const RULES: &[Rule] = &[
    Rule::run(Group::H, Level::E, checks::secrets, secrets),
    Rule::run(Group::H, Level::W, checks::full_size, |run| {
        let plan = run.header.plan.as_ref()?;
        let share = plan.shrink;
        // A suite that reproduces nothing has no inherent size: its budget says it.
        let is_sized = plan.budget_s.is_some() && plan.suite.paper.is_none();
        (share < 1.0 && !is_sized).then(|| say!(shrunk_to_share, share = share.to_string()))
    }),
    Rule::evidence(Group::H, Level::W, checks::damaged_folder, |evidence| {
        let mut findings = Vec::new();
        for run in &evidence.runs {
            let place = SpotKind::Run.at(&run.folder);
            let warnings = run.warnings.iter().cloned();
            findings.extend(warnings.map(|value| Finding::new(place.clone(), value)));
        }
        findings
    }),
    Rule::target_of_case(Group::H, Level::I, checks::stated, stated_facts),
    Rule::target(Group::H, Level::I, checks::not_readable, |target| {
        parts(target.not_readable.clone())
    }),
];

/// Facts that the suite states of a target.
fn stated_facts(case: &Case<'_>, target: &PaperTarget) -> Option<Message> {
    let facts = case.facts(target)?;
    let vcpu = facts.vcpu.map(|vcpu| ("vcpu".to_owned(), format::plain(vcpu)));
    let memory = facts.memory_gib.map(|memory| ("memory_gib".to_owned(), format::plain(memory)));
    let durability = facts.durability.clone().map(|words| ("durability".to_owned(), words));
    let named_facts = facts.stated.iter().map(|(name, value)| (name.clone(), value.clone()));
    let facts = vcpu.into_iter().chain(memory).chain(durability).chain(named_facts);
    commas(facts.map(|(name, value)| format!("{name} = {value}")))
}

/// Places of passwords, without these.
fn secrets(run: &RunData) -> Option<Message> {
    let header = &run.header;
    let node_urls = header.targets.iter().flat_map(|target| &target.nodes).map(|node| &node.url);
    let mut urls = header.targets.iter().map(|target| &target.url).chain(node_urls);
    let is_in_settings = run
        .trials
        .iter()
        .flat_map(|trial| trial.before.values())
        .any(|node| node.settings.values().any(|value| has_secret(value)));
    // What is serialized is masked, if it is known to be a command.
    let mut commands = header.experiments.iter().flat_map(ExperimentFacts::commands);
    let mut options = header.experiments.iter().flat_map(|facts| facts.options.values());
    let is_in_commands = commands.any(has_secret) || options.any(|value| has_secret(value));
    let plan = serde_json::to_value((&header.plan, &header.experiments));
    let places = [
        (say!(url_of_a_target), urls.any(|url| has_secret(url.expose()))),
        (say!(command), header.command_line.iter().any(|word| has_secret(word))),
        (say!(plan), is_in_commands || plan.is_ok_and(|plan| any_text(&plan, has_secret))),
        (say!(settings), is_in_settings),
    ];
    list(places.into_iter().filter(|(_, is_found)| *is_found).map(|(name, _)| name))
}

fn any_text(value: &Value, is_found: fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_found(text),
        Value::Array(values) => values.iter().any(|value| any_text(value, is_found)),
        Value::Object(fields) => fields.values().any(|value| any_text(value, is_found)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_found_at_any_depth_and_no_name_of_a_field_is_one() {
        let findings = [
            json!("secret"),
            json!([1, ["other", "secret"]]),
            json!({ "a": null, "b": { "c": ["secret"] } }),
        ];
        assert!(findings.iter().all(|value| any_text(value, |text| text == "secret")));
        let field = json!({ "secret": [1, true, "other"] });
        assert!(!any_text(&field, |text| text == "secret"));
    }
}
