//! Picture of `bench --plot`: throughput over record size, a line for each pattern and strategy.

use crate::output::format::{plural, show_size};
use interface::Row;
use plot::{LineSeries, LogLines, Style};

/// Makes the picture of the rows of one bench.
pub(crate) fn picture(rows: &[Row]) -> LogLines {
    let mut series: Vec<LineSeries> = Vec::new();
    let has_patterns = rows.iter().any(|row| row.pattern != rows[0].pattern);
    for row in rows {
        let name = match has_patterns {
            true => format!("{}, {}", row.strategy, row.pattern),
            false => row.strategy.clone(),
        };
        let point = (row.record_bytes as f64, row.mib_s);
        match series.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => {
                let (style, is_broken) = (Style::plain(0), false);
                series.push(LineSeries { name, style, is_broken, points: vec![point] });
            }
        }
    }
    LineSeries::style_by_names(&mut series);
    for line in &mut series {
        line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    LogLines {
        title: rows.first().map_or_else(String::new, |row| title(row, has_patterns)),
        x_name: "record size",
        x_label: |bytes| show_size(bytes as u64),
        y_name: "throughput, MiB/s",
        series,
    }
}

/// All that the rows of a bench have in common.
fn title(row: &Row, has_patterns: bool) -> String {
    let pattern = if has_patterns { String::new() } else { format!("pattern {}, ", row.pattern) };
    format!(
        "{pattern}{} in blocks of {}, {}, {}, mean of {}",
        show_size(row.file_bytes),
        show_size(row.block_bytes),
        plural(row.clients, "client"),
        plural(row.servers, "server"),
        plural(row.trials, "transfer"),
    )
}

#[cfg(test)]
mod tests {
    //! Proves: each pattern and strategy has a line, over ascending record sizes, and the title
    //! says what all have in common.
    use super::*;

    fn row(pattern: &str, strategy: &str, record_bytes: u64) -> Row {
        Row {
            pattern: pattern.to_owned(),
            strategy: strategy.to_owned(),
            record_bytes,
            file_bytes: 64 << 20,
            block_bytes: 1 << 20,
            clients: 4,
            servers: 1,
            trials: 3,
            mib_s: 5.0,
            ..Row::default()
        }
    }

    #[test]
    fn each_pattern_and_strategy_has_a_line() {
        let rows = [row("rc", "caching", 64), row("rc", "two-phase", 8), row("rc", "caching", 8)];
        let drawn = picture(&rows);
        let names: Vec<&str> = drawn.series.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["caching", "two-phase"]);
        assert_eq!(drawn.series[0].points, [(8.0, 5.0), (64.0, 5.0)]);
        let shared = "64 MiB in blocks of 1 MiB, 4 clients, 1 server, mean of 3 transfers";
        assert_eq!(drawn.title, format!("pattern rc, {shared}"));
        let two = picture(&[row("rc", "caching", 8), row("wc", "caching", 8)]);
        assert_eq!((two.series[1].name.as_str(), two.title.as_str()), ("caching, wc", shared));
        assert!(picture(&[]).series.is_empty());
    }
}
