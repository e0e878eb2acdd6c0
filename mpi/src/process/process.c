/* process.c - finds the MPI library of the process and loads back ends. Python may load MPI long after the
 * start, and outside the global scope. */
#define _GNU_SOURCE /* dladdr, RTLD_NEXT */
#include "process.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State that one thread sets and all threads read. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *mpi;           /* handle of the MPI library */
static char mpi_path[4096]; /* its path */

function_t *as_function(void *address)
{
    union {
        void *address;
        function_t *function;
    } symbol = {address};
    return symbol.function;
}

void give_up(const char *error, const char *cause, const char *help)
{
    fprintf(stderr, "error: %s\ncause: %s\nhelp:  %s\n", error, cause, help);
    exit(1);
}

/* True for the path of an MPI library: libmpi.so.12, libmpi_abi.so.1, libmpich.so.12, ... */
static int is_mpi(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    static const char *const known[] = {"libmpi.so*", "libmpi_abi.so*", "libmpich.so*",
                                        "libmpi-*.so*", "libmpi_abi-*.so*", "libmpich-*.so*"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fnmatch(known[i], name, 0) == 0)
            return 1;
    return 0;
}

static int see_library(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (!info->dlpi_name || !is_mpi(info->dlpi_name))
        return 0;
    snprintf(found, sizeof mpi_path, "%s", info->dlpi_name);
    return 1;
}

static void find_mpi(void)
{
    if (!dl_iterate_phdr(see_library, mpi_path))
        give_up("cannot find the MPI library of this program",
                "no library named libmpi, libmpich or libmpi_abi is loaded",
                "link the program dynamically with MPI, or run it without unisono");
    /* Back ends are linked to MPI functions in the global scope. */
    mpi = dlopen(mpi_path, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    if (!mpi)
        give_up("cannot use the MPI library of this program", dlerror(),
                "report this with the version of the MPI library");
}

function_t *next_function(const char *name)
{
    pthread_once(&once, find_mpi);
    function_t *next = as_function(dlsym(RTLD_NEXT, name));
    return next ? next : as_function(dlsym(mpi, name));
}

function_t *must_have(function_t *found, const char *name)
{
    if (!found)
        give_up("the MPI library of this program lacks a function", name,
                "use an MPI library that has it; functions with large counts need MPI 4");
    return found;
}

function_t *library_function(const char *name)
{
    pthread_once(&once, find_mpi);
    return must_have(as_function(dlsym(mpi, name)), name);
}

/* Search for a function in all libraries. */
typedef struct search {
    const char *name;
    function_t *found;
} search_t;

/* 1 for an address in this library. */
static int is_own(const void *address)
{
    static char place;
    Dl_info own, other;
    return dladdr(&place, &own) && dladdr(address, &other) && own.dli_fbase == other.dli_fbase;
}

static int search_library(struct dl_phdr_info *info, size_t size, void *state)
{
    (void)size;
    search_t *search = state;
    void *library = info->dlpi_name && *info->dlpi_name
                        ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD)
                        : NULL;
    void *address = library ? dlsym(library, search->name) : NULL;
    if (address && !is_own(address))
        search->found = as_function(address);
    if (library)
        dlclose(library);
    return search->found != NULL;
}

function_t *binding_function(const char *name)
{
    search_t search = {name, as_function(dlsym(RTLD_NEXT, name))};
    if (!search.found)
        dl_iterate_phdr(search_library, &search);
    return search.found;
}

/* Name of the binary interface of the MPI library. */
static const char *family(void)
{
    if (strstr(mpi_path, "libmpi_abi"))
        return "abi";
    return dlsym(mpi, "ompi_mpi_comm_world") ? "openmpi" : "mpich";
}

void *load_beside(const char *prefix, char *failure, size_t failure_bytes)
{
    static char place; /* in this library */
    pthread_once(&once, find_mpi);
    Dl_info own;
    char path[4096];
    const char *slash = dladdr(&place, &own) ? strrchr(own.dli_fname, '/') : NULL;
    int folder = slash ? (int)(slash - own.dli_fname) + 1 : 0;
    snprintf(path, sizeof path, "%.*s%s-%s.so", folder, folder ? own.dli_fname : "", prefix,
             family());
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(failure, failure_bytes, "%s", dlerror());
    return library;
}
