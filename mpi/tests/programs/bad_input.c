/* bad_input.c - proves: wrong arguments give errors of the right classes, to the process that gave
 * them and to no other; nothing hangs, and the file works afterwards. */
#include "check.h"

#include <limits.h>

test_t test;

static MPI_File file;

/* Shows that the file still works: a collective write and a read of one number each. */
static void check_works(void)
{
    int number = 1000 + test.rank, found = -1;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, test.rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    publish(file);
    int other = (test.rank + 1) % test.size;
    OK(MPI_File_read_at_all(file, other, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, 1000 + other);
}

/* Code of a request that fails at its start or at its end. */
static int code_of(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

/* ---- Arguments of data accesses ------------------------------------------------------------- */

/* Makes one access in every form; all give `class`. */
static void fail_everywhere(MPI_Offset offset, int count, MPI_Datatype type, int class)
{
    static int data[16];
    MPI_Request request;
    MPI_File f = file;
    FAILS(MPI_File_read_at(f, offset, data, count, type, MPI_STATUS_IGNORE), class);
    FAILS(MPI_File_write_at(f, offset, data, count, type, MPI_STATUS_IGNORE), class);
    FAILS(MPI_File_read_at_all(f, offset, data, count, type, MPI_STATUS_IGNORE), class);
    FAILS(MPI_File_write_at_all(f, offset, data, count, type, MPI_STATUS_IGNORE), class);
    FAILS(code_of(MPI_File_iread_at(f, offset, data, count, type, &request), &request), class);
    FAILS(code_of(MPI_File_iwrite_at(f, offset, data, count, type, &request), &request), class);
    FAILS(code_of(MPI_File_iwrite_at_all(f, offset, data, count, type, &request), &request), class);
    int code = MPI_File_write_at_all_begin(f, offset, data, count, type);
    if (code == MPI_SUCCESS)
        code = MPI_File_write_at_all_end(f, data, MPI_STATUS_IGNORE);
    FAILS(code, class);
    if (offset < 0)
        return;
    FAILS(MPI_File_read(f, data, count, type, MPI_STATUS_IGNORE), class);
    FAILS(MPI_File_write_all(f, data, count, type, MPI_STATUS_IGNORE), class);
    FAILS(code_of(MPI_File_iwrite(f, data, count, type, &request), &request), class);
    if (has("counters")) {
        FAILS(MPI_File_write_shared(f, data, count, type, MPI_STATUS_IGNORE), class);
        FAILS(MPI_File_write_ordered(f, data, count, type, MPI_STATUS_IGNORE), class);
    }
    MPI_Offset position = -1;
    OK(MPI_File_get_position(f, &position));
    EQUAL(position, 0);
}

static void check_arguments(void)
{
    MPI_Datatype uncommitted;
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    CONTEXT("arguments");
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    fail_everywhere(0, -1, MPI_INT, MPI_ERR_COUNT);
    fail_everywhere(0, INT_MIN, MPI_INT, MPI_ERR_COUNT);
    fail_everywhere(-1, 1, MPI_INT, MPI_ERR_ARG);
    fail_everywhere(0, 1, MPI_DATATYPE_NULL, MPI_ERR_TYPE);
    fail_everywhere(0, 1, MPI_SHORT, MPI_ERR_TYPE); /* half an etype */
    if (has("uncommitted"))
        fail_everywhere(0, 1, uncommitted, MPI_ERR_TYPE);
    int number = 3;
    FAILS(MPI_File_write_at(file, LLONG_MAX, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    FAILS(MPI_File_write_at(file, LLONG_MAX / 4, &number, 1, MPI_INT, MPI_STATUS_IGNORE),
          MPI_ERR_ARG);
    MPI_Type_free(&uncommitted);
    MPI_Offset position;
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    FAILS(MPI_File_get_byte_offset(file, -1, &position), MPI_ERR_ARG);
    FAILS(MPI_File_get_byte_offset(file, LLONG_MAX / 2, &position), MPI_ERR_ARG);
    FAILS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    FAILS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
    OK(MPI_File_seek(file, 5, MPI_SEEK_SET));
    FAILS(MPI_File_seek(file, -6, MPI_SEEK_CUR), MPI_ERR_ARG);
    OK(MPI_File_get_position(file, &position));
    EQUAL(position, 5);
    check_works();
}

/* One process gives a wrong argument to a collective call; the others are served. */
static void check_one_wrong(void)
{
    int number = 7 + test.rank, found = 0, is_wrong = test.rank == test.size - 1;
    CONTEXT("one process is wrong");
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_File_write_at_all(file, test.rank, &number, is_wrong ? -1 : 1, MPI_INT,
                                MPI_STATUS_IGNORE),
          is_wrong ? MPI_ERR_COUNT : MPI_SUCCESS);
    FAILS(MPI_File_read_at_all(file, is_wrong ? -5 : test.rank, &found, 1, MPI_INT,
                               MPI_STATUS_IGNORE),
          is_wrong ? MPI_ERR_ARG : MPI_SUCCESS);
    if (!is_wrong)
        EQUAL(found, number);
    /* Collective calls that change the file itself fail everywhere. */
    CHECK(MPI_File_set_size(file, is_wrong ? -1 : 4) != MPI_SUCCESS);
    CHECK(MPI_File_set_view(file, is_wrong ? -1 : 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)
          != MPI_SUCCESS);
    MPI_Offset displacement = -1;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING + 1];
    OK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
    EQUAL(displacement, 0);
    check_works();
}

/* ---- Views ----------------------------------------------------------------------------------- */

static void check_view(MPI_Datatype etype, MPI_Datatype filetype, const char *representation,
                       int class)
{
    FAILS(MPI_File_set_view(file, 0, etype, filetype, representation, MPI_INFO_NULL), class);
}

static MPI_Datatype committed(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

static void check_views(void)
{
    enum { BACKWARDS, OVERLAPPING, NEGATIVE, REPEATED, RETURNING, PART, UNCOMMITTED, TYPES };
    MPI_Datatype types[TYPES];
    CONTEXT("views");
    MPI_Type_indexed(2, (int[]){1, 1}, (int[]){4, 0}, MPI_INT, &types[BACKWARDS]);
    MPI_Type_create_hindexed(2, (int[]){1, 1}, (MPI_Aint[]){0, 2}, MPI_INT, &types[OVERLAPPING]);
    MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){-8}, MPI_INT, &types[NEGATIVE]);
    MPI_Type_vector(2, 1, 4, MPI_INT, &types[PART]);
    MPI_Type_create_resized(types[PART], 0, 4, &types[REPEATED]);
    MPI_Type_create_resized(MPI_INT, 0, -8, &types[RETURNING]);
    MPI_Type_free(&types[PART]);
    MPI_Type_contiguous(3, MPI_SHORT, &types[PART]);
    for (int i = 0; i < UNCOMMITTED; i++)
        types[i] = committed(types[i]);
    MPI_Type_contiguous(3, MPI_INT, &types[UNCOMMITTED]);
    check_view(MPI_INT, types[BACKWARDS], "native", MPI_ERR_IO);
    check_view(MPI_INT, types[OVERLAPPING], "native", MPI_ERR_IO);
    check_view(MPI_INT, types[NEGATIVE], "native", MPI_ERR_IO);
    check_view(MPI_INT, types[RETURNING], "native", MPI_ERR_IO);
    check_view(MPI_INT, types[PART], "native", MPI_ERR_ARG);
    check_view(MPI_DATATYPE_NULL, MPI_INT, "native", MPI_ERR_TYPE);
    check_view(MPI_INT, MPI_DATATYPE_NULL, "native", MPI_ERR_TYPE);
    check_view(MPI_INT, MPI_INT, "roman", MPI_ERR_UNSUPPORTED_DATAREP);
    check_view(MPI_INT, MPI_INT, "", MPI_ERR_UNSUPPORTED_DATAREP);
    if (has("uncommitted"))
        check_view(MPI_INT, types[UNCOMMITTED], "native", MPI_ERR_TYPE);
    FAILS(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native",
                            MPI_INFO_NULL),
          MPI_ERR_ARG);
    MPI_Aint extent;
    FAILS(MPI_File_get_type_extent(file, MPI_DATATYPE_NULL, &extent), MPI_ERR_TYPE);
    if (test.size > 1)
        check_view(test.rank ? MPI_INT : MPI_DOUBLE, MPI_DOUBLE, "native", MPI_ERR_NOT_SAME);
    check_works();

    /* A file for reading may have a filetype that overlaps itself, also when it is repeated. */
    MPI_File reading;
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_RDONLY, MPI_INFO_NULL, &reading));
    OK(MPI_File_set_view(reading, 0, MPI_INT, types[REPEATED], "native", MPI_INFO_NULL));
    for (int i = 0; i < 2; i++)
        FAILS(MPI_File_set_view(reading, 0, MPI_INT, types[i ? RETURNING : BACKWARDS], "native",
                                MPI_INFO_NULL),
              MPI_ERR_IO);
    if (has("strict")) {
        char raw[16];
        int found[4] = {0}, expected[4];
        MPI_Aint start;
        MPI_Type_get_extent(types[OVERLAPPING], &start, &extent); /* 6 or, aligned, 8 */
        OK(MPI_File_set_view(reading, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        memset(raw, 0, sizeof raw);
        OK(MPI_File_read_at(reading, 0, raw, sizeof raw, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int i = 0; i < 4; i++)
            memcpy(&expected[i], raw + i / 2 * extent + i % 2 * 2, sizeof expected[i]);
        OK(MPI_File_set_view(reading, 0, MPI_INT, types[OVERLAPPING], "native", MPI_INFO_NULL));
        OK(MPI_File_read_at_all(reading, 0, found, 4, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(memcmp(found, expected, sizeof found) == 0);
        OK(MPI_File_read_at(reading, 1, found, 3, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(memcmp(found, expected + 1, 3 * sizeof *found) == 0);
    }
    OK(MPI_File_close(&reading));
    for (int i = 0; i < TYPES; i++)
        MPI_Type_free(&types[i]);
}

/* ---- Modes ----------------------------------------------------------------------------------- */

static void check_modes(void)
{
    MPI_File wrong = MPI_FILE_NULL;
    int number = 0;
    CONTEXT("modes");
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_RDONLY, MPI_INFO_NULL, &wrong));
    FAILS(MPI_File_write_at(wrong, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_write_at_all(wrong, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE),
          MPI_ERR_READ_ONLY);
    FAILS(MPI_File_write_all(wrong, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_write(wrong, &number, 0, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_set_size(wrong, 4), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_preallocate(wrong, 4), MPI_ERR_READ_ONLY);
    OK(MPI_File_read_at(wrong, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&wrong));
    CHECK(wrong == MPI_FILE_NULL);
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_WRONLY, MPI_INFO_NULL, &wrong));
    FAILS(MPI_File_read_at(wrong, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    FAILS(MPI_File_read_all(wrong, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    OK(MPI_File_close(&wrong));

    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL,
                     MPI_INFO_NULL, &wrong));
    const int unsupported = MPI_ERR_UNSUPPORTED_OPERATION;
    MPI_Offset position;
    FAILS(MPI_File_write_at(wrong, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), unsupported);
    FAILS(MPI_File_write_all(wrong, &number, 1, MPI_INT, MPI_STATUS_IGNORE), unsupported);
    FAILS(MPI_File_seek(wrong, 0, MPI_SEEK_SET), unsupported);
    FAILS(MPI_File_seek_shared(wrong, 0, MPI_SEEK_SET), unsupported);
    FAILS(MPI_File_get_position_shared(wrong, &position), unsupported);
    FAILS(MPI_File_get_position(wrong, &position), unsupported);
    FAILS(MPI_File_get_byte_offset(wrong, 0, &position), unsupported);
    OK(MPI_File_close(&wrong));
    check_works();
}

static void check_open(void)
{
    char name[1024];
    MPI_File other = MPI_FILE_NULL;
    CONTEXT("open");
    int any = MPI_MODE_CREATE | MPI_MODE_RDWR;
    if (test.size > 1) {
        snprintf(name, sizeof name, "%s-%d", test.file, test.rank);
        FAILS(MPI_File_open(MPI_COMM_WORLD, name, any, MPI_INFO_NULL, &other), MPI_ERR_NOT_SAME);
        CHECK(other == MPI_FILE_NULL);
        FAILS(MPI_File_open(MPI_COMM_WORLD, test.file, test.rank ? MPI_MODE_RDONLY : any,
                            MPI_INFO_NULL, &other),
              MPI_ERR_AMODE);
        FAILS(MPI_File_open(MPI_COMM_WORLD, test.file, test.rank == 1 ? 0 : any, MPI_INFO_NULL,
                            &other),
              MPI_ERR_AMODE);
    }
    FAILS(MPI_File_open(MPI_COMM_WORLD, "unisono://", any, MPI_INFO_NULL, &other), MPI_ERR_BAD_FILE);
    CHECK(other == MPI_FILE_NULL);
    check_works();
}

/* ---- Split calls ----------------------------------------------------------------------------- */

static void check_split(void)
{
    int number = test.rank, found = -1;
    CONTEXT("split calls");
    CHECK(MPI_File_write_all_end(file, &number, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(MPI_File_read_at_all_end(file, &number, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    OK(MPI_File_write_at_all_begin(file, test.rank, &number, 1, MPI_INT));
    CHECK(MPI_File_write_at_all_begin(file, 0, &number, 1, MPI_INT) != MPI_SUCCESS);
    CHECK(MPI_File_read_all_begin(file, &found, 1, MPI_INT) != MPI_SUCCESS);
    CHECK(MPI_File_write_all_end(file, &number, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    OK(MPI_File_write_at_all_end(file, &number, MPI_STATUS_IGNORE));
    CHECK(MPI_File_write_at_all_end(file, &number, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    /* A wrong argument of the first call is known at the end of the second one. */
    int code = MPI_File_write_at_all_begin(file, 0, &number, -1, MPI_INT);
    if (code == MPI_SUCCESS)
        code = MPI_File_write_at_all_end(file, &number, MPI_STATUS_IGNORE);
    FAILS(code, MPI_ERR_COUNT);
    MPI_File other;
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_RDWR, MPI_INFO_NULL, &other));
    OK(MPI_File_read_at_all_begin(other, 0, &found, 1, MPI_INT));
    CHECK(MPI_File_close(&other) != MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    check_works();
}

/* ---- Large numbers --------------------------------------------------------------------------- */

static void check_large_offsets(void)
{
    MPI_Datatype sparse, row;
    MPI_Offset byte = 0;
    const MPI_Offset giga = (MPI_Offset)1 << 30;
    CONTEXT("large offsets");
    /* One number every 8 GiB. */
    MPI_Type_create_hvector(3, 1, 8 * giga, MPI_DOUBLE, &row);
    MPI_Type_create_resized(row, 0, 24 * giga, &sparse);
    MPI_Type_commit(&sparse);
    OK(MPI_File_set_view(file, 5 * giga + 3, MPI_DOUBLE, sparse, "native", MPI_INFO_NULL));
    for (int i = 0; i < 40; i += 13) {
        OK(MPI_File_get_byte_offset(file, i, &byte));
        EQUAL(byte, 5 * giga + 3 + i * 8 * giga);
    }
    OK(MPI_File_get_byte_offset(file, 1 << 20, &byte));
    EQUAL(byte, 5 * giga + 3 + (1 << 20) * 8 * giga);
    double numbers[4], found[4] = {0};
    for (int i = 0; i < 4; i++)
        numbers[i] = test.rank * 4 + i;
    OK(MPI_File_write_at_all(file, 4 * test.rank, numbers, 4, MPI_DOUBLE, MPI_STATUS_IGNORE));
    OK(MPI_File_get_size(file, &byte));
    publish(file);
    OK(MPI_File_get_size(file, &byte));
    EQUAL(byte, 5 * giga + 3 + (4 * test.size - 1) * 8 * giga + 8);
    OK(MPI_File_read_at_all(file, 4 * test.rank, found, 4, MPI_DOUBLE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; i++)
        EQUAL(found[i], numbers[i]);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_Offset far = 1024 * giga + 4096 * test.rank;
    OK(MPI_File_write_at(file, far, &numbers[1], 8, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, far, &found[0], 8, MPI_BYTE, MPI_STATUS_IGNORE));
    EQUAL(found[0], numbers[1]);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &byte));
    CHECK(byte >= far + 8);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 64));
    MPI_Type_free(&row);
    MPI_Type_free(&sparse);
    check_works();
}

/* Reads of more than 2^31 and 2^32 bytes of a short file: no memory is needed for what is not
 * there. The last one has a count that is greater than an int. */
static void check_large_reads(void)
{
    static char memory[4096];
    MPI_Datatype block;
    MPI_Status status;
    MPI_Count bytes = -1;
    CONTEXT("large reads");
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_set_size(file, 100));
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &block);
    MPI_Type_commit(&block);
    const int counts[] = {3000, 5000, 1 << 20};
    for (int i = 0; i < 3; i++) {
        OK(MPI_File_read_at(file, 0, memory, counts[i], block, &status));
        OK(MPI_Get_elements_x(&status, MPI_BYTE, &bytes));
        EQUAL(bytes, 100);
        OK(MPI_File_read_at_all(file, 10, memory, counts[i], block, &status));
        OK(MPI_Get_elements_x(&status, MPI_BYTE, &bytes));
        EQUAL(bytes, 90);
    }
#if MPI_VERSION >= 4
    OK(MPI_File_read_at_c(file, 0, memory, (MPI_Count)1 << 40, MPI_BYTE, &status));
    OK(MPI_Get_elements_x(&status, MPI_BYTE, &bytes));
    EQUAL(bytes, 100);
    FAILS(MPI_File_read_at_c(file, 0, memory, -((MPI_Count)1 << 40), MPI_BYTE, &status),
          MPI_ERR_COUNT);
#endif
    MPI_Type_free(&block);
    check_works();
}

/* Collective writes of the same bytes by all: the result is the data of some of them. */
static void check_overlapping_writes(void)
{
    int numbers[100], found[100];
    CONTEXT("overlapping writes");
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 100; i++)
        numbers[i] = test.rank;
    OK(MPI_File_write_at_all(file, 0, numbers, 100, MPI_INT, MPI_STATUS_IGNORE));
    publish(file);
    OK(MPI_File_read_at_all(file, 0, found, 100, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < 100; i++)
        CHECK(found[i] >= 0 && found[i] < test.size);
    check_works();
}

/* A write of more than 2^31 bytes, from memory that repeats one number. */
static void check_large_write(void)
{
    enum { NUMBERS = (1 << 28) + 1 };
    double number = 17.5, found = 0;
    MPI_Datatype still;
    MPI_Status status;
    MPI_Count elements = -1;
    int count = 0;
    CONTEXT("large write");
    MPI_Type_create_resized(MPI_DOUBLE, 0, 0, &still);
    MPI_Type_commit(&still);
    OK(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    if (!test.rank) {
        OK(MPI_File_write_at(file, 0, &number, NUMBERS, still, &status));
        OK(MPI_Get_elements_x(&status, MPI_DOUBLE, &elements));
        EQUAL(elements, NUMBERS);
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        EQUAL(count, MPI_UNDEFINED);
    }
    publish(file);
    for (long at = 0; at < NUMBERS; at += NUMBERS / 7) {
        OK(MPI_File_read_at(file, at, &found, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
        CHECK(found == number);
    }
    MPI_Type_free(&still);
    OK(MPI_File_set_size(file, 64));
    check_works();
}

int main(int count, char **arguments)
{
    begin(count, arguments, "bad_input");
    remove_file(test.file);
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &file));
    check_works();
    check_arguments();
    check_one_wrong();
    check_views();
    check_modes();
    check_open();
    check_split();
    check_large_offsets();
    check_large_reads();
    check_overlapping_writes();
    if (has("large"))
        check_large_write();
    OK(MPI_File_close(&file));
    remove_file(test.file);
    return end();
}
