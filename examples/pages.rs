//! Zero-copy pages: blocks of a file, seen in the memory of its servers. A page stays as it was
//! when it was asked for, also when somebody writes the file.
//!
//! ```sh
//! unisono start --servers 2
//! cargo run --release -p client --example pages
//! ```

use client::{Buffering, Connection, Instance};

const PAGES: u64 = 4;
const PAGE_BYTES: usize = 64 << 10;

/// Contents of a page in a version: each byte depends on its place.
fn contents(version: u64, page: u64) -> Vec<u8> {
    (0..PAGE_BYTES as u64).map(|at| (at * 31 + page * 7 + version * 101) as u8).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection = Connection::open(&Instance::at(client::default_instance_directory()))?;
    let file = connection.create("book", 0, PAGE_BYTES as u64, Buffering::default())?;
    for page in 0..PAGES {
        file.write_page(page, &contents(1, page))?;
    }
    println!("wrote {} pages of {} bytes", file.pages(), file.page_bytes());

    let old = file.page_range(0..PAGES)?;
    for (number, page) in (0..).zip(&old) {
        assert!(page[..] == contents(1, number), "page {number} has other bytes");
    }
    println!("all pages have version 1");

    file.write_page(2, &contents(2, 2))?;
    println!("wrote version 2 of page 2");

    for (number, page) in (0..).zip(&old) {
        assert!(page[..] == contents(1, number), "page {number} has changed");
    }
    println!("the pages asked for before have version 1");

    let new = file.page_range(0..PAGES)?;
    for (number, page) in (0..).zip(&new) {
        let version = if number == 2 { 2 } else { 1 };
        assert!(page[..] == contents(version, number), "page {number} has other bytes");
    }
    println!("of those asked for now, page 2 has version 2 and the others version 1");
    Ok(file.close()?)
}
