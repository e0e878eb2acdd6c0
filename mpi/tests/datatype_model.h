/* datatype_model.h - random datatypes, and their typemaps entry by entry.
 *
 * A model is made beside its datatype by the definitions of the standard: every copy of every basic
 * type is an entry, and so are the bounds that resized types and arrays set.
 */
#ifndef DATATYPE_MODEL_H
#define DATATYPE_MODEL_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition))                                                                         \
            check_failed(__FILE__, __LINE__, #condition);                                         \
        checks++;                                                                                 \
    } while (0)

#define MODEL_ENTRIES_MAX 1200

extern uint64_t checks;      /* those that have passed */
extern uint64_t random_seed; /* state of the generator */
extern uint64_t case_seed;   /* state of the generator at the start of the case */

void check_failed(const char *file, int line, const char *condition);

/* A number from `low` to `high`. */
int64_t between(int64_t low, int64_t high);

enum kind { DATA, LOWER, UPPER };

typedef struct entry {
    enum kind kind;
    int64_t offset;
    int64_t bytes;
    MPI_Datatype basic;
} entry_t;

typedef struct typemap {
    entry_t *entries;
    size_t count;
    int64_t low, extent;       /* lower bound, and distance between instances */
    int64_t start, end, bytes; /* of the data */
    int is_ascending, is_repeatable;
} typemap_t;

typedef struct model {
    MPI_Datatype type;
    typemap_t native, external;
    int is_unusual; /* something in it has no data, or does not ascend when it is repeated */
} model_t;

/* A random datatype of at most `depth` constructors. for_file: 1 to make ascending ones often. */
model_t model_random(int depth, int for_file);
void model_free(model_t *model);

/* Offset of data byte `position` of endless instances. */
int64_t typemap_offset(const typemap_t *map, int64_t position);

/* Numbers of datatypes that were made with each constructor. */
extern unsigned long model_counts[32];

#endif
