/* faults.c - proves: when a disk is full, or a server is gone or stands still, each process gets an
 * error of the right class from every form of access, and no call hangs.
 * Exclude the feature through for methods by which servers write behind.
 *
 * Called as `faults FILE -c full|killed|stopped|died|absent [-p PROCESS]`, where PROCESS is a server. */
#include "check.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

test_t test;

/* Bytes of a process in one call: two calls of four processes are more than a full disk holds. */
enum { BYTES = 8 << 20 };

static char memory[BYTES];

static MPI_File open_new(const char *name)
{
    MPI_File file;
    remove_file(name);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

/* A file that every process has written a number to. */
static void write_kept(const char *name)
{
    int number = 1000 + test.rank;
    MPI_File file = open_new(name);
    OK(MPI_File_write_at_all(file, (MPI_Offset)sizeof number * test.rank, &number, 1, MPI_INT,
                             MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_File_close(&file));
}

static void check_kept(const char *name)
{
    int other = (test.rank + 1) % test.size, found = 0;
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read_at_all(file, (MPI_Offset)sizeof found * other, &found, 1, MPI_INT,
                            MPI_STATUS_IGNORE));
    EQUAL(found, 1000 + other);
    OK(MPI_File_close(&file));
}

typedef int write_t(MPI_File file, MPI_Offset offset);

static int blocking(MPI_File file, MPI_Offset offset)
{
    return MPI_File_write_at_all(file, offset, memory, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int started(MPI_File file, MPI_Offset offset)
{
    MPI_Request request;
    int code = MPI_File_iwrite_at_all(file, offset, memory, BYTES, MPI_BYTE, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static int split(MPI_File file, MPI_Offset offset)
{
    int code = MPI_File_write_at_all_begin(file, offset, memory, BYTES, MPI_BYTE);
    return code == MPI_SUCCESS ? MPI_File_write_at_all_end(file, memory, MPI_STATUS_IGNORE) : code;
}

static int independent(MPI_File file, MPI_Offset offset)
{
    return MPI_File_write_at(file, offset, memory, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
}

static write_t *const writes[] = {blocking, started, split, independent};
enum { WRITES = sizeof writes / sizeof writes[0] };

/* Writes until a call of this process fails; returns its code. */
static int write_until_failure(MPI_File file, write_t *write)
{
    int code = MPI_SUCCESS;
    for (int turn = 0; turn < 8 && code == MPI_SUCCESS; turn++)
        code = write(file, (MPI_Offset)(turn * test.size + test.rank) * BYTES);
    return code;
}

static void fill_disk(void)
{
    write_kept("unisono://kept");
    for (int i = 0; i < WRITES; i++) {
        CONTEXT("full disk, form %d", i);
        MPI_File file = open_new(test.file);
        /* Servers write behind independent calls: these may not fail before the file is closed. */
        int code = write_until_failure(file, writes[i]), at_close = MPI_File_close(&file);
        FAILS(code == MPI_SUCCESS ? at_close : code, MPI_ERR_NO_SPACE);
        CHECK(code != MPI_SUCCESS || writes[i] == independent);
        remove_file(test.file);
        check_kept("unisono://kept");
        write_kept("unisono://small");
        check_kept("unisono://small");
    }
}

/* Kills a server while the first of the writes is under way. */
static void kill_server(pid_t server)
{
    MPI_Request request;
    CONTEXT("killed server");
    write_kept("unisono://kept");
    MPI_File file = open_new(test.file);
    OK(blocking(file, (MPI_Offset)test.rank * BYTES));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_iwrite_at_all(file, (MPI_Offset)test.rank * BYTES, memory, BYTES, MPI_BYTE,
                              &request));
    if (!test.rank)
        kill(server, SIGKILL);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = write_until_failure(file, blocking);
    FAILS(code, MPI_ERR_IO);
    for (int i = 0; i < WRITES; i++)
        FAILS(write_until_failure(file, writes[i]), MPI_ERR_IO);
    FAILS(MPI_File_sync(file), MPI_ERR_IO);
    FAILS(MPI_File_close(&file), MPI_ERR_IO); /* independent writes may not be stored */
    CHECK(file == MPI_FILE_NULL);
}

/* Stops a server, whose silence lasts longer than the time-out, and lets it go on for others. */
static void stop_server(pid_t server)
{
    CONTEXT("stopped server");
    write_kept("unisono://kept");
    MPI_File file = open_new(test.file);
    OK(blocking(file, (MPI_Offset)test.rank * BYTES));
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        kill(server, SIGSTOP);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Rank 0 waits for the server, and all others for rank 0: nobody is missing. */
    FAILS(MPI_File_sync(file), MPI_ERR_IO);
    FAILS(blocking(file, (MPI_Offset)test.rank * BYTES), MPI_ERR_IO);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        kill(server, SIGCONT);
    MPI_Barrier(MPI_COMM_WORLD);
    int code = MPI_File_close(&file);
    /* No data of this process waits for the servers, unless they write behind. */
    if (has("through"))
        OK(code);
    CHECK(file == MPI_FILE_NULL);
}

/* Ends rank 2 while all others wait for it in a collective call. */
static void die(void)
{
    MPI_File file = open_new(test.file);
    if (test.rank == 2) {
        nanosleep(&(struct timespec){0, 300000000}, NULL);
        raise(SIGKILL);
    }
    write_until_failure(file, blocking);
    for (;;)
        pause(); /* mpiexec ends all others */
}

/* Opens a file of an instance that is not there. */
static void open_absent(void)
{
    MPI_File file;
    CONTEXT("no instance");
    FAILS(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                        &file),
          MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL);
}

int main(int count, char **arguments)
{
    const char *fault = "";
    pid_t server = 0;
    begin(count, arguments, "faults");
    for (int i = 1; i + 1 < count; i++) {
        if (strcmp(arguments[i], "-c") == 0)
            fault = arguments[i + 1];
        else if (strcmp(arguments[i], "-p") == 0)
            server = (pid_t)atoi(arguments[i + 1]);
    }
    memset(memory, 'a' + test.rank, sizeof memory);
    if (strcmp(fault, "full") == 0)
        fill_disk();
    else if (strcmp(fault, "killed") == 0 && server)
        kill_server(server);
    else if (strcmp(fault, "stopped") == 0 && server)
        stop_server(server);
    else if (strcmp(fault, "died") == 0)
        die();
    else if (strcmp(fault, "absent") == 0)
        open_absent();
    else
        failed("faults", 0, "give a fault, and the server for it");
    return end();
}
