//! Proves: the points of a what-if take its scenario file as a plan would, and read it once; what
//! makes no sense is refused with its place in the file, or with its option.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use interface::UserError;
use simulate::{Axis, OwnModels, Point, Setting, SimulationPlan, points};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

const SCENARIO: &str = "machine = \"tocs97\"\nclients-per-server = 4\nblock = \"64KiB\"\n";

fn axes(machines: &[&str]) -> [Axis; 2] {
    let axis = |key: &str, values: &[&str]| Axis {
        key: key.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    };
    [axis("machine", machines), axis("servers", &["2", "8"])]
}

/// The points of a scenario file with this text, which can be read once: it is a pipe.
fn points_of(text: &str, axes: &[Axis]) -> Result<Vec<Point>, UserError> {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    drop(writer);
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    points(Some(Path::new(&path)), &[], axes, &Default::default(), &OwnModels::default())
}

#[test]
fn all_points_come_from_one_reading_of_the_file() {
    let axes = axes(&["tr94", "cluster"]);
    let made = points_of(SCENARIO, &axes).unwrap();
    assert_eq!(made.len(), 4);
    for point in made {
        let settings = axes.iter().zip(&point.values);
        let settings = settings.map(|(axis, value)| Setting::option(&axis.key, value)).collect();
        let plan = SimulationPlan::of_text("scenario", SCENARIO, settings).unwrap();
        assert_eq!(point.scenario, plan.scenarios()[0]);
        // The file overrides what a machine gives, also when a point chooses the machine; and a
        // number that follows from others does so at each point.
        let servers: u32 = point.values[1].parse().unwrap();
        assert_eq!((point.scenario.block_bytes, point.scenario.clients), (64 << 10, 4 * servers));
        assert_eq!(format!("{:?}", point.scenario.machine.preset).to_lowercase(), point.values[0]);
    }
}

#[test]
fn a_point_that_makes_no_sense_is_refused_with_its_place_in_the_file() {
    let refused = points_of(&format!("{SCENARIO}clients = 7\n"), &axes(&["tr94"])).unwrap_err();
    assert!(refused.error.contains(", line 2: clients-per-server"), "{refused}");
    assert!(refused.cause.contains("7 clients and 2 servers"), "{refused}");
    let refused = points_of("no-such-key = 1\n", &axes(&["tr94"])).unwrap_err();
    assert!(refused.error.contains(", line 1: "), "{refused}");
}

#[test]
fn a_refused_value_is_named_by_the_option_that_gave_it() {
    for (key, value, expected) in
        [("send-ns", "-1", "--set send-ns cannot be"), ("servers", "0", "--servers cannot be")]
    {
        let axis = Axis { key: key.to_owned(), values: vec![value.to_owned()] };
        let refused = points_of(SCENARIO, &[axis]).unwrap_err();
        assert!(refused.error.contains(expected), "{refused}");
    }
}
