/* large.h - functions with large counts for libraries that lack them.
 *
 * A program may ask whether its MPI library has these functions, as mpi4py does, and then finds those of
 * the recorder. So they must work with every library while counts are small. */
#ifndef UNISONO_RECORD_LARGE_H
#define UNISONO_RECORD_LARGE_H

#include "../process/process.h"

/* Function that replaces a missing one, by its number; NULL for a function without large counts. */
function_t *large_substitute(int call);

#endif
