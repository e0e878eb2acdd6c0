#include "layout.h"

#include "layout_fields.h"

#include <errno.h>
#include <stdlib.h>

/* The endless repetition of a layout, simplified as tree_repeat does. */
static node_t repeat_endlessly(const item_t *data, int64_t extent)
{
    node_t tiles = {.shape = REPETITION, .count = UINT64_MAX, .stride = extent, .child = *data};
    const node_t *inner = data->node;
    int64_t length;
    if (inner && inner->shape == REPETITION
        && !__builtin_mul_overflow((int64_t)inner->count, inner->stride, &length)
        && length == extent) {
        tiles.stride = inner->stride;
        tiles.child = inner->child;
    }
    tiles.child.offset = 0;
    return tiles;
}

static layout_facts_t describe(const decoded_t *decoded)
{
    const item_t *data = &decoded->data;
    layout_facts_t facts = {
        .bytes = data->bytes,
        .lower_bound = decoded->lower_bound,
        .extent = decoded->extent,
        .is_ordered = 1,
        .is_ascending = 1,
        .is_repeatable = 1,
        .is_dense = 1,
    };
    if (!data->bytes)
        return facts;
    facts.true_start = item_start(data);
    facts.true_end = item_end(data);
    facts.is_ordered = item_is_ordered(data);
    facts.is_ascending = item_is_ascending(data);
    facts.is_repeatable =
        facts.is_ascending && facts.extent >= facts.true_end - facts.true_start;
    facts.is_dense = !data->node && !data->offset && facts.extent == (int64_t)data->bytes;
    return facts;
}

int layout_decode(MPI_Datatype type, enum representation representation, layout_t **layout)
{
    *layout = NULL;
    layout_t *made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    decoded_t decoded = decode_datatype(&made->tree, representation, type);
    if (made->tree.error) {
        int error = made->tree.error;
        tree_free(&made->tree);
        free(made);
        return error;
    }
    atomic_init(&made->references, 1);
    made->data = decoded.data;
    made->facts = describe(&decoded);
    made->tiles = repeat_endlessly(&made->data, decoded.extent);
    *layout = made;
    return 0;
}

layout_t *layout_keep(layout_t *layout)
{
    if (layout)
        atomic_fetch_add_explicit(&layout->references, 1, memory_order_relaxed);
    return layout;
}

void layout_release(layout_t *layout)
{
    if (!layout
        || atomic_fetch_sub_explicit(&layout->references, 1, memory_order_acq_rel) != 1)
        return;
    tree_free(&layout->tree);
    free(layout);
}

layout_facts_t layout_facts(const layout_t *layout)
{
    return layout->facts;
}

int layout_reach(const layout_t *layout, uint64_t first, uint64_t bytes)
{
    const layout_facts_t *facts = &layout->facts;
    if (!bytes)
        return 0;
    if (!facts->bytes)
        return -EINVAL;
    if (first > (uint64_t)OFFSET_MAX || bytes > (uint64_t)OFFSET_MAX - first)
        return -EOVERFLOW;
    __int128 shift = (__int128)((first + bytes - 1) / facts->bytes) * facts->extent;
    __int128 start = facts->true_start + shift, end = facts->true_end + shift;
    return start < -OFFSET_MAX || end > OFFSET_MAX ? -EOVERFLOW : 0;
}
