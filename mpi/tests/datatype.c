/* Proves: a layout has the typemap of its datatype, in memory and in external32; parts, packing and
 * positions agree with it byte by byte; regular types stay compact however large they are. */
#include "datatype_cases.h"
#include "datatype_model.h"
#include "datatype_record.h"

#include <errno.h>
#include <string.h>

#define CASES 20000
#define POOL 16
#define SEED_STEP 7919

static uint64_t last_checks;

static void group(const char *name)
{
    printf("%-40s %9llu checks\n", name, (unsigned long long)(checks - last_checks));
    last_checks = checks;
    fflush(stdout);
}

static void check_facts(const layout_t *layout, const typemap_t *map)
{
    layout_facts_t facts = layout_facts(layout);
    CHECK(facts.bytes == (uint64_t)map->bytes);
    CHECK(facts.lower_bound == map->low);
    CHECK(facts.extent == map->extent);
    CHECK(facts.true_start == map->start && facts.true_end == map->end);
    CHECK(facts.is_ascending == map->is_ascending);
    CHECK(facts.is_repeatable == map->is_repeatable);
    int is_contiguous = map->is_ascending && map->end - map->start == map->bytes;
    CHECK(facts.is_dense
          == (!map->bytes
              || (is_contiguous && map->start == 0 && map->extent == map->bytes)));
}

static void check_against_mpi(const model_t *model)
{
    MPI_Count size;
    MPI_Type_size_x(model->type, &size);
    CHECK(size == model->native.bytes);
}

/* Accesses that have a byte twice, and those that only go back and forth. */
static unsigned long repeated, interleaved;

static void check_positions(const layout_t *layout, const typemap_t *map)
{
    for (int64_t position = 0; map->start >= 0 && map->extent >= 0 && position < 3 * map->bytes;
         position += between(1, 1 + map->bytes / 50))
        CHECK(layout_file_offset(layout, (uint64_t)position)
              == (uint64_t)typemap_offset(map, position));
    if (map->start < 0 || map->extent < 0 || !map->bytes)
        return;
    int64_t end = 2 * map->extent + map->end + 3;
    for (int i = 0; i < 30; i++) {
        int64_t offset = between(0, end), first = between(0, 2 * map->bytes), before = 0;
        int64_t data = first + (map->extent ? offset / map->extent + 2 : 2) * map->bytes;
        while (first + before < data && typemap_offset(map, first + before) < offset)
            before++;
        uint64_t expected = first + before < data ? (uint64_t)before : UINT64_MAX;
        CHECK(layout_data_before(layout, (uint64_t)first, (uint64_t)offset) == expected);
    }
}

/* Accesses whose instances overlap, or interleave. */
static void check_order(const layout_t *layout, const typemap_t *map)
{
    if (!map->is_ascending || map->start < 0 || map->extent < 0 || !map->bytes)
        return;
    for (int i = 0; i < 4; i++) {
        int64_t first = between(0, 2 * map->bytes), bytes = between(1, 6 * map->bytes);
        int64_t low = INT64_MAX, high = 0, last = -1;
        int ascends = 1, repeats = 0;
        for (int64_t k = 0; k < bytes; k++) {
            int64_t at = typemap_offset(map, first + k);
            ascends &= at > last;
            last = at;
            low = at < low ? at : low;
            high = at >= high ? at + 1 : high;
        }
        unsigned char *seen = calloc((size_t)high, 1);
        for (int64_t k = 0; k < bytes; k++)
            repeats |= seen[typemap_offset(map, first + k)]++;
        free(seen);
        uint64_t from, to;
        layout_range(layout, (uint64_t)first, (uint64_t)bytes, &from, &to);
        CHECK(from <= (uint64_t)low && to >= (uint64_t)high);
        int found = layout_ascends(layout, (uint64_t)first, (uint64_t)bytes);
        CHECK(ascends || !found);
        CHECK(!map->is_repeatable || found);
        CHECK(!found || (from == (uint64_t)low && to == (uint64_t)high));
        CHECK(layout_repeats(layout, (uint64_t)first, (uint64_t)bytes) == !!repeats);
        repeated += repeats;
        interleaved += !repeats && !ascends;
    }
}

/* Takes long doubles from the model: some libraries copy their value, and not their padding. */
static void skip_long_doubles(const typemap_t *map, int64_t instances, unsigned char *packed,
                              const unsigned char *model_packed)
{
    for (int64_t instance = 0, at = 0; instance < instances; instance++) {
        for (size_t i = 0; i < map->count; at += map->entries[i++].bytes) {
            if (map->entries[i].basic == MPI_LONG_DOUBLE)
                memcpy(packed + at, model_packed + at, (size_t)map->entries[i].bytes);
        }
    }
}

