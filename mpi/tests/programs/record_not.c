/* record_not.c - does what is not recorded: record_not WHAT. killed: rank 1 is killed after two
 * messages. window: one-sided communication. threads: calls of two threads that overlap. cancelled: a
 * receive that is cancelled. abort: rank 1 calls MPI_Abort. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, data;

static void killed(void)
{
    if (rank == 1) {
        MPI_Send(&data, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
        MPI_Recv(&data, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        kill(getpid(), SIGKILL);
    }
    if (rank == 0) {
        MPI_Recv(&data, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&data, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void window(void)
{
    MPI_Win window;
    MPI_Win_create(&data, sizeof data, sizeof data, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
    MPI_Win_create(&data, sizeof data, sizeof data, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
}

static void *wait_in_thread(void *unused)
{
    (void)unused;
    MPI_Recv(&data, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

/* The first thread sends only after the second has begun to receive. */
static void threads(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_in_thread, NULL))
        MPI_Abort(MPI_COMM_WORLD, 1);
    usleep(200000);
    MPI_Send(&data, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
    pthread_join(thread, NULL);
}

static void cancelled(void)
{
    MPI_Request request;
    MPI_Irecv(&data, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int count, char **words)
{
    int provided;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *what = count == 2 ? words[1] : "";
    if (!strcmp(what, "killed"))
        killed();
    else if (!strcmp(what, "window"))
        window();
    else if (!strcmp(what, "threads"))
        threads();
    else if (!strcmp(what, "cancelled"))
        cancelled();
    else if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
