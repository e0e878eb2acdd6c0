/* errors.c - failures of the library as codes of MPI, and their messages.
 *
 * Codes are error classes, as in Open MPI, because programs compare them with classes. The cause of the
 * last failure of a thread is kept for MPI_Error_string. */
#include "errors.h"

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

static void write_text(char *text, const char *error, const char *cause, const char *help)
{
    snprintf(text, sizeof held, "error: %s\ncause: %s\nhelp:  %s\n", error, cause, help);
}

void explain(const char *error, const char *cause, const char *help)
{
    char text[sizeof held];
    write_text(text, error, cause, help);
    if (!is_held)
        fputs(text, stderr);
    else if (!*held)
        memcpy(held, text, sizeof held);
}

/* Explanation that another member prints. This member prints it if it ends the program. */
static _Thread_local char left_to_another[sizeof held];

void explain_as(int is_speaker, const char *error, const char *cause, const char *help)
{
    if (is_speaker)
        explain(error, cause, help);
    else
        write_text(left_to_another, error, cause, help);
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

/* 1 when this member prints an error that all members have: the lowest rank that has joined. */
static int is_speaker(const open_file_t *file, const unisono_error_t *error)
{
    if (!file || !error->rank_count)
        return 1;
    int lowest = 0;
    for (size_t i = 0; i < error->rank_count && error->ranks[i] == (uint32_t)lowest; i++)
        lowest++;
    return file->rank == lowest;
}

int has_world(void)
{
    int is_initialized = 0, is_finalized = 0;
    PMPI_Initialized(&is_initialized);
    PMPI_Finalized(&is_finalized);
    return is_initialized && !is_finalized;
}

void abort_program(MPI_Comm comm, int code)
{
    /* MPICH does not abort other processes for a duplicate of MPI_COMM_WORLD. */
    if (has_world())
        comm = MPI_COMM_WORLD;
    if (comm != MPI_COMM_NULL) {
        /* MPICH's launcher drops what a process has printed just before it aborts. */
        nanosleep(&(struct timespec){0, 200000000}, NULL);
        PMPI_Abort(comm, code);
    }
    exit(code);
}

void end_program(MPI_Comm comm, int is_first)
{
    /* The exit code of mpiexec is that of the first process to end. It kills the others. */
    if (!is_first) {
        nanosleep(&(struct timespec){4, 0}, NULL);
        fputs(left_to_another, stderr);
    }
    abort_program(comm, EXIT_MEMBERS_MISSING);
}

/* ---- Causes -------------------------------------------------------------------------------- */

/* Last failure of this thread; MPI_SUCCESS after a call on a file of the MPI library. */
static _Thread_local struct {
    int code;
    char cause[CAUSE_BYTES];
} last;

int causes_kept;

/* Copies a text. A text that does not fit is cut between characters of UTF-8. */
static void copy_text(char *to, size_t bytes, const char *text)
{
    size_t length = strlen(text);
    if (length >= bytes)
        for (length = bytes - 1; length && (text[length] & 0xC0) == 0x80;)
            length--;
    memcpy(to, text, length);
    to[length] = 0;
}

void cause_keep(int code, const char *cause)
{
    last.code = code;
    copy_text(last.cause, sizeof last.cause, cause);
    __atomic_store_n(&causes_kept, 1, __ATOMIC_RELEASE);
}

const char *cause_of(int code)
{
    return code != MPI_SUCCESS && code == last.code ? last.cause : NULL;
}

void cause_forget(void)
{
    last.code = MPI_SUCCESS;
}

typedef int error_string_t(int, char *, int *);

static int error_string(int code, char *string, int *length)
{
    char text[MPI_MAX_ERROR_STRING + CAUSE_BYTES + 2];
    const char *cause = cause_of(code);
    int result = REAL(Error_string, error_string_t)(code, string, length);
    if (result != MPI_SUCCESS || !cause)
        return result;
    snprintf(text, sizeof text, "%s: %s", string, cause);
    copy_text(string, MPI_MAX_ERROR_STRING, text);
    *length = (int)strlen(string);
    return result;
}

/* ---- Codes --------------------------------------------------------------------------------- */

int class_of_failure(const open_file_t *file, int call)
{
    const unisono_error_t *error = unisono_last_error();
    if (!error)
        return MPI_ERR_INTERN;
    /* Programs often test whether a file exists by opening or creating it. */
    int is_expected =
        error->kind == UNISONO_ERR_NOT_FOUND || error->kind == UNISONO_ERR_ALREADY_EXISTS;
    char text[1024], cause[2048];
    snprintf(text, sizeof text, "%s failed: %s", call_name(call), error->error);
    if (!is_expected)
        explain_as(is_speaker(file, error), text, error->cause, error->help);
    /* Few programs check the codes of file calls. Others would wait for the missing members later. */
    if (error->kind == UNISONO_ERR_MEMBERS_MISSING && file && !file->has_errhandler
        && !file->handler.function)
        end_program(file->comm, is_speaker(file, error));
    int class = MPI_ERR_IO;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i].name, error->mpi_class) == 0)
            class = classes[i].class;
    snprintf(cause, sizeof cause, "%s: %s", text, error->cause);
    cause_keep(class, cause);
    return class;
}

int wrong(int code, int call, const char *cause, const char *help)
{
    char error[256], text[2048];
    snprintf(error, sizeof error, "%s failed", call_name(call));
    explain(error, cause, help);
    snprintf(text, sizeof text, "%s: %s", error, cause);
    cause_keep(code, text);
    return code;
}

void errors_enter(function_t **functions)
{
    ENTER(Error_string, error_string);
}
