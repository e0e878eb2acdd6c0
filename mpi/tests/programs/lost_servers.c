/* lost_servers.c - ranks write a file together, round by round, each its own blocks, and read the blocks of
 * the next rank, while somebody kills the servers. A round whose writes are lost (MPI_ERR_IO) is written
 * again by all; any other error ends the program. Argument: the number of seconds that it takes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 3000, BLOCKS = 400, BYTES = BLOCK * BLOCKS };

static unsigned char written[BYTES], found[BYTES];

static unsigned char value(int round, int rank, int at)
{
    return (unsigned char)(round * 31 + rank * 7 + at % 251);
}

/* Ends the program unless a code is no error, or that of lost writes, which it returns. */
static int is_lost(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    if (class == MPI_ERR_IO)
        return 1;
    fprintf(stderr, "%s: class %d: %s\n", call, class, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

static int any(int lost)
{
    MPI_Allreduce(MPI_IN_PLACE, &lost, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return lost;
}

static void view(MPI_File file, MPI_Datatype blocks, int rank)
{
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, blocks, "native", MPI_INFO_NULL);
}

int main(int argc, char **argv)
{
    int rank, size, rounds = 0, lost_rounds = 0, is_over = 0;
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    MPI_File file;
    MPI_Datatype block, blocks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double begun = MPI_Wtime();
    if (MPI_File_open(MPI_COMM_WORLD, "unisono://together", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * size, &blocks);
    MPI_Type_commit(&blocks);
    while (!is_over) {
        for (int at = 0; at < BYTES; at++)
            written[at] = value(rounds, rank, at);
        view(file, blocks, rank);
        int lost = is_lost(MPI_File_write_at_all(file, 0, written, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        lost |= is_lost(MPI_File_sync(file), "sync");
        if (any(lost)) {
            lost_rounds++;
            continue;
        }
        int other = (rank + 1) % size;
        view(file, blocks, other);
        is_lost(MPI_File_read_at_all(file, 0, found, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        for (int at = 0; at < BYTES; at++)
            if (found[at] != value(rounds, other, at)) {
                fprintf(stderr, "rank %d, round %d: byte %d is wrong\n", rank, rounds, at);
                MPI_Abort(MPI_COMM_WORLD, 2);
            }
        rounds++;
        is_over = any(MPI_Wtime() - begun > seconds);
    }
    int code = MPI_File_close(&file);
    if (rank == 0 && code == MPI_SUCCESS)
        printf("%d rounds, %d of them again, checks passed\n", rounds, lost_rounds);
    MPI_Finalize();
    return code != MPI_SUCCESS;
}
