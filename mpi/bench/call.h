/* call.h - calls of MPI that end the program when they fail, naming it as PROGRAM. */
#ifndef CALL_H
#define CALL_H

#include <mpi.h>
#include <stdio.h>

/* Of this process in MPI_COMM_WORLD. */
static int rank, size;

static void check(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, PROGRAM ": rank %d of %d: %s: %s\n", rank, size, call, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define CALL(call) check(call, #call)

#endif
