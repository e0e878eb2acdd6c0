/* recorder_border.h - interface between the front end of the recorder and a back end.
 *
 * The front end has no MPI type: arguments are integers and addresses, which it passes on as they
 * are. A back end is compiled for one binary interface of MPI. */
#ifndef UNISONO_RECORD_RECORDER_BORDER_H
#define UNISONO_RECORD_RECORDER_BORDER_H

#include "../process/process.h"

#include <stdint.h>

/* Changes with this header, recorded_functions.def and accesses.def. */
enum { RECORD_VERSION = 2 };

/* Numbers of the functions, such as CALL_Send. */
enum {
#define CALL(arguments, name) CALL_##name,
#define NOTED_CALL CALL
#include "recorded_functions.def"
#undef CALL
#undef NOTED_CALL
    CALL_COUNT
};

/* Variable of the environment with the directory of the trace. */
#define RECORD_VARIABLE "UNISONO_RECORD"

/* What the front end gives to a back end when it loads it. */
typedef struct front {
    uint32_t version;              /* RECORD_VERSION */
    const char *directory;         /* of the trace */
    const char *const *names;      /* of the functions, such as "MPI_Send" */
    function_t *(*real)(int call); /* function that comes behind the recorder; ends without one */
} front_t;

/* What a back end gives in return. One thread at a time calls its functions, and these calls are not
 * nested. */
typedef struct back {
    uint32_t version; /* RECORD_VERSION */
    /* Begins a call. Returns 0 when it is not to be recorded. */
    int (*enter)(int call);
    /* Ends a call that began. */
    void (*leave)(void);
    /* Notes a call of a kind that is not recorded. The call has returned. */
    void (*note_call)(int call);
    /* Notes that calls of two threads overlapped. Called by any thread. */
    void (*note_overlap)(void);
    /* The process is a child of the one that is recorded, and has nothing to do with its trace. */
    void (*become_child)(void);
    /* The process ends. */
    void (*end)(void);
    function_t *functions[CALL_COUNT]; /* NULL for calls that are noted */
} back_t;

/* The one function that a back end exports. Returns NULL when the versions differ. */
typedef const back_t *unisono_record_back_t(const front_t *front);

#endif
