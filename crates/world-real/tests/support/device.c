/* A library to preload, about the files below the directory UNISONO_FAULTS.
 *
 * - While there is a file `refuse-writes` in that directory, writes fail with EIO, with `refuse-large-writes` those
 *   of more than a sector; with `refuse-syncs`, syncs do. As Linux does, a sync that failed is forgotten: the next
 *   one without that file succeeds.
 * - While there is a file `hold` in it, writes, cuts and syncs wait, and make a file `waits`; with `hold-cuts`, cuts.
 * - With UNISONO_DEVICE_RATE=n the device takes n bytes a second from all threads of the process, one
 *   write after the other.
 * - With UNISONO_KILL_AT=n the n-th call that changes a file, counted from 1, kills the process: a
 *   write in its middle, anything else before it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_ours(int descriptor) {
    const char *directory = getenv("UNISONO_FAULTS");
    char link[64], path[4096];
    ssize_t length;
    if (directory == NULL)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    return length > 0 && strncmp(path, directory, strlen(directory)) == 0;
}

static int refused(int descriptor, const char *trigger) {
    char file[4096];
    if (!is_ours(descriptor))
        return 0;
    snprintf(file, sizeof file, "%s/%s", getenv("UNISONO_FAULTS"), trigger);
    return access(file, F_OK) == 0;
}

static void wait_while_held(int descriptor, const char *trigger) {
    struct timespec moment = {0, 10000000};
    char file[4096];
    while (refused(descriptor, trigger)) {
        snprintf(file, sizeof file, "%s/waits", getenv("UNISONO_FAULTS"));
        close(creat(file, 0600));
        nanosleep(&moment, NULL);
    }
}

static int dies_now(int descriptor) {
    static int calls;
    const char *last = getenv("UNISONO_KILL_AT");
    return last != NULL && is_ours(descriptor) && ++calls == atoi(last);
}

static void take_time(int descriptor, size_t count) {
    static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
    const char *rate = getenv("UNISONO_DEVICE_RATE");
    struct timespec time;
    double seconds;
    if (rate == NULL || !is_ours(descriptor))
        return;
    seconds = (double)count / atof(rate);
    time.tv_sec = (time_t)seconds;
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    pthread_mutex_lock(&device);
    nanosleep(&time, NULL);
    pthread_mutex_unlock(&device);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    if (dies_now(descriptor)) {
        /* A half in whole sectors, as direct writes must be. */
        size_t half = count > 8192 ? count / 2 / 4096 * 4096 : 0;
        if (half > 0)
            real(descriptor, bytes, half, offset);
        kill(getpid(), SIGKILL);
    }
    if (refused(descriptor, "refuse-writes") ||
        (count > 4096 && refused(descriptor, "refuse-large-writes"))) {
        errno = EIO;
        return -1;
    }
    wait_while_held(descriptor, "hold");
    take_time(descriptor, count);
    return real(descriptor, bytes, count, offset);
}

int ftruncate64(int descriptor, off64_t length) {
    int (*real)(int, off64_t) = dlsym(RTLD_NEXT, "ftruncate64");
    wait_while_held(descriptor, "hold");
    wait_while_held(descriptor, "hold-cuts");
    if (dies_now(descriptor))
        kill(getpid(), SIGKILL);
    return real(descriptor, length);
}

int fdatasync(int descriptor) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    wait_while_held(descriptor, "hold");
    if (dies_now(descriptor))
        kill(getpid(), SIGKILL);
    if (refused(descriptor, "refuse-syncs")) {
        errno = EIO;
        return -1;
    }
    return real(descriptor);
}

int fsync(int descriptor) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    if (refused(descriptor, "refuse-syncs")) {
        errno = EIO;
        return -1;
    }
    return real(descriptor);
}