/* Three instances in memory that have different bytes everywhere. */
static void check_packing(const layout_t *layout, const model_t *model)
{
    const typemap_t *map = &model->native;
    int64_t instances = 3, all = instances * map->bytes;
    int64_t last = (instances - 1) * map->extent;
    int64_t low = map->start + (last < 0 ? last : 0), high = map->end + (last > 0 ? last : 0);
    size_t room = (size_t)(high - low);
    unsigned char *memory = malloc(room + 1), *model_memory = malloc(room + 1);
    unsigned char *packed = malloc((size_t)all + 1), *model_packed = malloc((size_t)all + 1);
    unsigned char *origin = (unsigned char *)((uintptr_t)memory - (uint64_t)low);
    for (size_t i = 0; i < room; i++)
        memory[i] = (unsigned char)between(0, 255);
    memcpy(model_memory, memory, room);
    int64_t *places = malloc((size_t)(all + 1) * sizeof *places);
    for (int64_t i = 0; i < all; i++) {
        places[i] = typemap_offset(map, i) - low;
        model_packed[i] = memory[places[i]];
    }
    memset(packed, 0, (size_t)all + 1);
    layout_pack(layout, origin, 0, (uint64_t)all, packed);
    CHECK(!memcmp(packed, model_packed, (size_t)all));
    /* Libraries have defects with the others. */
    if (!model->is_unusual) {
        int position = 0;
        memset(packed, 0, (size_t)all + 1);
        MPI_Pack(origin, (int)instances, model->type, packed, (int)all, &position, MPI_COMM_SELF);
        skip_long_doubles(map, instances, packed, model_packed);
        CHECK(!memcmp(packed, model_packed, (size_t)all));
    }
    for (int i = 0; i < 4; i++) {
        int64_t first = between(0, all), bytes = between(0, all - first);
        memset(packed, 0, (size_t)all + 1);
        layout_pack(layout, origin, (uint64_t)first, (uint64_t)bytes, packed);
        CHECK(!memcmp(packed, model_packed + first, (size_t)bytes) && !packed[bytes]);
        /* Back, with other bytes; where memory overlaps, the order is not defined. */
        for (int64_t k = 0; k < bytes; k++)
            packed[k] = (unsigned char)between(0, 255);
        int overlaps = 0;
        memcpy(model_memory, memory, room);
        for (int64_t k = 0; k < bytes; k++)
            model_memory[places[first + k]] = packed[k];
        for (int64_t k = 0; k < bytes; k++)
            overlaps |= model_memory[places[first + k]] != packed[k];
        layout_unpack(layout, origin, (uint64_t)first, (uint64_t)bytes, packed);
        if (overlaps)
            break;
        CHECK(!memcmp(memory, model_memory, room));
        for (int64_t k = 0; k < all; k++)
            model_packed[k] = memory[places[k]];
    }
    free(memory);
    free(model_memory);
    free(packed);
    free(model_packed);
    free(places);
}

typedef struct elements {
    const typemap_t *map;
    size_t at;
    MPI_Datatype last;
} elements_t;

static int see_elements(MPI_Datatype basic, uint64_t count, void *context)
{
    elements_t *elements = context;
    CHECK(count > 0 && basic != elements->last);
    elements->last = basic;
    for (uint64_t i = 0; i < count; elements->at++) {
        CHECK(elements->at < elements->map->count);
        const entry_t *entry = &elements->map->entries[elements->at];
        if (entry->kind != DATA)
            continue;
        CHECK(entry->basic == basic);
        i++;
    }
    return 0;
}

static int stop_at_once(MPI_Datatype basic, uint64_t count, void *context)
{
    (void)basic, (void)count, (void)context;
    return 7;
}

static void check_elements(const model_t *model)
{
    elements_t elements = {&model->native, 0, MPI_DATATYPE_NULL};
    CHECK(layout_elements(model->type, see_elements, &elements) == 0);
    while (elements.at < model->native.count && model->native.entries[elements.at].kind != DATA)
        elements.at++;
    CHECK(elements.at == model->native.count);
    CHECK(layout_elements(model->type, stop_at_once, NULL) == (model->native.bytes ? 7 : 0));
}

