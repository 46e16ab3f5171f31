//! Reads the tables of a suite file, and the options of an experiment.

use crate::reader::{
    Reader, Sheet, Source, Span, Synonyms, Value, describe_value, hint_of_known, known_key, short,
};
use crate::suite::{Link, Node, OptionEntry, Suite, SuiteExperiment, SuiteTarget, WithSpan};
use crate::{compare, figures, load, publication, targets};
use dyno_core::offer::{TestOffer, WorkloadOffer};
use dyno_core::options::Shape;
use dyno_facts::{PaperTexts, Price, Role, SecretUrl, SuiteFacts, TargetFacts, password_variable};
use std::collections::BTreeMap;
use toml::de::DeValue;

const NO_EXPERIMENT: &str = "Add at least one, with `name`, `workload`, `test` and `workers`.";

/// Keys of an experiment that exclude each other, and why.
const EXCLUSIVE: &[(&str, &str, &str)] = &[
    ("compare", "read_only", "Each number of read-only nodes is a separate target."),
    ("compare", "repeats", "A comparison has `pairs`."),
    ("objective", "repeats", "A search has `confirm`, trials that confirm its result."),
    ("compare", "objective", "A search chooses the rates of each target: there are no pairs."),
    ("rate", "objective", "An objective searches for the rate."),
    ("objective", "restart_each", "A search has no pairs to restart for."),
    ("objective", "reload_each", "A search has no pairs to reload for."),
    ("objective", "fault", "Trials of a search can't have a fault."),
];

pub(crate) fn read_file(sheet: &Sheet<'_>, mut file: Reader<'_, '_>) -> Option<Suite> {
    let header = match file.take_entry("suite") {
        Some((span, value)) => Reader::from_value(sheet, "[suite]", span, value).map(read_header),
        None => {
            file.report_missing("[suite]", "Begin the file with `[suite]` and `name = \"...\"`.");
            None
        }
    };
    let targets = match file.take_entry("target") {
        Some((span, value)) => read_targets(sheet, span, value),
        None => Vec::new(),
    };
    let mut experiments: Vec<SuiteExperiment> = Vec::new();
    match file.take_entry("experiment") {
        Some((_, value)) => {
            for experiment in read_experiments(&file, value) {
                check_experiment(sheet, &experiment, &targets, &experiments);
                experiments.push(experiment);
            }
        }
        None => file.report_missing("[[experiment]]", NO_EXPERIMENT),
    }
    let publication = file
        .take_entry("paper")
        .and_then(|(span, value)| Reader::from_value(sheet, "[paper]", span, value))
        .map(publication::read_publication)
        .unwrap_or_default();
    publication::check_targets(sheet, &publication, &targets);
    file.finish(&[("target", "targets"), ("experiment", "experiments")], |_, known| known);
    let mut header = header??;
    header.facts.publication = publication.texts;
    for experiment in &mut experiments {
        experiment.retry_starved = experiment.retry_starved.or(header.retry_starved);
    }
    Some(Suite { targets, experiments, ..header })
}

fn read_header(mut table: Reader<'_, '_>) -> Option<Suite> {
    let name = read_name(&mut table);
    let title = table.text("title").map(|title| title.value);
    let title_zh = table.trimmed("title_zh");
    let description = table.trimmed("description");
    let description_zh = table.trimmed("description_zh");
    let paper = table.text("paper").map(|text| text.value);
    let source = table.text("source").map(|text| text.value);
    let seed = table.whole_number("seed", 0..=(1 << 53)).unwrap_or(1);
    let sample_servers = table.flag("sample_servers").unwrap_or(true);
    let retry_starved = load::read_retry_starved(&mut table);
    let deny = table.texts("deny").unwrap_or_default();
    let allow = table.texts("allow").unwrap_or_default();
    table.finish(&[], |_, known| known);
    let name = name?.value;
    let facts = SuiteFacts {
        title: title.unwrap_or_else(|| name.clone()),
        title_zh,
        name,
        description,
        description_zh,
        paper,
        source,
        publication: PaperTexts::default(),
        file: String::new(),
    };
    Some(Suite {
        facts,
        seed,
        sample_servers,
        deny,
        allow,
        targets: Vec::new(),
        experiments: Vec::new(),
        retry_starved,
        text: Source::default(),
        script_texts: Vec::new(),
    })
}

