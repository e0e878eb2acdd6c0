/* recorder.c - functions of MPI for programs that are recorded. Each call of the program goes to a back
 * end, which makes the real call and writes an event.
 *
 * The library is loaded by LD_PRELOAD before that of MPI-IO, and does nothing without a directory in
 * the environment. Calls that the MPI library, a profiler or libunisono-mpi make within a call of the
 * program pass untouched. So do calls of a thread while another one is in a call: they are noted.
 *
 * Arguments are passed on as machine words. That is right where integers and addresses travel in the
 * same registers, and where each argument on the stack has a word of its own. */
#include "recorder_border.h"
#include "large.h"
#include "../process/words.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "arguments are passed on as the calling conventions of x86-64 and AArch64 permit"
#endif

#define PUBLIC __attribute__((visibility("default")))

static const char *const names[CALL_COUNT] = {
#define CALL(arguments, name) "MPI_" #name,
#define NOTED_CALL CALL
#include "recorded_functions.def"
#undef CALL
#undef NOTED_CALL
};

static const char *const profiling_names[CALL_COUNT] = {
#define CALL(arguments, name) "PMPI_" #name,
#define NOTED_CALL CALL
#include "recorded_functions.def"
#undef CALL
#undef NOTED_CALL
};

static function_t *_Atomic reals[2][CALL_COUNT];

/* State of a thread. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    int depth;       /* calls that it is in */
    int is_profiled; /* 1 when it called the outer one by its name with PMPI_ */
} thread;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const back_t *_Atomic back; /* NULL when nothing is recorded */
static atomic_int is_busy;         /* 1 while a thread is in a call that is recorded */

/* Function behind the recorder, under one of its names. */
static function_t *real_named(int call, int is_profiled)
{
    function_t *known = atomic_load_explicit(&reals[is_profiled][call], memory_order_acquire);
    if (!known) {
        const char *name = is_profiled ? profiling_names[call] : names[call];
        known = next_function(name);
        if (!known)
            known = must_have(large_substitute(call), name);
        atomic_store_explicit(&reals[is_profiled][call], known, memory_order_release);
    }
    return known;
}

static function_t *real(int call)
{
    return real_named(call, thread.is_profiled);
}

static void become_child(void)
{
    const back_t *found = atomic_load(&back);
    atomic_store(&back, NULL);
    if (found)
        found->become_child();
}

static void load_back(void)
{
    static char failure[4200];
    const char *directory = getenv(RECORD_VARIABLE);
    if (!directory || !*directory)
        return;
    void *library = load_beside("libunisono-record", failure, sizeof failure);
    if (!library)
        give_up("cannot record this program", failure,
                "install unisono completely: all libunisono-record libraries belong in one directory");
    union {
        void *address;
        unisono_record_back_t *call;
    } open = {dlsym(library, "unisono_record_back")};
    static front_t front = {RECORD_VERSION, NULL, names, real};
    front.directory = directory;
    const back_t *found = open.address ? open.call(&front) : NULL;
    if (!found)
        give_up("cannot record this program", "the back end beside the recorder is from another release",
                "install unisono again");
    pthread_atfork(NULL, NULL, become_child);
    atomic_store_explicit(&back, found, memory_order_release);
}

__attribute__((destructor)) static void end(void)
{
    const back_t *found = atomic_load(&back);
    if (found && !atomic_exchange(&is_busy, 1)) {
        found->end();
        atomic_store(&is_busy, 0);
    }
}

/* Begins a call of the program. Returns the back end when it is to be recorded, else NULL. */
static __attribute__((noinline)) const back_t *begin(int call, int is_profiled)
{
    if (thread.depth)
        return NULL;
    pthread_once(&once, load_back);
    const back_t *found = atomic_load_explicit(&back, memory_order_acquire);
    if (!found)
        return NULL;
    if (atomic_exchange_explicit(&is_busy, 1, memory_order_acquire)) {
        found->note_overlap();
        return NULL;
    }
    thread.depth = 1;
    thread.is_profiled = is_profiled;
    if (found->enter(call))
        return found;
    thread.depth = 0;
    atomic_store_explicit(&is_busy, 0, memory_order_release);
    return NULL;
}

static __attribute__((noinline)) void finish(const back_t *found)
{
    found->leave();
    thread.depth = 0;
    atomic_store_explicit(&is_busy, 0, memory_order_release);
}

/* Defines a function under one of its names; `record` makes and records a call. */
#define DEFINE(n, name, prefix, is_profiled, record)                                               \
    PUBLIC int prefix##name(TAKE_##n);                                                             \
    int prefix##name(TAKE_##n)                                                                     \
    {                                                                                              \
        const back_t *found = begin(CALL_##name, is_profiled);                                     \
        if (!found)                                                                                \
            return THROUGH(n, real_named(CALL_##name, is_profiled));                               \
        record;                                                                                    \
        finish(found);                                                                             \
        return code;                                                                               \
    }

#define RECORD(n, name) int code = THROUGH(n, found->functions[CALL_##name])
#define NOTE(n, name)                                                                              \
    int code = THROUGH(n, real(CALL_##name));                                                      \
    found->note_call(CALL_##name)

#define CALL(n, name)                                                                              \
    DEFINE(n, name, MPI_, 0, RECORD(n, name))                                                      \
    DEFINE(n, name, PMPI_, 1, RECORD(n, name))
#define NOTED_CALL(n, name)                                                                        \
    DEFINE(n, name, MPI_, 0, NOTE(n, name))                                                        \
    DEFINE(n, name, PMPI_, 1, NOTE(n, name))
#include "recorded_functions.def"
