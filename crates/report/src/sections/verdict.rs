//! Targets held against each other, and gates.

use super::notes;
use crate::blocks::{Blocks, Cell, PaperRows, Span, bad, code, emphasis};
use crate::charts::drawings;
use crate::evidence::Paper;
use crate::evidence::{
    Bounds, Call, GateResult, GateRow, PairOrder, PairedComparison, SessionRow, VerdictRow,
};
use crate::format::{
    self, NumberFormat,
    NumberFormat::{Right, Short, Text as Words},
};
use crate::text::{Lang, Message};
use dyno_facts::say;
use dyno_facts::statistics::ALPHA;
use dyno_facts::statistics::ratio::Judging;
use dyno_judge::findings::verdict::{aa, bounds};

const RATIO: NumberFormat = NumberFormat::Ratio;

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    if !paper.verdicts.comparisons.is_empty() {
        if !paper.is_short() {
            blocks.figures(drawings(paper, lang));
        }
        blocks.table(verdicts(paper));
        blocks.fine(Message::sentences(&methods(paper)));
        blocks.table(sessions(paper));
        let levels = paper.verdicts.comparisons.iter().filter_map(|of| of.levels.as_ref());
        levels.for_each(|levels| blocks.paragraph(levels.words.clone()));
    }
    blocks.table(gates(paper));
    blocks
}

/// Whether there are comparisons of a number of pairs that was not ended by a verdict, and others.
fn judgings(paper: &Paper) -> [bool; 2] {
    [false, true].map(|is_anytime| {
        paper.verdicts.comparisons.iter().any(|of| of.stop.is_until_decided == is_anytime)
    })
}

/// What the p of the rows is that of.
fn tests(paper: &Paper) -> Message {
    match judgings(paper) {
        [true, true] => say!(p_wilcoxon_t_or_e_process),
        [false, true] => say!(p_e_process),
        _ => say!(p_wilcoxon_t),
    }
}

/// How figures were judged, by the methods that were used.
fn methods(paper: &Paper) -> Vec<Message> {
    let [is_fixed, is_anytime] = judgings(paper);
    let ended = paper.verdicts.comparisons.iter().find(|of| of.stop.half_width.is_some());
    let level = ended.map(|of| match of.judging() {
        Judging::Level(alpha) => alpha,
        Judging::Anytime => ALPHA,
    });
    let of_pairs = [
        is_fixed.then(|| say!(ratios_are_pseudo_medians)),
        level.map(|alpha| say!(half_width_has_ended_pairs, level = format::plain(alpha))),
        is_anytime.then(|| say!(ratios_are_by_e_process)),
    ];
    let all = [say!(figures_are_medians)].into_iter().chain(of_pairs.into_iter().flatten());
    all.chain([say!(figures_are_medians_of_the_pairs)]).collect()
}

/// A row of a comparison, and its place in it; a comparison without a pair that counts has one without figures.
#[derive(Clone, Copy)]
struct ComparedRow<'a> {
    of: &'a PairedComparison,
    row: Option<&'a VerdictRow>,
    is_first: bool,
    /// Rows of its comparison.
    rows: usize,
}

impl ComparedRow<'_> {
    /// What all rows of a comparison share stands beside the first.
    fn shared(self, cell: impl FnOnce() -> Cell) -> Cell {
        if self.is_first { cell().down(self.rows) } else { Cell::covered() }
    }
}

/// All metrics of each comparison; the short edition has the one that decides.
fn verdicts(paper: &Paper) -> PaperRows<ComparedRow<'_>> {
    let most = if paper.is_short() { 1 } else { usize::MAX };
    let rows = paper.verdicts.comparisons.iter().flat_map(|of| {
        let rows = of.rows.len().clamp(1, most);
        let row =
            move |place| ComparedRow { of, row: of.rows.get(place), is_first: place == 0, rows };
        (0..rows).map(row)
    });
    PaperRows::new(say!(verdicts_candidate_by_baseline_from_pairs), rows)
        .text(say!(experiment_load_level), |one| {
            one.shared(|| {
                let is_blocks = one.of.order == PairOrder::Blocks;
                Cell::from(&one.of.title)
                    .with(&one.of.level)
                    .with_if(is_blocks, || vec![Span::plain(say!(not_interleaved))])
            })
        })
        .text(say!(candidate), |one| {
            one.shared(|| {
                Cell::from(&one.of.candidate)
                    .with(&one.of.baseline)
                    .with_if(one.of.is_aa, || vec![Span::plain(aa(one.of))])
            })
        })
        .below(say!(baseline_2))
        .text(say!(metric), |one| one.row.map(|row| &row.name))
        .class("inner")
        .col(say!(candidate), Short, |one| Some(one.row?.candidate.median))
        .col(say!(baseline), Short, |one| Some(one.row?.baseline.median))
        .col(say!(ratio_2), RATIO, |one| one.row.map(ratio))
        .class("strong")
        .below(say!(n_95_percent_interval))
        .text(say!(verdict), |one| {
            let Some(row) = one.row else { return Cell::from(&one.of.no_pair).class("bad") };
            Cell::from(&row.words).class(match row.call {
                Call::Slower => "bad",
                Call::Faster | Call::Equivalent => "",
                _ => "grey",
            })
        })
        .col(say!(pairs), NumberFormat::Whole, |one| {
            let pairs = one.row.map_or(0, |row| row.pairs);
            let needed = one.row.and_then(|row| row.pairs_needed);
            let needed = needed.filter(|needed| *needed > pairs);
            needed
                .into_iter()
                .fold(Cell::from(pairs), |cell, more| cell.with(format::whole(more as f64)))
        })
        .below(say!(needed))
        .col(say!(deviation_percent), Right, |one| deviations(one.row?))
        .below(say!(candidate_baseline))
        .col(tests(paper), Right, |one| one.row.map(chances))
        .below(say!(corrected_holm))
        .col(say!(noise_floor_percent), NumberFormat::Percent, |one| one.row?.noise_floor)
        .text(
            say!(notes),
            |one| {
                if one.is_first { notes(paper, &one.of.checks) } else { Cell::blank() }
            },
        )
        .each(|one, row| {
            if one.is_first {
                row.anchor = format!("comparison-{}", one.of.number);
            }
        })
}

