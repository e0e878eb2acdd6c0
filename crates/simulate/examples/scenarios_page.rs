//! Prints the page docs/scenarios.md; `cargo x scenarios-page` writes the file.

fn main() {
    print!("{}", simulate::scenarios_page());
}
