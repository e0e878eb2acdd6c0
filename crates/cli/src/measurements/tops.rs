//! `bench tops`: the experiments of Tower of Pizzas on this machine, as tables, CSV and plots.

use crate::arguments::Tops;
use crate::output::format::show_size;
use crate::output::present;
use cluster::Program;
use interface::UserError;
use measure::{Figure, TopsLimits, TopsPlan, TopsPoint, TopsReport};
use plot::{LineSeries, Lines, Style};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) fn run(arguments: &Tops) -> Result<(), UserError> {
    arguments.root.check()?;
    let plan = TopsPlan {
        servers: arguments.servers.clone(),
        clients: arguments.clients.clone(),
        page_bytes: arguments.page,
        disk_page_bytes: arguments.disk_page,
        pages: u64::from(arguments.pages),
        seconds: f64::from(arguments.time) / 1000.0,
        disk_bytes: arguments.disk_size,
        directory: arguments.directory.clone(),
    };
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let program = Program::current()?;
    client::clean_up_on_signals()?;
    let report = measure::tops(&program, &plan, |point| present::note(&progress_line(point)))?;
    if let Some(folder) = &arguments.out {
        write(folder, &report)?;
    }
    match arguments.json {
        true => present::json(&report),
        false => tables(&report).iter().try_for_each(|line| present::line(line)),
    }
}

fn progress_line(point: &TopsPoint) -> String {
    let TopsPoint { figure, line, servers, clients, mib_s, .. } = point;
    let line = if line.is_empty() { String::new() } else { format!(", {line}") };
    format!("{figure:?}{line}, {servers} servers, {clients} clients: {mib_s:.1} MiB/s")
}

/// Points of each figure, in the order of the figures.
fn figures(report: &TopsReport) -> BTreeMap<Figure, Vec<&TopsPoint>> {
    let mut figures: BTreeMap<Figure, Vec<&TopsPoint>> = BTreeMap::new();
    for point in &report.points {
        figures.entry(point.figure).or_default().push(point);
    }
    figures
}

/// Lines of a figure, by name: one for each number of servers and each kind.
fn lines_of<'a>(points: &[&'a TopsPoint]) -> Vec<(String, Vec<&'a TopsPoint>)> {
    let mut lines: Vec<(String, Vec<&TopsPoint>)> = Vec::new();
    for &point in points {
        let servers = match point.servers {
            1 => "1 server".to_owned(),
            servers => format!("{servers} servers"),
        };
        let name = match (point.servers, point.line.as_str()) {
            (0, line) => line.to_owned(),
            (_, "") => servers,
            (_, line) => format!("{servers}, {line}"),
        };
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    lines
}

fn tables(report: &TopsReport) -> Vec<String> {
    let TopsLimits { memory_copy_mib_s, unix_stream_mib_s, tcp_stream_mib_s, disk_read_mib_s } =
        report.limits;
    let mut out = vec![format!(
        "limits, MiB/s: memory copy {memory_copy_mib_s:.0}, one Unix stream \
         {unix_stream_mib_s:.0}, one TCP stream {tcp_stream_mib_s:.0}, disk {disk_read_mib_s:.0}"
    )];
    for (figure, points) in figures(report) {
        let page = points.first().map_or(0, |point| point.page_bytes);
        out.push(String::new());
        out.push(format!("{}; pages of {}, MiB/s", figure.title(), show_size(page)));
        if figure != Figure::Table1 {
            let clients = columns(&points).into_iter().map(|clients| match clients {
                1 => format!("{:>12}", "1 client"),
                clients => format!("{:>12}", format!("{clients} clients")),
            });
            out.push(format!("{:<30}{}", "", clients.collect::<String>()));
        }
        for (name, points) in lines_of(&points) {
            let cells = points.iter().map(|point| format!("{:>12.1}", point.mib_s));
            out.push(format!("{name:<30}{}", cells.collect::<String>()));
        }
    }
    out.push(String::new());
    out.push(
        "throughput and limit measured in turns: median ratio (goal), range of ratios".to_owned(),
    );
    for goal in &report.goals {
        let (wanted, met) = match goal.wanted {
            Some(wanted) if goal.ratio < wanted => (format!("(>= {wanted})"), "   not reached"),
            Some(wanted) => (format!("(>= {wanted})"), ""),
            None => (String::new(), ""),
        };
        let between = match goal.ratio_min < goal.ratio_max {
            true => format!("{:.2} to {:.2}", goal.ratio_min, goal.ratio_max),
            false => String::new(),
        };
        out.push(format!(
            "{:<66}{:>8.1} to {:>8.1}: {:.2} {wanted:<9}{between:>12}{met}",
            goal.name, goal.mib_s, goal.limit_mib_s, goal.ratio,
        ));
    }
    out
}

/// Distinct numbers of clients, in the order of the measurement.
fn columns(points: &[&TopsPoint]) -> Vec<u32> {
    let mut clients = Vec::new();
    for point in points {
        if !clients.contains(&point.clients) {
            clients.push(point.clients);
        }
    }
    clients
}

fn write(folder: &Path, report: &TopsReport) -> Result<(), UserError> {
    let path = folder.join("tops.csv");
    let written = csv::Writer::from_path(&path).and_then(|mut table| {
        report.points.iter().try_for_each(|point| table.serialize(point))?;
        Ok(table.flush()?)
    });
    written.map_err(|error| cannot_write(&path, &std::io::Error::other(error)))?;
    let mut paths = vec![path];
    for (figure, points) in figures(report) {
        if figure == Figure::Table1 {
            continue;
        }
        let path = folder.join(format!("{figure:?}.svg").to_lowercase());
        let picture = picture(figure, &points, &report.limits);
        std::fs::write(&path, picture).map_err(|error| cannot_write(&path, &error))?;
        paths.push(path);
    }
    paths.iter().for_each(|path| present::note(&format!("wrote {}", path.display())));
    Ok(())
}

fn picture(figure: Figure, points: &[&TopsPoint], limits: &TopsLimits) -> String {
    let numbered = lines_of(points).into_iter().enumerate();
    let mut series: Vec<LineSeries> = numbered
        .map(|(number, (name, points))| LineSeries {
            // Lines with and without prefetch share the colour of their number of servers.
            style: Style::plain(if figure == Figure::Figure10 { number / 2 } else { number }),
            is_broken: name.ends_with("no prefetch"),
            name,
            points: points.iter().map(|one| (f64::from(one.clients), one.mib_s)).collect(),
        })
        .collect();
    let (name, limit) = match figure {
        Figure::Figure5 => ("memory copy, one thread", limits.memory_copy_mib_s),
        Figure::Figure6 | Figure::Figure7 => ("one Unix stream", limits.unix_stream_mib_s),
        _ => ("the disk, sequential", limits.disk_read_mib_s),
    };
    let ends = [columns(points).first().copied(), columns(points).last().copied()];
    series.push(LineSeries {
        name: name.to_owned(),
        style: Style::plain(series.len()),
        is_broken: true,
        points: ends.into_iter().flatten().map(|end| (f64::from(end), limit)).collect(),
    });
    let (x_name, y_name) = ("clients", "throughput of all clients, MiB/s");
    Lines { title: figure.title().to_owned(), x_name, y_name, series }.draw()
}

fn cannot_write(path: &Path, error: &std::io::Error) -> UserError {
    UserError::usage(
        format!("cannot write {}", path.display()),
        error.to_string(),
        "with --out, name a folder that you may write to",
    )
}
