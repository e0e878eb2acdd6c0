/* in_place.c - opens the file that is named by the first argument, and starts the command of the second
 * one meanwhile, of which the failure is what is wanted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    MPI_File file;
    char text[MPI_MAX_ERROR_STRING];
    int code, bytes;
    MPI_Init(&count, &arguments);
    code = MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (code) {
        MPI_Error_string(code, text, &bytes);
        fprintf(stderr, "%s\n", text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (count > 2 && system(arguments[2]) == 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (MPI_File_close(&file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
