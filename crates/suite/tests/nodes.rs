//! Targets with several nodes: how they are written, given and stored.

mod common;

use common::WORKLOADS;
use dyno_facts::{Role, Route, SecretUrl, TargetFacts, TargetNode};
use dyno_suite::{Overrides, Plan, Suite};

const EXPERIMENT: &str = "[[experiment]]\nname = \"a\"\nworkload = \"sysbench\"\n\
                          test = \"oltp_read_only\"\nworkers = 4\nduration_s = 5\n";
/// A primary and two nodes that are read from.
const THREE: &str = "nodes = [\n\
    { name = \"n1\", role = \"primary\", url = \"mysql://u:geheim@a/d\" },\n\
    { role = \"read_only\", url = \"mysql://u@b/d\" },\n\
    { role = \"read_only\", url = \"mariadb://u@c/d\" },\n]\n";

/// A suite whose target and experiment have further keys.
fn suite(target: &str, experiment: &str) -> Suite {
    let text = format!("[suite]\nname = \"s\"\n[target.main]\n{target}{EXPERIMENT}{experiment}");
    Suite::parse("s.toml", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"))
}

/// The plan of a suite that must be right.
fn plan(suite: &Suite, overrides: &Overrides) -> Plan {
    Plan::build(suite, overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn main_target(plan: &Plan) -> &TargetFacts {
    plan.target("main").expect("the target")
}

/// The target as it is planned.
fn target(text: &str) -> TargetFacts {
    main_target(&plan(&suite(text, ""), &Overrides::default())).clone()
}

/// The URL of the node on which data are loaded.
fn loading(target: &TargetFacts) -> Option<String> {
    target.loading_url().map(SecretUrl::redacted)
}

/// Names and roles of the nodes.
fn nodes(target: &TargetFacts) -> Vec<(&str, Role)> {
    target.nodes.iter().map(|node| (node.name.as_str(), node.role)).collect()
}

#[test]
fn nodes_have_names_roles_and_passwords() {
    let target = target(THREE);
    let names =
        [("n1", Role::Primary), ("read_only-1", Role::ReadOnly), ("read_only-2", Role::ReadOnly)];
    assert_eq!(nodes(&target), names);
    assert_eq!((target.route, target.role), (Route::Primary, Role::Primary));
    assert_eq!(
        (target.url.redacted(), target.nodes[0].url.redacted()),
        ("mysql://u@a/d".into(), "mysql://u@a/d".into())
    );
    assert_eq!(target.nodes[0].url.expose(), "mysql://u:geheim@a/d");
    assert_eq!(target.nodes[1].url.expose(), "mysql://u@b/d");
    let variable = target.node_password_variable(&target.nodes[1]);
    assert_eq!(variable, "DYNO_PASSWORD_MAIN_READ_ONLY_1");
}

#[test]
fn a_route_says_what_the_load_reaches() {
    let endpoint = "{ role = \"endpoint\", url = \"mysql://u@e/d\" },\n]\n";
    let four = THREE.replace("]\n", endpoint);
    let cases = [
        (format!("{THREE}route = \"primary\"\n"), Route::Primary, Role::Primary, "mysql://u@a/d"),
        (format!("{THREE}route = \"split\"\n"), Route::Split, Role::Primary, "mysql://u@a/d"),
        (format!("{THREE}route = \"spread\"\n"), Route::Spread, Role::ReadOnly, "mysql://u@b/d"),
        (four.clone(), Route::Endpoint, Role::Endpoint, "mysql://u@e/d"),
        (format!("{four}route = \"split\"\n"), Route::Split, Role::Primary, "mysql://u@a/d"),
    ];
    for (text, route, role, url) in cases {
        let target = target(&text);
        assert_eq!(
            (target.route, target.role, &*target.url.redacted()),
            (route, role, url),
            "{text}"
        );
        // Data are loaded where writes are taken, whatever the load reaches.
        assert_eq!(loading(&target), Some("mysql://u@a/d".to_owned()), "{text}");
    }
    // What is before shards takes the data, too.
    let sharded = four.replace("read_only", "shard");
    assert_eq!(loading(&target(&sharded)), Some("mysql://u@e/d".to_owned()));
}

#[test]
fn one_node_is_as_it_always_was() {
    for text in [
        "url = \"mysql://u@a/d\"\n",
        "nodes = [{ role = \"endpoint\", url = \"mysql://u@a/d\" }]\n",
    ] {
        let plan = plan(&suite(text, ""), &Overrides::default());
        assert_eq!(loading(main_target(&plan)), Some("mysql://u@a/d".to_owned()));
        let json = serde_json::to_string(&plan).expect("JSON");
        assert!(!json.contains("\"nodes\""), "{json}");
    }
}

#[test]
fn a_target_without_all_urls_is_left_out() {
    let text = THREE.replace(", url = \"mysql://u@b/d\"", "");
    let error = Plan::build(&suite(&text, ""), &Overrides::default()).expect_err("no URL");
    assert!(error.to_string().starts_with("No target of the suite `s` has a URL."), "{error}");
}

#[test]
fn nodes_are_stored_and_decide_which_plan_it_is() {
    let first = plan(&suite(THREE, ""), &Overrides::default());
    let json = serde_json::to_string(&first).expect("JSON");
    assert!(!json.contains("geheim"), "a password is stored");
    let back: Plan = serde_json::from_str(&json).expect("a plan");
    assert_eq!(nodes(main_target(&back)), nodes(main_target(&first)));
    assert_eq!(main_target(&back).nodes[0].url.expose(), "mysql://u@a/d");
    let unchanged = back.redirected(&Overrides::default()).expect("a plan");
    assert_eq!(unchanged.hash, first.hash);
    for changed in [
        format!("{THREE}route = \"split\"\n"),
        THREE.replace("\"n1\"", "\"n2\""),
        THREE.replace("u@b", "u@x"),
    ] {
        assert_ne!(plan_hash(&changed), first.hash, "{changed}");
    }
    assert_eq!(plan_hash(&THREE.replace("geheim", "other")), first.hash);
}

fn plan_hash(text: &str) -> String {
    plan(&suite(text, ""), &Overrides::default()).facts.hash
}

fn parse_overrides(targets: &[&str]) -> Overrides {
    let mut overrides = Overrides::default();
    for target in targets {
        overrides.add_target(target).unwrap_or_else(|problem| panic!("{problem}"));
    }
    overrides
}

#[test]
fn nodes_are_given_alongside_the_suite() {
    let suite = suite("route = \"split\"\n", "");
    let texts = [
        "main:read_only=postgres://u:geheim@b/d?x=1",
        "main:primary=postgres://u@a/d",
        "main:read_only=postgres://u@c/d",
    ];
    let plan_with_nodes = plan(&suite, &parse_overrides(&texts));
    let target = main_target(&plan_with_nodes);
    let names = [
        ("read_only-1", Role::ReadOnly),
        ("primary", Role::Primary),
        ("read_only-2", Role::ReadOnly),
    ];
    assert_eq!((nodes(target), target.route), (names.to_vec(), Route::Split));
    assert_eq!(target.nodes[0].url.expose(), "postgres://u:geheim@b/d?x=1");
    // One URL is one node, whatever the suite had in mind.
    let single = plan(&suite, &parse_overrides(&["main=postgres://u@a/d"]));
    assert!(main_target(&single).nodes.is_empty());
    assert!(single.notes.is_empty(), "{:?}", single.notes);
}

#[test]
fn a_cluster_replaces_nodes_of_plans_that_were_stored() {
    let url = SecretUrl::new("mysql://u:geheim@x/d");
    let cluster = Some("/c".to_owned());
    let node = TargetNode { cluster, ..TargetNode::new("n1", Role::Primary, url) };
    let cluster =
        Overrides { nodes: vec![("main".to_owned(), vec![node])], ..Overrides::default() };
    let suite = suite(THREE, "");
    let built = plan(&suite, &cluster);
    assert_eq!(nodes(main_target(&built)), [("n1", Role::Primary)]);
    assert_eq!(main_target(&built).nodes[0].cluster.as_deref(), Some("/c"));
    let stored = plan(&suite, &Overrides::default()).redirected(&cluster).expect("a plan");
    assert_eq!(
        (&stored.hash, &*main_target(&stored).url.redacted()),
        (&built.hash, "mysql://u@x/d")
    );
    assert_eq!(main_target(&stored).url_in("r".as_ref()).expose(), "mysql://u:geheim@x/d");
}

#[test]
fn wrong_nodes_alongside_the_suite_are_refused() {
    let mut overrides = Overrides::default();
    let error = overrides.add_target("main:reed_only=mysql://u:geheim@a/d").expect_err("no role");
    let message = "`--target main:reed_only=...` names no role of a node.\n\
                hint: Did you mean `read_only`?";
    assert_eq!(error.to_string(), message);
    for (targets, message) in [
        (
            &["mian:primary=mysql://a/d"][..],
            "The suite `s` has no target `mian`.\nhint: Did you mean `main`?",
        ),
        (
            &["main=mysql://a/d", "main:primary=mysql://a/d"][..],
            "`--target main=...` is given twice.",
        ),
    ] {
        let built = Plan::build(&suite(THREE, ""), &parse_overrides(targets));
        let error = built.expect_err("refused").to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn a_twin_has_the_same_nodes() {
    let compare = "compare = { baseline = \"main\", aa = true, pairs = 4 }\n";
    let plan = plan(&suite(THREE, compare), &Overrides::default());
    let twin = plan.target("main-again").expect("the twin");
    assert_eq!(nodes(twin), nodes(main_target(&plan)));
    assert_eq!(twin.node_name(&twin.nodes[0]), "main_n1");
}

/// The read-only nodes, by their numbers, of each of some load generators.
fn nodes_by_generator(target: &TargetFacts, generators: u32) -> Vec<Vec<usize>> {
    let readers = target.nodes.iter().filter(|node| node.role == Role::ReadOnly);
    let names: Vec<&str> = readers.map(|node| node.name.as_str()).collect();
    let parts = (0..generators).map(|generator| target.for_generator(generator, generators));
    let numbers = parts.map(|part| {
        let positions =
            part.nodes.iter().map(|node| names.iter().position(|name| *name == node.name));
        positions.collect::<Option<Vec<usize>>>().expect("read-only nodes")
    });
    numbers.collect()
}

fn spread_target(readers: usize) -> TargetFacts {
    let nodes = (0..readers)
        .map(|at| format!("{{ role = \"read_only\", url = \"mysql://u@n{at}/d\" }},\n"));
    let nodes: String = nodes.collect();
    target(&format!(
        "nodes = [\n{{ role = \"primary\", url = \"mysql://u@p/d\" }},\n{nodes}]\nroute = \"spread\"\n"
    ))
}

#[test]
fn load_generators_have_their_own_read_only_nodes() {
    assert_eq!(nodes_by_generator(&spread_target(5), 5), [[0], [1], [2], [3], [4]]);
    assert_eq!(nodes_by_generator(&spread_target(4), 2), [[0, 2], [1, 3]]);
    // Some share one, but each node has as many.
    assert_eq!(nodes_by_generator(&spread_target(2), 4), [[0], [1], [0], [1]]);
    // Otherwise, separate nodes would give one node more load than another.
    for (nodes, generators) in [(5, 1), (5, 2), (2, 3)] {
        let all_nodes: Vec<usize> = (0..nodes).collect();
        for driven in nodes_by_generator(&spread_target(nodes), generators) {
            assert_eq!(driven, all_nodes, "{nodes} nodes, {generators} generators");
        }
    }
    // Other routes need all nodes.
    let split = target(&format!("{THREE}route = \"split\"\n"));
    assert_eq!(nodes(&split.for_generator(1, 2)), nodes(&split));
}

/// An endpoint before two shards.
const SHARDED: &str = "nodes = [\n\
    { role = \"endpoint\", url = \"mysql://u@e/d\" },\n\
    { name = \"s1\", role = \"shard\", url = \"mysql://u@a/d\" },\n\
    { name = \"s2\", role = \"shard\", url = \"mysql://u@b/d\" },\n]\n";

#[test]
fn rows_lie_on_shards_by_the_rule_of_the_target() {
    for (rule, shard) in [
        ("", None),
        ("shard_rule = \"modulo\"\n", Some(1)),
        ("shard_rule = \"ranges 3\"\n", Some(0)),
    ] {
        let stored = plan(&suite(&format!("{SHARDED}{rule}"), ""), &Overrides::default());
        let json = serde_json::to_string(&stored).expect("JSON");
        let back: Plan = serde_json::from_str(&json).expect("a plan");
        assert_eq!(main_target(&back).shard_map(), main_target(&stored).shard_map());
        let map = main_target(&stored).shard_map();
        assert_eq!(map.map(|map| map.shard_of(3_u32)), shard, "{rule}");
    }
    assert_ne!(plan_hash(SHARDED), plan_hash(&format!("{SHARDED}shard_rule = \"modulo\"\n")));
    // Shards of dyno's own clusters need no word.
    let nodes = [("e", Role::Endpoint), ("n1", Role::Shard), ("n2", Role::Shard)];
    let nodes = nodes.map(|(name, role)| {
        let node = TargetNode::new(name, role, SecretUrl::new("mysql://u@x/d"));
        TargetNode { cluster: Some("/c".to_owned()), ..node }
    });
    let nodes = vec![("main".to_owned(), nodes.to_vec())];
    let overrides = Overrides { nodes, ..Overrides::default() };
    let built = plan(&suite("url = \"mysql://u@a/d\"\n", ""), &overrides);
    assert_eq!(main_target(&built).shard_map().map(|map| map.shard_of(4_u32)), Some(0));
    // One URL is one node, whatever the suite had in mind.
    let single = plan(
        &suite(&format!("{SHARDED}shard_rule = \"modulo\"\n"), ""),
        &Overrides {
            targets: vec![("main".to_owned(), SecretUrl::new("mysql://u@a/d"))],
            ..Overrides::default()
        },
    );
    assert_eq!(main_target(&single).shard_rule, None);
}

#[test]
fn a_rule_that_fits_no_shards_is_refused() {
    for (target, message) in [
        (
            format!("{SHARDED}shard_rule = \"ranges 5, 10\"\n"),
            "The target `main`: `ranges 5, 10` is a rule for 3 shards, and there are 2.",
        ),
        (
            "url = \"mysql://u@a/d\"\nshard_rule = \"modulo\"\n".to_owned(),
            "The target `main`: `modulo` is a rule for shards, and there is no node of role shard.",
        ),
        (format!("{THREE}shard_rule = \"modulo\"\n"), "and there is no node of role shard."),
        (format!("{SHARDED}shard_rule = \"hash\"\n"), "`hash` isn't a rule for shards."),
    ] {
        let text = format!("[suite]\nname = \"s\"\n[target.main]\n{target}{EXPERIMENT}");
        let suite = Suite::parse("s.toml", &text, WORKLOADS);
        let built = suite.and_then(|suite| Plan::build(&suite, &Overrides::default()));
        let error = built.expect_err("refused").to_string();
        assert!(error.contains(message) && error.contains("hint: "), "{error}");
    }
}
