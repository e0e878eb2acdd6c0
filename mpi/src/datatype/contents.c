#include "contents.h"

#include <errno.h>
#include <stdlib.h>

/* Numbers of arguments, by kind. */
typedef struct envelope {
    MPI_Count integers, addresses, counts, types;
    int combiner;
} envelope_t;

/* The binary interface of MPICH is that of MPICH 3 too, which has no functions of MPI 4. */
#if MPI_VERSION >= 4
#pragma weak MPI_Type_get_envelope_c
#pragma weak MPI_Type_get_contents_c
#endif

static int read_envelope(MPI_Datatype type, envelope_t *envelope)
{
#if MPI_VERSION >= 4
    if (MPI_Type_get_envelope_c) {
        int failed =
            MPI_Type_get_envelope_c(type, &envelope->integers, &envelope->addresses,
                                    &envelope->counts, &envelope->types, &envelope->combiner);
        return failed ? -EINVAL : 0;
    }
#endif
    int integers = 0, addresses = 0, types = 0;
    int failed = MPI_Type_get_envelope(type, &integers, &addresses, &types, &envelope->combiner);
    *envelope = (envelope_t){integers, addresses, 0, types, envelope->combiner};
    return failed ? -EINVAL : 0;
}

/* Deprecated combiners, which the standard interface lacks, and some headers forbid to name. */
#if defined MPI_ABI_VERSION
#define COMBINER_HVECTOR_INTEGER MPI_COMBINER_HVECTOR
#define COMBINER_HINDEXED_INTEGER MPI_COMBINER_HINDEXED
#define COMBINER_STRUCT_INTEGER MPI_COMBINER_STRUCT
#elif defined OPEN_MPI && defined OMPI_ENABLE_MPI1_COMPAT && !OMPI_ENABLE_MPI1_COMPAT
#define COMBINER_HVECTOR_INTEGER OMPI_WAS_MPI_COMBINER_HVECTOR_INTEGER
#define COMBINER_HINDEXED_INTEGER OMPI_WAS_MPI_COMBINER_HINDEXED_INTEGER
#define COMBINER_STRUCT_INTEGER OMPI_WAS_MPI_COMBINER_STRUCT_INTEGER
#else
#define COMBINER_HVECTOR_INTEGER MPI_COMBINER_HVECTOR_INTEGER
#define COMBINER_HINDEXED_INTEGER MPI_COMBINER_HINDEXED_INTEGER
#define COMBINER_STRUCT_INTEGER MPI_COMBINER_STRUCT_INTEGER
#endif

static int constructor_of(int combiner, enum constructor *constructor)
{
    static const struct {
        int combiner;
        enum constructor constructor;
    } rows[] = {
        {MPI_COMBINER_NAMED, NAMED},
        {MPI_COMBINER_DUP, DUPLICATE},
        {MPI_COMBINER_CONTIGUOUS, CONTIGUOUS},
        {MPI_COMBINER_VECTOR, VECTOR},
        {MPI_COMBINER_HVECTOR, BYTE_VECTOR},
        {COMBINER_HVECTOR_INTEGER, BYTE_VECTOR},
        {MPI_COMBINER_INDEXED, INDEXED},
        {MPI_COMBINER_HINDEXED, BYTE_INDEXED},
        {COMBINER_HINDEXED_INTEGER, BYTE_INDEXED},
        {MPI_COMBINER_INDEXED_BLOCK, INDEXED_BLOCK},
        {MPI_COMBINER_HINDEXED_BLOCK, BYTE_INDEXED_BLOCK},
        {MPI_COMBINER_STRUCT, STRUCTURE},
        {COMBINER_STRUCT_INTEGER, STRUCTURE},
        {MPI_COMBINER_SUBARRAY, SUBARRAY},
        {MPI_COMBINER_DARRAY, DISTRIBUTED_ARRAY},
        {MPI_COMBINER_RESIZED, RESIZED},
        {MPI_COMBINER_F90_REAL, FORTRAN_REAL},
        {MPI_COMBINER_F90_COMPLEX, FORTRAN_COMPLEX},
        {MPI_COMBINER_F90_INTEGER, FORTRAN_INTEGER},
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
        {MPI_COMBINER_VALUE_INDEX, VALUE_AND_INDEX},
#endif
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].combiner == combiner) {
            *constructor = rows[i].constructor;
            return 0;
        }
    }
    return -EINVAL;
}

/* Arguments as MPI returns them. */
typedef struct arguments {
    int *integers;
    MPI_Aint *addresses;
    MPI_Count *counts;
} arguments_t;

