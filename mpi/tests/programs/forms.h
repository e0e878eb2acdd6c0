/* forms.h - the functions that read and write, by their form. */
#ifndef FORMS_H
#define FORMS_H

#include <mpi.h>

typedef enum form {
    AT,
    AT_ALL,
    IAT,
    IAT_ALL,
    AT_ALL_SPLIT,
    INDIVIDUAL,
    ALL,
    INONBLOCKING,
    IALL,
    ALL_SPLIT,
    SHARED,
    ISHARED,
    ORDERED,
    ORDERED_SPLIT,
    FORM_COUNT
} form_t;

static inline int is_explicit(form_t form)
{
    return form <= AT_ALL_SPLIT;
}

static inline int is_individual(form_t form)
{
    return form > AT_ALL_SPLIT && form <= ALL_SPLIT;
}

static inline int is_shared(form_t form)
{
    return form >= SHARED;
}

static inline int is_collective(form_t form)
{
    return form == AT_ALL || form == IAT_ALL || form == AT_ALL_SPLIT || form == ALL || form == IALL
           || form == ALL_SPLIT || form == ORDERED || form == ORDERED_SPLIT;
}

/* A data access. `offset` counts for explicit offsets only. */
typedef struct call {
    form_t form;
    int is_write, is_large; /* is_large: the function with _c, where MPI has it */
    MPI_File file;
    MPI_Offset offset;
    void *buffer;
    int count;
    MPI_Datatype type;
} call_t;

/* Makes the call; waits for its request, or ends it. */
int make_call(const call_t *call, MPI_Status *status);

/* Name such as "write_at_all_c". */
const char *call_name(const call_t *call);

#endif
