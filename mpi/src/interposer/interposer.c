/* interposer.c - MPI_File_* functions for programs: those of unisono files go to a back end, all others
 * to the MPI library, untouched.
 *
 * The library is loaded by LD_PRELOAD or linked before MPI. It finds the MPI library of the process
 * at the first call, which Python may have loaded long after the start and out of sight, and loads
 * the back end that was compiled for its binary interface.
 *
 * Arguments are passed on as machine words. That is right where integers and addresses travel in
 * the same registers, and no function here has more than six arguments. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "interposer.h"
#include "../process/names.h"
#include "../process/words.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "arguments are passed on as the calling conventions of x86-64 and AArch64 permit"
#endif

static file_handle_t handles[FILES_MAX];

/* State that one thread sets and all threads read. */
static pthread_once_t back_once = PTHREAD_ONCE_INIT;
static const back_t *_Atomic back; /* NULL until it is needed */
static char back_failure[4200];

static const char *const names[CALL_COUNT] = {
#define NAME_CALL(arguments, name) "MPI_" #name,
#define FILE_CALL NAME_CALL
#define LARGE_CALL NAME_CALL
#define REQUEST_CALL NAME_CALL
#include "interposed_functions.def"
#undef NAME_CALL
#undef FILE_CALL
#undef LARGE_CALL
#undef REQUEST_CALL
};

static function_t *_Atomic reals[CALL_COUNT];

/* Function of the MPI library, or NULL when it has none. */
static function_t *real(int call)
{
    function_t *known = atomic_load_explicit(&reals[call], memory_order_acquire);
    if (!known) {
        known = next_function(names[call]);
        atomic_store_explicit(&reals[call], known, memory_order_release);
    }
    return known;
}

static function_t *must_be_real(int call)
{
    return must_have(real(call), names[call]);
}

static void load_back(void)
{
    void *library = load_beside("libunisono-mpi", back_failure, sizeof back_failure);
    if (!library)
        return;
    union {
        void *address;
        unisono_mpi_back_t *call;
    } open = {dlsym(library, "unisono_mpi_back")};
    static front_t front = {BORDER_VERSION, handles, names, real};
    const back_t *found = open.address ? open.call(&front) : NULL;
    if (!found)
        snprintf(back_failure, sizeof back_failure, "the back end beside it is from another release");
    atomic_store_explicit(&back, found, memory_order_release);
}

const back_t *loaded(void)
{
    return atomic_load_explicit(&back, memory_order_acquire);
}

const back_t *needed(void)
{
    pthread_once(&back_once, load_back);
    const back_t *found = loaded();
    if (!found)
        give_up("cannot use unisono files in this program", back_failure,
                "install unisono completely: all libunisono-mpi libraries belong in one directory");
    return found;
}

/* 1 for a path below a mount of an instance. Without a back end, the MPI library uses the mount. */
static int is_mounted(const char *name)
{
    if (!name_may_be_mounted(name))
        return 0;
    pthread_once(&back_once, load_back);
    return loaded() && loaded()->is_mounted(name);
}

static int is_ours(long file)
{
    uintptr_t at = (uintptr_t)file, first = (uintptr_t)handles;
    return at >= first && at < first + sizeof handles;
}

/* Path of the plain file in `directory` that replaces a unisono file. Makes its folders. */
static const char *plain_path(const char *directory, const char *name)
{
    static _Thread_local char path[PATH_MAX];
    size_t end = (size_t)snprintf(path, sizeof path, "%s", directory);
    name = name_bare(name);
    name += name_has_scheme(name) ? 8 : 0;
    while (*name && end + 3 < sizeof path) {
        size_t length = strcspn(name, "/");
        /* The name cannot leave the directory. */
        int is_up = length == 2 && strncmp(name, "..", 2) == 0;
        if (length && !(length == 1 && *name == '.')) {
            if (end < sizeof path)
                (void)mkdir(path, 0777);
            end += (size_t)snprintf(path + end, sizeof path - end, "/%.*s", (int)length,
                                    is_up ? "__" : name);
        }
        name += length;
        name += strspn(name, "/");
    }
    return path;
}

/* While UNISONO_PLAIN names a directory, plain files in it replace unisono files: `unisono run --compare`
 * measures a program with them. */
int goes_to_back(long *name)
{
    const char *directory = getenv("UNISONO_PLAIN");
    if (!name_is_taken((const char *)*name) && !is_mounted((const char *)*name))
        return 0;
    if (!directory || !*directory)
        return 1;
    *name = (long)plain_path(directory, (const char *)*name);
    return 0;
}

#define OURS(n, name) THROUGH(n, needed()->functions[CALL_##name])
#define REAL(n, name) THROUGH(n, must_be_real(CALL_##name))

