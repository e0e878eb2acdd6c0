/* Writes the stream of rank 1 of 2 with every call of unisono_trace.h, in the directory that the
 * first argument names. */
#include "check.h"

#include <unisono_trace.h>

#include <sys/wait.h>
#include <unistd.h>

static unisono_trace_times_t times(uint64_t computed_ns)
{
    unisono_trace_times_t times = {computed_ns, 0, 7, 0};
    return times;
}

static unisono_trace_t *created(const char *directory, uint32_t rank)
{
    unisono_trace_t *trace = NULL;
    OK(unisono_trace_create(directory, rank, 2, "here", "MPI of a test", &trace));
    CHECK(trace);
    return trace;
}

static void record(unisono_trace_t *trace)
{
    unisono_trace_times_t now = times(1);
    OK(unisono_trace_begin(trace, &now));
    const uint32_t members[] = {1, 0};
    CHECK(unisono_trace_communicator(trace, members, 2) == 1);
    CHECK(unisono_trace_communicator(trace, members, 2) == 2);
    CHECK(unisono_trace_file(trace, "data/out") == 0);

    now.blocked_ns = 11;
    now.depends_on_timing = 1;
    OK(unisono_trace_send(trace, &now, 1, 0, 5, 100, 1, UNISONO_TRACE_NO_REQUEST));
    now = times(2);
    OK(unisono_trace_receive(trace, &now, 0, UINT32_MAX, UNISONO_TRACE_NO_MESSAGE_TAG, 0, 3));
    OK(unisono_trace_received(trace, 3, 0, 6, 200));
    const uint32_t requests[] = {3};
    OK(unisono_trace_wait(trace, &now, requests, 1));
    OK(unisono_trace_collective(trace, &now, UNISONO_TRACE_ALL_REDUCE, 2, 0, 8,
                                UNISONO_TRACE_NO_REQUEST));
    OK(unisono_trace_open(trace, &now, 0, 1, UNISONO_TRACE_CREATES | UNISONO_TRACE_IS_FRESH, 0));

    unisono_part_t *part = NULL;
    unisono_level_t level = {4, 100, 10};
    OK(unisono_part_nested(5000, 20, 10, &level, 1, &part));
    OK(unisono_trace_transfer(trace, &now, 0, UNISONO_TRACE_WRITE | UNISONO_TRACE_IS_COLLECTIVE,
                              part, UNISONO_TRACE_NO_REQUEST));
    OK(unisono_trace_transfer(trace, &now, 0, UNISONO_TRACE_READ, part, 4));
    unisono_part_free(part);
    OK(unisono_trace_transfer(trace, &now, 0, UNISONO_TRACE_WRITE | UNISONO_TRACE_IS_COLLECTIVE,
                              NULL, UNISONO_TRACE_NO_REQUEST));
    const uint32_t read[] = {4};
    OK(unisono_trace_wait(trace, &now, read, 1));
    OK(unisono_trace_sync(trace, &now, 0));
    OK(unisono_trace_set_size(trace, &now, 0, 4096, 1));
    OK(unisono_trace_get_size(trace, &now, 0));
    OK(unisono_trace_close(trace, &now, 0));
    OK(unisono_trace_delete(trace, &now, "data/out"));
    OK(unisono_trace_end(trace, &now));
}

/* A call that loses an event spoils the trace. */
static void refused(const char *directory)
{
    unisono_trace_times_t now = times(0);
    unisono_trace_t *trace = NULL;
    FAILS(unisono_trace_create(NULL, 0, 2, "", "", &trace), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_create(directory, 2, 2, "", "", &trace), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_create("/nowhere/at/all", 0, 2, "", "", &trace), EIO,
          UNISONO_ERR_LOCAL_FILE);
    CHECK(!trace);
    FAILS(unisono_trace_end(NULL, &now), EINVAL, UNISONO_ERR_USAGE);
    OK(unisono_trace_close_stream(NULL));

    trace = created(directory, 0);
    OK(unisono_trace_begin(trace, &now));
    FAILS(unisono_trace_close(trace, &now, 9), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_end(trace, &now), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_file(trace, "a"), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_close_stream(trace), EINVAL, UNISONO_ERR_USAGE);

    trace = created(directory, 0);
    FAILS(unisono_trace_begin(trace, NULL), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_end(trace, &now), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_close_stream(trace), EINVAL, UNISONO_ERR_USAGE);

    trace = created(directory, 0);
    OK(unisono_trace_begin(trace, &now));
    FAILS(unisono_trace_collective(trace, &now, (enum unisono_trace_collective)99, 0, 0, 0,
                                   UNISONO_TRACE_NO_REQUEST),
          EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_trace_close_stream(trace), EINVAL, UNISONO_ERR_USAGE);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    unisono_trace_t *trace = created(argv[1], 1);
    record(trace);
    /* A child process has a copy of the handle, and may not write. */
    pid_t child = fork();
    if (child == 0) {
        unisono_trace_times_t now = times(0);
        _exit(unisono_trace_begin(trace, &now) == -EPERM ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(unisono_trace_close_stream(trace));
    refused(argv[1]);
    return 0;
}
