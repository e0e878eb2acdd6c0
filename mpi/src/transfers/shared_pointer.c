/* shared_pointer.c - the shared file pointer, a counter at the servers.
 *
 * Ordered calls are collective: members take their places behind one another by a prefix sum, and
 * the last member moves the counter for all of them. */
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

/* Takes the places of all members from the shared file pointer, in the order of their ranks. A
 * member with an earlier error takes none. */
static int take_ordered(open_file_t *file, const access_t *access, int code, uint64_t *first)
{
    uint64_t mine = code == MPI_SUCCESS ? access->etypes : 0, end = mine, start = 0;
    long told[2] = {0, MPI_SUCCESS};
    int last = file->size - 1;
    file->has_moved_shared = 1;
    int met = file->size > 1 ? members_sum(file, access->call, mine, &end) : MPI_SUCCESS;
    if (met == MPI_SUCCESS && file->rank == last) {
        if (unisono_counter_add(file->group, end, &start))
            told[1] = class_of_failure(file, access->call);
        told[0] = (long)start;
    }
    if (met == MPI_SUCCESS && file->size > 1)
        met = members_tell(file, told, 2, last);
    if (met != MPI_SUCCESS)
        return met;
    *first = (uint64_t)told[0] + end - mine;
    return code == MPI_SUCCESS ? (int)told[1] : code;
}

int shared_take(open_file_t *file, const access_t *access, int code, uint64_t *first)
{
    return access->manner & COLLECTIVE ? take_ordered(file, access, code, first)
                                       : take(file, access, code, first);
}
