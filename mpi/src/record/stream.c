/* stream.c - the trace of this process: its begin and end, its failures, and notes of missing events. */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NOTES_MAX = 64 };

unisono_trace_t *trace;

static const char *notes[NOTES_MAX]; /* names, which are constants */
static size_t note_count;
static int rank; /* of this process in MPI_COMM_WORLD */
static int notes_file = -1;
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

/* First line of a text. */
static void cut_line(char *text)
{
    text[strcspn(text, "\r\n")] = 0;
}

/* Cause of an error of the library. */
static const char *cause_of(int error)
{
    const unisono_error_t *last = unisono_last_error();
    return last && last->cause ? last->cause : strerror(-error);
}

static void report(const char *cause)
{
    fprintf(stderr,
            "error: the recording of rank %d has stopped\ncause: %s\n"
            "help:  the trace is valid up to here; remove the cause and record again\n",
            rank, cause);
}

/* Explains why this rank is not recorded. */
static void refuse(const char *directory, const char *cause)
{
    fprintf(stderr,
            "error: cannot record rank %d in %s\ncause: %s\n"
            "help:  record one MPI program at a time, in a directory that all hosts share\n",
            rank, directory, cause);
}

static void add_line(const char *line, size_t length)
{
    if (notes_file >= 0 && write(notes_file, line, length) != (ssize_t)length)
        notes_file = -1; /* the disk is full, which the trace reports */
}

void stream_begin(const char *directory)
{
    int ranks, length;
    char host[MPI_MAX_PROCESSOR_NAME + 1] = "", path[PATH_MAX];
    static char version[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) || PMPI_Comm_size(MPI_COMM_WORLD, &ranks)
        || PMPI_Get_processor_name(host, &length)
        || PMPI_Get_library_version(version, &length))
        return;
    cut_line(version);
    /* Each note is written as it occurs, so that those of a killed process are there too. A directory
     * that has notes of this rank was recorded in by an earlier program of the command. */
    snprintf(path, sizeof path, "%s/recorder.%d", directory, rank);
    notes_file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (notes_file < 0 && errno == EEXIST) {
        notes_file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        note("another MPI program of the command");
        refuse(directory, "the command has run another MPI program before this one");
        return;
    }
    if (notes_file < 0) {
        refuse(directory, strerror(errno));
        return;
    }
    int error = unisono_trace_create(directory, (uint32_t)rank, (uint32_t)ranks, host, version,
                                     &trace);
    if (error) {
        trace = NULL;
        refuse(directory, cause_of(error));
    }
}

void stream_end(void)
{
    unisono_trace_t *ended = trace;
    trace = NULL;
    if (!ended)
        return;
    char line[64];
    int length = snprintf(line, sizeof line, "cost %lu %lu\n", (unsigned long)clock_calls(),
                          (unsigned long)clock_cost());
    add_line(line, (size_t)length);
    int error = unisono_trace_close_stream(ended);
    if (error)
        report(cause_of(error));
}

void stream_discard(void)
{
    trace = NULL;
}

void stream_fail(const char *cause)
{
    unisono_trace_t *ended = trace;
    trace = NULL;
    if (!ended)
        return;
    note("events after an error of the recorder");
    report(cause);
    unisono_trace_close_stream(ended);
}

int64_t written(int64_t result)
{
    if (result < 0)
        stream_fail(cause_of((int)result));
    return result;
}

void note(const char *name)
{
    pthread_mutex_lock(&notes_lock);
    size_t at = 0;
    while (at < note_count && notes[at] != name)
        at++;
    if (at == note_count && note_count < NOTES_MAX && notes_file >= 0) {
        char line[128];
        int length = snprintf(line, sizeof line, "not-recorded %s\n", name);
        notes[note_count++] = name;
        add_line(line, (size_t)length);
    }
    pthread_mutex_unlock(&notes_lock);
}
