//! Targets and load generators, and what makes their comparison fair or unfair: what a commit is worth on each of them,
//! in which settings they differ, how the data relate to memory.

use super::*;

pub(super) fn blocks(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.table(targets_table(paper));
    for target in &paper.targets {
        let facts = &target.facts;
        let text = Message::either(&facts.description, &facts.description_zh);
        if !text.is_empty() {
            blocks.paragraph(say!(labels_words, labels = &target.label, words = text));
        }
    }
    let has_tables = !is_short_multi_run(paper);
    let with_nodes = paper.targets.iter().filter(|target| has_own_nodes(paper, target));
    for target in with_nodes.filter(|_| has_tables) {
        blocks.table(nodes_table(target));
        blocks.fine(target.route_words.clone().unwrap_or_default());
    }
    let rows = paper.runs.iter();
    let rows: Vec<(String, Environment)> =
        rows.map(|run| (run.number.to_string(), run.header.environment.clone())).collect();
    blocks.table(merge_equal_rows(machines_table(say!(load_generator_2), say!(run), &rows).into()));
    for run in &paper.runs {
        let fleet = &run.header.fleet;
        let rows: Vec<(String, Environment)> =
            fleet.iter().map(|member| (member.name.clone(), member.environment.clone())).collect();
        let number = run.number.to_string();
        let title = say!(load_generators_of_the_fleet_of, number);
        blocks.table(machines_table(title, say!(load_generator_2), &rows));
    }
    for target in paper.targets.iter().filter(|target| !target.facts.stated.is_empty()) {
        let head = say!(stated_for_not_read, target = &target.label);
        let mut line: TextLine = vec![Span::plain(head)];
        for (place, (name, value)) in target.facts.stated.iter().enumerate() {
            let blank = if place == 0 { "" } else { "; " };
            line.extend([Span::plain(blank), code(name), Span::plain(format!(" {value}"))]);
        }
        blocks.fine(line);
    }
}

/// The short edition of several runs: what each of their targets has in full stands in the full one.
pub(super) fn is_short_multi_run(paper: &Paper) -> bool {
    paper.is_short() && paper.runs.len() > 1
}

/// The nodes of a part of a cluster stand with the cluster.
fn has_own_nodes(paper: &Paper, target: &PaperTarget) -> bool {
    let is_in_paper = |label: &String| paper.targets.iter().any(|other| other.label == *label);
    !target.facts.nodes.is_empty() && !target.part_of.as_ref().is_some_and(is_in_paper)
}

fn describe_machine(same_host: bool) -> Message {
    if same_host { say!(the_load_generators_own) } else { say!(another_one) }
}

fn describe_login(facts: Option<&LogInFacts>) -> Message {
    let Some(LogInFacts { tls, is_verified, method }) = facts else { return Message::default() };
    match tls {
        None => say!(log_in_without_tls, method),
        Some(tls) if *is_verified => say!(log_in_verified, method, tls),
        Some(tls) => say!(log_in_unverified, method, tls),
    }
}

fn targets_table(paper: &Paper) -> PaperRows<&PaperTarget> {
    PaperRows::new(say!(targets), &paper.targets)
        .look("text")
        .text(say!(target_2), |target| {
            Cell::from(&target.label).with(join_clauses(&other_names(target)))
        })
        .text(say!(product_and_version), |target| or_unknown(&target.product))
        .text(say!(address), |target| match target.facts.nodes.len() {
            0 => Message::from(target.facts.url.to_string()),
            n => say!(n_nodes, n = n.to_string()),
        })
        .text(say!(class), |target| match target.facts.class.as_str() {
            "" => say!(not_stated),
            class => Message::from(class),
        })
        .col(say!(vcpu), Plain, |target| target.facts.vcpu)
        .col(say!(memory_gib_2), Plain, |target| target.facts.memory_gib)
        .col(say!(price_per_hour), Right, |target| {
            let price = target.facts.price.as_ref();
            price.map(|price| format!("{} {}", format::plain(price.per_hour), price.currency))
        })
        .text(say!(machine), |target| describe_machine(target.facts.same_host))
        .text(say!(log_in), |target| describe_login(target.facts.log_in.as_ref()))
        .if_any()
}

