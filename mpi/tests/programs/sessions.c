/* sessions.c - proves: a program that uses sessions only, without MPI_Init, opens, writes and reads a
 * file, also by requests, and gets codes of failures. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION < 4 && (!defined(OMPI_MAJOR_VERSION) || OMPI_MAJOR_VERSION < 5)
#error "sessions came with MPI 4, and Open MPI has them since release 5"
#endif

static int rank, size;

static void check(int is_true, const char *text, int line)
{
    if (is_true)
        return;
    fprintf(stderr, "sessions.c:%d: rank %d: %s\n", line, rank, text);
    exit(1);
}

#define CHECK(condition) check(!!(condition), #condition, __LINE__)
#define OK(call) CHECK((call) == MPI_SUCCESS)

static void use_file(MPI_Comm comm, const char *name)
{
    MPI_File file, other;
    MPI_Request request;
    MPI_Status status;
    char text[MPI_MAX_ERROR_STRING];
    int number = rank, found = -1, class = 0, length, next = (rank + 1) % size;
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at_all(file, 4 * rank, &number, 1, MPI_INT, &status));
    MPI_Barrier(comm);
    OK(MPI_File_read_at_all(file, 4 * next, &found, 1, MPI_INT, &status));
    CHECK(found == next);
    OK(MPI_File_iwrite_at(file, 4 * (size + rank), &number, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_iread_at_all(file, 4 * (size + rank), &found, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(found == rank);
    int code = MPI_File_read_at(file, -1, &found, 1, MPI_INT, &status);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_ARG);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "MPI_File_read_at failed"));
    OK(MPI_File_close(&file));
    code = MPI_File_open(comm, "unisono://no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &other);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_NO_SUCH_FILE && other == MPI_FILE_NULL);
}

int main(int count, char **arguments)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    CHECK(count == 2);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "unisono", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    use_file(comm, arguments[1]);
    MPI_Comm_free(&comm);
    OK(MPI_Session_finalize(&session));
    if (!rank)
        printf("sessions: passed by %d\n", size);
    return 0;
}
