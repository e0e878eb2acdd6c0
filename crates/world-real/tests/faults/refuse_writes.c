/* A library to preload: writes to files below the directory UNISONO_FAULTS fail with EIO while there
 * is a file `refuse-writes` in that directory, and syncs while there is one called `refuse-syncs`. As
 * Linux does, a sync that failed is forgotten: the next one without that file succeeds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refused(int descriptor, const char *trigger) {
    const char *directory = getenv("UNISONO_FAULTS");
    char link[64], path[4096], file[4096];
    ssize_t length;
    if (directory == NULL)
        return 0;
    snprintf(file, sizeof file, "%s/%s", directory, trigger);
    if (access(file, F_OK) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    return length > 0 && strncmp(path, directory, strlen(directory)) == 0;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (real == NULL)
        real = dlsym(RTLD_NEXT, "pwrite64");
    if (refused(descriptor, "refuse-writes")) {
        errno = EIO;
        return -1;
    }
    return real(descriptor, bytes, count, offset);
}

int fdatasync(int descriptor) {
    static int (*real)(int);
    if (real == NULL)
        real = dlsym(RTLD_NEXT, "fdatasync");
    if (refused(descriptor, "refuse-syncs")) {
        errno = EIO;
        return -1;
    }
    return real(descriptor);
}
