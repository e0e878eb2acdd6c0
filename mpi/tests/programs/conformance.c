/* conformance.c - proves: every function that reads or writes moves the bytes that the typemaps of
 * view and memory name, and no others; statuses, positions and sizes fit.
 *
 * Every process keeps a model of the file: the round in which each byte was last written. The value
 * of a byte follows from its place and its round, so that processes may write the same bytes. */
#include "conformance.h"

#include "cases.h"
#include "check.h"
#include "forms.h"

test_t test;

enum { FILE_MAX = 1 << 17, ARENA = 1 << 16, MIDDLE = ARENA / 2, ROUNDS = 260, UNTOUCHED = 0xEE };

static unsigned short written[FILE_MAX]; /* round that wrote a byte, 0: none */
static long file_bytes;                  /* size of the file */

static char arena[ARENA], expected[ARENA];

typedef struct view_case {
    long displacement;
    const shape_t *etype, *filetype;
    const char *representation;
} view_case_t;

/* An access to data of the view, and its memory. */
typedef struct data {
    const view_case_t *view;
    const shape_t *memory;
    int count, is_absolute;
    long offset; /* etypes */
    long bytes;
} data_t;

static unsigned char value(long byte, unsigned round)
{
    unsigned long x = (unsigned long)byte * 2654435761UL + round * 40503UL;
    return round ? (unsigned char)(1 + (x >> 7) % 200) : 0;
}

static long file_place(const data_t *data, long k)
{
    long first = data->offset * data->view->etype->bytes;
    return data->view->displacement + place(data->view->filetype, first + k);
}

/* Index of data byte `k` of the memory in the data of the file. */
static long index_in_file(const data_t *data, long k)
{
    if (strcmp(data->view->representation, "external32"))
        return k;
    const shape_t *memory = data->memory;
    return k / memory->bytes * memory->bytes + memory->mirror[k % memory->bytes];
}

/* Place of data byte `k` in the arena. */
static long memory_place(const data_t *data, long k)
{
    long at = place(data->memory, k);
    return data->is_absolute ? at - (long)(intptr_t)arena : MIDDLE + at;
}

static void *buffer_of(const data_t *data)
{
    if (!data->count && has("strict"))
        return NULL;
    return data->is_absolute ? MPI_BOTTOM : arena + MIDDLE;
}

/* Chooses memory and place of an access of this process. */
static data_t choose(const view_case_t *view, int number, unsigned long *seed)
{
    data_t data = {.view = view};
    if (memory_is_bytes(number) && !strcmp(view->representation, "external32"))
        number = 1;
    data.memory = make_memory(number, view->etype, arena + MIDDLE, seed);
    data.is_absolute = memory_is_absolute(number);
    data.count = (int)between(seed, 0, memory_count_max(number));
    if (memory_is_bytes(number))
        data.count *= (int)view->etype->bytes;
    data.bytes = data.count * data.memory->bytes;
    data.offset = between(seed, 0, 40);
    return data;
}

