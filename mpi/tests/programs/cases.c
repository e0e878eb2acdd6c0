/* cases.c - etypes, filetypes that ascend, and memory types in any order. */
#include "cases.h"
#include "check.h"

shape_t *make_etype(int number)
{
    switch (number) {
    case 0:
        return named(MPI_INT, sizeof(int));
    case 1:
        return named(MPI_DOUBLE, sizeof(double));
    case 2:
        return named(MPI_CHAR, 1);
    case 3:
        return committed(contiguous(3, named(MPI_SHORT, sizeof(short))));
    case 4: {
        const shape_t *of[] = {named(MPI_INT, sizeof(int)), named(MPI_CHAR, 1),
                               named(MPI_DOUBLE, sizeof(double))};
        return committed(resized(0, 24, structure(3, (int[]){1, 1, 1}, (long[]){0, 8, 16}, of)));
    }
    default:
        return committed(resized(0, 12, named(MPI_INT, sizeof(int))));
    }
}

/* Blocks of random lengths at random places, which ascend. */
static shape_t *irregular(const shape_t *etype, unsigned long *seed)
{
    int blocks[12], places[12], at = (int)between(seed, 0, 3);
    int count = (int)between(seed, 1, 12);
    for (int i = 0; i < count; i++) {
        blocks[i] = (int)between(seed, i ? 0 : 1, 3);
        places[i] = at;
        at += blocks[i] + (int)between(seed, 0, 4);
    }
    return resized(0, (at + 1) * etype->extent, indexed(count, blocks, places, etype));
}

static shape_t *block_of_rows(const shape_t *etype, int rank, int size, int order, int dimensions)
{
    int slow = order == MPI_ORDER_C ? dimensions - 1 : 0;
    int sizes[] = {4, 3, 2}, subsizes[] = {2, 3, 1}, starts[] = {1, 0, 1};
    sizes[slow] = 3 * size;
    subsizes[slow] = 3;
    starts[slow] = 3 * rank;
    return subarray(dimensions, sizes, subsizes, starts, order, etype);
}

