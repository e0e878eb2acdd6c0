/* completions.c - the calls that wait for requests, or test them.
 *
 * A test that finds nothing is no event: the loop around it becomes one wait. The handles are copied
 * before a call, because the call replaces those of requests that it completes. */
#include "recording.h"

#include <stdlib.h>

/* Memory of the calls with arrays, which grows. */
static struct {
    size_t room;
    uint64_t *words;
    uint32_t *numbers;
    MPI_Status *statuses;
} scratch;

/* Number of operations that the call has ended. */
static size_t ended_count;

static int has_room(size_t count)
{
    ended_count = 0;
    if (count <= scratch.room)
        return 1;
    size_t room = count < 64 ? 64 : 2 * count;
    free(scratch.words);
    free(scratch.numbers);
    free(scratch.statuses);
    scratch.words = calloc(room, sizeof *scratch.words);
    scratch.numbers = calloc(room, sizeof *scratch.numbers);
    scratch.statuses = calloc(room, sizeof *scratch.statuses);
    scratch.room = scratch.words && scratch.numbers && scratch.statuses ? room : 0;
    if (!scratch.room)
        stream_fail("not enough memory");
    return scratch.room != 0;
}

static int is_cancelled(const MPI_Status *status)
{
    int flag = 0;
    PMPI_Test_cancelled((MPI_Status *)status, &flag);
    return flag;
}

/* Adds the end of a request to the wait that will be written. */
static void end_one(uint64_t word, const MPI_Status *status)
{
    request_t *request = request_of(word);
    if (!request || !request->is_active)
        return;
    if (request->kind != OTHER && is_cancelled(status)) {
        note("messages that were cancelled");
        request_end(request);
        return;
    }
    if (request->kind == RECEIVES)
        received(request, status);
    scratch.numbers[ended_count++] = request->number;
    request_end(request);
}

/* Writes the wait for the operations that the call has ended, if the trace has any of them. */
static void write_wait(int depends_on_timing)
{
    if (!ended_count)
        return;
    if (depends_on_timing)
        clock_depends();
    WRITE_EVENT(wait, clock_times(), scratch.numbers, ended_count);
}

static int copy_words(int count, const MPI_Request *requests)
{
    if (!has_room(count > 0 ? (size_t)count : 1))
        return 0;
    for (int i = 0; i < count; i++)
        scratch.words[i] = WORD(requests[i]);
    return 1;
}

/* Statuses for a call: those of the program, or those of the recorder. */
static MPI_Status *statuses_for(MPI_Status *statuses)
{
    return statuses == MPI_STATUSES_IGNORE ? scratch.statuses : statuses;
}

/* ---- One request --------------------------------------------------------------------------- */

static int call_Wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;
    uint64_t word = WORD(*request);
    int code = RUN(Wait, request, used);
    if (has_room(1)) {
        end_one(word, used);
        write_wait(0);
    }
    return code;
}

static int call_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;
    uint64_t word = WORD(*request);
    *flag = 0;
    int code = RUN(Test, request, flag, used);
    if (!*flag) {
        clock_polled();
    } else if (has_room(1)) {
        end_one(word, used);
        write_wait(1);
    }
    return code;
}

static int call_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    *flag = 0;
    int code = RUN(Request_get_status, request, flag, status);
    if (*flag)
        clock_depends();
    else
        clock_polled();
    return code;
}

static int call_Request_free(MPI_Request *request)
{
    request_t *found = request_of(WORD(*request));
    int code = RUN(Request_free, request);
    if (code || !found)
        return code;
    if (found->kind == RECEIVES && found->is_active)
        note("receives whose requests were freed");
    request_give_up(found);
    return code;
}

static int call_Cancel(MPI_Request *request)
{
    return RUN(Cancel, request);
}

/* ---- All ----------------------------------------------------------------------------------- */

static void end_all(int count, const MPI_Status *statuses, int depends_on_timing)
{
    for (int i = 0; i < count; i++)
        end_one(scratch.words[i], &statuses[i]);
    write_wait(depends_on_timing);
}

static int call_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    if (!copy_words(count, requests))
        return RUN(Waitall, count, requests, statuses);
    MPI_Status *used = statuses_for(statuses);
    int code = RUN(Waitall, count, requests, used);
    end_all(count, used, 0);
    return code;
}

static int call_Testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    if (!copy_words(count, requests))
        return RUN(Testall, count, requests, flag, statuses);
    MPI_Status *used = statuses_for(statuses);
    *flag = 0;
    int code = RUN(Testall, count, requests, flag, used);
    if (*flag)
        end_all(count, used, 1);
    else
        clock_polled();
    return code;
}

/* ---- Any ----------------------------------------------------------------------------------- */

static void end_any(int count, int index, const MPI_Status *status)
{
    if (index >= 0 && index < count)
        end_one(scratch.words[index], status);
    write_wait(1);
}

static int call_Waitany(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;
    if (!copy_words(count, requests))
        return RUN(Waitany, count, requests, index, status);
    *index = MPI_UNDEFINED;
    int code = RUN(Waitany, count, requests, index, used);
    end_any(count, *index, used);
    return code;
}

static int call_Testany(int count, MPI_Request *requests, int *index, int *flag,
                        MPI_Status *status)
{
    MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;
    if (!copy_words(count, requests))
        return RUN(Testany, count, requests, index, flag, status);
    *flag = 0;
    *index = MPI_UNDEFINED;
    int code = RUN(Testany, count, requests, index, flag, used);
    if (*flag)
        end_any(count, *index, used);
    else
        clock_polled();
    return code;
}

/* ---- Some ---------------------------------------------------------------------------------- */

static void end_some(int count, int ended, const int *indices, const MPI_Status *statuses)
{
    for (int i = 0; i < ended; i++)
        if (indices[i] >= 0 && indices[i] < count)
            end_one(scratch.words[indices[i]], &statuses[i]);
    write_wait(1);
}

static int call_Waitsome(int count, MPI_Request *requests, int *ended, int *indices,
                         MPI_Status *statuses)
{
    if (!copy_words(count, requests))
        return RUN(Waitsome, count, requests, ended, indices, statuses);
    MPI_Status *used = statuses_for(statuses);
    *ended = 0;
    int code = RUN(Waitsome, count, requests, ended, indices, used);
    end_some(count, *ended, indices, used);
    return code;
}

static int call_Testsome(int count, MPI_Request *requests, int *ended, int *indices,
                         MPI_Status *statuses)
{
    if (!copy_words(count, requests))
        return RUN(Testsome, count, requests, ended, indices, statuses);
    MPI_Status *used = statuses_for(statuses);
    *ended = 0;
    int code = RUN(Testsome, count, requests, ended, indices, used);
    if (*ended)
        end_some(count, *ended, indices, used);
    else
        clock_polled();
    return code;
}

void completions_enter(function_t **functions)
{
    ENTER(Wait);
    ENTER(Test);
    ENTER(Waitall);
    ENTER(Testall);
    ENTER(Waitany);
    ENTER(Testany);
    ENTER(Waitsome);
    ENTER(Testsome);
    ENTER(Request_get_status);
    ENTER(Request_free);
    ENTER(Cancel);
}
