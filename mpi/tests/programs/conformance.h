/* conformance.h - parts of the program `conformance`. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <mpi.h>

/* Shared file pointers of several processes, in the orders that the standard permits. */
void check_shared_pointers(void);

#endif
