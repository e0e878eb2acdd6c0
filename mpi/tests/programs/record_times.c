/* record_times.c - a program whose ranks compute, sleep and wait: record_times SAID. Rank 0 sleeps, and
 * waits for messages in three ways while rank 1 computes. SAID.RANK gets its processor time in and
 * outside MPI, in milliseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds of processor time that rank 1 spends before each message. */
enum { COMPUTED_MS = 150, SLEPT_MS = 100 };

static double cpu_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static void compute(void)
{
    for (double end = cpu_ms() + COMPUTED_MS; cpu_ms() < end;)
        ;
}

/* Waits for a message by MPI_Wait, and by loops of tests and of probes. */
static void wait_for(int way)
{
    int data, flag = 0;
    MPI_Request request;
    if (way < 2)
        MPI_Irecv(&data, 1, MPI_INT, 1, way, MPI_COMM_WORLD, &request);
    if (way == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    while (way == 1 && !flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    while (way == 2 && !flag) {
        MPI_Iprobe(1, way, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (!flag)
            usleep(100);
    }
    if (way == 2)
        MPI_Recv(&data, 1, MPI_INT, 1, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int count, char **words)
{
    int rank, data = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count != 2)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int way = 0; way < 3; way++) {
        if (rank) {
            compute();
            MPI_Send(&data, 1, MPI_INT, 0, way, MPI_COMM_WORLD);
        } else {
            wait_for(way);
        }
    }
    if (!rank)
        usleep(1000 * SLEPT_MS);
    MPI_Barrier(MPI_COMM_WORLD);
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", words[1], rank);
    FILE *said = fopen(path, "w");
    if (!said || fprintf(said, "%.0f\n", cpu_ms()) < 0 || fclose(said))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
