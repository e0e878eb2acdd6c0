#include "layout.h"
#include "layout_fields.h"
#include "nests.h"

#include <errno.h>

/* Nests that are compact in any case; further ones must be few beside those of the file alone. */
#define SIMPLE_NESTS_MAX 256

/* Data of one side from byte `from` on; those of `node`, or contiguous bytes, at `base`. */
typedef struct stream {
    const node_t *node;
    int64_t base;
    uint64_t from;
} stream_t;

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static stream_t stream_of(const layout_t *layout, uint64_t displacement, uint64_t first)
{
    item_t tiles = layout_tiles(layout);
    return (stream_t){tiles.node, (int64_t)displacement + tiles.offset, first};
}

static stream_t skip(stream_t stream, uint64_t bytes)
{
    stream.from += bytes;
    return stream;
}

static stream_t into(stream_t stream, const item_t *item, uint64_t from)
{
    return (stream_t){item->node, stream.base + item->offset, from};
}

/* Descends to the smallest node that has all of the next `bytes` bytes. */
static stream_t narrow(stream_t stream, uint64_t bytes)
{
    while (stream.node) {
        const node_t *node = stream.node;
        if (node->shape == REPETITION) {
            uint64_t size = node->child.bytes, copy = stream.from / size;
            if (bytes > size - stream.from % size)
                break;
            stream.base += (int64_t)copy * node->stride;
            stream = into(stream, &node->child, stream.from % size);
        } else {
            const item_t *item = sequence_find(node, stream.from);
            uint64_t from = stream.from - item->before;
            if (bytes > item->bytes - from)
                break;
            stream = into(stream, item, from);
        }
    }
    return stream;
}

static void pair(nests_t *nests, stream_t file, stream_t memory, uint64_t bytes);

/* Pairs items of a sequence, which is one side, with the other side. */
static void pair_sequence(nests_t *nests, stream_t file, stream_t memory, uint64_t bytes,
                          int is_file)
{
    stream_t sequence = is_file ? file : memory;
    const item_t *item = sequence_find(sequence.node, sequence.from);
    uint64_t from = sequence.from - item->before;
    while (bytes && !nests->error) {
        uint64_t length = minimum(bytes, item->bytes - from);
        stream_t inside = into(sequence, item, from);
        pair(nests, is_file ? inside : file, is_file ? memory : inside, length);
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

/* Pairs whole copies of a repetition, `outer`, with the other side, which is a repetition of
 * something not larger, or contiguous. Copies are alike that meet the same place of a copy of the
 * other side: every `period`-th one, which is `advance` copies of the other side further. */
static void pair_copies(nests_t *nests, stream_t file, stream_t memory, uint64_t copies,
                        int outer_is_file)
{
    stream_t outer = outer_is_file ? file : memory, other = outer_is_file ? memory : file;
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
    for (uint64_t i = 0; i < minimum(period, copies) && !nests->error; i++) {
        uint64_t count = (copies - i - 1) / period + 1;
        stream_t copy = outer, met = skip(other, i * size);
        copy.base += (int64_t)(first + i) * outer.node->stride;
        copy = into(copy, &outer.node->child, 0);
        if (count > 1) {
            int64_t strides[2] = {(int64_t)period * outer.node->stride,
                                  (int64_t)advance * other_stride};
            nests_push(nests,
                       (level_t){count, strides[!outer_is_file], strides[outer_is_file]});
        }
        pair(nests, outer_is_file ? copy : met, outer_is_file ? met : copy, size);
        if (count > 1)
            nests_pop(nests);
    }
}

/* Pairs a repetition with a contiguous side or a repetition: the end of a copy of the larger thing,
 * whole copies, and the beginning of one. */
static void pair_repetition(nests_t *nests, stream_t file, stream_t memory, uint64_t bytes)
{
    int outer_is_file =
        file.node && (!memory.node || file.node->child.bytes >= memory.node->child.bytes);
    const stream_t *outer = outer_is_file ? &file : &memory;
    uint64_t size = outer->node->child.bytes, phase = outer->from % size;
    uint64_t head = phase ? minimum(bytes, size - phase) : 0;
    if (head) {
        pair(nests, file, memory, head);
        file = skip(file, head);
        memory = skip(memory, head);
        bytes -= head;
    }
    if (bytes >= size && !nests->error) {
        uint64_t whole = bytes / size * size;
        pair_copies(nests, file, memory, bytes / size, outer_is_file);
        file = skip(file, whole);
        memory = skip(memory, whole);
        bytes -= whole;
    }
    if (bytes && !nests->error)
        pair(nests, file, memory, bytes);
}

/* Adds nests for the next `bytes` bytes, at least 1, of both sides. */
static void pair(nests_t *nests, stream_t file, stream_t memory, uint64_t bytes)
{
    file = narrow(file, bytes);
    memory = narrow(memory, bytes);
    if (!file.node && !memory.node)
        nests_add(nests, file.base + (int64_t)file.from, memory.base + (int64_t)memory.from,
                  bytes);
    else if (file.node && file.node->shape == SEQUENCE)
        pair_sequence(nests, file, memory, bytes, 1);
    else if (memory.node && memory.node->shape == SEQUENCE)
        pair_sequence(nests, file, memory, bytes, 0);
    else
        pair_repetition(nests, file, memory, bytes);
}

static void pair_layouts(nests_t *nests, const layout_t *file, uint64_t displacement,
                         uint64_t first, uint64_t bytes, const layout_t *memory)
{
    stream_t packed = {NULL, 0, 0};
    if (bytes)
        pair(nests, stream_of(file, displacement, first),
             memory ? stream_of(memory, 0, 0) : packed, bytes);
}

/* Refuses an access that is not possible. */
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
    nests_t nests;
    nests_begin(&nests, PIECES_MAX);
    *part = NULL;
    *memory_base = 0;
    int error = check(file, displacement, first, bytes, memory);
    if (error)
        return error;
    pair_layouts(&nests, file, displacement, first, bytes, memory);
    *memory_base = nests_memory_start(&nests);
    error = nests_make_part(&nests, *memory_base, memory && !memory->facts.is_repeatable, part);
    nests_free(&nests);
    return error;
}

/* Number of nests, at most `most` + 1, for `bytes` bytes. */
static size_t count_nests(const layout_t *file, uint64_t first, uint64_t bytes,
                          const layout_t *memory, size_t most)
{
    nests_t nests;
    nests_begin(&nests, most);
    pair_layouts(&nests, file, 0, first, bytes, memory);
    size_t count = nests.error ? most + 1 : nests.nest_count;
    nests_free(&nests);
    return count;
}

/* A length at which everything about two layouts occurs, if that is possible: twice the least
 * common multiple of their data. */
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
        size_t alone = count_nests(file, firsts[i], bytes, NULL, NESTS_MAX);
        size_t most = SIMPLE_NESTS_MAX + 2 * alone;
        if (count_nests(file, firsts[i], bytes, memory, most) > most)
            return 0;
    }
    return 1;
}
