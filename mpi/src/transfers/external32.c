/* external32.c - conversion between memory and external32, the portable representation of MPI.
 *
 * Data is big-endian; integers have the sizes of the standard's table, floating-point numbers the
 * formats of IEEE 754. MPI_Pack_external is not used: Open MPI 4.1 gives wrong sizes, and MPICH 4.0
 * ends the process for some datatypes. */
#include "transfers.h"

#include "../datatype/basic.h"

#include <string.h>

/* Position of a conversion in its source and target. */
typedef struct cursor {
    const char *source;
    char *target;
    uint64_t source_bytes; /* left */
    int encodes;
} cursor_t;

/* Kinds of elements. TURNED: only the order of bytes differs. */
enum kind { TURNED, SIGNED, UNSIGNED, LONG_REAL };

static enum kind kind_of(MPI_Datatype basic, int *parts)
{
    *parts = basic_is_complex(basic) ? 2 : 1;
    if (basic == MPI_LONG_DOUBLE || basic == MPI_C_LONG_DOUBLE_COMPLEX)
        return LONG_REAL;
    if (basic == MPI_UNSIGNED_LONG || basic == MPI_WCHAR)
        return UNSIGNED;
    return basic == MPI_LONG ? SIGNED : TURNED;
}

static void turn(const char *source, char *target, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        target[i] = source[bytes - 1 - i];
}

/* Converts an integer between sizes. Returns 0, or -1 when the value does not fit. */
static int resize(const cursor_t *cursor, uint64_t from, uint64_t to, int is_signed)
{
    unsigned char little[16];
    if (cursor->encodes)
        memcpy(little, cursor->source, from);
    else
        turn(cursor->source, (char *)little, from);
    unsigned char fill = is_signed && little[from - 1] & 0x80 ? 0xff : 0;
    memset(little + from, fill, sizeof little - from);
    for (uint64_t i = to; i < from; i++)
        if (little[i] != fill)
            return -1;
    if (is_signed && to < from && (little[to - 1] & 0x80) != (fill & 0x80))
        return -1;
    if (cursor->encodes)
        turn((char *)little, cursor->target, to);
    else
        memcpy(cursor->target, little, to);
    return 0;
}

/* Converts a long double to or from the quadruple format of IEEE 754. */
static void convert_long_real(const cursor_t *cursor)
{
#if defined(__SIZEOF_FLOAT128__) && __LDBL_MANT_DIG__ == 64
    __float128 quadruple;
    long double native;
    char little[16];
    if (cursor->encodes) {
        memcpy(&native, cursor->source, sizeof native);
        quadruple = native;
        memcpy(little, &quadruple, sizeof little);
        turn(little, cursor->target, sizeof little);
    } else {
        turn(cursor->source, little, sizeof little);
        memcpy(&quadruple, little, sizeof little);
        native = (long double)quadruple;
        memset(cursor->target, 0, sizeof native);
        memcpy(cursor->target, &native, 10);
    }
#else
    turn(cursor->source, cursor->target, 16);
#endif
}

/* Converts one part of an element: a number. */
static int convert_part(const cursor_t *cursor, enum kind kind, uint64_t from, uint64_t to)
{
    switch (kind) {
    case LONG_REAL:
        convert_long_real(cursor);
        return 0;
    case SIGNED:
    case UNSIGNED:
        return resize(cursor, from, to, kind == SIGNED);
    case TURNED:
        if (from != to)
            return -1;
        turn(cursor->source, cursor->target, to);
        return 0;
    }
    return -1;
}

enum { FINISHED = 1 };

static int convert_run(MPI_Datatype basic, uint64_t count, void *context)
{
    cursor_t *cursor = context;
    uint64_t native = 0, external = 0;
    int parts;
    enum kind kind = kind_of(basic, &parts);
    if (basic_sizes(basic, &native, &external))
        return MPI_ERR_CONVERSION;
    uint64_t from = (cursor->encodes ? native : external) / (unsigned)parts;
    uint64_t to = (cursor->encodes ? external : native) / (unsigned)parts;
    if (from == 1 && to == 1) {
        uint64_t bytes = count < cursor->source_bytes ? count : cursor->source_bytes;
        memcpy(cursor->target, cursor->source, bytes);
        cursor->source += bytes;
        cursor->target += bytes;
        cursor->source_bytes -= bytes;
        return cursor->source_bytes ? 0 : FINISHED;
    }
    for (uint64_t i = 0; i < count * (unsigned)parts; i++) {
        if (cursor->source_bytes < from)
            return FINISHED;
        if (convert_part(cursor, kind, from, to))
            return MPI_ERR_CONVERSION;
        cursor->source += from;
        cursor->target += to;
        cursor->source_bytes -= from;
    }
    return cursor->source_bytes ? 0 : FINISHED;
}

static int convert(MPI_Datatype type, cursor_t *cursor)
{
    while (cursor->source_bytes) {
        int result = layout_elements(type, convert_run, cursor);
        if (result == FINISHED)
            return MPI_SUCCESS;
        if (result)
            return result == MPI_ERR_CONVERSION ? result : MPI_ERR_TYPE;
    }
    return MPI_SUCCESS;
}

int external32_encode(MPI_Datatype type, const void *native, uint64_t bytes, void *external)
{
    cursor_t cursor = {native, external, bytes, 1};
    return convert(type, &cursor);
}

int external32_decode(MPI_Datatype type, const void *external, uint64_t bytes, void *native,
                      uint64_t *native_bytes)
{
    cursor_t cursor = {external, native, bytes, 0};
    int code = convert(type, &cursor);
    *native_bytes = (uint64_t)(cursor.target - (char *)native);
    return code;
}
