/* shape.c - constructors of datatypes, byte by byte as the standard defines their typemaps. */
#include "shape.h"

#include <stdlib.h>
#include <string.h>

static shape_t *shapes;

static shape_t *new_shape(void)
{
    shape_t *shape = calloc(1, sizeof *shape);
    if (!shape)
        abort();
    shape->next = shapes;
    shapes = shape;
    return shape;
}

/* Adds the data of `count` instances of `of`, the first at byte `byte`. */
static void add(shape_t *shape, const shape_t *of, long byte, long count)
{
    long bytes = shape->bytes + count * of->bytes;
    shape->at = realloc(shape->at, (size_t)(bytes + 1) * sizeof *shape->at);
    shape->mirror = realloc(shape->mirror, (size_t)(bytes + 1) * sizeof *shape->mirror);
    if (!shape->at || !shape->mirror)
        abort();
    for (long i = 0; i < count; i++)
        for (long k = 0; k < of->bytes; k++) {
            shape->at[shape->bytes + i * of->bytes + k] = byte + i * of->extent + of->at[k];
            shape->mirror[shape->bytes + i * of->bytes + k] =
                (int)(shape->bytes + i * of->bytes) + of->mirror[k];
        }
    shape->bytes = bytes;
    shape->elements += count * of->elements;
}

/* Takes the extent from MPI. */
static shape_t *finished(shape_t *shape)
{
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(shape->type, &lower_bound, &extent);
    shape->extent = (long)extent;
    return shape;
}

shape_t *named(MPI_Datatype type, int bytes)
{
    shape_t *shape = new_shape();
    shape->at = malloc((size_t)bytes * sizeof *shape->at);
    shape->mirror = malloc((size_t)bytes * sizeof *shape->mirror);
    if (!shape->at || !shape->mirror)
        abort();
    for (int k = 0; k < bytes; k++) {
        shape->at[k] = k;
        shape->mirror[k] = bytes - 1 - k;
    }
    shape->type = type;
    shape->bytes = shape->extent = bytes;
    shape->elements = 1;
    shape->is_named = 1;
    return shape;
}

shape_t *contiguous(int count, const shape_t *of)
{
    shape_t *shape = new_shape();
    add(shape, of, 0, count);
    MPI_Type_contiguous(count, of->type, &shape->type);
    return finished(shape);
}

shape_t *hvector(int count, int block, long stride_bytes, const shape_t *of)
{
    shape_t *shape = new_shape();
    for (int i = 0; i < count; i++)
        add(shape, of, i * stride_bytes, block);
    MPI_Type_create_hvector(count, block, stride_bytes, of->type, &shape->type);
    return finished(shape);
}

shape_t *vector(int count, int block, int stride, const shape_t *of)
{
    shape_t *shape = new_shape();
    for (int i = 0; i < count; i++)
        add(shape, of, i * (long)stride * of->extent, block);
    MPI_Type_vector(count, block, stride, of->type, &shape->type);
    return finished(shape);
}

shape_t *indexed(int count, const int *blocks, const int *places, const shape_t *of)
{
    shape_t *shape = new_shape();
    for (int i = 0; i < count; i++)
        add(shape, of, places[i] * of->extent, blocks[i]);
    MPI_Type_indexed(count, blocks, places, of->type, &shape->type);
    return finished(shape);
}

shape_t *hindexed(int count, const int *blocks, const long *bytes, const shape_t *of)
{
    shape_t *shape = new_shape();
    for (int i = 0; i < count; i++)
        add(shape, of, bytes[i], blocks[i]);
    MPI_Type_create_hindexed(count, blocks, (const MPI_Aint *)bytes, of->type, &shape->type);
    return finished(shape);
}

shape_t *indexed_block(int count, int block, const int *places, const shape_t *of)
{
    shape_t *shape = new_shape();
    for (int i = 0; i < count; i++)
        add(shape, of, places[i] * of->extent, block);
    MPI_Type_create_indexed_block(count, block, places, of->type, &shape->type);
    return finished(shape);
}

shape_t *hindexed_block(int count, int block, const long *bytes, const shape_t *of)
{
    shape_t *shape = new_shape();
    for (int i = 0; i < count; i++)
        add(shape, of, bytes[i], block);
    MPI_Type_create_hindexed_block(count, block, (const MPI_Aint *)bytes, of->type, &shape->type);
    return finished(shape);
}

