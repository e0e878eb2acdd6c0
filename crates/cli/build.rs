//! Tells the command the target, the profile and the compiler that it is built with.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of_cargo = |name: &str| std::env::var(name).unwrap_or_else(|_| "unknown".to_owned());
    // PROFILE is debug or release, also for profiles that inherit from them. OUT_DIR is
    // PROFILE/build/PACKAGE/out below the folder of the build.
    let folder = of_cargo("OUT_DIR");
    let profile = Path::new(&folder).ancestors().nth(3).and_then(Path::file_name);
    let profile = match profile.and_then(|name| name.to_str()) {
        Some("debug") | None => "dev".to_owned(),
        Some(name) => name.to_owned(),
    };
    let asked = Command::new(of_cargo("RUSTC")).arg("--version").output();
    let told = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let words = told.unwrap_or_default();
    let compiler: Vec<&str> = words.split_whitespace().take(2).collect();
    println!("cargo:rustc-env=UNISONO_BUILT_TARGET={}", of_cargo("TARGET"));
    println!("cargo:rustc-env=UNISONO_BUILT_PROFILE={profile}");
    println!("cargo:rustc-env=UNISONO_BUILT_COMPILER={}", compiler.join(" "));
}
