/* shared_pointer.c - the shared file pointer, a counter at the servers.
 *
 * Ordered calls are collective. A prefix sum gives each member its place behind those of lower ranks, and
 * the last member moves the counter for all. */
#include "../errors/errors.h"
#include "transfers.h"

/* Takes the etypes of an access from the shared file pointer; gives the first of them. */
static int take(open_file_t *file, const access_t *access, int code, uint64_t *first)
{
    *first = 0;
    file->has_moved_shared = 1;
    if (code == MPI_SUCCESS && unisono_counter_add(file->group, access->etypes, first))
        code = class_of_failure(file, access->call);
    return code;
}

/* Takes the etypes of all members from the shared file pointer, in the order of ranks. */
static int take_ordered(open_file_t *file, const access_t *access, int code, uint64_t *first)
{
    uint64_t mine = code == MPI_SUCCESS ? access->etypes : 0, end = mine, start = 0;
    long taken[2] = {0, MPI_SUCCESS};
    int last = file->size - 1;
    file->has_moved_shared = 1;
    int result = file->size > 1 ? members_scan(file, access->call, mine, &end) : MPI_SUCCESS;
    if (result == MPI_SUCCESS && file->rank == last) {
        if (unisono_counter_add(file->group, end, &start))
            taken[1] = class_of_failure(file, access->call);
        taken[0] = (long)start;
    }
    if (result == MPI_SUCCESS && file->size > 1)
        result = members_broadcast(file, taken, 2, last);
    if (result != MPI_SUCCESS)
        return result;
    *first = (uint64_t)taken[0] + end - mine;
    return code == MPI_SUCCESS ? (int)taken[1] : code;
}

int shared_take(open_file_t *file, const access_t *access, int code, uint64_t *first)
{
    return access->flags & COLLECTIVE ? take_ordered(file, access, code, first)
                                      : take(file, access, code, first);
}