static shape_t *distributed(const shape_t *etype, int rank, int size, int variant)
{
    static const struct {
        int dimensions, order, sizes[3], distributions[3], arguments[3];
    } variants[] = {
        {2, MPI_ORDER_C, {8, 9}, {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
         {MPI_DISTRIBUTE_DFLT_DARG, 2}},
        {3, MPI_ORDER_FORTRAN, {8, 2, 8},
         {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK},
         {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}},
        {1, MPI_ORDER_C, {37}, {MPI_DISTRIBUTE_CYCLIC}, {3}},
    };
    int dimensions = variants[variant].dimensions, grid[3] = {0, 0, 0};
    for (int d = 0; d < dimensions; d++)
        if (variants[variant].distributions[d] == MPI_DISTRIBUTE_NONE)
            grid[d] = 1;
    MPI_Dims_create(size, dimensions, grid);
    return darray(size, rank, dimensions, variants[variant].sizes, variants[variant].distributions,
                  variants[variant].arguments, grid, variants[variant].order, etype);
}

static shape_t *mixed(const shape_t *etype)
{
    long x = etype->extent;
    const shape_t *of[] = {etype, contiguous(2, etype), hvector(2, 1, 2 * x, etype)};
    long bytes[] = {3, 3 + 2 * x, 3 + 7 * x};
    return resized(0, 15 * x + 5, structure(3, (int[]){1, 2, 1}, bytes, of));
}

static shape_t *nested(const shape_t *etype)
{
    const shape_t *pair = indexed(2, (int[]){1, 2}, (int[]){0, 2}, etype);
    const shape_t *rows = resized(0, 48 * etype->extent, vector(3, 2, 4, pair));
    return vector(2, 1, 2, rows);
}

/* Filetypes with blocks at odd places get an extent: MPI libraries disagree about padding at their
 * ends. */
shape_t *make_filetype(int number, const shape_t *etype, int rank, int size, unsigned long *seed)
{
    long x = etype->extent;
    switch (number) {
    case 0:
        return committed(contiguous(1, etype));
    case 1:
        return committed(resized(0, 8 * size * x,
                                 hindexed(1, (int[]){1}, (long[]){2 * rank * x},
                                          vector(4, 2, 2 * size, etype))));
    case 2:
        return committed(resized(0, 13 * x + 4, hvector(5, 1, 3 * x + 1, etype)));
    case 3:
        return committed(indexed(4, (int[]){1, 3, 2, 4}, (int[]){0, 2, 9, 12}, etype));
    case 4:
        return committed(resized(0, 12 * x + 1,
                                 hindexed(3, (int[]){2, 1, 2},
                                          (long[]){7, 7 + 5 * x, 7 + 9 * x}, etype)));
    case 5:
        return committed(mixed(etype));
    case 6:
        return committed(block_of_rows(etype, rank, size, MPI_ORDER_C, 2));
    case 7:
        return committed(block_of_rows(etype, rank, size, MPI_ORDER_FORTRAN, 3));
    case 8:
    case 9:
    case 10:
        return committed(distributed(etype, rank, size, number - 8));
    case 11:
        return committed(resized(0, 5 * x, contiguous(2, etype)));
    case 12:
        return committed(nested(etype));
    case 13:
        return committed(resized(-4, 3 * x + 9, hindexed(1, (int[]){2}, (long[]){8}, etype)));
    case 14:
        return committed(indexed_block(3, 2, (int[]){1, 4, 9}, etype));
    case 15:
        return committed(resized(0, 9 * x,
                                 hindexed_block(3, 1, (long[]){0, 2 * x + 3, 8 * x}, etype)));
    case 16:
        return committed(duplicate(vector(3, 2, 5, etype)));
    default:
        return committed(irregular(etype, seed));
    }
}

/* Blocks of random lengths, in random order, that do not overlap. */
static shape_t *scattered(const shape_t *etype, unsigned long *seed)
{
    int blocks[9], places[9], at = -20, count = (int)between(seed, 2, 9);
    for (int i = 0; i < count; i++) {
        blocks[i] = (int)between(seed, 0, 3);
        places[i] = at;
        at += blocks[i] + (int)between(seed, 0, 3);
    }
    for (int i = count - 1; i > 0; i--) {
        int j = (int)between(seed, 0, i), block = blocks[i], place_of = places[i];
        blocks[i] = blocks[j];
        places[i] = places[j];
        blocks[j] = block;
        places[j] = place_of;
    }
    return resized(0, (at + 25) * etype->extent, indexed(count, blocks, places, etype));
}

static shape_t *absolute(const shape_t *etype, const char *base)
{
    MPI_Aint address;
    MPI_Get_address(base, &address);
    long x = etype->extent;
    long bytes[] = {(long)address + 6 * x, (long)address - 3 * x, (long)address + 9 * x + 5};
    return hindexed(3, (int[]){2, 1, 3}, bytes, etype);
}

shape_t *make_memory(int number, const shape_t *etype, const char *base, unsigned long *seed)
{
    long x = etype->extent;
    const shape_t *pair[] = {etype, etype};
    switch (number) {
    case 0:
        return committed(contiguous(1, etype));
    case 1:
        return committed(contiguous(3, etype));
    case 2:
        return committed(vector(3, 1, 2, etype));
    case 3:
        return committed(hvector(4, 1, -(x + 3), etype));
    case 4:
        return committed(indexed(3, (int[]){2, 1, 3}, (int[]){1, 5, 8}, etype));
    case 5:
        return committed(resized(-3, 7 * x + 3,
                                 structure(2, (int[]){1, 2}, (long[]){0, 3 * x}, pair)));
    case 6:
        return committed(absolute(etype, base));
    case 7:
        return committed(indexed(3, (int[]){1, 2, 1}, (int[]){9, 3, 0}, etype));
    case 8:
        return committed(resized(0, x, vector(2, 1, 4, etype)));
    case 9:
        return committed(subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_FORTRAN,
                                  etype));
    case 10:
        return named(MPI_BYTE, 1);
    case 11:
        return committed(vector(2, 2, -3, etype));
    case 12:
        return committed(resized(0, -9 * x, contiguous(2, etype)));
    default:
        return committed(scattered(etype, seed));
    }
}

int memory_count_max(int number)
{
    return number == 6 ? 1 : number == 8 ? 4 : 5;
}

int memory_is_absolute(int number)
{
    return number == 6;
}

int memory_is_bytes(int number)
{
    return number == 10;
}