/* Place in the file of each byte of memory, as pieces say. */
typedef struct byte_map {
    int64_t bytes;
    int64_t *places; /* -1: none */
    size_t pieces;
} byte_map_t;

static void record_piece(unisono_piece_t piece, void *context)
{
    byte_map_t *map = context;
    map->pieces++;
    for (uint64_t i = 0; i < piece.bytes; i++) {
        int64_t at = (int64_t)(piece.memory_offset + i);
        CHECK(at < map->bytes && map->places[at] < 0);
        map->places[at] = (int64_t)(piece.file_offset + i);
    }
}

/* Most pieces of a part, in relation to those that its data need. */
static double worst_pieces;

static void check_part(const layout_t *file, const typemap_t *file_map, const layout_t *memory,
                       const typemap_t *memory_map)
{
    int64_t first = between(0, 2 * file_map->bytes), bytes = between(0, 3 * file_map->bytes);
    int64_t displacement = between(0, 1) ? 0 : between(0, 1000), base = -1, high = 0;
    unisono_part_t *part = NULL;
    if (memory && !memory_map->bytes)
        bytes = 0;
    /* Such memory may only be written, and what it is then is tested with packing. */
    if (memory && !memory_map->is_repeatable)
        return;
    int64_t start = bytes ? first / file_map->bytes * file_map->extent + file_map->start : 0;
    if (displacement + start < 0 || file_map->extent < 0)
        return;
    int error = layout_part(file, (uint64_t)displacement, (uint64_t)first, (uint64_t)bytes, memory,
                            &base, &part);
    CHECK(error == 0 && part);
    for (int64_t i = 0; i < bytes; i++) {
        int64_t place = (memory ? typemap_offset(memory_map, i) : i) - base;
        high = place >= high ? place + 1 : high;
    }
    byte_map_t map = {.bytes = high};
    map.places = malloc((size_t)(high + 1) * sizeof *map.places);
    memset(map.places, -1, (size_t)(high + 1) * sizeof *map.places);
    record_pieces(part, record_piece, &map);
    int64_t file_last = -2, memory_last = -2, needed = 0, left = 0;
    for (int64_t i = 0; i < bytes; i++) {
        int64_t at = displacement + typemap_offset(file_map, first + i);
        int64_t place = (memory ? typemap_offset(memory_map, i) : i) - base;
        CHECK(map.places[place] == at);
        map.places[place] = -1;
        needed += at != file_last + 1 || place != memory_last + 1;
        file_last = at;
        memory_last = place;
    }
    for (int64_t i = 0; i < high; i++)
        left += map.places[i] >= 0;
    CHECK(left == 0);
    CHECK(map.pieces <= 3 * (size_t)needed + 2);
    if (needed && (double)map.pieces / (double)needed > worst_pieces)
        worst_pieces = (double)map.pieces / (double)needed;
    free(map.places);
    unisono_part_free(part);
}

/* An access to many instances is described by few nests. */
static void check_long_part(const layout_t *file, const typemap_t *map)
{
    int64_t first = between(0, map->bytes), bytes = map->bytes * (1 << 20) - between(0, 9), base;
    unisono_part_t *part = NULL;
    if (!map->is_repeatable || !map->bytes)
        return;
    CHECK(layout_part(file, 0, (uint64_t)first, (uint64_t)bytes, NULL, &base, &part) == 0);
    CHECK(part->nest_count <= 3 * map->count && !part->piece_count);
    uint64_t all = 0;
    for (size_t i = 0; i < part->nest_count; i++) {
        uint64_t product = part->nests[i].bytes;
        for (size_t k = 0; k < part->nests[i].level_count; k++)
            product *= part->nests[i].levels[k].count;
        all += product;
    }
    CHECK(all == (uint64_t)bytes);
    unisono_part_free(part);
}

typedef struct pooled {
    model_t model;
    layout_t *layouts[2];
} pooled_t;

static const typemap_t *map_of(const pooled_t *pooled, int representation)
{
    return representation == NATIVE ? &pooled->model.native : &pooled->model.external;
}

static void check_parts(const pooled_t *pool, const pooled_t *file)
{
    for (int representation = 0; representation < 2; representation++) {
        const typemap_t *map = map_of(file, representation);
        const layout_t *layout = file->layouts[representation];
        if (!map->bytes)
            continue;
        if (map->is_ascending && map->start >= 0)
            check_long_part(layout, map);
        for (int i = 0; i < 4; i++) {
            const pooled_t *memory = &pool[between(0, POOL - 1)];
            if (i == 0)
                check_part(layout, map, NULL, NULL);
            else if (i == 1)
                check_part(layout, map, layout, map);
            else if (memory->layouts[NATIVE])
                check_part(layout, map, memory->layouts[NATIVE], &memory->model.native);
            if (memory->layouts[NATIVE])
                layout_is_simple(layout, memory->layouts[NATIVE]);
        }
    }
}

