//! The Intel (now Solidigm) D7-P5510 of 3.84 TB: an NVMe disk of servers, by its data sheet.

use super::spec::{DiskDeclaration, DiskKind};
use super::ssd::SsdSpec;
use crate::models::{ModelInfo, ParameterValues};
use units::Duration;

/// Declaration of the disk.
pub const DISK: DiskDeclaration = DiskDeclaration {
    info: ModelInfo {
        name: "nvme-p5510",
        help: "the Intel (Solidigm) D7-P5510, 3.84 TB, an NVMe disk of servers, by its data sheet",
    },
    kind_in_files: None,
    parameters: &[],
    make: |_: &ParameterValues| Ok(DiskKind::of(SsdSpec::P5510)),
};

impl SsdSpec {
    /// The Intel D7-P5510 of 3.84 TB: flash with three bits a cell, four lanes of PCIe 4.
    ///
    /// From the data sheet: capacity; 6500 MB/s of sequential reads, the rate of the link here;
    /// 3400 MB/s of sequential writes and 82 us of a random read of 4 KiB, from which the times of
    /// a die follow; 13 us of a write of 4 KiB, from which the overhead follows. Its 700,000 random
    /// reads a second are 618,000 here.
    ///
    /// Not published, our choice: 64 dies of 512 Gbit, as many as the capacity needs, of four
    /// planes that work by themselves, each a die of the model (64 of these would have only 331,000
    /// random reads a second); 8 channels of 1200 MB/s, the fastest of ONFI 4.1; pages of 16 KiB;
    /// 8 MiB of write buffer. Commands at once: Linux makes queues of 1024 entries, of which one
    /// stays free.
    pub const P5510: Self = Self {
        capacity_bytes: 3_840_755_974_144,
        channels: 8,
        channel_dies: 32,
        page_bytes: 16 << 10,
        read: Duration::from_ns(65_500),
        program: Duration::from_ns(1_233_600),
        channel_bytes_per_second: 1_200_000_000,
        link_bytes_per_second: 6_500_000_000,
        overhead: Duration::from_ns(12_400),
        queue_depth: 1023,
        write_buffer_bytes: 8 << 20,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::disk::DiskSpec;
    use crate::models::disk_model::{Command, DiskModel, Step};
    use units::Instant;

    const SECTOR_BYTES: u64 = 512;

    /// Instant at which a command completes that begins at `now`.
    fn end(disk: &mut dyn DiskModel, now: Instant, reads: bool, first: u64, bytes: u64) -> Instant {
        let command = Command { reads, sectors: first..first + bytes / SECTOR_BYTES };
        match disk.begin(now, &command).expect("the sectors exist") {
            Step::Complete(at) => at,
            Step::Burst { .. } | Step::Processor { .. } => panic!("there is no bus"),
        }
    }

    /// Bytes a second of `count` commands of `bytes` each, in order, `depth` of them under way.
    fn rate(reads: bool, bytes: u64, depth: usize, count: u64) -> u64 {
        let mut disk = SsdSpec::P5510.build(0);
        let mut under_way = std::collections::VecDeque::new();
        let (mut now, mut last) = (Instant::START, Instant::START);
        for number in 0..count {
            if under_way.len() == depth {
                now = under_way.pop_front().expect("depth is not 0");
            }
            last = end(&mut *disk, now, reads, number * bytes / SECTOR_BYTES, bytes);
            under_way.push_back(last);
        }
        (u128::from(count * bytes) * 1_000_000_000 / u128::from(last.as_ns())) as u64
    }

    /// Proves the times of single commands of 4 KiB: exactly their parts, and within 0.1 us what
    /// the data sheet says.
    #[test]
    fn latencies_are_those_of_the_data_sheet() {
        let single = |reads| end(&mut *SsdSpec::P5510.build(0), Instant::START, reads, 0, 4096);
        let (channel_ns, link_ns) = (3_414, 631);
        assert_eq!(single(true).as_ns(), 12_400 + 65_500 + channel_ns + link_ns);
        assert_eq!(single(false).as_ns(), 12_400 + link_ns);
        assert!(single(true).as_ns().abs_diff(82_000) < 100, "82 us");
        assert!(single(false).as_ns().abs_diff(13_000) < 100, "13 us");
    }

    /// Proves that reads one at a time are bound by their latency, reads at the same time by the
    /// link, and that the rate grows with their number until then.
    #[test]
    fn parallel_reads_reach_the_rate_of_the_link() {
        const BYTES: u64 = 16 << 10;
        let alone = rate(true, BYTES, 1, 1_000);
        // 12.4 us, 65.5 us, 16 KiB at 1.2 GB/s and 16 KiB at 6.5 GB/s.
        let latency_ns = 12_400 + 65_500 + 13_654 + 2_521;
        assert!(alone.abs_diff(BYTES * 1_000_000_000 / latency_ns) < 100_000, "{alone}");
        for depth in [2, 4, 8, 16, 32] {
            let rate = rate(true, BYTES, depth, 10_000);
            let bound = alone * depth as u64;
            assert!(rate <= bound && rate > bound * 8 / 10, "{depth}: {rate} of {bound}");
        }
        let full = rate(true, BYTES, 64, 100_000);
        assert!((6_400_000_000..=6_500_000_000).contains(&full), "{full}");
        let blocks = rate(true, 1 << 20, 2, 2_000);
        assert!((6_400_000_000..=6_500_000_000).contains(&blocks), "two blocks: {blocks}");
    }

    /// Proves the rate of long writes, 3400 MB/s, which the programming of dies bounds.
    #[test]
    fn writes_are_bound_by_programming() {
        let writes = rate(false, 1 << 20, 8, 4_000);
        assert!(writes.abs_diff(3_400_000_000) < 20_000_000, "{writes}");
    }

    /// Proves the number of random reads of 4 KiB a second with 256 at once: within 15 % of the
    /// 700,000 of the data sheet.
    #[test]
    fn random_reads_are_about_those_of_the_data_sheet() {
        let mut disk = SsdSpec::P5510.build(0);
        let mut ends = std::collections::BinaryHeap::new();
        let (mut now, mut place) = (Instant::START, 1_u64);
        const COUNT: u64 = 200_000;
        for _ in 0..COUNT {
            if ends.len() == 256 {
                let std::cmp::Reverse(first) = ends.pop().expect("256 are there");
                now = now.max(first);
            }
            place = place * 48_271 % 2_147_483_647;
            ends.push(std::cmp::Reverse(end(&mut *disk, now, true, place / 8 * 8, 4096)));
        }
        let reads = COUNT * 1_000_000_000 / now.as_ns();
        assert!(reads.abs_diff(700_000) < 105_000, "{reads}");
    }
}
