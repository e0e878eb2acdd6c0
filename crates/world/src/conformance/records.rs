//! Cases for the durable records.

use super::Fixture;
use super::support::{list_cases, pattern};
use crate::{RecordChange, RecordTable, Records};
use futures_util::future::join_all;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

list_cases![
    a_fresh_node_has_no_records,
    records_come_in_the_order_of_their_keys,
    a_put_replaces,
    a_deleted_record_is_gone,
    values_of_every_size_come_back,
    one_change_is_many_records,
    changes_under_way_at_once_take_effect_in_their_order,
    a_change_given_up_leaves_the_records_whole,
    nodes_do_not_share_records,
    tables_do_not_share_records,
];

/// Returns every record. Panics when they cannot be read.
async fn all<R: Records>(world: &R) -> Vec<(u64, Vec<u8>)> {
    world.records(RecordTable::Catalogue).await.expect("records must be readable")
}

async fn put<R: Records>(world: &R, key: u64, value: &[u8]) {
    let stored = world
        .record_change(RecordTable::Catalogue, vec![RecordChange::put(key, value.to_vec())])
        .await;
    stored.expect("a record must be storable");
}

async fn delete<R: Records>(world: &R, key: u64) {
    let deleted =
        world.record_change(RecordTable::Catalogue, vec![RecordChange::remove(key)]).await;
    deleted.expect("a delete must succeed");
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

fn one_change_is_many_records<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        put(&worlds[0], 1, b"old").await;
        put(&worlds[0], 2, b"kept").await;
        let changes = vec![
            RecordChange::remove(1),
            RecordChange::put(3, b"first".to_vec()),
            RecordChange::put(3, b"second".to_vec()),
            RecordChange::put(4, b"short-lived".to_vec()),
            RecordChange::remove(4),
        ];
        worlds[0]
            .record_change(RecordTable::Catalogue, changes)
            .await
            .expect("they must be storable");
        worlds[0]
            .record_change(RecordTable::Catalogue, Vec::new())
            .await
            .expect("nothing to do is no error");
        let expected = [(2, b"kept".to_vec()), (3, b"second".to_vec())];
        assert_eq!(all(&worlds[0]).await, expected, "changes must be made in their order");
    });
}

fn changes_under_way_at_once_take_effect_in_their_order<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        // More than may wait at a time.
        let calls = (0..600_u64).map(|call| {
            let value = call.to_be_bytes().to_vec();
            let changes =
                vec![RecordChange::put(call % 7, value.clone()), RecordChange::put(100, value)];
            worlds[0].record_change(RecordTable::Catalogue, changes)
        });
        for changed in join_all(calls).await {
            changed.expect("every change must be made");
        }
        let last = |key: u64| (0..600).rev().find(|call| call % 7 == key).expect("there is one");
        let expected: Vec<_> = (0..7)
            .map(|key| (key, last(key).to_be_bytes().to_vec()))
            .chain([(100, 599_u64.to_be_bytes().to_vec())])
            .collect();
        assert!(all(&worlds[0]).await == expected, "the last change of each record must stay");
    });
}

fn a_change_given_up_leaves_the_records_whole<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        put(&worlds[0], 1, b"before").await;
        let change =
            |value: &[u8]| [1, 2].map(|key| RecordChange::put(key, value.to_vec())).to_vec();
        {
            let mut given_up =
                pin!(worlds[0].record_change(RecordTable::Catalogue, change(b"given up")));
            // Begun, and dropped before its end is known.
            poll_fn(|context| Poll::Ready(given_up.as_mut().poll(context).is_ready())).await;
        }
        let found = all(&worlds[0]).await;
        let without = vec![(1, b"before".to_vec())];
        let with = vec![(1, b"given up".to_vec()), (2, b"given up".to_vec())];
        assert!(found == without || found == with, "a change is made as a whole or not: {found:?}");
        worlds[0]
            .record_change(RecordTable::Catalogue, change(b"after"))
            .await
            .expect("the next change must be made");
        let after = vec![(1, b"after".to_vec()), (2, b"after".to_vec())];
        assert_eq!(all(&worlds[0]).await, after);
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

fn tables_do_not_share_records<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        put(&worlds[0], 1, b"of the catalogue").await;
        let change = |change| worlds[0].record_change(RecordTable::Sizes, vec![change]);
        change(RecordChange::put(1, b"a size".to_vec())).await.expect("it must be storable");
        assert_eq!(all(&worlds[0]).await, [(1, b"of the catalogue".to_vec())]);
        delete(&worlds[0], 1).await;
        let sizes = worlds[0].records(RecordTable::Sizes).await.expect("they must be readable");
        assert_eq!(sizes, [(1, b"a size".to_vec())], "a record belongs to its table");
    });
}
