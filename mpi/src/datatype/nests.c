#include "nests.h"

#include <errno.h>
#include <stdlib.h>

/* Single pieces from which on a list is better than a union of nests. */
#define LIST_PIECES_MIN 16

/* A nest whose levels are its own, the innermost first. */
typedef struct candidate {
    int64_t file_offset, memory_offset;
    uint64_t bytes;
    level_t *levels;
    size_t level_count;
} candidate_t;

void nests_begin(nests_t *nests, size_t nest_max)
{
    nests->error = 0;
    nests->nest_max = nest_max;
    nests->nests = NULL;
    nests->levels = NULL;
    nests->nest_count = nests->nest_room = 0;
    nests->level_count = nests->level_room = 0;
    nests->around_count = 0;
}

void nests_push(nests_t *nests, level_t level)
{
    nests->around[nests->around_count++] = level;
}

void nests_pop(nests_t *nests)
{
    nests->around_count--;
}

static void fail(nests_t *nests, int error)
{
    nests->error = nests->error ? nests->error : error;
}

/* Array with room for `needed` elements, or NULL; the old one is valid still then. */
static void *grow(void *array, size_t *room, size_t needed, size_t element_bytes)
{
    if (needed <= *room)
        return array;
    size_t more = needed > 2 * *room ? needed + 15 : 2 * *room;
    void *grown = realloc(array, more * element_bytes);
    if (grown)
        *room = more;
    return grown;
}

/* How a nest is divided into `groups` nests: each has every `groups`-th copy of one level. */
typedef struct division {
    size_t level;
    uint64_t groups; /* 0: it need not be divided */
} division_t;

static int64_t stride_of(const level_t *level, int in_file)
{
    return in_file ? level->file_stride : level->memory_stride;
}

/* Division of a nest that breaks the rule for memory, or that for the file. Levels: the innermost
 * first. */
static division_t find_clash(const level_t *levels, size_t count, uint64_t bytes, int in_file)
{
    unsigned char order[NEST_LEVELS_MAX];
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at && stride_of(&levels[order[at - 1]], in_file) > stride_of(&levels[i], in_file);
             at--)
            order[at] = order[at - 1];
        order[at] = (unsigned char)i;
    }
    __int128 length = bytes;
    for (size_t i = 0; i < count; i++) {
        const level_t *level = &levels[order[i]];
        int64_t stride = stride_of(level, in_file);
        if (stride < length) {
            division_t division = {order[i], level->count};
            if (stride <= 0)
                return division;
            /* Copies that far apart do not clash, nor do those without one of the levels. */
            if ((length - 1) / stride + 1 < level->count)
                division.groups = (uint64_t)((length - 1) / stride + 1);
            for (size_t k = 0; k < i; k++) {
                if (levels[order[k]].count < division.groups)
                    division = (division_t){order[k], levels[order[k]].count};
            }
            return division;
        }
        length += (__int128)(level->count - 1) * stride;
    }
    return (division_t){0, 0};
}

/* Division of a nest that breaks a rule. */
static division_t find_any_clash(const level_t *levels, size_t count, uint64_t bytes)
{
    division_t division = find_clash(levels, count, bytes, 0);
    return division.groups ? division : find_clash(levels, count, bytes, 1);
}

/* Brings levels into the order of their strides in the file: the order makes no difference to the
 * pieces, nor does it from which end copies count. */
static void order_levels(candidate_t *nest)
{
    for (size_t i = 0; i < nest->level_count; i++) {
        level_t level = nest->levels[i];
        if (level.file_stride < 0) {
            nest->file_offset += (int64_t)(level.count - 1) * level.file_stride;
            nest->memory_offset += (int64_t)(level.count - 1) * level.memory_stride;
            level.file_stride = -level.file_stride;
            level.memory_stride = -level.memory_stride;
        }
        size_t at = i;
        for (; at && nest->levels[at - 1].file_stride > level.file_stride; at--)
            nest->levels[at] = nest->levels[at - 1];
        nest->levels[at] = level;
    }
}

/* Drops levels that make longer pieces, or that continue the level inside them. */
static void simplify(candidate_t *nest)
{
    size_t kept = 0;
    for (size_t i = 0; i < nest->level_count; i++) {
        level_t level = nest->levels[i], *inner = kept ? &nest->levels[kept - 1] : NULL;
        int64_t file = 0, memory = 0;
        if (!inner && level.file_stride == (int64_t)nest->bytes
            && level.memory_stride == (int64_t)nest->bytes)
            nest->bytes *= level.count;
        else if (inner
                 && !__builtin_mul_overflow((int64_t)inner->count, inner->file_stride, &file)
                 && !__builtin_mul_overflow((int64_t)inner->count, inner->memory_stride, &memory)
                 && file == level.file_stride && memory == level.memory_stride)
            inner->count *= level.count;
        else
            nest->levels[kept++] = level;
    }
    nest->level_count = kept;
}