fn read_name(table: &mut Reader<'_, '_>) -> Option<WithSpan<String>> {
    let name = table.required_text("name", "Add `name = \"...\"`.")?;
    check_name(table, &name).then_some(name)
}

/// Names become parts of step ids, file names and command lines.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn check_name(table: &Reader<'_, '_>, name: &WithSpan<String>) -> bool {
    let is_valid = is_name(&name.value);
    if !is_valid {
        let message = format!("`{}` can't be a name.", short(&name.value));
        let hint =
            "Names have up to 64 letters, digits, `.`, `_` and `-`, a letter or digit first.";
        table.report(&name.span, message, hint);
    }
    is_valid
}

fn read_targets(sheet: &Sheet<'_>, span: Span, value: Value<'_>) -> Vec<SuiteTarget> {
    let Some(table) = Reader::from_value(sheet, "[target]", span.clone(), value) else {
        return Vec::new();
    };
    let entries = table.into_entries();
    if entries.is_empty() {
        let hint = "Write `[target.main]`, with the target's name after the dot.";
        sheet.report(&span, "`[target]` names no target.", hint);
    }
    let targets = entries.into_iter().filter_map(|(name, span, value)| {
        let title = format!("[target.{}]", short(name));
        let table = Reader::from_value(sheet, title, span.clone(), value)?;
        let name = WithSpan { value: name.to_string(), span };
        check_name(&table, &name).then_some(())?;
        read_target(name, table)
    });
    targets.collect()
}

fn read_target(name: WithSpan<String>, mut table: Reader<'_, '_>) -> Option<SuiteTarget> {
    let product = table.text("product").map(|text| text.value);
    let facts = TargetFacts {
        name: name.value.clone(),
        title: table.trimmed("title"),
        title_zh: table.trimmed("title_zh"),
        description: table.trimmed("description"),
        description_zh: table.trimmed("description_zh"),
        class: table.text("class").map(|text| text.value).unwrap_or_default(),
        vcpu: table.number("vcpu", 0.01..=100_000.0),
        memory_gib: table.number("memory_gib", 0.01..=1_000_000.0),
        durability: table.text("durability").map(|text| text.value),
        restart: table.text("restart").map(|text| text.value.into()),
        stated: read_stated(&mut table),
        shard_rule: targets::read_shard_rule(&mut table),
        shards: table.whole_number("shards", 1..=10_000).map(|shards| shards as u32),
        price: table.table("price").and_then(read_price),
        ..TargetFacts::default()
    };
    table.refuse_both(&[("url", "nodes", "`url` is that of a single server.")]);
    let url = table.text("url").map(secret_url);
    let (nodes, nodes_span) = match table.take_entry("nodes") {
        Some((span, value)) => (read_nodes(&table, value), span),
        None => (vec![Node { name: None, role: Role::Primary, url }], table.span.clone()),
    };
    let route = targets::read_route(&mut table);
    let variable = password_variable(&name.value);
    table.finish(TARGET_SYNONYMS, |key, known| {
        if key.contains("pass") || key.contains("pwd") {
            format!("Put the password into the environment variable {variable}.")
        } else {
            known
        }
    });
    Some(SuiteTarget { name, product, facts, nodes, route, nodes_span })
}

/// Facts by their names: texts, numbers, true or false.
fn read_stated(table: &mut Reader<'_, '_>) -> BTreeMap<String, String> {
    let (sheet, stated) = (table.sheet, table.table("stated"));
    let mut facts = BTreeMap::new();
    for (key, span, value) in stated.into_iter().flat_map(Reader::into_entries) {
        let entry = option_entry(sheet, "A stated fact", key.to_string(), span, value);
        facts.extend(entry.map(|entry| (entry.name, entry.value)));
    }
    facts
}

