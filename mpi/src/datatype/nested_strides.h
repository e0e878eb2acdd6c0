/* nested_strides.h - nested strides of an access, collected until they make a part.
 *
 * A nested stride is a contiguous piece that levels repeat, as in the nested-strided requests of
 * Nieuwejaar and Kotz (The Galley parallel file system, 1996). Invariants of each one, which are the
 * rules of unisono_part_nested:
 * - It has at most 16 levels, each of at least two copies, in the order of their strides in the file.
 * - The stride of each level in the file is at least the length of what it repeats.
 * - In the order of strides in memory, each is positive and at least the length of the levels
 *   before it.
 * A nested stride that breaks these rules is added as several.
 */
#ifndef UNISONO_MPI_DATATYPE_NESTED_STRIDES_H
#define UNISONO_MPI_DATATYPE_NESTED_STRIDES_H

#include "tree.h"

#include <unisono.h>

#define LEVELS_MAX 16
#define NESTED_STRIDES_MAX 65536
#define PIECES_MAX (1 << 20)

/* Repetition of what is inside it. The level that was pushed last is the innermost. */
typedef struct level {
    uint64_t count;
    int64_t file_stride, memory_stride;
} level_t;

/* A piece, repeated by its levels. */
typedef struct nested_stride {
    int64_t file_offset, memory_offset;
    uint64_t bytes;
    size_t first_level; /* among the levels of the collection; the innermost */
    size_t level_count;
} nested_stride_t;

/* Collection of nested strides. */
typedef struct strides {
    int error;        /* 0; or -ENOMEM, -E2BIG when there are more than count_max */
    size_t count_max; /* at most PIECES_MAX */
    nested_stride_t *all;
    size_t count, room;
    unisono_level_t *levels;
    size_t level_count, level_room;
    level_t around[2 * TREE_DEPTH_MAX + 2]; /* levels around the next piece, the outermost first */
    size_t around_count;
} strides_t;

/* Begins an empty collection of at most `count_max` nested strides. */
void strides_begin(strides_t *strides, size_t count_max);

/* Pushes a level around the pieces that are added next; pops it. */
void strides_push(strides_t *strides, level_t level);
void strides_pop(strides_t *strides);

/* Adds a piece with the levels around it. */
void strides_add(strides_t *strides, int64_t file_offset, int64_t memory_offset, uint64_t bytes);

/* Lowest memory offset of the nested strides; 0 when there are none. */
int64_t strides_memory_start(const strides_t *strides);

/* Makes a part, whose memory begins at byte `memory_base`. may_overlap: 1 when a byte of memory may
 * have several places in the file. A byte of the file may always have several places in memory.
 * Returns 0 or a negative errno. */
int strides_make_part(const strides_t *strides, int64_t memory_base, int may_overlap,
                      unisono_part_t **part);

void strides_free(strides_t *strides);

#endif