/* Adds a valid nest to the one before it, if both are contiguous and have the same levels. */
static int extend_last(nests_t *nests, const candidate_t *added)
{
    nest_t *last = nests->nest_count ? &nests->nests[nests->nest_count - 1] : NULL;
    if (!last || last->level_count != added->level_count
        || last->file_offset + (int64_t)last->bytes != added->file_offset
        || last->memory_offset + (int64_t)last->bytes != added->memory_offset)
        return 0;
    uint64_t bytes = last->bytes + added->bytes;
    for (size_t i = 0; i < added->level_count; i++) {
        const unisono_level_t *level = &nests->levels[last->first_level + i];
        if (level->count != added->levels[i].count
            || level->file_stride != (uint64_t)added->levels[i].file_stride
            || level->memory_stride != (uint64_t)added->levels[i].memory_stride)
            return 0;
    }
    if (find_any_clash(added->levels, added->level_count, bytes).groups)
        return 0;
    last->bytes = bytes;
    return 1;
}

static void store(nests_t *nests, const candidate_t *added)
{
    if (nests->error || extend_last(nests, added))
        return;
    if (nests->nest_count == nests->nest_max) {
        fail(nests, -E2BIG);
        return;
    }
    nest_t *grown = grow(nests->nests, &nests->nest_room, nests->nest_count + 1, sizeof *grown);
    nests->nests = grown ? grown : nests->nests;
    unisono_level_t *levels = grow(nests->levels, &nests->level_room,
                                   nests->level_count + added->level_count, sizeof *levels);
    nests->levels = levels ? levels : nests->levels;
    if (!grown || (!levels && added->level_count)) {
        fail(nests, -ENOMEM);
        return;
    }
    nests->nests[nests->nest_count++] = (nest_t){
        .file_offset = added->file_offset,
        .memory_offset = added->memory_offset,
        .bytes = added->bytes,
        .first_level = nests->level_count,
        .level_count = added->level_count,
    };
    for (size_t i = 0; i < added->level_count; i++)
        nests->levels[nests->level_count++] = (unisono_level_t){
            .count = added->levels[i].count,
            .file_stride = (uint64_t)added->levels[i].file_stride,
            .memory_stride = (uint64_t)added->levels[i].memory_stride,
        };
}

/* Division of a nest with too many levels: its level with the fewest copies is taken apart. */
static division_t divide_shortest(const candidate_t *nest)
{
    size_t shortest = 0;
    for (size_t i = 1; i < nest->level_count; i++)
        shortest = nest->levels[i].count < nest->levels[shortest].count ? i : shortest;
    return (division_t){shortest, nest->levels[shortest].count};
}

static void add(nests_t *nests, candidate_t *nest);

static void add_groups(nests_t *nests, const candidate_t *nest, division_t division)
{
    level_t divided = nest->levels[division.level];
    level_t *levels = malloc(nest->level_count * sizeof *levels);
    if (!levels) {
        fail(nests, -ENOMEM);
        return;
    }
    for (uint64_t i = 0; i < division.groups && !nests->error; i++) {
        candidate_t group = *nest;
        group.file_offset += (int64_t)i * divided.file_stride;
        group.memory_offset += (int64_t)i * divided.memory_stride;
        group.levels = levels;
        group.level_count = 0;
        for (size_t k = 0; k < nest->level_count; k++) {
            level_t *level = &levels[group.level_count];
            *level = nest->levels[k];
            if (k == division.level) {
                level->count = (divided.count - i - 1) / division.groups + 1;
                if (level->count == 1)
                    continue;
                level->file_stride *= (int64_t)division.groups;
                level->memory_stride *= (int64_t)division.groups;
            }
            group.level_count++;
        }
        add(nests, &group);
    }
    free(levels);
}

/* Adds a nest, as several when it breaks a rule. The candidate may be changed. */
static void add(nests_t *nests, candidate_t *nest)
{
    order_levels(nest);
    simplify(nest);
    division_t division = nest->level_count > NEST_LEVELS_MAX
                              ? divide_shortest(nest)
                              : find_any_clash(nest->levels, nest->level_count, nest->bytes);
    if (division.groups)
        add_groups(nests, nest, division);
    else
        store(nests, nest);
}

void nests_add(nests_t *nests, int64_t file_offset, int64_t memory_offset, uint64_t bytes)
{
    level_t levels[sizeof nests->around / sizeof *nests->around];
    candidate_t nest = {file_offset, memory_offset, bytes, levels, nests->around_count};
    if (nests->error)
        return;
    for (size_t i = 0; i < nests->around_count; i++)
        levels[i] = nests->around[nests->around_count - 1 - i];
    add(nests, &nest);
}

int64_t nests_memory_start(const nests_t *nests)
{
    int64_t start = nests->nest_count ? INT64_MAX : 0;
    for (size_t i = 0; i < nests->nest_count; i++) {
        int64_t offset = nests->nests[i].memory_offset;
        start = offset < start ? offset : start;
    }
    return start;
}

