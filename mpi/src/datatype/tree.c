#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Greatest number of items up to which a sequence takes the items of sequences inside it as its own. */
#define DISSOLVED_MAX 64

/* Lowest number of copies at equal distances that become a repetition inside a longer sequence. */
#define RUN_MIN 3

struct allocation {
    struct allocation *next;
    max_align_t data[];
};

static const item_t nothing = {0, 0, 0, NULL};

static void fail(tree_t *tree, int error)
{
    if (!tree->error)
        tree->error = error;
}

static void *allocate(tree_t *tree, size_t bytes)
{
    struct allocation *allocation = NULL;
    if (bytes < SIZE_MAX - sizeof *allocation)
        allocation = malloc(sizeof *allocation + bytes);
    if (!allocation) {
        fail(tree, -ENOMEM);
        return NULL;
    }
    allocation->next = tree->allocations;
    tree->allocations = allocation;
    return allocation->data;
}

void tree_free(tree_t *tree)
{
    while (tree->allocations) {
        struct allocation *next = tree->allocations->next;
        free(tree->allocations);
        tree->allocations = next;
    }
}

static int64_t checked(tree_t *tree, int overflows, int64_t value)
{
    if (!overflows && value >= -OFFSET_MAX && value <= OFFSET_MAX)
        return value;
    fail(tree, -EOVERFLOW);
    return 0;
}

int64_t tree_plus(tree_t *tree, int64_t a, int64_t b)
{
    int64_t sum;
    int overflows = __builtin_add_overflow(a, b, &sum);
    return checked(tree, overflows, sum);
}

int64_t tree_times(tree_t *tree, int64_t a, int64_t b)
{
    int64_t product;
    int overflows = __builtin_mul_overflow(a, b, &product);
    return checked(tree, overflows, product);
}

static unsigned item_depth(const item_t *item)
{
    return item->node ? item->node->depth : 0;
}

/* 1 when two nodes describe the same data. */
static int are_same_nodes(const node_t *a, const node_t *b)
{
    if (a == b)
        return 1;
    if (!a || !b || a->shape != b->shape || a->count != b->count || a->depth != b->depth
        || a->start != b->start || a->end != b->end)
        return 0;
    if (a->shape == REPETITION)
        return a->stride == b->stride && a->child.bytes == b->child.bytes
               && are_same_nodes(a->child.node, b->child.node);
    for (size_t i = 0; i < a->count; i++) {
        const item_t *left = &a->items[i], *right = &b->items[i];
        if (left->offset != right->offset || left->bytes != right->bytes
            || !are_same_nodes(left->node, right->node))
            return 0;
    }
    return 1;
}

/* 1 when two items have the same data, apart from their offsets. */
static int are_same(const item_t *a, const item_t *b)
{
    return a->bytes == b->bytes && are_same_nodes(a->node, b->node);
}

/* Adds a node to the tree. Returns it as an item at `offset`, or an empty item after a failure. */
static item_t add_node(tree_t *tree, const node_t *node, int64_t offset, int64_t bytes)
{
    if (node->depth > TREE_DEPTH_MAX)
        fail(tree, -E2BIG);
    tree_plus(tree, offset, node->start);
    tree_plus(tree, offset, node->end);
    node_t *added = tree->error ? NULL : allocate(tree, sizeof *added);
    if (!added)
        return nothing;
    *added = *node;
    return (item_t){offset, 0, (uint64_t)bytes, added};
}

item_t tree_repeat(tree_t *tree, item_t child, uint64_t count, int64_t stride)
{
    child.before = 0;
    if (!count || !child.bytes || tree->error)
        return nothing;
    if (count == 1)
        return child;
    if (count > (uint64_t)OFFSET_MAX) {
        fail(tree, -EOVERFLOW);
        return nothing;
    }
    int64_t offset = child.offset, bytes = tree_times(tree, (int64_t)child.bytes, (int64_t)count);
    int64_t reach = tree_times(tree, (int64_t)count - 1, stride), product;
    if (!child.node && stride == (int64_t)child.bytes) {
        tree_plus(tree, offset, bytes);
        return tree->error ? nothing : (item_t){offset, 0, (uint64_t)bytes, NULL};
    }
    if (child.node && child.node->shape == REPETITION
        && !__builtin_mul_overflow((int64_t)child.node->count, child.node->stride, &product)
        && product == stride) {
        item_t inner = child.node->child;
        int64_t all = tree_times(tree, (int64_t)count, (int64_t)child.node->count);
        inner.offset = offset;
        return tree_repeat(tree, inner, (uint64_t)all, child.node->stride);
    }
    child.offset = 0;
    int64_t start = item_start(&child), end = item_end(&child);
    node_t node = {
        .shape = REPETITION,
        .is_ascending = item_is_ascending(&child) && stride >= end - start,
        .is_ordered = item_is_ordered(&child) && stride >= item_last(&child) - item_first(&child),
        .depth = item_depth(&child) + 1,
        .start = reach < 0 ? tree_plus(tree, start, reach) : start,
        .end = reach > 0 ? tree_plus(tree, end, reach) : end,
        .first = item_first(&child),
        .last = tree_plus(tree, item_last(&child), reach),
        .count = count,
        .stride = stride,
        .child = child,
    };
    return add_node(tree, &node, offset, bytes);
}

/* Joins item `b` to item `a` before it, if the two are contiguous or copies of one item at equal
 * distances. Returns 1 when `a` has the data of both. */
