/* job.c - a program of a job: ranks write a file together, step by step, each its own blocks. Number k of a file, of
 * 8 bytes, is k. Arguments: the file, and the number of steps (default: 20), or `signal`: the program then goes on
 * until SIGTERM, writes one more step and ends well. Rank 0 prints the number of steps. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 1 << 13, BLOCK = 1 << 7, BLOCKS = NUMBERS / BLOCK };

static volatile sig_atomic_t is_asked;

static void ask(int number)
{
    (void)number;
    is_asked = 1;
}

static void check(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "%s: %s\n", call, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* True on all ranks if one of them is asked to end. */
static int any_is_asked(void)
{
    int any = is_asked;
    MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

int main(int count, char **arguments)
{
    static uint64_t numbers[NUMBERS];
    int rank, size;
    long step = 0;
    MPI_File file;
    MPI_Datatype block, blocks;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const char *asked = count > 2 ? arguments[2] : "20";
    int until_signal = strcmp(asked, "signal") == 0;
    long steps = atol(asked);
    if (until_signal)
        signal(SIGTERM, ask);
    MPI_Type_contiguous(BLOCK, MPI_UINT64_T, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)sizeof numbers / BLOCKS * size, &blocks);
    MPI_Type_commit(&blocks);
    int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
    check(MPI_File_open(MPI_COMM_WORLD, arguments[1], mode, MPI_INFO_NULL, &file), "open");
    check(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK * 8, MPI_UINT64_T, blocks, "native", MPI_INFO_NULL),
          "view");
    for (int is_last = 0; !is_last; step++) {
        is_last = until_signal ? any_is_asked() : step + 1 == steps;
        for (int k = 0; k < NUMBERS; k++) {
            long in_step = ((long)(k / BLOCK) * size + rank) * BLOCK + k % BLOCK;
            numbers[k] = (uint64_t)(step * NUMBERS * size + in_step);
        }
        check(MPI_File_write_all(file, numbers, NUMBERS, MPI_UINT64_T, MPI_STATUS_IGNORE), "write");
        if (step == 0 && rank == 0) {
            printf("job: the first step is written\n");
            fflush(stdout);
        }
    }
    check(MPI_File_close(&file), "close");
    MPI_Type_free(&blocks);
    MPI_Type_free(&block);
    if (rank == 0)
        printf("job: %ld steps by %d ranks\n", step, size);
    MPI_Finalize();
    return 0;
}
