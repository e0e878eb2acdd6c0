/* constructors.c - calls that make communicators. A call is recorded as a collective operation of the
 * members of the old communicator. The new one is entered into the trace at once: communicators with the
 * same members are distinguished by their order, which is the same at all members. */
#include "recording.h"

/* Bytes that each rank sends to the others in MPI_Comm_split: color and key. */
enum { COLOR_AND_KEY_BYTES = 8 };

/* Writes a collective call on `comm` that has made a communicator for some of its members. */
static int made_by(int code, enum unisono_trace_collective kind, MPI_Comm comm, uint64_t bytes,
                   MPI_Comm made)
{
    if (code)
        return code;
    collective(code, kind, comm, -1, bytes, NULL);
    communicator_of(made);
    return code;
}

#define JOINED(name, parameters, arguments)                                                        \
    static int call_##name parameters                                                              \
    {                                                                                              \
        int code = RUN(name, LIST arguments);                                                      \
        return made_by(code, UNISONO_TRACE_BARRIER, comm, 0, *made);                               \
    }
#define LIST(...) __VA_ARGS__

JOINED(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
JOINED(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made))
JOINED(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
JOINED(Cart_create,
       (MPI_Comm comm, int count, const int *sizes, const int *periods, int reorder,
        MPI_Comm *made),
       (comm, count, sizes, periods, reorder, made))
JOINED(Cart_sub, (MPI_Comm comm, const int *remains, MPI_Comm *made), (comm, remains, made))
JOINED(Graph_create,
       (MPI_Comm comm, int count, const int *index, const int *edges, int reorder,
        MPI_Comm *made),
       (comm, count, index, edges, reorder, made))
JOINED(Dist_graph_create,
       (MPI_Comm comm, int count, const int *sources, const int *degrees, const int *targets,
        const int *weights, MPI_Info info, int reorder, MPI_Comm *made),
       (comm, count, sources, degrees, targets, weights, info, reorder, made))
JOINED(Dist_graph_create_adjacent,
       (MPI_Comm comm, int count, const int *sources, const int *weights, int target_count,
        const int *targets, const int *target_weights, MPI_Info info, int reorder, MPI_Comm *made),
       (comm, count, sources, weights, target_count, targets, target_weights, info, reorder, made))

static int call_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    int code = RUN(Comm_split, comm, color, key, made);
    return made_by(code, UNISONO_TRACE_ALL_GATHER, comm, COLOR_AND_KEY_BYTES, *made);
}

static int call_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    int code = RUN(Comm_split_type, comm, type, key, info, made);
    return made_by(code, UNISONO_TRACE_ALL_GATHER, comm, COLOR_AND_KEY_BYTES, *made);
}

/* Only the members of the group make this call: those of the new communicator. */
static int call_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    int code = RUN(Comm_create_group, comm, group, tag, made);
    return collective(code, UNISONO_TRACE_BARRIER, *made, -1, 0, NULL);
}

/* The new communicator has the members of the old one, and may be used when the request has ended. */
static int begun(int code, MPI_Comm comm, MPI_Comm made, const MPI_Request *request)
{
    collective(code, UNISONO_TRACE_BARRIER, comm, -1, 0, request);
    if (!code)
        communicator_copy(comm, made);
    return code;
}

static int call_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request)
{
    int code = RUN(Comm_idup, comm, made, request);
    return begun(code, comm, *made, request);
}

static int call_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made,
                                    MPI_Request *request)
{
    int code = RUN(Comm_idup_with_info, comm, info, made, request);
    return begun(code, comm, *made, request);
}

static int call_Comm_free(MPI_Comm *comm)
{
    uint64_t word = WORD(*comm);
    int code = RUN(Comm_free, comm);
    if (!code)
        communicator_forget(word);
    return code;
}

static int call_Comm_disconnect(MPI_Comm *comm)
{
    uint64_t word = WORD(*comm);
    int code = RUN(Comm_disconnect, comm);
    if (!code)
        communicator_forget(word);
    return code;
}

void constructors_enter(function_t **functions)
{
    ENTER(Comm_dup);
    ENTER(Comm_dup_with_info);
    ENTER(Comm_idup);
    ENTER(Comm_idup_with_info);
    ENTER(Comm_split);
    ENTER(Comm_split_type);
    ENTER(Comm_create);
    ENTER(Comm_create_group);
    ENTER(Cart_create);
    ENTER(Cart_sub);
    ENTER(Graph_create);
    ENTER(Dist_graph_create);
    ENTER(Dist_graph_create_adjacent);
    ENTER(Comm_free);
    ENTER(Comm_disconnect);
}
