#include "datatype_cases.h"

#include "datatype_record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define GIB ((uint64_t)1 << 30)

static void cyclic_array(void)
{
    int sizes[1] = {(int)(4 * GIB / 8)}, rules[1] = {MPI_DISTRIBUTE_CYCLIC};
    int arguments[1] = {1}, grid[1] = {4};
    MPI_Datatype type;
    MPI_Type_create_darray(4, 2, 1, sizes, rules, arguments, grid, MPI_ORDER_C, MPI_DOUBLE, &type);
    layout_t *layout = decode(type, NATIVE);
    layout_facts_t facts = layout_facts(layout);
    CHECK(facts.bytes == GIB && facts.extent == (int64_t)(4 * GIB) && facts.true_start == 16);
    CHECK(facts.is_ascending && facts.is_repeatable && !facts.is_dense);
    unisono_part_t *part = NULL;
    int64_t base;
    uint64_t bytes = GIB - 5;
    CHECK(layout_part(layout, 100, 3, bytes, NULL, &base, &part) == 0 && base == 0);
    CHECK(part->nest_count <= 3 && record_description_bytes(part) < 65536);
    uint64_t all = 0;
    for (size_t i = 0; i < part->nest_count; i++) {
        uint64_t product = part->nests[i].bytes;
        for (size_t k = 0; k < part->nests[i].level_count; k++)
            product *= part->nests[i].levels[k].count;
        all += product;
    }
    CHECK(all == bytes && part->nests[0].file_offset == 119);
    unisono_part_free(part);
    CHECK(layout_file_offset(layout, GIB) == 4 * GIB + 16);
    CHECK(layout_data_before(layout, 0, 4 * GIB + 17) == GIB + 1);
    CHECK(layout_is_simple(layout, layout));
    CHECK(layout_part(layout, 0, 0, 7 * GIB, layout, &base, &part) == 0 && base == 16);
    CHECK(part->nest_count == 1 && part->nests[0].level_count == 1);
    unisono_part_free(part);
    layout_release(layout);
    MPI_Type_free(&type);
}

