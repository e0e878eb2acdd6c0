/* pnetcdf.c - functions of PnetCDF that use POSIX calls on a file before they open it by MPI. For unisono
 * files the instance answers these calls. Otherwise NC_NOCLOBBER would overwrite a file, and NC_CLOBBER
 * would leave the end of a longer one.
 *
 * Arguments are passed on as machine words, as in interposer.c. Numbers are those of pnetcdf.h. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "interposer.h"
#include "../process/names.h"
#include "../process/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* AT_FDCWD; <fcntl.h> has a structure with the name of one here. */
enum { WORKING_DIRECTORY = -100 };

enum { NO_ERROR = 0, NO_SUCH_FILE = -220, NOT_NETCDF = -51 };

/* Name of the unisono file that PnetCDF creates or opens in this thread; and the name that PnetCDF passes
 * to POSIX calls, which lacks all before the first colon. */
static _Thread_local const char *current, *current_bare;

static int see_pnetcdf(struct dl_phdr_info *info, size_t size, void *found)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    (void)size;
    if (!slash || fnmatch("libpnetcdf*.so*", slash + 1, 0) != 0)
        return 0;
    snprintf(found, 4096, "%s", info->dlpi_name);
    return 1;
}

/* The function of PnetCDF itself. A library that Python has loaded is not in the global scope. */
static function_t *pnetcdf(const char *name)
{
    char path[4096];
    function_t *next = as_function(dlsym(RTLD_NEXT, name));
    if (!next && dl_iterate_phdr(see_pnetcdf, path)) {
        void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        next = library ? as_function(dlsym(library, name)) : NULL;
    }
    if (!next)
        give_up("a function of the PnetCDF library was not found", name,
                "link the program with PnetCDF, or report this");
    return next;
}

/* True for the name that PnetCDF passes for the unisono file that it creates or opens. */
static int is_current(const char *name)
{
    return current && name && (strcmp(name, current_bare) == 0 || strcmp(name, current) == 0);
}

PUBLIC int access(const char *name, int mode);
PUBLIC int truncate(const char *name, off_t length);
PUBLIC int truncate64(const char *name, off64_t length);
PUBLIC int ncmpi_create(long comm, const char *name, int mode, long info, int *id);
PUBLIC int ncmpi_open(long comm, const char *name, int mode, long info, int *id);
PUBLIC int ncmpi_inq_file_format(const char *name, int *format);

int access(const char *name, int mode)
{
    char first;
    if (!is_current(name))
        return (int)syscall(SYS_faccessat, WORKING_DIRECTORY, name, mode);
    if (needed()->read_start(current, &first, sizeof first) >= 0)
        return 0;
    errno = ENOENT;
    return -1;
}

int truncate64(const char *name, off64_t length)
{
    if (!is_current(name))
        return (int)syscall(SYS_truncate, name, length);
    errno = needed()->truncate(current, length);
    return errno ? -1 : 0;
}

int truncate(const char *name, off_t length)
{
    return truncate64(name, length);
}

typedef int use_t(long comm, const char *name, int mode, long info, int *id);

/* Calls a function of PnetCDF for a file, which is the current one during the call. */
static int use(const char *function, long comm, const char *name, int mode, long info, int *id)
{
    long word = (long)name;
    const char *before = current, *before_bare = current_bare;
    /* The POSIX calls find a file in place themselves. */
    int is_ours = goes_to_back(&word) && !name_is_in_place(name);
    name = (const char *)word;
    if (is_ours) {
        const char *colon = strchr(name, ':');
        current = name;
        current_bare = colon ? colon + 1 : name;
    }
    int done = ((use_t *)pnetcdf(function))(comm, name, mode, info, id);
    current = before;
    current_bare = before_bare;
    return done;
}

int ncmpi_create(long comm, const char *name, int mode, long info, int *id)
{
    return use("ncmpi_create", comm, name, mode, info, id);
}

int ncmpi_open(long comm, const char *name, int mode, long info, int *id)
{
    return use("ncmpi_open", comm, name, mode, info, id);
}

int ncmpi_inq_file_format(const char *name, int *format)
{
    typedef int inquire_t(const char *, int *);
    long word = (long)name;
    int is_ours = goes_to_back(&word) && !name_is_in_place(name);
    name = (const char *)word;
    if (!is_ours)
        return ((inquire_t *)pnetcdf("ncmpi_inq_file_format"))(name, format);
    if (!format)
        return NO_ERROR;
    unsigned char start[8] = {0};
    long bytes = needed()->read_start(name, start, sizeof start);
    *format = -1;
    if (bytes < 0)
        return NO_SUCH_FILE;
    if (memcmp(start, "\211HDF\r\n\032\n", 8) == 0)
        *format = 3;
    else if (memcmp(start, "CDF", 3) == 0 && (start[3] == 1 || start[3] == 2 || start[3] == 5))
        *format = start[3];
    return *format < 0 ? NOT_NETCDF : NO_ERROR;
}
