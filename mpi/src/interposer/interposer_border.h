/* interposer_border.h - interface between the front end and a back end.
 *
 * The front end has no MPI type: arguments are integers and addresses, which it passes on as they
 * are. A back end is compiled for one binary interface of MPI. */
#ifndef UNISONO_MPI_INTERPOSER_BORDER_H
#define UNISONO_MPI_INTERPOSER_BORDER_H

#include "../process/process.h"

#include <stddef.h>
#include <stdint.h>

/* Changes with this header, interposed_functions.def and accesses.def. */
enum { BORDER_VERSION = 5 };

/* Numbers of the functions, such as CALL_File_open. */
enum {
#define NAME_CALL(arguments, name) CALL_##name,
#define FILE_CALL NAME_CALL
#define LARGE_CALL NAME_CALL
#define REQUEST_CALL NAME_CALL
#include "interposed_functions.def"
#undef NAME_CALL
#undef FILE_CALL
#undef LARGE_CALL
#undef REQUEST_CALL
    CALL_COUNT
};

/* Greatest number of open files of a process. */
enum { FILES_MAX = 4096 };

/* Bytes at the address that is the MPI_File of an open file. Only the address counts. */
typedef struct file_handle {
    uint64_t number;
} file_handle_t;

/* Calling conventions of error handlers. */
enum handler_kind {
    HANDLER_C,             /* function(MPI_File *, int *) */
    HANDLER_FORTRAN,       /* function(int *, int *) */
    HANDLER_WITH_STATE,    /* function(MPI_File, int, state) */
    HANDLER_CXX_OF_MPICH,  /* by caller(1, MPI_File *, int *, function) */
    HANDLER_CXX_OF_OPENMPI /* by caller(MPI_File *, int *, message, function) */
};

/* The function of an error handler of files. */
typedef struct handler {
    enum handler_kind kind;
    function_t *function; /* NULL: not known */
    union {
        void *state;
        function_t *caller;
    };
} handler_t;

/* What the front end gives to a back end when it loads it. */
typedef struct front {
    uint32_t version;              /* BORDER_VERSION */
    file_handle_t *handles;        /* FILES_MAX handles */
    const char *const *names;      /* of the functions, such as "MPI_File_open" */
    function_t *(*real)(int call); /* function of the MPI library, or NULL when it has none */
} front_t;

/* What a back end gives in return. */
typedef struct back {
    uint32_t version;             /* BORDER_VERSION */
    function_t *functions[CALL_COUNT];
    int (*to_fortran)(void *file);
    void *(*from_fortran)(int number);
    /* 1 for a path below a mount of an instance, also for one that cannot be used. */
    int (*is_mounted)(const char *name);
    /* Reads the first bytes of a file. Returns their number, or -1 when there is no such file. */
    long (*read_start)(const char *name, void *bytes, size_t count);
    /* Sets the size of a file. Returns 0 or a system error. */
    int (*truncate)(const char *name, long length);
    const int *requests_pending; /* requests for which the program has not waited */
    const int *causes_kept;        /* 1 when MPI_Error_string may know a cause */
    void (*forget_cause)(void);    /* before a call of another file, which may fail with the same code */
    /* Error handlers that programs make; addresses of handles, or in Fortran a number. */
    void (*handler_made)(const void *errhandler, const handler_t *handler);
    void (*handler_made_in_fortran)(int number, function_t *function);
    void (*handler_is_cxx)(const void *errhandler, function_t *caller);
} back_t;

/* The one function that a back end exports. Returns NULL when the versions differ. */
typedef const back_t *unisono_mpi_back_t(const front_t *front);

/* Lowest number of a file in Fortran. MPI libraries use small numbers. */
enum { FORTRAN_BASE = 0x55000000 };

#endif
