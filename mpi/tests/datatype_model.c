#include "datatype_model.h"

#include <string.h>

uint64_t checks, random_seed = 1, case_seed;
unsigned long model_counts[32];

void check_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: %s\nrepeat with: datatype %llu\n", file, line, condition,
            (unsigned long long)case_seed);
    abort();
}

static uint64_t next_random(void)
{
    uint64_t mixed = random_seed += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(next_random() % (uint64_t)(high - low + 1));
}

static int chance(int percent)
{
    return between(1, 100) <= percent;
}

/* A count from 0 to `most`, which is seldom 0. */
static int count_to(int most)
{
    return chance(6) ? 0 : (int)between(1, most);
}

/* ---- Typemaps ------------------------------------------------------------------------------ */

static void append(typemap_t *map, entry_t entry)
{
    map->entries = realloc(map->entries, (map->count + 1) * sizeof entry);
    map->entries[map->count++] = entry;
}

static void append_copy(typemap_t *map, const typemap_t *part, int64_t by)
{
    for (size_t i = 0; i < part->count; i++) {
        entry_t entry = part->entries[i];
        entry.offset += by;
        append(map, entry);
    }
}

/* Sets what follows from the entries. is_native: the bounds come from MPI. */
static void measure(typemap_t *map, MPI_Datatype type, int is_native)
{
    int64_t low = INT64_MAX, high = INT64_MIN, set_low = INT64_MAX, set_high = INT64_MIN;
    int64_t end = INT64_MIN;
    map->bytes = 0;
    map->is_ascending = 1;
    for (size_t i = 0; i < map->count; i++) {
        const entry_t *entry = &map->entries[i];
        if (entry->kind == LOWER)
            set_low = entry->offset < set_low ? entry->offset : set_low;
        if (entry->kind == UPPER)
            set_high = entry->offset > set_high ? entry->offset : set_high;
        if (entry->kind != DATA)
            continue;
        map->is_ascending &= entry->offset >= end;
        end = entry->offset + entry->bytes;
        low = entry->offset < low ? entry->offset : low;
        high = end > high ? end : high;
        map->bytes += entry->bytes;
    }
    map->start = map->bytes ? low : 0;
    map->end = map->bytes ? high : 0;
    map->low = set_low != INT64_MAX ? set_low : map->start;
    map->extent = (set_high != INT64_MIN ? set_high : map->end) - map->low;
    if (is_native) {
        MPI_Count from_mpi[2];
        MPI_Type_get_extent_x(type, &from_mpi[0], &from_mpi[1]);
        map->low = from_mpi[0];
        map->extent = from_mpi[1];
    }
    map->is_repeatable =
        map->is_ascending && (!map->bytes || map->extent >= map->end - map->start);
}

int64_t typemap_offset(const typemap_t *map, int64_t position)
{
    int64_t instance = position / map->bytes, left = position % map->bytes;
    for (size_t i = 0;; i++) {
        const entry_t *entry = &map->entries[i];
        if (entry->kind != DATA)
            continue;
        if (left < entry->bytes)
            return instance * map->extent + entry->offset + left;
        left -= entry->bytes;
    }
}

/* ---- Models -------------------------------------------------------------------------------- */

void model_free(model_t *model)
{
    int integers, addresses, types, combiner = MPI_COMBINER_DUP;
    if (model->native.count || model->type != MPI_DATATYPE_NULL) {
#if MPI_VERSION >= 4
        MPI_Count many[4];
        MPI_Type_get_envelope_c(model->type, &many[0], &many[1], &many[2], &many[3], &combiner);
        (void)integers, (void)addresses, (void)types;
#else
        MPI_Type_get_envelope(model->type, &integers, &addresses, &types, &combiner);
#endif
    }
    if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL
        && combiner != MPI_COMBINER_F90_INTEGER)
        MPI_Type_free(&model->type);
    free(model->native.entries);
    free(model->external.entries);
}

static model_t finish(model_t model, int has_unusual, int combiner)
{
    measure(&model.native, model.type, 1);
    measure(&model.external, model.type, 0);
    model.is_unusual = has_unusual || !model.native.bytes || !model.native.is_repeatable;
    model_counts[combiner]++;
    return model;
}

static void add_basic(model_t *model, int64_t native_offset, int64_t native, int64_t external,
                      MPI_Datatype basic)
{
    int64_t external_offset = 0;
    for (size_t i = 0; i < model->external.count; i++)
        external_offset += model->external.entries[i].bytes;
    append(&model->native, (entry_t){DATA, native_offset, native, basic});
    append(&model->external, (entry_t){DATA, external_offset, external, basic});
}

