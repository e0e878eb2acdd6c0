/* files.h - open files, their members, and the connection of the process.
 *
 * Functions of type int return codes of MPI, MPI_SUCCESS or an error class, where no comment says
 * otherwise. Positions and sizes are bytes, or etypes of the view where a comment says so. */
#ifndef UNISONO_MPI_FILES_H
#define UNISONO_MPI_FILES_H

#include "../datatype/layout.h"
#include "../front_end.h"

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

/* ---- Open files (open_file.c, open.c, close.c, sizes.c) ------------------------------------- */

open_file_t *file_new(void); /* NULL when FILES_MAX are open */
void file_free(open_file_t *file);

void open_enter(function_t **functions);
void close_enter(function_t **functions);
void sizes_enter(function_t **functions);

/* ---- Handles (file_handles.c) --------------------------------------------------------------- */

void handles_set(file_handle_t *handles);

/* Gives a file a handle. Returns 0 when FILES_MAX have one. */
int handle_take(open_file_t *file);
void handle_return(open_file_t *file);

/* File of a handle that the front end has recognised; NULL when it was closed. */
open_file_t *file_of(MPI_File handle);
MPI_File handle_of(const open_file_t *file);

int file_to_fortran(void *file);
void *file_from_fortran(int number);

/* ---- Connection (connection.c) -------------------------------------------------------------- */

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

long read_start(const char *name, void *bytes, size_t count);
int truncate_file(const char *name, long length);

/* ---- Hints (hints.c) ------------------------------------------------------------------------ */

/* Takes the hints of an info object, which may be MPI_INFO_NULL. */
int hints_give(open_file_t *file, MPI_Info info, int call);

void hints_enter(function_t **functions);

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

/* ---- Report (report.c) --------------------------------------------------------------------- */

void report_open(open_file_t *file);
/* Counts bytes that a transfer has moved, and those of them that were packed or unpacked. */
void report_bytes(const open_file_t *file, int call, uint64_t moved, uint64_t copied);
/* Counts a call, and the time since it began. */
void report_time(const open_file_t *file, int call, double started_at);
/* Notes the begin of a blocking collective call, for the time that members wait for one another. */
void report_start(open_file_t *file, double started_at);
/* Adds time that this member has waited for others in collective calls. */
void report_waited(const open_file_t *file, double seconds);
/* Writes the report of the process into the instance, as MPI ends. */
void report_write(unisono_t *unisono);
double now_s(void);      /* seconds since 1970 */

#endif
