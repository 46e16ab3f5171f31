use super::*;
use std::collections::HashSet;

#[test]
fn the_rules_can_be_read_and_have_what_they_need() {
    let rules = rules();
    let names: HashSet<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names.len(), rules.len(), "names are unique");
    for rule in &rules {
        assert!(!rule.product.is_empty(), "{}", rule.name);
        assert_eq!(rule.is_parallel(), !rule.settings.is_empty(), "{}", rule.name);
        let has_place = rule.settings.iter().any(|setting| setting.on.contains("{degree}"));
        assert_eq!(has_place, rule.is_parallel(), "{}", rule.name);
        let has_off = rule.settings.iter().any(|setting| !setting.off.is_empty());
        assert_eq!(has_off, rule.is_parallel(), "{}", rule.name);
        assert!(rule.workers.iter().all(|pattern| pattern.matches("{n}").count() == 1));
    }
    assert!(rules.iter().any(|rule| rule.fits(Dialect::Sqlite)));
}

#[test]
fn workers_are_read_from_plans() {
    let postgres = named("postgres").unwrap();
    let both = r#""Workers Planned": 9, "Workers Launched": 2, x "Workers Launched": 12,"#;
    assert_eq!(postgres.workers(both), Some(12));
    assert_eq!(postgres.workers(r#""Workers Planned": 9"#), Some(9));
    assert_eq!(postgres.workers("Seq Scan"), Some(0));
    let polardb = named("polardb-mysql").unwrap();
    assert_eq!(polardb.workers("Using where; Parallel scan (4 workers)"), Some(4));
    assert_eq!(named("tidb").unwrap().workers("Concurrency:OFF, Concurrency:15"), Some(15));
}

#[test]
fn own_rules_need_a_place_for_the_degree_and_a_way_back() {
    let text = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let (set, off) = (text(&["set dop = {degree}"]), text(&["set dop = 0"]));
    assert!(DegreeRule::own(set.clone(), off.clone()).is_ok());
    assert!(DegreeRule::own(off.clone(), off).unwrap_err().contains("{degree}"));
    assert!(DegreeRule::own(set, vec![]).unwrap_err().contains("degree_off"));
}
