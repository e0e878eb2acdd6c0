/* basic.h - sizes and basic types of predefined datatypes, and of those of a Fortran kind. */
#ifndef UNISONO_MPI_DATATYPE_BASIC_H
#define UNISONO_MPI_DATATYPE_BASIC_H

#include "layout.h"
#include "contents.h"

/* Basic types of a predefined type: one, or two for those of a value and an index. */
typedef struct basic {
    size_t count; /* 1 or 2; 0 for a type without data */
    MPI_Datatype types[2];
    uint64_t sizes[2];
    int64_t offsets[2];
    int64_t extent;
} basic_t;

/* Describes a type whose constructor is NAMED, of a Fortran kind or VALUE_AND_INDEX.
 * Returns 0 or -EINVAL. */
int basic_describe(MPI_Datatype type, const contents_t *contents,
                   enum representation representation, basic_t *basic);

/* Sizes in memory and in external32 of a basic type that layout_elements has named.
 * Returns 0 or -EINVAL. */
int basic_sizes(MPI_Datatype basic, uint64_t *native, uint64_t *external);

/* 1 for a complex type. */
int basic_is_complex(MPI_Datatype basic);

#endif
