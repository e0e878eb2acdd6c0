//! Cases for the durable records.

use super::Fixture;
use super::support::{list_cases, pattern};
use crate::Records;

list_cases![
    a_fresh_node_has_no_records,
    records_come_in_the_order_of_their_keys,
    a_put_replaces,
    a_deleted_record_is_gone,
    values_of_every_size_come_back,
    nodes_do_not_share_records,
];

/// Every record; panics when they cannot be read.
async fn all<R: Records>(world: &R) -> Vec<(u64, Vec<u8>)> {
    world.records().await.expect("records must be readable")
}

async fn put<R: Records>(world: &R, key: u64, value: &[u8]) {
    world.record_put(key, value.to_vec()).await.expect("a record must be storable");
}

async fn delete<R: Records>(world: &R, key: u64) {
    world.record_delete(key).await.expect("a delete must succeed");
}

fn a_fresh_node_has_no_records<F: Fixture>(fixture: &mut F) {
    for _ in 0..2 {
        fixture.run(1, |worlds| async move {
            assert_eq!(all(&worlds[0]).await, [], "nothing may survive from another world");
            put(&worlds[0], 1, b"left behind").await;
        });
    }
}

fn records_come_in_the_order_of_their_keys<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        // In hexadecimal, decimal and little-endian form these keys sort in other orders.
        let keys = [10, 9, 0, u64::MAX, 1 << 32, 255, 256, 100];
        for key in keys {
            put(&worlds[0], key, &key.to_be_bytes()).await;
        }
        let mut sorted = keys;
        sorted.sort_unstable();
        let expected = sorted.map(|key| (key, key.to_be_bytes().to_vec()));
        assert_eq!(all(&worlds[0]).await, expected, "records must be in ascending order of key");
    });
}

fn a_put_replaces<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        put(&worlds[0], 7, b"a long first value").await;
        put(&worlds[0], 8, b"another").await;
        put(&worlds[0], 7, b"short").await;
        let expected = [(7, b"short".to_vec()), (8, b"another".to_vec())];
        assert_eq!(all(&worlds[0]).await, expected, "a put must replace the whole value");
    });
}

fn a_deleted_record_is_gone<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        delete(&worlds[0], 1).await;
        put(&worlds[0], 1, b"one").await;
        put(&worlds[0], 2, b"two").await;
        delete(&worlds[0], 1).await;
        delete(&worlds[0], 1).await;
        assert_eq!(all(&worlds[0]).await, [(2, b"two".to_vec())]);
        put(&worlds[0], 1, b"again").await;
        assert_eq!(all(&worlds[0]).await, [(1, b"again".to_vec()), (2, b"two".to_vec())]);
    });
}

fn values_of_every_size_come_back<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let values = [0, 1, 4095, 4096, 100_000].map(|length| pattern(length as u64, length));
        for (key, value) in (0..).zip(&values) {
            put(&worlds[0], key, value).await;
        }
        let expected: Vec<_> = (0..).zip(values).collect();
        assert!(all(&worlds[0]).await == expected, "values must come back as they were put");
    });
}

fn nodes_do_not_share_records<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        put(&worlds[0], 1, b"mine").await;
        assert_eq!(all(&worlds[1]).await, [], "a record belongs to its node");
        delete(&worlds[1], 1).await;
        assert_eq!(all(&worlds[0]).await, [(1, b"mine".to_vec())]);
    });
}