/* Brings the file pointer that a call uses to the place that was chosen. */
static void set_pointer(const call_t *call, data_t *data, unsigned long *common)
{
    long etypes = data->bytes / data->view->etype->bytes, before = 0;
    if (is_individual(call->form)) {
        OK(MPI_File_seek(call->file, data->offset, MPI_SEEK_SET));
    } else if (is_shared(call->form)) {
        long first = between(common, 0, 30);
        OK(MPI_File_seek_shared(call->file, first, MPI_SEEK_SET));
        MPI_Exscan(&etypes, &before, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        data->offset = first + (test.rank ? before : 0);
    }
}

static void check_pointer(const call_t *call, const data_t *data)
{
    MPI_Offset position = -1, byte = -1;
    long etypes = data->bytes / data->view->etype->bytes;
    if (is_individual(call->form)) {
        OK(MPI_File_get_position(call->file, &position));
        EQUAL(position, data->offset + etypes);
    } else if (is_shared(call->form)) {
        long all = 0;
        MPI_Allreduce(&etypes, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        OK(MPI_File_get_position_shared(call->file, &position));
        long end = data->offset + etypes;
        MPI_Bcast(&end, 1, MPI_LONG, test.size - 1, MPI_COMM_WORLD);
        EQUAL(position, end);
    }
    OK(MPI_File_get_byte_offset(call->file, data->offset + etypes, &byte));
    EQUAL(byte, file_place(data, data->bytes));
}

static void check_status(const data_t *data, const MPI_Status *status, long bytes)
{
    int count = -1, elements = -1;
    MPI_Count large = -1;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    /* ROMIO counts data beyond the end when a view or memory has holes. */
    if (bytes == data->bytes || has("strict"))
        EQUAL(count, bytes);
    if (bytes < data->bytes || !data->memory->bytes)
        return;
    OK(MPI_Get_count(status, data->memory->type, &count));
    EQUAL(count, data->count);
    OK(MPI_Get_elements(status, data->memory->type, &elements));
    EQUAL(elements, data->count * data->memory->elements);
    OK(MPI_Get_elements_x(status, data->memory->type, &large));
    EQUAL(large, elements);
    int cancelled = -1;
    OK(MPI_Test_cancelled(status, &cancelled));
    if (has("strict"))
        EQUAL(cancelled, 0); /* ROMIO does not set it in every status */
}

static void check_arena(void)
{
    test.checks++;
    if (memcmp(arena, expected, ARENA) == 0)
        return;
    for (long i = 0; i < ARENA; i++) {
        char text[120];
        if (arena[i] == expected[i])
            continue;
        snprintf(text, sizeof text, "byte %ld of the memory is %d, not %d", i - MIDDLE,
                 (unsigned char)arena[i], (unsigned char)expected[i]);
        failed(__FILE__, __LINE__, text);
    }
}

static void write_data(call_t *call, data_t *data, unsigned round, unsigned long *common)
{
    MPI_Status status;
    set_pointer(call, data, common);
    memset(arena, UNTOUCHED, ARENA);
    for (long k = 0; k < data->bytes; k++)
        arena[memory_place(data, k)] =
            (char)value(file_place(data, index_in_file(data, k)), round);
    memcpy(expected, arena, ARENA);
    call->is_write = 1;
    call->offset = data->offset;
    call->buffer = buffer_of(data);
    OK(make_call(call, &status));
    check_arena();
    check_status(data, &status, data->bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    check_pointer(call, data);
    for (long k = 0; k < data->bytes; k++) {
        long byte = file_place(data, k);
        CHECK(byte >= 0 && byte < FILE_MAX);
        written[byte] = (unsigned short)round;
        file_bytes = byte + 1 > file_bytes ? byte + 1 : file_bytes;
    }
    MPI_Allreduce(MPI_IN_PLACE, &file_bytes, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, written, (int)file_bytes, MPI_UNSIGNED_SHORT, MPI_MAX,
                  MPI_COMM_WORLD);
    MPI_Offset size = -1;
    publish(call->file);
    OK(MPI_File_get_size(call->file, &size));
    EQUAL(size, file_bytes);
}

static void read_data(call_t *call, data_t *data, unsigned long *common)
{
    MPI_Status status;
    long there = 0;
    set_pointer(call, data, common);
    memset(arena, UNTOUCHED, ARENA);
    memset(expected, UNTOUCHED, ARENA);
    while (there < data->bytes && file_place(data, there) < file_bytes)
        there++;
    if (!strcmp(data->view->representation, "external32"))
        there -= there % (data->view->etype->bytes / data->view->etype->elements);
    call->is_write = 0;
    call->offset = data->offset;
    call->buffer = buffer_of(data);
    OK(make_call(call, &status));
    check_status(data, &status, there);
    for (long k = 0; k < data->bytes; k++) {
        long index = index_in_file(data, k), byte = file_place(data, index);
        /* Memory of elements that the file does not have may hold anything. */
        if (index < there && k < there)
            expected[memory_place(data, k)] = (char)value(byte, written[byte]);
        else
            expected[memory_place(data, k)] = arena[memory_place(data, k)];
    }
    check_arena();
    MPI_Barrier(MPI_COMM_WORLD);
    if (there == data->bytes && !is_shared(call->form))
        check_pointer(call, data);
}

/* Compares the whole file, read without a view, with the model. */
static void check_file(MPI_File file)
{
    static unsigned char bytes[FILE_MAX];
    MPI_Status status;
    int count = -1;
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, bytes, FILE_MAX, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EQUAL(count, file_bytes);
    for (long i = 0; i < file_bytes; i++) {
        char text[120];
        test.checks++;
        if (bytes[i] == value(i, written[i]))
            continue;
        snprintf(text, sizeof text, "byte %ld of the file is %d, not %d (round %d)", i, bytes[i],
                 value(i, written[i]), written[i]);
        failed(__FILE__, __LINE__, text);
    }
}

static void check_view(MPI_File file, const view_case_t *view)
{
    MPI_Offset displacement = -1, byte = -1;
    MPI_Datatype etype, filetype;
    MPI_Aint extent = -1;
    char representation[MPI_MAX_DATAREP_STRING + 1];
    OK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
    EQUAL(displacement, view->displacement);
    CHECK(!strcmp(representation, view->representation)
          || !strcmp(view->representation, "internal"));
    int bytes = -1;
    OK(MPI_Type_size(etype, &bytes));
    EQUAL(bytes, view->etype->bytes);
    OK(MPI_Type_size(filetype, &bytes));
    EQUAL(bytes, view->filetype->bytes);
    MPI_Datatype types[] = {etype, filetype};
    for (int i = 0; i < 2; i++) {
        int integers, addresses, count, combiner;
        OK(MPI_Type_get_envelope(types[i], &integers, &addresses, &count, &combiner));
        if (combiner != MPI_COMBINER_NAMED)
            OK(MPI_Type_free(&types[i]));
    }
    OK(MPI_File_get_type_extent(file, view->filetype->type, &extent));
    EQUAL(extent, view->filetype->extent);
#if MPI_VERSION >= 4
    MPI_Count large = -1;
    OK(MPI_File_get_type_extent_c(file, view->filetype->type, &large));
    EQUAL(large, view->filetype->extent);
#endif
    for (long etypes = 0; etypes < 50; etypes += 7) {
        OK(MPI_File_get_byte_offset(file, etypes, &byte));
        EQUAL(byte, view->displacement + place(view->filetype, etypes * view->etype->bytes));
    }
    OK(MPI_File_get_position(file, &byte));
    EQUAL(byte, 0);
}

/* Changes the size of the file: cut or extended. */
static void resize(MPI_File file, unsigned long *common)
{
    long size = between(common, 0, file_bytes + 500);
    OK(MPI_File_set_size(file, size));
    for (long i = size; i < file_bytes; i++)
        written[i] = 0;
    file_bytes = size;
}

/* Leaves out calls that the library under test cannot do. */
static form_t usable(form_t form)
{
    if (form == SHARED || form == ISHARED)
        return ALL; /* these are tested apart: their order is not determined */
    if (is_shared(form) && !has("counters"))
        return AT_ALL;
    return form;
}

static void run_round(MPI_File file, unsigned round, unsigned long *common, unsigned long *mine)
{
    call_t call = {.file = file};
    int representation = (int)between(common, 0, 5), is_portable = representation == 5;
    int etype = (int)between(common, 0, is_portable ? PORTABLE_ETYPES - 1 : ETYPES - 1);
    int filetype = (int)(round % FILETYPES), memory = (int)(round / 2 % MEMORIES);
    long displacement = between(common, 0, 1) ? between(common, 0, 300) : 0;
    call.form = usable((form_t)(round % FORM_COUNT));
    call.is_large = round / FORM_COUNT % 2;
    if (!is_shared(call.form)) {
        filetype = between(mine, 0, 1) ? filetype : (int)between(mine, 0, FILETYPES - 1);
        displacement += between(mine, 0, 1) ? between(mine, 0, 20) : 0;
    }
    memory = between(mine, 0, 1) ? memory : (int)between(mine, 0, MEMORIES - 1);
    view_case_t view = {.displacement = displacement,
                        .etype = make_etype(etype),
                        .representation = is_portable           ? "external32"
                                          : representation == 4 ? "internal"
                                                                : "native"};
    unsigned long irregular = *common;
    /* Processes that share a file pointer have equal views. */
    view.filetype = make_filetype(filetype, view.etype, is_shared(call.form) ? 0 : test.rank,
                                  test.size, is_shared(call.form) ? &irregular : mine);
    if (!has("external32"))
        view.representation = "native";
    CONTEXT("round %u: %s, etype %d, filetype %d, %s, memory %d", round, call_name(&call), etype,
            filetype, view.representation, memory);
    OK(MPI_File_set_view(file, displacement, view.etype->type, view.filetype->type,
                         view.representation, MPI_INFO_NULL));
    check_view(file, &view);
    data_t data = choose(&view, memory, mine);
    call.type = data.memory->type;
    call.count = data.count;
    write_data(&call, &data, round, common);
    data = choose(&view, (int)between(mine, 0, MEMORIES - 1), mine);
    call.type = data.memory->type;
    call.count = data.count;
    call.form = usable((form_t)(round / 3 % FORM_COUNT));
    if (is_shared(call.form) && !is_shared((form_t)(round % FORM_COUNT)))
        call.form = ALL;
    CONTEXT("round %u: %s, etype %d, filetype %d, %s", round, call_name(&call), etype, filetype,
            view.representation);
    read_data(&call, &data, common);
    check_file(file);
    if (round % 16 == 15 && has("strict"))
        resize(file, common);
    shapes_free();
}

int main(int count, char **arguments)
{
    MPI_File file;
    begin(count, arguments, "conformance");
    unsigned long common = test.seed, mine = test.seed * 1000003 + (unsigned long)test.rank + 1;
    remove_file(test.file);
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &file));
    if (!has("strict")) {
        /* Some MPI libraries leave anything between the first data of a file. */
        static char zeros[FILE_MAX];
        OK(MPI_File_write_at_all(file, 0, zeros, FILE_MAX, MPI_BYTE, MPI_STATUS_IGNORE));
        file_bytes = FILE_MAX;
    }
    int rounds = test.rounds ? test.rounds : ROUNDS;
    for (int round = 1; round <= rounds; round++)
        run_round(file, (unsigned)round, &common, &mine);
    OK(MPI_File_close(&file));
    if (has("counters"))
        check_shared_pointers();
    remove_file(test.file);
    return end();
}
