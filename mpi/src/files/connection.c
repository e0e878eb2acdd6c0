/* connection.c - the connection of the process to its instance, and calls that need no open file. */
#include "../errors/errors.h"
#include "../process/names.h"
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Closing -------------------------------------------------------------------------------- */

/* A file that is being closed. */
typedef struct closing {
    unisono_op_t *op;
    struct closing *next;
} closing_t;

static closing_t *closings;

int closing_begin(open_file_t *file)
{
    closing_t *closing = calloc(1, sizeof *closing);
    unisono_file_t *closed = file->file;
    file->file = NULL;
    if (!closing)
        return unisono_close(closed);
    if (unisono_start_close(closed, &closing->op)) {
        free(closing);
        return -1;
    }
    pthread_mutex_lock(&lock);
    closing->next = closings;
    closings = closing;
    pthread_mutex_unlock(&lock);
    return 0;
}

void closings_end(void)
{
    pthread_mutex_lock(&lock);
    closing_t *ended = closings;
    closings = NULL;
    pthread_mutex_unlock(&lock);
    while (ended) {
        closing_t *next = ended->next;
        int failed = unisono_op_wait(ended->op) < 0;
        const unisono_error_t *error = unisono_last_error();
        /* Another process may have deleted the file in the meantime. */
        if (failed && error && error->kind != UNISONO_ERR_NOT_FOUND)
            class_of_failure(NULL, CALL_File_close);
        free(ended);
        ended = next;
    }
}

/* ---- Connection ----------------------------------------------------------------------------- */

static unisono_t *connected;

static void disconnect(void)
{
    if (!connected)
        return;
    closings_end();
    report_write(connected);
    pthread_mutex_lock(&lock);
    unisono_disconnect(connected);
    connected = NULL;
    pthread_mutex_unlock(&lock);
}

/* Called when MPI ends, as the attribute of MPI_COMM_SELF is deleted. */
static int end_world(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    disconnect();
    return MPI_SUCCESS;
}

/* Makes the process disconnect when MPI ends. A program that only has sessions has no MPI_COMM_SELF, and
 * may begin a session after the last one has ended. It disconnects when the program ends. */
static void disconnect_at_end(void)
{
    int key;
    if (!has_world()) {
        atexit(disconnect);
    } else if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_world, &key, NULL)
               == MPI_SUCCESS) {
        PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
        PMPI_Comm_free_keyval(&key);
    }
}

unisono_t *connection(void)
{
    pthread_mutex_lock(&lock);
    if (!connected && unisono_connect(NULL, NULL, &connected) == 0)
        disconnect_at_end();
    unisono_t *found = connected;
    pthread_mutex_unlock(&lock);
    return found;
}

char *name_in_instance(const char *name, int call, int *code)
{
    char cause[200];
    char *meant = name_meaning(name);
    *code = MPI_SUCCESS;
    if (!meant && !errno) {
        *code = class_of_failure(NULL, call);
    } else if (!meant) {
        snprintf(cause, sizeof cause, "the absolute path of the file cannot be found: %s", strerror(errno));
        *code = wrong(MPI_ERR_BAD_FILE, call, cause, "give a shorter name, or an absolute path");
    }
    return meant;
}

long read_start(const char *name, void *bytes, size_t count)
{
    int code;
    int64_t read = -1;
    unisono_file_t *file = NULL;
    char *meant = name_in_instance(name, CALL_File_open, &code);
    if (meant && connection() && unisono_open(connection(), meant, 0, NULL, &file) == 0)
        read = unisono_pread(file, bytes, count, 0);
    unisono_close(file);
    free(meant);
    return (long)read;
}

int truncate_file(const char *name, long length)
{
    int code, failure = ENOENT;
    unisono_file_t *file = NULL;
    char *meant = name_in_instance(name, CALL_File_open, &code);
    if (meant && connection()) {
        failure = unisono_open(connection(), meant, 0, NULL, &file);
        if (failure == 0)
            failure = unisono_truncate(file, (uint64_t)length);
    }
    unisono_close(file);
    free(meant);
    return abs(failure);
}