fn read_price(mut table: Reader<'_, '_>) -> Option<Price> {
    table.require("per_hour", "Add `per_hour = 1.2`: what the whole target costs.");
    let per_hour = table.number("per_hour", 0.0..=1e9);
    let currency = table.required_text("currency", "Add `currency = \"USD\"`.");
    table.finish(&[("per_hour", "hour hourly")], |_, known| known);
    Some(Price { per_hour: per_hour?, currency: currency?.value })
}

fn secret_url(text: WithSpan<String>) -> WithSpan<SecretUrl> {
    WithSpan { value: SecretUrl::new(text.value), span: text.span }
}

fn read_nodes<'t>(target: &Reader<'_, 't>, value: Value<'t>) -> Vec<Node> {
    let DeValue::Array(items) = value.get_ref() else {
        target.report_wrong::<()>("nodes", "a list of tables", value);
        return Vec::new();
    };
    if items.is_empty() {
        target.report_wrong::<()>("nodes", "a list of at least one table", value);
    }
    let mut nodes = Vec::new();
    for item in items.iter() {
        let name = format!("A node of {}", target.name);
        let Some(mut table) = Reader::from_value(target.sheet, name, item.span(), item) else {
            continue;
        };
        let name = table.text("name").filter(|name| check_name(&table, name));
        let role = table.required_text("role", "Roles: primary, read_only, endpoint, shard.");
        let url = table.text("url").map(secret_url);
        if let Some(role) = role {
            match Role::parse(&role.value) {
                Some(role) => nodes.push(Node { name, role, url }),
                None => {
                    table.sheet.report_unknown(&role, ("role", "Roles"), &Role::ALL.map(Role::name))
                }
            }
        }
        table.finish(&[], |_, known| known);
    }
    nodes
}

fn read_experiments<'t>(file: &Reader<'_, 't>, value: Value<'t>) -> Vec<SuiteExperiment> {
    let DeValue::Array(items) = value.get_ref() else {
        let message = format!(
            "`experiment` must be a list of tables, but is {}.",
            describe_value(value.get_ref())
        );
        file.report(&value.span(), message, "Write `[[experiment]]` with two brackets.");
        return Vec::new();
    };
    if items.is_empty() {
        file.report_missing("[[experiment]]", NO_EXPERIMENT);
    }
    items
        .iter()
        .filter_map(|item| Reader::from_value(file.sheet, "[[experiment]]", item.span(), item))
        .filter_map(read_experiment)
        .collect()
}

