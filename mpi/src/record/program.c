/* program.c - the back end as its front end sees it, and the begin and the end of the recording. */
#include "recording.h"

#include <stdlib.h>

static const char *directory; /* of the trace */
static back_t back;

/* 1 once the program has begun MPI, or has ended it. */
static int has_begun, has_ended;

/* ---- Begin and end ------------------------------------------------------------------------- */

/* Begins the trace after the program has begun MPI. */
static int begin(void)
{
    has_begun = 1;
    stream_begin(directory);
    /* A rank that aborts at once must not kill others that have no stream yet: a trace has all streams. */
    PMPI_Barrier(MPI_COMM_WORLD);
    return trace != NULL;
}

static void write_begin(void)
{
    WRITE_EVENT(begin, clock_times());
}

static int call_Init(int *count, char ***words)
{
    int code = RUN(Init, count, words);
    if (!code && begin())
        write_begin();
    return code;
}

static int call_Init_thread(int *count, char ***words, int required, int *provided)
{
    int code = RUN(Init_thread, count, words, required, provided);
    if (!code && begin())
        write_begin();
    return code;
}

static int call_Finalize(void)
{
    requests_finish();
    int code = RUN(Finalize);
    WRITE_EVENT(end, clock_times());
    has_ended = 1;
    stream_end();
    return code;
}

static int call_Abort(MPI_Comm comm, int errorcode)
{
    stream_end();
    return RUN(Abort, comm, errorcode);
}

/* ---- Border -------------------------------------------------------------------------------- */

/* Begins a trace at a call other than MPI_Init: the recorder has not seen how MPI began. */
static int begin_late(void)
{
    int is_initialized = 0, is_finalized = 0;
    PMPI_Initialized(&is_initialized);
    PMPI_Finalized(&is_finalized);
    if (!is_initialized || is_finalized || !begin())
        return 0;
    write_begin();
    return 1;
}

static int enter(int call)
{
    /* A rank whose recording has failed still joins the recorder's own collective calls: others wait for
     * it there. */
    int is_recording = trace || (has_begun && !has_ended);
    if (is_recording || (!has_begun && (call == CALL_Init || call == CALL_Init_thread))) {
        clock_enter();
        return 1;
    }
    if (has_begun || has_ended || !begin_late())
        return 0;
    clock_enter();
    return 1;
}

static void note_call(int call)
{
    clock_called();
    note(call_name(call));
}

static void note_overlap(void)
{
    if (trace)
        note("calls of two threads that overlap");
}

static void end(void)
{
    stream_end();
}

__attribute__((visibility("default"))) unisono_record_back_t unisono_record_back;

const back_t *unisono_record_back(const front_t *given)
{
    if (given->version != RECORD_VERSION)
        return NULL;
    real_calls_set(given);
    directory = given->directory;
    back = (back_t){.version = RECORD_VERSION,
                    .enter = enter,
                    .leave = clock_leave,
                    .note_call = note_call,
                    .note_overlap = note_overlap,
                    .become_child = stream_discard,
                    .end = end};
    program_enter(back.functions);
    messages_enter(back.functions);
    completions_enter(back.functions);
    collectives_enter(back.functions);
    constructors_enter(back.functions);
    files_enter(back.functions);
    accesses_enter(back.functions);
    clock_begin();
    return &back;
}

void program_enter(function_t **functions)
{
    ENTER(Init);
    ENTER(Init_thread);
    ENTER(Finalize);
    ENTER(Abort);
}
