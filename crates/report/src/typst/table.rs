//! Tables: each cell with its place, so that heads over two rows and cells over several columns
//! need no counting later.

use super::html::Element;
use super::write::{Writer, quoted};
use std::collections::HashSet;
use std::fmt::Write;

/// `#tabular(...)` with all cells.
pub(super) fn write(writer: &mut Writer, table: &Element) {
    let mut rows: Vec<(&Element, &str)> = Vec::new();
    for part in table.elements() {
        match part.name.as_str() {
            "tr" => rows.push((part, "")),
            "thead" | "tbody" | "tfoot" => {
                let inside = part.elements().filter(|row| row.name == "tr");
                rows.extend(inside.map(|row| (row, part.name.as_str())));
            }
            _ => {}
        }
    }
    let heads = rows.iter().take_while(|(_, part)| *part == "thead").count();
    let caption = table.elements().find(|part| part.name == "caption");
    let mut body = std::mem::take(&mut writer.out);
    let was_in_table = std::mem::replace(&mut writer.is_in_table, true);
    let columns = cells(writer, &rows);
    writer.is_in_table = was_in_table;
    std::mem::swap(&mut body, &mut writer.out);
    let _ = write!(
        writer.out,
        "\n#tabular({}, {columns}, {heads}, {}, ",
        quoted(table.attribute("class")),
        rows.len(),
    );
    match caption {
        Some(caption) => writer.bracketed(caption),
        None => writer.out.push_str("[]"),
    }
    let _ = write!(writer.out, ", (\n{body}))\n");
}

/// Writes all cells; returns the number of columns.
fn cells(writer: &mut Writer, rows: &[(&Element, &str)]) -> usize {
    let mut taken: HashSet<(usize, usize)> = HashSet::new();
    let mut columns = 0;
    for (y, (row, part)) in rows.iter().enumerate() {
        let mut x = 0;
        let mut is_first = true;
        let row_class = row.attribute("class").split_whitespace();
        let row_class: String = row_class.map(|class| format!(" row-{class}")).collect();
        for cell in row.elements().filter(|cell| matches!(cell.name.as_str(), "th" | "td")) {
            while taken.contains(&(x, y)) {
                x += 1;
            }
            let span = |name: &str, most: usize| {
                cell.attribute(name).parse::<usize>().unwrap_or(1).clamp(1, most.max(1))
            };
            let (wide, high) = (span("colspan", 100), span("rowspan", rows.len() - y));
            taken.extend((x..x + wide).flat_map(|x| (y..y + high).map(move |y| (x, y))));
            let kind = match (cell.name.as_str(), *part) {
                (_, "thead") => " head",
                (_, "tfoot") => " foot",
                ("th", _) => " first",
                _ => "",
            };
            let class = format!("{}{kind}{row_class}", cell.attribute("class"));
            let _ = write!(writer.out, "  c({x}, {y}, {}, [", quoted(class.trim()));
            if is_first {
                writer.place(row);
                is_first = false;
            }
            writer.place(cell);
            writer.all(&cell.children);
            writer.out.push(']');
            if (wide, high) != (1, 1) {
                let _ = write!(writer.out, ", w: {wide}, h: {high}");
            }
            writer.out.push_str("),\n");
            x += wide;
        }
        columns = columns.max(x);
    }
    // A cell over several rows may reach further than the last one of a later row.
    taken.iter().map(|(x, _)| x + 1).max().unwrap_or(0).max(columns)
}

#[cfg(test)]
mod tests {
    use crate::typst::html::parse;
    use crate::typst::write::written;

    #[test]
    fn cells_know_their_place() {
        let table = "<a href='#r'></a><table class=text><caption>C</caption><thead><tr><th rowspan=2>a</th><th colspan=2 class=group>b</th></tr>
            <tr><th>c</th><th class=n>d</th></tr></thead><tbody><tr id=r class=weak><th>1</th><td class=n>2</td><td>3</td></tr></tbody></table>";
        let lines: Vec<String> =
            written(&parse(table)).lines().skip(1).map(|line| line.trim().to_owned()).collect();
        assert_eq!(
            lines,
            [
                "#tabular(\"text\", 3, 2, 3, [C], (",
                "c(0, 0, \"head\", [a], w: 1, h: 2),",
                "c(1, 0, \"group head\", [b], w: 2, h: 1),",
                "c(1, 1, \"head\", [c]),",
                "c(2, 1, \"n head\", [d]),",
                "c(0, 2, \"first row-weak\", [#place-of(\"r\");1]),",
                "c(1, 2, \"n row-weak\", [2]),",
                "c(2, 2, \"row-weak\", [3]),",
                "))",
            ]
        );
    }

    #[test]
    fn a_table_without_cells_has_no_columns() {
        assert!(written(&parse("<table></table>")).contains("#tabular(\"\", 0, 0, 0, [], ("));
    }
}
