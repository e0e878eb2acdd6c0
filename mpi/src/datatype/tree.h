/* tree.h - data of a datatype as a tree of repetitions and sequences.
 *
 * Invariants of a tree:
 * - Its leaves are contiguous bytes. Their order is that of the typemap, which is the order of the
 *   data.
 * - Offsets, sizes and the sum of a node's data are at most 2^62, so that sums of two fit.
 * - It is at most 256 nodes deep. Nodes may be shared: it is an acyclic graph.
 */
#ifndef UNISONO_MPI_DATATYPE_TREE_H
#define UNISONO_MPI_DATATYPE_TREE_H

#include <stddef.h>
#include <stdint.h>

#define OFFSET_MAX ((int64_t)1 << 62)
#define TREE_DEPTH_MAX 256

typedef struct node node_t;

/* Data at an offset from the place of the node or layout that holds it. */
typedef struct item {
    int64_t offset;
    uint64_t before;    /* data bytes of the same sequence that come before */
    uint64_t bytes;     /* data bytes; 0 means that there is nothing */
    const node_t *node; /* NULL: contiguous bytes */
} item_t;

enum shape {
    REPETITION, /* `count` copies of `child`, at distances of `stride` */
    SEQUENCE    /* `count` items */
};

struct node {
    enum shape shape;
    int is_ascending;    /* 1 when the data ascend without overlap */
    int is_ordered;      /* 1 when no block begins before the one that precedes it in the data */
    unsigned depth;      /* nodes on the longest path to a leaf */
    int64_t start, end;  /* lowest byte, and one past the highest */
    int64_t first, last; /* beginnings of the first and of the last block */
    uint64_t count;      /* at least 2 */
    int64_t stride;      /* repetition only */
    item_t child;        /* repetition only; at offset 0 */
    const item_t *items; /* sequence only; the first is at offset 0 */
};

/* Memory of the nodes of one layout, and the first failure in making them. */
typedef struct tree {
    struct allocation *allocations;
    int error; /* 0; or -ENOMEM, -EOVERFLOW, -EINVAL, -E2BIG */
} tree_t;

/* Sum and product that fail the tree, and return 0, when they are beyond 2^62. */
int64_t tree_plus(tree_t *tree, int64_t a, int64_t b);
int64_t tree_times(tree_t *tree, int64_t a, int64_t b);

/* `count` copies of an item, the first where it is, as simply as possible. */
item_t tree_repeat(tree_t *tree, item_t child, uint64_t count, int64_t stride);

/* Items one after the other, as simply as possible. The array is changed, and not kept. */
item_t tree_sequence(tree_t *tree, item_t *items, size_t count);

void tree_free(tree_t *tree);

/* Lowest byte of an item, and one past the highest, counted from the place of its holder. */
static inline int64_t item_start(const item_t *item)
{
    return item->offset + (item->node ? item->node->start : 0);
}

static inline int64_t item_end(const item_t *item)
{
    return item->offset + (item->node ? item->node->end : (int64_t)item->bytes);
}

static inline int item_is_ascending(const item_t *item)
{
    return !item->node || item->node->is_ascending;
}

static inline int item_is_ordered(const item_t *item)
{
    return !item->node || item->node->is_ordered;
}

/* Beginnings of the first and of the last block of an item. */
static inline int64_t item_first(const item_t *item)
{
    return item->offset + (item->node ? item->node->first : 0);
}

static inline int64_t item_last(const item_t *item)
{
    return item->offset + (item->node ? item->node->last : 0);
}

/* Item of a sequence that has data byte `position`. */
static inline const item_t *sequence_find(const node_t *sequence, uint64_t position)
{
    size_t low = 0, high = sequence->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (sequence->items[middle].before <= position)
            low = middle;
        else
            high = middle;
    }
    return &sequence->items[low];
}

#endif
