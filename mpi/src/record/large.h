/* large.h - functions with large counts for libraries that lack them.
 *
 * A program may ask whether its MPI library has these functions, as mpi4py does, and finds those of the
 * recorder. So they must work with every library, as long as counts are small. */
#ifndef UNISONO_RECORD_LARGE_H
#define UNISONO_RECORD_LARGE_H

#include "../process/process.h"

/* Function that stands for a missing one, by its number; NULL for one that has no large counts. */
function_t *large_substitute(int call);

#endif
