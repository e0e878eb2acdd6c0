/* conformance_shared.c - shared file pointers: every record is in the file once, those of a process
 * in their order, and ordered calls in the order of the ranks. */
#include "conformance.h"

#include "check.h"
#include "forms.h"

enum { RECORDS = 20 };

/* A record, as processes write it. */
typedef struct record {
    int rank, number, forms, end;
} record_t;

static void write_records(MPI_File file, MPI_Datatype type, form_t form)
{
    for (int i = 0; i < RECORDS; i++) {
        record_t record = {test.rank, i, (int)form, -1};
        MPI_Status status;
        call_t call = {form, 1, i % 2, file, 0, &record, 1, type};
        int count = -1;
        OK(make_call(&call, &status));
        OK(MPI_Get_count(&status, type, &count));
        EQUAL(count, 1);
    }
}

/* Checks that the records of each process ascend and that none lacks. */
static void check_records(const record_t *records, int count, form_t form)
{
    int *next = calloc((size_t)test.size, sizeof *next);
    for (int i = 0; i < count; i++) {
        CHECK(records[i].rank >= 0 && records[i].rank < test.size);
        EQUAL(records[i].forms, form);
        EQUAL(records[i].end, -1);
        EQUAL(records[i].number, next[records[i].rank]++);
        if (form == ORDERED || form == ORDERED_SPLIT)
            EQUAL(records[i].rank, i % test.size);
    }
    free(next);
}

static void check_form(form_t form)
{
    MPI_File file;
    MPI_Datatype type;
    MPI_Offset position = -1;
    int all = RECORDS * test.size;
    CONTEXT("shared pointer, form %d", (int)form);
    remove_file(test.file);
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &file));
    MPI_Type_contiguous(4, MPI_INT, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, 12, type, type, "native", MPI_INFO_NULL));
    write_records(file, type, form);
    publish(file);
    OK(MPI_File_get_position_shared(file, &position));
    EQUAL(position, all);
    record_t *records = malloc((size_t)all * sizeof *records);
    OK(MPI_File_read_at(file, 0, records, all, type, MPI_STATUS_IGNORE));
    check_records(records, all, form);

    /* Everybody reads as many records; together they have all. */
    OK(MPI_File_seek_shared(file, -all, MPI_SEEK_END));
    record_t own[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        call_t call = {form, 0, i % 2, file, 0, &own[i], 1, type};
        OK(make_call(&call, MPI_STATUS_IGNORE));
    }
    MPI_Gather(own, 4 * RECORDS, MPI_INT, records, 4 * RECORDS, MPI_INT, 0, MPI_COMM_WORLD);
    char *seen = calloc((size_t)all, 1);
    for (int i = 0; !test.rank && i < all; i++) {
        int at = records[i].rank * RECORDS + records[i].number;
        CHECK(!seen[at]);
        seen[at] = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(file, &position));
    EQUAL(position, all);
    OK(MPI_File_seek_shared(file, 3 - all, MPI_SEEK_CUR));
    OK(MPI_File_get_position_shared(file, &position));
    EQUAL(position, 3);
    FAILS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    free(seen);
    free(records);
    MPI_Type_free(&type);
    OK(MPI_File_close(&file));
}

/* A new view sets the shared pointer to 0 after all have used it with the old view. */
static void check_new_views(void)
{
    enum { TURNS = 40 };
    MPI_File file;
    MPI_Offset position = -1;
    CONTEXT("shared pointer, new views");
    remove_file(test.file);
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &file));
    for (int turn = 0; turn < TURNS; turn++) {
        int number = turn * 1000 + test.rank;
        OK(MPI_File_set_view(file, 4 * turn * test.size, MPI_INT, MPI_INT, "native",
                             MPI_INFO_NULL));
        OK(MPI_File_write_shared(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    publish(file);
    OK(MPI_File_get_position_shared(file, &position));
    EQUAL(position, test.size);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    int *numbers = malloc((size_t)(TURNS * test.size) * sizeof *numbers);
    OK(MPI_File_read_at(file, 0, numbers, TURNS * test.size, MPI_INT, MPI_STATUS_IGNORE));
    for (int turn = 0; turn < TURNS; turn++) {
        long sum = 0;
        for (int i = 0; i < test.size; i++)
            sum += numbers[turn * test.size + i] - turn * 1000;
        EQUAL(sum, (long)test.size * (test.size - 1) / 2);
    }
    free(numbers);
    OK(MPI_File_close(&file));
}

void check_shared_pointers(void)
{
    check_new_views();
    check_form(SHARED);
    check_form(ISHARED);
    check_form(ORDERED);
    check_form(ORDERED_SPLIT);
}