void nests_free(nests_t *nests)
{
    free(nests->nests);
    free(nests->levels);
    nests->nests = NULL;
    nests->levels = NULL;
}

/* Pieces of all nests; PIECES_MAX + 1 when they are more than PIECES_MAX. */
static size_t count_pieces(const nests_t *nests)
{
    size_t all = 0;
    for (size_t i = 0; i < nests->nest_count && all <= PIECES_MAX; i++) {
        const nest_t *nest = &nests->nests[i];
        uint64_t pieces = 1;
        for (size_t k = 0; k < nest->level_count && pieces <= PIECES_MAX; k++) {
            if (__builtin_mul_overflow(pieces, nests->levels[nest->first_level + k].count, &pieces))
                pieces = PIECES_MAX + 1;
        }
        all += pieces <= PIECES_MAX ? pieces : PIECES_MAX + 1;
    }
    return all <= PIECES_MAX ? all : PIECES_MAX + 1;
}

static int compare_pieces(const void *left, const void *right)
{
    const unisono_piece_t *a = left, *b = right;
    return a->file_offset < b->file_offset ? -1 : a->file_offset > b->file_offset;
}

/* Pieces of a nest, of which `level_count` levels are left. */
static size_t expand(const unisono_level_t *levels, size_t level_count, unisono_piece_t piece,
                     unisono_piece_t *pieces)
{
    size_t count = 0;
    if (!level_count) {
        *pieces = piece;
        return 1;
    }
    const unisono_level_t *level = &levels[level_count - 1];
    for (uint64_t i = 0; i < level->count; i++) {
        count += expand(levels, level_count - 1, piece, pieces + count);
        piece.file_offset += level->file_stride;
        piece.memory_offset += level->memory_stride;
    }
    return count;
}

static int make_list(const nests_t *nests, int64_t memory_base, size_t count,
                     unisono_part_t **part)
{
    unisono_piece_t *pieces = malloc((count + 1) * sizeof *pieces);
    size_t all = 0, kept = 0;
    if (!pieces)
        return -ENOMEM;
    for (size_t i = 0; i < nests->nest_count; i++) {
        const nest_t *nest = &nests->nests[i];
        unisono_piece_t piece = {
            .file_offset = (uint64_t)nest->file_offset,
            .memory_offset = (uint64_t)(nest->memory_offset - memory_base),
            .bytes = nest->bytes,
        };
        const unisono_level_t *levels = nests->levels ? nests->levels + nest->first_level : NULL;
        all += expand(levels, nest->level_count, piece, pieces + all);
    }
    qsort(pieces, all, sizeof *pieces, compare_pieces);
    for (size_t i = 0; i < all; i++) {
        unisono_piece_t *last = kept ? &pieces[kept - 1] : NULL;
        if (last && last->file_offset + last->bytes == pieces[i].file_offset
            && last->memory_offset + last->bytes == pieces[i].memory_offset)
            last->bytes += pieces[i].bytes;
        else
            pieces[kept++] = pieces[i];
    }
    /* Refused when two pieces overlap. */
    int error = unisono_part_list(pieces, kept, part);
    free(pieces);
    return error;
}

static int make_union(const nests_t *nests, int64_t memory_base, unisono_part_t **part)
{
    unisono_part_t *made = NULL;
    int error = 0;
    if (!nests->nest_count)
        error = unisono_part_nested(0, 0, 0, NULL, 0, &made);
    for (size_t i = 0; i < nests->nest_count && !error; i++) {
        const nest_t *nest = &nests->nests[i];
        const unisono_level_t *levels = nests->levels ? nests->levels + nest->first_level : NULL;
        uint64_t file_offset = (uint64_t)nest->file_offset;
        uint64_t memory_offset = (uint64_t)(nest->memory_offset - memory_base);
        error = made ? unisono_part_add(made, file_offset, memory_offset, nest->bytes, levels,
                                        nest->level_count)
                     : unisono_part_nested(file_offset, memory_offset, nest->bytes, levels,
                                           nest->level_count, &made);
    }
    if (error)
        unisono_part_free(made);
    else
        *part = made;
    return error;
}

int nests_make_part(const nests_t *nests, int64_t memory_base, int may_overlap,
                    unisono_part_t **part)
{
    size_t pieces = count_pieces(nests);
    *part = NULL;
    if (nests->error)
        return nests->error;
    if (nests->nest_count > NESTS_MAX)
        return pieces > PIECES_MAX ? -E2BIG : make_list(nests, memory_base, pieces, part);
    if (!may_overlap && pieces >= LIST_PIECES_MIN && pieces <= 2 * nests->nest_count) {
        int error = make_list(nests, memory_base, pieces, part);
        if (error != -EINVAL)
            return error;
    }
    return make_union(nests, memory_base, part);
}
