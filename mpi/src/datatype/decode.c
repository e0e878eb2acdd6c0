#include "basic.h"
#include "contents.h"
#include "layout_fields.h"

#include <errno.h>
#include <stdlib.h>

/* Lower and upper bound of a type. Explicit bounds take precedence over those that follow from data,
 * when one type has both. */
typedef struct bounds {
    int64_t low, high;
    int is_set;   /* explicitly, by MPI_Type_create_resized or an array */
    int is_empty; /* neither data nor explicit bounds */
} bounds_t;

typedef struct part {
    item_t data;
    bounds_t bounds;
} part_t;

typedef struct decoder {
    tree_t *tree;
    enum representation representation;
    unsigned depth; /* constructors around this one */
} decoder_t;

static const bounds_t no_bounds = {.is_empty = 1};

static part_t decode(decoder_t *decoder, MPI_Datatype type);

static int64_t extent_of(const decoder_t *decoder, const bounds_t *bounds)
{
    return tree_plus(decoder->tree, bounds->high, -bounds->low);
}

static bounds_t move_bounds(const decoder_t *decoder, bounds_t bounds, int64_t by)
{
    bounds.low = tree_plus(decoder->tree, bounds.low, by);
    bounds.high = tree_plus(decoder->tree, bounds.high, by);
    return bounds;
}

static bounds_t join_bounds(bounds_t a, bounds_t b)
{
    if (b.is_empty || (a.is_set && !b.is_set))
        return a;
    if (a.is_empty || (b.is_set && !a.is_set))
        return b;
    a.low = b.low < a.low ? b.low : a.low;
    a.high = b.high > a.high ? b.high : a.high;
    return a;
}

static part_t move(const decoder_t *decoder, part_t part, int64_t by)
{
    if (part.data.bytes) {
        part.data.offset = tree_plus(decoder->tree, part.data.offset, by);
        tree_plus(decoder->tree, part.data.offset, item_end(&part.data) - part.data.offset);
    }
    if (!part.bounds.is_empty)
        part.bounds = move_bounds(decoder, part.bounds, by);
    return part;
}

static part_t repeat(const decoder_t *decoder, part_t part, uint64_t count, int64_t stride)
{
    if (!count)
        return (part_t){.bounds = no_bounds};
    part.data = tree_repeat(decoder->tree, part.data, count, stride);
    if (count > 1 && !part.bounds.is_empty) {
        int64_t times = count > (uint64_t)OFFSET_MAX ? OFFSET_MAX : (int64_t)count - 1;
        int64_t reach = tree_times(decoder->tree, times, stride);
        part.bounds = join_bounds(part.bounds, move_bounds(decoder, part.bounds, reach));
    }
    return part;
}

/* Copies at distances of one extent. */
static part_t repeat_dense(const decoder_t *decoder, part_t part, uint64_t count)
{
    int64_t stride = count > 1 ? extent_of(decoder, &part.bounds) : 0;
    return repeat(decoder, part, count, stride);
}

static part_t decode_vector(const decoder_t *decoder, const contents_t *contents, part_t old)
{
    uint64_t count = contents_blocks(contents);
    part_t block = repeat_dense(decoder, old, contents_block_length(contents, 0));
    int64_t stride = 0;
    if (count > 1)
        stride = contents->constructor == BYTE_VECTOR
                     ? contents->values[2]
                     : tree_times(decoder->tree, contents->values[2],
                                  extent_of(decoder, &old.bounds));
    return repeat(decoder, block, count, stride);
}

/* Decodes INDEXED to STRUCTURE: blocks at displacements. `old`: the old type, except for structures. */
static part_t decode_blocks(decoder_t *decoder, const contents_t *contents, part_t old)
{
    enum constructor constructor = contents->constructor;
    uint64_t count = contents_blocks(contents), previous_length = 0;
    MPI_Datatype previous_type = MPI_DATATYPE_NULL;
    int64_t unit = constructor == INDEXED || constructor == INDEXED_BLOCK
                       ? extent_of(decoder, &old.bounds)
                       : 1;
    item_t *items = count < SIZE_MAX / sizeof *items ? malloc((count + 1) * sizeof *items) : NULL;
    part_t all = {.bounds = no_bounds}, block = all;
    if (!items) {
        decoder->tree->error = decoder->tree->error ? decoder->tree->error : -ENOMEM;
        return all;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = contents_block_length(contents, i);
        int is_new = i == 0 || length != previous_length;
        if (constructor == STRUCTURE && (i == 0 || contents->types[i] != previous_type)) {
            previous_type = contents->types[i];
            old = length ? decode(decoder, previous_type) : (part_t){.bounds = no_bounds};
            previous_type = length ? previous_type : MPI_DATATYPE_NULL;
            is_new = 1;
        }
        if (is_new)
            block = repeat_dense(decoder, old, length);
        previous_length = length;
        int64_t displacement = contents_displacement(contents, i);
        part_t moved = block.bounds.is_empty
                           ? block
                           : move(decoder, block,
                                  tree_times(decoder->tree, displacement, unit));
        items[i] = moved.data;
        all.bounds = join_bounds(all.bounds, moved.bounds);
        if (decoder->tree->error)
            break;
    }
    if (!decoder->tree->error)
        all.data = tree_sequence(decoder->tree, items, count);
    free(items);
    return all;
}

