/* back_end.h - state and internal calls of a back end, which is compiled for one binary interface of MPI.
 *
 * Functions of type int return codes of MPI, MPI_SUCCESS or an error class, where no comment says
 * otherwise. Positions and sizes are bytes, or etypes of the view where a comment says so. */
#ifndef UNISONO_MPI_BACK_END_H
#define UNISONO_MPI_BACK_END_H

#include "interposer/interposer_border.h"
#include "datatype/layout.h"

#include <mpi.h>
#include <pthread.h>
#include <unisono.h>

/* Part of a file that a process sees: data of the repeated filetype, counted in etypes. */
typedef struct view {
    uint64_t displacement; /* first byte of the file */
    MPI_Datatype etype, filetype;
    layout_t *layout;     /* of the filetype, as it is in the file */
    uint64_t etype_bytes; /* in the file */
    enum representation representation;
} view_t;

typedef struct transfer transfer_t;
typedef struct file_report file_report_t;

/* Exit code of a program whose processes do not all join a call. */
enum { EXIT_MEMBERS_MISSING = 5 };

/* An open file of this process. */
typedef struct open_file {
    file_handle_t *handle;
    char *name;    /* in the instance */
    int is_redirected; /* by UNISONO_MATCH */
    MPI_Comm comm; /* duplicate of the program's communicator */
    int is_in_world; /* 1 when MPI_Init has been called */
    int rank, size;
    int amode;
    unisono_file_t *file;
    unisono_group_t *group;
    unisono_hints_t *hints;
    unisono_collective_options_t options;
    file_report_t *report; /* NULL without a report */
    double *starts;        /* of the first blocking collective calls, in seconds since 1970 */
    int start_count;
    int is_independent; /* collective calls transfer each part by itself */
    MPI_Errhandler errhandler;
    handler_t handler;  /* of the error handler */
    int has_errhandler; /* 1 when the program has set one */
    pthread_mutex_t lock;                  /* of the fields below */
    int is_atomic;
    int has_unreported; /* 1 when writes may fail after their calls: servers write behind */
    view_t view;         /* the last one that was accepted */
    int is_view_refused; /* 1 when a later one was refused: accesses fail until one is accepted */
    uint64_t position; /* individual file pointer in etypes */
    int has_moved_shared; /* 1 when this process may have moved the shared file pointer from 0 */
    transfer_t *split; /* split collective call that has begun, or NULL */
    int split_end;     /* number of the call that ends it */
} open_file_t;

/* ---- Handles, connection and errors (files, errors) ------------------------- */

/* File of a handle that the front end has recognised; NULL when it was closed. */
open_file_t *file_of(MPI_File handle);
open_file_t *file_new(void); /* NULL when FILES_MAX are open */
void file_free(open_file_t *file);
MPI_File handle_of(const open_file_t *file);

/* Begins to close the file at the servers. All of its data has been given to them, so a process that
 * closes waits for nothing. Returns not 0 when it fails at once. */
int closing_begin(open_file_t *file);

/* Waits until the files that are being closed are closed; prints what fails. */
void closings_end(void);

/* The connection of the process, made at the first use; NULL with a failure of the library. */
unisono_t *connection(void);

/* Name in the instance that a name of a program means in this process, to be freed; NULL with a code
 * of MPI in `code`. */
char *name_in_instance(const char *name, int call, int *code);

/* Prints an error in three parts. */
void explain(const char *error, const char *cause, const char *help);

/* Prints an error that all members meet, at the one that speaks for them; the others print it if they
 * end the program, because that one has not. */
void explain_as(int is_speaker, const char *error, const char *cause, const char *help);

/* Holds back the first explanation of this thread, until members know which of them prints it. */
void explanations_hold(void);
void explanations_release(int is_printed);

/* Error class of MPI that fits the failed call of the library; prints its text, naming the call of
 * MPI. Of the members of a file, which may be NULL, one prints what all of them meet. */
int class_of_failure(const open_file_t *file, int call);

/* 1 when MPI_COMM_WORLD is there: not in a program that uses sessions only (MPI 4). */
int has_world(void);

/* Ends all processes of the program, or those of `comm` where there is no MPI_COMM_WORLD. */
void abort_program(MPI_Comm comm, int code);

/* Ends the program with EXIT_MEMBERS_MISSING; one process is the first. */
void end_program(MPI_Comm comm, int is_first);

/* Bytes of a cause that is kept, with the zero byte at its end. */
enum { CAUSE_BYTES = MPI_MAX_ERROR_STRING };

/* Keeps the cause of a failure of this thread, which MPI_Error_string adds to the text of its code. */
void cause_keep(int code, const char *cause);

/* Cause of the last failure of this thread, if it has this code; or NULL. */
const char *cause_of(int code);
void cause_forget(void);
extern int causes_kept; /* 1 when some thread has failed */

/* Code for a wrong argument of a call, which it prints: a cause and a help line. */
int wrong(int code, int call, const char *cause, const char *help);

/* Calls the error handler of a file (NULL: the default one) for a code that is not MPI_SUCCESS;
 * returns the code that the handler leaves. */
int fail(open_file_t *file, int code);

/* Error handlers that programs have made, as the front end sees them: addresses of handles. */
void handler_made(const void *errhandler, const handler_t *handler);
void handler_made_in_fortran(int number, function_t *function);
void handler_is_cxx(const void *errhandler, function_t *caller);

/* Sets the error handler that a new file has. */
void errhandler_default(open_file_t *file);
void errhandler_free(open_file_t *file);

const char *call_name(int call); /* such as "MPI_File_open" */

