/* back.h - state and internal calls of a back end, which is compiled for one binary interface of MPI.
 *
 * Errors travel as codes of MPI: MPI_SUCCESS or an error class. */
#ifndef UNISONO_MPI_BACK_H
#define UNISONO_MPI_BACK_H

#include "border.h"
#include "datatype.h"

#include <mpi.h>
#include <pthread.h>
#include <unisono.h>

/* Part of a file that a process sees: bytes of the repeated filetype, counted in etypes. */
typedef struct view {
    uint64_t displacement; /* first byte of the file */
    MPI_Datatype etype, filetype;
    layout_t *layout;    /* of the filetype, as it is in the file */
    uint64_t etype_bytes; /* in the file */
    enum representation representation;
} view_t;

typedef struct transfer transfer_t;

/* An open file of this process. */
typedef struct open_file {
    file_handle_t *handle;
    char *name; /* in the instance */
    MPI_Comm comm;
    int rank, size;
    int amode;
    int is_atomic;
    unisono_file_t *file;
    unisono_group_t *group;
    unisono_collective_options_t options;
    MPI_Info hints; /* those that the program gave */
    MPI_Errhandler errhandler;
    MPI_File_errhandler_function *handler; /* function of a program, or NULL */
    pthread_mutex_t lock;                  /* of the fields below */
    view_t view;
    uint64_t position; /* individual file pointer in etypes */
    uint64_t ordered;  /* shared file pointer in etypes, as ordered calls leave it */
    transfer_t *split; /* split collective call that has begun, or NULL */
    int split_call;    /* number of the call that ends it */
} open_file_t;

/* File of a handle that the front end has recognised; NULL when it was closed. */
open_file_t *file_of(MPI_File file);

/* Table of open files. */
open_file_t *file_new(void); /* NULL when FILES_MAX are open */
void file_free(open_file_t *file);
MPI_File handle_of(const open_file_t *file);

/* Error class of MPI that fits a failed call of the library, whose text is printed to standard
 * error. */
int class_of_failure(void);

/* Prints an error in three parts. */
void explain(const char *error, const char *cause, const char *help);

/* Calls the error handler of a file (NULL: the default one) for a code that is not MPI_SUCCESS;
 * returns the code. */
int fail(open_file_t *file, int code);

/* Code on which all members agree: the greatest that any of them brings. */
int agree(open_file_t *file, int code);

/* The connection of the process, made at the first use; NULL with a failure of the library. */
unisono_t *connection(void);

/* Name in the instance: without "unisono:" and slashes in front. */
const char *name_in_instance(const char *name);

/* View of bytes from `displacement` on. */
int view_bytes(uint64_t displacement, view_t *view);
int view_make(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
              const char *representation, int amode, view_t *view);
void view_release(view_t *view);

/* Manner of a transfer. */
enum { READ = 0, WRITE = 1, COLLECTIVE = 2 };

/* Begins a transfer of `count` instances of `type` at `buffer`, from etype `offset` of the view on.
 * The transfer is freed by transfer_end. */
int transfer_begin(open_file_t *file, int manner, uint64_t offset, void *buffer, MPI_Count count,
                   MPI_Datatype type, transfer_t **transfer);
int transfer_test(transfer_t *transfer, int *has_ended);
/* Waits for the end. bytes: of memory that were read or written. */
int transfer_end(transfer_t *transfer, uint64_t *bytes);
unisono_op_t *transfer_operation(transfer_t *transfer);

/* Etypes of an access of `count` instances of `type`. */
int etypes_of(open_file_t *file, MPI_Count count, MPI_Datatype type, uint64_t *etypes);

void set_status(MPI_Status *status, uint64_t bytes);

/* Makes a request of a transfer. */
int request_of(open_file_t *file, transfer_t *transfer, MPI_Request *request);
extern int requests_under_way;

#endif