fn read_experiment(mut table: Reader<'_, '_>) -> Option<SuiteExperiment> {
    let name = read_name(&mut table);
    if let Some(name) = &name {
        table.name = format!("[[experiment]] `{}`", name.value);
    }
    let title = table.text("title");
    let [title_zh, description, description_zh] =
        ["title_zh", "description", "description_zh"].map(|key| table.trimmed(key));
    table.refuse_both(EXCLUSIVE);
    // Plain SQL without further words.
    let is_own_mix = table.has("statements") && !table.has("workload");
    let (workload, test) = read_workload_and_test(&mut table, is_own_mix);
    let targets = table.texts("targets");
    let mix = read_own_mix(&mut table, workload);
    let options = match table.take_entry("options") {
        Some((span, value)) => {
            let reader = Reader::from_value(table.sheet, "`options`", span, value);
            // With an unknown workload nothing is known of its options.
            reader.zip(workload).map(|(reader, workload)| read_options(reader, workload))
        }
        None => Some(Vec::new()),
    };
    let has_interval = table.has("interval_s");
    let load = load::read(&mut table, workload);
    let is_loaded = load.is_some();
    let mut facts = load.unwrap_or_default();
    let compare = compare::read(&mut table, workload, &mut facts);
    facts.fault = load::read_fault(&mut table, &facts);
    if facts.fault.is_some() && !has_interval {
        facts.interval_s = load::FAULT_INTERVAL_S;
    }
    facts.stage_s = load::read_stage(&mut table, workload, &facts);
    let read_only = table.whole_numbers("read_only", &(1..=1_000)).unwrap_or_default();
    facts.repeats = table.whole_number("repeats", 1..=1_000).map_or(1, |repeats| repeats as u32);
    let retry_starved = load::read_retry_starved(&mut table);
    // Statements of one's own are about tables of one's own, and no one knows what a script's `cleanup` drops.
    let is_script = is_lua(workload);
    facts.prepare = table.flag("prepare").unwrap_or(!is_own_mix);
    facts.cleanup = table.flag("cleanup").unwrap_or(!is_own_mix && !is_script);
    let published = match table.take_entry("published") {
        Some((_, value)) => read_links(&table, value),
        None => Vec::new(),
    };
    table.finish(EXPERIMENT_SYNONYMS, |_, known| {
        format!("{known} An option of the test belongs into `options = {{ NAME = VALUE }}`.")
    });
    let (name, (test, offer), mut options) = (name?, test?, options?);
    options.extend(mix);
    facts.name.clone_from(&name.value);
    let title = title.unwrap_or_else(|| name.clone());
    (facts.title, facts.title_zh) = (title.value, title_zh);
    facts.description = description;
    facts.description_zh = description_zh;
    let workload = workload?;
    facts.workload = workload.name.to_owned();
    facts.test.clone_from(&test.value);
    facts.options = options.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect();
    is_loaded.then_some(SuiteExperiment {
        name,
        facts,
        title_span: title.span,
        test,
        sizing: offer.size,
        pace: workload.pace,
        targets,
        read_only,
        options,
        compare,
        retry_starved,
        published,
    })
}

type Test = (WithSpan<String>, &'static TestOffer);

/// Reads the workload and the test; the user's own statements replace both words.
fn read_workload_and_test<'s>(
    table: &mut Reader<'s, '_>,
    is_own_mix: bool,
) -> (Option<&'s WorkloadOffer>, Option<Test>) {
    let mut offers = table.sheet.offers.iter();
    let own_workload = offers.find(|workload| workload.name == OWN_MIX.0).filter(|_| is_own_mix);
    match own_workload.and_then(|workload| Some((workload, workload.test(OWN_MIX.1)?))) {
        Some((workload, test)) => {
            let span = table.key_span("statements").unwrap_or(0..0);
            (Some(workload), Some((WithSpan { value: test.name.to_owned(), span }, test)))
        }
        None => {
            let workload = read_workload(table);
            (workload, read_test(table, workload))
        }
    }
}

fn read_workload<'s>(table: &mut Reader<'s, '_>) -> Option<&'s WorkloadOffer> {
    let name = table.required_text("workload", "Add `workload = \"sysbench\"`.")?;
    let offers = table.sheet.offers;
    let workload = offers.iter().find(|workload| workload.name == name.value);
    if workload.is_none() {
        let names: Vec<&str> = offers.iter().map(|workload| workload.name).collect();
        table.sheet.report_unknown(&name, ("workload", "Workloads"), &names);
    }
    workload
}

fn read_test(table: &mut Reader<'_, '_>, workload: Option<&WorkloadOffer>) -> Option<Test> {
    // A workload with a single test needs no word for it.
    if let (Some([only]), false) = (workload.map(|workload| workload.tests), table.has("test")) {
        let span = table.key_span("workload").unwrap_or(0..0);
        let _ = table.take_entry("test");
        return Some((WithSpan { value: only.name.to_owned(), span }, only));
    }
    let name = table.required_text("test", "`dyno help WORKLOAD` lists its tests.")?;
    // With an unknown workload there is nothing to compare the test with.
    let workload = workload?;
    if let Some(test) = workload.test(&name.value) {
        return Some((name, test));
    }
    let names: Vec<&str> = workload.tests.iter().map(|test| test.name).collect();
    let message = format!("The workload `{}` has no test `{}`.", workload.name, short(&name.value));
    let hint = if name.value.contains('.') && names.contains(&"script") {
        let file = short(&name.value);
        format!("A script has `test = \"script\"` and `options = {{ scripts = \"{file}\" }}`.")
    } else {
        hint_of_known(&name.value, "Tests", &names)
    };
    table.report(&name.span, message, hint);
    None
}

