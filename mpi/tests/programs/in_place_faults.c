/* in_place_faults.c - writes 4 MiB of each rank to the file that is named, in turns of 64 KiB, and prints
 * the classes of the calls that fail. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 16, PIECES = 64 };

static int rank, size;

static void show(const char *call, int code)
{
    int class = MPI_SUCCESS;
    if (code)
        MPI_Error_class(code, &class);
    if (class && !rank)
        printf("%s: %s\n", call, class == MPI_ERR_NO_SPACE ? "MPI_ERR_NO_SPACE"
                                 : class == MPI_ERR_IO     ? "MPI_ERR_IO"
                                                           : "another class");
}

int main(int count, char **arguments)
{
    MPI_File file;
    MPI_Datatype turns;
    char *memory = malloc((size_t)PIECE_BYTES * PIECES);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(memory, 'a' + rank, (size_t)PIECE_BYTES * PIECES);
    MPI_Type_vector(PIECES, PIECE_BYTES, PIECE_BYTES * size, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    if (MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_view(file, (MPI_Offset)rank * PIECE_BYTES, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    show("write", MPI_File_write_all(file, memory, PIECE_BYTES * PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
    show("sync", MPI_File_sync(file));
    show("close", MPI_File_close(&file));
    MPI_Type_free(&turns);
    if (!rank)
        printf("ended\n");
    MPI_Finalize();
    free(memory);
    return 0;
}
