/* layout_fields.h - fields of a layout, for the files that decode, pair and pack it. */
#ifndef UNISONO_MPI_DATATYPE_LAYOUT_FIELDS_H
#define UNISONO_MPI_DATATYPE_LAYOUT_FIELDS_H

#include "layout.h"
#include "tree.h"

#include <stdatomic.h>

struct layout {
    atomic_uint references;
    layout_facts_t facts;
    item_t data;  /* of one instance; offsets count from the place of the instance */
    node_t tiles; /* endless repetition of instances, at data.offset: a filetype tiles the file */
    tree_t tree;
};

/* Endless repetition as an item; its offset counts from the place of the first instance. It has no node
 * when its data is contiguous, and its number of bytes means nothing. */
static inline item_t layout_tiles(const layout_t *layout)
{
    const node_t *tiles = &layout->tiles;
    int is_contiguous = !tiles->child.node && tiles->stride == (int64_t)tiles->child.bytes;
    return (item_t){layout->data.offset, 0, UINT64_MAX, is_contiguous ? NULL : tiles};
}

/* Data and extent of a datatype, for layout_decode. */
typedef struct decoded {
    item_t data;
    int64_t lower_bound, extent;
} decoded_t;

/* Decodes a datatype into a tree. Failures are those of the tree. */
decoded_t decode_datatype(tree_t *tree, enum representation representation, MPI_Datatype type);

/* Returns -EOVERFLOW when bytes [first, first + bytes) of the data of endless instances do not all
 * lie between -2^62 and 2^62, and -EINVAL when there are no such bytes; or 0. */
int layout_reach(const layout_t *layout, uint64_t first, uint64_t bytes);

#endif
