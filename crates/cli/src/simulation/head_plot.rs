//! Picture of `sim --plot`: the position of a disk's head over time, for each strategy.

use crate::output::format::show_size;
use plot::{Kind, Panel, Stroke, Trajectories};
use simulate::{Activity, HeadMotion, HeadPath, Scenario, Trial};

/// Activities of the head, with their style in the picture. Later ones are drawn on top.
const KINDS: [(&str, &str, f64, Option<&str>); 6] = [
    ("idle", "#777777", 1.2, Some("1 3")),
    ("seek or head switch", "#000000", 0.8, None),
    ("rotational wait", "#e69f00", 2.5, None),
    ("unused read-ahead", "#56b4e9", 2.5, Some("4 2")),
    ("read", "#0072b2", 3.0, None),
    ("write", "#d55e00", 3.0, None),
];
const IDLE: usize = 0;
/// Sector number from which the axis counts in thousands.
const LONG_NUMBER: u64 = 100_000;

/// Index in [`KINDS`] of an activity, if the head moves or transfers.
fn kind_of(activity: Activity) -> Option<usize> {
    match activity {
        Activity::Seek | Activity::HeadSwitch => Some(1),
        Activity::Rotation => Some(2),
        Activity::ReadAhead => Some(3),
        Activity::Read => Some(4),
        Activity::Write => Some(5),
        _ => None,
    }
}

/// Trajectories of the head of disk number `disk`, one for each scenario. The scenarios differ only
/// in their strategies.
pub(crate) fn picture(
    scenarios: &[Scenario],
    disk: u32,
    trials: &[Trial],
    heads: &[HeadPath],
) -> Trajectories {
    let title = scenarios.first().map_or_else(String::new, |it| {
        format!(
            "Head of disk {disk}: {}, records of {}, file of {}, layout {} ({}, seed {})",
            it.pattern,
            show_size(it.record_bytes),
            show_size(it.file_bytes),
            it.layout,
            it.machine,
            it.seed,
        )
    });
    let kinds = KINDS.map(|(name, colour, width, dashes)| Kind {
        name: name.to_owned(),
        colour,
        width,
        dashes,
    });
    let motions = heads.iter().flat_map(|head| &head.motions);
    let last = motions.map(|motion| motion.sectors.end).max().unwrap_or(0);
    let sectors_unit = if last < LONG_NUMBER { 1.0 } else { 1000.0 };
    let panels = scenarios.iter().zip(trials).zip(heads);
    Trajectories {
        title,
        x_name: "time since the transfer began (ms)".to_owned(),
        y_name: if sectors_unit > 1.0 { "sector (thousands)" } else { "sector" }.to_owned(),
        kinds: kinds.into(),
        panels: panels
            .map(|((scenario, trial), head)| panel(scenario, trial, head, sectors_unit))
            .collect(),
    }
}

fn panel(scenario: &Scenario, trial: &Trial, head: &HeadPath, sectors_unit: f64) -> Panel {
    let writes = head.motions.iter().filter(|motion| motion.activity == Activity::Write);
    // Writes that the disk buffered are still shown after the end of the transfer, but not its read
    // ahead.
    let shown_until = writes.map(|motion| motion.time_ns.end).fold(head.ended_ns, u64::max);
    let shown = head.began_ns..shown_until;
    let ms = |ns: u64| ns.clamp(shown.start, shown.end).saturating_sub(shown.start) as f64 / 1e6;
    let mut strokes: Vec<Stroke> = Vec::new();
    let mut at = (0.0, head.motions.first().map_or(0, |motion| motion.sectors.start) as f64);
    for motion in &head.motions {
        let Some(kind) = kind_of(motion.activity) else { continue };
        if motion.time_ns.start >= shown.end || motion.time_ns.end <= shown.start {
            continue;
        }
        let (from, to) = (ms(motion.time_ns.start), ms(motion.time_ns.end));
        if from > at.0 {
            strokes.push(Stroke { kind: IDLE, from: at, to: (from, at.1) });
        }
        let (begins, ends) = places(motion, shown.end, at.1);
        strokes.push(Stroke { kind, from: (from, begins), to: (to, ends) });
        at = (to, ends);
    }
    let end = ms(head.ended_ns);
    if end > at.0 {
        strokes.push(Stroke { kind: IDLE, from: at, to: (end, at.1) });
    }
    for stroke in &mut strokes {
        stroke.from.1 /= sectors_unit;
        stroke.to.1 /= sectors_unit;
    }
    let left_out = match head.motions_left_out {
        0 => String::new(),
        count => format!("; {count} later motions are not shown"),
    };
    Panel {
        title: format!("{}: {:.1} MiB/s", scenario.strategy, trial.mib_s),
        note: format!("of {end:.0} ms: {}{left_out}", shares(head)),
        strokes,
        end,
    }
}

/// First and last position of a motion, cut off at `shown_until`.
fn places(motion: &HeadMotion, shown_until: u64, before: f64) -> (f64, f64) {
    let (first, last) = (motion.sectors.start as f64, motion.sectors.end as f64);
    match motion.activity {
        Activity::Seek | Activity::HeadSwitch => (before, first),
        _ => {
            let time = &motion.time_ns;
            let length = (time.end - time.start).max(1) as f64;
            let part = (time.end.min(shown_until) - time.start) as f64 / length;
            (first, first + (last - first) * part)
        }
    }
}

/// Shares of the activities in the time of the transfer, in percent.
fn shares(head: &HeadPath) -> String {
    let length = head.ended_ns.saturating_sub(head.began_ns).max(1);
    let mut times = [0; KINDS.len()];
    for motion in &head.motions {
        if let Some(kind) = kind_of(motion.activity) {
            let (from, to) = (motion.time_ns.start, motion.time_ns.end);
            times[kind] += to.min(head.ended_ns).saturating_sub(from.max(head.began_ns));
        }
    }
    times[IDLE] = length.saturating_sub(times.iter().sum());
    let share = |(time, (name, ..)): (u64, (&str, &str, f64, Option<&str>))| {
        (time > 0).then(|| format!("{name} {:.0} %", time as f64 / length as f64 * 100.0))
    };
    let shares: Vec<String> = times.into_iter().zip(KINDS).rev().filter_map(share).collect();
    shares.join(", ")
}
