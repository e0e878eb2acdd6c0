/* members.c - collective operations of MPI among the processes that have a file open.
 *
 * Members sleep while they wait. MPI libraries prefer to spin, which would take the processor from late
 * members and from servers. A wait that exceeds its limit ends the program, and names the members that
 * are missing. */
#include "../errors/errors.h"
#include "files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int test_t(MPI_Request *, int *, MPI_Status *);

/* Seconds that members wait for one another. The library has the same limit. */
static double timeout_s(void)
{
    const char *set = getenv("UNISONO_TIMEOUT");
    double seconds = set ? strtod(set, NULL) : 0;
    return seconds > 0 ? seconds : 60;
}

/* Ranks whose marks are in a directory. */
typedef struct marks {
    char *is_there; /* for each rank */
    int size;
    uint64_t since_ns; /* older marks belong to a program that was killed */
    int count;         /* marks that were found */
} marks_t;

static int see_mark(const char *name, const unisono_stat_t *stat, void *context)
{
    marks_t *marks = context;
    const char *slash = strrchr(name, '/');
    int rank = slash ? atoi(slash + 1) : -1;
    int is_new = rank >= 0 && rank < marks->size && !marks->is_there[rank];
    if (is_new && stat->modified_ns >= marks->since_ns) {
        marks->is_there[rank] = 1;
        marks->count++;
    }
    return 0;
}

/* Makes the mark of a rank that waits. It replaces a mark that a killed program has left. */
static void leave_mark(unisono_t *unisono, const char *mark, marks_t *marks)
{
    unisono_file_t *file = NULL;
    unisono_stat_t stat = {.size = sizeof stat};
    unisono_remove(unisono, mark);
    unisono_open(unisono, mark, UNISONO_CREATE, NULL, &file);
    unisono_close(file);
    /* Marks of one call are made within its time limit; marks of an earlier program are older. */
    uint64_t limit_ns = (uint64_t)(1e9 * timeout_s());
    if (unisono_stat(unisono, mark, &stat) == 0 && stat.modified_ns > limit_ns)
        marks->since_ns = stat.modified_ns - limit_ns;
}

/* Lists the ranks without marks, such as "rank 1, 2, 5". Leaves the text as it is when there are none. */
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

/* Lists the marks until no mark is new for a second, for 3 s at most. On a busy machine, ranks reach their
 * time limits seconds apart. Returns 0 if the list is there. */
static int find_marks(unisono_t *unisono, const char *folder, marks_t *marks)
{
    int failure = 0;
    for (int seconds = 0, before = -1; seconds < 3 && !failure && before != marks->count; seconds++) {
        before = marks->count;
        nanosleep(&(struct timespec){1, 0}, NULL);
        failure = unisono_list(unisono, folder, see_mark, marks);
    }
    return failure;
}

/* Explains which members have not made a call, before the program ends. MPI does not say which members
 * wait, so each of them leaves a mark in the instance. Returns 1 on the member that has printed. */
static int explain_missing(const open_file_t *file, MPI_Comm comm, const char *name, int call)
{
    char folder[600], mark[700], error[128], cause[900], missing[400] = "another rank";
    int rank = 0, size = 1, lowest = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    marks_t marks = {calloc((size_t)size, 1), size, 0, 0};
    unisono_t *unisono = file->unisono;
    name_marks(folder, sizeof folder, call, size, name);
    snprintf(mark, sizeof mark, "%s/%d", folder, rank);
    if (unisono && marks.is_there) {
        unisono_mkdir(unisono, folder, 1);
        leave_mark(unisono, mark, &marks);
        marks.is_there[rank] = 1;
        if (find_marks(unisono, folder, &marks) == 0)
            list_missing(&marks, missing, sizeof missing);
        while (!marks.is_there[lowest])
            lowest++;
    }
    snprintf(error, sizeof error, "%s failed", call_name(call));
    snprintf(cause, sizeof cause, "%s has not called it for \"%s\" within %.0f s; other ranks wait",
             missing, name, timeout_s());
    explain_as(rank == lowest, error, cause,
               call == CALL_File_open && file->is_mounted
                   ? "call it on every process, and mount the instance at the same path on all hosts"
                   : "call it on every process that has the file open");
    if (unisono && marks.is_there) {
        nanosleep(&(struct timespec){1, 0}, NULL);
        unisono_remove(unisono, mark);
    }
    free(marks.is_there);
    return rank == lowest;
}

/* Turns of a wait: first tests without sleeping, then short sleeps, then long ones. With more processes
 * than processors, each test of Open MPI yields the processor, for milliseconds if others compute. A
 * process that has slept gets it back at once. */
enum { TESTS = 2, SHORT_SLEEPS = 1000 };

/* Waits for a nonblocking collective operation. Returns -1 when it takes longer than `limit_s`. */
static int wait_within(MPI_Request *request, double limit_s)
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

/* Waits until all members make this call. A process without the mount of an instance opens the file by the
 * MPI library. With Open MPI, its calls can complete a duplication here, after which both would wait for
 * ever. They do not complete a barrier. */
