#include "nested_strides.h"

#include <errno.h>
#include <stdlib.h>

/* Lowest number of pieces for which a list is better than a union of nested strides. */
#define LIST_PIECES_MIN 16

/* A nested stride that is not yet in the collection. Levels: the innermost first. */
typedef struct candidate {
    int64_t file_offset, memory_offset;
    uint64_t bytes;
    level_t *levels;
    size_t level_count;
} candidate_t;

void strides_begin(strides_t *strides, size_t count_max)
{
    strides->error = 0;
    strides->count_max = count_max;
    strides->all = NULL;
    strides->levels = NULL;
    strides->count = strides->room = 0;
    strides->level_count = strides->level_room = 0;
    strides->around_count = 0;
}

void strides_push(strides_t *strides, level_t level)
{
    strides->around[strides->around_count++] = level;
}

void strides_pop(strides_t *strides)
{
    strides->around_count--;
}

static void fail(strides_t *strides, int error)
{
    strides->error = strides->error ? strides->error : error;
}

/* Returns an array with room for `needed` elements. NULL leaves the old one valid. */
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

/* Division of a nested stride into `groups` others, each with every `groups`-th copy of one level. */
typedef struct division {
    size_t level;
    uint64_t groups; /* 0: it need not be divided */
} division_t;

static int64_t stride_of(const level_t *level, int in_file)
{
    return in_file ? level->file_stride : level->memory_stride;
}

/* Division of a nested stride that breaks the rule for the file or the rule for memory. Levels: the
 * innermost first. */
