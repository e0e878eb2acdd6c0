/* stopped_rank.c - rank 2 stops (SIGSTOP) in the midst of a loop of collective reads or writes, as its
 * argument says; each other rank tells the text of its error, and how many seconds its loop took. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 2 << 20, STOPPED = 2, UNTIL_STOP_US = 500000, LATE_S = 40, ALL_TOLD_S = 14 };

static char memory[BYTES];

/* A child of this process stops it, and kills it if nobody else does. */
static void stop_soon(void)
{
    pid_t whole = getpid();
    if (fork())
        return;
    /* Who reads the output of the program does not wait for the child. */
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    usleep(UNTIL_STOP_US);
    kill(whole, SIGSTOP);
    sleep(LATE_S);
    kill(whole, SIGKILL);
    _exit(0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    char text[MPI_MAX_ERROR_STRING];
    int rank, length, code = MPI_SUCCESS, is_read = argc > 1 && strcmp(argv[1], "read") == 0;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (MPI_File_open(MPI_COMM_WORLD, "unisono://stopped", MPI_MODE_CREATE | MPI_MODE_RDWR,
                      MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, memory, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    int stopped = getpid();
    MPI_Bcast(&stopped, 1, MPI_INT, STOPPED, MPI_COMM_WORLD);
    if (rank == STOPPED)
        stop_soon();
    double begun = seconds();
    while (code == MPI_SUCCESS) {
        MPI_Offset offset = (MPI_Offset)rank * BYTES;
        code = is_read
                   ? MPI_File_read_at_all(file, offset, memory, BYTES, MPI_BYTE, MPI_STATUS_IGNORE)
                   : MPI_File_write_at_all(file, offset, memory, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_Error_string(code, text, &length);
    printf("rank %d after %.1f s: %s\n", rank, seconds() - begun, text);
    fflush(stdout);
    /* The others tell theirs, too, within the time-out and 10 s. */
    while (seconds() - begun < ALL_TOLD_S)
        usleep(100000);
    /* A stopped process does not end at the request of mpiexec. */
    if (rank != STOPPED)
        kill(stopped, SIGKILL);
    MPI_Abort(MPI_COMM_WORLD, 7);
    return 0;
}