/// `published` is the name of a figure, a table, or a list of both.
fn read_links<'t>(table: &Reader<'_, 't>, value: Value<'t>) -> Vec<Link> {
    match value.get_ref() {
        DeValue::Array(items) => {
            items.iter().filter_map(|item| read_figure_or_link(table, item)).collect()
        }
        _ => read_figure_or_link(table, value).into_iter().collect(),
    }
}

fn read_figure_or_link<'t>(table: &Reader<'_, 't>, value: Value<'t>) -> Option<Link> {
    let sheet = table.sheet;
    match value.get_ref() {
        DeValue::String(name) => {
            let figure = WithSpan { value: name.to_string(), span: value.span() };
            let link =
                Link { figure, filter: Vec::new(), matching: Vec::new(), targets: Vec::new() };
            check_link(sheet, &link).then_some(link)
        }
        DeValue::Table(_) => {
            let link = Reader::from_value(sheet, "`published`", value.span(), value)?;
            read_link(link)
        }
        _ => table.report_wrong("published", "the name of a figure or a table", value),
    }
}

fn read_link(mut table: Reader<'_, '_>) -> Option<Link> {
    let sheet = table.sheet;
    let figure = table.required_text("figure", "Add `figure = \"NAME\"`.");
    let matching = table.texts("match").unwrap_or_default();
    let targets = table.texts("targets").unwrap_or_default();
    let filter = match table.take_entry("where") {
        Some((span, value)) => Reader::from_value(sheet, "`where`", span, value).map(read_filter),
        None => Some(Vec::new()),
    };
    table.finish(&[("figure", "name"), ("where", "filter")], |_, known| known);
    let link = Link { figure: figure?, filter: filter?, matching, targets };
    check_link(sheet, &link).then_some(link)
}

fn read_filter(table: Reader<'_, '_>) -> Vec<(WithSpan<String>, String)> {
    let sheet = table.sheet;
    let mut filter = Vec::new();
    for (key, span, value) in table.into_entries() {
        let text = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            number => compare::value_text(number).map(figures::condition),
        };
        match text {
            Some(text) => filter.push((WithSpan { value: key.to_string(), span }, text)),
            None => {
                let description = describe_value(value.get_ref());
                let message =
                    format!("`{}` must be a text or a number, but is {description}.", short(key));
                sheet.report(&value.span(), message, "");
            }
        }
    }
    filter
}

fn check_link(sheet: &Sheet<'_>, link: &Link) -> bool {
    let written = &link.figure;
    let Some(figure) = figures::figure(&written.value) else {
        let names: Vec<&str> = figures::all().iter().map(|figure| figure.name.as_str()).collect();
        sheet.report_unknown(written, ("published figure", "Figures"), &names);
        return false;
    };
    let conditions = figure.condition_names();
    let mut good = true;
    for name in link.matching.iter().chain(link.filter.iter().map(|(name, _)| name)) {
        if !conditions.contains(&name.value.as_str()) {
            let message =
                format!("The figure `{}` has no condition `{}`.", figure.name, short(&name.value));
            let hint = hint_of_known(&name.value, "Its conditions", &conditions);
            sheet.report(&name.span, message, hint);
            good = false;
        }
    }
    for name in &link.matching {
        if conditions.contains(&name.value.as_str())
            && !SuiteTarget::KEYS.contains(&name.value.as_str())
        {
            let message = format!("A target has no `{}` to match rows with.", short(&name.value));
            let hint = format!("Rows can be matched by {}.", SuiteTarget::KEYS.join(", "));
            sheet.report(&name.span, message, hint);
            good = false;
        }
    }
    good
}

