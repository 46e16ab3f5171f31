//! D: same for same. Targets that stand beside each other differ in nothing but what is compared.

use super::{Find, Rule, parts};
use crate::model::{Finding, Group, Level, Paper, Spot, Target};
use crate::say;
use crate::text::Text;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "settings-differ",
        group: Group::D,
        level: Level::W,
        rule: "Targets of the same product have the same version and settings.",
        meaning: "A difference between these targets may come from their settings.",
        advice: "Set both alike, or say that the settings are what is compared.",
        find: Find::Paper(settings_differ),
    },
    Rule {
        id: "weak-durability",
        group: Group::D,
        level: Level::I,
        rule: "A commit survives a power loss.",
        meaning: "With these settings a committed transaction may be lost or torn; compare only with targets that promise the same.",
        advice: "Turn durability on, or print these settings beside every figure.",
        find: Find::Target(|target| {
            let weak = target.settings.iter().filter(|setting| setting.is_weak);
            let told = weak.map(|row| Text::same(format!("{} = {}", row.name, row.value)));
            let told: Vec<Text> = told.collect();
            (!told.is_empty()).then(|| Text::joined(&told, ", ", "、"))
        }),
    },
];

fn settings_differ(paper: &Paper) -> Vec<Finding> {
    let product = |target: &Target| target.product.split(' ').next().map(str::to_owned);
    let mut findings = Vec::new();
    for (index, target) in paper.targets.iter().enumerate() {
        let earlier = &paper.targets[..index];
        let Some(first) = earlier.iter().find(|first| product(first) == product(target)) else {
            continue;
        };
        let mut differences = Vec::new();
        if first.product != target.product {
            differences.push(say!("{a} against {b}", a = &first.product, b = &target.product));
        }
        for setting in &target.settings {
            let other = first.settings.iter().find(|other| other.name == setting.name);
            if let Some(other) = other.filter(|other| other.value != setting.value) {
                differences.push(say!(
                    "{setting} is {a} against {b}",
                    setting = &setting.name,
                    a = &other.value,
                    b = &setting.value
                ));
            }
        }
        let place = Spot::targets(&[&first.label, &target.label]);
        findings.extend(parts(differences).map(|value| Finding { place, value }));
    }
    findings
}
