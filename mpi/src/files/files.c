/* files.c - open files, their handles and the connection of the process. */
#include "../back_end.h"

#include "../process/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static file_handle_t *handles;
static open_file_t *files[FILES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void handles_set(file_handle_t *given)
{
    handles = given;
}

open_file_t *file_new(void)
{
    open_file_t *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FILES_MAX && !file->handle; i++)
        if (!files[i]) {
            files[i] = file;
            file->handle = &handles[i];
        }
    pthread_mutex_unlock(&lock);
    if (!file->handle) {
        free(file);
        return NULL;
    }
    file->comm = MPI_COMM_NULL;
    file->is_in_world = has_world();
    file->errhandler = MPI_ERRORS_RETURN;
    file->view.etype = file->view.filetype = MPI_DATATYPE_NULL;
    pthread_mutex_init(&file->lock, NULL);
    return file;
}

void file_free(open_file_t *file)
{
    unisono_group_free(file->group);
    unisono_close(file->file);
    unisono_hints_free(file->hints);
    view_release(&file->view);
    errhandler_free(file);
    if (file->comm != MPI_COMM_NULL)
        PMPI_Comm_free(&file->comm);
    pthread_mutex_destroy(&file->lock);
    pthread_mutex_lock(&lock);
    files[file->handle - handles] = NULL;
    pthread_mutex_unlock(&lock);
    free(file->starts);
    free(file->name);
    free(file);
}

MPI_File handle_of(const open_file_t *file)
{
    return (MPI_File)(void *)file->handle;
}

open_file_t *file_of(MPI_File handle)
{
    size_t number = (size_t)((file_handle_t *)(void *)handle - handles);
    return number < FILES_MAX ? __atomic_load_n(&files[number], __ATOMIC_ACQUIRE) : NULL;
}

int file_to_fortran(void *file)
{
    return FORTRAN_BASE + (int)((file_handle_t *)file - handles);
}

void *file_from_fortran(int number)
{
    return &handles[number - FORTRAN_BASE];
}

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
        /* Another process may have deleted the file meanwhile. */
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
    report_write();
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

/* Has the process disconnect as MPI ends. A program with sessions only has no MPI_COMM_SELF, and may
 * begin a session again after the last: it disconnects as it ends itself. */
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
        snprintf(cause, sizeof cause, "the name has no absolute path: %s", strerror(errno));
        *code = wrong(MPI_ERR_BAD_FILE, call, cause, "give a shorter name, or an absolute one");
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