/* Takes the hints of an info object, which may be MPI_INFO_NULL. */
int hints_give(open_file_t *file, MPI_Info info, int call);

/* ---- Members (members.c) ------------------------------------------------------------------- */

/* Waits for all members; gives the greatest code that any of them brings. Members that are missing
 * are named. */
int agree(open_file_t *file, int call, int code);

/* The same later in a call in which members have met: waits as long as servers need. */
int agree_again(open_file_t *file, int code);

/* Duplicates the communicator for a file that is opened; `name` is as the program gives it. */
int members_join(open_file_t *file, MPI_Comm comm, const char *name);

/* Meetings of the members in a call of the program: greatest numbers, numbers of one member for all,
 * sums up to and with this member, and bytes of all. */
int members_greatest(open_file_t *file, int call, const long *mine, long *all, int count);
int members_tell(open_file_t *file, void *data, int count, int from);
int members_sum(open_file_t *file, int call, uint64_t mine, uint64_t *sum);
int members_gather(open_file_t *file, const void *mine, void *all, size_t bytes);

/* ---- Views (view.c) ------------------------------------------------------------------------ */

/* Layout of a datatype as it is in memory; kept with the datatype, and released by the caller. */
int layout_of(const open_file_t *file, int call, MPI_Datatype type, layout_t **layout);

int view_of_bytes(view_t *view);
void view_release(view_t *view);

/* First etype of the view that lies at or behind byte `offset` of the file; 0 for a view without data,
 * UINT64_MAX when all of endless data lies before. */
uint64_t view_etypes_before(const view_t *view, uint64_t offset);

/* ---- Transfers (transfer.c) ---------------------------------------------------------------- */

/* Manner of a transfer: bits. */
enum { READ = 0, WRITE = 1, COLLECTIVE = 2 };

/* Data that a call of a program names. */
typedef struct access {
    int call;   /* number of the call */
    int manner; /* READ or WRITE, COLLECTIVE */
    void *buffer;
    MPI_Count count;
    MPI_Datatype type;
} access_t;

/* Checks an access and gives its length in etypes of the view. */
int access_etypes(open_file_t *file, const access_t *access, uint64_t *etypes);

/* Begins a transfer from etype `offset` of the view on. `code` is an earlier error of this process:
 * it joins a collective call nevertheless, with nothing to move, and the code is that of the
 * transfer. Returns NULL only when memory is short. */
transfer_t *transfer_begin(open_file_t *file, const access_t *access, uint64_t offset, int code);

/* 1 when the transfer has ended. */
int transfer_has_ended(transfer_t *transfer);

/* Operation of the library that the transfer waits for, or NULL. */
unisono_op_t *transfer_operation(const transfer_t *transfer);

/* 1 when its end depends on other members, so that MPI must be called while a process waits. */
int transfer_waits_for_members(const transfer_t *transfer);

/* Waits for the end and frees the transfer. Gives the bytes of memory that were read or written. */
int transfer_end(transfer_t *transfer, uint64_t *bytes);

/* Takes the etypes of an access from the shared file pointer (shared_pointer.c), those of an ordered call in
 * the order of ranks; gives the first of them. */
int shared_take(open_file_t *file, const access_t *access, uint64_t *first);

void status_set(MPI_Status *status, uint64_t bytes);

/* ---- Requests (generalized_requests.c) ----------------------------------------------------- */

/* Makes the request of a transfer. */
int request_make(open_file_t *file, transfer_t *transfer, MPI_Request *request);

/* Ends all transfers of a file that programs have not waited for. */
void requests_end(open_file_t *file);

/* Number of requests that the program has and has not waited for. */
extern int requests_under_way;

/* ---- Conversion to the portable representation (external32.c) ------------------------------ */

/* Converts `bytes` bytes of the packed elements of instances of a type between memory (native) and
 * the file. `bytes` and `*converted` count bytes of the source and of the target. The target holds
 * as many elements as the source. */
int external32_encode(MPI_Datatype type, const void *native, uint64_t bytes, void *external);
int external32_decode(MPI_Datatype type, const void *external, uint64_t bytes, void *native,
                      uint64_t *native_bytes);

/* ---- Report (report.c) --------------------------------------------------------------------- */

void report_open(open_file_t *file);
/* Counts bytes that a transfer has moved, and those of them that were packed or unpacked. */
void report_bytes(const open_file_t *file, int call, uint64_t moved, uint64_t copied);
/* Counts a call, and the time since it began. */
void report_time(const open_file_t *file, int call, double started_at);
/* Notes the begin of a blocking collective call, for the time that members wait for one another. */
void report_start(open_file_t *file, double started_at);
/* Compares the begins of all members, as a file is closed. Collective. */
void report_waits(open_file_t *file);
void report_write(void); /* as MPI ends */
double now_s(void);      /* seconds since 1970 */

/* ---- Table --------------------------------------------------------------------------------- */

/* The real function of the MPI library with its type. */
#define REAL(call, type) ((type *)real_function(CALL_##call))
function_t *real_function(int call);

/* Each file enters its functions. */
void errors_enter(function_t **functions);
void handlers_enter(function_t **functions);
void open_enter(function_t **functions);
void view_enter(function_t **functions);
void access_enter(function_t **functions);
void requests_enter(function_t **functions);

#define ENTER(name, function) (functions[CALL_##name] = (function_t *)(function))

void handles_set(file_handle_t *handles);
int file_to_fortran(void *file);
void *file_from_fortran(int number);
long read_start(const char *name, void *bytes, size_t count);
int truncate_file(const char *name, long length);

#endif