/// Its names in the suite and on the command line, where the paper calls it by another.
fn other_names(target: &PaperTarget) -> Vec<Message> {
    let facts = &target.facts;
    let names = [Message::either(&facts.title, &facts.title_zh), Message::verbatim(&facts.name)];
    let is_label = |name: &Message| Lang::ALL.iter().any(|lang| name.render(*lang) == target.label);
    unique(names.into_iter().filter(|name| !name.is_empty() && !is_label(name)).collect())
}

fn nodes_table(target: &PaperTarget) -> PaperRows<&TargetNode> {
    PaperRows::new(say!(nodes_of_target, target = &target.label), &target.facts.nodes)
        .look("text")
        .text(say!(node), |node| &node.name)
        .text(say!(role), |node| node_role(node.role.name()))
        .text(say!(product_and_version), |node| {
            or_unknown(format!("{} {}", node.product, node.version).trim())
        })
        .text(say!(address), |node| node.url.to_string())
        .text(say!(machine), |node| describe_machine(node.same_host))
        .text(say!(log_in), |node| describe_login(node.log_in.as_ref()))
        .if_any()
}

fn machines_table(
    caption: Message,
    title: Message,
    rows: &[(String, Environment)],
) -> PaperRows<&(String, Environment)> {
    PaperRows::new(caption, rows)
        .look("text")
        .text(title, |(name, _)| name)
        .text(say!(host), |(_, env)| or_unknown(&env.host))
        .text(say!(system), |(_, env)| or_unknown(&env.system))
        .text(say!(kernel), |(_, env)| or_unknown(&env.kernel))
        .text(say!(loops_io), |(_, env)| or_unknown(&env.loops_io))
        .text(say!(processor), |(_, env)| or_unknown(&env.cpu_model))
        .col(say!(cores_2), Whole, |(_, env)| env.cores as f64)
        .col(say!(memory_mib), Whole, |(_, env)| env.memory_mib)
}

/// Number of experiments above which the short edition has the size of the data with the results only.
const MAX_SIZES: usize = 8;

pub(super) fn fairness(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.heading(3, "4.1", say!(what_a_commit_is_worth), "");
    if is_short_multi_run(paper) {
        blocks.table(merge_equal_rows(commits_table(paper).into()));
    } else {
        blocks.table(commits_table(paper));
    }
    let with_settings = || paper.targets.iter().filter(|target| !target.settings.is_empty());
    for target in with_settings() {
        let mut inner = Blocks::default();
        let title = say!(settings_of_target, target = &target.label);
        inner.table(settings_table(title, &target.settings));
        let summary = say!(settings_of_that_decide_what_a, target = &target.label);
        blocks.details(summary, with_settings().count() == 1, inner);
    }
    for target in paper.targets.iter().filter(|target| !target.not_readable.is_empty()) {
        let names = join_clauses(&target.not_readable);
        blocks.fine(say!(not_readable_on, target = &target.label, what = names));
    }
    blocks.heading(3, "4.2", say!(settings_that_differ), "");
    let mut comparable = targets_by_product(paper);
    comparable.retain(|targets| targets.len() > 1);
    comparable.iter().for_each(|targets| difference_blocks(targets, blocks));
    if comparable.is_empty() {
        blocks.paragraph(say!(no_two_targets_of_the_same));
    }
    let sized = points_with_size(paper);
    // In the short edition it stands alongside each result where it would take too much room here.
    if !(paper.is_short() && sized.len() > MAX_SIZES) {
        blocks.heading(3, "4.3", say!(data_to_memory), "");
        if sized.is_empty() {
            blocks.paragraph(say!(no_workload_told_the_size_of));
        }
        blocks.table(memory_table(paper, sized));
    }
    check_blocks(paper, blocks);
}

fn durability_settings(target: &PaperTarget) -> impl Iterator<Item = &SettingRow> {
    target.settings.iter().filter(|row| settings::affects_durability(&row.name))
}

