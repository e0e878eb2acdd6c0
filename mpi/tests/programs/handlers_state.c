/* handlers_state.c - proves: error handlers of files that MPICH's bindings make since its release 4.3, by
 * an extension, get the file, the code and their state. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef void handler_with_state_t(MPI_File, int, void *);

/* Not in all headers. */
int MPIX_File_create_errhandler_x(handler_with_state_t *handler, void (*destroy)(void *), void *state,
                                  MPI_Errhandler *errhandler);

static MPI_File last_file;
static int last_class;

static void note_error(MPI_File file, int code, void *state)
{
    ++*(int *)state;
    last_file = file;
    MPI_Error_class(code, &last_class);
}

static void destroy(void *state)
{
    (void)state;
}

static void check(int is_true, int line)
{
    if (is_true)
        return;
    fprintf(stderr, "handlers_state.c:%d failed\n", line);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define CHECK(condition) check(!!(condition), __LINE__)
#define OK(call) CHECK((call) == MPI_SUCCESS)

int main(int count, char **arguments)
{
    static int calls;
    MPI_File file;
    MPI_Errhandler own;
    int number, rank;
    MPI_Init(&count, &arguments);
    OK(MPI_File_open(MPI_COMM_WORLD, "unisono://handlers", MPI_MODE_CREATE | MPI_MODE_WRONLY,
                     MPI_INFO_NULL, &file));
    OK(MPIX_File_create_errhandler_x(note_error, destroy, &calls, &own));
    OK(MPI_File_set_errhandler(file, own));
    OK(MPI_Errhandler_free(&own));
    CHECK(MPI_File_read(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(calls == 1 && last_file == file && last_class == MPI_ERR_ACCESS);
    OK(MPI_File_close(&file));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank)
        puts("handlers_state: passed");
    MPI_Finalize();
    return 0;
}