static int get_arguments(MPI_Datatype type, const envelope_t *envelope, arguments_t *arguments,
                         MPI_Datatype *types)
{
#if MPI_VERSION >= 4
    if (envelope->counts)
        return MPI_Type_get_contents_c(type, envelope->integers, envelope->addresses,
                                       envelope->counts, envelope->types, arguments->integers,
                                       arguments->addresses, arguments->counts, types);
#endif
    return MPI_Type_get_contents(type, (int)envelope->integers, (int)envelope->addresses,
                                 (int)envelope->types, arguments->integers, arguments->addresses,
                                 types);
}

/* Number of int arguments before the large counts; others may follow them. Constructors that are not
 * named here have no int arguments beside large counts. */
static size_t integers_in_front(enum constructor constructor)
{
    return constructor == SUBARRAY ? 1 : constructor == DISTRIBUTED_ARRAY ? 3 : 0;
}

static void merge(const envelope_t *envelope, const arguments_t *arguments, contents_t *contents)
{
    size_t integers = (size_t)envelope->integers, counts = (size_t)envelope->counts, at = 0;
    size_t front = counts ? integers_in_front(contents->constructor) : integers;
    for (size_t i = 0; i < front && i < integers; i++)
        contents->values[at++] = arguments->integers[i];
    for (size_t i = 0; i < counts; i++)
        contents->values[at++] = arguments->counts[i];
    for (size_t i = front; i < integers; i++)
        contents->values[at++] = arguments->integers[i];
    for (size_t i = 0; i < (size_t)envelope->addresses; i++)
        contents->values[at++] = arguments->addresses[i];
}

static void *array(MPI_Count count, size_t bytes)
{
    return calloc((size_t)count + 1, bytes);
}

/* Checks that a constructor has the arguments that it needs. */
static int check(const contents_t *contents)
{
    static const struct {
        size_t values, for_each, types;
    } needs[] = {
        [NAMED] = {0, 0, 0},
        [DUPLICATE] = {0, 0, 1},
        [CONTIGUOUS] = {1, 0, 1},
        [VECTOR] = {3, 0, 1},
        [BYTE_VECTOR] = {3, 0, 1},
        [INDEXED] = {1, 2, 1},
        [BYTE_INDEXED] = {1, 2, 1},
        [INDEXED_BLOCK] = {2, 1, 1},
        [BYTE_INDEXED_BLOCK] = {2, 1, 1},
        [STRUCTURE] = {1, 2, 0},
        [SUBARRAY] = {2, 3, 1},
        [DISTRIBUTED_ARRAY] = {4, 4, 1},
        [RESIZED] = {2, 0, 1},
        [FORTRAN_REAL] = {2, 0, 0},
        [FORTRAN_COMPLEX] = {2, 0, 0},
        [FORTRAN_INTEGER] = {1, 0, 0},
        [VALUE_AND_INDEX] = {0, 0, 2},
    };
    enum constructor constructor = contents->constructor;
    size_t each = needs[constructor].for_each, place = constructor == DISTRIBUTED_ARRAY ? 2 : 0;
    int64_t count = 0;
    if (contents->type_count < needs[constructor].types
        || contents->value_count < needs[constructor].values)
        return -EINVAL;
    if (needs[constructor].values && constructor != RESIZED)
        count = contents->values[place];
    if (each && (count < 0 || (uint64_t)count > contents->value_count
                 || contents->value_count - needs[constructor].values < each * (size_t)count))
        return -EINVAL;
    if (constructor == STRUCTURE && contents->type_count < (size_t)count)
        return -EINVAL;
    return 0;
}

int contents_read(MPI_Datatype type, contents_t *contents)
{
    envelope_t envelope = {.combiner = MPI_COMBINER_NAMED};
    *contents = (contents_t){.constructor = NAMED};
    int error = type == MPI_DATATYPE_NULL ? -EINVAL : read_envelope(type, &envelope);
    error = error ? error : constructor_of(envelope.combiner, &contents->constructor);
    if (error || contents->constructor == NAMED)
        return error;
    size_t values = (size_t)(envelope.integers + envelope.addresses + envelope.counts);
    arguments_t arguments = {
        .integers = array(envelope.integers, sizeof(int)),
        .addresses = array(envelope.addresses, sizeof(MPI_Aint)),
        .counts = array(envelope.counts, sizeof(MPI_Count)),
    };
    contents->values = array((MPI_Count)values, sizeof(int64_t));
    contents->types = array(envelope.types, sizeof(MPI_Datatype));
    if (!arguments.integers || !arguments.addresses || !arguments.counts || !contents->values
        || !contents->types)
        error = -ENOMEM;
    else if (get_arguments(type, &envelope, &arguments, contents->types))
        error = -EINVAL;
    if (!error) {
        contents->value_count = values;
        contents->type_count = (size_t)envelope.types;
        merge(&envelope, &arguments, contents);
        error = check(contents);
    }
    free(arguments.integers);
    free(arguments.addresses);
    free(arguments.counts);
    if (error)
        contents_free(contents);
    return error;
}

