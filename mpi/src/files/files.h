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

/* File view of a process: the data of the repeated filetype, counted in etypes. */
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
    unisono_t *unisono; /* connection to its instance; NULL after a failure */
    char *name;    /* in the instance */
    int is_redirected; /* by UNISONO_MATCH */
    int is_mounted;    /* the program gave a path below a mount */
    int is_in_place;   /* by UNISONO_IN_PLACE: the name is the path without its first slash */
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
    int is_independent; /* 1 when collective calls are carried out as independent ones */
    MPI_Errhandler errhandler;
    handler_t handler;  /* of the error handler */
    int has_errhandler; /* 1 when the program has set one */
    pthread_mutex_t lock;                  /* of the fields below */
    int is_atomic;
    int has_unreported; /* 1 when servers may still write behind: failures come after the calls */
    view_t view;         /* the last one that was set */
    int is_view_refused; /* 1 when a later MPI_File_set_view has failed: accesses fail, too */
    uint64_t position; /* individual file pointer in etypes */
    int has_moved_shared; /* 1 when this process may have moved the shared file pointer */
    transfer_t *split; /* active split collective operation, or NULL */
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

/* Begins to close the file at the servers, without waiting: they have all of its data. Returns 0, or
 * another number when it fails at once. */
int closing_begin(open_file_t *file);

/* Waits until all files that are being closed are closed. Prints failures. */
void closings_end(void);

/* The connection of the process to the instance in a directory (NULL: the default one), which the first
 * call makes; NULL after a failure of the library. */
unisono_t *connection_to(const char *directory);

/* Finds the instance of a file that the program names, and connects to it. Stores its name there, to be
 * freed, in `mounted` if the program gave a path below a mount, else NULL. */
int instance_find(const char *given, int call, unisono_t **unisono, char **mounted);

/* Name in the default instance of a file that the program names, to be freed; NULL with an error in
 * `code`. */
char *name_in_instance(const char *name, int call, int *code);

/* The two functions above together. The name is to be freed. */
int file_find(const char *given, int call, unisono_t **unisono, char **name);

/* Functions for the front end; see interposer_border.h. */
int path_is_mounted(const char *name);
long read_start(const char *name, void *bytes, size_t count);
int truncate_file(const char *name, long length);

/* ---- Hints (hints.c) ------------------------------------------------------------------------ */

/* Gives the library the hints of an info object, which may be MPI_INFO_NULL. */
int hints_give(open_file_t *file, MPI_Info info, int call);

void hints_enter(function_t **functions);

/* ---- Members (members.c) ------------------------------------------------------------------- */

/* Waits for all members. Returns the greatest of their codes. Names members that are missing. */
int agree(open_file_t *file, int call, int code);

/* The same, and stores the greatest `*flag` of all in it. */
int agree_on(open_file_t *file, int call, int code, int *flag);

/* The same as agree later in a call, when all members are there: waits as long as servers need. */
int agree_again(open_file_t *file, int code);

/* Duplicates the communicator for a file that is opened. `name`: as the program gives it. */
int members_join(open_file_t *file, MPI_Comm comm, const char *name);

/* Collective operations of the members: MPI_Allreduce with MPI_MAX, MPI_Bcast, MPI_Scan with MPI_SUM,
 * and MPI_Allgather. Those with `call` are the first in that call, and name members that are missing. */
int members_maximum(open_file_t *file, int call, const long *mine, long *all, int count);
int members_broadcast(open_file_t *file, void *data, int count, int from);
int members_scan(open_file_t *file, int call, uint64_t mine, uint64_t *sum);
int members_allgather(open_file_t *file, const void *mine, void *all, size_t bytes);

/* ---- Report (report.c) --------------------------------------------------------------------- */

void report_open(open_file_t *file);
/* Counts the bytes that a transfer has moved, and how many of them were packed or unpacked. */
void report_bytes(const open_file_t *file, int call, uint64_t moved, uint64_t copied);
/* Counts a call, and the time since it began. */
void report_time(const open_file_t *file, int call, double started_at);
/* Keeps when a blocking collective call began, for the time that members wait for one another. */
void report_start(open_file_t *file, double started_at);
/* Adds time that this member has waited for others in collective calls. */
void report_waited(const open_file_t *file, double seconds);
/* Writes the report of the process into an instance (NULL: none could be reached), as MPI ends. */
void report_write(unisono_t *unisono);
double now_s(void);      /* seconds since 1970 */

#endif
