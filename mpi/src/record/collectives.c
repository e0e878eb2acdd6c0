/* collectives.c - collective operations, and the bytes that this rank contributes to each. */
#include "recording.h"

/* ---- Bytes --------------------------------------------------------------------------------- */

/* Bytes of the elements of a call. */
#define ELEMENTS(count, type) data_bytes((count), (type))

/* Number of members; 0 when the communicator is not recorded. */
static int size_of(MPI_Comm comm)
{
    const communicator_t *communicator = communicator_of(comm);
    return communicator ? communicator->size : 0;
}

static int rank_of(MPI_Comm comm)
{
    const communicator_t *communicator = communicator_of(comm);
    return communicator ? communicator->rank : 0;
}

/* Bytes of elements whose counts are in an array, for both types of counts. */
#define SUM(name, count_type)                                                                      \
    static uint64_t name(const count_type *counts, MPI_Datatype type, MPI_Comm comm)               \
    {                                                                                              \
        MPI_Count sum = 0;                                                                         \
        for (int i = 0; i < size_of(comm); i++)                                                    \
            sum += counts[i];                                                                      \
        return data_bytes(sum, type);                                                              \
    }
#define SUM_OF_TYPES(name, count_type)                                                             \
    static uint64_t name(const count_type *counts, const MPI_Datatype *types, MPI_Comm comm)       \
    {                                                                                              \
        uint64_t sum = 0;                                                                          \
        for (int i = 0; i < size_of(comm); i++)                                                    \
            sum += counts[i] ? data_bytes(counts[i], types[i]) : 0;                                \
        return sum;                                                                                \
    }
SUM(sum, int)
SUM(sum_c, MPI_Count)
SUM_OF_TYPES(sum_of_types, int)
SUM_OF_TYPES(sum_of_types_c, MPI_Count)

static int is_in_place(const void *buffer)
{
    return buffer == MPI_IN_PLACE;
}

/* ---- Events -------------------------------------------------------------------------------- */

static void write_collective(const communicator_t *communicator,
                             enum unisono_trace_collective kind, int root, uint64_t bytes,
                             uint32_t number)
{
    WRITE_EVENT(collective, clock_times(), kind, communicator->number,
          root < 0 ? 0 : world_rank(communicator, root), bytes, number);
}

void agreed(communicator_t *communicator, uint64_t bytes)
{
    write_collective(communicator, UNISONO_TRACE_AGREE, -1, bytes, UNISONO_TRACE_NO_REQUEST);
}

int collective(int code, enum unisono_trace_collective kind, MPI_Comm comm, int root,
               uint64_t bytes, const MPI_Request *request)
{
    communicator_t *communicator;
    if (code || !(communicator = communicator_of(comm)))
        return code;
    uint32_t number = UNISONO_TRACE_NO_REQUEST;
    if (request) {
        request_t *begun = request_add(*request, OTHER, NULL);
        if (begun)
            number = begun->number;
    }
    write_collective(communicator, kind, root, bytes, number);
    return code;
}

