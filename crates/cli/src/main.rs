//! The `unisono` command.

fn main() -> std::process::ExitCode {
    cli::main_with(launch::ReplacementPolicies::default())
}
