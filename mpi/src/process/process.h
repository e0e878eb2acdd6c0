/* process.h - functions by which a front end finds the MPI library of its process and its back end. */
#ifndef UNISONO_MPI_PROCESS_H
#define UNISONO_MPI_PROCESS_H

#include <stddef.h>

/* A function of MPI, whatever its arguments. */
typedef void function_t(void);

/* Prints an error in three parts, and ends the program: no call can return the error. */
void give_up(const char *error, const char *cause, const char *help);

/* Function of the MPI library, or NULL. A library loaded between, such as a profiler, comes first. */
function_t *next_function(const char *name);

/* The same for a function that the MPI library must have. */
function_t *must_have(function_t *found, const char *name);

/* Function of the MPI library itself, which must have it. */
function_t *library_function(const char *name);

/* Function of any library of the process except this one, or NULL. Used for bindings of other languages,
 * whose libraries may not be in the global scope. */
function_t *binding_function(const char *name);

/* Loads PREFIX-FAMILY.so from the directory of this library. FAMILY names the binary interface of the MPI
 * library. Returns the handle, or NULL with the reason in `failure`. */
void *load_beside(const char *prefix, char *failure, size_t failure_bytes);

/* Address of a symbol as a function. */
function_t *as_function(void *address);

#endif
