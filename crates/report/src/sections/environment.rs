//! Targets and load generators, and what makes their comparison fair or unfair: what a commit is worth on each of them,
//! in which settings they differ, how the data relate to memory.

use super::*;

/// Adds the targets, their nodes, the machines of the load generators, and what is stated and was not read.
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
    blocks.table(merge_equal_rows(
        machines_table(say!(load_generator_column), say!(run), &rows).into(),
    ));
    for run in &paper.runs {
        let fleet = &run.header.fleet;
        let rows: Vec<(String, Environment)> =
            fleet.iter().map(|member| (member.name.clone(), member.environment.clone())).collect();
        let number = run.number.to_string();
        let title = say!(fleet_of_run, number);
        blocks.table(machines_table(title, say!(load_generator_column), &rows));
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

/// Returns true for the short edition of several runs, which leaves the details of targets to the full edition.
pub(super) fn is_short_multi_run(paper: &Paper) -> bool {
    paper.is_short() && paper.runs.len() > 1
}

/// Returns true for targets with nodes, except for parts of a cluster that the paper has: it lists them.
fn has_own_nodes(paper: &Paper, target: &PaperTarget) -> bool {
    let cluster = target.part_of.as_ref().and_then(|label| paper.target(label));
    !target.facts.nodes.is_empty() && cluster.is_none()
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
        .text(say!(target_column), |target| {
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
        .col(say!(memory_gib_column), Plain, |target| target.facts.memory_gib)
        .col(say!(price_per_hour), Right, |target| {
            let price = target.facts.price.as_ref();
            price.map(|price| format!("{} {}", format::plain(price.per_hour), price.currency))
        })
        .text(say!(machine), |target| describe_machine(target.facts.same_host))
        .text(say!(login_column), |target| describe_login(target.facts.log_in.as_ref()))
        .if_any()
}

/// Its names in the suite and on the command line, if the paper calls it by another.
fn other_names(target: &PaperTarget) -> Vec<Message> {
    let facts = &target.facts;
    let names = [Message::either(&facts.title, &facts.title_zh), Message::verbatim(&facts.name)];
    let names = names.into_iter().filter(|name| {
        !name.is_empty() && Lang::ALL.iter().all(|lang| name.render(*lang) != target.label)
    });
    unique(names.collect())
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
        .text(say!(login_column), |node| describe_login(node.log_in.as_ref()))
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
        .col(say!(cores_column), Whole, |(_, env)| env.cores as f64)
        .col(say!(memory_mib), Whole, |(_, env)| env.memory_mib)
}

/// Number of experiments above which the short edition has the size of the data with the results only.
const MAX_SIZES: usize = 8;

/// Adds section 4: durability, settings that differ, the size of the data, and the checks.
pub(super) fn fairness(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.heading(3, "4.1", say!(what_a_commit_is_worth), "");
    if is_short_multi_run(paper) {
        blocks.table(merge_equal_rows(commits_table(paper).into()));
    } else {
        blocks.table(commits_table(paper));
    }
    let with_settings = paper.targets.iter().filter(|target| !target.settings.is_empty());
    let with_settings: Vec<&PaperTarget> = with_settings.collect();
    for target in &with_settings {
        let mut inner = Blocks::default();
        let title = say!(settings_of_target, target = &target.label);
        inner.table(settings_table(title, &target.settings));
        let summary = say!(durability_settings_title, target = &target.label);
        blocks.details(summary, with_settings.len() == 1, inner);
    }
    for target in paper.targets.iter().filter(|target| !target.not_readable.is_empty()) {
        let names = join_clauses(&target.not_readable);
        blocks.fine(say!(not_readable_settings, target = &target.label, what = names));
    }
    blocks.heading(3, "4.2", say!(settings_that_differ), "");
    let mut comparable = targets_by_product(paper);
    comparable.retain(|targets| targets.len() > 1);
    comparable.iter().for_each(|targets| difference_blocks(targets, blocks));
    if comparable.is_empty() {
        blocks.paragraph(say!(no_settings_to_compare));
    }
    let sized = points_with_size(paper);
    // If it would take too much room here, the short edition has it alongside each result.
    if !(paper.is_short() && sized.len() > MAX_SIZES) {
        blocks.heading(3, "4.3", say!(data_to_memory), "");
        if sized.is_empty() {
            blocks.paragraph(say!(data_size_unreported));
        }
        blocks.table(memory_table(paper, sized));
    }
    check_blocks(paper, blocks);
}

fn durability_settings(target: &PaperTarget) -> impl Iterator<Item = &SettingRow> {
    target.settings.iter().filter(|row| settings::affects_durability(&row.name))
}

/// Returns true if a setting allows that a commit is lost.
fn has_weak_durability(target: &PaperTarget) -> bool {
    durability_settings(target).any(|row| row.is_weak)
}

fn commits_table(paper: &Paper) -> PaperRows<&PaperTarget> {
    PaperRows::new(say!(durability_title), &paper.targets)
        .look("text")
        .text(say!(target_column), |target| &target.label)
        .text(say!(an_acknowledged_commit), |target| {
            let on_disk = match (durability_settings(target).next(), has_weak_durability(target)) {
                (None, _) => Span::plain(say!(not_read)),
                (Some(_), true) => Span::new(say!(may_be_lost_or_torn), Look::Caveat),
                (Some(_), false) => Span::plain(say!(on_disk)),
            };
            let is_weak = has_weak_durability(target);
            let settings = durability_settings(target).filter(|row| !is_weak || row.is_weak);
            let settings = settings.map(|row| code(format!("{}={}", row.name, row.value)));
            let durability = target.facts.durability.as_ref();
            let durability = durability.map(|text| say!(stated_what, what = text));
            Cell::from(on_disk).with(separated(settings, " ")).with(durability.unwrap_or_default())
        })
        .text(say!(acknowledging_copies), |target| {
            let first_node = paper.nodes_of(&target.label).next();
            let copies = first_node.map_or(&[][..], |node| &node.replicas).iter().map(|copy| {
                say!(name_mode_state, name = &copy.name, mode = &copy.mode, state = &copy.state)
            });
            let copies: Vec<Message> = copies.collect();
            let mut nodes = paper.nodes_of(&target.label);
            let waits_for = nodes.find_map(|node| node.acknowledged_by.as_ref());
            let waits_for = waits_for.map(CommitWait::words);
            let copies = if is_short_multi_run(paper) { Vec::new() } else { copies };
            Cell::from(waits_for.cloned()).with(join_clauses(&copies))
        })
        .text(say!(isolation_column), |target| {
            let mut nodes = paper.nodes_of(&target.label);
            let joins = nodes.any(NodeConditions::joins_foreign_shards);
            let on_shards = if target.passes_no_isolation_on() {
                Some(say!(isolation_ignored_by_proxy))
            } else {
                joins.then(|| say!(repeatable_read_on_shards))
            };
            Cell::from(isolation(paper, target)).with(on_shards.unwrap_or_default())
        })
        .text(say!(connection_column), |target| {
            paper.nodes_of(&target.label).find_map(|node| node.transport.as_ref())
        })
        .when(!is_short_multi_run(paper), |table| {
            table.col(say!(round_trip_ms_column), Ms, |target| {
                paper.nodes_of(&target.label).find_map(|node| node.round_trip_us)
            })
        })
        .each(|target, row| row.class = if has_weak_durability(target) { "weak" } else { "" })
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
    let trials = paper.trials.iter().filter(|trial| trial.target == target.label);
    let trials: Vec<&Trial> = trials.collect();
    let requested = trials.iter().find_map(|trial| requested_isolation(trial));
    match (requested, measured) {
        (Some(requested), Some(measured)) if !is_same_level(&requested, measured) => {
            let requesting = trials.iter().filter(|trial| requested_isolation(trial).is_some());
            let requesting: BTreeSet<&str> =
                requesting.map(|trial| trial.summary.experiment.as_str()).collect();
            if trials.iter().all(|trial| requesting.contains(trial.summary.experiment.as_str())) {
                return Some(say!(requested_isolation, asked = requested, own = measured));
            }
            let experiments = paper.experiments.iter();
            let titles = experiments
                .filter(|experiment| requesting.contains(experiment.name.as_str()))
                .map(|experiment| say!(quoted_title, title = &experiment.title));
            let experiments = Message::list(&titles.collect::<Vec<_>>());
            Some(say!(
                requested_isolation_in_experiments,
                asked = requested,
                experiments,
                own = measured
            ))
        }
        (requested, measured) => measured.cloned().or(requested).map(Message::verbatim),
    }
}

/// The isolation level that the sessions of a trial have asked for, if any.
fn requested_isolation(trial: &Trial) -> Option<String> {
    KnownFamily::from_summary(&trial.summary)?.isolation(&trial.summary)
}

fn is_same_level(a: &str, b: &str) -> bool {
    let [a, b] = [a, b].map(|level| level.replace('-', " ").to_lowercase());
    a == b
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
                line.push(strong(say!(commit_may_be_lost_or_torn)));
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
        equal_settings_count,
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
            let is_listed = rows.iter().any(|(listed_experiment, listed_point)| {
                listed_experiment.title == experiment.title && listed_point.target == point.target
            });
            if !is_listed {
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
    PaperRows::new(say!(data_to_memory_title), rows)
        .text(say!(experiment), |(experiment, _)| &experiment.title)
        .text(say!(target_column), |(_, point)| &point.target)
        .col(say!(size_of_the_data), Bytes, |(_, point)| point.data.as_ref()?.facts.size_bytes)
        .col(say!(memory_for_data), Bytes, |(_, point)| point.data.as_ref()?.facts.memory_bytes)
        .strong(say!(data_to_memory), Short, |(_, point)| point.data.as_ref()?.size_to_memory)
        .text(say!(where_the_data_fit), |(_, point)| {
            point.data.as_ref()?.size_to_memory.map(fit_in_memory)
        })
        .col(say!(lowest_hit_ratio_percent), Fixed(2), |(experiment, point)| {
            let trials = paper.trials.iter().filter(|trial| {
                trial.summary.experiment == experiment.name && trial.target == point.target
            });
            let nodes = trials.flat_map(|trial| trial.summary.conditions.nodes.values());
            let lowest_hit = nodes.filter_map(|node| node.hit_share).reduce(f64::min);
            lowest_hit.map(|share| share * 100.0)
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
    let max_lines = match (paper.is_short(), paper.runs.len()) {
        (false, _) => MAX_LINES,
        (true, 1) => MAX_LINES_SHORT,
        // Runs that are put together repeat their findings.
        _ => 1,
    };
    let shown_checks = with_findings
        .into_iter()
        .filter(|check| !paper.is_short() || check.level < Level::I)
        .collect();
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
        let summary = say!(checks_without_findings, n);
        blocks.details(summary, false, inner);
    }
}

/// Lines of findings for each check.
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
