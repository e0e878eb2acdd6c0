/* cases.h - etypes, filetypes and memory types for tests. */
#ifndef CASES_H
#define CASES_H

#include "shape.h"

enum { ETYPES = 6, PORTABLE_ETYPES = 4, FILETYPES = 18, MEMORIES = 14 };

/* An etype by its number. Those below PORTABLE_ETYPES have equal sizes in external32. */
shape_t *make_etype(int number);

/* A filetype by its number, of one of `size` processes; another one for another seed. */
shape_t *make_filetype(int number, const shape_t *etype, int rank, int size, unsigned long *seed);

/* A memory type by its number. `base` is the address of the buffer, for absolute addresses. */
shape_t *make_memory(int number, const shape_t *etype, const char *base, unsigned long *seed);

/* Greatest count with which instances of a memory type do not overlap. */
int memory_count_max(int number);

/* 1 when the memory type has absolute addresses: the buffer is MPI_BOTTOM. */
int memory_is_absolute(int number);

/* 1 when the memory type is MPI_BYTE, which does not convert. */
int memory_is_bytes(int number);

#endif