/// Checks that the references of an experiment exist, and that its name is new.
fn check_experiment(
    sheet: &Sheet<'_>,
    experiment: &SuiteExperiment,
    targets: &[SuiteTarget],
    earlier: &[SuiteExperiment],
) {
    let name = &experiment.name;
    if let Some(first) = earlier.iter().find(|other| other.name.value == name.value) {
        let line = sheet.source.place(&first.name.span).line;
        let message = format!("Two experiments are called `{}`.", name.value);
        sheet.report(&name.span, message, format!("The first one is in line {line}."));
    }
    let names: Vec<&str> = targets.iter().map(|target| target.name.value.as_str()).collect();
    let published = experiment.published.iter().flat_map(|link| &link.targets);
    let compare = experiment.compare.iter();
    let compared = compare.flat_map(|compare| compare.candidates.iter().chain([&compare.baseline]));
    for target in experiment.targets.iter().flatten().chain(published).chain(compared.clone()) {
        // Without any readable target the real problem has been reported already.
        if !names.is_empty() && !names.contains(&target.value.as_str()) {
            sheet.report_unknown(target, ("target", "Targets of this file"), &names);
        }
    }
    load::check_allowed(sheet, experiment, &names);
    if let Some(measured) = &experiment.targets {
        for target in compared {
            if !measured.iter().any(|other| other.value == target.value) {
                let message = format!("`targets` doesn't list `{}`.", short(&target.value));
                let hint = "What is compared must be measured: leave `targets` out, or add it.";
                sheet.report(&target.span, message, hint);
            }
        }
    }
    let facts = &experiment.facts;
    let levels = facts.workers.len() * facts.rates.len().max(1);
    let is_sweep = levels > 1 || facts.degrees.len() > 1;
    if facts.confirm > 0 && facts.search.is_none() && !is_sweep {
        let message = "There is no best point to confirm: the experiment has one point.";
        let hint = "Give several numbers of workers, or leave `confirm` out.";
        sheet.report(&experiment.name.span, message, hint);
    }
}

fn read_options(table: Reader<'_, '_>, workload: &WorkloadOffer) -> Vec<OptionEntry> {
    let sheet = table.sheet;
    let mut options: Vec<OptionEntry> = Vec::new();
    let mut read_names: Vec<String> = Vec::new();
    for (key, key_span, value) in table.into_entries() {
        let name = key.replace('-', "_");
        let shape = workload.option_shape(&name);
        if let Some(remedy) = instead_of_option(&name).filter(|_| shape.is_none()) {
            let message = format!("`{}` can't be an option in a suite.", short(key));
            sheet.report(&key_span, message, remedy);
            continue;
        }
        if read_names.contains(&name) {
            let hint = "Dashes and underscores in names of options are equal.";
            sheet.report(&key_span, format!("The option `{}` is given twice.", short(key)), hint);
            continue;
        }
        read_names.push(name.clone());
        options.extend(entries(sheet, name, key_span, value, shape));
    }
    options
}

/// One option: an entry for each value of a table or a list.
fn entries(
    sheet: &Sheet<'_>,
    name: String,
    key_span: Span,
    value: Value<'_>,
    shape: Option<Shape>,
) -> Vec<OptionEntry> {
    let parts: Vec<(String, Span, Value<'_>)> = match (value.get_ref(), shape) {
        (DeValue::Table(_), Some(Shape::Table)) => {
            let inner = Reader::from_value(sheet, format!("`{name}`"), key_span, value);
            let inner = inner.into_iter().flat_map(Reader::into_entries);
            inner.map(|(key, span, value)| (format!("{name}.{key}"), span, value)).collect()
        }
        (DeValue::Array(items), Some(Shape::List)) => {
            let items = (1_u32..).zip(items.iter());
            items
                .map(|(number, item)| (format!("{name}.{number}"), key_span.clone(), item))
                .collect()
        }
        // A list of one needs no brackets.
        (DeValue::String(_), Some(Shape::List)) => vec![(format!("{name}.1"), key_span, value)],
        _ => vec![(name, key_span, value)],
    };
    let parts = parts.into_iter();
    parts.filter_map(|(name, span, value)| option_entry(sheet, OPTION, name, span, value)).collect()
}

