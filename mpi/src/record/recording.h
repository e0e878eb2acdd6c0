/* recording.h - state and internal calls of a back end of the recorder, which is compiled for one binary
 * interface of MPI.
 *
 * Each function of a back end makes the real call by RUN, and then writes the event. */
#ifndef UNISONO_RECORD_RECORDING_H
#define UNISONO_RECORD_RECORDING_H

#include "../datatype/layout.h"
#include "recorder_border.h"

#include <mpi.h>
#include <unisono_trace.h>

/* A handle of MPI as a word. */
#define WORD(handle) ((uint64_t)(uintptr_t)(handle))

/* ---- Real calls (real_calls.c) ------------------------------------------------------------- */

/* Takes what the front end has given. */
void real_calls_set(const front_t *front);
function_t *real_function(int call);
const char *call_name(int call); /* such as "MPI_Send" */

/* The real function, with the type of the function `call_NAME` that stands for it. */
#define REAL(name) ((__typeof__(call_##name) *)real_function(CALL_##name))

/* Makes the real call and ends its time; gives its code. */
#define RUN(name, ...)                                                                             \
    __extension__({                                                                                \
        int code_of_run = REAL(name)(__VA_ARGS__);                                                 \
        clock_called();                                                                            \
        code_of_run;                                                                               \
    })

/* ---- Tables by handles (handle_table.c) ---------------------------------------------------- */

/* Entry of a table, as the first member of what is entered. Handles may be entered several times: MPI
 * libraries use one handle for all requests that have ended at once. */
typedef struct handle_entry {
    uint64_t word;
    struct handle_entry *next;
} handle_entry_t;

typedef struct handle_table {
    struct handle_chain {
        handle_entry_t *first, *last;
    } *chains;
    size_t chain_count, count;
} handle_table_t;

/* Enters an entry behind others with the same handle. Ends the recording when memory is short. */
void table_add(handle_table_t *table, handle_entry_t *entry, uint64_t word);

/* First entry of the handle that was entered, or NULL. */
handle_entry_t *table_find(const handle_table_t *table, uint64_t word);
void table_remove(handle_table_t *table, handle_entry_t *entry);

/* ---- Stream (stream.c) --------------------------------------------------------------------- */

/* The trace; NULL when nothing is recorded any more. */
extern unisono_trace_t *trace;

/* Begins the trace of this process, once MPI has begun. */
void stream_begin(const char *directory);
void stream_end(void);    /* writes what is left */
void stream_discard(void); /* forgets the trace, which belongs to another process */

/* Calls a function of the trace, such as unisono_trace_send, unless the recording has ended; ends it
 * when the function fails. Gives its result. */
#define WRITE_EVENT(name, ...) (trace ? written(unisono_trace_##name(trace, __VA_ARGS__)) : -1)
int64_t written(int64_t result);

/* Ends the recording for a reason. */
void stream_fail(const char *cause);

/* Notes, once for each name, something that is not recorded. Called by any thread. */
void note(const char *name);

/* ---- Time (clock.c) ------------------------------------------------------------------------ */

void clock_begin(void);  /* measures the clocks; the first call enters now */
void clock_enter(void);  /* the program makes a call */
void clock_called(void); /* the real call has returned */
void clock_leave(void);  /* the program goes on */

/* The call was a test that found nothing: its time, and that of the loop around it, count as waiting. */
void clock_polled(void);

/* The next event depends on timing. */
void clock_depends(void);

/* Calls so far, and the time of the recorder in them, in ns. */
uint64_t clock_calls(void);
uint64_t clock_cost(void);

/* Times for an event, once: a second event of the call has none. */
const unisono_trace_times_t *clock_times(void);

/* ---- Communicators (communicators.c) ------------------------------------------------------- */

typedef struct communicator {
    handle_entry_t entry;
    int references;
    uint32_t number; /* in the trace */
    int rank, size;
    uint32_t *members; /* ranks of MPI_COMM_WORLD */
    int is_foreign;    /* 1 when it is not recorded: two groups, or processes of other programs */
} communicator_t;