fn commits_table<'a>(paper: &'a Paper) -> PaperRows<&'a PaperTarget> {
    let is_weak = |target: &PaperTarget| durability_settings(target).any(|row| row.is_weak);
    let nodes = |target: &'a PaperTarget| paper.nodes_of(&target.label);
    let describe = |copy: &ReplicaFacts| {
        say!(name_mode_state, name = &copy.name, mode = &copy.mode, state = &copy.state)
    };
    PaperRows::new(say!(durability_copies_and_isolation_of_each), &paper.targets)
        .look("text")
        .text(say!(target_2), |target| &target.label)
        .text(say!(an_acknowledged_commit), |target| {
            let on_disk = match (durability_settings(target).next(), is_weak(target)) {
                (None, _) => Span::plain(say!(not_read)),
                (Some(_), true) => Span::new(say!(may_be_lost_or_torn), Look::Caveat),
                (Some(_), false) => Span::plain(say!(on_disk)),
            };
            let settings =
                durability_settings(target).filter(|row| !is_weak(target) || row.is_weak);
            let settings = settings.map(|row| code(format!("{}={}", row.name, row.value)));
            let durability = target.facts.durability.as_ref();
            let durability = durability.map(|text| say!(stated_what, what = text));
            Cell::from(on_disk).with(separated(settings, " ")).with(durability.unwrap_or_default())
        })
        .text(say!(copies_that_acknowledge_it), |target| {
            let copies = nodes(target).next().map_or(&[][..], |node| &node.replicas);
            let copies: Vec<Message> = copies.iter().map(describe).collect();
            let waits_for = nodes(target).find_map(|node| node.acknowledged_by.as_ref());
            let waits_for = waits_for.map(CommitWait::words);
            let copies = if is_short_multi_run(paper) { Vec::new() } else { copies };
            Cell::from(waits_for.cloned()).with(join_clauses(&copies))
        })
        .text(say!(isolation_2), |target| {
            let joins = nodes(target).any(NodeConditions::joins_foreign_shards);
            let on_shards = if target.passes_no_isolation_on() {
                Some(say!(isolation_not_passed_on))
            } else {
                joins.then(|| say!(repeatable_read_on_shards))
            };
            Cell::from(isolation(paper, target)).with(on_shards.unwrap_or_default())
        })
        .text(say!(connection_2), |target| nodes(target).find_map(|node| node.transport.as_ref()))
        .when(!is_short_multi_run(paper), |table| {
            let round_trip = |node: &NodeConditions| node.round_trip_us;
            table.col(say!(round_trip_ms_2), Ms, |target| nodes(target).find_map(round_trip))
        })
        .each(|target, row| row.class = if is_weak(target) { "weak" } else { "" })
}

/// One row for all targets of which a table says the same.
fn merge_equal_rows(mut table: PaperTable) -> PaperTable {
    let rows = std::mem::take(&mut table.rows);
    let groups = grouped(rows.into_iter().map(|row| (row.cells[1..].to_vec(), row)));
    for (_, rows) in groups {
        let mut rows = rows.into_iter();
        let mut merged = rows.next().unwrap_or_default();
        for row in rows {
            if let (CellValue::Text(names), CellValue::Text(name)) =
                (&mut merged.cells[0].value, &row.cells[0].value)
            {
                names.push(Span::plain(Message::both(", ", "、")));
                names.extend(name.iter().cloned());
            }
        }
        table.rows.push(merged);
    }
    table
}

/// The isolation level of a target's sessions: as they have asked for it, if that counts, or as the servers give it.
fn isolation(paper: &Paper, target: &PaperTarget) -> Option<Message> {
    let from_node = paper.nodes_of(&target.label).find_map(|node| node.isolation.as_ref());
    let measured = from_node.or_else(|| settings::isolation(target));
    let trials = || paper.trials.iter().filter(|trial| trial.target == target.label);
    let requested_by =
        |trial: &Trial| KnownFamily::from_summary(&trial.summary)?.isolation(&trial.summary);
    let requested = trials().find_map(requested_by);
    let normalize = |level: &str| level.replace('-', " ").to_lowercase();
    match (requested, measured) {
        (Some(requested), Some(measured)) if normalize(&requested) != normalize(measured) => {
            let requesting = trials().filter(|trial| requested_by(trial).is_some());
            let requesting: BTreeSet<&str> =
                requesting.map(|trial| trial.summary.experiment.as_str()).collect();
            if trials().all(|trial| requesting.contains(trial.summary.experiment.as_str())) {
                return Some(say!(isolation_asked_for, asked = requested, own = measured));
            }
            let experiments = paper.experiments.iter();
            let titles = experiments
                .filter(|experiment| requesting.contains(experiment.name.as_str()))
                .map(|experiment| say!(quoted_title, title = &experiment.title));
            let experiments = Message::list(&titles.collect::<Vec<_>>());
            Some(say!(isolation_asked_for_by, asked = requested, experiments, own = measured))
        }
        (requested, measured) => measured.cloned().or(requested).map(Message::verbatim),
    }
}

