/* shape.h - datatypes beside the places of their bytes, which the program computes by itself. */
#ifndef SHAPE_H
#define SHAPE_H

#include <mpi.h>

/* A datatype. Byte `k` of its data lies `at[k]` bytes from an instance. */
typedef struct shape {
    MPI_Datatype type;
    long bytes, extent, elements;
    long *at;
    int *mirror; /* index of the byte that external32 has in place of byte `k` */
    int is_named;
    struct shape *next; /* made before */
} shape_t;

/* Greatest number of dimensions of an array. */
enum { DIMENSIONS_MAX = 4 };

shape_t *named(MPI_Datatype type, int bytes);
shape_t *contiguous(int count, const shape_t *of);
shape_t *vector(int count, int block, int stride, const shape_t *of);
shape_t *hvector(int count, int block, long stride_bytes, const shape_t *of);
shape_t *indexed(int count, const int *blocks, const int *places, const shape_t *of);
shape_t *hindexed(int count, const int *blocks, const long *bytes, const shape_t *of);
shape_t *indexed_block(int count, int block, const int *places, const shape_t *of);
shape_t *hindexed_block(int count, int block, const long *bytes, const shape_t *of);
shape_t *structure(int count, const int *blocks, const long *bytes, const shape_t *const *of);
shape_t *subarray(int dimensions, const int *sizes, const int *subsizes, const int *starts,
                  int order, const shape_t *of);
shape_t *darray(int size, int rank, int dimensions, const int *sizes, const int *distributions,
                const int *arguments, const int *grid, int order, const shape_t *of);
shape_t *resized(long lower_bound, long extent, const shape_t *of);
shape_t *duplicate(const shape_t *of);

/* Place of data byte `k` of endless instances. */
long place(const shape_t *shape, long k);

/* Commits the datatype. */
shape_t *committed(shape_t *shape);

/* Frees all shapes and their datatypes. */
void shapes_free(void);

#endif