static void release(pooled_t *pooled)
{
    if (!pooled->layouts[NATIVE])
        return;
    layout_release(pooled->layouts[NATIVE]);
    layout_release(pooled->layouts[EXTERNAL32]);
    model_free(&pooled->model);
}

static void random_types(uint64_t only)
{
    static pooled_t pool[POOL];
    unsigned long ascending = 0, repeatable = 0;
    uint64_t parts[6] = {0};
    /* A case depends on its seed and on the datatypes of those before it. */
    uint64_t last = only ? only / SEED_STEP : CASES;
    for (uint64_t i = only && last > POOL ? last - POOL + 1 : 1; i <= last; i++) {
        case_seed = random_seed = i * SEED_STEP;
        pooled_t *pooled = &pool[i % POOL];
        release(pooled);
        pooled->model = model_random((int)between(1, 4), (int)between(0, 1));
        MPI_Type_commit(&pooled->model.type);
        pooled->layouts[NATIVE] = decode(pooled->model.type, NATIVE);
        pooled->layouts[EXTERNAL32] = decode(pooled->model.type, EXTERNAL32);
        ascending += pooled->model.native.is_ascending;
        repeatable += pooled->model.native.is_repeatable;
        uint64_t before = checks;
        check_facts(pooled->layouts[NATIVE], &pooled->model.native);
        check_facts(pooled->layouts[EXTERNAL32], &pooled->model.external);
        check_against_mpi(&pooled->model);
        parts[0] += checks - before, before = checks;
        check_positions(pooled->layouts[NATIVE], &pooled->model.native);
        check_positions(pooled->layouts[EXTERNAL32], &pooled->model.external);
        check_order(pooled->layouts[NATIVE], &pooled->model.native);
        check_order(pooled->layouts[EXTERNAL32], &pooled->model.external);
        parts[1] += checks - before, before = checks;
        check_packing(pooled->layouts[NATIVE], &pooled->model);
        parts[2] += checks - before, before = checks;
        check_elements(&pooled->model);
        parts[3] += checks - before, before = checks;
        check_parts(pool, pooled);
        parts[4] += checks - before, before = checks;
    }
    for (int i = 0; i < POOL; i++) {
        release(&pool[i]);
        pool[i] = (pooled_t){.layouts = {NULL, NULL}};
    }
    static const char *names[] = {"facts", "positions", "packing", "elements", "parts"};
    for (int i = 0; i < 5; i++)
        printf("random types: %-26s %9llu checks\n", names[i], (unsigned long long)parts[i]);
    printf("  %lu ascending, %lu of them repeatable; pieces at most %.1f times those needed\n",
           ascending, repeatable, worst_pieces);
    printf("  %lu accesses have a byte twice, %lu only go back and forth\n", repeated, interleaved);
    CHECK(only || (repeated > 1000 && interleaved > 200));
    static const int constructors[] = {
        MPI_COMBINER_NAMED,         MPI_COMBINER_DUP,           MPI_COMBINER_CONTIGUOUS,
        MPI_COMBINER_VECTOR,        MPI_COMBINER_HVECTOR,       MPI_COMBINER_INDEXED,
        MPI_COMBINER_HINDEXED,      MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK,
        MPI_COMBINER_STRUCT,        MPI_COMBINER_SUBARRAY,      MPI_COMBINER_DARRAY,
        MPI_COMBINER_RESIZED,
    };
    for (size_t i = 0; !only && i < sizeof constructors / sizeof *constructors; i++)
        CHECK(model_counts[constructors[i]] > CASES / 40);
    last_checks = checks;
    CHECK(record_parts == 0);
}

int main(int argument_count, char **arguments)
{
    MPI_Init(&argument_count, &arguments);
    uint64_t only = argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    random_types(only);
    for (size_t i = 0; i < fixed_case_count && !only; i++) {
        fixed_cases[i].run();
        CHECK(record_parts == 0);
        group(fixed_cases[i].name);
    }
    print_times();
    printf("datatype: %llu checks passed\n", (unsigned long long)checks);
    MPI_Finalize();
    return 0;
}
