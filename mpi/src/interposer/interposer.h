/* interposer.h - what the files of the front end share. */
#ifndef UNISONO_MPI_INTERPOSER_H
#define UNISONO_MPI_INTERPOSER_H

#include "interposer_border.h"

#define PUBLIC __attribute__((visibility("default")))

/* The back end, or NULL while nobody has needed it. */
const back_t *loaded(void);

/* The back end, which is loaded. The program ends when there is none. */
const back_t *needed(void);

/* True for the name of a file that goes to the back end. If a plain file stands for it, the name is
 * changed instead. */
int goes_to_back(long *name);

#endif
