/* errors.h - failures as codes of MPI, their messages, and error handlers of files.
 *
 * Functions of type int return codes of MPI, MPI_SUCCESS or an error class, where no comment says
 * otherwise. */
#ifndef UNISONO_MPI_ERRORS_H
#define UNISONO_MPI_ERRORS_H

#include "../files/files.h"

/* Exit code of a program of which some processes do not join a collective call. */
enum { EXIT_MEMBERS_MISSING = 5 };

/* ---- Failures (errors.c) ------------------------------------------------------------------- */

/* Prints an error in three parts. */
void explain(const char *error, const char *cause, const char *help);

/* Explains an error that all members have. The speaker prints it at once, another member only if it is
 * the one that ends the program. */
void explain_as(int is_speaker, const char *error, const char *cause, const char *help);

/* Holds back the first explanation of this thread, until the members know which of them prints it. */
void explanations_hold(void);
void explanations_release(int is_printed);

/* Error class of MPI for the failed call of the library. Explains the failure, and names the call of MPI.
 * One member of a file, which may be NULL, explains what all have. */
int class_of_failure(const open_file_t *file, int call);

/* 1 when MPI_COMM_WORLD exists: not in a program that only uses sessions (MPI 4). */
int has_world(void);

/* Ends all processes of the program, or those of `comm` where there is no MPI_COMM_WORLD. */
void abort_program(MPI_Comm comm, int code);

/* Ends the program with EXIT_MEMBERS_MISSING. Processes that are not the first wait for it. */
void end_program(MPI_Comm comm, int is_first);

/* Bytes of a cause that is kept, with the zero byte at its end. */
enum { CAUSE_BYTES = MPI_MAX_ERROR_STRING };

/* Keeps the cause of a failure of this thread, which MPI_Error_string adds to the text of its code. */
void cause_keep(int code, const char *cause);

/* Cause of the last failure of this thread, if that has this code; otherwise NULL. */
const char *cause_of(int code);
void cause_forget(void);
extern int causes_kept; /* 1 when some thread has failed */

/* Explains why a call fails, in a cause and a help line. Returns the code. */
int wrong(int code, int call, const char *cause, const char *help);

void errors_enter(function_t **functions);

/* ---- Error handlers (handlers.c) ----------------------------------------------------------- */

/* Calls the error handler of a file (NULL: the default one) for a code other than MPI_SUCCESS. Returns
 * the code that the handler leaves. */
int fail(open_file_t *file, int code);

/* Functions by which the front end reports error handlers that a program makes: addresses of handles, or
 * in Fortran a number. */
void handler_made(const void *errhandler, const handler_t *handler);
void handler_made_in_fortran(int number, function_t *function);
void handler_is_cxx(const void *errhandler, function_t *caller);

/* Sets the error handler that a new file has. */
void errhandler_default(open_file_t *file);
void errhandler_free(open_file_t *file);

void handlers_enter(function_t **functions);

#endif