static int meet(const open_file_t *file, MPI_Comm comm)
{
    MPI_Errhandler handler;
    MPI_Request request;
    if (!file->is_mounted) {
        int code = PMPI_Ibarrier(comm, &request);
        return code == MPI_SUCCESS ? wait_within(&request, timeout_s()) : code;
    }
    /* The calls of such a process may also make the barrier fail. */
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int code = PMPI_Ibarrier(comm, &request);
    if (code == MPI_SUCCESS)
        code = wait_within(&request, timeout_s());
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler);
    if (code > 0) {
        explanations_release(1);
        explain("MPI_File_open failed", "a process has opened the path as one of the local file system",
                "mount the instance at the same path on the hosts of all processes");
        end_program(comm, 1);
    }
    return code;
}

int members_join(open_file_t *file, MPI_Comm comm, const char *name)
{
    MPI_Request request;
    int code = meet(file, comm);
    if (code == MPI_SUCCESS)
        code = PMPI_Comm_idup(comm, &file->comm, &request);
    if (code == MPI_SUCCESS)
        code = wait_within(&request, timeout_s());
    if (code >= 0)
        return code;
    /* The duplication cannot be cancelled, so the program cannot continue. */
    explanations_release(1);
    end_program(comm, explain_missing(file, comm, name, CALL_File_open));
    return MPI_ERR_OTHER;
}

/* Waits for the first collective operation in a call of the program. Names missing members. */
static int finish_first(open_file_t *file, int call, int code, MPI_Request *request)
{
    if (code == MPI_SUCCESS)
        code = wait_within(request, timeout_s());
    if (code >= 0)
        return code;
    int is_first = explain_missing(file, file->comm, file->name, call);
    if (!file->has_errhandler && !file->handler.function)
        end_program(file->comm, is_first);
    return MPI_ERR_OTHER;
}

/* Waits for a later operation in the same call. All members are there, but one may wait for servers for
 * as long as they need. The library reports failures of servers. */
static int finish_later(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? wait_within(request, HUGE_VAL) : code;
}

int members_maximum(open_file_t *file, int call, const long *mine, long *all, int count)
{
    MPI_Request request;
    int code = PMPI_Iallreduce(mine, all, count, MPI_LONG, MPI_MAX, file->comm, &request);
    return finish_first(file, call, code, &request);
}

int members_broadcast(open_file_t *file, void *data, int count, int from)
{
    MPI_Request request;
    int code = PMPI_Ibcast(data, count, MPI_LONG, from, file->comm, &request);
    return finish_later(code, &request);
}

int members_scan(open_file_t *file, int call, uint64_t mine, uint64_t *sum)
{
    MPI_Request request;
    int code = PMPI_Iscan(&mine, sum, 1, MPI_UINT64_T, MPI_SUM, file->comm, &request);
    return finish_first(file, call, code, &request);
}

int members_allgather(open_file_t *file, const void *mine, void *all, size_t bytes)
{
    MPI_Request request;
    int code = PMPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, file->comm,
                               &request);
    return finish_later(code, &request);
}

/* Shares the cause of a failure on which the members have agreed: that of the lowest rank which knows
 * one. `code`: the code of this member. */
static void share_cause(open_file_t *file, int code, int agreed)
{
    MPI_Request request;
    char text[CAUSE_BYTES + 32] = "";
    const char *own = code == agreed ? cause_of(agreed) : NULL;
    int mine = own ? file->rank : file->size, lowest = file->size;
    int result = PMPI_Iallreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, file->comm, &request);
    if (finish_later(result, &request) != MPI_SUCCESS || lowest == file->size)
        return;
    if (lowest == file->rank)
        snprintf(text, sizeof text, "at rank %d, %s", lowest, own);
    result = PMPI_Ibcast(text, sizeof text, MPI_CHAR, lowest, file->comm, &request);
    if (finish_later(result, &request) == MPI_SUCCESS && !own)
        cause_keep(agreed, text);
}

/* Ends an agreement, whose code is the greatest of all members. */
static int agreed(open_file_t *file, int code, int result, long greatest)
{
    if (result != MPI_SUCCESS)
        return result;
    if (greatest != MPI_SUCCESS)
        share_cause(file, code, (int)greatest);
    return (int)greatest;
}

int agree_on(open_file_t *file, int call, int code, int *flag)
{
    long mine[2] = {code, *flag}, greatest[2] = {code, *flag};
    if (file->size == 1)
        return code;
    int result = members_maximum(file, call, mine, greatest, 2);
    *flag = (int)greatest[1];
    return agreed(file, code, result, greatest[0]);
}

int agree(open_file_t *file, int call, int code)
{
    int flag = 0;
    return agree_on(file, call, code, &flag);
}

int agree_again(open_file_t *file, int code)
{
    MPI_Request request;
    long mine = code, greatest = code;
    if (file->size == 1)
        return code;
    int result = PMPI_Iallreduce(&mine, &greatest, 1, MPI_LONG, MPI_MAX, file->comm, &request);
    /* Not within the call below, whose arguments may be evaluated in any order. */
    result = finish_later(result, &request);
    return agreed(file, code, result, greatest);
}