fn ratio(row: &VerdictRow) -> Cell {
    let cell = Cell::from(row.ratio).bound(row.bound);
    row.interval.into_iter().fold(cell, |cell, both| match row.bound {
        "" => cell.with(ends(both, RATIO)),
        _ => cell.with(bounds(both)),
    })
}

fn chances(row: &VerdictRow) -> Cell {
    let both = [row.p].into_iter().chain(row.p_t);
    let cell = Cell::from(both.map(chance).collect::<Vec<_>>().join(", "));
    row.p_adjusted.into_iter().fold(cell, |cell, p| cell.with(chance(p)))
}

/// Deviations of candidate and baseline, percent.
fn deviations(row: &VerdictRow) -> Option<String> {
    let baseline = row.variation_baseline.map_or(format::DASH.to_owned(), format::percent);
    row.variation_candidate.map(|candidate| format!("{}, {baseline}", format::percent(candidate)))
}

fn chance(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { NumberFormat::Fixed(3).show(p) }
}

pub(super) fn ends(both: Bounds, format: NumberFormat) -> String {
    format!("{}{}{}", format.show(both.low), format::DASH, format.show(both.high))
}

/// Of each comparison that went on over several runs; what is not as in the last one stands out.
fn sessions(paper: &Paper) -> PaperRows<(&PairedComparison, &SessionRow, &SessionRow)> {
    let rows = paper.verdicts.comparisons.iter().flat_map(|of| {
        let last = of.sessions.last();
        of.sessions.iter().zip(last.into_iter().cycle()).map(move |(own, last)| (of, own, last))
    });
    let fact =
        |own: &String, last: &String| Cell::from(own).class(if own == last { "" } else { "bad" });
    PaperRows::new(say!(sessions_of_comparisons), rows)
        .text(say!(experiment_load_level), |(of, ..)| Cell::from(&of.title).with(&of.level))
        .text(say!(session_began), |(_, own, _)| {
            Cell::from(&own.started_at).with(code(&own.folder))
        })
        .text(say!(load_generator), |(_, own, last)| fact(&own.machine, &last.machine))
        .text(say!(server_versions), |(_, own, last)| fact(&own.versions, &last.versions))
        .text("dyno", |(_, own, last)| fact(&own.dyno, &last.dyno))
        .col(say!(pairs), NumberFormat::Whole, |(_, own, _)| own.pairs)
        .col(say!(ratio_2), RATIO, |(_, own, _)| own.ratio)
}

fn gates(paper: &Paper) -> PaperRows<&GateRow> {
    let format = |gate: &GateRow| if gate.is_ratio { RATIO } else { Short };
    PaperRows::new(say!(gates), &paper.verdicts.gates)
        .col(say!(gate), Words, |gate| code(&gate.gate))
        .text(say!(experiment_load_level), |gate| Cell::from(&gate.title).with(&gate.level))
        .text(say!(target_2), |gate| (!gate.target.is_empty()).then_some(&gate.target))
        .col(say!(found), Right, |gate| {
            let cell = Cell::from(gate.value.map(|value| format(gate).show(value)));
            let interval = gate.interval.filter(|_| gate.value.is_some());
            interval.into_iter().fold(cell, |cell, both| cell.with(ends(both, format(gate))))
        })
        .below(say!(n_95_percent_interval))
        .text(say!(result), |gate| {
            let result = match gate.result {
                GateResult::Pass => Span::plain(say!(passed)),
                GateResult::Broken => bad(say!(broken)),
                GateResult::Inconclusive => emphasis(say!(inconclusive_2)),
            };
            Cell::from(result).with(&gate.why)
        })
}