/// The workload and the test of an experiment that says its statements itself.
const OWN_MIX: (&str, &str) = ("pgbench", "statements");

/// Returns true if the workload executes sysbench's Lua scripts.
fn is_lua(workload: Option<&WorkloadOffer>) -> bool {
    workload.is_some_and(|workload| workload.name == "lua")
}

/// `statements`, `parameters`, `commands` and `script` of an experiment, which are options of its workload.
fn read_own_mix(table: &mut Reader<'_, '_>, workload: Option<&WorkloadOffer>) -> Vec<OptionEntry> {
    let mut options = Vec::new();
    for (key, option, hint) in [
        ("statements", "statements", "Leave `workload` and `test` out if there are `statements`."),
        ("parameters", "parameters", "They belong to `statements = [...]`."),
        ("commands", "commands", "They are commands of the script of `workload = \"lua\"`."),
        ("script", "scripts", "Scripts of pgbench's are `options = { scripts = \"my.sql\" }`."),
    ] {
        let Some((span, value)) = table.take_entry(key) else { continue };
        let Some(workload) = workload else { continue };
        let shape = workload.option_shape(option);
        if shape.is_none() || (key == "script" && !is_lua(Some(workload))) {
            let message = format!("An experiment of `{}` has no `{key}`.", workload.name);
            table.report(&span, message, hint);
            continue;
        }
        options.extend(entries(table.sheet, option.to_owned(), span, value, shape));
    }
    options
}

const OPTION: &str = "The option";

/// One value as it would be written on a command line; `what` it is, for messages.
fn option_entry(
    sheet: &Sheet<'_>,
    what: &str,
    name: String,
    key_span: Span,
    value: Value<'_>,
) -> Option<OptionEntry> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(digits) if digits.radix() == 10 => digits.to_string(),
        DeValue::Float(digits) => digits.to_string(),
        DeValue::Boolean(flag) => if *flag { "on" } else { "off" }.to_string(),
        other => {
            let message = format!(
                "{what} `{}` must be a text, a decimal number, true or false, but is {}.",
                short(&name),
                describe_value(other)
            );
            sheet.report(&value.span(), message, "");
            return None;
        }
    };
    Some(OptionEntry { name, value: text, key_span, value_span: value.span() })
}

/// The remedy for what is not an option of a workload, because an experiment or a URL states it; by its name
/// with underscores.
fn instead_of_option(name: &str) -> Option<String> {
    let is_login = name.starts_with("mysql_") || name.starts_with("pgsql_") || name == "db_driver";
    if is_login && name != "mysql_ignore_errors" {
        let remedy = "How a server is reached belongs into the `url` of its `[target.NAME]`.";
        return Some(remedy.to_owned());
    }
    let key = known_key(name, EXPERIMENT_SYNONYMS)
        .or_else(|| EXPERIMENT_SYNONYMS.iter().map(|(key, _)| *key).find(|key| *key == name));
    key.map(|key| format!("Write `{key} = ...` in the experiment."))
}

/// Words of other tools for keys of an experiment.
const EXPERIMENT_SYNONYMS: Synonyms = &[
    ("duration_s", "time max_time seconds"),
    ("workers", "connections threads num_threads clients client terminals terminal concurrency"),
    ("events", "max_requests"),
    ("rate", "tx_rate"),
    ("warmup_s", "warmup_time"),
    ("percentiles", "percentile"),
    ("repeats", "runs trials"),
    ("interval_s", "report_interval"),
    ("degrees", "degree parallel dop"),
];

/// Words of other tools for keys of a target.
const TARGET_SYNONYMS: Synonyms = &[
    ("url", "host"),
    ("vcpu", "cpu cores"),
    ("memory_gib", "memory ram"),
    ("product", "version"),
    ("class", "node_class"),
];