static model_t basic_model(void)
{
    static const struct {
        MPI_Datatype type;
        int native, external;
    } rows[] = {
        {MPI_CHAR, 1, 1},   {MPI_BYTE, 1, 1},        {MPI_SHORT, 2, 2},
        {MPI_INT, 4, 4},    {MPI_DOUBLE, 8, 8},      {MPI_LONG, sizeof(long), 4},
        {MPI_FLOAT, 4, 4},  {MPI_LONG_LONG, 8, 8},   {MPI_WCHAR, sizeof(wchar_t), 2},
        {MPI_C_BOOL, 1, 1}, {MPI_UNSIGNED, 4, 4},    {MPI_C_DOUBLE_COMPLEX, 16, 16},
        {MPI_INT16_T, 2, 2}, {MPI_INTEGER, 4, 4},    {MPI_LONG_DOUBLE, sizeof(long double), 16},
    };
    model_t model = {.type = MPI_DATATYPE_NULL};
    int which = (int)between(0, 20);
    if (which == 0) {
        model.type = MPI_DOUBLE_INT;
        add_basic(&model, 0, 8, 8, MPI_DOUBLE);
        add_basic(&model, 8, 4, 4, MPI_INT);
    } else if (which == 1) {
        model.type = MPI_SHORT_INT;
        add_basic(&model, 0, 2, 2, MPI_SHORT);
        add_basic(&model, 4, 4, 4, MPI_INT);
    } else if (which == 2) {
        model.type = MPI_2INT;
        add_basic(&model, 0, 4, 4, MPI_INT);
        add_basic(&model, 4, 4, 4, MPI_INT);
    } else if (which == 3) {
        MPI_Type_create_f90_real(10, MPI_UNDEFINED, &model.type);
        add_basic(&model, 0, 8, 8, model.type);
    } else if (which == 4) {
        MPI_Type_create_f90_integer(4, &model.type);
        add_basic(&model, 0, 2, 2, model.type);
    } else {
        size_t row = (size_t)between(0, (int64_t)(sizeof rows / sizeof *rows) - 1);
        model.type = rows[row].type;
        add_basic(&model, 0, rows[row].native, rows[row].external, model.type);
    }
    return finish(model, 0, MPI_COMBINER_NAMED);
}

#define BLOCKS_MAX 6

/* Blocks of a constructor; in extents of the old type, or in bytes. */
typedef struct blocks {
    int count;
    int lengths[BLOCKS_MAX], displacements[BLOCKS_MAX];
    MPI_Aint addresses[BLOCKS_MAX];
    MPI_Count large_lengths[BLOCKS_MAX], large_displacements[BLOCKS_MAX];
} blocks_t;

static int64_t span_of(const typemap_t *map)
{
    return map->end - map->start;
}

/* Random blocks. for_file: ascending. unit: bytes of a displacement of 1. extent, span: of the old
 * type; its data lie in `span` bytes. */
static blocks_t random_blocks(int for_file, int equal_lengths, int64_t unit, int64_t extent,
                              int64_t span)
{
    blocks_t blocks = {.count = count_to(BLOCKS_MAX)};
    int64_t place = between(0, 2), step = between(0, 3);
    int regular = chance(40), length = count_to(3);
    unit = unit < 1 ? 1 : unit;
    for (int i = 0; i < blocks.count; i++) {
        blocks.lengths[i] = equal_lengths || regular ? length : count_to(3);
        int64_t reach = (blocks.lengths[i] - 1) * extent + span;
        reach = reach < 0 ? span : reach;
        blocks.displacements[i] = (int)(for_file ? place : between(-8, 8) * (unit == 1 ? 5 : 1));
        if (!for_file && regular)
            blocks.displacements[i] = (int)(place + i * (step - 1) * (unit == 1 ? 9 : 1));
        place += (reach + unit - 1) / unit + (regular ? step : between(0, 3));
        blocks.large_lengths[i] = blocks.lengths[i];
        blocks.large_displacements[i] = blocks.addresses[i] = blocks.displacements[i];
    }
    return blocks;
}

static void copy_blocks(model_t *model, const model_t *old, const blocks_t *blocks, int in_bytes)
{
    for (int i = 0; i < blocks->count; i++) {
        for (int k = 0; k < blocks->lengths[i]; k++) {
            int64_t at = blocks->displacements[i];
            append_copy(&model->native, &old->native,
                        (in_bytes ? at : at * old->native.extent) + k * old->native.extent);
            append_copy(&model->external, &old->external,
                        (in_bytes ? at : at * old->external.extent) + k * old->external.extent);
        }
    }
}

