/* front_end.h - the front end of the interposer, as a back end sees it. */
#ifndef UNISONO_MPI_FRONT_END_H
#define UNISONO_MPI_FRONT_END_H

#include "interposer/interposer_border.h"

/* Takes what the front end has given. */
void front_end_set(const front_t *front);

const char *call_name(int call); /* such as "MPI_File_open" */

/* The real function of the MPI library with its type. */
#define REAL(call, type) ((type *)real_function(CALL_##call))
function_t *real_function(int call);

/* Enters a function into the table of a back end. */
#define ENTER(name, function) (functions[CALL_##name] = (function_t *)(function))

#endif
