//! Every small distribution, against an oracle that deals the elements one by one.

mod oracle;

use oracle::{check, distribution_bytes};
use policy::{Access, Dimension, Distribution};

const RULES: [Dimension; 5] = [
    Dimension::None,
    Dimension::Block,
    Dimension::Cyclic(1),
    Dimension::Cyclic(2),
    Dimension::Cyclic(3),
];
const CLIENTS_MAX: u32 = 6;

/// Calls `visit` with every distribution of the given number of dimensions, extents up to
/// `extent_max`, over grids of up to six clients.
fn each_distribution(
    dimensions: usize,
    extent_max: u64,
    record_bytes: u64,
    visit: &mut impl FnMut(Distribution),
) {
    let (shape, rules, grid) = (Vec::new(), Vec::new(), Vec::new());
    let start = Distribution { shape, record_bytes, dimensions: rules, grid, clients: 1 };
    extend(start, dimensions, extent_max, visit);
}

fn extend(
    begun: Distribution,
    dimensions: usize,
    extent_max: u64,
    visit: &mut impl FnMut(Distribution),
) {
    if begun.shape.len() == dimensions {
        return visit(begun);
    }
    for extent in 1..=extent_max {
        for rule in RULES {
            let along_max = if rule == Dimension::None { 1 } else { CLIENTS_MAX / begun.clients };
            for along in 1..=along_max {
                let mut next = begun.clone();
                next.shape.push(extent);
                next.dimensions.push(rule);
                next.grid.push(along);
                next.clients *= along;
                extend(next, dimensions, extent_max, visit);
            }
        }
    }
}

/// Checks one distribution in every range; every byte must have exactly one owner, and a client's
/// bytes must be contiguous in memory.
fn check_distribution(distribution: Distribution) {
    let file_bytes = distribution.shape.iter().product::<u64>() * distribution.record_bytes;
    let owned = distribution_bytes(&distribution);
    let mut offsets: Vec<u64> = owned.iter().flatten().map(|byte| byte.0).collect();
    offsets.sort_unstable();
    assert!(offsets.into_iter().eq(0..file_bytes), "the oracle deals every byte once");
    for owned in &owned {
        assert!(owned.iter().map(|byte| byte.1).eq(0..owned.len() as u64), "{distribution:?}");
    }
    let access = Access::Distribution(distribution);
    access.validate_write(file_bytes).expect("a distribution never overlaps");
    check(&access, &owned, file_bytes);
}

#[test]
fn one_dimension() {
    // Proves: every byte of every small vector is delivered once, to its place, in every range.
    for record_bytes in 1..=3 {
        each_distribution(1, 13, record_bytes, &mut check_distribution);
    }
}

#[test]
fn two_dimensions() {
    // Proves the same for every matrix up to 5 x 5.
    for record_bytes in 1..=3 {
        each_distribution(2, 5, record_bytes, &mut check_distribution);
    }
}

#[test]
fn three_dimensions() {
    // Proves the same for every array up to 3 x 3 x 3.
    each_distribution(3, 3, 1, &mut check_distribution);
}

#[test]
fn clients_beyond_the_grid_own_nothing() {
    // Proves: spare clients count as clients, and have no memory, pieces, chunks or mention.
    each_distribution(2, 3, 2, &mut |mut distribution| {
        distribution.clients += 2;
        check_distribution(distribution);
    });
}
