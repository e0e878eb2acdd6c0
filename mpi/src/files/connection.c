/* connection.c - the connections of the process to instances, and calls that need no open file. */
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

/* A connection, by a directory that leads to its instance. */
typedef struct connected {
    char *directory; /* NULL: the default instance */
    unisono_t *unisono;
    int is_second; /* 1 when another directory leads there, too */
    struct connected *next;
} connected_t;

static connected_t *connections;

static void disconnect(void)
{
    if (!connections)
        return;
    closings_end();
    /* Those who want a report look for it in the default instance. */
    if (getenv("UNISONO_REPORT"))
        report_write(connection_to(NULL));
    pthread_mutex_lock(&lock);
    while (connections) {
        connected_t *ended = connections;
        connections = ended->next;
        if (!ended->is_second)
            unisono_disconnect(ended->unisono);
        free(ended->directory);
        free(ended);
    }
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

/* The connection that was made by a directory, or NULL. */
static connected_t *connection_by(const char *directory)
{
    connected_t *found = connections;
    while (found
           && (directory && found->directory ? strcmp(directory, found->directory) != 0
                                             : directory != found->directory))
        found = found->next;
    return found;
}

/* Connects to an instance. If a connection was made to it by another directory, that one is used. */
static connected_t *connect_by(const char *directory)
{
    unisono_t *made = NULL;
    char *copy = directory ? strdup(directory) : NULL;
    connected_t *entry = calloc(1, sizeof *entry);
    if (!entry || (directory && !copy) || unisono_connect(directory, NULL, &made)) {
        free(entry);
        free(copy);
        return NULL;
    }
    *entry = (connected_t){.directory = copy, .unisono = made, .next = connections};
    const uint64_t number = unisono_instance_number(made);
    for (connected_t *other = connections; other && !entry->is_second; other = other->next)
        if (unisono_instance_number(other->unisono) == number) {
            entry->unisono = other->unisono;
            entry->is_second = 1;
        }
    if (entry->is_second)
        unisono_disconnect(made);
    if (!connections)
        disconnect_at_end();
    connections = entry;
    return entry;
}

unisono_t *connection_to(const char *directory)
{
    pthread_mutex_lock(&lock);
    connected_t *found = connection_by(directory);
    if (!found)
        found = connect_by(directory);
    pthread_mutex_unlock(&lock);
    return found ? found->unisono : NULL;
}

/* ---- Files that the program names ------------------------------------------------------------ */

int path_is_mounted(const char *name)
{
    mounted_name_t found;
    return name_mounted(name, &found) != 0;
}

int instance_find(const char *given, int call, unisono_t **unisono, char **mounted)
{
    mounted_name_t found;
    const int is_mounted = name_mounted(given, &found);
    *unisono = NULL;
    *mounted = NULL;
    if (is_mounted < 0)
        return class_of_failure(NULL, call);
    if (is_mounted && !(*mounted = strdup(found.name)))
        return MPI_ERR_NO_MEM;
    /* Such a path does not become a name in the default instance. */
    if (!is_mounted && !name_is_taken(given))
        return wrong(MPI_ERR_NO_SUCH_FILE, call, "the mount of the instance that the path led to has ended",
                     "mount the instance again, and start the program after that");
    *unisono = connection_to(is_mounted ? found.instance : NULL);
    return *unisono ? MPI_SUCCESS : class_of_failure(NULL, call);
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

int file_find(const char *given, int call, unisono_t **unisono, char **name)
{
    int code = instance_find(given, call, unisono, name);
    if (code == MPI_SUCCESS && !*name)
        *name = name_in_instance(given, call, &code);
    return code;
}

long read_start(const char *name, void *bytes, size_t count)
{
    char *meant;
    int64_t read = -1;
    unisono_t *unisono;
    unisono_file_t *file = NULL;
    if (file_find(name, CALL_File_open, &unisono, &meant) == MPI_SUCCESS
        && unisono_open(unisono, meant, 0, NULL, &file) == 0)
        read = unisono_pread(file, bytes, count, 0);
    unisono_close(file);
    free(meant);
    return (long)read;
}

int truncate_file(const char *name, long length)
{
    char *meant;
    int failure = ENOENT;
    unisono_t *unisono;
    unisono_file_t *file = NULL;
    if (file_find(name, CALL_File_open, &unisono, &meant) == MPI_SUCCESS) {
        failure = unisono_open(unisono, meant, 0, NULL, &file);
        if (failure == 0)
            failure = unisono_truncate(file, (uint64_t)length);
    }
    unisono_close(file);
    free(meant);
    return abs(failure);
}
