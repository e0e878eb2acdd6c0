/* handlers.c - error handlers of files.
 *
 * MPI has no call that returns the function of an error handler, or its language. The front end sees
 * handlers when programs make them in C, Fortran or C++, and this file keeps their functions. */
#include "errors.h"

#include <stdlib.h>

/* Error handlers that programs have made, with their functions. */
static struct known {
    MPI_Errhandler errhandler;
    handler_t handler;
    struct known *next;
} *all_known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Entry of an error handler, or NULL. */
static struct known *find(MPI_Errhandler errhandler)
{
    struct known *one = all_known;
    while (one && one->errhandler != errhandler)
        one = one->next;
    return one;
}

static handler_t handler_of(MPI_Errhandler errhandler)
{
    pthread_mutex_lock(&lock);
    const struct known *known = find(errhandler);
    handler_t handler = known ? known->handler : (handler_t){.function = NULL};
    pthread_mutex_unlock(&lock);
    return handler;
}

/* Keeps the function of an error handler. MPI may use the handle of a freed error handler again. */
static void keep_function(MPI_Errhandler errhandler, handler_t handler)
{
    pthread_mutex_lock(&lock);
    struct known *known = find(errhandler);
    if (!known && (known = calloc(1, sizeof *known))) {
        known->errhandler = errhandler;
        known->next = all_known;
        all_known = known;
    }
    if (known)
        known->handler = handler;
    pthread_mutex_unlock(&lock);
}

typedef int create_errhandler_t(MPI_File_errhandler_function *, MPI_Errhandler *);

static int create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler)
{
    int code = REAL(File_create_errhandler, create_errhandler_t)(function, errhandler);
    handler_t handler = {.kind = HANDLER_C, .function = (function_t *)function};
    if (code == MPI_SUCCESS)
        keep_function(*errhandler, handler);
    return code;
}

void handler_made(const void *errhandler, const handler_t *handler)
{
    keep_function(*(const MPI_Errhandler *)errhandler, *handler);
}

void handler_made_in_fortran(int number, function_t *function)
{
#ifdef MPI_ABI_VERSION
    MPI_Errhandler errhandler = PMPI_Errhandler_fromint(number);
#else
    MPI_Errhandler errhandler = PMPI_Errhandler_f2c(number);
#endif
    keep_function(errhandler, (handler_t){.kind = HANDLER_FORTRAN, .function = function});
}