/* The communicator of a handle; NULL when it is not recorded. Belongs to the table. */
communicator_t *communicator_of(MPI_Comm comm);

/* Another communicator with the same members, without a handle; NULL when memory is short. */
communicator_t *communicator_twin(const communicator_t *communicator);

/* Enters a communicator that has the members of another, before it may be used. */
void communicator_copy(MPI_Comm comm, MPI_Comm made);

communicator_t *communicator_keep(communicator_t *communicator);
void communicator_release(communicator_t *communicator); /* NULL is accepted */
void communicator_forget(uint64_t word);                 /* the handle was freed */
uint32_t world_rank(const communicator_t *communicator, int rank);

/* ---- Requests (requests.c) ----------------------------------------------------------------- */

/* Message that a receive names; peer and tag may be wildcards. */
typedef struct envelope {
    int peer, tag;
} envelope_t;

enum request_kind { SENDS, RECEIVES, OTHER };

/* Request of the program. */
typedef struct request {
    handle_entry_t entry;
    uint32_t number; /* in the trace */
    enum request_kind kind;
    int is_persistent, is_active, is_synchronous;
    communicator_t *communicator; /* of messages */
    envelope_t envelope;
    uint64_t bytes; /* of a message that is sent, at most those of one that is received */
} request_t;

/* Takes a number that no operation has. */
uint32_t number_take(void);
void number_return(uint32_t number);

/* Enters a request; its number is new. */
request_t *request_add(MPI_Request handle, enum request_kind kind, communicator_t *communicator);
request_t *request_of(uint64_t word);

/* Enters the request of an operation that was begun before it, with its number. */
request_t *request_add_numbered(MPI_Request handle, uint32_t number);

/* Removes a request that has ended, unless it is persistent. */
void request_end(request_t *request);

/* Removes a request that the program has freed. */
void request_give_up(request_t *request);

/* Writes a wait for operations whose requests the program has freed before they ended. */
void requests_finish(void);

/* Gives up the number of an operation that ends at an unknown time. */
void number_abandon(uint32_t number);

/* ---- Messages (messages.c) ----------------------------------------------------------------- */

/* Bytes of elements. Bytes of a message by its status, or `otherwise` when the status has none. */
uint64_t data_bytes(MPI_Count count, MPI_Datatype type);
uint64_t status_bytes(const MPI_Status *status, uint64_t otherwise);

/* Writes the end of a receive that had begun. */
void received(const request_t *request, const MPI_Status *status);

/* ---- Collective operations (collectives.c) ------------------------------------------------- */

/* Writes a collective operation that returned `code`. root: rank in the communicator, or -1.
 * request: of one that only begins, else NULL. */
int collective(int code, enum unisono_trace_collective kind, MPI_Comm comm, int root,
               uint64_t bytes, const MPI_Request *request);

/* Writes an agreement of the members of a file, each of which contributes `bytes` bytes. */
void agreed(communicator_t *communicator, uint64_t bytes);

/* ---- Files (files.c) ----------------------------------------------------------------------- */

typedef struct file {
    handle_entry_t entry;
    uint32_t number; /* in the trace */
    communicator_t *members; /* for collective calls of the file */
    MPI_Comm ordered_comm; /* of the members, for ordered calls; MPI_COMM_NULL until one is made */
    char *name;
    int amode;
    layout_t *layout; /* of the filetype of the view */
    uint64_t displacement, etype_bytes;
    enum representation representation;
    uint64_t sequential; /* etypes that a file without positions has moved */
    int has_split;
    uint32_t split; /* number of the active split collective operation */
} file_t;

file_t *file_of(MPI_File handle); /* NULL when it is not recorded */

/* ---- Table --------------------------------------------------------------------------------- */

/* Each file enters its functions. */
void program_enter(function_t **functions);
void messages_enter(function_t **functions);
void completions_enter(function_t **functions);
void collectives_enter(function_t **functions);
void constructors_enter(function_t **functions);
void files_enter(function_t **functions);
void accesses_enter(function_t **functions);

#define ENTER(name) (functions[CALL_##name] = (function_t *)call_##name)

#endif
