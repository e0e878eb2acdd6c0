#include "datatype_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((uint64_t)1 << 62)

long record_parts;

static int compare_levels(const void *left, const void *right)
{
    const unisono_level_t *a = left, *b = right;
    return a->memory_stride < b->memory_stride ? -1 : a->memory_stride > b->memory_stride;
}

/* 1 when the copies of each level are beside those of the levels inside it. */
static int fits(uint64_t offset, uint64_t bytes, const unisono_level_t *levels, size_t count,
                int in_file)
{
    unsigned __int128 length = bytes;
    for (size_t i = 0; i < count; i++) {
        uint64_t stride = in_file ? levels[i].file_stride : levels[i].memory_stride;
        if (levels[i].count <= 1)
            continue;
        if (stride < length)
            return 0;
        length += (unsigned __int128)stride * (levels[i].count - 1);
    }
    return offset + length <= BYTES_MAX;
}

static int record_nest(unisono_part_t *part, uint64_t file_offset, uint64_t memory_offset,
                       uint64_t bytes, const unisono_level_t *levels, size_t level_count)
{
    recorded_nest_t nest = {file_offset, memory_offset, bytes, {{0, 0, 0}}, level_count};
    unisono_level_t sorted[16];
    if (level_count > 16 || part->nest_count == 65536)
        return -EINVAL;
    if (level_count) {
        memcpy(nest.levels, levels, level_count * sizeof *levels);
        memcpy(sorted, levels, level_count * sizeof *levels);
        qsort(sorted, level_count, sizeof *sorted, compare_levels);
    }
    if (bytes
        && (!fits(file_offset, bytes, nest.levels, level_count, 1)
            || !fits(memory_offset, bytes, sorted, level_count, 0)))
        return -EINVAL;
    if (bytes) {
        size_t count = part->nest_count;
        if (!(count & (count - 1)))
            part->nests = realloc(part->nests, (2 * count + 1) * sizeof nest);
        part->nests[part->nest_count++] = nest;
    }
    return 0;
}

int unisono_part_nested(uint64_t file_offset, uint64_t memory_offset, uint64_t bytes,
                        const unisono_level_t *levels, size_t level_count, unisono_part_t **part)
{
    *part = calloc(1, sizeof **part);
    record_parts++;
    int error = record_nest(*part, file_offset, memory_offset, bytes, levels, level_count);
    if (error) {
        unisono_part_free(*part);
        *part = NULL;
    }
    return error;
}

int unisono_part_add(unisono_part_t *part, uint64_t file_offset, uint64_t memory_offset,
                     uint64_t bytes, const unisono_level_t *levels, size_t level_count)
{
    return part->pieces
               ? -EINVAL
               : record_nest(part, file_offset, memory_offset, bytes, levels, level_count);
}

static int compare_pieces(const void *left, const void *right)
{
    const unisono_piece_t *a = left, *b = right;
    return a->memory_offset < b->memory_offset ? -1 : a->memory_offset > b->memory_offset;
}

int unisono_part_list(const unisono_piece_t *pieces, size_t count, unisono_part_t **part)
{
    *part = NULL;
    if (count > (1 << 20))
        return -EINVAL;
    unisono_piece_t *kept = malloc((count + 1) * sizeof *kept);
    memcpy(kept, pieces, count * sizeof *kept);
    qsort(kept, count, sizeof *kept, compare_pieces);
    int is_valid = 1;
    for (size_t i = 0; i < count; i++) {
        is_valid &= pieces[i].bytes > 0;
        if (i == 0)
            continue;
        is_valid &= pieces[i - 1].file_offset + pieces[i - 1].bytes <= pieces[i].file_offset;
        is_valid &= kept[i - 1].memory_offset + kept[i - 1].bytes <= kept[i].memory_offset;
    }
    if (!is_valid) {
        free(kept);
        return -EINVAL;
    }
    *part = calloc(1, sizeof **part);
    record_parts++;
    (*part)->pieces = kept;
    (*part)->piece_count = count;
    return 0;
}

void unisono_part_free(unisono_part_t *part)
{
    if (!part)
        return;
    record_parts--;
    free(part->nests);
    free(part->pieces);
    free(part);
}

static void expand(const recorded_nest_t *nest, size_t levels, unisono_piece_t piece,
                   void (*each)(unisono_piece_t piece, void *context), void *context)
{
    if (!levels) {
        each(piece, context);
        return;
    }
    const unisono_level_t *level = &nest->levels[levels - 1];
    for (uint64_t i = 0; i < level->count; i++) {
        expand(nest, levels - 1, piece, each, context);
        piece.file_offset += level->file_stride;
        piece.memory_offset += level->memory_stride;
    }
}

void record_pieces(const unisono_part_t *part,
                   void (*each)(unisono_piece_t piece, void *context), void *context)
{
    for (size_t i = 0; i < part->nest_count; i++) {
        const recorded_nest_t *nest = &part->nests[i];
        unisono_piece_t first = {nest->file_offset, nest->memory_offset, nest->bytes};
        expand(nest, nest->level_count, first, each, context);
    }
    for (size_t i = 0; i < part->piece_count; i++)
        each(part->pieces[i], context);
}

size_t record_description_bytes(const unisono_part_t *part)
{
    size_t bytes = part->piece_count * sizeof(unisono_piece_t);
    for (size_t i = 0; i < part->nest_count; i++)
        bytes += 24 + part->nests[i].level_count * sizeof(unisono_level_t);
    return bytes;
}