/// Settings with what they decide.
pub fn settings_table(caption: Message, rows: &[SettingRow]) -> PaperRows<&SettingRow> {
    PaperRows::new(caption, rows)
        .look("text")
        .text(say!(setting), |row| code(&row.name))
        .text(say!(value_word), |row| code(&row.value))
        .text(say!(meaning), |row| {
            let mut line = vec![Span::plain(&row.meaning)];
            if row.is_weak {
                line.push(Span::plain(" – "));
                line.push(strong(say!(a_commit_may_be_lost_or)));
            }
            line
        })
        .each(|setting, row| row.class = if setting.is_weak { "weak" } else { "" })
}

/// Targets whose servers call themselves the same, with all their settings: those of different products have nothing to
/// do with each other.
fn targets_by_product(paper: &Paper) -> Vec<Vec<&PaperTarget>> {
    let targets = paper.targets.iter().filter(|target| !target.all_settings.is_empty());
    let products =
        targets.map(|target| (target.product.split(' ').next().map(str::to_owned), target));
    grouped(products).into_iter().map(|(_, targets)| targets).collect()
}

/// The names of the settings that are the same on all of these targets, and of those that differ.
fn all_settings<'a>(targets: &[&'a PaperTarget]) -> (Vec<&'a String>, Vec<&'a String>) {
    let names: BTreeSet<&String> =
        targets.iter().flat_map(|target| target.all_settings.keys()).collect();
    names.into_iter().partition(|name| {
        let values = targets.iter().map(|target| target.all_settings.get(*name));
        values.collect::<Vec<_>>().windows(2).all(|pair| pair[0] == pair[1])
    })
}

fn difference_blocks(targets: &[&PaperTarget], blocks: &mut Blocks) {
    let (same_names, different_names) = all_settings(targets);
    let (host_specific, mut comparable): (Vec<&String>, Vec<&String>) =
        different_names.into_iter().partition(|name| settings::is_host_specific(name));
    comparable.sort_by_key(|name| settings::meaning(name).is_none());
    let labels: Vec<&String> = targets.iter().map(|target| &target.label).collect();
    let title = say!(settings_that_differ_between, targets = join_names(&labels));
    let rows = PaperRows::new(title, comparable).look("text").text(say!(setting), code);
    let rows = targets.iter().fold(rows, |rows, target| {
        rows.text(&target.label, |name| target.all_settings.get(name).map(code))
    });
    blocks.table(rows.text(say!(meaning), |name| settings::meaning(name).unwrap_or_default()));
    blocks.fine(say!(
        settings_of_are_the_same_that,
        same = same_names.len().to_string(),
        targets = join_names(&labels),
        n = host_specific.len().to_string()
    ));
}

/// The first load level of each target that tells the size of its data.
fn points_with_size(paper: &Paper) -> Vec<(&Experiment, &Point)> {
    let mut rows: Vec<(&Experiment, &Point)> = Vec::new();
    for experiment in &paper.experiments {
        for point in experiment.points.iter().filter(|point| point.data.is_some()) {
            let is_same_data = |(listed_experiment, listed_point): &(&Experiment, &Point)| {
                listed_experiment.title == experiment.title && listed_point.target == point.target
            };
            if !rows.iter().any(is_same_data) {
                rows.push((experiment, point));
            }
        }
    }
    rows
}

