/* members.c - meetings of the processes that have a file open.
 *
 * Members that wait sleep: a spinning wait, which MPI libraries prefer, would take the processor from
 * members that are still to come, and from servers. A wait that lasts too long ends the program and
 * names the members that are missing. */
#include "../errors/errors.h"
#include "files.h"

#include <math.h>
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
    uint64_t since_ns; /* older marks are those of a program that was killed */
} marks_t;

static int see_mark(const char *name, const unisono_stat_t *stat, void *context)
{
    const marks_t *marks = context;
    const char *slash = strrchr(name, '/');
    int rank = slash ? atoi(slash + 1) : -1;
    if (rank >= 0 && rank < marks->size && stat->modified_ns >= marks->since_ns)
        marks->is_there[rank] = 1;
    return 0;
}

/* Leaves the mark of a rank that waits, as the first of a wait: a killed program may have left one. */
static void leave_mark(unisono_t *unisono, const char *mark, marks_t *marks)
{
    unisono_file_t *file = NULL;
    unisono_stat_t stat = {.size = sizeof stat};
    unisono_remove(unisono, mark);
    unisono_open(unisono, mark, UNISONO_CREATE, NULL, &file);
    unisono_close(file);
    /* All marks of one call are made within its limit, and those of an earlier run before it began. */
    uint64_t limit_ns = (uint64_t)(1e9 * timeout_s());
    if (unisono_stat(unisono, mark, &stat) == 0 && stat.modified_ns > limit_ns)
        marks->since_ns = stat.modified_ns - limit_ns;
}

/* Writes the ranks without marks: "rank 1, 2, 5"; nothing where there are none. */
static void list_missing(const marks_t *marks, char *text, size_t bytes)
{
    size_t used = 0;
    for (int rank = 0; rank < marks->size && used + 16 < bytes; rank++)
        if (!marks->is_there[rank])
            used += (size_t)snprintf(text + used, bytes - used, used ? ", %d" : "rank %d", rank);
}

/* Directory of the marks of a call: MPI_File_open of "a/b" by 4 processes has ".unisono/waiting/
 * MPI_File_open-4-a-b". */
static void name_marks(char *text, size_t bytes, int call, int size, const char *name)
{
    size_t used = (size_t)snprintf(text, bytes, ".unisono/waiting/%s-%d-", call_name(call), size);
    for (const char *c = name; *c && used + 1 < bytes; c++)
        text[used++] = *c == '/' ? '-' : *c;
    text[used < bytes ? used : bytes - 1] = 0;
}

/* Names the members that have not made a call, to end the program with. Those that wait leave marks
 * in the instance, since MPI tells nobody who has come. Returns 1 at the member that has printed. */
static int explain_missing(MPI_Comm comm, const char *name, int call)
{
    char folder[600], mark[700], error[128], cause[900], missing[400] = "another rank";
    int rank = 0, size = 1, lowest = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    marks_t marks = {calloc((size_t)size, 1), size, 0};
    unisono_t *unisono = connection();
    name_marks(folder, sizeof folder, call, size, name);
    snprintf(mark, sizeof mark, "%s/%d", folder, rank);
    if (unisono && marks.is_there) {
        unisono_mkdir(unisono, folder, 1);
        leave_mark(unisono, mark, &marks);
        nanosleep(&(struct timespec){1, 0}, NULL);
        marks.is_there[rank] = 1;
        if (unisono_list(unisono, folder, see_mark, &marks) == 0)
            list_missing(&marks, missing, sizeof missing);
        while (!marks.is_there[lowest])
            lowest++;
    }
    snprintf(error, sizeof error, "%s failed", call_name(call));
    snprintf(cause, sizeof cause, "%s has not called it for \"%s\" within %.0f s; the others wait",
             missing, name, timeout_s());
    explain_as(rank == lowest, error, cause, "make the call in every process that has the file open");
    if (unisono && marks.is_there) {
        nanosleep(&(struct timespec){1, 0}, NULL);
        unisono_remove(unisono, mark);
    }
    free(marks.is_there);
    return rank == lowest;
}

/* Turns of a wait: tests without a sleep, and with short sleeps, after which a wait is long. Where
 * Open MPI has more processes than processors, each of its tests gives the processor away, for some
 * milliseconds if others compute; a process that sleeps is given it back at once. */
enum { TESTS = 2, SHORT_SLEEPS = 1000 };

