/* positions.c - offsets in the file of the data of a repeated filetype.
 *
 * With an extent that is less than the span of the data, an instance begins before the one before it
 * ends: data go back and forth in the file, though those of one instance ascend. */
#include "layout.h"
#include "layout_fields.h"

#include <errno.h>
#include <stdlib.h>

/* ---- Positions ----------------------------------------------------------------------------- */

/* Length of the block that holds data byte `position`, from this byte on; gives its offset. */
static uint64_t run_at(const layout_t *file, uint64_t position, __int128 *offset)
{
    const layout_facts_t *facts = &file->facts;
    const item_t *item = &file->data;
    *offset = (__int128)(position / facts->bytes) * facts->extent + item->offset;
    position %= facts->bytes;
    for (const node_t *node = item->node; node; node = item->node) {
        item = &node->child;
        if (node->shape == REPETITION) {
            *offset += (__int128)(position / item->bytes) * node->stride;
            position %= item->bytes;
        } else {
            item = sequence_find(node, position);
            *offset += item->offset;
            position -= item->before;
        }
    }
    *offset += position;
    return item->bytes - position;
}

/* Offset, limited to what callers can add to a displacement. */
static uint64_t in_limits(__int128 offset)
{
    return offset < 0 ? 0 : offset > INT64_MAX ? INT64_MAX : (uint64_t)offset;
}

uint64_t layout_file_offset(const layout_t *file, uint64_t position)
{
    __int128 offset;
    if (!file->facts.bytes)
        return 0;
    run_at(file, position, &offset);
    return in_limits(offset);
}

int layout_ascends(const layout_t *file, uint64_t first, uint64_t bytes)
{
    const layout_facts_t *facts = &file->facts;
    __int128 offset;
    if (facts->is_repeatable || !facts->bytes || !bytes)
        return 1;
    if (facts->is_ascending && first % facts->bytes + bytes <= facts->bytes)
        return 1;
    return run_at(file, first, &offset) >= bytes;
}

void layout_range(const layout_t *file, uint64_t first, uint64_t bytes, uint64_t *from,
                  uint64_t *to)
{
    const layout_facts_t *facts = &file->facts;
    if (layout_ascends(file, first, bytes)) {
        *from = layout_file_offset(file, first);
        *to = layout_file_offset(file, first + bytes - 1) + 1;
        return;
    }
    __int128 low = (__int128)(first / facts->bytes) * facts->extent;
    __int128 high = (__int128)((first + bytes - 1) / facts->bytes) * facts->extent;
    *from = in_limits((low < high ? low : high) + facts->true_start);
    *to = in_limits((low < high ? high : low) + facts->true_end);
}

/* ---- Data before an offset ----------------------------------------------------------------- */

/* First copy from `copy` on that ends behind `limit`. Copy 0 ends at `end`, and each other one `stride`
 * bytes after the one before. UINT64_MAX when there is none. */
static uint64_t copy_behind(uint64_t copy, int64_t end, int64_t stride, __int128 limit)
{
    if (end + (__int128)copy * stride > limit)
        return copy;
    return stride > 0 ? (uint64_t)((limit - end) / stride) + 1 : UINT64_MAX;
}

/* First item of a sequence, from `item` on, that ends behind `limit`; or the end of the sequence. */
static const item_t *item_behind(const node_t *sequence, const item_t *item, __int128 limit)
{
    const item_t *end = sequence->items + sequence->count;
    if (!sequence->is_ascending) {
        while (item < end && item_end(item) <= limit)
            item++;
        return item;
    }
    while (item < end) {
        const item_t *middle = item + (end - item) / 2;
        if (item_end(middle) <= limit)
            item = middle + 1;
        else
            end = middle;
    }
    return item;
}

/* First data byte of an item, from `from` on, that lies at or behind `limit`; or its number of bytes. */
static uint64_t byte_behind(const item_t *item, uint64_t from, __int128 limit)
{
    const node_t *node = item->node;
    limit -= item->offset;
    if (!node)
        return limit <= (__int128)from          ? from
               : limit < (__int128)item->bytes ? (uint64_t)limit
                                               : item->bytes;
    if (node->shape == REPETITION) {
        uint64_t size = node->child.bytes, copy = from / size;
        uint64_t found = byte_behind(&node->child, from % size,
                                     limit - (__int128)copy * node->stride);
        if (found == size) {
            copy = copy_behind(copy + 1, item_end(&node->child), node->stride, limit);
            if (copy >= node->count)
                return item->bytes;
            found = byte_behind(&node->child, 0, limit - (__int128)copy * node->stride);
        }
        return copy * size + found;
    }
    const item_t *inner = sequence_find(node, from);
    uint64_t found = byte_behind(inner, from - inner->before, limit);
    if (found == inner->bytes) {
        inner = item_behind(node, inner + 1, limit);
        if (inner == node->items + node->count)
            return item->bytes;
        found = byte_behind(inner, 0, limit);
    }
    return inner->before + found;
}

