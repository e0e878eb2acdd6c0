/* overlap.c - measures how much of a non-blocking collective write passes while the program computes,
 * and prints it as one line of CSV.
 *
 * An ordinary MPI program. Records go to the processes in turn, and every byte is checked after the
 * last write. Three times are measured, the least of all repeats each, of the last process:
 * - alone: MPI_File_iwrite_all and MPI_Wait
 * - computing: a computation as long as that, by itself
 * - both: MPI_File_iwrite_all, the computation, MPI_Wait
 *
 * `processor` computes on the processor of the process, so that it competes with the transfer for
 * the processors of the machine. `elsewhere` waits, as for an accelerator. The line:
 *
 *   record_bytes,computation,ranks,bytes,alone_s,computing_s,both_s */
#define PROGRAM "overlap"
#include "call.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double thread_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Computes for a time of the processor, or waits for a time of the clock. */
static void compute(double seconds, int is_elsewhere)
{
    static volatile double sink;
    if (is_elsewhere) {
        struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
        nanosleep(&wait, NULL);
        return;
    }
    for (double end = thread_s() + seconds; thread_s() < end;)
        for (int i = 0; i < 2000; i++)
            sink = sink * 0.999 + 1;
}

/* Time of a write that is started, of a computation, or of both, of the last process. */
static double measure(MPI_File file, const uint64_t *memory, int words, int writes, double computing,
                      int is_elsewhere)
{
    MPI_Request request = MPI_REQUEST_NULL;
    double spent, last;
    CALL(MPI_File_seek(file, 0, MPI_SEEK_SET));
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (writes)
        CALL(MPI_File_iwrite_all(file, memory, words, MPI_UINT64_T, &request));
    if (computing > 0)
        compute(computing, is_elsewhere);
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    spent = MPI_Wtime() - start;
    MPI_Allreduce(&spent, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 6) {
        if (!rank)
            fprintf(stderr, "usage: overlap FILE BYTES RECORD_BYTES processor|elsewhere REPEATS\n");
        MPI_Finalize();
        return 2;
    }
    long bytes = atol(argv[2]), record = atol(argv[3]);
    int is_elsewhere = strcmp(argv[4], "elsewhere") == 0, repeats = atoi(argv[5]);
    long records = bytes / record / size, wrong = 0;
    int words = (int)(records * record / 8);
    MPI_Datatype block, filetype;
    MPI_File file;
    CALL(MPI_Type_contiguous((int)record, MPI_BYTE, &block));
    CALL(MPI_Type_create_resized(block, 0, record * size, &filetype));
    CALL(MPI_Type_commit(&filetype));
    CALL(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CALL(MPI_File_set_view(file, rank * record, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    uint64_t *memory = malloc((size_t)words * 8), *found = malloc((size_t)words * 8);
    double alone = 1e9, computing = 1e9, both = 1e9;
    for (int repeat = 0; repeat < repeats; repeat++) {
        for (int i = 0; i < words; i++)
            memory[i] = ((uint64_t)(rank + size * repeat) << 40 | (uint64_t)i) * 0x9e3779b97f4a7c15u;
        alone = least(alone, measure(file, memory, words, 1, 0, is_elsewhere));
    }
    for (int repeat = 0; repeat < repeats; repeat++) {
        computing = least(computing, measure(file, memory, words, 0, alone, is_elsewhere));
        both = least(both, measure(file, memory, words, 1, alone, is_elsewhere));
    }
    CALL(MPI_File_seek(file, 0, MPI_SEEK_SET));
    CALL(MPI_File_read_all(file, found, words, MPI_UINT64_T, MPI_STATUS_IGNORE));
    wrong = memcmp(memory, found, (size_t)words * 8) != 0;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CALL(MPI_File_close(&file));
    if (!rank && !wrong)
        printf("%ld,%s,%d,%ld,%.6f,%.6f,%.6f\n", record, argv[4], size, bytes, alone, computing, both);
    else if (!rank)
        fprintf(stderr, "overlap: %ld processes read what they have not written\n", wrong);
    free(memory);
    free(found);
    MPI_Finalize();
    return wrong ? 4 : 0;
}
