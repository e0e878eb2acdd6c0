#include "layout.h"
#include "layout_fields.h"
#include "nested_strides.h"

#include <errno.h>

/* Number of nested strides that always counts as compact. More are compact when the file alone needs
 * about as many. */
#define SIMPLE_STRIDES_MAX 256

/* Position in the data of one side, the file or the memory: byte `from` of the data of `node`, which
 * lies at `base`. Without a node the data is contiguous. */
typedef struct cursor {
    const node_t *node;
    int64_t base;
    uint64_t from;
} cursor_t;

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static cursor_t cursor_of(const layout_t *layout, uint64_t displacement, uint64_t first)
{
    item_t tiles = layout_tiles(layout);
    return (cursor_t){tiles.node, (int64_t)displacement + tiles.offset, first};
}

static cursor_t skip(cursor_t cursor, uint64_t bytes)
{
    cursor.from += bytes;
    return cursor;
}

static cursor_t into(cursor_t cursor, const item_t *item, uint64_t from)
{
    return (cursor_t){item->node, cursor.base + item->offset, from};
}

/* Descends to the smallest node that has all of the next `bytes` bytes. */
static cursor_t narrow(cursor_t cursor, uint64_t bytes)
{
    while (cursor.node) {
        const node_t *node = cursor.node;
        if (node->shape == REPETITION) {
            uint64_t size = node->child.bytes, copy = cursor.from / size;
            if (bytes > size - cursor.from % size)
                break;
            cursor.base += (int64_t)copy * node->stride;
            cursor = into(cursor, &node->child, cursor.from % size);
        } else {
            const item_t *item = sequence_find(node, cursor.from);
            uint64_t from = cursor.from - item->before;
            if (bytes > item->bytes - from)
                break;
            cursor = into(cursor, item, from);
        }
    }
    return cursor;
}

static void pair(strides_t *strides, cursor_t file, cursor_t memory, uint64_t bytes);