/* Two dimensions with remainders, and an access that begins and ends anywhere. */
static void block_cyclic_array(void)
{
    int sizes[2] = {100003, 70001}, grid[2] = {3, 5}, arguments[2] = {7, 11};
    int rules[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
    MPI_Datatype type;
    for (int rank = 0; rank < 15; rank++) {
        MPI_Type_create_darray(15, rank, 2, sizes, rules, arguments, grid, MPI_ORDER_FORTRAN,
                               MPI_DOUBLE, &type);
        layout_t *layout = decode(type, NATIVE);
        uint64_t bytes = layout_facts(layout).bytes;
        unisono_part_t *part = NULL;
        int64_t base;
        CHECK(layout_part(layout, 0, 12345, bytes - 99999, NULL, &base, &part) == 0);
        CHECK(part->nest_count <= 32 && record_description_bytes(part) < 65536);
        unisono_part_free(part);
        layout_release(layout);
        MPI_Type_free(&type);
    }
}

static void subarray_3d(void)
{
    int sizes[3] = {2000, 3000, 4000}, lengths[3] = {500, 600, 700}, starts[3] = {10, 20, 30};
    int ghost_sizes[3] = {502, 602, 702}, ghost_starts[3] = {1, 1, 1};
    MPI_Datatype type, ghosts;
    MPI_Type_create_subarray(3, sizes, lengths, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_create_subarray(3, ghost_sizes, lengths, ghost_starts, MPI_ORDER_C, MPI_DOUBLE,
                             &ghosts);
    layout_t *file = decode(type, NATIVE), *memory = decode(ghosts, NATIVE);
    uint64_t bytes = layout_facts(file).bytes, row = 700 * 8;
    CHECK(bytes == (uint64_t)500 * 600 * row);
    unisono_part_t *part = NULL;
    int64_t base;
    CHECK(layout_part(file, 0, 0, bytes, NULL, &base, &part) == 0);
    CHECK(part->nest_count == 1 && part->nests[0].level_count == 2 && part->nests[0].bytes == row);
    unisono_part_free(part);
    CHECK(layout_part(file, 0, 8, bytes - 16, NULL, &base, &part) == 0);
    CHECK(part->nest_count <= 5);
    unisono_part_free(part);
    CHECK(layout_is_simple(file, memory));
    CHECK(layout_part(file, 0, 0, bytes, memory, &base, &part) == 0);
    CHECK(base == ((602 + 1) * 702 + 1) * 8 && part->nest_count == 1);
    CHECK(part->nests[0].levels[1].memory_stride == 602 * 702 * 8);
    unisono_part_free(part);
    CHECK(layout_file_offset(file, row) == ((10 * 3000 + 21) * (uint64_t)4000 + 30) * 8);
    layout_release(file);
    layout_release(memory);
    MPI_Type_free(&type);
    MPI_Type_free(&ghosts);
}

static void structure_with_holes(void)
{
    struct record {
        char tag;
        int number;
        double value;
        short end;
    };
    int lengths[4] = {1, 1, 1, 1};
    MPI_Aint places[4] = {offsetof(struct record, tag), offsetof(struct record, number),
                          offsetof(struct record, value), offsetof(struct record, end)};
    MPI_Datatype types[4] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT}, plain, type;
    MPI_Type_create_struct(4, lengths, places, types, &plain);
    MPI_Type_create_resized(plain, 0, sizeof(struct record), &type);
    layout_t *layout = decode(type, NATIVE), *packed = decode(type, EXTERNAL32);
    layout_t *bytes = decode(MPI_BYTE, NATIVE);
    CHECK(layout_facts(layout).bytes == 15 && layout_facts(packed).bytes == 15);
    CHECK(layout_facts(layout).extent == sizeof(struct record));
    unisono_part_t *part = NULL;
    int64_t base;
    CHECK(layout_is_simple(bytes, layout));
    CHECK(layout_part(bytes, 7, 0, 15000000000, layout, &base, &part) == 0 && base == 0);
    CHECK(part->nest_count == 2 && part->nests[0].levels[0].count == 1000000000);
    unisono_part_free(part);
    layout_release(layout);
    layout_release(packed);
    layout_release(bytes);
    MPI_Type_free(&plain);
    MPI_Type_free(&type);
}

static void large_counts(void)
{
    MPI_Datatype block, type, all;
    MPI_Type_contiguous(3000, MPI_BYTE, &block);
    /* 3e9 bytes, of which each 3000 are followed by as many others; that 1000 times. */
    MPI_Type_create_hvector(1000000, 1, 6000, block, &type);
    MPI_Type_create_hvector(1000, 1, 7000000000, type, &all);
    layout_t *layout = decode(all, NATIVE), *bytes = decode(MPI_BYTE, NATIVE);
    layout_facts_t facts = layout_facts(layout);
    CHECK(facts.bytes == 3000000000000 && facts.true_end == 999 * 7000000000 + 5999997000);
    unisono_part_t *part = NULL;
    int64_t base;
    CHECK(layout_part(layout, (uint64_t)1 << 61, 1, facts.bytes - 1, NULL, &base, &part) == 0);
    CHECK(part->nest_count == 3 && part->nests[0].file_offset == ((uint64_t)1 << 61) + 1);
    unisono_part_free(part);
    /* The file is dense up to byte 2^62 - 1, and memory is not touched. */
    CHECK(layout_part(bytes, ((uint64_t)1 << 62) - facts.bytes - 1, 0, facts.bytes, layout, &base,
                      &part) == 0);
    CHECK(part->nest_count == 1 && part->nests[0].level_count == 2);
    unisono_part_free(part);
    CHECK(layout_part(bytes, ((uint64_t)1 << 62) - 10, 0, 20, NULL, &base, &part) == -EOVERFLOW);
    CHECK(layout_part(bytes, UINT64_MAX, 0, 20, NULL, &base, &part) == -EOVERFLOW);
    CHECK(layout_part(bytes, 0, UINT64_MAX, 20, NULL, &base, &part) == -EOVERFLOW);
    CHECK(layout_part(layout, 0, (uint64_t)1 << 61, 20, NULL, &base, &part) == -EOVERFLOW);
    CHECK(layout_part(layout, 0, 0, (uint64_t)1 << 61, NULL, &base, &part) == -EOVERFLOW);
    CHECK(layout_part(bytes, UINT64_MAX, UINT64_MAX, 0, NULL, &base, &part) == 0 && part);
    unisono_part_free(part);
    layout_release(layout);
    layout_release(bytes);
    MPI_Type_free(&all);
#if MPI_VERSION >= 4
    MPI_Type_contiguous_c(3000000000, MPI_INT, &all);
    layout = decode(all, NATIVE);
    CHECK(layout_facts(layout).bytes == 12000000000 && layout_facts(layout).is_dense);
    layout_release(layout);
    MPI_Type_free(&all);
    MPI_Type_create_hvector_c(3000000000, 1, 4000000000, MPI_INT, &all);
    CHECK(layout_decode(all, NATIVE, &layout) == -EOVERFLOW && !layout);
    MPI_Type_free(&all);
#endif
    MPI_Type_free(&type);
    MPI_Type_free(&block);
}

static void irregular_types(void)
{
    enum { COUNT = 100000 };
    int *displacements = malloc(COUNT * sizeof *displacements), place = 0;
    random_seed = 5;
    for (int i = 0; i < COUNT; i++) {
        displacements[i] = place;
        place += (int)between(2, 50);
    }
    MPI_Datatype type, rows, reversed;
    MPI_Type_create_indexed_block(COUNT, 1, displacements, MPI_DOUBLE, &type);
    layout_t *layout = decode(type, NATIVE), *bytes = decode(MPI_BYTE, NATIVE);
    unisono_part_t *part = NULL;
    int64_t base;
    CHECK(layout_part(layout, 0, 0, COUNT * 8, NULL, &base, &part) == 0);
    CHECK(part->piece_count == COUNT);
    unisono_part_free(part);
    CHECK(layout_part(layout, 0, 0, COUNT * 8 * 11, NULL, &base, &part) == -E2BIG && !part);
    CHECK(layout_is_simple(layout, bytes) && !layout_is_simple(bytes, layout));
    CHECK(layout_is_simple(layout, NULL));
    layout_release(layout);
    MPI_Type_free(&type);
    /* The elements of a matrix, listed one by one, and rows of another, backwards in memory. */
    for (int i = 0; i < COUNT; i++)
        displacements[i] = i / 100 * 5000 + i % 100 / 10 * 70 + i % 10 * 3;
    MPI_Type_create_indexed_block(COUNT, 1, displacements, MPI_DOUBLE, &type);
    layout = decode(type, NATIVE);
    CHECK(layout_part(layout, 0, 0, COUNT * 8, NULL, &base, &part) == 0);
    CHECK(part->nest_count == 1 && part->nests[0].level_count == 3);
    unisono_part_free(part);
    MPI_Type_vector(100, 4, -9, MPI_DOUBLE, &rows);
    layout_t *backwards = decode(rows, NATIVE);
    CHECK(layout_part(bytes, 50, 0, 3200, backwards, &base, &part) == 0 && base == -99 * 72);
    CHECK(part->piece_count == 100 || part->nest_count == 100);
    unisono_part_free(part);
    layout_release(backwards);
    MPI_Type_vector(1000000, 1, -2, MPI_DOUBLE, &reversed);
    backwards = decode(reversed, NATIVE);
    CHECK(!layout_is_simple(bytes, backwards));
    layout_release(backwards);
    layout_release(layout);
    layout_release(bytes);
    MPI_Type_free(&type);
    MPI_Type_free(&rows);
    MPI_Type_free(&reversed);
    free(displacements);
}

/* A matrix is transposed between the file and memory: a column type with the extent of a number. */
static void transposition(void)
{
    MPI_Datatype column, type;
    MPI_Type_vector(3000, 1, 2000, MPI_FLOAT, &column);
    MPI_Type_create_resized(column, 0, 4, &type);
    layout_t *layout = decode(type, NATIVE), *bytes = decode(MPI_BYTE, NATIVE);
    CHECK(layout_facts(layout).is_ascending && !layout_facts(layout).is_repeatable);
    unisono_part_t *part = NULL;
    int64_t base;
    CHECK(layout_is_simple(bytes, layout));
    CHECK(layout_part(bytes, 0, 0, 3000 * 2000 * 4, layout, &base, &part) == 0);
    CHECK(part->nest_count == 1 && part->nests[0].level_count == 2);
    CHECK(part->nests[0].levels[1].memory_stride == 4);
    unisono_part_free(part);
    /* As a filetype too: columns interleave, and have one nest whose levels change their order. */
    CHECK(layout_part(layout, 0, 0, 3000 * 2000 * 4, NULL, &base, &part) == 0);
    CHECK(part->nest_count == 1 && part->nests[0].level_count == 2);
    CHECK(part->nests[0].levels[0].file_stride == 4);
    CHECK(layout_repeats(layout, 0, 12000 * 20) == 0);
    CHECK(layout_repeats(layout, 0, 12000 * 2000 + 4) == 1);
    CHECK(layout_repeats(layout, 8, 12000 * 2000 - 4) == 0);
    unisono_part_free(part);
    layout_release(layout);
    layout_release(bytes);
    MPI_Type_free(&column);
    MPI_Type_free(&type);
}

/* More levels than a part may have, and more constructors than a layout may have. */
static void deep_types(void)
{
    MPI_Datatype type, outer;
    MPI_Type_dup(MPI_INT, &type);
    for (int i = 0; i < 20; i++) {
        MPI_Type_create_hvector(2, 1, (MPI_Aint)5 << 2 * i, type, &outer);
        MPI_Type_free(&type);
        type = outer;
    }
    layout_t *layout = decode(type, NATIVE);
    unisono_part_t *part = NULL;
    int64_t base;
    CHECK(layout_facts(layout).bytes == 4 << 20 && layout_facts(layout).is_ascending);
    CHECK(layout_part(layout, 0, 0, 4 << 20, NULL, &base, &part) == 0);
    CHECK(part->nest_count == 16 && part->nests[0].level_count == 16);
    unisono_part_free(part);
    layout_release(layout);
    for (int i = 0; i < 600; i++) {
        MPI_Type_dup(type, &outer);
        MPI_Type_free(&type);
        type = outer;
    }
    CHECK(layout_decode(type, NATIVE, &layout) == -E2BIG && !layout);
    MPI_Type_free(&type);
    CHECK(layout_decode(MPI_DATATYPE_NULL, NATIVE, &layout) == -EINVAL && !layout);
}

/* Absolute addresses, counted from MPI_BOTTOM, and instances that MPI_BOTTOM + base begins. */
static void absolute_addresses(void)
{
    static double numbers[10];
    static int counts[3] = {7, 8, 9};
    int lengths[2] = {3, 10};
    MPI_Aint places[2];
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
    MPI_Get_address(counts, &places[0]);
    MPI_Get_address(numbers, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &type);
    layout_t *layout = decode(type, NATIVE), *bytes = decode(MPI_BYTE, NATIVE);
    unsigned char packed[92];
    layout_pack(layout, MPI_BOTTOM, 0, sizeof packed, packed);
    CHECK(!memcmp(packed, counts, sizeof counts));
    packed[12 + 8 * 9] = 77;
    layout_unpack(layout, MPI_BOTTOM, 12, 80, packed + 12);
    CHECK(*(unsigned char *)&numbers[9] == 77);
    unisono_part_t *part = NULL;
    int64_t base, low = places[0] < places[1] ? places[0] : places[1];
    CHECK(layout_part(bytes, 0, 0, sizeof packed, layout, &base, &part) == 0);
    CHECK(base == low && part->nest_count == 2);
    unisono_part_free(part);
    layout_release(layout_keep(layout));
    layout_release(layout);
    layout_release(bytes);
    layout_release(NULL);
    MPI_Type_free(&type);
}

static void overlapping_memory(void)
{
    MPI_Datatype type;
    MPI_Type_create_hvector(100, 2, 4, MPI_INT, &type);
    layout_t *layout = decode(type, NATIVE), *bytes = decode(MPI_BYTE, NATIVE);
    unisono_part_t *part = NULL;
    int64_t base;
    CHECK(!layout_facts(layout).is_ascending && layout_facts(layout).bytes == 800);
    CHECK(layout_part(bytes, 0, 0, 800, layout, &base, &part) == 0 && part->nest_count == 2);
    unisono_part_free(part);
    /* In the file it may be read: numbers at even and at odd places. */
    CHECK(layout_part(layout, 0, 0, 800, NULL, &base, &part) == 0 && part->nest_count == 2);
    unisono_part_free(part);
    layout_release(layout);
    layout_release(bytes);
    MPI_Type_free(&type);
}

/* The table of the standard, and the pairs that are made of its types. */
static const struct {
    MPI_Datatype type;
    uint64_t bytes;
} external_rows[] = {
    {MPI_PACKED, 1},
    {MPI_BYTE, 1},
    {MPI_CHAR, 1},
    {MPI_UNSIGNED_CHAR, 1},
    {MPI_SIGNED_CHAR, 1},
    {MPI_WCHAR, 2},
    {MPI_SHORT, 2},
    {MPI_UNSIGNED_SHORT, 2},
    {MPI_INT, 4},
    {MPI_LONG, 4},
    {MPI_UNSIGNED, 4},
    {MPI_UNSIGNED_LONG, 4},
    {MPI_LONG_LONG_INT, 8},
    {MPI_UNSIGNED_LONG_LONG, 8},
    {MPI_FLOAT, 4},
    {MPI_DOUBLE, 8},
    {MPI_LONG_DOUBLE, 16},
    {MPI_C_BOOL, 1},
    {MPI_INT8_T, 1},
    {MPI_INT16_T, 2},
    {MPI_INT32_T, 4},
    {MPI_INT64_T, 8},
    {MPI_UINT8_T, 1},
    {MPI_UINT16_T, 2},
    {MPI_UINT32_T, 4},
    {MPI_UINT64_T, 8},
    {MPI_AINT, 8},
    {MPI_COUNT, 8},
    {MPI_OFFSET, 8},
    {MPI_C_COMPLEX, 8},
    {MPI_C_FLOAT_COMPLEX, 8},
    {MPI_C_DOUBLE_COMPLEX, 16},
    {MPI_C_LONG_DOUBLE_COMPLEX, 32},
    {MPI_CHARACTER, 1},
    {MPI_LOGICAL, 4},
    {MPI_INTEGER, 4},
    {MPI_REAL, 4},
    {MPI_DOUBLE_PRECISION, 8},
    {MPI_COMPLEX, 8},
    {MPI_DOUBLE_COMPLEX, 16},
    {MPI_CXX_BOOL, 1},
    {MPI_CXX_FLOAT_COMPLEX, 8},
    {MPI_CXX_DOUBLE_COMPLEX, 16},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, 32},
    {MPI_INTEGER1, 1},
    {MPI_INTEGER2, 2},
    {MPI_INTEGER4, 4},
    {MPI_INTEGER8, 8},
    {MPI_REAL4, 4},
    {MPI_REAL8, 8},
    {MPI_REAL16, 16},
    {MPI_COMPLEX8, 8},
    {MPI_COMPLEX16, 16},
    {MPI_COMPLEX32, 32},
    {MPI_FLOAT_INT, 8},
    {MPI_DOUBLE_INT, 12},
    {MPI_LONG_INT, 8},
    {MPI_2INT, 8},
    {MPI_SHORT_INT, 6},
    {MPI_LONG_DOUBLE_INT, 20},
    {MPI_2REAL, 8},
    {MPI_2DOUBLE_PRECISION, 16},
    {MPI_2INTEGER, 8},
};

