//! Prints the page docs/scenarios.md; `cargo x scenarios-page` puts it in its place.

fn main() {
    print!("{}", simulate::scenarios_page());
}
