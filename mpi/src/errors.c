/* errors.c - failures of the library as codes of MPI, and error handlers. */
#include "back.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *name;
    int class;
} classes[] = {
#define CLASS(name) {#name, name}
    CLASS(MPI_ERR_ACCESS),
    CLASS(MPI_ERR_AMODE),
    CLASS(MPI_ERR_ARG),
    CLASS(MPI_ERR_BAD_FILE),
    CLASS(MPI_ERR_CONVERSION),
    CLASS(MPI_ERR_COUNT),
    CLASS(MPI_ERR_DUP_DATAREP),
    CLASS(MPI_ERR_FILE),
    CLASS(MPI_ERR_FILE_EXISTS),
    CLASS(MPI_ERR_FILE_IN_USE),
    CLASS(MPI_ERR_INFO_VALUE),
    CLASS(MPI_ERR_INTERN),
    CLASS(MPI_ERR_IO),
    CLASS(MPI_ERR_NOT_SAME),
    CLASS(MPI_ERR_NO_MEM),
    CLASS(MPI_ERR_NO_SPACE),
    CLASS(MPI_ERR_NO_SUCH_FILE),
    CLASS(MPI_ERR_OTHER),
    CLASS(MPI_ERR_QUOTA),
    CLASS(MPI_ERR_READ_ONLY),
    CLASS(MPI_ERR_TYPE),
    CLASS(MPI_ERR_UNKNOWN),
    CLASS(MPI_ERR_UNSUPPORTED_DATAREP),
    CLASS(MPI_ERR_UNSUPPORTED_OPERATION),
#undef CLASS
};

/* Explanation that is held back, while `is_held`. */
static _Thread_local char held[2048];
static _Thread_local int is_held;

void explain(const char *error, const char *cause, const char *help)
{
    char text[sizeof held];
    snprintf(text, sizeof text, "error: %s\ncause: %s\nhelp:  %s\n", error, cause, help);
    if (!is_held)
        fputs(text, stderr);
    else if (!*held)
        memcpy(held, text, sizeof held);
}

void explanations_hold(void)
{
    *held = 0;
    is_held = 1;
}

void explanations_release(int is_printed)
{
    is_held = 0;
    if (is_printed)
        fputs(held, stderr);
}

/* 1 when this member prints an error that all members meet: the lowest that has joined. */
static int is_speaker(const open_file_t *file, const unisono_error_t *error)
{
    if (!file || !error->rank_count)
        return 1;
    int lowest = 0;
    for (size_t i = 0; i < error->rank_count && error->ranks[i] == (uint32_t)lowest; i++)
        lowest++;
    return file->rank == lowest;
}

void end_program(int is_first)
{
    /* The exit code of mpiexec is that of the first to end; it kills the others. */
    if (!is_first)
        nanosleep(&(struct timespec){3, 0}, NULL);
    /* MPICH does not end other processes for a duplicate of MPI_COMM_WORLD. */
    PMPI_Abort(MPI_COMM_WORLD, EXIT_MEMBERS_MISSING);
}

int class_of_failure(const open_file_t *file, int call)
{
    const unisono_error_t *error = unisono_last_error();
    if (!error)
        return MPI_ERR_INTERN;
    /* Programs look for files, and try to create them, as a matter of course. */
    int is_expected =
        error->kind == UNISONO_ERR_NOT_FOUND || error->kind == UNISONO_ERR_ALREADY_EXISTS;
    if (!is_expected && is_speaker(file, error)) {
        char text[1024];
        snprintf(text, sizeof text, "%s failed: %s", call_name(call), error->error);
        explain(text, error->cause, error->help);
    }
    /* Programs rarely look at codes of files, and would wait for the missing members elsewhere. */
    if (error->kind == UNISONO_ERR_MEMBERS_MISSING && file && !file->has_errhandler
        && !file->handler)
        end_program(is_speaker(file, error));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i].name, error->mpi_class) == 0)
            return classes[i].class;
    return MPI_ERR_IO;
}

int wrong(int code, int call, const char *cause, const char *help)
{
    char error[256];
    snprintf(error, sizeof error, "%s failed", call_name(call));
    explain(error, cause, help);
    return code;
}

/* Functions of programs by their error handlers, which MPI does not tell. */
static struct handler {
    MPI_Errhandler errhandler;
    MPI_File_errhandler_function *function;
    struct handler *next;
} *handlers;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