static void external_sizes(void)
{
    for (size_t i = 0; i < sizeof external_rows / sizeof *external_rows; i++) {
        if (external_rows[i].type == MPI_DATATYPE_NULL)
            continue;
        layout_t *layout = decode(external_rows[i].type, EXTERNAL32);
        layout_facts_t facts = layout_facts(layout);
        CHECK(facts.bytes == external_rows[i].bytes);
        CHECK(facts.extent == (int64_t)external_rows[i].bytes && facts.is_dense);
        layout_release(layout);
    }
}

static void check_external_size(MPI_Datatype type, uint64_t bytes)
{
    layout_t *layout = decode(type, EXTERNAL32);
    CHECK(layout_facts(layout).bytes == bytes);
    layout_release(layout);
}

static void fortran_sizes(void)
{
    const struct {
        int precision, range;
        uint64_t bytes;
    } reals[] = {{6, 37, 4}, {6, MPI_UNDEFINED, 4}, {7, 30, 8}, {MPI_UNDEFINED, 300, 8}};
    const struct {
        int range;
        uint64_t bytes;
    } integers[] = {{2, 1}, {4, 2}, {9, 4}, {18, 8}};
    MPI_Datatype type;
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        MPI_Type_create_f90_real(reals[i].precision, reals[i].range, &type);
        check_external_size(type, reals[i].bytes);
        MPI_Type_create_f90_complex(reals[i].precision, reals[i].range, &type);
        check_external_size(type, 2 * reals[i].bytes);
    }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        MPI_Type_create_f90_integer(integers[i].range, &type);
        check_external_size(type, integers[i].bytes);
    }
}