/* 1 for types that MPI has made: the named ones and those of a Fortran kind. */
static int is_predefined(MPI_Datatype type)
{
    envelope_t envelope;
    enum constructor constructor;
    if (type == MPI_DATATYPE_NULL || read_envelope(type, &envelope)
        || constructor_of(envelope.combiner, &constructor))
        return 1;
    return constructor == NAMED || constructor >= FORTRAN_REAL;
}

void contents_free(contents_t *contents)
{
    for (size_t i = 0; i < contents->type_count; i++) {
        if (!is_predefined(contents->types[i]))
            MPI_Type_free(&contents->types[i]);
    }
    free(contents->types);
    free(contents->values);
    *contents = (contents_t){.constructor = NAMED};
}

/* A count that MPI has checked; negative ones count as 0. */
static uint64_t count_of(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

uint64_t contents_blocks(const contents_t *contents)
{
    return count_of(contents->values[0]);
}

uint64_t contents_block_length(const contents_t *contents, uint64_t block)
{
    switch (contents->constructor) {
    case INDEXED:
    case BYTE_INDEXED:
    case STRUCTURE:
        return count_of(contents->values[1 + block]);
    default:
        return count_of(contents->values[1]);
    }
}

int64_t contents_displacement(const contents_t *contents, uint64_t block)
{
    switch (contents->constructor) {
    case INDEXED:
    case BYTE_INDEXED:
    case STRUCTURE:
        return contents->values[1 + contents_blocks(contents) + block];
    default:
        return contents->values[2 + block];
    }
}

size_t contents_dimensions(const contents_t *contents)
{
    return count_of(contents->values[contents->constructor == SUBARRAY ? 0 : 2]);
}

/* Index of the calling process along a dimension of the grid, which is row-major. */
static int64_t coordinate(const contents_t *contents, const int64_t *grid, size_t along)
{
    int64_t behind = 1;
    for (size_t i = contents_dimensions(contents); i-- > along + 1;) {
        if (grid[i] < 1 || __builtin_mul_overflow(behind, grid[i], &behind))
            return -1;
    }
    return grid[along] < 1 ? -1 : contents->values[1] / behind % grid[along];
}

/* Indices that a distribution rule assigns to one of the processes along a dimension. */
static int deal(int64_t rule, int64_t argument, int64_t processes, int64_t process,
                dimension_t *dimension)
{
    int64_t size = dimension->size, chunk = argument;
    if (size < 1 || process < 0)
        return -EINVAL;
    if (rule == MPI_DISTRIBUTE_NONE) {
        chunk = size;
        processes = 1;
        process = 0;
    } else if (rule == MPI_DISTRIBUTE_BLOCK) {
        if (argument == MPI_DISTRIBUTE_DFLT_DARG)
            chunk = size / processes + (size % processes != 0);
    } else if (rule != MPI_DISTRIBUTE_CYCLIC) {
        return -EINVAL;
    } else if (argument == MPI_DISTRIBUTE_DFLT_DARG) {
        chunk = 1;
    }
    if (chunk < 1)
        return -EINVAL;
    int64_t whole = size / chunk;
    dimension->chunk = chunk;
    dimension->full = whole > process ? (whole - process - 1) / processes + 1 : 0;
    dimension->start = dimension->full ? process * chunk : 0;
    dimension->distance = dimension->full > 1 ? processes * chunk : 0;
    dimension->rest = whole % processes == process ? size % chunk : 0;
    dimension->rest_start = whole * chunk;
    return 0;
}

int contents_dimension(const contents_t *contents, size_t number, dimension_t *dimension)
{
    size_t count = contents_dimensions(contents), last = contents->value_count - 1;
    int is_subarray = contents->constructor == SUBARRAY;
    int64_t order = contents->values[is_subarray ? 1 + 3 * count : last];
    *dimension = (dimension_t){.size = 0};
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        return -EINVAL;
    size_t along = order == MPI_ORDER_C ? count - 1 - number : number;
    if (is_subarray) {
        const int64_t *sizes = contents->values + 1;
        *dimension = (dimension_t){
            .size = sizes[along],
            .chunk = sizes[count + along],
            .full = 1,
            .start = sizes[2 * count + along],
        };
        return dimension->size < 1 || dimension->chunk < 0 || dimension->start < 0 ? -EINVAL : 0;
    }
    const int64_t *sizes = contents->values + 3, *grid = sizes + 3 * count;
    dimension->size = sizes[along];
    return deal(sizes[count + along], sizes[2 * count + along], grid[along],
                coordinate(contents, grid, along), dimension);
}