/* Defines the blocking and the nonblocking form of an operation. */
#define BOTH(name, iname, kind, root, bytes, parameters, arguments)                                \
    static int call_##name(LIST parameters, MPI_Comm comm)                                         \
    {                                                                                              \
        int code = RUN(name, LIST arguments, comm);                                                \
        return collective(code, UNISONO_TRACE_##kind, comm, root, bytes, NULL);                    \
    }                                                                                              \
    static int call_##iname(LIST parameters, MPI_Comm comm, MPI_Request *request)                  \
    {                                                                                              \
        int code = RUN(iname, LIST arguments, comm, request);                                      \
        return collective(code, UNISONO_TRACE_##kind, comm, root, bytes, request);                 \
    }
#define LIST(...) __VA_ARGS__

/* Parameters that several operations have: data that is sent, and data that is received. */
#define OUT(count_type) const void *out, count_type out_count, MPI_Datatype out_type
#define IN(count_type) void *in, count_type in_count, MPI_Datatype in_type
#define OUT_GIVEN out, out_count, out_type
#define IN_GIVEN in, in_count, in_type
#define OUTS(count_type, place_type)                                                               \
    const void *out, const count_type *out_counts, const place_type *out_places,                   \
        MPI_Datatype out_type
#define INS(count_type, place_type)                                                                \
    void *in, const count_type *in_counts, const place_type *in_places, MPI_Datatype in_type
#define OUTS_GIVEN out, out_counts, out_places, out_type
#define INS_GIVEN in, in_counts, in_places, in_type
#define OUT_OR_IN                                                                                  \
    (is_in_place(out) ? ELEMENTS(in_count, in_type) : ELEMENTS(out_count, out_type))
#define IN_OR_OUT                                                                                  \
    (is_in_place(in) ? ELEMENTS(out_count, out_type) : ELEMENTS(in_count, in_type))
#define OUT_OR_MINE                                                                                \
    (is_in_place(out) ? ELEMENTS(in_counts[rank_of(comm)], in_type) : ELEMENTS(out_count, out_type))
#define IN_OR_MINE                                                                                 \
    (is_in_place(in) ? ELEMENTS(out_counts[rank_of(comm)], out_type) : ELEMENTS(in_count, in_type))

#define FORMS(_, count_type, place_type)                                                           \
    BOTH(Bcast##_, Ibcast##_, BROADCAST, root, ELEMENTS(count, type),                              \
         (void *data, count_type count, MPI_Datatype type, int root), (data, count, type, root))   \
    BOTH(Reduce##_, Ireduce##_, REDUCE, root, ELEMENTS(count, type),                               \
         (const void *out, void *in, count_type count, MPI_Datatype type, MPI_Op op, int root),    \
         (out, in, count, type, op, root))                                                         \
    BOTH(Allreduce##_, Iallreduce##_, ALL_REDUCE, -1, ELEMENTS(count, type),                       \
         (const void *out, void *in, count_type count, MPI_Datatype type, MPI_Op op),              \
         (out, in, count, type, op))                                                               \
    BOTH(Scan##_, Iscan##_, SCAN, -1, ELEMENTS(count, type),                                       \
         (const void *out, void *in, count_type count, MPI_Datatype type, MPI_Op op),              \
         (out, in, count, type, op))                                                               \
    BOTH(Exscan##_, Iexscan##_, SCAN, -1, ELEMENTS(count, type),                                   \
         (const void *out, void *in, count_type count, MPI_Datatype type, MPI_Op op),              \
         (out, in, count, type, op))                                                               \
    BOTH(Gather##_, Igather##_, GATHER, root, OUT_OR_IN, (OUT(count_type), IN(count_type), int root), \
         (OUT_GIVEN, IN_GIVEN, root))                                                              \
    BOTH(Gatherv##_, Igatherv##_, GATHER, root, OUT_OR_MINE,                                       \
         (OUT(count_type), INS(count_type, place_type), int root), (OUT_GIVEN, INS_GIVEN, root))   \
    BOTH(Scatter##_, Iscatter##_, SCATTER, root, IN_OR_OUT,                                        \
         (OUT(count_type), IN(count_type), int root), (OUT_GIVEN, IN_GIVEN, root))                 \
    BOTH(Scatterv##_, Iscatterv##_, SCATTER, root, IN_OR_MINE,                                     \
         (OUTS(count_type, place_type), IN(count_type), int root), (OUTS_GIVEN, IN_GIVEN, root))   \
    BOTH(Allgather##_, Iallgather##_, ALL_GATHER, -1, OUT_OR_IN, (OUT(count_type), IN(count_type)), \
         (OUT_GIVEN, IN_GIVEN))                                                                    \
    BOTH(Allgatherv##_, Iallgatherv##_, ALL_GATHER, -1, OUT_OR_MINE,                               \
         (OUT(count_type), INS(count_type, place_type)), (OUT_GIVEN, INS_GIVEN))                   \
    BOTH(Alltoall##_, Ialltoall##_, ALL_TO_ALL, -1, OUT_OR_IN *(uint64_t)size_of(comm),            \
         (OUT(count_type), IN(count_type)), (OUT_GIVEN, IN_GIVEN))                                 \
    BOTH(Alltoallv##_, Ialltoallv##_, ALL_TO_ALL, -1,                                              \
         is_in_place(out) ? sum##_(in_counts, in_type, comm) : sum##_(out_counts, out_type, comm), \
         (OUTS(count_type, place_type), INS(count_type, place_type)), (OUTS_GIVEN, INS_GIVEN))     \
    BOTH(Alltoallw##_, Ialltoallw##_, ALL_TO_ALL, -1,                                              \
         is_in_place(out) ? sum_of_types##_(in_counts, in_types, comm)                             \
                          : sum_of_types##_(out_counts, out_types, comm),                          \
         (const void *out, const count_type *out_counts, const place_type *out_places,             \
          const MPI_Datatype *out_types, void *in, const count_type *in_counts,                    \
          const place_type *in_places, const MPI_Datatype *in_types),                              \
         (out, out_counts, out_places, out_types, in, in_counts, in_places, in_types))             \
    BOTH(Reduce_scatter##_, Ireduce_scatter##_, REDUCE_SCATTER, -1, sum##_(counts, type, comm),    \
         (const void *out, void *in, const count_type *counts, MPI_Datatype type, MPI_Op op),      \
         (out, in, counts, type, op))                                                              \
    BOTH(Reduce_scatter_block##_, Ireduce_scatter_block##_, REDUCE_SCATTER, -1,                    \
         ELEMENTS(count, type) * (uint64_t)size_of(comm),                                          \
         (const void *out, void *in, count_type count, MPI_Datatype type, MPI_Op op),              \
         (out, in, count, type, op))

FORMS(, int, int)
FORMS(_c, MPI_Count, MPI_Aint)

static int call_Barrier(MPI_Comm comm)
{
    int code = RUN(Barrier, comm);
    return collective(code, UNISONO_TRACE_BARRIER, comm, -1, 0, NULL);
}

static int call_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    int code = RUN(Ibarrier, comm, request);
    return collective(code, UNISONO_TRACE_BARRIER, comm, -1, 0, request);
}

#define ENTER_BOTH(name, iname)                                                                    \
    ENTER(name);                                                                                   \
    ENTER(iname)
#define ENTER_FORMS(_)                                                                             \
    do {                                                                                           \
        ENTER_BOTH(Bcast##_, Ibcast##_);                                                           \
        ENTER_BOTH(Reduce##_, Ireduce##_);                                                         \
        ENTER_BOTH(Allreduce##_, Iallreduce##_);                                                   \
        ENTER_BOTH(Scan##_, Iscan##_);                                                             \
        ENTER_BOTH(Exscan##_, Iexscan##_);                                                         \
        ENTER_BOTH(Gather##_, Igather##_);                                                         \
        ENTER_BOTH(Gatherv##_, Igatherv##_);                                                       \
        ENTER_BOTH(Scatter##_, Iscatter##_);                                                       \
        ENTER_BOTH(Scatterv##_, Iscatterv##_);                                                     \
        ENTER_BOTH(Allgather##_, Iallgather##_);                                                   \
        ENTER_BOTH(Allgatherv##_, Iallgatherv##_);                                                 \
        ENTER_BOTH(Alltoall##_, Ialltoall##_);                                                     \
        ENTER_BOTH(Alltoallv##_, Ialltoallv##_);                                                   \
        ENTER_BOTH(Alltoallw##_, Ialltoallw##_);                                                   \
        ENTER_BOTH(Reduce_scatter##_, Ireduce_scatter##_);                                         \
        ENTER_BOTH(Reduce_scatter_block##_, Ireduce_scatter_block##_);                             \
    } while (0)

void collectives_enter(function_t **functions)
{
    ENTER_BOTH(Barrier, Ibarrier);
    ENTER_FORMS();
    ENTER_FORMS(_c);
}
