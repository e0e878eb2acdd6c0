#include "layout.h"
#include "layout_fields.h"

#include <string.h>

/* Bytes of memory whose sequences are copied item by item before the next ones: they fit in a
 * first-level cache. */
#define BATCH_BYTES 16384

/* Direction of a copy. Addresses are integers, because a layout may hold absolute addresses: these
 * count from MPI_BOTTOM, which is a null pointer. */
enum direction { PACK, UNPACK };

/* Repetition of a copy, with a stride in each memory. */
typedef struct copies {
    uint64_t count;
    int64_t memory_stride, packed_stride;
} copies_t;

static const copies_t once = {1, 0, 0};

#define COPY_EACH(size)                                                                           \
    case size:                                                                                    \
        for (uint64_t i = 0; i < count; i++, to += to_stride, from += from_stride)                \
            memcpy((void *)to, (const void *)from, size);                                         \
        break

/* Copies `bytes` bytes `count` times. Strides may be negative: they wrap around. */
static void copy_each(uintptr_t to, uintptr_t to_stride, uintptr_t from, uintptr_t from_stride,
                      uint64_t count, uint64_t bytes)
{
    switch (bytes) {
        COPY_EACH(1);
        COPY_EACH(2);
        COPY_EACH(4);
        COPY_EACH(8);
        COPY_EACH(12);
        COPY_EACH(16);
        COPY_EACH(24);
        COPY_EACH(32);
    default:
        for (uint64_t i = 0; i < count; i++, to += to_stride, from += from_stride)
            memcpy((void *)to, (const void *)from, bytes);
    }
}

static void copy_contiguous(enum direction direction, uintptr_t memory, uintptr_t packed,
                            uint64_t bytes, copies_t copies)
{
    uintptr_t memory_stride = (uintptr_t)copies.memory_stride;
    uintptr_t packed_stride = (uintptr_t)copies.packed_stride;
    if (direction == PACK)
        copy_each(packed, packed_stride, memory, memory_stride, copies.count, bytes);
    else
        copy_each(memory, memory_stride, packed, packed_stride, copies.count, bytes);
}

static void copy_item(enum direction direction, const item_t *item, uintptr_t memory,
                      uintptr_t packed, copies_t copies);

/* Copies the first `count` copies of a repetition, and repeats that as `copies` says. The innermost
 * loop runs over the copies of the repetition or over `copies`: the longer loop is better, unless its
 * memory exceeds the cache. */
static void copy_repetition(enum direction direction, const node_t *node, uint64_t count,
                            uintptr_t memory, uintptr_t packed, copies_t copies)
{
    const item_t *child = &node->child;
    int is_contiguous = !child->node;
    if (copies.count == 1) {
        uint64_t stride = (uint64_t)(node->stride < 0 ? -node->stride : node->stride);
        uint64_t batch = is_contiguous ? count : BATCH_BYTES / (stride + child->bytes) + 1;
        for (uint64_t i = 0; i < count; i += batch) {
            uint64_t left = count - i;
            copies_t own = {left < batch ? left : batch, node->stride, (int64_t)child->bytes};
            copy_item(direction, child, memory + i * (uint64_t)node->stride,
                      packed + i * child->bytes, own);
        }
    } else if (is_contiguous && count >= copies.count) {
        copies_t own = {count, node->stride, (int64_t)child->bytes};
        for (uint64_t i = 0; i < copies.count; i++)
            copy_contiguous(direction, memory + i * (uint64_t)copies.memory_stride,
                            packed + i * (uint64_t)copies.packed_stride, child->bytes, own);
    } else {
        for (uint64_t i = 0; i < count; i++)
            copy_item(direction, child, memory + i * (uint64_t)node->stride,
                      packed + i * child->bytes, copies);
    }
}

/* Copies an item, and repeats that as `copies` says. `memory`: address from which its offset counts. */
static void copy_item(enum direction direction, const item_t *item, uintptr_t memory,
                      uintptr_t packed, copies_t copies)
{
    const node_t *node = item->node;
    memory += (uintptr_t)item->offset;
    if (!node) {
        copy_contiguous(direction, memory, packed, item->bytes, copies);
    } else if (node->shape == REPETITION) {
        copy_repetition(direction, node, node->count, memory, packed, copies);
    } else {
        for (size_t i = 0; i < node->count; i++)
            copy_item(direction, &node->items[i], memory, packed + node->items[i].before, copies);
    }
}

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Copies data bytes [first, first + bytes) of an item; the first to or from `packed`. */
static void copy_range(enum direction direction, const item_t *item, uintptr_t memory,
                       uint64_t first, uint64_t bytes, uintptr_t packed)
{
    const node_t *node = item->node;
    if (!first && bytes == item->bytes) {
        copy_item(direction, item, memory, packed, once);
        return;
    }
    memory += (uintptr_t)item->offset;
    if (!node) {
        copy_contiguous(direction, memory + first, packed, bytes, once);
    } else if (node->shape == SEQUENCE) {
        for (item = sequence_find(node, first), first -= item->before; bytes; item++, first = 0) {
            uint64_t part = minimum(bytes, item->bytes - first);
            copy_range(direction, item, memory, first, part, packed);
            packed += part;
            bytes -= part;
        }
    } else {
        uint64_t size = node->child.bytes, phase = first % size;
        memory += first / size * (uint64_t)node->stride;
        if (phase) {
            uint64_t part = minimum(bytes, size - phase);
            copy_range(direction, &node->child, memory, phase, part, packed);
            memory += (uint64_t)node->stride;
            packed += part;
            bytes -= part;
        }
        uint64_t whole = bytes / size;
        copy_repetition(direction, node, whole, memory, packed, once);
        if (bytes % size)
            copy_range(direction, &node->child, memory + whole * (uint64_t)node->stride, 0,
                       bytes % size, packed + whole * size);
    }
}

static void copy(enum direction direction, const layout_t *layout, uintptr_t memory,
                 uint64_t first, uint64_t bytes, uintptr_t packed)
{
    item_t tiles = layout_tiles(layout);
    if (bytes && layout->facts.bytes)
        copy_range(direction, &tiles, memory, first, bytes, packed);
}

void layout_pack(const layout_t *layout, const void *buffer, uint64_t first, uint64_t bytes,
                 void *target)
{
    copy(PACK, layout, (uintptr_t)buffer, first, bytes, (uintptr_t)target);
}

void layout_unpack(const layout_t *layout, void *buffer, uint64_t first, uint64_t bytes,
                   const void *source)
{
    copy(UNPACK, layout, (uintptr_t)buffer, first, bytes, (uintptr_t)source);
}