shape_t *structure(int count, const int *blocks, const long *bytes, const shape_t *const *of)
{
    shape_t *shape = new_shape();
    MPI_Datatype types[16];
    for (int i = 0; i < count; i++) {
        add(shape, of[i], bytes[i], blocks[i]);
        types[i] = of[i]->type;
    }
    MPI_Type_create_struct(count, blocks, (const MPI_Aint *)bytes, types, &shape->type);
    return finished(shape);
}

/* Adds the elements of an array that `owns` selects in each dimension, in the order of the array. */
static void add_array(shape_t *shape, const shape_t *of, int dimensions, const int *sizes,
                      char *const *owns, int order)
{
    long total = 1;
    for (int d = 0; d < dimensions; d++)
        total *= sizes[d];
    for (long i = 0; i < total; i++) {
        long rest = i;
        int is_owned = 1;
        for (int step = 0; step < dimensions; step++) {
            int d = order == MPI_ORDER_C ? dimensions - 1 - step : step;
            is_owned &= owns[d][rest % sizes[d]];
            rest /= sizes[d];
        }
        if (is_owned)
            add(shape, of, i * of->extent, 1);
    }
    shape->extent = total * of->extent;
}

shape_t *subarray(int dimensions, const int *sizes, const int *subsizes, const int *starts,
                  int order, const shape_t *of)
{
    shape_t *shape = new_shape();
    char *owns[DIMENSIONS_MAX] = {NULL};
    for (int d = 0; d < dimensions; d++) {
        owns[d] = calloc((size_t)sizes[d], 1);
        memset(owns[d] + starts[d], 1, (size_t)subsizes[d]);
    }
    add_array(shape, of, dimensions, sizes, owns, order);
    for (int d = 0; d < dimensions; d++)
        free(owns[d]);
    MPI_Type_create_subarray(dimensions, sizes, subsizes, starts, order, of->type, &shape->type);
    return shape;
}

shape_t *darray(int size, int rank, int dimensions, const int *sizes, const int *distributions,
                const int *arguments, const int *grid, int order, const shape_t *of)
{
    shape_t *shape = new_shape();
    char *owns[DIMENSIONS_MAX] = {NULL};
    int rest = rank;
    /* The processes of a grid are counted row-major, whatever the order of the array. */
    for (int d = dimensions - 1; d >= 0; d--) {
        int place = rest % grid[d], block = arguments[d];
        rest /= grid[d];
        owns[d] = calloc((size_t)sizes[d], 1);
        if (distributions[d] == MPI_DISTRIBUTE_NONE)
            block = sizes[d];
        else if (block == MPI_DISTRIBUTE_DFLT_DARG)
            block = distributions[d] == MPI_DISTRIBUTE_BLOCK ? (sizes[d] + grid[d] - 1) / grid[d]
                                                             : 1;
        for (int i = 0; i < sizes[d]; i++)
            owns[d][i] = i / block % grid[d] == place;
    }
    add_array(shape, of, dimensions, sizes, owns, order);
    for (int d = 0; d < dimensions; d++)
        free(owns[d]);
    MPI_Type_create_darray(size, rank, dimensions, sizes, distributions, arguments, grid, order,
                           of->type, &shape->type);
    return shape;
}

shape_t *resized(long lower_bound, long extent, const shape_t *of)
{
    shape_t *shape = new_shape();
    add(shape, of, 0, 1);
    shape->extent = extent;
    MPI_Type_create_resized(of->type, lower_bound, extent, &shape->type);
    return shape;
}

shape_t *duplicate(const shape_t *of)
{
    shape_t *shape = new_shape();
    add(shape, of, 0, 1);
    shape->extent = of->extent;
    MPI_Type_dup(of->type, &shape->type);
    return shape;
}

long place(const shape_t *shape, long k)
{
    return k / shape->bytes * shape->extent + shape->at[k % shape->bytes];
}

shape_t *committed(shape_t *shape)
{
    if (!shape->is_named)
        MPI_Type_commit(&shape->type);
    return shape;
}

void shapes_free(void)
{
    while (shapes) {
        shape_t *shape = shapes;
        shapes = shape->next;
        if (!shape->is_named)
            MPI_Type_free(&shape->type);
        free(shape->at);
        free(shape->mirror);
        free(shape);
    }
}
