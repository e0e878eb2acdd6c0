/* record.c - cost of recording: prints the nanoseconds that calls take, by themselves or recorded.
 *
 *     mpicc -O2 record.c -o record && mpiexec -n 2 ./record
 *     unisono record -o cost.trace -- mpiexec -n 2 ./record
 */
#include <mpi.h>
#include <stdio.h>

static int rank, data[2];
static MPI_File file;

static void test(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int flag;
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void barrier_alone(void)
{
    MPI_Barrier(MPI_COMM_SELF);
}

/* A message to oneself: three calls. */
static void message(void)
{
    MPI_Request request;
    MPI_Irecv(data, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
    MPI_Send(data + 1, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A message and an answer between ranks 0 and 1. */
static void ping_pong(void)
{
    if (rank == 0)
        MPI_Send(data, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    if (rank < 2)
        MPI_Recv(data, 1, MPI_INT, !rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(data, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
}

static void all_reduce(void)
{
    MPI_Allreduce(data, data + 1, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void write_at(void)
{
    MPI_File_write_at(file, 8 * rank, data, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* Computation of some microseconds before a call. */
static void compute(void)
{
    for (volatile int i = 0; i < 20000; i++)
        ;
    MPI_Barrier(MPI_COMM_SELF);
}

static void measure(const char *name, void (*call)(void), int calls, int repetitions)
{
    double best = 1e9;
    for (int turn = 0; turn < 7; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < repetitions; i++)
            call();
        double each = 1e9 * (MPI_Wtime() - start) / repetitions / calls;
        best = each < best ? each : best;
    }
    if (!rank)
        printf("%-28s %9.0f ns a call\n", name, best);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, count > 1 ? words[1] : "/tmp/record.cost",
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    measure("MPI_Test of nothing", test, 1, 200000);
    measure("MPI_Barrier of one rank", barrier_alone, 1, 200000);
    measure("message to oneself", message, 3, 50000);
    measure("ping-pong", ping_pong, 2, 5000);
    measure("MPI_Allreduce", all_reduce, 1, 2000);
    measure("MPI_File_write_at of 8 B", write_at, 1, 5000);
    measure("computation and MPI_Barrier", compute, 1, 5000);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