static int is_large(void)
{
#if MPI_VERSION >= 4
    return chance(30);
#else
    return 0;
#endif
}

/* Calls the form of a constructor with small or with large counts. */
#if MPI_VERSION >= 4
#define MAKE(large, small_call, large_call) ((large) ? (large_call) : (small_call))
#else
#define MAKE(large, small_call, large_call) ((void)(large), (small_call))
#endif

static model_t vector_model(const model_t *old, int for_file)
{
    model_t model = {.type = MPI_DATATYPE_NULL};
    int in_bytes = chance(50), count = count_to(4), length = count_to(3);
    int64_t extent = old->native.extent, unit = in_bytes || extent < 1 ? 1 : extent;
    int64_t reach = (length - 1) * extent + span_of(&old->native);
    int stride = (int)((reach + unit - 1) / unit + between(0, 3));
    if (!for_file)
        stride = (int)between(-6, 6) * (in_bytes ? 7 : 1);
    if (in_bytes)
        MAKE(is_large(), MPI_Type_create_hvector(count, length, stride, old->type, &model.type),
             MPI_Type_create_hvector_c(count, length, stride, old->type, &model.type));
    else
        MAKE(is_large(), MPI_Type_vector(count, length, stride, old->type, &model.type),
             MPI_Type_vector_c(count, length, stride, old->type, &model.type));
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < length; k++) {
            append_copy(&model.native, &old->native,
                        i * (in_bytes ? stride : stride * extent) + k * extent);
            append_copy(&model.external, &old->external,
                        i * (in_bytes ? stride : stride * old->external.extent)
                            + k * old->external.extent);
        }
    }
    return finish(model, old->is_unusual, in_bytes ? MPI_COMBINER_HVECTOR : MPI_COMBINER_VECTOR);
}

static model_t indexed_model(const model_t *old, int for_file)
{
    model_t model = {.type = MPI_DATATYPE_NULL};
    int in_bytes = chance(50), equal = chance(40), large = is_large(), combiner;
    int64_t extent = old->native.extent;
    blocks_t b = random_blocks(for_file, equal, in_bytes ? 1 : extent, extent,
                               span_of(&old->native));
    int length = b.lengths[0];
    if (equal && in_bytes) {
        combiner = MPI_COMBINER_HINDEXED_BLOCK;
        MAKE(large,
             MPI_Type_create_hindexed_block(b.count, length, b.addresses, old->type, &model.type),
             MPI_Type_create_hindexed_block_c(b.count, length, b.large_displacements, old->type,
                                              &model.type));
    } else if (equal) {
        combiner = MPI_COMBINER_INDEXED_BLOCK;
        MAKE(large,
             MPI_Type_create_indexed_block(b.count, length, b.displacements, old->type,
                                           &model.type),
             MPI_Type_create_indexed_block_c(b.count, length, b.large_displacements, old->type,
                                             &model.type));
    } else if (in_bytes) {
        combiner = MPI_COMBINER_HINDEXED;
        MAKE(large,
             MPI_Type_create_hindexed(b.count, b.lengths, b.addresses, old->type, &model.type),
             MPI_Type_create_hindexed_c(b.count, b.large_lengths, b.large_displacements, old->type,
                                        &model.type));
    } else {
        combiner = MPI_COMBINER_INDEXED;
        MAKE(large,
             MPI_Type_indexed(b.count, b.lengths, b.displacements, old->type, &model.type),
             MPI_Type_indexed_c(b.count, b.large_lengths, b.large_displacements, old->type,
                                &model.type));
    }
    copy_blocks(&model, old, &b, in_bytes);
    return finish(model, old->is_unusual, combiner);
}

