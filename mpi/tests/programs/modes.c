/* modes.c - proves: every mode of opening, sizes, error handlers, handles, several files and
 * communicators, atomic mode and consistency work as the standard says. */
#include "check.h"

test_t test;

enum { OPENS = 5000, CREATE = MPI_MODE_CREATE | MPI_MODE_RDWR };

static MPI_File open_file(int amode)
{
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, amode, MPI_INFO_NULL, &file));
    CHECK(file != MPI_FILE_NULL);
    return file;
}

static void fail_open(int amode, int class)
{
    MPI_File file = MPI_FILE_NULL;
    FAILS(MPI_File_open(MPI_COMM_WORLD, test.file, amode, MPI_INFO_NULL, &file), class);
    CHECK(file == MPI_FILE_NULL);
}

static void close_file(MPI_File file)
{
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
}

static void write_number(MPI_File file, MPI_Offset byte, int number)
{
    OK(MPI_File_write_at(file, byte, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
}

static long size_of(MPI_File file)
{
    MPI_Offset size = -1;
    OK(MPI_File_get_size(file, &size));
    return (long)size;
}

static void check_open_modes(void)
{
    static const int modes[] = {MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR};
    CONTEXT("open modes");
    remove_file(test.file);
    for (int i = 0; i < 3; i++)
        fail_open(modes[i], MPI_ERR_NO_SUCH_FILE);
    fail_open(0, MPI_ERR_AMODE);
    fail_open(MPI_MODE_CREATE, MPI_ERR_AMODE);
    fail_open(MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_ERR_AMODE);
    fail_open(MPI_MODE_RDWR | MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_ERR_AMODE);
    fail_open(MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_ERR_AMODE);
    fail_open(MPI_MODE_RDONLY | MPI_MODE_EXCL, MPI_ERR_AMODE);
    fail_open(MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL | MPI_MODE_CREATE, MPI_ERR_AMODE);
    close_file(open_file(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL));
    fail_open(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_ERR_FILE_EXISTS);
    for (int i = 0; i < 3; i++) {
        int amode = -1;
        MPI_File file = open_file(modes[i] | MPI_MODE_UNIQUE_OPEN);
        OK(MPI_File_get_amode(file, &amode));
        EQUAL(amode, modes[i] | MPI_MODE_UNIQUE_OPEN);
        close_file(file);
    }
    /* Opening to write does not make the file empty. */
    MPI_File file = open_file(CREATE);
    write_number(file, 0, 1);
    close_file(file);
    file = open_file(CREATE);
    EQUAL(size_of(file), 4);
    close_file(file);
}

static void check_append(void)
{
    MPI_Offset position = -1;
    CONTEXT("append");
    MPI_File file = open_file(MPI_MODE_WRONLY | MPI_MODE_APPEND);
    OK(MPI_File_get_position(file, &position));
    EQUAL(position, 4);
    if (has("counters")) {
        OK(MPI_File_get_position_shared(file, &position));
        EQUAL(position, 4);
        int number = test.rank;
        OK(MPI_File_write_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
        publish(file);
        EQUAL(size_of(file), 4 + 4 * test.size);
    }
    close_file(file);
}

static void check_delete(void)
{
    CONTEXT("delete");
    close_file(open_file(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE));
    fail_open(MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        FAILS(MPI_File_delete(test.file, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    close_file(open_file(CREATE | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_EXCL));
    close_file(open_file(CREATE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        OK(MPI_File_delete(test.file, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    fail_open(MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE);
}

static void check_sequential(void)
{
    int number = 40 + test.rank, found = -1;
    CONTEXT("sequential");
    if (!has("counters"))
        return;
    remove_file(test.file);
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    OK(MPI_File_write_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native",
                         MPI_INFO_NULL));
    number += 100;
    OK(MPI_File_write_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    close_file(file);
    file = open_file(MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    EQUAL(size_of(file), 8 * test.size);
    for (int i = 0; i < 2; i++) {
        OK(MPI_File_read_ordered(file, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
        EQUAL(found, 40 + 100 * i + test.rank);
    }
    close_file(file);
}

static void check_sizes(void)
{
    int numbers[4] = {9, 9, 9, 9}, count = -1;
    MPI_Status status;
    CONTEXT("sizes");
    remove_file(test.file);
    MPI_File file = open_file(CREATE);
    EQUAL(size_of(file), 0);
    OK(MPI_File_preallocate(file, 1000));
    EQUAL(size_of(file), 1000);
    OK(MPI_File_preallocate(file, 10));
    EQUAL(size_of(file), 1000);
    OK(MPI_File_set_size(file, 70000));
    EQUAL(size_of(file), 70000);
    OK(MPI_File_read_at(file, 69992, numbers, 4, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EQUAL(count, 2);
    EQUAL(numbers[0], 0);
    OK(MPI_File_set_size(file, 6));
    EQUAL(size_of(file), 6);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 0));
    EQUAL(size_of(file), 0);
    close_file(file);
}

/* Reads beyond the end in every way, and holes. */
static void check_ends(void)
{
    char bytes[64];
    int count = -1;
    MPI_Status status;
    MPI_Request request;
    CONTEXT("reads beyond the end");
    MPI_File file = open_file(CREATE);
    if (!test.rank)
        write_number(file, 20, 77);
    publish(file);
    memset(bytes, 1, sizeof bytes);
    OK(MPI_File_read_at(file, 0, bytes, 64, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EQUAL(count, 24);
    for (int i = 0; i < 20; i++)
        EQUAL(bytes[i], 0);
    EQUAL(bytes[20], 77);
    /* Five integers and a half: MPI cannot count them as integers. */
    OK(MPI_File_read_at_all(file, 2, bytes, 16, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EQUAL(count, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, MPI_BYTE, &count));
    EQUAL(count, 22);
    static const long starts[] = {23, 24, 25, 1000000};
    for (int i = 0; i < 4; i++) {
        int there = i == 0;
        OK(MPI_File_read_at_all(file, starts[i], bytes, 9, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        EQUAL(count, there);
        OK(MPI_File_seek(file, starts[i], MPI_SEEK_SET));
        OK(MPI_File_iread(file, bytes, 9, MPI_BYTE, &request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        EQUAL(count, there);
        OK(MPI_File_read_at_all_begin(file, starts[i], bytes, 9, MPI_BYTE));
        OK(MPI_File_read_at_all_end(file, bytes, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        EQUAL(count, there);
    }
    /* A loop that reads to the end, as programs do. */
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    int all = 0, turns = 0;
    do {
        OK(MPI_File_read(file, bytes, 10, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        all += count;
        turns++;
    } while (count == 10);
    EQUAL(all, 24);
    EQUAL(turns, 3);
    OK(MPI_File_seek(file, -4, MPI_SEEK_END));
    OK(MPI_File_read_all(file, &all, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(all, 77);
    /* Some members read data, others read beyond the end. */
    OK(MPI_File_read_at_all(file, test.rank ? 400 : 20, &all, 1, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EQUAL(count, test.rank ? 0 : 1);
    close_file(file);
}

/* ---- Error handlers -------------------------------------------------------------------------- */

static int calls, last_class, mends;
static MPI_File last_file;

static void note_error(MPI_File *file, int *code, ...)
{
    calls++;
    last_file = *file;
    MPI_Error_class(*code, &last_class);
    if (mends)
        *code = MPI_SUCCESS;
}

static void check_handlers(void)
{
    MPI_Errhandler own, found, before;
    int number = 0;
    CONTEXT("error handlers");
    MPI_File file = open_file(MPI_MODE_RDONLY), other;
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == MPI_ERRORS_RETURN);
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    OK(MPI_File_create_errhandler(note_error, &own));
    OK(MPI_File_set_errhandler(file, own));
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == own);
    OK(MPI_Errhandler_free(&found));
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    EQUAL(calls, 1);
    EQUAL(last_class, MPI_ERR_READ_ONLY);
    CHECK(last_file == file);
    OK(MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE));
    EQUAL(calls, 2);
    EQUAL(last_class, MPI_ERR_NO_SPACE);
    /* The code that a handler leaves is that of the call. */
    mends = 1;
    OK(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(calls, 3);
    mends = 0;
    calls = 2;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_File_iwrite_at(file, 0, &number, 1, MPI_INT, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    FAILS(code, MPI_ERR_READ_ONLY);
    EQUAL(calls, 3);

    /* A file keeps its handler, also when the program frees it. */
    OK(MPI_Errhandler_free(&own));
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    EQUAL(calls, 4);
    OK(MPI_File_get_errhandler(file, &found));
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&found));
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    EQUAL(calls, 4);
    close_file(file);

    /* The default handler is that of MPI_FILE_NULL; files inherit it, and failed opens call it. */
    OK(MPI_File_create_errhandler(note_error, &own));
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &before));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, own));
    calls = 0;
    file = open_file(MPI_MODE_RDONLY);
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    EQUAL(calls, 1);
    close_file(file);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "unisono://no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL,
                        &other),
          MPI_ERR_NO_SUCH_FILE);
    EQUAL(calls, 2);
    CHECK(last_file == MPI_FILE_NULL);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, before));
    OK(MPI_Errhandler_free(&own));
}

/* ---- Handles, several files, communicators --------------------------------------------------- */

static void check_properties(void)
{
    MPI_Group group, world;
    MPI_Info info;
    MPI_Offset displacement = -1;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING + 1];
    int result = -1, keys = -1;
    CONTEXT("properties");
    MPI_File file = open_file(CREATE);
    OK(MPI_File_get_group(file, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &result);
    EQUAL(result, MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    OK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
    EQUAL(displacement, 0);
    CHECK(etype == MPI_BYTE && filetype == MPI_BYTE && !strcmp(representation, "native"));
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "1048576");
    MPI_Info_set(info, "no_such_hint", "3");
    OK(MPI_File_set_info(file, info));
    MPI_Info_free(&info);
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get_nkeys(info, &keys));
    CHECK(keys > 0 || !has("hints"));
    MPI_Info_free(&info);
#ifdef MPI_ABI_VERSION
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
#else
    MPI_Fint number = MPI_File_c2f(file);
    CHECK(MPI_File_f2c(number) == file);
    CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
#endif
    int atomic = -1;
    OK(MPI_File_get_atomicity(file, &atomic));
    EQUAL(atomic, 0);
    close_file(file);
}

static void check_communicators(void)
{
    char name[1024];
    MPI_Comm half;
    MPI_File own, shared, both;
    int number = test.rank, found = -1, rank, size;
    CONTEXT("communicators");
    snprintf(name, sizeof name, "%s-%d", test.file, test.rank);
    OK(MPI_File_open(MPI_COMM_SELF, name, CREATE, MPI_INFO_NULL, &own));
    MPI_Comm_split(MPI_COMM_WORLD, test.rank % 2, -test.rank, &half);
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    snprintf(name, sizeof name, "%s-half-%d", test.file, test.rank % 2);
    OK(MPI_File_open(half, name, CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &shared));
    both = open_file(CREATE);
    /* Calls of different groups mix. */
    OK(MPI_File_write_at_all(own, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at_all(shared, 4 * rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at_all(both, 4 * test.rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    publish(both);
    OK(MPI_File_sync(shared));
    MPI_Comm_free(&half);
    OK(MPI_File_read_at_all(shared, 4 * (size - 1 - rank), &found, 1, MPI_INT,
                            MPI_STATUS_IGNORE));
    EQUAL(found, test.rank % 2 + 2 * rank);
    OK(MPI_File_read_at(both, 4 * (test.size - 1), &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, test.size - 1);
    OK(MPI_File_read_at(own, 0, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, test.rank);
    EQUAL(size_of(own), 4);
    EQUAL(size_of(shared), 4 * size);
    close_file(shared);
    close_file(own);
    close_file(both);
    snprintf(name, sizeof name, "%s-%d", test.file, test.rank);
    OK(MPI_File_delete(name, MPI_INFO_NULL));
}

static void check_many_opens(void)
{
    MPI_File files[40];
    int opens = test.rounds ? test.rounds : OPENS;
    CONTEXT("many opens");
    for (int i = 0; i < 40; i++)
        files[i] = open_file(CREATE);
    for (int i = 0; i < 40; i++)
        close_file(files[(i * 7) % 40]);
    char name[1024];
    snprintf(name, sizeof name, "%s-%d", test.file, test.rank);
    for (int i = 0; i < opens; i++) {
        MPI_File file;
        CONTEXT("open number %d", i);
        OK(MPI_File_open(MPI_COMM_SELF, name, CREATE, MPI_INFO_NULL, &file));
        close_file(file);
    }
    OK(MPI_File_delete(name, MPI_INFO_NULL));
}

/* ---- Atomicity and consistency --------------------------------------------------------------- */

/* All write the same strided bytes at once; the result is that of one of them. */
static void check_atomic(void)
{
    enum { NUMBERS = 4000, TURNS = 6 };
    static int numbers[NUMBERS], found[NUMBERS];
    MPI_Datatype strided;
    int flag = -1;
    CONTEXT("atomic mode");
    if (!has("locks"))
        return;
    MPI_File file = open_file(CREATE);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    EQUAL(flag, 1);
    MPI_Type_vector(NUMBERS / 4, 4, 9, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    OK(MPI_File_set_view(file, 0, MPI_INT, strided, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < NUMBERS; i++)
            numbers[i] = turn * test.size + test.rank;
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn % 2)
            OK(MPI_File_write_at_all(file, 0, numbers, NUMBERS, MPI_INT, MPI_STATUS_IGNORE));
        else
            OK(MPI_File_write_at(file, 0, numbers, NUMBERS, MPI_INT, MPI_STATUS_IGNORE));
        /* Others may still write: what is read is one of their accesses as a whole. */
        OK(MPI_File_read_at(file, 0, found, NUMBERS, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(found[0] >= turn * test.size && found[0] < (turn + 1) * test.size);
        for (int i = 1; i < NUMBERS; i++)
            EQUAL(found[i], found[0]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(MPI_File_set_atomicity(file, 0));
    MPI_Type_free(&strided);
    close_file(file);
}

/* What a process has written is seen by the next after MPI_File_sync, a barrier and MPI_File_sync. */
static void check_consistency(void)
{
    int found = -1, next = (test.rank + 1) % test.size;
    CONTEXT("consistency");
    MPI_File file = open_file(CREATE);
    for (int turn = 0; turn < 5; turn++) {
        write_number(file, 4096 * test.rank, turn * 100 + test.rank);
        publish(file);
        OK(MPI_File_read_at(file, 4096 * next, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
        EQUAL(found, turn * 100 + next);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close_file(file);
    file = open_file(MPI_MODE_RDONLY);
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at(file, 4096 * next, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, 400 + next);
    close_file(file);
}

int main(int count, char **arguments)
{
    begin(count, arguments, "modes");
    void (*const checks[])(void) = {check_open_modes,    check_append,     check_delete,
                                    check_sequential,    check_sizes,      check_ends,
                                    check_handlers,      check_properties, check_communicators,
                                    check_atomic,        check_consistency, check_many_opens};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        checks[i]();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    remove_file(test.file);
    return end();
}
