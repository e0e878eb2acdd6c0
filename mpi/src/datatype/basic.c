#include "basic.h"

#include <errno.h>

/* Basic types and their sizes in external32: the table in section "External Data Representation"
 * of the standard. MPI_Pack_external_size is wrong for some in some libraries. */
static const struct {
    MPI_Datatype type;
    unsigned bytes;
} external_sizes[] = {
    {MPI_PACKED, 1},
    {MPI_BYTE, 1},
    {MPI_CHAR, 1},
    {MPI_UNSIGNED_CHAR, 1},
    {MPI_SIGNED_CHAR, 1},
    {MPI_WCHAR, 2},
    {MPI_SHORT, 2},
    {MPI_UNSIGNED_SHORT, 2},
    {MPI_INT, 4},
    {MPI_UNSIGNED, 4},
    {MPI_LONG, 4},
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
#ifdef MPI_CXX_BOOL
    {MPI_CXX_BOOL, 1},
    {MPI_CXX_FLOAT_COMPLEX, 8},
    {MPI_CXX_DOUBLE_COMPLEX, 16},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, 32},
#endif
#ifdef MPI_INTEGER1
    {MPI_INTEGER1, 1},
#endif
#ifdef MPI_INTEGER2
    {MPI_INTEGER2, 2},
#endif
#ifdef MPI_INTEGER4
    {MPI_INTEGER4, 4},
#endif
#ifdef MPI_INTEGER8
    {MPI_INTEGER8, 8},
#endif
#ifdef MPI_INTEGER16
    {MPI_INTEGER16, 16},
#endif
#ifdef MPI_REAL2
    {MPI_REAL2, 2},
#endif
#ifdef MPI_REAL4
    {MPI_REAL4, 4},
#endif
#ifdef MPI_REAL8
    {MPI_REAL8, 8},
#endif
#ifdef MPI_REAL16
    {MPI_REAL16, 16},
#endif
#ifdef MPI_COMPLEX4
    {MPI_COMPLEX4, 4},
#endif
#ifdef MPI_COMPLEX8
    {MPI_COMPLEX8, 8},
#endif
#ifdef MPI_COMPLEX16
    {MPI_COMPLEX16, 16},
#endif
#ifdef MPI_COMPLEX32
    {MPI_COMPLEX32, 32},
#endif
#ifdef MPI_LOGICAL1
    {MPI_LOGICAL1, 1},
#endif
#ifdef MPI_LOGICAL2
    {MPI_LOGICAL2, 2},
#endif
#ifdef MPI_LOGICAL4
    {MPI_LOGICAL4, 4},
#endif
#ifdef MPI_LOGICAL8
    {MPI_LOGICAL8, 8},
#endif
};

/* Types of a value and an index, and where the index lies in memory. */
typedef struct {
    float value;
    int index;
} float_int_t;
typedef struct {
    double value;
    int index;
} double_int_t;
typedef struct {
    long value;
    int index;
} long_int_t;
typedef struct {
    short value;
    int index;
} short_int_t;
typedef struct {
    long double value;
    int index;
} long_double_int_t;

static const struct {
    MPI_Datatype type, value, index;
    size_t offset; /* 0: directly after the value */
} pairs[] = {
    {MPI_FLOAT_INT, MPI_FLOAT, MPI_INT, offsetof(float_int_t, index)},
    {MPI_DOUBLE_INT, MPI_DOUBLE, MPI_INT, offsetof(double_int_t, index)},
    {MPI_LONG_INT, MPI_LONG, MPI_INT, offsetof(long_int_t, index)},
    {MPI_SHORT_INT, MPI_SHORT, MPI_INT, offsetof(short_int_t, index)},
    {MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE, MPI_INT, offsetof(long_double_int_t, index)},
    {MPI_2INT, MPI_INT, MPI_INT, 0},
    {MPI_2INTEGER, MPI_INTEGER, MPI_INTEGER, 0},
    {MPI_2REAL, MPI_REAL, MPI_REAL, 0},
    {MPI_2DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, 0},
#ifdef MPI_2COMPLEX
    {MPI_2COMPLEX, MPI_COMPLEX, MPI_COMPLEX, 0},
#endif
#ifdef MPI_2DOUBLE_COMPLEX
    {MPI_2DOUBLE_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_DOUBLE_COMPLEX, 0},
#endif
};

/* Size in external32 of a type of MPI_Type_create_f90_real, _complex or _integer, by the rules of the
 * standard. A precision or range that was not given is negative. Returns 0 when external32 has no such
 * type. */
static uint64_t kind_size(const contents_t *contents)
{
    int64_t precision = contents->values[0], range = contents->values[0];
    if (contents->constructor == FORTRAN_INTEGER)
        return range > 38   ? 0
               : range > 18 ? 16
               : range > 9  ? 8
               : range > 4  ? 4
               : range > 2  ? 2
                            : 1;
    range = contents->values[1];
    uint64_t real = precision > 33 || range > 4931  ? 0
                    : precision > 15 || range > 307 ? 16
                    : precision > 6 || range > 37   ? 8
                                                    : 4;
    return contents->constructor == FORTRAN_COMPLEX ? 2 * real : real;
}

