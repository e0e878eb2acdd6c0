/* Writes the columns of a matrix by collective MPI-IO, one rank after the other a column, reads the rows,
 * and checks each number: the MPI program that scripts/packages-test runs with installed packages. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1024, COLUMNS_OF_RANK = 64 };

/* Ends all ranks with a message if a call of MPI-IO has failed. */
static void check(int code, const char *call) {
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "columns: %s failed\n", call);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || ROWS % ranks != 0) {
        fprintf(stderr, "usage: columns FILE, with 1, 2, 4, ... ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int columns = COLUMNS_OF_RANK * ranks, count = ROWS * COLUMNS_OF_RANK;
    int *numbers = malloc(sizeof(int) * (size_t)count);
    for (int place = 0; place < count; place++)
        numbers[place] = place / COLUMNS_OF_RANK * columns + place % COLUMNS_OF_RANK * ranks + rank;

    MPI_Datatype column;
    MPI_Type_vector(count, 1, ranks, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_File file;
    check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    check(MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, column, "native", MPI_INFO_NULL), "set_view");
    check(MPI_File_write_all(file, numbers, count, MPI_INT, MPI_STATUS_IGNORE), "write_all");
    check(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), "set_view");
    check(MPI_File_read_at_all(file, (MPI_Offset)rank * count, numbers, count, MPI_INT, MPI_STATUS_IGNORE), "read_at_all");
    check(MPI_File_close(&file), "close");
    int wrong = 0, all = 0;
    for (int place = 0; place < count; place++)
        wrong += numbers[place] != rank * count + place;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("columns: %d ranks, %d numbers, %d wrong\n", ranks, count * ranks, all);
    free(numbers);
    MPI_Type_free(&column);
    MPI_Finalize();
    return wrong != 0;
}
