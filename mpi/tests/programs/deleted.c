/* deleted.c - proves: a file that is deleted while processes have it open keeps its data for them until
 * they close it, as after unlink, and its name is free at once. */
#include "check.h"

test_t test;

static MPI_File open_as(int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, amode | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

static MPI_Offset place(int rank)
{
    return (MPI_Offset)sizeof(int) * rank;
}

/* Reads and writes a file whose name is gone: what this process wrote before, and more of it. */
static void use_nameless(MPI_File file)
{
    int found = -1, more = 100 + test.rank;
    OK(MPI_File_read_at(file, place(test.rank), &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, test.rank);
    OK(MPI_File_write_at(file, place(test.size + test.rank), &more, 1, MPI_INT,
                         MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, place(test.size + test.rank), &found, 1, MPI_INT,
                        MPI_STATUS_IGNORE));
    EQUAL(found, more);
}

/* The usual end of a program: process 0 closes the file and deletes it, and waits for nobody. */
static void delete_after_own_close(void)
{
    CONTEXT("deleted after the close of process 0");
    MPI_File file = open_as(MPI_MODE_CREATE);
    OK(MPI_File_write_at(file, place(test.rank), &test.rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank) {
        OK(MPI_File_close(&file));
        OK(MPI_File_delete(test.file, MPI_INFO_NULL));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (test.rank) {
        use_nameless(file);
        OK(MPI_File_close(&file));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    FAILS(MPI_File_delete(test.file, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All use the file on after it was deleted, and then a new one of the same name, together. */
static void delete_while_all_use_it(void)
{
    CONTEXT("deleted in use");
    int mine = 7 * (test.rank + 1), found = -1, other = (test.rank + 1) % test.size;
    MPI_File file = open_as(MPI_MODE_CREATE), new;
    OK(MPI_File_write_at_all(file, place(test.rank), &test.rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        OK(MPI_File_delete(test.file, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    new = open_as(MPI_MODE_CREATE | MPI_MODE_EXCL);
    OK(MPI_File_write_at_all(new, place(test.rank), &mine, 1, MPI_INT, MPI_STATUS_IGNORE));
    use_nameless(file);
    publish(file);
    OK(MPI_File_read_at_all(file, place(other), &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, other);
    OK(MPI_File_close(&file));
    publish(new);
    OK(MPI_File_read_at_all(new, place(other), &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, 7 * (other + 1));
    OK(MPI_File_close(&new));
    remove_file(test.file);
}

int main(int count, char **arguments)
{
    begin(count, arguments, "deleted");
    remove_file(test.file);
    delete_after_own_close();
    delete_while_all_use_it();
    return end();
}
