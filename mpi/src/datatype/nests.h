/* nests.h - nested strides of an access, collected until they make a part.
 *
 * Invariants of the nests of a collection, which are the rules of unisono_part_nested:
 * - At most 16 levels, each of at least two copies, in the order of their strides in the file.
 * - The stride of each level in the file is at least the length of what it repeats.
 * - In the order of strides in memory, each is positive and at least the length of the levels
 *   before it.
 * A nest that breaks these rules is added as several.
 */
#ifndef UNISONO_MPI_DATATYPE_NESTS_H
#define UNISONO_MPI_DATATYPE_NESTS_H

#include "tree.h"

#include <unisono.h>

#define NEST_LEVELS_MAX 16
#define NESTS_MAX 65536
#define PIECES_MAX (1 << 20)

/* Repetition of what is inside it, which is innermost when it is the last that was pushed. */
typedef struct level {
    uint64_t count;
    int64_t file_stride, memory_stride;
} level_t;

typedef struct nest {
    int64_t file_offset, memory_offset;
    uint64_t bytes;
    size_t first_level; /* among the levels of the collection; the innermost */
    size_t level_count;
} nest_t;

typedef struct nests {
    int error;       /* 0; or -ENOMEM, -E2BIG when there are more than nest_max */
    size_t nest_max; /* at most PIECES_MAX */
    nest_t *nests;
    size_t nest_count, nest_room;
    unisono_level_t *levels;
    size_t level_count, level_room;
    level_t around[2 * TREE_DEPTH_MAX + 2]; /* levels around the next piece, the outermost first */
    size_t around_count;
} nests_t;

/* Begins an empty collection of at most `nest_max` nests. */
void nests_begin(nests_t *nests, size_t nest_max);

/* Pushes a level around the pieces that are added next; pops it. */
void nests_push(nests_t *nests, level_t level);
void nests_pop(nests_t *nests);

/* Adds a piece with the levels around it. */
void nests_add(nests_t *nests, int64_t file_offset, int64_t memory_offset, uint64_t bytes);

/* Lowest byte of memory that has a place in a nest; 0 without any. */
int64_t nests_memory_start(const nests_t *nests);

/* Makes a part, whose memory begins at byte `memory_base`. may_overlap: 1 when bytes of memory may
 * have several places in the file; bytes of the file may have several places in memory in any case.
 * Returns 0 or a negative errno. */
int nests_make_part(const nests_t *nests, int64_t memory_base, int may_overlap,
                    unisono_part_t **part);

void nests_free(nests_t *nests);

#endif
