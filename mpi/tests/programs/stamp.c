/* stamp.c - an ordinary MPI program: each process writes one letter into the file that is named by the
 * first argument, the second argument at its own place. */
#include <mpi.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    MPI_File file;
    int rank, wrong;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count != 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    wrong = MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR,
                          MPI_INFO_NULL, &file)
            || MPI_File_write_at_all(file, rank, arguments[2], 1, MPI_CHAR, MPI_STATUS_IGNORE)
            || MPI_File_close(&file);
    if (wrong)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
