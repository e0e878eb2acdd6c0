/* members.c - meetings of the processes that have a file open.
 *
 * Members that wait sleep: a spinning wait, which MPI libraries prefer, would take the processor from
 * members that are still to come, and from servers. A wait that lasts too long ends the program and
 * names the members that are missing. */
#include "back.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int test_t(MPI_Request *, int *, MPI_Status *);

/* Seconds that members wait for one another, as the library does. */
static double timeout_s(void)
{
    const char *set = getenv("UNISONO_TIMEOUT");
    double seconds = set ? strtod(set, NULL) : 0;
    return seconds > 0 ? seconds : 60;
}

/* Collects the ranks whose marks lie in a directory. */
typedef struct marks {
    char *is_there; /* for each rank */
    int size;
} marks_t;

static int see_mark(const char *name, const unisono_stat_t *stat, void *context)
{
    (void)stat;
    const marks_t *marks = context;
    const char *slash = strrchr(name, '/');
    int rank = slash ? atoi(slash + 1) : -1;
    if (rank >= 0 && rank < marks->size)
        marks->is_there[rank] = 1;
    return 0;
}

/* Writes the ranks without marks: "1, 2, 5". */
static void list_missing(const marks_t *marks, char *text, size_t bytes)
{
    size_t used = 0;
    *text = 0;
    for (int rank = 0; rank < marks->size && used + 16 < bytes; rank++)
        if (!marks->is_there[rank])
            used += (size_t)snprintf(text + used, bytes - used, used ? ", %d" : "%d", rank);
}

/* Names the members that have not called MPI_File_open. Those that wait leave marks in the
 * instance, since MPI tells nobody who has come. */
static void explain_missing(MPI_Comm comm, const char *name)
{
    char folder[600], mark[700], cause[900], missing[400];
    int rank = 0, size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    marks_t marks = {calloc((size_t)size, 1), size};
    unisono_t *unisono = connection();
    unisono_file_t *file = NULL;
    if (!unisono || !marks.is_there)
        return;
    int used = snprintf(folder, sizeof folder, ".unisono/waiting/%d-", size);
    for (const char *c = name; *c && used + 1 < (int)sizeof folder; c++)
        folder[used++] = *c == '/' ? '-' : *c;
    folder[used] = 0;
    unisono_mkdir(unisono, folder, 1);
    snprintf(mark, sizeof mark, "%s/%d", folder, rank);
    unisono_open(unisono, mark, UNISONO_CREATE, NULL, &file);
    unisono_close(file);
    nanosleep(&(struct timespec){1, 0}, NULL);
    unisono_list(unisono, folder, see_mark, &marks);
    int lowest = 0;
    while (lowest < size && !marks.is_there[lowest])
        lowest++;
    list_missing(&marks, missing, sizeof missing);
    snprintf(cause, sizeof cause, "rank %s has not called it within %.0f s; the others are in it",
             missing, timeout_s());
    if (rank == lowest)
        explain("MPI_File_open failed", cause,
                "let every process of the communicator open the file");
    nanosleep(&(struct timespec){1, 0}, NULL);
    unisono_remove(unisono, mark);
    free(marks.is_there);
}

/* Turns of a wait in which the processor is only offered to others, and after which a wait is long. */
enum { YIELDS = 64, SHORT_SLEEPS = 1000 };

/* Waits for a collective call of MPI. Returns -1 when it takes too long. */
static int settle(MPI_Request *request)
{
    int flag = 0;
    double end = now_s() + timeout_s();
    for (unsigned turns = 0;; turns++) {
        int code = REAL(Test, test_t)(request, &flag, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS || flag)
            return code;
        if (turns < YIELDS)
            sched_yield();
        else if (turns < SHORT_SLEEPS)
            nanosleep(&(struct timespec){0, 30000}, NULL);
        else if (now_s() > end)
            return -1;
        else
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

int members_join(open_file_t *file, MPI_Comm comm)
{
    MPI_Request request;
    int code = PMPI_Comm_idup(comm, &file->comm, &request);
    if (code == MPI_SUCCESS)
        code = settle(&request);
    if (code >= 0)
        return code;
    explain_missing(comm, file->name);
    /* The call cannot be taken back, so the program cannot go on. */
    PMPI_Abort(comm, EXIT_MEMBERS_MISSING);
    return MPI_ERR_OTHER;
}

/* Waits for a collective call of all members, who have met before it. */
static int finish(open_file_t *file, int code, MPI_Request *request)
{
    if (code == MPI_SUCCESS)
        code = settle(request);
    if (code < 0) {
        explain("a call of MPI has not ended within the time-out",
                "another process of the file has ended, or is stopped",
                "see the output of the other processes; UNISONO_TIMEOUT sets the time-out");
        PMPI_Abort(file->comm, EXIT_MEMBERS_MISSING);
    }
    return code;
}

int members_greatest(open_file_t *file, const long *mine, long *all, int count)
{
    MPI_Request request;
    int code = PMPI_Iallreduce(mine, all, count, MPI_LONG, MPI_MAX, file->comm, &request);
    return finish(file, code, &request);
}

int members_tell(open_file_t *file, void *data, int count, MPI_Datatype type, int from)
{
    MPI_Request request;
    int code = PMPI_Ibcast(data, count, type, from, file->comm, &request);
    return finish(file, code, &request);
}

int members_sum(open_file_t *file, uint64_t mine, uint64_t *sum)
{
    MPI_Request request;
    int code = PMPI_Iscan(&mine, sum, 1, MPI_UINT64_T, MPI_SUM, file->comm, &request);
    return finish(file, code, &request);
}

int members_gather(const void *mine, void *all, size_t bytes, void *context)
{
    open_file_t *file = context;
    MPI_Request request;
    int code = PMPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, file->comm,
                               &request);
    return finish(file, code, &request) != MPI_SUCCESS;
}

int agree(open_file_t *file, int call, int code)
{
    if (file->size == 1)
        return code;
    /* The servers name members that are missing. */
    if (unisono_barrier(file->group))
        return class_of_failure(file, call);
    long mine = code, greatest = code;
    return members_greatest(file, &mine, &greatest, 1) == MPI_SUCCESS ? (int)greatest
                                                                      : MPI_ERR_INTERN;
}