fn memory_table<'a>(
    paper: &'a Paper,
    rows: Vec<(&'a Experiment, &'a Point)>,
) -> PaperRows<(&'a Experiment, &'a Point)> {
    let lowest_hit = |(experiment, point): (&Experiment, &Point)| {
        let trials = paper.trials.iter().filter(|trial| {
            trial.summary.experiment == experiment.name && trial.target == point.target
        });
        let nodes = trials.flat_map(|trial| trial.summary.conditions.nodes.values());
        nodes.filter_map(|node| node.hit_share).reduce(f64::min)
    };
    PaperRows::new(say!(size_of_the_data_against_the), rows)
        .text(say!(experiment), |(experiment, _)| &experiment.title)
        .text(say!(target_2), |(_, point)| &point.target)
        .col(say!(size_of_the_data), Bytes, |(_, point)| point.data.as_ref()?.facts.size_bytes)
        .col(say!(memory_for_data), Bytes, |(_, point)| point.data.as_ref()?.facts.memory_bytes)
        .strong(say!(data_to_memory), Short, |(_, point)| point.data.as_ref()?.size_to_memory)
        .text(say!(where_the_data_fit), |(_, point)| {
            point.data.as_ref()?.size_to_memory.map(fit_in_memory)
        })
        .col(say!(lowest_hit_ratio_percent), Fixed(2), |row| {
            lowest_hit(row).map(|share| share * 100.0)
        })
}
fn check_blocks(paper: &Paper, blocks: &mut Blocks) {
    blocks.heading(3, "4.4", say!(checks), "checks");
    let (with_findings, without_findings): (Vec<&Check>, Vec<&Check>) =
        paper.checks.iter().partition(|check| !check.findings.is_empty());
    if !with_findings.is_empty() {
        let mut line = vec![Span::plain(say!(what_a_careful_reader_should_know))];
        let levels = [
            (Level::E, say!(not_usable_for_a_claim)),
            (Level::W, say!(a_caveat)),
            (Level::I, say!(disclosed)),
        ];
        for (level, meaning) in levels {
            line.push(Span::plain(" "));
            line.push(Span::new(format!("{level:?}"), Look::Note(level)));
            line.extend([Span::plain(" "), Span::plain(meaning)]);
        }
        blocks.paragraph(line);
    }
    let disclosed = with_findings.iter().filter(|check| check.level == Level::I).count();
    let is_shown = |check: &&Check| !paper.is_short() || check.level < Level::I;
    let max_lines = match (paper.is_short(), paper.runs.len()) {
        (false, _) => MAX_LINES,
        (true, 1) => MAX_LINES_SHORT,
        // Runs that are put together repeat their findings.
        _ => 1,
    };
    let shown_checks = with_findings.into_iter().filter(is_shown).collect();
    blocks.table(findings_table(shown_checks, max_lines, is_short_multi_run(paper)));
    if paper.is_short() && disclosed > 0 {
        blocks.fine(say!(further_checks_disclose, n = disclosed));
    }
    if !without_findings.is_empty() {
        let mut inner = Blocks::default();
        let items = without_findings
            .iter()
            .map(|check| vec![Span::plain(&check.rule), Span::plain(" "), code(check.id)]);
        inner.list(Style::Fine, items.collect());
        let n = without_findings.len().to_string();
        let summary = say!(checks_found_nothing_or_had_nothing, n);
        blocks.details(summary, false, inner);
    }
}

/// So many lines of what a check has found.
const MAX_LINES: usize = 8;
const MAX_LINES_SHORT: usize = 3;

/// Briefly without what is expected and what to do about it.
fn findings_table(checks: Vec<&Check>, max_lines: usize, is_brief: bool) -> PaperRows<&Check> {
    PaperRows::new(say!(checks_that_found_something), checks)
        .look("text")
        .text(say!(no), |check| {
            let number = format!("{:?}{}", check.level, check.number);
            Cell::from(Span::new(number, Look::Note(check.level)))
                .with(code(check.id))
                .with_if(check.is_accepted, || vec![Span::plain(say!(accepted))])
        })
        .when(!is_brief, |table| table.text(say!(expected), |check| &check.rule))
        .text(say!(found), move |check| {
            let n_hidden = check.lines.len().saturating_sub(max_lines);
            let hidden = (n_hidden > 0).then(|| say!(and_more_lines, n = n_hidden.to_string()));
            lines(check.lines.iter().take(max_lines).cloned().chain(hidden))
        })
        .when(is_brief, |table| table.text(say!(meaning), |check| first_sentence(&check.meaning)))
        .when(!is_brief, |table| {
            table.text(say!(meaning_and_advice), |check| {
                Cell::from(&check.meaning).with(&check.advice)
            })
        })
        .each(|check, row| row.anchor = format!("check-{}", check.number))
}
