/* communicators.c - communicators by their handles: their numbers in the trace, and the numbers of
 * their ranks in MPI_COMM_WORLD. */
#include "recording.h"

#include <stdlib.h>
#include <string.h>

static handle_table_t table;

/* The communicator that was found last. */
static communicator_t *last;

communicator_t *communicator_keep(communicator_t *communicator)
{
    communicator->references++;
    return communicator;
}

void communicator_release(communicator_t *communicator)
{
    if (!communicator || --communicator->references)
        return;
    free(communicator->members);
    free(communicator);
}

void communicator_forget(uint64_t word)
{
    handle_entry_t *entry = table_find(&table, word);
    last = NULL;
    if (entry) {
        table_remove(&table, entry);
        communicator_release((communicator_t *)entry);
    }
}

uint32_t world_rank(const communicator_t *communicator, int rank)
{
    return communicator->members[rank];
}

/* Finds the members of a communicator of one group. Returns 0 when some are processes of other
 * programs. */
static int find_members(MPI_Comm comm, communicator_t *communicator)
{
    MPI_Group world, group;
    size_t count = (size_t)communicator->size;
    int *ranks = calloc(2 * count, sizeof *ranks), are_known = ranks != NULL;
    communicator->members = calloc(count, sizeof *communicator->members);
    if (!ranks || !communicator->members) {
        stream_fail("not enough memory");
        free(ranks);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        ranks[i] = (int)i;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, (int)count, ranks, world, ranks + count);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    for (size_t i = 0; i < count; i++) {
        are_known &= ranks[count + i] != MPI_UNDEFINED;
        communicator->members[i] = (uint32_t)ranks[count + i];
    }
    free(ranks);
    return are_known;
}

/* Gives a number to a communicator whose members are known. */
static uint32_t number_of(const communicator_t *communicator)
{
    int64_t number = 0;
    if (communicator->members)
        number = WRITE_EVENT(communicator, communicator->members, (size_t)communicator->size);
    return number < 0 ? 0 : (uint32_t)number;
}

/* Describes a communicator that the recorder has not seen before. */
static void describe(MPI_Comm comm, communicator_t *communicator)
{
    int has_two_groups = 0;
    PMPI_Comm_test_inter(comm, &has_two_groups);
    PMPI_Comm_rank(comm, &communicator->rank);
    PMPI_Comm_size(comm, &communicator->size);
    if (has_two_groups || !find_members(comm, communicator)) {
        note(has_two_groups ? "communicators of two groups" : "processes of other programs");
        communicator->is_foreign = 1;
    } else if (comm != MPI_COMM_WORLD) {
        communicator->number = number_of(communicator);
    }
}

static communicator_t *communicator_new(void)
{
    communicator_t *made = calloc(1, sizeof *made);
    if (made)
        made->references = 1;
    else
        stream_fail("not enough memory");
    return made;
}

communicator_t *communicator_of(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return NULL;
    if (!last || last->entry.word != WORD(comm)) {
        last = (communicator_t *)table_find(&table, WORD(comm));
        if (!last) {
            communicator_t *made = communicator_new();
            if (!made)
                return NULL;
            describe(comm, made);
            table_add(&table, &made->entry, WORD(comm));
            last = made;
        }
    }
    return last->is_foreign ? NULL : last;
}

communicator_t *communicator_twin(const communicator_t *communicator)
{
    size_t bytes = (size_t)communicator->size * sizeof *communicator->members;
    communicator_t *made = communicator_new();
    if (!made)
        return NULL;
    made->rank = communicator->rank;
    made->size = communicator->size;
    made->members = malloc(bytes);
    if (!made->members) {
        stream_fail("not enough memory");
        return made;
    }
    memcpy(made->members, communicator->members, bytes);
    made->number = number_of(made);
    return made;
}

void communicator_copy(MPI_Comm comm, MPI_Comm made)
{
    const communicator_t *old = communicator_of(comm);
    communicator_t *copy = old && made != MPI_COMM_NULL ? communicator_twin(old) : NULL;
    if (copy)
        table_add(&table, &copy->entry, WORD(made));
}