/* Pairs the items of a sequence, which one side is, with the data of the other side. */
static void pair_sequence(strides_t *strides, cursor_t file, cursor_t memory, uint64_t bytes,
                          int is_file)
{
    cursor_t sequence = is_file ? file : memory;
    const item_t *item = sequence_find(sequence.node, sequence.from);
    uint64_t from = sequence.from - item->before;
    while (bytes && !strides->error) {
        uint64_t length = minimum(bytes, item->bytes - from);
        cursor_t inside = into(sequence, item, from);
        pair(strides, is_file ? inside : file, is_file ? memory : inside, length);
        file = skip(file, length);
        memory = skip(memory, length);
        bytes -= length;
        from = 0;
        item++;
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Pairs whole copies of a repetition, `outer`, with the other side, which is contiguous or a
 * repetition of copies that are not larger. Every `period`-th copy of `outer` begins at the same place
 * inside a copy of the other side, `advance` copies later. These copies share their nested strides,
 * with one more level around them. */
static void pair_copies(strides_t *strides, cursor_t file, cursor_t memory, uint64_t copies,
                        int outer_is_file)
{
    cursor_t outer = outer_is_file ? file : memory, other = outer_is_file ? memory : file;
    uint64_t size = outer.node->child.bytes, first = outer.from / size;
    uint64_t period = 1, advance = 1;
    int64_t other_stride = (int64_t)size;
    if (other.node) {
        uint64_t other_size = other.node->child.bytes;
        uint64_t divisor = common_divisor(size, other_size);
        period = other_size / divisor;
        advance = size / divisor;
        other_stride = other.node->stride;
    }
    for (uint64_t i = 0; i < minimum(period, copies) && !strides->error; i++) {
        uint64_t count = (copies - i - 1) / period + 1;
        cursor_t copy = outer, beside = skip(other, i * size);
        copy.base += (int64_t)(first + i) * outer.node->stride;
        copy = into(copy, &outer.node->child, 0);
        if (count > 1) {
            int64_t steps[2] = {(int64_t)period * outer.node->stride,
                                (int64_t)advance * other_stride};
            strides_push(strides,
                         (level_t){count, steps[!outer_is_file], steps[outer_is_file]});
        }
        pair(strides, outer_is_file ? copy : beside, outer_is_file ? beside : copy, size);
        if (count > 1)
            strides_pop(strides);
    }
}

/* Pairs a repetition with contiguous data or another repetition: first the rest of a copy of the
 * larger child, then whole copies, then the beginning of one. */
static void pair_repetition(strides_t *strides, cursor_t file, cursor_t memory, uint64_t bytes)
{
    int outer_is_file =
        file.node && (!memory.node || file.node->child.bytes >= memory.node->child.bytes);
    const cursor_t *outer = outer_is_file ? &file : &memory;
    uint64_t size = outer->node->child.bytes, phase = outer->from % size;
    uint64_t head = phase ? minimum(bytes, size - phase) : 0;
    if (head) {
        pair(strides, file, memory, head);
        file = skip(file, head);
        memory = skip(memory, head);
        bytes -= head;
    }
    if (bytes >= size && !strides->error) {
        uint64_t whole = bytes / size * size;
        pair_copies(strides, file, memory, bytes / size, outer_is_file);
        file = skip(file, whole);
        memory = skip(memory, whole);
        bytes -= whole;
    }
    if (bytes && !strides->error)
        pair(strides, file, memory, bytes);
}

/* Adds nested strides for the next `bytes` bytes, at least 1, of both sides. */
static void pair(strides_t *strides, cursor_t file, cursor_t memory, uint64_t bytes)
{
    file = narrow(file, bytes);
    memory = narrow(memory, bytes);
    if (!file.node && !memory.node)
        strides_add(strides, file.base + (int64_t)file.from, memory.base + (int64_t)memory.from,
                    bytes);
    else if (file.node && file.node->shape == SEQUENCE)
        pair_sequence(strides, file, memory, bytes, 1);
    else if (memory.node && memory.node->shape == SEQUENCE)
        pair_sequence(strides, file, memory, bytes, 0);
    else
        pair_repetition(strides, file, memory, bytes);
}

static void pair_layouts(strides_t *strides, const layout_t *file, uint64_t displacement,
                         uint64_t first, uint64_t bytes, const layout_t *memory)
{
    cursor_t packed = {NULL, 0, 0};
    if (bytes)
        pair(strides, cursor_of(file, displacement, first),
             memory ? cursor_of(memory, 0, 0) : packed, bytes);
}

/* Checks that all of an access lies in the range of offsets. Returns 0 or a negative errno. */
static int check(const layout_t *file, uint64_t displacement, uint64_t first, uint64_t bytes,
                 const layout_t *memory)
{
    const layout_facts_t *facts = &file->facts;
    int error = layout_reach(file, first, bytes);
    error = error || !memory ? error : layout_reach(memory, 0, bytes);
    if (error || !bytes)
        return error;
    uint64_t from, to;
    layout_range(file, first, bytes, &from, &to);
    if (displacement >= (uint64_t)OFFSET_MAX || to > (uint64_t)OFFSET_MAX - displacement)
        return -EOVERFLOW;
    __int128 start = (__int128)(first / facts->bytes) * facts->extent + facts->true_start;
    return start + displacement < 0 ? -EINVAL : 0;
}

int layout_part(const layout_t *file, uint64_t displacement, uint64_t first, uint64_t bytes,
                const layout_t *memory, int64_t *memory_base, unisono_part_t **part)
{
    strides_t strides;
    strides_begin(&strides, PIECES_MAX);
    *part = NULL;
    *memory_base = 0;
    int error = check(file, displacement, first, bytes, memory);
    if (error)
        return error;
    pair_layouts(&strides, file, displacement, first, bytes, memory);
    *memory_base = strides_memory_start(&strides);
    error = strides_make_part(&strides, *memory_base, memory && !memory->facts.is_repeatable, part);
    strides_free(&strides);
    return error;
}

/* Number of nested strides, at most `most` + 1, for `bytes` bytes. */
static size_t count_strides(const layout_t *file, uint64_t first, uint64_t bytes,
                            const layout_t *memory, size_t most)
{
    strides_t strides;
    strides_begin(&strides, most);
    pair_layouts(&strides, file, 0, first, bytes, memory);
    size_t count = strides.error ? most + 1 : strides.count;
    strides_free(&strides);
    return count;
}

/* A length after which the pairing of two layouts repeats: twice the least common multiple of their
 * data, or less where an access cannot be that long. */
static uint64_t typical_bytes(const layout_t *file, const layout_t *memory, uint64_t first)
{
    uint64_t a = file->facts.bytes, b = memory->facts.bytes, bytes;
    if (__builtin_mul_overflow(a / common_divisor(a, b), 2 * b, &bytes))
        bytes = OFFSET_MAX;
    while (bytes && (layout_reach(file, first, bytes) || layout_reach(memory, 0, bytes)))
        bytes /= 2;
    return bytes;
}

int layout_is_simple(const layout_t *file, const layout_t *memory)
{
    if (!memory || !file->facts.bytes || !memory->facts.bytes || memory->facts.is_dense)
        return 1;
    if (!file->facts.is_repeatable)
        return 0;
    uint64_t firsts[2] = {0, file->facts.bytes / 3};
    for (size_t i = 0; i < 2; i++) {
        uint64_t bytes = typical_bytes(file, memory, firsts[i]);
        size_t alone = count_strides(file, firsts[i], bytes, NULL, NESTED_STRIDES_MAX);
        size_t most = SIMPLE_STRIDES_MAX + 2 * alone;
        if (count_strides(file, firsts[i], bytes, memory, most) > most)
            return 0;
    }
    return 1;
}
