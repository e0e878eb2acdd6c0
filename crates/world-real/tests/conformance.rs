//! Proves: a real node keeps the contracts of `world`, over Unix sockets with and without one-sided
//! copies, and over TCP; its disks with and without the page cache, and with and without checksums.

mod support;

use support::Kind;
use support::nodes::Nodes;
use world::conformance::run_all;
use world_real::{DiskConfig, DiskOptions};

/// Disks as they are by default.
fn plain(_: &mut DiskConfig) {}

#[test]
fn over_unix_with_one_sided_copies() {
    run_all(&mut Nodes(Kind::OneSided, plain));
}

#[test]
fn over_unix_with_frames_only() {
    run_all(&mut Nodes(Kind::Framed, plain));
}

#[test]
fn over_tcp() {
    run_all(&mut Nodes(Kind::Tcp, plain));
}

#[test]
fn over_authenticated_tcp() {
    run_all(&mut Nodes(Kind::TcpIntegrity, plain));
}

#[test]
fn over_encrypted_tcp() {
    run_all(&mut Nodes(Kind::TcpPrivate, plain));
}

#[test]
fn past_the_page_cache() {
    run_all(&mut Nodes(Kind::OneSided, |disk| disk.options.direct = true));
}

#[test]
fn past_the_page_cache_without_checksums() {
    run_all(&mut Nodes(Kind::OneSided, |disk| {
        disk.options = DiskOptions { direct: true, checksums: false, preallocate: true };
    }));
}

#[test]
fn without_checksums() {
    run_all(&mut Nodes(Kind::OneSided, |disk| {
        disk.options = DiskOptions { direct: false, checksums: false, preallocate: false };
    }));
}
