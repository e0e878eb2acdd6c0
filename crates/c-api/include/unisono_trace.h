/* unisono_trace.h - writes the trace of one rank.
 *
 * For libunisono-record, the recorder of MPI programs. Calls of one trace must not overlap: the
 * recorder holds a lock. All functions return 0, a number, or a negative errno (-ENOSPC when the
 * disk is full), which unisono_last_error explains; after an error every later call for the trace
 * returns it too and writes nothing. What was written
 * before stays readable, also when the process is killed.
 */
#ifndef UNISONO_TRACE_H
#define UNISONO_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <unisono.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct unisono_trace unisono_trace_t;

/* Times of a call, in nanoseconds (trace::Event). */
typedef struct unisono_trace_times {
    uint64_t computed_ns; /* processor time since the end of the call before */
    uint64_t blocked_ns;  /* time since then in which the rank neither computed nor was ready to */
    uint64_t took_ns;     /* duration of the call */
    int depends_on_timing;
} unisono_trace_times_t;

#define UNISONO_TRACE_NO_REQUEST UINT32_MAX
#define UNISONO_TRACE_NO_MESSAGE_TAG INT32_MIN

/* Kinds of collective operations, in the order of trace::Collective. */
enum unisono_trace_collective {
    UNISONO_TRACE_BARRIER,
    UNISONO_TRACE_BROADCAST,
    UNISONO_TRACE_REDUCE,
    UNISONO_TRACE_ALL_REDUCE,
    UNISONO_TRACE_GATHER,
    UNISONO_TRACE_SCATTER,
    UNISONO_TRACE_ALL_GATHER,
    UNISONO_TRACE_ALL_TO_ALL,
    UNISONO_TRACE_SCAN,
    UNISONO_TRACE_REDUCE_SCATTER,
    UNISONO_TRACE_AGREE
};

/* Flags of transfers. */
enum { UNISONO_TRACE_READ = 0, UNISONO_TRACE_WRITE = 1, UNISONO_TRACE_IS_COLLECTIVE = 2 };

/* Flags of open calls. */
enum { UNISONO_TRACE_CREATES = 1, UNISONO_TRACE_IS_FRESH = 2 };

/* Begins the stream of a rank in the directory, which exists. Number 0 of the communicators is
 * MPI_COMM_WORLD with all ranks. host: name of the rank's host. mpi: version of the MPI library. */
int unisono_trace_create(const char *directory, uint32_t rank, uint32_t ranks, const char *host,
                         const char *mpi, unisono_trace_t **trace);

/* Numbers of a communicator (ranks of MPI_COMM_WORLD in the order of the communicator) and of a file
 * that is opened. Each call gives a new number, also for members that another communicator has.
 * The k-th communicator of certain members at one rank is the k-th of them at the other members: so
 * call unisono_trace_communicator once for each communicator, when it is made, at all members. */
int64_t unisono_trace_communicator(unisono_trace_t *trace, const uint32_t *members, size_t count);
int64_t unisono_trace_file(unisono_trace_t *trace, const char *name);

int unisono_trace_begin(unisono_trace_t *trace, const unisono_trace_times_t *times);
int unisono_trace_end(unisono_trace_t *trace, const unisono_trace_times_t *times);

/* Peers and roots are ranks of MPI_COMM_WORLD. request: a number that the recorder chose, or
 * UNISONO_TRACE_NO_REQUEST. */
int unisono_trace_send(unisono_trace_t *trace, const unisono_trace_times_t *times,
                       uint32_t communicator, uint32_t peer, int32_t tag, uint64_t bytes,
                       int is_synchronous, uint32_t request);

/* A receive that only begins may have peer UINT32_MAX, tag UNISONO_TRACE_NO_MESSAGE_TAG and bytes 0:
 * unisono_trace_received tells them before the unisono_trace_wait that names its request. */
int unisono_trace_receive(unisono_trace_t *trace, const unisono_trace_times_t *times,
                          uint32_t communicator, uint32_t peer, int32_t tag, uint64_t bytes,
                          uint32_t request);
int unisono_trace_received(unisono_trace_t *trace, uint32_t request, uint32_t peer, int32_t tag,
                           uint64_t bytes);

int unisono_trace_wait(unisono_trace_t *trace, const unisono_trace_times_t *times,
                       const uint32_t *requests, size_t count);

int unisono_trace_collective(unisono_trace_t *trace, const unisono_trace_times_t *times,
                             enum unisono_trace_collective kind, uint32_t communicator,
                             uint32_t root, uint64_t bytes, uint32_t request);

int unisono_trace_open(unisono_trace_t *trace, const unisono_trace_times_t *times, uint32_t file,
                       uint32_t communicator, int flags, uint64_t bytes);
int unisono_trace_close(unisono_trace_t *trace, const unisono_trace_times_t *times, uint32_t file);
int unisono_trace_delete(unisono_trace_t *trace, const unisono_trace_times_t *times,
                         const char *name);

/* part: what the rank moves, or NULL for nothing. It stays the caller's. */
int unisono_trace_transfer(unisono_trace_t *trace, const unisono_trace_times_t *times,
                           uint32_t file, int flags, const unisono_part_t *part, uint32_t request);

int unisono_trace_sync(unisono_trace_t *trace, const unisono_trace_times_t *times, uint32_t file);
int unisono_trace_set_size(unisono_trace_t *trace, const unisono_trace_times_t *times,
                           uint32_t file, uint64_t bytes, int only_grows);
int unisono_trace_get_size(unisono_trace_t *trace, const unisono_trace_times_t *times,
                           uint32_t file);

/* Closes the stream and frees the trace, also after an error, which it returns again. NULL is
 * permitted. A stream that was not closed is readable, too. */
int unisono_trace_close_stream(unisono_trace_t *trace);

#ifdef __cplusplus
}
#endif

#endif
