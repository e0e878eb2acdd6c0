/* files.c - open files, their handles and their errors. */
#include "back.h"

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
    pthread_mutex_lock(&lock);
    for (int i = 0; file && i < FILES_MAX; i++)
        if (!files[i]) {
            files[i] = file;
            file->handle = &handles[i];
            break;
        }
    pthread_mutex_unlock(&lock);
    if (file && !file->handle) {
        free(file);
        return NULL;
    }
    if (file) {
        file->comm = MPI_COMM_NULL;
        file->hints = MPI_INFO_NULL;
        file->view.etype = file->view.filetype = MPI_DATATYPE_NULL;
        pthread_mutex_init(&file->lock, NULL);
    }
    return file;
}

void file_free(open_file_t *file)
{
    view_release(&file->view);
    if (file->hints != MPI_INFO_NULL)
        PMPI_Info_free(&file->hints);
    if (file->comm != MPI_COMM_NULL)
        PMPI_Comm_free(&file->comm);
    pthread_mutex_destroy(&file->lock);
    pthread_mutex_lock(&lock);
    files[file->handle - handles] = NULL;
    pthread_mutex_unlock(&lock);
    free(file->name);
    free(file);
}

MPI_File handle_of(const open_file_t *file)
{
    return (MPI_File)file->handle;
}

open_file_t *file_of(MPI_File file)
{
    size_t number = (size_t)((file_handle_t *)file - handles);
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

/* ---- Connection ---------------------------------------------------------------------------- */

static unisono_t *connected;

/* Called when MPI ends, as the attribute of MPI_COMM_SELF is deleted. */
static int disconnect(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    pthread_mutex_lock(&lock);
    unisono_disconnect(connected);
    connected = NULL;
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

unisono_t *connection(void)
{
    pthread_mutex_lock(&lock);
    if (!connected && unisono_connect(NULL, NULL, &connected) == 0) {
        int key;
        if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, disconnect, &key, NULL) == MPI_SUCCESS) {
            PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
            PMPI_Comm_free_keyval(&key);
        }
    }
    unisono_t *found = connected;
    pthread_mutex_unlock(&lock);
    return found;
}

const char *name_in_instance(const char *name)
{
    if (strncmp(name, "unisono:", 8) == 0)
        name += 8;
    while (*name == '/')
        name++;
    return name;
}

/* ---- Errors -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int class;
} classes[] = {
#define CLASS(name) {#name, name}
    CLASS(MPI_ERR_ACCESS),          CLASS(MPI_ERR_AMODE),      CLASS(MPI_ERR_ARG),
    CLASS(MPI_ERR_BAD_FILE),        CLASS(MPI_ERR_CONVERSION), CLASS(MPI_ERR_COUNT),
    CLASS(MPI_ERR_DUP_DATAREP),     CLASS(MPI_ERR_FILE),       CLASS(MPI_ERR_FILE_EXISTS),
    CLASS(MPI_ERR_FILE_IN_USE),     CLASS(MPI_ERR_INTERN),     CLASS(MPI_ERR_IO),
    CLASS(MPI_ERR_NOT_SAME),        CLASS(MPI_ERR_NO_MEM),     CLASS(MPI_ERR_NO_SPACE),
    CLASS(MPI_ERR_NO_SUCH_FILE),    CLASS(MPI_ERR_OTHER),      CLASS(MPI_ERR_QUOTA),
    CLASS(MPI_ERR_READ_ONLY),       CLASS(MPI_ERR_TYPE),       CLASS(MPI_ERR_UNKNOWN),
    CLASS(MPI_ERR_UNSUPPORTED_DATAREP), CLASS(MPI_ERR_UNSUPPORTED_OPERATION),
#undef CLASS
};

int class_of_failure(void)
{
    const unisono_error_t *error = unisono_last_error();
    if (!error)
        return MPI_ERR_INTERN;
    /* Programs look for files, and try to create them, as a matter of course. */
    if (error->kind != UNISONO_ERR_NOT_FOUND && error->kind != UNISONO_ERR_ALREADY_EXISTS)
        fprintf(stderr, "%s\n", error->text);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i].name, error->mpi_class) == 0)
            return classes[i].class;
    return MPI_ERR_IO;
}

void explain(const char *error, const char *cause, const char *help)
{
    fprintf(stderr, "error: %s\ncause: %s\nhelp:  %s\n", error, cause, help);
}

/* Functions of programs by their error handlers, which MPI does not tell. */
static struct handler {
    MPI_Errhandler errhandler;
    MPI_File_errhandler_function *function;
    struct handler *next;
} *handlers;

int call_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler);
int call_set_errhandler(MPI_File handle, MPI_Errhandler errhandler);
int call_get_errhandler(MPI_File handle, MPI_Errhandler *errhandler);
int call_call_errhandler(MPI_File handle, int code);

static MPI_File_errhandler_function *function_of(MPI_Errhandler errhandler)
{
    MPI_File_errhandler_function *function = NULL;
    pthread_mutex_lock(&lock);
    for (struct handler *one = handlers; one && !function; one = one->next)
        if (one->errhandler == errhandler)
            function = one->function;
    pthread_mutex_unlock(&lock);
    return function;
}

extern int (*real_create_errhandler)(MPI_File_errhandler_function *, MPI_Errhandler *);

int call_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler)
{
    int code = real_create_errhandler(function, errhandler);
    struct handler *made = code == MPI_SUCCESS ? malloc(sizeof *made) : NULL;
    if (made) {
        made->errhandler = *errhandler;
        made->function = function;
        pthread_mutex_lock(&lock);
        made->next = handlers;
        handlers = made;
        pthread_mutex_unlock(&lock);
    }
    return code;
}

int fail(open_file_t *file, int code)
{
    MPI_Errhandler errhandler;
    MPI_File_errhandler_function *function;
    if (code == MPI_SUCCESS)
        return code;
    if (file) {
        errhandler = file->errhandler;
        function = file->handler;
    } else if (PMPI_File_get_errhandler(MPI_FILE_NULL, &errhandler) == MPI_SUCCESS) {
        function = function_of(errhandler);
    } else {
        return code;
    }
    MPI_File handle = file ? handle_of(file) : MPI_FILE_NULL;
    if (function)
        function(&handle, &code);
    else if (errhandler != MPI_ERRORS_RETURN)
        PMPI_Abort(file ? file->comm : MPI_COMM_WORLD, code);
    return code;
}

int agree(open_file_t *file, int code)
{
    int greatest = code;
    if (PMPI_Allreduce(&code, &greatest, 1, MPI_INT, MPI_MAX, file->comm) != MPI_SUCCESS)
        return MPI_ERR_INTERN;
    return greatest;
}

int errhandler_default(open_file_t *file)
{
    int code = PMPI_File_get_errhandler(MPI_FILE_NULL, &file->errhandler);
    file->handler = code == MPI_SUCCESS ? function_of(file->errhandler) : NULL;
    return code;
}

int call_set_errhandler(MPI_File handle, MPI_Errhandler errhandler)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    file->errhandler = errhandler;
    file->handler = function_of(errhandler);
    return MPI_SUCCESS;
}

int call_get_errhandler(MPI_File handle, MPI_Errhandler *errhandler)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    *errhandler = file->errhandler;
    return MPI_SUCCESS;
}

int call_call_errhandler(MPI_File handle, int code)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    fail(file, code);
    return MPI_SUCCESS;
}
