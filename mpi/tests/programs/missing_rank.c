/* missing_rank.c - rank 2 does not make a collective call, which the first argument names; all others
 * ignore the error code. */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_File file = MPI_FILE_NULL;
    double value = 1;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_open = argc > 1 && strcmp(argv[1], "open") == 0;
    if (!is_open || rank != 2)
        MPI_File_open(MPI_COMM_WORLD, "unisono://missing", MPI_MODE_CREATE | MPI_MODE_RDWR,
                      MPI_INFO_NULL, &file);
    if (argc > 1 && strcmp(argv[1], "write") == 0 && rank != 2)
        MPI_File_write_at_all(file, 8 * rank, &value, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
    if (argc > 1 && strcmp(argv[1], "size") == 0 && rank != 2)
        MPI_File_set_size(file, 100);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
