/* process.h - what a front end finds in its process: the MPI library, and back ends beside itself. */
#ifndef UNISONO_MPI_PROCESS_H
#define UNISONO_MPI_PROCESS_H

#include <stddef.h>

/* A function of MPI, whatever its arguments. */
typedef void function_t(void);

/* Ends the program for a reason that no call can return. */
void give_up(const char *error, const char *cause, const char *help);

/* Function of the MPI library, or NULL. Others that stand between, such as a profiler, come first. */
function_t *next_function(const char *name);

/* The same for a function that the MPI library must have. */
function_t *must_have(function_t *found, const char *name);

/* Function of the MPI library itself, which must have it. */
function_t *library_function(const char *name);

/* Function of any library of the process but this one, or NULL: of the bindings of MPI for other
 * languages, which may have been loaded out of sight. */
function_t *binding_function(const char *name);

/* Loads PREFIX-FAMILY.so, which lies beside this library; FAMILY names the binary interface of the
 * MPI library. Returns the handle, or NULL with the reason in `failure`. */
void *load_beside(const char *prefix, char *failure, size_t failure_bytes);

/* Address of a symbol as a function. */
function_t *as_function(void *address);

#endif
