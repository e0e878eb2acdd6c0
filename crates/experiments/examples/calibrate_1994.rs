//! Fits the unpublished costs of the 1994 machine and writes a report; run as `cargo x
//! calibrate-1994 PATH`.

use experiments::calibrate_1994;
use std::num::NonZero;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        return refuse(
            "no argument was processed",
            "one argument is needed",
            "give the report's path",
        );
    };
    // Create the file first, so that a bad path fails before the long run.
    let file = match std::fs::File::create(&path) {
        Ok(file) => file,
        Err(cause) => return cannot_write(&path, &cause),
    };
    let jobs = std::thread::available_parallelism().map_or(1, NonZero::get);
    let calibration = calibrate_1994(jobs, &|progress| {
        eprintln!("{} of {} simulations so far", progress.done, progress.all);
    });
    let calibration = match calibration {
        Ok(calibration) => calibration,
        Err(error) => return refuse(&error.error, &error.cause, &error.help),
    };
    if let Err(cause) = std::io::Write::write_all(&mut &file, calibration.report().as_bytes()) {
        return cannot_write(&path, &cause);
    }
    eprintln!("wrote {}", std::path::Path::new(&path).display());
    println!("For crates/simulate/src/presets.rs:");
    print!("{}", calibration.constants());
    ExitCode::SUCCESS
}

fn cannot_write(path: &std::ffi::OsStr, cause: &std::io::Error) -> ExitCode {
    let path = std::path::Path::new(path).display();
    refuse(&format!("cannot write {path}"), &cause.to_string(), "choose another path")
}

fn refuse(error: &str, cause: &str, help: &str) -> ExitCode {
    eprintln!("error: {error}\ncause: {cause}\nhelp:  {help}");
    ExitCode::FAILURE
}
