#include "layout.h"
#include "basic.h"
#include "contents.h"
#include "tree.h"

#include <errno.h>
#include <stdlib.h>

/* Type signature of a datatype: its basic types in order, without displacements. */
typedef struct signature signature_t;

/* `count` times a basic type; or all of `repeated`, when that is not NULL. */
typedef struct run {
    MPI_Datatype basic;
    signature_t *repeated;
    uint64_t count;
} run_t;

struct signature {
    size_t run_count, run_room;
    run_t *runs;
};

typedef struct reader {
    int error;
    unsigned depth;
} reader_t;

static void fail(reader_t *reader, int error)
{
    reader->error = reader->error ? reader->error : error;
}

static void release(signature_t *signature)
{
    for (size_t i = 0; i < signature->run_count; i++) {
        if (signature->runs[i].repeated) {
            release(signature->runs[i].repeated);
            free(signature->runs[i].repeated);
        }
    }
    free(signature->runs);
    *signature = (signature_t){0, 0, NULL};
}

/* Product of counts, at most 2^62. */
static uint64_t times(reader_t *reader, uint64_t a, uint64_t b)
{
    uint64_t product;
    if (!__builtin_mul_overflow(a, b, &product) && product <= (uint64_t)OFFSET_MAX)
        return product;
    fail(reader, -EOVERFLOW);
    return 0;
}

/* Appends a run, which then belongs to the signature. */
static void append(reader_t *reader, signature_t *signature, run_t run)
{
    run_t *last = signature->run_count ? &signature->runs[signature->run_count - 1] : NULL;
    if (last && !last->repeated && !run.repeated && last->basic == run.basic
        && run.count <= (uint64_t)OFFSET_MAX - last->count) {
        last->count += run.count;
        return;
    }
    if (signature->run_count == signature->run_room) {
        size_t room = 2 * signature->run_room + 2;
        run_t *grown = realloc(signature->runs, room * sizeof *grown);
        if (!grown) {
            fail(reader, -ENOMEM);
            if (run.repeated) {
                release(run.repeated);
                free(run.repeated);
            }
            return;
        }
        signature->runs = grown;
        signature->run_room = room;
    }
    signature->runs[signature->run_count++] = run;
}

/* Appends `count` copies of `part`, and empties it. */
static void append_copies(reader_t *reader, signature_t *signature, signature_t *part,
                          uint64_t count)
{
    if (count && part->run_count == 1) {
        part->runs[0].count = times(reader, part->runs[0].count, count);
        count = 1;
    }
    if (count == 1) {
        for (size_t i = 0; i < part->run_count; i++) {
            append(reader, signature, part->runs[i]);
            part->runs[i].repeated = NULL;
        }
    } else if (count && part->run_count) {
        signature_t *kept = malloc(sizeof *kept);
        if (kept) {
            *kept = *part;
            *part = (signature_t){0, 0, NULL};
            append(reader, signature, (run_t){MPI_DATATYPE_NULL, kept, count});
        } else {
            fail(reader, -ENOMEM);
        }
    }
    release(part);
}

/* Copies of the old type in a constructor that has one. */
static uint64_t count_copies(reader_t *reader, const contents_t *contents)
{
    uint64_t count = 1, blocks;
    dimension_t dimension;
    switch (contents->constructor) {
    case CONTIGUOUS:
        return contents_blocks(contents);
    case VECTOR:
    case BYTE_VECTOR:
    case INDEXED_BLOCK:
    case BYTE_INDEXED_BLOCK:
        return times(reader, contents_blocks(contents), contents_block_length(contents, 0));
    case INDEXED:
    case BYTE_INDEXED:
        blocks = contents_blocks(contents);
        count = 0;
        for (uint64_t i = 0; i < blocks && count <= (uint64_t)OFFSET_MAX; i++)
            count += contents_block_length(contents, i);
        return times(reader, count, 1);
    case SUBARRAY:
    case DISTRIBUTED_ARRAY:
        for (size_t i = 0; i < contents_dimensions(contents); i++) {
            if (contents_dimension(contents, i, &dimension))
                fail(reader, -EINVAL);
            else
                count = times(reader, count,
                              (uint64_t)(dimension.full * dimension.chunk + dimension.rest));
        }
        return count;
    default:
        return 1;
    }
}

static void read_signature(reader_t *reader, MPI_Datatype type, signature_t *signature);

static void read_basic(reader_t *reader, MPI_Datatype type, const contents_t *contents,
                       signature_t *signature)
{
    basic_t basic;
    int error = basic_describe(type, contents, NATIVE, &basic);
    if (error)
        fail(reader, error);
    for (size_t i = 0; !error && i < basic.count; i++)
        append(reader, signature, (run_t){basic.types[i], NULL, 1});
}

/* Appends the signature of a type to one. */
static void read_signature(reader_t *reader, MPI_Datatype type, signature_t *signature)
{
    contents_t contents;
    int error = reader->depth == CONSTRUCTORS_MAX ? -E2BIG : contents_read(type, &contents);
    if (error) {
        fail(reader, error);
        return;
    }
    enum constructor constructor = contents.constructor;
    reader->depth++;
    if (constructor == NAMED || constructor >= FORTRAN_REAL) {
        read_basic(reader, type, &contents, signature);
    } else {
        int is_structure = constructor == STRUCTURE;
        uint64_t members = is_structure ? contents_blocks(&contents) : 1;
        for (uint64_t i = 0; i < members && !reader->error; i++) {
            signature_t old = {0, 0, NULL};
            uint64_t copies = is_structure ? contents_block_length(&contents, i)
                                           : count_copies(reader, &contents);
            if (copies)
                read_signature(reader, contents.types[i], &old);
            append_copies(reader, signature, &old, copies);
        }
    }
    reader->depth--;
    contents_free(&contents);
}

/* The function that gets the runs, and the run that may still grow. */
typedef struct receiver {
    int (*each)(MPI_Datatype basic, uint64_t count, void *context);
    void *context;
    MPI_Datatype basic;
    uint64_t count; /* 0: none yet */
} receiver_t;

static int deliver(receiver_t *receiver)
{
    uint64_t count = receiver->count;
    receiver->count = 0;
    return count ? receiver->each(receiver->basic, count, receiver->context) : 0;
}

static int walk(receiver_t *receiver, const signature_t *signature)
{
    for (size_t i = 0; i < signature->run_count; i++) {
        const run_t *run = &signature->runs[i];
        int result = 0;
        if (run->repeated) {
            for (uint64_t k = 0; k < run->count && !result; k++)
                result = walk(receiver, run->repeated);
        } else if (receiver->count && receiver->basic == run->basic
                   && run->count <= (uint64_t)OFFSET_MAX - receiver->count) {
            receiver->count += run->count;
        } else {
            result = deliver(receiver);
            receiver->basic = run->basic;
            receiver->count = run->count;
        }
        if (result)
            return result;
    }
    return 0;
}

int layout_elements(MPI_Datatype type,
                    int (*each)(MPI_Datatype basic, uint64_t count, void *context), void *context)
{
    reader_t reader = {0, 0};
    signature_t signature = {0, 0, NULL};
    receiver_t receiver = {each, context, MPI_DATATYPE_NULL, 0};
    read_signature(&reader, type, &signature);
    int result = reader.error;
    if (!result)
        result = walk(&receiver, &signature);
    if (!result)
        result = deliver(&receiver);
    release(&signature);
    return result;
}
