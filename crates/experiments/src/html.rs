//! Report for readers: one HTML page without external resources, with a section for each
//! experiment.

use crate::availability::AvailableSummary;
use crate::compare::Comparison;
use crate::page::plots;
use crate::results::RowResult;
use crate::text::{
    NOTHING, Table, chance_line, column_line, head, improvement_cells, order_line, percent, range,
    throughput,
};
use plot::escape;
use std::fmt::Write;

const STYLE: &str = "\
body{font:15px/1.45 sans-serif;color:#222;max-width:62em;margin:2em auto;padding:0 1em}
h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2.5em;border-bottom:1px solid #bbb}
svg{max-width:100%;height:auto;display:block;margin:1em 0}
table{border-collapse:collapse;margin:1em 0;font-size:.9em}
th,td{padding:.15em .6em;text-align:right;font-variant-numeric:tabular-nums}
.words td:not(:first-child):not(:last-child){white-space:nowrap}
th:first-child,td:first-child,.words td,.words th{text-align:left}
thead{border-bottom:1px solid #444}tbody tr:nth-child(even){background:#f4f4f4}
th.group{text-align:left;border-left:1px solid #bbb}td.group{border-left:1px solid #bbb}
p.head{margin:.2em 0}q{color:#555}
@media print{body{margin:0;max-width:none}h2{break-before:page}h2:first-of-type{break-before:auto}
svg,tr{break-inside:avoid}}";

/// Returns the page.
pub(crate) fn report(comparisons: &[Comparison]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Published experiments, simulated</title>\n<style>\n{STYLE}\n</style>\n</head>\n\
         <body>\n<h1>Published experiments, simulated</h1>\n\
         <p>Made by <code>unisono reproduce</code>, version {}. In bar plots a black line marks \
         what was published. Where a section shows no published values, none are at hand as \
         numbers.</p>\n",
        env!("CARGO_PKG_VERSION"),
    );
    if comparisons.len() > 1 {
        out.push_str("<ul>\n");
        for comparison in comparisons {
            let _ = writeln!(
                out,
                "<li><a href=\"#{0}\">{0}</a>: {1}</li>",
                comparison.name,
                escape(comparison.title),
            );
        }
        out.push_str("</ul>\n");
    }
    for comparison in comparisons {
        section(&mut out, comparison);
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn section(out: &mut String, comparison: &Comparison) {
    let mut head = head(comparison).into_iter();
    let title = head.next().unwrap_or_default();
    let _ = writeln!(out, "<h2 id=\"{}\">{}</h2>", comparison.name, escape(&title));
    for line in head {
        let _ = writeln!(out, "<p class=\"head\">{}</p>", escape(&line));
    }
    for plot in plots(comparison) {
        out.push_str(&plot);
    }
    improvements(out, comparison);
    anchors(out, comparison);
    let processors = comparison.available.iter().map(AvailableSummary::line);
    let lines = comparison.columns.iter().map(column_line).chain(processors);
    let lines: Vec<String> = lines.chain(order_line(comparison)).collect();
    if !lines.is_empty() {
        out.push_str("<ul>\n");
        for line in lines {
            let _ = writeln!(out, "<li>{}</li>", escape(&line));
        }
        out.push_str("</ul>\n");
    }
    rows(out, comparison);
    if let Some(line) = chance_line(comparison) {
        let _ = writeln!(out, "<p>{}</p>", escape(&line));
    }
}

/// Writes the rows of the table, as on a terminal.
fn rows(out: &mut String, comparison: &Comparison) {
    let table = Table::new(comparison);
    out.push_str("<table>\n<thead>\n<tr>");
    for (group, columns) in table.groups() {
        let class = if group.is_empty() { "" } else { " class=\"group\"" };
        let _ = write!(out, "<th colspan=\"{columns}\"{class}>{}</th>", escape(group));
    }
    out.push_str("</tr>\n<tr>");
    for (head, begins) in table.heads() {
        let class = if begins { " class=\"group\" style=\"text-align:right\"" } else { "" };
        let _ = write!(out, "<th{class}>{}</th>", escape(head));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &comparison.rows {
        row_line(out, &table, row);
    }
    out.push_str("</tbody>\n</table>\n");
}

fn row_line(out: &mut String, table: &Table, row: &RowResult) {
    out.push_str("<tr>");
    for ((_, begins), cell) in table.heads().zip(table.cells(row)) {
        let class = if begins { " class=\"group\"" } else { "" };
        let _ = write!(out, "<td{class}>{}</td>", escape(&cell));
    }
    out.push_str("</tr>\n");
}

fn improvements(out: &mut String, comparison: &Comparison) {
    if comparison.improvements.is_empty() {
        return;
    }
    out.push_str(
        "<table class=\"words\">\n<thead><tr><th>faster than caching</th><th colspan=\"3\">\
         published, simulated (error)</th></tr></thead>\n<tbody>\n",
    );
    for row in &comparison.improvements {
        let _ = write!(out, "<tr><td>{}</td>", row.method);
        for cell in improvement_cells(row) {
            let _ = write!(out, "<td>{}</td>", escape(&cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
}

fn anchors(out: &mut String, comparison: &Comparison) {
    if comparison.anchors.is_empty() {
        return;
    }
    out.push_str(
        "<table class=\"words\">\n<thead><tr><th>stated in the text</th><th>published</th>\
         <th>simulated</th><th>error</th><th>words</th></tr></thead>\n<tbody>\n",
    );
    for anchor in &comparison.anchors {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{} {}</td><td>{}</td><td>{}</td><td><q>{}</q> {}</td></tr>",
            escape(&anchor.name),
            escape(&range(anchor)),
            escape(&anchor.unit),
            anchor.simulated.map_or(NOTHING.to_owned(), throughput),
            anchor.error_percent.map_or(NOTHING.to_owned(), percent),
            escape(&anchor.sentence),
            escape(&anchor.source),
        );
    }
    out.push_str("</tbody>\n</table>\n");
}

#[cfg(test)]
mod tests {
    //! Proves: the page needs no external resource, a title cannot break it, and it has the table
    //! of the text.
    use super::*;
    use crate::compare::tests::comparison;

    #[test]
    fn the_page_is_self_contained() {
        let page = report(&[comparison()]);
        for outside in ["src=", "href=\"http", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("Three &lt;rows&gt;") && !page.contains("<rows>"));
        assert!(page.contains("<svg") && !page.contains("NaN"));
        assert_eq!(page.matches("<tr>").count(), 2 + 3);
        let row = "<tr><td>rc</td><td>8192</td><td class=\"group\">10.0</td><td>9.00</td>\
                   <td>-10.0 %</td><td>0.000</td>";
        assert!(page.contains(row), "{page}");
    }
}