uint64_t layout_data_before(const layout_t *file, uint64_t first, uint64_t offset)
{
    const layout_facts_t *facts = &file->facts;
    uint64_t size = facts->bytes, position;
    if (!size)
        return UINT64_MAX;
    uint64_t instance = first / size;
    uint64_t found = byte_behind(&file->data, first % size,
                                 offset - (__int128)instance * facts->extent);
    if (found == size) {
        instance = copy_behind(instance + 1, facts->true_end, facts->extent, offset);
        if (instance == UINT64_MAX)
            return UINT64_MAX;
        found = byte_behind(&file->data, 0, offset - (__int128)instance * facts->extent);
    }
    if (__builtin_mul_overflow(instance, size, &position)
        || __builtin_add_overflow(position, found, &position))
        return UINT64_MAX;
    return position - first;
}

/* ---- Bytes that data has twice ------------------------------------------------------------- */

/* Next block of one instance, whose data ends at byte `end`. */
typedef struct cursor {
    __int128 offset;
    uint64_t position, run, end;
} cursor_t;

/* Blocks of several instances in the order of the file: a heap of one cursor for each. */
typedef struct merge {
    cursor_t *cursors;
    size_t count, room;
} merge_t;

static void sink(merge_t *merge, size_t at)
{
    cursor_t *cursors = merge->cursors, moved = cursors[at];
    for (size_t child = 2 * at + 1; child < merge->count; child = 2 * at + 1) {
        if (child + 1 < merge->count && cursors[child + 1].offset < cursors[child].offset)
            child++;
        if (moved.offset <= cursors[child].offset)
            break;
        cursors[at] = cursors[child];
        at = child;
    }
    cursors[at] = moved;
}

static cursor_t cursor_at(const layout_t *file, uint64_t position, uint64_t end)
{
    cursor_t cursor = {.position = position, .end = end};
    uint64_t left = end - position;
    cursor.run = run_at(file, position, &cursor.offset);
    cursor.run = cursor.run < left ? cursor.run : left;
    return cursor;
}

/* Adds a cursor. Returns 0 or -ENOMEM. */
static int insert(merge_t *merge, cursor_t added)
{
    if (merge->count == merge->room) {
        size_t room = 2 * merge->room + 15;
        cursor_t *grown = realloc(merge->cursors, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        merge->cursors = grown;
        merge->room = room;
    }
    size_t at = merge->count++;
    for (; at && merge->cursors[(at - 1) / 2].offset > added.offset; at = (at - 1) / 2)
        merge->cursors[at] = merge->cursors[(at - 1) / 2];
    merge->cursors[at] = added;
    return 0;
}

/* Moves the first cursor to its next block. */
static void step(const layout_t *file, merge_t *merge)
{
    cursor_t *first = &merge->cursors[0];
    uint64_t next = first->position + first->run;
    *first = next < first->end ? cursor_at(file, next, first->end)
                               : merge->cursors[--merge->count];
    if (merge->count)
        sink(merge, 0);
}

/* Returns 1 when data [first, end) has a byte of the file twice, 0 when not, or -ENOMEM. The instances
 * begin in ascending order, except that the first may be partial and begin later than the second. */
static int find_twice(const layout_t *file, merge_t *merge, uint64_t first, uint64_t end)
{
    uint64_t size = file->facts.bytes, next = first;
    __int128 reached = INT64_MIN;
    for (;;) {
        while (next < end) {
            uint64_t stop = end - next < size - next % size ? end : next + (size - next % size);
            cursor_t cursor = cursor_at(file, next, stop);
            if (merge->count && cursor.offset > merge->cursors[0].offset)
                break;
            if (insert(merge, cursor))
                return -ENOMEM;
            next = stop;
        }
        if (!merge->count)
            return 0;
        if (merge->cursors[0].offset < reached)
            return 1;
        reached = merge->cursors[0].offset + merge->cursors[0].run;
        step(file, merge);
    }
}

int layout_repeats(const layout_t *file, uint64_t first, uint64_t bytes)
{
    const layout_facts_t *facts = &file->facts;
    if (layout_ascends(file, first, bytes))
        return 0;
    /* Whole instances at equal distances overlap in the same way, so a few of them represent all. */
    uint64_t size = facts->bytes, end = first + bytes;
    uint64_t whole_from = (first + size - 1) / size, whole_to = end / size;
    int64_t span = facts->true_end - facts->true_start;
    uint64_t enough = facts->extent > 0 ? (uint64_t)((span - 1) / facts->extent) + 1 : 2;
    if (whole_to > whole_from && whole_to - whole_from > enough) {
        first = whole_from * size;
        end = (whole_from + enough) * size;
    }
    merge_t merge = {NULL, 0, 0};
    int result = find_twice(file, &merge, first, end);
    free(merge.cursors);
    return result;
}