static division_t find_clash(const level_t *levels, size_t count, uint64_t bytes, int in_file)
{
    unsigned char order[LEVELS_MAX];
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
            /* Every `groups`-th copy is far enough from the next. Taking one of the inner levels
             * apart also separates the copies, and may make fewer groups. */
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

/* Division of a nested stride that breaks a rule. */
static division_t find_any_clash(const level_t *levels, size_t count, uint64_t bytes)
{
    division_t division = find_clash(levels, count, bytes, 0);
    return division.groups ? division : find_clash(levels, count, bytes, 1);
}

/* Sorts levels by their strides in the file, and makes negative strides positive. The pieces stay
 * the same. */
static void order_levels(candidate_t *nested)
{
    for (size_t i = 0; i < nested->level_count; i++) {
        level_t level = nested->levels[i];
        if (level.file_stride < 0) {
            nested->file_offset += (int64_t)(level.count - 1) * level.file_stride;
            nested->memory_offset += (int64_t)(level.count - 1) * level.memory_stride;
            level.file_stride = -level.file_stride;
            level.memory_stride = -level.memory_stride;
        }
        size_t at = i;
        for (; at && nested->levels[at - 1].file_stride > level.file_stride; at--)
            nested->levels[at] = nested->levels[at - 1];
        nested->levels[at] = level;
    }
}

/* Merges a level whose copies are contiguous into the piece, and one that continues the level inside
 * it into that level. */
static void simplify(candidate_t *nested)
{
    size_t kept = 0;
    for (size_t i = 0; i < nested->level_count; i++) {
        level_t level = nested->levels[i], *inner = kept ? &nested->levels[kept - 1] : NULL;
        int64_t file = 0, memory = 0;
        if (!inner && level.file_stride == (int64_t)nested->bytes
            && level.memory_stride == (int64_t)nested->bytes)
            nested->bytes *= level.count;
        else if (inner
                 && !__builtin_mul_overflow((int64_t)inner->count, inner->file_stride, &file)
                 && !__builtin_mul_overflow((int64_t)inner->count, inner->memory_stride, &memory)
                 && file == level.file_stride && memory == level.memory_stride)
            inner->count *= level.count;
        else
            nested->levels[kept++] = level;
    }
    nested->level_count = kept;
}

/* Appends a valid nested stride to the one before it, if their pieces are contiguous and their levels
 * are equal. Returns 1 when it has. */
static int extend_last(strides_t *strides, const candidate_t *added)
{
    nested_stride_t *last = strides->count ? &strides->all[strides->count - 1] : NULL;
    if (!last || last->level_count != added->level_count
        || last->file_offset + (int64_t)last->bytes != added->file_offset
        || last->memory_offset + (int64_t)last->bytes != added->memory_offset)
        return 0;
    uint64_t bytes = last->bytes + added->bytes;
    for (size_t i = 0; i < added->level_count; i++) {
        const unisono_level_t *level = &strides->levels[last->first_level + i];
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

static void store(strides_t *strides, const candidate_t *added)
{
    if (strides->error || extend_last(strides, added))
        return;
    if (strides->count == strides->count_max) {
        fail(strides, -E2BIG);
        return;
    }
    nested_stride_t *grown = grow(strides->all, &strides->room, strides->count + 1, sizeof *grown);
    strides->all = grown ? grown : strides->all;
    unisono_level_t *levels = grow(strides->levels, &strides->level_room,
                                   strides->level_count + added->level_count, sizeof *levels);
    strides->levels = levels ? levels : strides->levels;
    if (!grown || (!levels && added->level_count)) {
        fail(strides, -ENOMEM);
        return;
    }
    strides->all[strides->count++] = (nested_stride_t){
        .file_offset = added->file_offset,
        .memory_offset = added->memory_offset,
        .bytes = added->bytes,
        .first_level = strides->level_count,
        .level_count = added->level_count,
    };
    for (size_t i = 0; i < added->level_count; i++)
        strides->levels[strides->level_count++] = (unisono_level_t){
            .count = added->levels[i].count,
            .file_stride = (uint64_t)added->levels[i].file_stride,
            .memory_stride = (uint64_t)added->levels[i].memory_stride,
        };
}

/* Division of a nested stride with too many levels: along the level with the fewest copies. */
static division_t divide_shortest(const candidate_t *nested)
{
    size_t shortest = 0;
    for (size_t i = 1; i < nested->level_count; i++)
        shortest = nested->levels[i].count < nested->levels[shortest].count ? i : shortest;
    return (division_t){shortest, nested->levels[shortest].count};
}

static void add(strides_t *strides, candidate_t *nested);

static void add_groups(strides_t *strides, const candidate_t *nested, division_t division)
{
    level_t divided = nested->levels[division.level];
    level_t *levels = malloc(nested->level_count * sizeof *levels);
    if (!levels) {
        fail(strides, -ENOMEM);
        return;
    }
    for (uint64_t i = 0; i < division.groups && !strides->error; i++) {
        candidate_t group = *nested;
        group.file_offset += (int64_t)i * divided.file_stride;
        group.memory_offset += (int64_t)i * divided.memory_stride;
        group.levels = levels;
        group.level_count = 0;
        for (size_t k = 0; k < nested->level_count; k++) {
            level_t *level = &levels[group.level_count];
            *level = nested->levels[k];
            if (k == division.level) {
                level->count = (divided.count - i - 1) / division.groups + 1;
                if (level->count == 1)
                    continue;
                level->file_stride *= (int64_t)division.groups;
                level->memory_stride *= (int64_t)division.groups;
            }
            group.level_count++;
        }
        add(strides, &group);
    }
    free(levels);
}

/* Adds a nested stride, as several when it breaks a rule. The candidate may be changed. */
static void add(strides_t *strides, candidate_t *nested)
{
    order_levels(nested);
    simplify(nested);
    division_t division = nested->level_count > LEVELS_MAX
                              ? divide_shortest(nested)
                              : find_any_clash(nested->levels, nested->level_count, nested->bytes);
    if (division.groups)
        add_groups(strides, nested, division);
    else
        store(strides, nested);
}

void strides_add(strides_t *strides, int64_t file_offset, int64_t memory_offset, uint64_t bytes)
{
    level_t levels[sizeof strides->around / sizeof *strides->around];
    candidate_t nested = {file_offset, memory_offset, bytes, levels, strides->around_count};
    if (strides->error)
        return;
    for (size_t i = 0; i < strides->around_count; i++)
        levels[i] = strides->around[strides->around_count - 1 - i];
    add(strides, &nested);
}

int64_t strides_memory_start(const strides_t *strides)
{
    int64_t start = strides->count ? INT64_MAX : 0;
    for (size_t i = 0; i < strides->count; i++) {
        int64_t offset = strides->all[i].memory_offset;
        start = offset < start ? offset : start;
    }
    return start;
}

void strides_free(strides_t *strides)
{
    free(strides->all);
    free(strides->levels);
    strides->all = NULL;
    strides->levels = NULL;
}

/* Number of pieces of all nested strides; PIECES_MAX + 1 when they are more than PIECES_MAX. */
static size_t count_pieces(const strides_t *strides)
{
    size_t all = 0;
    for (size_t i = 0; i < strides->count && all <= PIECES_MAX; i++) {
        const nested_stride_t *nested = &strides->all[i];
        uint64_t pieces = 1;
        for (size_t k = 0; k < nested->level_count && pieces <= PIECES_MAX; k++) {
            if (__builtin_mul_overflow(pieces, strides->levels[nested->first_level + k].count,
                                       &pieces))
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

/* Flattens a nested stride, of which `level_count` levels are left, into pieces. Returns their
 * number. */
static size_t flatten(const unisono_level_t *levels, size_t level_count, unisono_piece_t piece,
                      unisono_piece_t *pieces)
{
    size_t count = 0;
    if (!level_count) {
        *pieces = piece;
        return 1;
    }
    const unisono_level_t *level = &levels[level_count - 1];
    for (uint64_t i = 0; i < level->count; i++) {
        count += flatten(levels, level_count - 1, piece, pieces + count);
        piece.file_offset += level->file_stride;
        piece.memory_offset += level->memory_stride;
    }
    return count;
}

static int make_list(const strides_t *strides, int64_t memory_base, size_t count,
                     unisono_part_t **part)
{
    unisono_piece_t *pieces = malloc((count + 1) * sizeof *pieces);
    size_t all = 0, kept = 0;
    if (!pieces)
        return -ENOMEM;
    for (size_t i = 0; i < strides->count; i++) {
        const nested_stride_t *nested = &strides->all[i];
        unisono_piece_t piece = {
            .file_offset = (uint64_t)nested->file_offset,
            .memory_offset = (uint64_t)(nested->memory_offset - memory_base),
            .bytes = nested->bytes,
        };
        const unisono_level_t *levels =
            strides->levels ? strides->levels + nested->first_level : NULL;
        all += flatten(levels, nested->level_count, piece, pieces + all);
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
    /* The library refuses pieces that overlap. */
    int error = unisono_part_list(pieces, kept, part);
    free(pieces);
    return error;
}

static int make_union(const strides_t *strides, int64_t memory_base, unisono_part_t **part)
{
    unisono_part_t *made = NULL;
    int error = 0;
    if (!strides->count)
        error = unisono_part_nested(0, 0, 0, NULL, 0, &made);
    for (size_t i = 0; i < strides->count && !error; i++) {
        const nested_stride_t *nested = &strides->all[i];
        const unisono_level_t *levels =
            strides->levels ? strides->levels + nested->first_level : NULL;
        uint64_t file_offset = (uint64_t)nested->file_offset;
        uint64_t memory_offset = (uint64_t)(nested->memory_offset - memory_base);
        error = made ? unisono_part_add(made, file_offset, memory_offset, nested->bytes, levels,
                                        nested->level_count)
                     : unisono_part_nested(file_offset, memory_offset, nested->bytes, levels,
                                           nested->level_count, &made);
    }
    if (error)
        unisono_part_free(made);
    else
        *part = made;
    return error;
}

int strides_make_part(const strides_t *strides, int64_t memory_base, int may_overlap,
                      unisono_part_t **part)
{
    size_t pieces = count_pieces(strides);
    *part = NULL;
    if (strides->error)
        return strides->error;
    if (strides->count > NESTED_STRIDES_MAX)
        return pieces > PIECES_MAX ? -E2BIG : make_list(strides, memory_base, pieces, part);
    if (!may_overlap && pieces >= LIST_PIECES_MIN && pieces <= 2 * strides->count) {
        int error = make_list(strides, memory_base, pieces, part);
        if (error != -EINVAL)
            return error;
    }
    return make_union(strides, memory_base, part);
}