static model_t structure_model(int depth, int for_file)
{
    model_t model = {.type = MPI_DATATYPE_NULL}, olds[BLOCKS_MAX];
    blocks_t all = {.count = count_to(4)};
    MPI_Datatype types[BLOCKS_MAX];
    int64_t place = between(0, 6);
    int has_unusual = 0;
    for (int i = 0; i < all.count; i++) {
        int is_same = i && chance(30);
        olds[i] = is_same ? olds[i - 1] : model_random(depth - 1, for_file);
        const typemap_t *map = &olds[i].native;
        types[i] = olds[i].type;
        has_unusual |= olds[i].is_unusual;
        int length = count_to(2);
        int64_t at = for_file ? place : between(-60, 60);
        place += (length > 1 ? (length - 1) * map->extent : 0) + map->end + between(0, 5);
        place = place < 0 ? 0 : place;
        all.large_lengths[i] = all.lengths[i] = length;
        all.large_displacements[i] = all.addresses[i] = at;
        blocks_t one = {.count = 1, .lengths = {length}, .displacements = {(int)at}};
        copy_blocks(&model, &olds[i], &one, 1);
    }
    MAKE(is_large(),
         MPI_Type_create_struct(all.count, all.lengths, all.addresses, types, &model.type),
         MPI_Type_create_struct_c(all.count, all.large_lengths, all.large_displacements, types,
                                  &model.type));
    for (int i = 0; i < all.count; i++) {
        if (i == 0 || olds[i].native.entries != olds[i - 1].native.entries)
            model_free(&olds[i]);
    }
    return finish(model, has_unusual, MPI_COMBINER_STRUCT);
}

/* ---- Arrays -------------------------------------------------------------------------------- */

#define DIMENSIONS_MAX 3

typedef struct shape {
    int dimensions, order;
    int sizes[DIMENSIONS_MAX];
    char is_own[DIMENSIONS_MAX][16]; /* indices that are this part's */
} shape_t;

/* Copies the elements whose indices are all its own, in the order of the array. */
static void copy_elements(typemap_t *map, const typemap_t *old, const shape_t *shape)
{
    int64_t total = 1;
    for (int d = 0; d < shape->dimensions; d++)
        total *= shape->sizes[d];
    append(map, (entry_t){LOWER, 0, 0, MPI_DATATYPE_NULL});
    append(map, (entry_t){UPPER, total * old->extent, 0, MPI_DATATYPE_NULL});
    typemap_t data = {.count = 0};
    for (size_t i = 0; i < old->count; i++) {
        if (old->entries[i].kind == DATA)
            append(&data, old->entries[i]);
    }
    for (int64_t element = 0; element < total; element++) {
        int64_t rest = element;
        int is_own = 1;
        for (int k = 0; k < shape->dimensions; k++) {
            int d = shape->order == MPI_ORDER_C ? shape->dimensions - 1 - k : k;
            is_own &= shape->is_own[d][rest % shape->sizes[d]];
            rest /= shape->sizes[d];
        }
        if (is_own)
            append_copy(map, &data, element * old->extent);
    }
    free(data.entries);
}

static shape_t random_shape(void)
{
    shape_t shape = {.dimensions = (int)between(1, DIMENSIONS_MAX)};
    shape.order = chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int d = 0; d < shape.dimensions; d++)
        shape.sizes[d] = (int)between(1, shape.dimensions == 1 ? 12 : 5);
    return shape;
}

static model_t subarray_model(const model_t *old)
{
    model_t model = {.type = MPI_DATATYPE_NULL};
    shape_t shape = random_shape();
    int lengths[DIMENSIONS_MAX], starts[DIMENSIONS_MAX];
    MPI_Count large[3][DIMENSIONS_MAX];
    for (int d = 0; d < shape.dimensions; d++) {
        lengths[d] = (int)between(1, shape.sizes[d]);
        starts[d] = (int)between(0, shape.sizes[d] - lengths[d]);
        for (int i = 0; i < lengths[d]; i++)
            shape.is_own[d][starts[d] + i] = 1;
        large[0][d] = shape.sizes[d];
        large[1][d] = lengths[d];
        large[2][d] = starts[d];
    }
    (void)large;
    MAKE(is_large(),
         MPI_Type_create_subarray(shape.dimensions, shape.sizes, lengths, starts, shape.order,
                                  old->type, &model.type),
         MPI_Type_create_subarray_c(shape.dimensions, large[0], large[1], large[2], shape.order,
                                    old->type, &model.type));
    copy_elements(&model.native, &old->native, &shape);
    copy_elements(&model.external, &old->external, &shape);
    return finish(model, old->is_unusual, MPI_COMBINER_SUBARRAY);
}