typedef int create_errhandler_t(MPI_File_errhandler_function *, MPI_Errhandler *);

static int create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler)
{
    int code = REAL(File_create_errhandler, create_errhandler_t)(function, errhandler);
    struct handler *made = code == MPI_SUCCESS ? malloc(sizeof *made) : NULL;
    if (made) {
        made->errhandler = *errhandler;
        made->function = function;
        pthread_mutex_lock(&lock);
        made->next = handlers; /* hides an older one, whose handle MPI has used again */
        handlers = made;
        pthread_mutex_unlock(&lock);
    }
    return code;
}

static int is_predefined(MPI_Errhandler errhandler)
{
#ifdef MPI_ERRORS_ABORT
    if (errhandler == MPI_ERRORS_ABORT)
        return 1;
#endif
    return errhandler == MPI_ERRORS_RETURN || errhandler == MPI_ERRORS_ARE_FATAL
           || errhandler == MPI_ERRHANDLER_NULL;
}

static void drop_errhandler(MPI_Errhandler errhandler)
{
    if (!is_predefined(errhandler))
        PMPI_Errhandler_free(&errhandler);
}

/* Takes one more reference to an error handler, which a program may free while a file has it. MPI
 * gives references only for its own files: the null file lends its place. */
static void keep_errhandler(MPI_Errhandler errhandler)
{
    static pthread_mutex_t place = PTHREAD_MUTEX_INITIALIZER;
    MPI_Errhandler before, kept;
    if (is_predefined(errhandler))
        return;
    pthread_mutex_lock(&place);
    if (PMPI_File_get_errhandler(MPI_FILE_NULL, &before) == MPI_SUCCESS) {
        PMPI_File_set_errhandler(MPI_FILE_NULL, errhandler);
        PMPI_File_get_errhandler(MPI_FILE_NULL, &kept);
        PMPI_File_set_errhandler(MPI_FILE_NULL, before);
        drop_errhandler(before);
    }
    pthread_mutex_unlock(&place);
}

/* Calls the error handler for a code, which may be MPI_SUCCESS. Returns the code that it leaves. */
static int call_handler(MPI_File file, MPI_Errhandler errhandler,
                        MPI_File_errhandler_function *function, int code)
{
    if (function)
        function(&file, &code);
    else if (errhandler != MPI_ERRORS_RETURN)
        PMPI_Abort(MPI_COMM_WORLD, code);
    return code;
}

int fail(open_file_t *file, int code)
{
    MPI_Errhandler errhandler;
    if (code == MPI_SUCCESS)
        return code;
    if (file) {
        code = call_handler(handle_of(file), file->errhandler, file->handler, code);
    } else if (PMPI_File_get_errhandler(MPI_FILE_NULL, &errhandler) == MPI_SUCCESS) {
        code = call_handler(MPI_FILE_NULL, errhandler, function_of(errhandler), code);
        drop_errhandler(errhandler);
    }
    return code;
}

void errhandler_default(open_file_t *file)
{
    if (PMPI_File_get_errhandler(MPI_FILE_NULL, &file->errhandler) != MPI_SUCCESS)
        file->errhandler = MPI_ERRORS_RETURN;
    file->handler = function_of(file->errhandler);
}

void errhandler_free(open_file_t *file)
{
    drop_errhandler(file->errhandler);
    file->errhandler = MPI_ERRORS_RETURN;
    file->handler = NULL;
}

static int set_errhandler(MPI_File handle, MPI_Errhandler errhandler)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    keep_errhandler(errhandler);
    drop_errhandler(file->errhandler);
    file->errhandler = errhandler;
    file->handler = function_of(errhandler);
    file->has_errhandler = 1;
    return MPI_SUCCESS;
}

static int get_errhandler(MPI_File handle, MPI_Errhandler *errhandler)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    keep_errhandler(file->errhandler); /* the program frees what it gets */
    *errhandler = file->errhandler;
    return MPI_SUCCESS;
}

static int call_errhandler(MPI_File handle, int code)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    call_handler(handle_of(file), file->errhandler, file->handler, code);
    return MPI_SUCCESS;
}

void errors_enter(function_t **functions)
{
    ENTER(File_create_errhandler, create_errhandler);
    ENTER(File_set_errhandler, set_errhandler);
    ENTER(File_get_errhandler, get_errhandler);
    ENTER(File_call_errhandler, call_errhandler);
}
