/* datatype_cases.h - datatypes with known descriptions. */
#ifndef DATATYPE_CASES_H
#define DATATYPE_CASES_H

#include "../src/datatype/layout.h"
#include "datatype_model.h"

typedef struct fixed_case {
    const char *name;
    void (*run)(void);
} fixed_case_t;

extern const fixed_case_t fixed_cases[];
extern const size_t fixed_case_count;

/* Prints times of decoding and packing; they are not checked. */
void print_times(void);

static inline layout_t *decode(MPI_Datatype type, enum representation representation)
{
    layout_t *layout = NULL;
    CHECK(layout_decode(type, representation, &layout) == 0);
    CHECK(layout);
    return layout;
}

#endif
