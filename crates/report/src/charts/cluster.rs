//! The nodes of a target inside of its box: who feeds whom.

use crate::evidence::{PaperTarget, node_role};
use crate::svg::{Anchor, place, text};
use crate::text::Lang;
use dyno_facts::{Role, TargetNode, say};
use std::fmt::Write;

/// Between a node's box and the box of its target.
const MARGIN: f64 = 12.0;
/// Between two nodes above each other.
const GAP: f64 = 9.0;
/// Between the two columns, for the arrows.
const BETWEEN: f64 = 40.0;
/// A name and an address.
const HEIGHT: f64 = 44.0;

/// The nodes of one target.
#[derive(Clone, Default)]
pub(super) struct Nodes {
    /// Who takes the load and hands it on: an endpoint, else the primary. Empty where all are alike.
    first: Vec<DrawnNode>,
    /// The others.
    second: Vec<DrawnNode>,
    /// True where the first column is an endpoint: its arrows are statements, not copies.
    is_endpoint: bool,
}

#[derive(Clone)]
struct DrawnNode {
    name: String,
    address: String,
}

impl Nodes {
    pub(super) fn of(target: &PaperTarget, lang: Lang) -> Nodes {
        let with = |wanted: &dyn Fn(&TargetNode) -> bool| -> Vec<DrawnNode> {
            target
                .facts
                .nodes
                .iter()
                .filter(|node| wanted(node))
                .map(|node| shown(node, lang))
                .collect()
        };
        let is_endpoint = target.facts.nodes.iter().any(|node| node.role == Role::Endpoint);
        let front = if is_endpoint { Role::Endpoint } else { Role::Primary };
        let (first, second) = (with(&|node| node.role == front), with(&|node| node.role != front));
        Nodes { first, second, is_endpoint }
    }

    /// What they need below the lines of their target.
    pub(super) fn height(&self) -> f64 {
        match self.first.len().max(self.second.len()) {
            0 => 0.0,
            rows => rows as f64 * (HEIGHT + GAP) + MARGIN - GAP,
        }
    }

    /// Draws them into the target's box from `top` on.
    pub(super) fn write(&self, out: &mut String, class: &str, left: f64, width: f64, top: f64) {
        if self.height() == 0.0 {
            return;
        }
        let room = width - 2.0 * MARGIN;
        let columns: Vec<&[DrawnNode]> =
            [&*self.first, &*self.second].into_iter().filter(|nodes| !nodes.is_empty()).collect();
        let own = match columns.len() {
            1 => room,
            _ => (room - BETWEEN) / 2.0,
        };
        let bottom = top + self.height() - MARGIN;
        // The shorter column stands in the middle of the longer one.
        let begin = |nodes: &[DrawnNode]| {
            top + (bottom - top - (nodes.len() as f64 * (HEIGHT + GAP) - GAP)) / 2.0
        };
        let middle = |nodes: &[DrawnNode], at: usize| {
            begin(nodes) + at as f64 * (HEIGHT + GAP) + HEIGHT / 2.0
        };
        let x = |column: usize| left + MARGIN + column as f64 * (own + BETWEEN);
        if columns.len() == 2 {
            let stroke = if self.is_endpoint { "" } else { " dashed" };
            for (from, to) in (0..columns[0].len())
                .flat_map(|from| (0..columns[1].len()).map(move |to| (from, to)))
            {
                let (x1, x2) = (x(0) + own, x(1));
                let (y1, y2) = (middle(columns[0], from), middle(columns[1], to));
                let (a, b) = (x1 + BETWEEN / 2.0, x2 - BETWEEN / 2.0);
                let _ = write!(
                    out,
                    "<path class=\"flow {class}{stroke}\" d=\"M{x1:.1},{y1:.1}C{a:.1},{y1:.1} {b:.1},{y2:.1} {x2:.1},{y2:.1}\"/>"
                );
            }
        }
        for (column, nodes) in columns.iter().enumerate() {
            for (at, node) in nodes.iter().enumerate() {
                node.write(out, x(column), middle(nodes, at) - HEIGHT / 2.0, own);
            }
        }
    }
}

impl DrawnNode {
    fn write(&self, out: &mut String, left: f64, top: f64, width: f64) {
        let place = place(left, top, width, HEIGHT);
        let _ = write!(out, "<rect class=\"block\" {place} rx=\"3\"/>");
        for (class, down, line) in [("name", 18.0, &self.name), ("tick", 34.0, &self.address)] {
            // Names are bold, and wider than what is measured.
            let room = (width - 14.0) * if class == "name" { 0.82 } else { 1.0 };
            let line = super::topology::shortened(line, room);
            text(out, class, left + 7.0, top + down, Anchor::Start, &line);
        }
    }
}

fn shown(node: &TargetNode, lang: Lang) -> DrawnNode {
    let name = say!(node_role, node = &node.name, role = node_role(node.role.name()));
    DrawnNode { name: name.render(lang), address: address(&node.url.to_string()).to_owned() }
}

/// Host and port of a URL: all that tells the nodes of a cluster apart.
fn address(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?']).next().unwrap_or(rest);
    rest.rsplit_once('@').map_or(rest, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_host_and_port() {
        assert_eq!(address("mysql://dyno@10.0.0.1:3401/dyno?x=1"), "10.0.0.1:3401");
        assert_eq!(address("postgres://[::1]:5401/dyno"), "[::1]:5401");
        assert_eq!(address("mysql://db.example"), "db.example");
    }
}
