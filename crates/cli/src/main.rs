//! The `unisono` command.

fn main() -> std::process::ExitCode {
    cli::main_with(interface::Extensions::default())
}