void handler_is_cxx(const void *errhandler, function_t *caller)
{
    pthread_mutex_lock(&lock);
    struct known *known = find(*(const MPI_Errhandler *)errhandler);
    if (known) {
        known->handler.kind = HANDLER_CXX_OF_MPICH;
        known->handler.caller = caller;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- References ---------------------------------------------------------------------------- */

/* 1 for MPI_ERRORS_RETURN and for MPI::ERRORS_THROW_EXCEPTIONS: the bindings of C++ throw themselves. */
static int returns(MPI_Errhandler errhandler)
{
#ifdef MPIR_ERRORS_THROW_EXCEPTIONS
    if (errhandler == MPIR_ERRORS_THROW_EXCEPTIONS)
        return 1;
#endif
    return errhandler == MPI_ERRORS_RETURN;
}

static int is_predefined(MPI_Errhandler errhandler)
{
#ifdef MPI_ERRORS_ABORT
    if (errhandler == MPI_ERRORS_ABORT)
        return 1;
#endif
    return returns(errhandler) || errhandler == MPI_ERRORS_ARE_FATAL
           || errhandler == MPI_ERRHANDLER_NULL;
}

static void drop_errhandler(MPI_Errhandler errhandler)
{
    if (!is_predefined(errhandler))
        PMPI_Errhandler_free(&errhandler);
}

typedef int get_errhandler_t(MPI_File, MPI_Errhandler *);
typedef int set_errhandler_t(MPI_File, MPI_Errhandler);

/* The default error handler, with a reference. The call goes to the MPI library directly. Through the
 * front end it would make the thread forget its last failure. */
static int get_default(MPI_Errhandler *errhandler)
{
    return REAL(File_get_errhandler, get_errhandler_t)(MPI_FILE_NULL, errhandler);
}

static void set_default(MPI_Errhandler errhandler)
{
    REAL(File_set_errhandler, set_errhandler_t)(MPI_FILE_NULL, errhandler);
}

/* Takes one more reference to an error handler, which a program may free while a file has it. MPI gives
 * references only with its own files, so the handler is set for MPI_FILE_NULL for a moment. */
static void keep_errhandler(MPI_Errhandler errhandler)
{
    static pthread_mutex_t place = PTHREAD_MUTEX_INITIALIZER;
    MPI_Errhandler before, kept;
    if (is_predefined(errhandler))
        return;
    pthread_mutex_lock(&place);
    if (get_default(&before) == MPI_SUCCESS) {
        set_default(errhandler);
        get_default(&kept);
        set_default(before);
        drop_errhandler(before);
    }
    pthread_mutex_unlock(&place);
}

/* ---- Calls --------------------------------------------------------------------------------- */

typedef void fortran_handler_t(int *, int *);
typedef void handler_with_state_t(MPI_File, int, void *);
typedef void caller_of_mpich_t(int, MPI_File *, int *, function_t *);
typedef void caller_of_openmpi_t(MPI_File *, int *, const char *, function_t *);

/* Number of a file in Fortran. */
static int number_of(MPI_File file)
{
#ifdef MPI_ABI_VERSION
    return file == MPI_FILE_NULL ? PMPI_File_toint(file) : file_to_fortran((void *)file);
#else
    return file == MPI_FILE_NULL ? (int)PMPI_File_c2f(file) : file_to_fortran((void *)file);
#endif
}

/* Calls the function of an error handler. Returns the code that it leaves. */
static int call_function(MPI_File file, const handler_t *handler, int code)
{
    enum { A_FILE = 1 }; /* kind of object, in the binding of MPICH */
    int number = number_of(file);
    switch (handler->kind) {
    case HANDLER_C:
        ((MPI_File_errhandler_function *)handler->function)(&file, &code);
        break;
    case HANDLER_FORTRAN:
        ((fortran_handler_t *)handler->function)(&number, &code);
        break;
    case HANDLER_WITH_STATE:
        ((handler_with_state_t *)handler->function)(file, code, handler->state);
        break;
    case HANDLER_CXX_OF_MPICH:
        ((caller_of_mpich_t *)handler->caller)(A_FILE, &file, &code, handler->function);
        /* With another code the binding would call the handler again. */
        code = MPI_SUCCESS;
        break;
    case HANDLER_CXX_OF_OPENMPI:
        ((caller_of_openmpi_t *)handler->caller)(&file, &code, NULL, handler->function);
        break;
    }
    return code;
}

/* Calls the error handler for a code, which may be MPI_SUCCESS. Returns the code that it leaves. */
static int call_handler(MPI_File handle, MPI_Errhandler errhandler, const handler_t *handler,
                        int code)
{
    const open_file_t *file = handle == MPI_FILE_NULL ? NULL : file_of(handle);
    if (handler->function)
        return call_function(handle, handler, code);
    if (returns(errhandler))
        return code;
    if (!is_predefined(errhandler))
        explain("cannot call the error handler of a file",
                "it was created by an unknown function of this MPI library",
                "create it with MPI_File_create_errhandler, in C or Fortran");
    abort_program(file ? file->comm : MPI_COMM_NULL, code);
    return code;
}

int fail(open_file_t *file, int code)
{
    MPI_Errhandler errhandler;
    if (code == MPI_SUCCESS)
        return code;
    if (file) {
        code = call_handler(handle_of(file), file->errhandler, &file->handler, code);
    } else if (get_default(&errhandler) == MPI_SUCCESS) {
        handler_t handler = handler_of(errhandler);
        code = call_handler(MPI_FILE_NULL, errhandler, &handler, code);
        drop_errhandler(errhandler);
    }
    return code;
}

void errhandler_default(open_file_t *file)
{
    if (get_default(&file->errhandler) != MPI_SUCCESS)
        file->errhandler = MPI_ERRORS_RETURN;
    file->handler = handler_of(file->errhandler);
}

void errhandler_free(open_file_t *file)
{
    drop_errhandler(file->errhandler);
    file->errhandler = MPI_ERRORS_RETURN;
    file->handler = (handler_t){.function = NULL};
}

static int set_errhandler(MPI_File handle, MPI_Errhandler errhandler)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    keep_errhandler(errhandler);
    drop_errhandler(file->errhandler);
    file->errhandler = errhandler;
    file->handler = handler_of(errhandler);
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
    call_handler(handle_of(file), file->errhandler, &file->handler, code);
    return MPI_SUCCESS;
}

void handlers_enter(function_t **functions)
{
    ENTER(File_create_errhandler, create_errhandler);
    ENTER(File_set_errhandler, set_errhandler);
    ENTER(File_get_errhandler, get_errhandler);
    ENTER(File_call_errhandler, call_errhandler);
}
