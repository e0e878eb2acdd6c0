/* interposer.h - functions that the files of the front end share. */
#ifndef UNISONO_MPI_INTERPOSER_H
#define UNISONO_MPI_INTERPOSER_H

#include "interposer_border.h"

#define PUBLIC __attribute__((visibility("default")))

/* The back end, or NULL before its first use. */
const back_t *loaded(void);

/* The back end, which the first call loads. Ends the program when there is none. */
const back_t *needed(void);

/* True for the name of a file of the back end. If a plain file replaces the file, changes the name to
 * that of the plain file, and returns 0. */
int goes_to_back(long *name);

#endif
