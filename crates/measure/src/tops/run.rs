//! Runs the experiments: starts servers and clients, and measures point after point.

use super::device::{Device, patterns};
use super::spec::{Figure, TOPS_SCHEMA, TopsPlan, TopsPoint, TopsReport, Work};
use super::testbed::{Kind, Testbed};
use super::{goals, limits};
use cluster::Program;
use interface::UserError;
use units::{KIB, MIB};

/// Measures everything; calls `progress` with each point as it is measured.
///
/// # Errors
/// Fails when servers cannot be started, a client dies, or a page is not the one that was
/// requested.
pub fn tops(
    program: &Program,
    plan: &TopsPlan,
    mut progress: impl FnMut(&TopsPoint),
) -> Result<TopsReport, UserError> {
    check(plan)?;
    let mut points = Vec::new();
    let mut add = |point: TopsPoint| {
        progress(&point);
        points.push(point);
    };
    let directory = plan.directory.clone().unwrap_or_else(std::env::temp_dir);
    let device = Device::new(&directory, plan.disk_bytes)?;
    let mut disk_read_mib_s = 0.0_f64;
    for (number, pattern) in patterns(plan.disk_page_bytes).iter().enumerate() {
        for (writes, word) in [(false, "read"), (true, "write")] {
            let mib_s = device.measure(pattern, writes, plan.seconds)?;
            if number == 0 && !writes {
                disk_read_mib_s = mib_s;
            }
            let line = format!("{}: {word}", pattern.name);
            let (figure, page_bytes) = (Figure::Table1, plan.disk_page_bytes);
            add(TopsPoint { figure, line, servers: 0, clients: 1, page_bytes, mib_s });
        }
    }
    drop(device);
    let (limits, streams) = limits::measure(disk_read_mib_s, plan.seconds)?;
    let most = plan.clients.iter().copied().max().unwrap_or(1);
    for &servers in &plan.servers {
        let on_memory = Testbed::start(program, plan, servers, most, &Kind::Buffered)?;
        for &clients in &plan.clients {
            add(on_memory.point(Figure::Figure5, "", Work::CopyPages, clients)?);
            add(on_memory.point(Figure::Figure6, "", Work::Read, clients)?);
            add(on_memory.point(Figure::Figure7, "", Work::Write, clients)?);
        }
        drop(on_memory);
        let on_disks = Testbed::start(program, plan, servers, most, &Kind::OnDisks)?;
        for &clients in &plan.clients {
            add(on_disks.point(Figure::Figure8, "", Work::ReadRanges, clients)?);
            add(on_disks.point(Figure::Figure9, "", Work::WriteRanges, clients)?);
            for (line, read_ahead) in [("no prefetch", false), ("prefetch", true)] {
                let work = Work::SharePass { read_ahead };
                add(on_disks.point(Figure::Figure10, line, work, clients)?);
            }
        }
    }
    let goals = goals::measure(program, plan, &streams)?;
    Ok(TopsReport { schema: TOPS_SCHEMA.to_owned(), limits, points, goals })
}

fn check(plan: &TopsPlan) -> Result<(), UserError> {
    let numbers = || plan.servers.iter().chain(&plan.clients);
    let is_wrong = numbers().any(|number| *number == 0) || numbers().next().is_none();
    let page = |bytes: u64| bytes < 4 * KIB || !bytes.is_power_of_two() || bytes > 16 * MIB;
    if is_wrong || page(plan.page_bytes) || page(plan.disk_page_bytes) || plan.pages == 0 {
        return Err(UserError::usage(
            "cannot run this measurement",
            "at least one server, client and page are required, and a page size from 4KiB to 16MiB \
             that is a power of two",
            "see: unisono bench tops --help",
        ));
    }
    Ok(())
}
