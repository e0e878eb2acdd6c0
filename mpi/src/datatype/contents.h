/* contents.h - how a datatype was made: its constructor, and the arguments of the constructor.
 *
 * The arguments of constructors with small and large counts, and of the deprecated ones, are read
 * in one order: as the standard lists them, displacements after all counts.
 */
#ifndef UNISONO_MPI_DATATYPE_CONTENTS_H
#define UNISONO_MPI_DATATYPE_CONTENTS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* Greatest depth of nested constructors that can be decoded. */
#define CONSTRUCTORS_MAX 512

/* Constructors, whatever the types of their arguments: int, MPI_Aint or MPI_Count. */
enum constructor {
    NAMED,
    DUPLICATE,
    CONTIGUOUS,
    VECTOR,        /* count, block length, stride in extents */
    BYTE_VECTOR,   /* ... in bytes */
    INDEXED,       /* count, block lengths, displacements in extents */
    BYTE_INDEXED,  /* ... in bytes */
    INDEXED_BLOCK, /* count, block length, displacements in extents */
    BYTE_INDEXED_BLOCK,
    STRUCTURE, /* count, block lengths, displacements in bytes; a type for each */
    SUBARRAY,  /* dimensions, sizes, subsizes, starts, order */
    DISTRIBUTED_ARRAY, /* size, rank, dimensions, sizes, rules, arguments, grid, order */
    RESIZED,           /* lower bound, extent */
    FORTRAN_REAL,      /* precision, range */
    FORTRAN_COMPLEX,   /* precision, range */
    FORTRAN_INTEGER,   /* range */
    VALUE_AND_INDEX    /* two types, as a C structure */
};

typedef struct contents {
    enum constructor constructor;
    size_t value_count; /* arguments that are numbers */
    int64_t *values;
    size_t type_count; /* arguments that are datatypes */
    MPI_Datatype *types;
} contents_t;

/* Reads how a datatype was made. Returns 0; or -EINVAL, -ENOMEM, and then there is nothing to free.
 * A named type costs one call of MPI. */
int contents_read(MPI_Datatype type, contents_t *contents);
void contents_free(contents_t *contents);

/* Number of blocks of a VECTOR to STRUCTURE, and the length of block `block` and its displacement
 * (not of vectors), in the unit of the constructor. */
uint64_t contents_blocks(const contents_t *contents);
uint64_t contents_block_length(const contents_t *contents, uint64_t block);
int64_t contents_displacement(const contents_t *contents, uint64_t block);

/* One dimension of a SUBARRAY or DISTRIBUTED_ARRAY. A distributed one has `full` whole chunks,
 * `chunk` indices each, from index `start` on, at distances of `distance` indices. A last chunk of
 * `rest` indices begins at `rest_start`. */
typedef struct dimension {
    int64_t size; /* indices of the whole array */
    int64_t start, chunk, full, distance;
    int64_t rest_start, rest;
} dimension_t;

/* Number of dimensions, and dimension `number`, counted from the one that varies fastest. Returns
 * -EINVAL when the arguments make no sense. */
size_t contents_dimensions(const contents_t *contents);
int contents_dimension(const contents_t *contents, size_t number, dimension_t *dimension);

#endif