/* Defines a function under both of its names. */
#define DEFINE(n, name, is_taken)                                                                  \
    PUBLIC int MPI_##name(TAKE_##n);                                                               \
    PUBLIC int PMPI_##name(TAKE_##n);                                                              \
    int MPI_##name(TAKE_##n)                                                                       \
    {                                                                                              \
        return (is_taken) ? OURS(n, name) : REAL(n, name);                                         \
    }                                                                                              \
    int PMPI_##name(TAKE_##n)                                                                      \
    {                                                                                              \
        return (is_taken) ? OURS(n, name) : REAL(n, name);                                         \
    }

/* True when a request of a call may be one of the back end. */
static int has_requests(void)
{
    const back_t *found = loaded();
    return found && __atomic_load_n(found->requests_pending, __ATOMIC_ACQUIRE) > 0;
}

/* 1 when a call has failed in some thread, so that the back end knows a cause. */
static int has_causes(void)
{
    const back_t *found = loaded();
    return found && __atomic_load_n(found->causes_kept, __ATOMIC_ACQUIRE);
}

/* Returns `is_taken`: 1 for a file of the back end. A call of another file makes it forget the last cause
 * of this thread. */
static int takes(int is_taken)
{
    if (!is_taken && has_causes())
        loaded()->forget_cause();
    return is_taken;
}

/* Function without large counts, for a library that has none with them. Programs may ask whether the
 * library has large counts, as mpi4py does, and find the functions of the interposer. */
static function_t *small(int call, const long *words)
{
    char name[64];
    const long count = words[strstr(names[call], "_at") ? 3 : 2];
    snprintf(name, sizeof name, "%.*s", (int)strlen(names[call]) - 2, names[call]);
    if (call != CALL_File_get_type_extent_c && (count < INT_MIN || count > INT_MAX))
        must_have(NULL, names[call]);
    return must_have(next_function(name), names[call]);
}

#define LARGE(n, name)                                                                             \
    const int is_taken = takes(is_ours(a));                                                        \
    function_t *found = is_taken ? NULL : real(CALL_##name);                                       \
    if (is_taken)                                                                                  \
        return OURS(n, name);                                                                      \
    return THROUGH(n, found ? found : small(CALL_##name, (const long[]){GIVE_##n}))

#define NAME_CALL(n, name)
#define FILE_CALL(n, name) DEFINE(n, name, takes(is_ours(a)))
#define LARGE_CALL(n, name)                                                                        \
    PUBLIC int MPI_##name(TAKE_##n);                                                               \
    PUBLIC int PMPI_##name(TAKE_##n);                                                              \
    int MPI_##name(TAKE_##n)                                                                       \
    {                                                                                              \
        LARGE(n, name);                                                                            \
    }                                                                                              \
    int PMPI_##name(TAKE_##n)                                                                      \
    {                                                                                              \
        LARGE(n, name);                                                                            \
    }
#define REQUEST_CALL(n, name) DEFINE(n, name, has_requests())
#include "interposed_functions.def"

/* A file is named by the second argument of the open call, and by the first of the delete call. */
DEFINE(5, File_open, takes(goes_to_back(&b)))
DEFINE(2, File_delete, takes(goes_to_back(&a)))
DEFINE(1, File_close, a && is_ours(*(long *)a))
/* The back end must know the functions of error handlers, and MPI has no call that returns them. */
DEFINE(2, File_create_errhandler, 1)
DEFINE(3, Error_string, has_causes())

typedef int to_fortran_t(void *);
typedef void *from_fortran_t(int);

static int number_of(void *file, const char *name)
{
    return is_ours((long)file) ? needed()->to_fortran(file)
                               : ((to_fortran_t *)library_function(name))(file);
}

static void *file_of_number(int number, const char *name)
{
    int is_of_ours = number >= FORTRAN_BASE && number < FORTRAN_BASE + FILES_MAX;
    return is_of_ours ? needed()->from_fortran(number)
                      : ((from_fortran_t *)library_function(name))(number);
}

/* Defines functions that convert between files and integers, under both of their names. */
#define CONVERSIONS(to, from)                                                                      \
    PUBLIC int MPI_##to(void *file);                                                               \
    PUBLIC int PMPI_##to(void *file);                                                              \
    PUBLIC void *MPI_##from(int number);                                                           \
    PUBLIC void *PMPI_##from(int number);                                                          \
    int MPI_##to(void *file)                                                                       \
    {                                                                                              \
        return number_of(file, "MPI_" #to);                                                        \
    }                                                                                              \
    int PMPI_##to(void *file)                                                                      \
    {                                                                                              \
        return number_of(file, "MPI_" #to);                                                        \
    }                                                                                              \
    void *MPI_##from(int number)                                                                   \
    {                                                                                              \
        return file_of_number(number, "MPI_" #from);                                               \
    }                                                                                              \
    void *PMPI_##from(int number)                                                                  \
    {                                                                                              \
        return file_of_number(number, "MPI_" #from);                                               \
    }

CONVERSIONS(File_c2f, File_f2c)
CONVERSIONS(File_toint, File_fromint) /* of the standard binary interface */