static model_t distributed_model(const model_t *old)
{
    static const int rules[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    model_t model = {.type = MPI_DATATYPE_NULL};
    shape_t shape = random_shape();
    int grid[DIMENSIONS_MAX], rule[DIMENSIONS_MAX], argument[DIMENSIONS_MAX], size = 1;
    MPI_Count large[DIMENSIONS_MAX];
    for (int d = 0; d < shape.dimensions; d++) {
        rule[d] = rules[between(0, 2)];
        grid[d] = rule[d] == MPI_DISTRIBUTE_NONE ? 1 : (int)between(1, 3);
        argument[d] = MPI_DISTRIBUTE_DFLT_DARG;
        if (rule[d] == MPI_DISTRIBUTE_CYCLIC && chance(70))
            argument[d] = (int)between(1, 3);
        if (rule[d] == MPI_DISTRIBUTE_BLOCK && chance(30))
            argument[d] = (shape.sizes[d] + grid[d] - 1) / grid[d] + (int)between(0, 2);
        size *= grid[d];
        large[d] = shape.sizes[d];
    }
    int rank = (int)between(0, size - 1), rest = rank;
    for (int d = shape.dimensions - 1; d >= 0; d--) {
        int process = rest % grid[d], chunk = argument[d];
        rest /= grid[d];
        if (rule[d] == MPI_DISTRIBUTE_NONE)
            chunk = shape.sizes[d];
        else if (chunk == MPI_DISTRIBUTE_DFLT_DARG)
            chunk = rule[d] == MPI_DISTRIBUTE_CYCLIC ? 1
                                                     : (shape.sizes[d] + grid[d] - 1) / grid[d];
        for (int i = 0; i < shape.sizes[d]; i++)
            shape.is_own[d][i] = (char)(i / chunk % grid[d] == process);
    }
    (void)large;
    MAKE(is_large(),
         MPI_Type_create_darray(size, rank, shape.dimensions, shape.sizes, rule, argument, grid,
                                shape.order, old->type, &model.type),
         MPI_Type_create_darray_c(size, rank, shape.dimensions, large, rule, argument, grid,
                                  shape.order, old->type, &model.type));
    copy_elements(&model.native, &old->native, &shape);
    copy_elements(&model.external, &old->external, &shape);
    return finish(model, old->is_unusual, MPI_COMBINER_DARRAY);
}

/* ---- The rest ------------------------------------------------------------------------------ */

static model_t resized_model(const model_t *old, int for_file)
{
    model_t model = {.type = MPI_DATATYPE_NULL};
    int64_t low = between(-8, 8), extent = between(-20, 60);
    if (for_file) {
        int64_t span = span_of(&old->native);
        low = chance(50) ? 0 : between(0, 3);
        extent = span + between(0, 9);
    }
    MAKE(is_large(), MPI_Type_create_resized(old->type, low, extent, &model.type),
         MPI_Type_create_resized_c(old->type, low, extent, &model.type));
    typemap_t *maps[2] = {&model.native, &model.external};
    const typemap_t *olds[2] = {&old->native, &old->external};
    for (int i = 0; i < 2; i++) {
        append(maps[i], (entry_t){LOWER, low, 0, MPI_DATATYPE_NULL});
        append(maps[i], (entry_t){UPPER, low + extent, 0, MPI_DATATYPE_NULL});
        for (size_t k = 0; k < olds[i]->count; k++) {
            if (olds[i]->entries[k].kind == DATA)
                append(maps[i], olds[i]->entries[k]);
        }
    }
    return finish(model, old->is_unusual, MPI_COMBINER_RESIZED);
}

static model_t copies_model(const model_t *old)
{
    model_t model = {.type = MPI_DATATYPE_NULL};
    int is_dup = chance(30), count = is_dup ? 1 : count_to(4);
    if (is_dup)
        MPI_Type_dup(old->type, &model.type);
    else
        MAKE(is_large(), MPI_Type_contiguous(count, old->type, &model.type),
             MPI_Type_contiguous_c(count, old->type, &model.type));
    for (int i = 0; i < count; i++) {
        append_copy(&model.native, &old->native, i * old->native.extent);
        append_copy(&model.external, &old->external, i * old->external.extent);
    }
    return finish(model, old->is_unusual,
                  is_dup ? MPI_COMBINER_DUP : MPI_COMBINER_CONTIGUOUS);
}

model_t model_random(int depth, int for_file)
{
    if (depth <= 0 || chance(5))
        return basic_model();
    int which = (int)between(0, 11);
    if (which <= 1)
        return structure_model(depth, for_file);
    model_t old = model_random(depth - 1, for_file), model;
    /* Some libraries refuse an array of a type without data. */
    if (old.native.count > MODEL_ENTRIES_MAX / 20 || !old.native.bytes)
        which = 10;
    if (which <= 3)
        model = vector_model(&old, for_file);
    else if (which <= 5)
        model = indexed_model(&old, for_file);
    else if (which == 6)
        model = subarray_model(&old);
    else if (which == 7)
        model = distributed_model(&old);
    else if (which <= 9)
        model = copies_model(&old);
    else
        model = resized_model(&old, for_file);
    model_free(&old);
    return model;
}