/* Indices of one dimension of an array: whole chunks, and a last one that is shorter. */
static item_t decode_dimension(const decoder_t *decoder, const dimension_t *dimension,
                               item_t inner, int64_t unit)
{
    tree_t *tree = decoder->tree;
    item_t pieces[2];
    pieces[0] = tree_repeat(tree, inner, (uint64_t)dimension->chunk, unit);
    pieces[0] = tree_repeat(tree, pieces[0], (uint64_t)dimension->full,
                            dimension->full > 1 ? tree_times(tree, dimension->distance, unit) : 0);
    pieces[1] = tree_repeat(tree, inner, (uint64_t)dimension->rest, unit);
    int64_t starts[2] = {dimension->start, dimension->rest_start};
    for (size_t i = 0; i < 2; i++) {
        if (pieces[i].bytes)
            pieces[i].offset =
                tree_plus(tree, pieces[i].offset, tree_times(tree, starts[i], unit));
    }
    return tree_sequence(tree, pieces, 2);
}

static part_t decode_array(const decoder_t *decoder, const contents_t *contents, part_t old)
{
    tree_t *tree = decoder->tree;
    int64_t unit = extent_of(decoder, &old.bounds);
    part_t all = {.data = old.data, .bounds = {.is_set = 1}};
    for (size_t i = 0; i < contents_dimensions(contents) && !tree->error; i++) {
        dimension_t dimension;
        if (contents_dimension(contents, i, &dimension)) {
            tree->error = -EINVAL;
            break;
        }
        all.data = decode_dimension(decoder, &dimension, all.data, unit);
        unit = tree_times(tree, unit, dimension.size);
    }
    all.bounds.high = unit;
    return all;
}

static part_t decode_basic(const decoder_t *decoder, MPI_Datatype type, const contents_t *contents)
{
    basic_t basic;
    part_t part = {.bounds = no_bounds};
    item_t items[2];
    int error = basic_describe(type, contents, decoder->representation, &basic);
    if (error) {
        decoder->tree->error = decoder->tree->error ? decoder->tree->error : error;
        return part;
    }
    for (size_t i = 0; i < basic.count; i++)
        items[i] = (item_t){basic.offsets[i], 0, basic.sizes[i], NULL};
    part.data = tree_sequence(decoder->tree, items, basic.count);
    part.bounds.high = basic.extent;
    part.bounds.is_empty = basic.count == 0;
    return part;
}

static part_t decode_resized(const decoder_t *decoder, const contents_t *contents, part_t old)
{
    old.bounds = (bounds_t){.low = contents->values[0], .is_set = 1};
    old.bounds.high = tree_plus(decoder->tree, contents->values[0], contents->values[1]);
    return old;
}

static part_t decode_constructor(decoder_t *decoder, MPI_Datatype type, const contents_t *contents)
{
    enum constructor constructor = contents->constructor;
    part_t old = {.bounds = no_bounds};
    if (constructor == NAMED || constructor >= FORTRAN_REAL)
        return decode_basic(decoder, type, contents);
    if (constructor != STRUCTURE)
        old = decode(decoder, contents->types[0]);
    switch (constructor) {
    case CONTIGUOUS:
        return repeat_dense(decoder, old, contents_blocks(contents));
    case VECTOR:
    case BYTE_VECTOR:
        return decode_vector(decoder, contents, old);
    case INDEXED:
    case BYTE_INDEXED:
    case INDEXED_BLOCK:
    case BYTE_INDEXED_BLOCK:
    case STRUCTURE:
        return decode_blocks(decoder, contents, old);
    case SUBARRAY:
    case DISTRIBUTED_ARRAY:
        return decode_array(decoder, contents, old);
    case RESIZED:
        return decode_resized(decoder, contents, old);
    default:
        return old; /* a duplicate */
    }
}

/* Takes the bounds of a type in memory from MPI, which knows the padding of structures. */
static void take_bounds(const decoder_t *decoder, MPI_Datatype type, part_t *part)
{
    MPI_Count low = 0, extent = 0;
    if (MPI_Type_get_extent_x(type, &low, &extent))
        decoder->tree->error = -EINVAL;
    part->bounds = (bounds_t){.low = low};
    part->bounds.high = tree_plus(decoder->tree, low, extent);
}

static part_t decode(decoder_t *decoder, MPI_Datatype type)
{
    tree_t *tree = decoder->tree;
    part_t part = {.bounds = no_bounds};
    contents_t contents;
    int error = decoder->depth == CONSTRUCTORS_MAX ? -E2BIG : contents_read(type, &contents);
    if (error) {
        tree->error = tree->error ? tree->error : error;
        return part;
    }
    decoder->depth++;
    part = decode_constructor(decoder, type, &contents);
    decoder->depth--;
    if (!tree->error && decoder->representation == NATIVE && contents.constructor != NAMED)
        take_bounds(decoder, type, &part);
    contents_free(&contents);
    return part;
}

decoded_t decode_datatype(tree_t *tree, enum representation representation, MPI_Datatype type)
{
    decoder_t decoder = {tree, representation, 0};
    part_t part = decode(&decoder, type);
    int64_t low = part.bounds.is_empty ? 0 : part.bounds.low;
    int64_t high = part.bounds.is_empty ? 0 : part.bounds.high;
    return (decoded_t){part.data, low, tree_plus(tree, high, -low)};
}