static int external_size(MPI_Datatype type, const contents_t *contents, uint64_t *bytes)
{
    if (contents->constructor != NAMED) {
        *bytes = kind_size(contents);
        return *bytes ? 0 : -EINVAL;
    }
    for (size_t i = 0; i < sizeof external_sizes / sizeof *external_sizes; i++) {
        if (external_sizes[i].type == type) {
            *bytes = external_sizes[i].bytes;
            return 0;
        }
    }
    MPI_Aint size = 0;
    if (MPI_Pack_external_size("external32", 1, type, &size) || size < 0)
        return -EINVAL;
    *bytes = (uint64_t)size;
    return 0;
}

static int native_size(MPI_Datatype type, uint64_t *bytes)
{
    MPI_Count size = 0;
    if (MPI_Type_size_x(type, &size) || size < 0)
        return -EINVAL;
    *bytes = (uint64_t)size;
    return 0;
}

static int describe_pair(basic_t *basic, int64_t index_offset, enum representation representation)
{
    static const contents_t named = {.constructor = NAMED};
    for (size_t i = 0; i < 2; i++) {
        int error = representation == EXTERNAL32
                        ? external_size(basic->types[i], &named, &basic->sizes[i])
                        : native_size(basic->types[i], &basic->sizes[i]);
        if (error)
            return error;
    }
    if (representation == EXTERNAL32 || !index_offset)
        index_offset = (int64_t)basic->sizes[0];
    basic->count = 2;
    basic->offsets[1] = index_offset;
    basic->extent = index_offset + (int64_t)basic->sizes[1];
    return 0;
}

static int is_pair(MPI_Datatype type, basic_t *basic, int64_t *index_offset)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].type == type) {
            basic->types[0] = pairs[i].value;
            basic->types[1] = pairs[i].index;
            *index_offset = (int64_t)pairs[i].offset;
            return 1;
        }
    }
    return 0;
}

/* Offset of the index in a C structure of a value and an index, which is aligned to its size, but not
 * beyond the greatest alignment of the platform. */
static int64_t place_index(MPI_Datatype value, MPI_Datatype index)
{
    uint64_t first = 0, second = 0, alignment = 1;
    if (native_size(value, &first) || native_size(index, &second))
        return 0;
    while (alignment < _Alignof(max_align_t) && second % (2 * alignment) == 0)
        alignment *= 2;
    return (int64_t)((first + alignment - 1) / alignment * alignment);
}

int basic_describe(MPI_Datatype type, const contents_t *contents,
                   enum representation representation, basic_t *basic)
{
    int64_t index_offset = 0;
    MPI_Count lower_bound = 0, extent = 0;
    int error = 0;
    *basic = (basic_t){.types = {type, type}};
    if (contents->constructor == VALUE_AND_INDEX) {
        basic->types[0] = contents->types[0];
        basic->types[1] = contents->types[1];
        index_offset = place_index(basic->types[0], basic->types[1]);
        error = describe_pair(basic, index_offset, representation);
    } else if (contents->constructor == NAMED && is_pair(type, basic, &index_offset)) {
        error = describe_pair(basic, index_offset, representation);
    } else {
        error = native_size(type, &basic->sizes[0]);
        basic->count = basic->sizes[0] > 0;
        if (!error && basic->count && representation == EXTERNAL32)
            error = external_size(type, contents, &basic->sizes[0]);
        basic->extent = (int64_t)basic->sizes[0];
    }
    if (error || representation == EXTERNAL32)
        return error;
    if (MPI_Type_get_extent_x(type, &lower_bound, &extent))
        return -EINVAL;
    basic->extent = extent;
    return 0;
}

int basic_sizes(MPI_Datatype basic, uint64_t *native, uint64_t *external)
{
    contents_t contents;
    int error = contents_read(basic, &contents);
    if (error)
        return error;
    error = native_size(basic, native);
    if (!error)
        error = external_size(basic, &contents, external);
    contents_free(&contents);
    return error;
}

int basic_is_complex(MPI_Datatype basic)
{
    static const MPI_Datatype named[] = {
        MPI_COMPLEX,
        MPI_DOUBLE_COMPLEX,
        MPI_C_FLOAT_COMPLEX,
        MPI_C_DOUBLE_COMPLEX,
        MPI_C_LONG_DOUBLE_COMPLEX,
#ifdef MPI_CXX_FLOAT_COMPLEX
        MPI_CXX_FLOAT_COMPLEX,
        MPI_CXX_DOUBLE_COMPLEX,
        MPI_CXX_LONG_DOUBLE_COMPLEX,
#endif
#ifdef MPI_COMPLEX8
        MPI_COMPLEX8,
#endif
#ifdef MPI_COMPLEX16
        MPI_COMPLEX16,
#endif
#ifdef MPI_COMPLEX32
        MPI_COMPLEX32,
#endif
    };
    contents_t contents;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i] == basic)
            return 1;
    if (contents_read(basic, &contents))
        return 0;
    int is_complex = contents.constructor == FORTRAN_COMPLEX;
    contents_free(&contents);
    return is_complex;
}