static int join(tree_t *tree, item_t *a, const item_t *b)
{
    if (!a->node && !b->node && a->offset + (int64_t)a->bytes == b->offset) {
        a->bytes += b->bytes;
        return 1;
    }
    const node_t *left = a->node && a->node->shape == REPETITION ? a->node : NULL;
    const node_t *right = b->node && b->node->shape == REPETITION ? b->node : NULL;
    if (!left && !right)
        return 0;
    int64_t stride = left ? left->stride : right->stride, place;
    uint64_t before = left ? left->count : 1, after = 1;
    item_t copy = left ? left->child : *a;
    /* Item `b` must begin where the next copy of `a` would, and be one or repeat it at this stride. */
    if (__builtin_mul_overflow((int64_t)before, stride, &place)
        || __builtin_add_overflow(place, a->offset, &place) || place != b->offset)
        return 0;
    if (right && right->stride == stride && are_same(&copy, &right->child))
        after = right->count;
    else if (!left || !are_same(&copy, b))
        return 0;
    copy.offset = a->offset;
    *a = tree_repeat(tree, copy, before + after, stride);
    return 1;
}

static size_t join_neighbours(tree_t *tree, item_t *items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count && !tree->error; i++) {
        if (!kept || !join(tree, &items[kept - 1], &items[i]))
            items[kept++] = items[i];
    }
    return kept;
}

/* Replaces runs of equal items at equal distances by repetitions. Returns the number of items left. */
static size_t fold_runs(tree_t *tree, item_t *items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count && !tree->error;) {
        size_t next = i + 1;
        if (next < count && are_same(&items[i], &items[next])) {
            int64_t stride = items[next].offset - items[i].offset;
            while (next + 1 < count && items[next + 1].offset - items[next].offset == stride
                   && are_same(&items[i], &items[next + 1]))
                next++;
            next++;
            if (next - i >= RUN_MIN || next - i == count) {
                items[kept++] = tree_repeat(tree, items[i], next - i, stride);
                i = next;
                continue;
            }
        }
        /* The run is short, but its last item may begin a longer one. */
        items[kept++] = items[i++];
    }
    return kept;
}

/* Number of items in the smallest group of which all items are copies at equal distances; 0 when there
 * is none. */
static size_t find_period(const item_t *items, size_t count)
{
    for (size_t period = 1; period <= count / 2; period++) {
        if (count % period)
            continue;
        int64_t stride = items[period].offset - items[0].offset;
        size_t i = 0;
        while (i + period < count && items[i + period].offset - items[i].offset == stride
               && are_same(&items[i], &items[i + period]))
            i++;
        if (i + period == count)
            return period;
    }
    return 0;
}

static item_t add_sequence(tree_t *tree, const item_t *items, size_t count)
{
    item_t *added = tree->error ? NULL : allocate(tree, count * sizeof *added);
    if (!added)
        return nothing;
    node_t node = {
        .shape = SEQUENCE, .is_ascending = 1, .is_ordered = 1, .count = count, .items = added};
    int64_t bytes = 0, offset = items[0].offset, end = INT64_MIN;
    node.last = INT64_MIN;
    node.start = INT64_MAX;
    node.end = INT64_MIN;
    for (size_t i = 0; i < count && !tree->error; i++) {
        item_t *item = &added[i];
        *item = items[i];
        item->offset = tree_plus(tree, item->offset, -offset);
        item->before = (uint64_t)bytes;
        bytes = tree_plus(tree, bytes, (int64_t)item->bytes);
        int64_t from = item_start(item), to = item_end(item);
        node.is_ascending &= item_is_ascending(item) && from >= end;
        node.is_ordered &= item_is_ordered(item) && item_first(item) >= node.last;
        end = to;
        node.last = item_last(item);
        node.first = i ? node.first : item_first(item);
        node.start = from < node.start ? from : node.start;
        node.end = to > node.end ? to : node.end;
        node.depth = item_depth(item) >= node.depth ? item_depth(item) + 1 : node.depth;
    }
    node.depth = node.depth ? node.depth : 1;
    return add_node(tree, &node, offset, bytes);
}

/* Makes the simplest item that has the data of all items in their order. */
static item_t simplify(tree_t *tree, item_t *items, size_t count)
{
    for (size_t before = count + 1; count < before && !tree->error;) {
        before = count;
        count = join_neighbours(tree, items, count);
        count = fold_runs(tree, items, count);
    }
    if (tree->error || !count)
        return nothing;
    if (count == 1) {
        items[0].before = 0;
        return items[0];
    }
    size_t period = find_period(items, count);
    if (period) {
        int64_t stride = items[period].offset - items[0].offset;
        item_t part = simplify(tree, items, period);
        return tree_repeat(tree, part, count / period, stride);
    }
    return add_sequence(tree, items, count);
}

item_t tree_sequence(tree_t *tree, item_t *items, size_t count)
{
    item_t dissolved[DISSOLVED_MAX];
    size_t kept = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        if (!items[i].bytes)
            continue;
        const node_t *node = items[i].node;
        size_t inside = node && node->shape == SEQUENCE ? node->count : 1;
        all = inside < DISSOLVED_MAX ? all + inside : all + DISSOLVED_MAX;
        items[kept++] = items[i];
    }
    if (all == kept || all > DISSOLVED_MAX)
        return simplify(tree, items, kept);
    all = 0;
    for (size_t i = 0; i < kept; i++) {
        const node_t *node = items[i].node;
        if (!node || node->shape != SEQUENCE) {
            dissolved[all++] = items[i];
            continue;
        }
        for (size_t k = 0; k < node->count; k++) {
            dissolved[all] = node->items[k];
            dissolved[all++].offset += items[i].offset;
        }
    }
    return simplify(tree, dissolved, all);
}
