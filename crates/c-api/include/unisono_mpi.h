/* Unisono for programs of MPI: groups of the processes of a communicator.
 *
 * Include it after <mpi.h>. It is part of no library, so it fits every MPI. */
#ifndef UNISONO_MPI_H
#define UNISONO_MPI_H

#include <mpi.h>
#include <unisono.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An all-gather over the communicator at which context points. */
static inline int unisono_mpi_all_gather(const void *mine, void *all, size_t bytes, void *context)
{
    MPI_Comm communicator = *(MPI_Comm *)context;
    /* Some old libraries do not take a constant. */
    return MPI_Allgather((void *)(size_t)mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                         communicator) != MPI_SUCCESS;
}

/* Forms a group of the processes of a communicator, with their ranks there, for
 * unisono_find_records, unisono_read_all and others. Collective.
 * Errors: as unisono_group_form_with. */
static inline int unisono_group_of_communicator(unisono_t *connection, MPI_Comm communicator,
                                                unisono_group_t **group)
{
    int rank = 0, size = 0;
    if (MPI_Comm_rank(communicator, &rank) != MPI_SUCCESS
        || MPI_Comm_size(communicator, &size) != MPI_SUCCESS)
        return unisono_group_form(NULL, NULL, 0, 0, group);
    return unisono_group_form_with(connection, (uint32_t)rank, (uint32_t)size,
                                   unisono_mpi_all_gather, &communicator, group);
}

#ifdef __cplusplus
}
#endif

#endif
