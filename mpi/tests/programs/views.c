/* views.c - proves: filetypes whose repetitions interleave or overlap, and etypes and filetypes
 * without data, are accepted and move the bytes of their typemaps in every form of call; only a write
 * that has a byte of the file twice is refused, by the process that makes it; after a refused view
 * nothing is written or read. */
#include "check.h"
#include "forms.h"
#include "shape.h"

test_t test;

/* Bytes of the file that are one process's, and most bytes of one access. */
enum { REGION = 4096, DATA_MAX = 2048 };

static MPI_File file;
static unsigned char region[REGION]; /* what is in the file */
static unsigned char data[DATA_MAX]; /* of an access */
static unsigned char next_byte = 1;

static MPI_Offset start_of_region(void)
{
    return (MPI_Offset)test.rank * REGION;
}

static void set_view(const shape_t *etype, const shape_t *filetype)
{
    OK(MPI_File_set_view(file, start_of_region(), etype->type, filetype->type, "native",
                         MPI_INFO_NULL));
}

/* Compares the region of this process with the model. */
static void check_region(void)
{
    static unsigned char found[REGION];
    publish(file);
    OK(MPI_File_set_view(file, start_of_region(), MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 0, found, REGION, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < REGION; i++)
        if (found[i] != region[i]) {
            fprintf(stderr, "rank %d: byte %d of its region\n", test.rank, i);
            EQUAL(found[i], region[i]);
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Makes the file as long as all regions, with known bytes. */
static void fill_regions(void)
{
    for (int i = 0; i < REGION; i++)
        region[i] = (unsigned char)(i * 7 + test.rank * 3 + i / 251);
    OK(MPI_File_set_view(file, start_of_region(), MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, region, REGION, MPI_BYTE, MPI_STATUS_IGNORE));
    check_region();
}

/* 1 when `bytes` bytes of the view from byte `first` on have a byte of the file twice. */
static int repeats(const shape_t *filetype, long first, long bytes)
{
    unsigned char seen[REGION] = {0};
    int twice = 0;
    for (long k = 0; k < bytes; k++)
        twice |= seen[place(filetype, first + k)]++;
    return twice;
}

/* ---- Each form of call --------------------------------------------------------------------- */

/* Sets the pointer that the form uses to etype `offset`, and makes the call. Processes that use the
 * shared pointer do so one after the other. */
static int make_at(call_t *call, long offset, MPI_Status *status)
{
    int is_alone = call->form == SHARED || call->form == ISHARED, code = MPI_SUCCESS;
    call->offset = offset;
    if (is_individual(call->form))
        OK(MPI_File_seek(file, offset, MPI_SEEK_SET));
    if (is_shared(call->form) && !is_alone)
        OK(MPI_File_seek_shared(file, offset, MPI_SEEK_SET));
    for (int turn = 0; is_alone && turn < test.size; turn++) {
        OK(MPI_File_seek_shared(file, offset, MPI_SEEK_SET));
        if (turn == test.rank)
            code = make_call(call, status);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return is_alone ? code : make_call(call, status);
}

/* First etype of an ordered call: that of the process behind those of the others. */
static long offset_of(form_t form, long offset, long etypes)
{
    int is_ordered = form == ORDERED || form == ORDERED_SPLIT;
    return is_ordered ? offset + test.rank * etypes : offset;
}

/* Writes and reads `etypes` etypes from etype `offset` on, in one form. */
static void check_form(form_t form, const shape_t *etype, const shape_t *filetype, long offset,
                       long etypes)
{
    MPI_Status status;
    long bytes = etypes * etype->bytes, first = offset_of(form, offset, etypes) * etype->bytes;
    call_t call = {form, 1, (int)etypes % 2, file, 0, data, (int)etypes, etype->type};
    int twice = repeats(filetype, first, bytes), count = -1;
    for (long k = 0; k < bytes; k++)
        data[k] = next_byte++;
    set_view(etype, filetype);
    int code = make_at(&call, offset, &status);
    check_code(code, twice ? MPI_ERR_IO : MPI_SUCCESS, "the write", __FILE__, __LINE__);
    for (long k = 0; k < bytes && !twice; k++)
        region[place(filetype, first + k)] = data[k];
    check_region();
    set_view(etype, filetype);
    memset(data, 0, sizeof data);
    call.is_write = 0;
    OK(make_at(&call, offset, &status));
    OK(MPI_Get_count(&status, etype->type, &count));
    EQUAL(count, etypes);
    for (long k = 0; k < bytes; k++)
        EQUAL(data[k], region[place(filetype, first + k)]);
    if (is_individual(form)) {
        MPI_Offset position, byte;
        OK(MPI_File_get_position(file, &position));
        EQUAL(position, offset + etypes);
        OK(MPI_File_get_byte_offset(file, position, &byte));
        EQUAL(byte, start_of_region() + place(filetype, (offset + etypes) * etype->bytes));
    }
}

/* Filetypes whose extent is less than the span of their data. */
static shape_t *make_short(int number, const shape_t *etype)
{
    long x = etype->extent;
    switch (number) {
    case 0: /* one block, which overlaps the next */
        return committed(resized(0, 2 * x, contiguous(4, etype)));
    case 1: /* a column of a matrix: columns interleave */
        return committed(resized(0, x, vector(5, 1, 8, etype)));
    case 2: /* blocks that go between those of the instance before */
        return committed(resized(0, 6 * x, hvector(3, 2, 20 * x, etype)));
    case 3: /* a header before an array, as in PnetCDF's files */
        return committed(resized(0, 8 * x, hindexed(3, (int[]){6, 2, 2},
                                                    (long[]){0, 9 * x, 13 * x}, etype)));
    case 4: /* every instance in the same place */
        return committed(resized(0, 0, vector(2, 1, 3, etype)));
    default: /* at odd places */
        return committed(resized(0, 3 * x + 1, hindexed(2, (int[]){1, 2}, (long[]){5, 7 * x + 7},
                                                        etype)));
    }
}

/* In all forms of calls, or in one that is collective. */
static void check_short_extents(int in_all_forms)
{
    unsigned long seed = test.seed;
    fill_regions();
    for (int number = 0; number < 6; number++) {
        const shape_t *etype = number % 2 ? named(MPI_INT, sizeof(int))
                                          : committed(contiguous(3, named(MPI_BYTE, 1)));
        const shape_t *filetype = make_short(number, etype);
        for (int form = 0; form < FORM_COUNT; form++) {
            if ((!in_all_forms && form != AT_ALL)
                || (!has("counters") && is_shared((form_t)form)))
                continue;
            long offset = between(&seed, 0, 12), etypes = between(&seed, 1, 12);
            CONTEXT("filetype %d, form %d, offset %ld, %ld etypes", number, form, offset, etypes);
            check_form((form_t)form, etype, filetype, offset, etypes);
        }
        CONTEXT("filetype %d, one instance", number);
        check_form(AT_ALL, etype, filetype, 0, filetype->bytes / etype->bytes);
        /* One process has a byte twice; the others are served. */
        CONTEXT("filetype %d, unequal processes", number);
        check_form(AT_ALL, etype, filetype, test.rank, test.rank ? 1 : 12);
    }
    shapes_free();
}

/* Memory with gaps, atomic mode and many instances. */
static void check_columns(void)
{
    enum { ROWS = 40, COLUMNS = 24 };
    int matrix[ROWS][COLUMNS], found[ROWS][COLUMNS];
    MPI_Datatype column, columns, padded;
    CONTEXT("a transposed matrix");
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &columns);
    MPI_Type_commit(&columns);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &padded);
    MPI_Type_commit(&padded);
    for (int is_atomic = 0; is_atomic <= has("locks"); is_atomic++) {
        static int spread[2 * ROWS * COLUMNS];
        for (int i = 0; i < ROWS * COLUMNS; i++)
            spread[2 * i] = test.rank * 100000 + i + is_atomic;
        OK(MPI_File_set_atomicity(file, is_atomic));
        OK(MPI_File_set_view(file, start_of_region(), MPI_INT, columns, "native", MPI_INFO_NULL));
        OK(MPI_File_write_at_all(file, 0, spread, ROWS * COLUMNS, padded, MPI_STATUS_IGNORE));
        OK(MPI_File_set_atomicity(file, 0));
        publish(file);
        OK(MPI_File_set_view(file, start_of_region(), MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        OK(MPI_File_read_at_all(file, 0, matrix, ROWS * COLUMNS, MPI_INT, MPI_STATUS_IGNORE));
        for (int row = 0; row < ROWS; row++)
            for (int at = 0; at < COLUMNS; at++)
                EQUAL(matrix[row][at], test.rank * 100000 + at * ROWS + row + is_atomic);
        /* Back by the same memory: columns of the file are rows of a transposed one. */
        OK(MPI_File_set_view(file, start_of_region(), MPI_INT, columns, "native", MPI_INFO_NULL));
        OK(MPI_File_read_at_all(file, 0, found, COLUMNS, columns, MPI_STATUS_IGNORE));
        CHECK(memcmp(found, matrix, sizeof matrix) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&column);
    MPI_Type_free(&columns);
    MPI_Type_free(&padded);
}

/* ---- Ends of files ------------------------------------------------------------------------- */

/* A read gives the data before the first byte that lies behind the end, and the end of a file is
 * counted in the same way. */
static void check_ends(void)
{
    const shape_t *etype = named(MPI_BYTE, 1);
    unsigned long seed = test.seed + 1;
    for (int round = 0; round < 40; round++) {
        int number = round % 6, count = -1;
        const shape_t *filetype = make_short(number, etype);
        long size = between(&seed, 0, 60), offset = between(&seed, 0, 20), before = 0, end = 0;
        long asked = 30;
        MPI_Status status;
        CONTEXT("end of the file: filetype %d, size %ld, offset %ld", number, size, offset);
        OK(MPI_File_set_size(file, 0));
        OK(MPI_File_set_size(file, size));
        OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        if (!test.rank)
            for (long i = 0; i < size; i++)
                OK(MPI_File_write_at(file, i, &(char){(char)(i + 1)}, 1, MPI_BYTE,
                                     MPI_STATUS_IGNORE));
        publish(file);
        OK(MPI_File_set_view(file, 0, MPI_BYTE, filetype->type, "native", MPI_INFO_NULL));
        while (before < asked && place(filetype, offset + before) < size)
            before++;
        memset(data, 0, sizeof data);
        call_t call = {round % 2 ? AT_ALL : INDIVIDUAL, 0, 0, file, 0, data, (int)asked, MPI_BYTE};
        OK(make_at(&call, offset, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        EQUAL(count, before);
        for (long k = 0; k < before; k++)
            EQUAL(data[k], (unsigned char)(place(filetype, offset + k) + 1));
        MPI_Offset position = -1;
        if (call.form == INDIVIDUAL) {
            OK(MPI_File_get_position(file, &position));
            EQUAL(position, offset + before);
        }
        while (end < 10000 && place(filetype, end) < size)
            end++;
        if (end < 10000) {
            OK(MPI_File_seek(file, 0, MPI_SEEK_END));
            OK(MPI_File_get_position(file, &position));
            EQUAL(position, end);
        } else {
            FAILS(MPI_File_seek(file, 0, MPI_SEEK_END), MPI_ERR_ARG);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    shapes_free();
}

/* ---- Nothing to see ------------------------------------------------------------------------ */

/* Calls of a process whose view has no data (is_empty), beside those of others. */
static void check_empty_forms(int is_empty, const shape_t *etype, const shape_t *nothing)
{
    const shape_t *number = named(MPI_INT, sizeof(int));
    const shape_t *whole = committed(contiguous(2, number));
    for (int form = 0; form < FORM_COUNT; form++) {
        MPI_Status status;
        int count = -1, numbers = is_empty ? 0 : 2;
        if (!has("counters") && is_shared((form_t)form))
            continue;
        CONTEXT("no data at this process: %d, etype of %ld bytes, form %d", is_empty, etype->bytes,
                form);
        call_t call = {(form_t)form, 1, form % 2, file, 0, data, numbers, MPI_INT};
        long first = offset_of((form_t)form, 0, 2) * 4;
        memset(data, ++next_byte, sizeof data);
        OK(MPI_File_set_view(file, start_of_region(), is_empty ? etype->type : MPI_INT,
                             is_empty ? nothing->type : whole->type, "native", MPI_INFO_NULL));
        OK(make_at(&call, 0, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        EQUAL(count, numbers);
        if (form == ORDERED || form == ORDERED_SPLIT) {
            /* Those before that have no data take no place. */
            int mine = numbers, sum = 0;
            MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            first = (sum - mine) * 4;
        }
        memset(region + first, next_byte, (size_t)numbers * 4);
        check_region();
    }
    shapes_free();
}

/* What is asked for through an empty view: a read finds the end of the file, a write has no place. */
static void check_empty_counts(MPI_Datatype etype)
{
    MPI_Datatype nothing;
    MPI_Status status;
    MPI_Offset position = -1;
    int number = 7, count = -1, is_etype;
    MPI_Type_size(etype, &is_etype);
    CONTEXT("data through an empty view, etype of %d bytes", is_etype);
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    OK(MPI_File_set_view(file, 100, etype, nothing, "native", MPI_INFO_NULL));
    int class = is_etype ? MPI_ERR_IO : MPI_ERR_TYPE;
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), class);
    FAILS(MPI_File_write_at_all(file, 3, &number, 1, MPI_INT, MPI_STATUS_IGNORE), class);
    FAILS(MPI_File_write_all(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE), class);
    if (is_etype) {
        OK(MPI_File_read_at(file, 5, &number, 1, MPI_INT, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        EQUAL(count, 0);
        OK(MPI_File_read_at_all(file, 5, &number, 1, MPI_INT, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        EQUAL(count, 0);
        EQUAL(number, 7);
    }
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &position));
    EQUAL(position, 0);
    OK(MPI_File_get_byte_offset(file, 9, &position));
    EQUAL(position, 100);
    MPI_Type_free(&nothing);
    check_region();
}

static void check_empty(void)
{
    fill_regions();
    for (int who = 0; who < 3; who++) {
        const shape_t *number = named(MPI_INT, sizeof(int));
        int is_empty = who == 0 || (who == 1 && test.rank == test.size - 1)
                       || (who == 2 && test.rank != 1);
        check_empty_forms(is_empty, number, committed(contiguous(0, number)));
        number = named(MPI_INT, sizeof(int));
        const shape_t *nothing = committed(contiguous(0, number));
        check_empty_forms(is_empty, nothing, nothing);
    }
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    check_empty_counts(MPI_INT);
    check_empty_counts(nothing);
    /* A view without etypes, whose filetype has data: no access consists of its etypes. */
    CONTEXT("an empty etype");
    OK(MPI_File_set_view(file, 0, nothing, MPI_INT, "native", MPI_INFO_NULL));
    int number = 7;
    FAILS(MPI_File_write_all(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    OK(MPI_File_write_all(file, &number, 0, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_all(file, &number, 3, nothing, MPI_STATUS_IGNORE));
    MPI_Type_free(&nothing);
    check_region();
}

/* A matrix with fewer rows than processes, dealt by rows. */
static void check_rows(void)
{
    int rows = test.size - 1, numbers[5], has_row = test.rank < rows;
    MPI_Datatype row;
    CONTEXT("fewer rows than processes");
    if (!rows)
        return;
    OK(MPI_Type_create_darray(test.size, test.rank, 2, (int[]){rows, 5},
                              (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE},
                              (int[]){MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG},
                              (int[]){test.size, 1}, MPI_ORDER_C, MPI_INT, &row));
    MPI_Type_commit(&row);
    for (int i = 0; i < 5; i++)
        numbers[i] = 1000 * test.rank + i;
    OK(MPI_File_set_view(file, 0, MPI_INT, row, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, numbers, has_row ? 5 : 0, MPI_INT, MPI_STATUS_IGNORE));
    publish(file);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < rows; i++) {
        OK(MPI_File_read_at_all(file, 5 * i, numbers, 5, MPI_INT, MPI_STATUS_IGNORE));
        for (int k = 0; k < 5; k++)
            EQUAL(numbers[k], 1000 * i + k);
    }
    MPI_Type_free(&row);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- Refused views ------------------------------------------------------------------------- */

/* One process gives a wrong view. All learn of it, and none reads or writes with the old one. */
static void check_refused(void)
{
    unsigned char before[8];
    MPI_Offset displacement = -1;
    MPI_Datatype types[2];
    char representation[MPI_MAX_DATAREP_STRING + 1];
    fill_regions();
    const shape_t *byte = named(MPI_BYTE, 1);
    set_view(byte, byte);
    memset(data, 99, sizeof data);
    memset(before, 55, sizeof before);
    for (int form = 0; form < FORM_COUNT; form++) {
        MPI_Status status;
        if (!has("counters") && is_shared((form_t)form))
            continue;
        CONTEXT("after a refused view, form %d", form);
        for (int is_write = 0; is_write < 2; is_write++) {
            call_t call = {(form_t)form, is_write, 0, file, 0, is_write ? data : before, 8, MPI_BYTE};
            set_view(byte, byte);
            FAILS(MPI_File_set_view(file, test.rank == test.size - 1 ? -1 : 0, MPI_BYTE, MPI_BYTE,
                                    "native", MPI_INFO_NULL),
                  MPI_ERR_ARG);
            FAILS(make_call(&call, &status), MPI_ERR_IO);
            call.count = 0;
            FAILS(make_call(&call, &status), MPI_ERR_IO);
        }
        for (int i = 0; i < 8; i++)
            EQUAL(before[i], 55);
        OK(MPI_File_get_view(file, &displacement, &types[0], &types[1], representation));
        EQUAL(displacement, start_of_region());
        check_region();
    }
    shapes_free();
}

int main(int count, char **arguments)
{
    begin(count, arguments, "views");
    remove_file(test.file);
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &file));
    check_short_extents(1);
    check_columns();
    static const char *const methods[] = {"two-phase", "independent", "global-barrier",
                                          "node-grouping", "auto"};
    for (size_t i = 0; has("hints") && i < sizeof methods / sizeof *methods; i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "unisono_method", methods[i]);
        OK(MPI_File_set_info(file, info));
        MPI_Info_free(&info);
        check_short_extents(0);
        check_columns();
    }
    check_empty();
    check_rows();
    check_refused();
    check_ends();
    OK(MPI_File_close(&file));
    remove_file(test.file);
    return end();
}