/* The example of mpi/src/datatype/README.md, in doubles: the file has 2 of every 5, the memory 3 of
 * every 4. The part needs four nested strides, however long the call. */
static void readme_example(void)
{
    static const uint64_t files[4] = {0, 40, 48, 80}, memories[4] = {0, 16, 32, 40};
    static const uint64_t lengths[4] = {16, 8, 8, 16};
    MPI_Datatype two, three, filetype, type;
    MPI_Type_contiguous(2, MPI_DOUBLE, &two);
    MPI_Type_contiguous(3, MPI_DOUBLE, &three);
    MPI_Type_create_resized(two, 0, 40, &filetype);
    MPI_Type_create_resized(three, 0, 32, &type);
    layout_t *file = decode(filetype, NATIVE), *memory = decode(type, NATIVE);
    for (uint64_t count = 4; count <= 4000; count *= 1000) {
        unisono_part_t *part = NULL;
        int64_t base;
        CHECK(layout_part(file, 0, 0, count * 24, memory, &base, &part) == 0 && base == 0);
        CHECK(part->nest_count == 4);
        for (size_t i = 0; i < 4; i++) {
            const recorded_nest_t *nest = &part->nests[i];
            CHECK(nest->file_offset == files[i] && nest->memory_offset == memories[i]);
            CHECK(nest->bytes == lengths[i] && nest->level_count == 1);
            CHECK(nest->levels[0].count == count / 2 && nest->levels[0].file_stride == 120);
            CHECK(nest->levels[0].memory_stride == 64);
        }
        unisono_part_free(part);
    }
    layout_release(file);
    layout_release(memory);
    MPI_Type_free(&two);
    MPI_Type_free(&three);
    MPI_Type_free(&filetype);
    MPI_Type_free(&type);
}

const fixed_case_t fixed_cases[] = {
    {"example of the README", readme_example},
    {"cyclic array of 4 GiB", cyclic_array},
    {"block-cyclic array with remainders", block_cyclic_array},
    {"3-D subarray", subarray_3d},
    {"structure with holes", structure_with_holes},
    {"large counts", large_counts},
    {"irregular types", irregular_types},
    {"transposition", transposition},
    {"deep types", deep_types},
    {"absolute addresses", absolute_addresses},
    {"overlapping memory", overlapping_memory},
    {"external32 sizes", external_sizes},
    {"external32 sizes of Fortran kinds", fortran_sizes},
};

const size_t fixed_case_count = sizeof fixed_cases / sizeof *fixed_cases;