/* Waits for a collective call of MPI. Returns -1 when it takes longer than `limit_s`. */
static int settle(MPI_Request *request, double limit_s)
{
    int flag = 0;
    double end = now_s() + limit_s;
    for (unsigned turns = 0;; turns++) {
        int code = REAL(Test, test_t)(request, &flag, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS || flag)
            return code;
        if (turns < TESTS)
            continue;
        if (turns < SHORT_SLEEPS)
            nanosleep(&(struct timespec){0, 10000}, NULL);
        else if (now_s() > end)
            return -1;
        else
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

int members_join(open_file_t *file, MPI_Comm comm, const char *name)
{
    MPI_Request request;
    int code = PMPI_Comm_idup(comm, &file->comm, &request);
    if (code == MPI_SUCCESS)
        code = settle(&request, timeout_s());
    if (code >= 0)
        return code;
    /* The call cannot be taken back, so the program cannot go on. */
    end_program(comm, explain_missing(comm, name, CALL_File_open));
    return MPI_ERR_OTHER;
}

/* Waits for the first meeting of all members in a call of the program. */
static int meet(open_file_t *file, int call, int code, MPI_Request *request)
{
    if (code == MPI_SUCCESS)
        code = settle(request, timeout_s());
    if (code >= 0)
        return code;
    int is_first = explain_missing(file->comm, file->name, call);
    if (!file->has_errhandler && !file->handler.function)
        end_program(file->comm, is_first);
    return MPI_ERR_OTHER;
}

/* Waits for a later meeting in the same call. No member is missing, but one may be waiting for
 * servers, for as long as they need; the library tells their failures. */
static int meet_again(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? settle(request, HUGE_VAL) : code;
}

int members_greatest(open_file_t *file, int call, const long *mine, long *all, int count)
{
    MPI_Request request;
    int code = PMPI_Iallreduce(mine, all, count, MPI_LONG, MPI_MAX, file->comm, &request);
    return meet(file, call, code, &request);
}

int members_tell(open_file_t *file, void *data, int count, int from)
{
    MPI_Request request;
    int code = PMPI_Ibcast(data, count, MPI_LONG, from, file->comm, &request);
    return meet_again(code, &request);
}

int members_sum(open_file_t *file, int call, uint64_t mine, uint64_t *sum)
{
    MPI_Request request;
    int code = PMPI_Iscan(&mine, sum, 1, MPI_UINT64_T, MPI_SUM, file->comm, &request);
    return meet(file, call, code, &request);
}

int members_gather(open_file_t *file, const void *mine, void *all, size_t bytes)
{
    MPI_Request request;
    int code = PMPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, file->comm,
                               &request);
    return meet_again(code, &request);
}

/* Lets all members know the cause of a failure that they have agreed on: that of the lowest member
 * that knows one. `code` is this member's own. */
static void share_cause(open_file_t *file, int code, int agreed)
{
    MPI_Request request;
    char text[CAUSE_BYTES + 32] = "";
    const char *own = code == agreed ? cause_of(agreed) : NULL;
    int mine = own ? file->rank : file->size, lowest = file->size;
    int met = PMPI_Iallreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, file->comm, &request);
    if (meet_again(met, &request) != MPI_SUCCESS || lowest == file->size)
        return;
    if (lowest == file->rank)
        snprintf(text, sizeof text, "at rank %d, %s", lowest, own);
    met = PMPI_Ibcast(text, sizeof text, MPI_CHAR, lowest, file->comm, &request);
    if (meet_again(met, &request) == MPI_SUCCESS && !own)
        cause_keep(agreed, text);
}

/* Ends an agreement with the greatest code of all members. */
static int agreed(open_file_t *file, int code, int met, long greatest)
{
    if (met != MPI_SUCCESS)
        return met;
    if (greatest != MPI_SUCCESS)
        share_cause(file, code, (int)greatest);
    return (int)greatest;
}

int agree(open_file_t *file, int call, int code)
{
    long mine = code, greatest = code;
    if (file->size == 1)
        return code;
    int met = members_greatest(file, call, &mine, &greatest, 1);
    return agreed(file, code, met, greatest);
}

int agree_again(open_file_t *file, int code)
{
    MPI_Request request;
    long mine = code, greatest = code;
    if (file->size == 1)
        return code;
    int met = PMPI_Iallreduce(&mine, &greatest, 1, MPI_LONG, MPI_MAX, file->comm, &request);
    /* Not within the call below: an argument may be evaluated before another. */
    met = meet_again(met, &request);
    return agreed(file, code, met, greatest);
}
