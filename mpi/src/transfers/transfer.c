/* transfer.c - the life of one transfer: from a prepared access to a part, a call of the library, and its
 * end.
 *
 * The library gets the memory where it is, described by nested strides. Memory is packed only when the
 * description would not be compact, or when the data is converted. A read beyond the end of the file fails
 * as a whole in the library, a collective one at every member. Each member then reads the data before the
 * end by itself, because members learn of the failure at different times, between other collective calls. */
#include "../errors/errors.h"
#include "transfers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct transfer {
    open_file_t *file;
    access_t access;
    int code;
    layout_t *layout;      /* of the filetype of the view when the transfer began */
    uint64_t displacement; /* of that view */
    enum representation representation;
    uint64_t first, bytes; /* range in the data of the view */
    char *packed;          /* memory that the library transfers instead of the buffer, or NULL */
    unisono_op_t *op;      /* NULL when no call of the library is active */
    unisono_lock_t *lock;  /* of atomic mode */
    int attempts;
    uint64_t moved; /* bytes of the file */
};

/* Times that a read beyond the end is begun again, while others change the size of the file. */
enum { ATTEMPTS_MAX = 8 };

static int is_write(const transfer_t *transfer)
{
    return transfer->access.flags & WRITE;
}

static int is_collective(const transfer_t *transfer)
{
    return transfer->access.flags & COLLECTIVE;
}

static int failure(transfer_t *transfer)
{
    return class_of_failure(transfer->file, transfer->access.call);
}

/* ---- Packing ------------------------------------------------------------------------------- */

static int convert_out(transfer_t *transfer)
{
    const access_t *access = &transfer->access;
    char *native = malloc(access->memory_bytes);
    if (!native)
        return MPI_ERR_NO_MEM;
    layout_pack(access->memory, access->buffer, 0, access->memory_bytes, native);
    int code = external32_encode(access->type, native, access->memory_bytes, transfer->packed);
    free(native);
    return code;
}

/* Makes the packed memory of a transfer; packs the data of a write. */
static int pack(transfer_t *transfer)
{
    transfer->packed = malloc(transfer->bytes);
    if (!transfer->packed)
        return wrong(MPI_ERR_NO_MEM, transfer->access.call, "not enough memory to pack the data",
                     "free memory, or transfer less at a time");
    if (!is_write(transfer))
        return MPI_SUCCESS;
    if (transfer->representation == EXTERNAL32)
        return convert_out(transfer);
    layout_pack(transfer->access.memory, transfer->access.buffer, 0, transfer->bytes,
                transfer->packed);
    return MPI_SUCCESS;
}

/* Unpacks data that was read into the buffer; gives its number of bytes there. */
static int unpack(transfer_t *transfer, uint64_t *memory_bytes)
{
    const access_t *access = &transfer->access;
    *memory_bytes = transfer->moved;
    if (transfer->representation != EXTERNAL32) {
        layout_unpack(access->memory, access->buffer, 0, transfer->moved, transfer->packed);
        return MPI_SUCCESS;
    }
    char *native = malloc(access->memory_bytes);
    if (!native)
        return MPI_ERR_NO_MEM;
    int code = external32_decode(access->type, transfer->packed, transfer->moved, native,
                                 memory_bytes);
    if (code == MPI_SUCCESS)
        layout_unpack(access->memory, access->buffer, 0, *memory_bytes, native);
    free(native);
    return code;
}

/* ---- Parts --------------------------------------------------------------------------------- */

/* Part and memory of a call of the library. */
typedef struct part_memory {
    unisono_part_t *part;
    char *start;
    uint64_t bytes;
} part_memory_t;

/* Describes `bytes` bytes of a transfer, which begin `skipped` bytes after its first. Returns 0 or a
 * negative errno. */
static int describe(const transfer_t *transfer, uint64_t skipped, uint64_t bytes,
                    part_memory_t *memory)
{
    static char nothing;
    const layout_t *layout = transfer->packed ? NULL : transfer->access.memory;
    int64_t base = 0;
    if (layout && layout_facts(layout).is_dense)
        layout = NULL;
    int error = bytes ? layout_part(transfer->layout, transfer->displacement,
                                    transfer->first + skipped, bytes, layout, &base, &memory->part)
                      : unisono_part_contiguous(0, 0, &memory->part);
    if (error)
        return error;
    char *start = transfer->packed ? transfer->packed : transfer->access.buffer;
    memory->start = bytes ? start + base + skipped : &nothing;
    memory->bytes = 0;
    return unisono_part_memory_bytes(memory->part, &memory->bytes);
}

/* 1 when the buffer must be packed, because its description would not be compact or valid. */
static int must_pack(const transfer_t *transfer)
{
    if (!transfer->bytes)
        return 0;
    if (transfer->representation == EXTERNAL32)
        return 1;
    layout_facts_t memory = layout_facts(transfer->access.memory);
    if (memory.is_dense)
        return 0;
    /* A read into memory that overlaps itself is undefined, but must not fail. */
    if (!is_write(transfer) && !memory.is_repeatable)
        return 1;
    return !layout_is_simple(transfer->layout, transfer->access.memory);
}

/* Ends a read before its first byte that lies at or behind the end of the file. */
static int clip(transfer_t *transfer)
{
    uint64_t size = 0, displacement = transfer->displacement;
    if (unisono_size(transfer->file->file, &size))
        return failure(transfer);
    uint64_t there = layout_data_before(transfer->layout, transfer->first,
                                        size > displacement ? size - displacement : 0);
    if (there < transfer->bytes)
        transfer->bytes = there;
    return MPI_SUCCESS;
}

/* ---- Chunks --------------------------------------------------------------------------------- */

/* True when a transfer cannot be described as a whole, but in chunks: it has too many pieces, or it is a
 * read with too many bytes of the file that occur several times. */
static int chunks_help(const transfer_t *transfer, int error)
{
    return error == -E2BIG || (error == -EINVAL && !is_write(transfer));
}

static int undescribable(const transfer_t *transfer)
{
    return wrong(MPI_ERR_ARG, transfer->access.call, "the access extends beyond byte 2^62",
                 "correct the view, the offset or the count");
}

/* Transfers data that cannot be described as a whole: in chunks, and without the group. */
static int transfer_in_chunks(transfer_t *transfer)
{
    uint64_t chunk = transfer->bytes / 2 + 1;
    unisono_file_t *file = transfer->file->file;
    if (!is_write(transfer)) {
        int code = clip(transfer);
        if (code != MPI_SUCCESS)
            return code;
    }
    for (uint64_t done = 0; done < transfer->bytes;) {
        uint64_t bytes = transfer->bytes - done < chunk ? transfer->bytes - done : chunk;
        part_memory_t memory = {0};
        int error = describe(transfer, done, bytes, &memory);
        if (chunks_help(transfer, error) && chunk > 1) {
            chunk /= 2;
            continue;
        }
        if (error)
            return undescribable(transfer);
        int64_t moved = is_write(transfer)
                            ? unisono_write_part(file, memory.part, memory.start, memory.bytes,
                                                 (int)transfer->file->options.sync)
                            : unisono_read_part(file, memory.part, memory.start, memory.bytes);
        unisono_part_free(memory.part);
        if (moved < 0)
            return failure(transfer);
        done += bytes;
    }
    transfer->moved = transfer->bytes;
    return MPI_SUCCESS;
}

/* ---- Beginning ----------------------------------------------------------------------------- */

/* Joins a collective call, or starts an independent one. */
static int start(transfer_t *transfer, const part_memory_t *memory)
{
    open_file_t *file = transfer->file;
    const unisono_collective_options_t *options = &file->options;
    int error;
    if (is_collective(transfer))
        error = is_write(transfer)
                    ? unisono_start_write_all(file->group, file->file, memory->part, memory->start,
                                              memory->bytes, options, &transfer->op)
                    : unisono_start_read_all(file->group, file->file, memory->part, memory->start,
                                             memory->bytes, options, &transfer->op);
    else
        error = is_write(transfer)
                    ? unisono_start_write_part(file->file, memory->part, memory->start,
                                               memory->bytes, (int)options->sync, &transfer->op)
                    : unisono_start_read_part(file->file, memory->part, memory->start,
                                              memory->bytes, &transfer->op);
    return error ? failure(transfer) : MPI_SUCCESS;
}

/* Joins a collective call without data. */
static int start_empty(transfer_t *transfer)
{
    part_memory_t memory = {0};
    if (describe(transfer, 0, 0, &memory))
        return failure(transfer);
    int code = start(transfer, &memory);
    unisono_part_free(memory.part);
    return code;
}

static int start_contiguous(transfer_t *transfer, uint64_t offset);

/* Carries out an independent transfer of contiguous bytes of the file. */
static int transfer_contiguous(transfer_t *transfer, uint64_t offset)
{
    unisono_file_t *file = transfer->file->file;
    void *memory = transfer->packed ? transfer->packed : transfer->access.buffer;
    int64_t moved = is_write(transfer) ? unisono_pwrite(file, memory, transfer->bytes, offset)
                                       : unisono_pread(file, memory, transfer->bytes, offset);
    if (moved >= 0) {
        transfer->moved = (uint64_t)moved;
        return MPI_SUCCESS;
    }
    /* A file that others truncate: take_result tries again. */
    const unisono_error_t *error = unisono_last_error();
    if (error && error->kind == UNISONO_ERR_PAST_END)
        return start_contiguous(transfer, offset);
    return failure(transfer);
}

/* Starts an independent transfer of contiguous bytes of the file. */
static int start_contiguous(transfer_t *transfer, uint64_t offset)
{
    unisono_file_t *file = transfer->file->file;
    void *memory = transfer->packed ? transfer->packed : transfer->access.buffer;
    int error = is_write(transfer)
                    ? unisono_start_pwrite(file, memory, transfer->bytes, offset, &transfer->op)
                    : unisono_start_pread(file, memory, transfer->bytes, offset, &transfer->op);
    return error ? failure(transfer) : MPI_SUCCESS;
}

/* 1 when the data is contiguous in memory and file: in a dense view, or inside one block of another view.
 * Gives the offset in the file. */
static int is_contiguous(const transfer_t *transfer, uint64_t *offset)
{
    const layout_t *layout = transfer->layout;
    layout_facts_t facts = layout_facts(layout);
    uint64_t first = transfer->first, last = first + transfer->bytes - 1;
    if (!transfer->packed && !layout_facts(transfer->access.memory).is_dense)
        return 0;
    if (!facts.is_dense) {
        if (!layout_ascends(layout, first, transfer->bytes))
            return 0;
        first = layout_file_offset(layout, first);
        last = layout_file_offset(layout, last);
    }
    *offset = transfer->displacement + first;
    return last - first == transfer->bytes - 1;
}

/* Describes a transfer. Packs its memory when the description would be too long otherwise. */
static int describe_all(transfer_t *transfer, part_memory_t *memory)
{
    int error = describe(transfer, 0, transfer->bytes, memory);
    if (error == -E2BIG && !transfer->packed) {
        int code = pack(transfer);
        if (code != MPI_SUCCESS)
            return code;
        error = describe(transfer, 0, transfer->bytes, memory);
    }
    if (chunks_help(transfer, error))
        return transfer_in_chunks(transfer);
    return error ? undescribable(transfer) : MPI_SUCCESS;
}

/* Begins to move the data of a transfer, also when it is begun again. */
static int launch(transfer_t *transfer)
{
    if (!is_collective(transfer)) {
        if (!transfer->bytes)
            return MPI_SUCCESS;
        uint64_t offset;
        if (!transfer->file->options.sync && is_contiguous(transfer, &offset))
            return transfer->access.flags & BLOCKING ? transfer_contiguous(transfer, offset)
                                                     : start_contiguous(transfer, offset);
    }
    part_memory_t memory = {0};
    int code = describe_all(transfer, &memory);
    if (memory.part) {
        code = start(transfer, &memory);
        unisono_part_free(memory.part);
    } else if (is_collective(transfer)) {
        /* The transfer has ended in chunks, or has failed. Other members must not wait. */
        int joined = start_empty(transfer);
        code = code == MPI_SUCCESS ? joined : code;
    }
    return code;
}

/* Locks the range of an access, in atomic mode. */
static int lock_bytes(transfer_t *transfer)
{
    if (!transfer->bytes)
        return MPI_SUCCESS;
    uint64_t from, to, displacement = transfer->displacement;
    layout_range(transfer->layout, transfer->first, transfer->bytes, &from, &to);
    if (unisono_lock_range(transfer->file->group, displacement + from, displacement + to,
                           !!is_write(transfer), &transfer->lock))
        return failure(transfer);
    return MPI_SUCCESS;
}

/* Checks that each byte has a place in the file, and a place of its own in a write. */
static int check_places(transfer_t *transfer)
{
    const int call = transfer->access.call;
    if (!transfer->bytes)
        return MPI_SUCCESS;
    if (!layout_facts(transfer->layout).bytes) {
        if (is_write(transfer))
            return wrong(MPI_ERR_IO, call, "the view of this process has no data",
                         "write 0 elements here, or set a filetype with data");
        transfer->bytes = 0; /* as at the end of a file */
    }
    if (!is_write(transfer))
        return MPI_SUCCESS;
    int repeats = layout_repeats(transfer->layout, transfer->first, transfer->bytes);
    if (repeats < 0)
        return wrong(MPI_ERR_NO_MEM, call, "not enough memory to check the view",
                     "free memory, or transfer less at a time");
    return !repeats ? MPI_SUCCESS
                    : wrong(MPI_ERR_IO, call, "the access writes a byte of the file twice: "
                            "repetitions of the filetype overlap",
                            "use a filetype with a larger extent, or write fewer repetitions of it");
}

/* Finds where the data begins in the view, and packs it if need be. */
static int place(transfer_t *transfer, uint64_t offset)
{
    transfer->bytes = transfer->access.file_bytes;
    if (__builtin_mul_overflow(offset, transfer->file->view.etype_bytes, &transfer->first)
        || transfer->first > (uint64_t)INT64_MAX - transfer->bytes % INT64_MAX)
        return wrong(MPI_ERR_ARG, transfer->access.call, "the offset lies beyond byte 2^62",
                     "give a smaller offset");
    int code = check_places(transfer);
    return code == MPI_SUCCESS && must_pack(transfer) ? pack(transfer) : code;
}

/* True for a call that ends when all of its data is on the disks. Of other calls servers may still
 * write behind. */
static int ends_on_disks(const transfer_t *transfer)
{
    if (!is_collective(transfer))
        return 0;
    const unisono_collective_options_t *options = &transfer->file->options;
    return options->strategy == UNISONO_NONCOLLECTIVE
           || (options->strategy == UNISONO_DISK_DIRECTED && options->sync);
}

static void finish(transfer_t *transfer);

transfer_t *transfer_begin(open_file_t *file, const access_t *access, uint64_t offset, int code)
{
    transfer_t *transfer = calloc(1, sizeof *transfer);
    if (!transfer) {
        layout_release(access->memory);
        return NULL;
    }
    transfer->file = file;
    transfer->access = *access;
    pthread_mutex_lock(&file->lock);
    int is_atomic = file->is_atomic;
    transfer->layout = layout_keep(file->view.layout);
    transfer->displacement = file->view.displacement;
    transfer->representation = file->view.representation;
    transfer->code = code == MPI_SUCCESS ? place(transfer, offset) : code;
    if (is_atomic || file->is_independent)
        transfer->access.flags &= ~COLLECTIVE;
    if (is_write(transfer) && !ends_on_disks(transfer))
        file->has_unreported = 1;
    pthread_mutex_unlock(&file->lock);
    if (transfer->code == MPI_SUCCESS && is_atomic)
        transfer->code = lock_bytes(transfer);
    if (transfer->code == MPI_SUCCESS)
        transfer->code = launch(transfer);
    else if (is_collective(transfer))
        start_empty(transfer); /* other members must not wait; the call has the earlier code */
    /* The lock is released at once. The program may wait for this transfer only after another process,
     * which needs the lock, has gone on. */
    if (transfer->lock)
        finish(transfer);
    return transfer;
}

/* Microseconds between calls of MPI while a process waits for other members. */
enum { PROGRESS_US = 1000 };

/* Waits for the end of a collective call, which needs all members. A member may join only after it has
 * received a message of this process, and MPI makes progress with messages only during calls of MPI. */
static void wait_for_members(const transfer_t *transfer)
{
    int ended = 0, is_there;
    while (!unisono_op_wait_for(transfer->op, PROGRESS_US, &ended) && !ended)
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, transfer->file->comm, &is_there,
                    MPI_STATUS_IGNORE);
}

int transfer_waits_for_members(const transfer_t *transfer)
{
    return is_collective(transfer) && transfer->file->size > 1;
}

/* ---- End ----------------------------------------------------------------------------------- */

/* Waits for the call of the library, and takes its result. Begins a read beyond the end of the file
 * again. */
static void take_result(transfer_t *transfer)
{
    if (transfer_waits_for_members(transfer))
        wait_for_members(transfer);
    int64_t moved = unisono_op_wait(transfer->op);
    transfer->op = NULL;
    if (moved >= 0) {
        if (transfer->code == MPI_SUCCESS && !transfer->moved)
            transfer->moved = (uint64_t)moved;
        return;
    }
    const unisono_error_t *error = unisono_last_error();
    int is_past_end = error && error->kind == UNISONO_ERR_PAST_END;
    if (transfer->code != MPI_SUCCESS || !is_past_end || transfer->attempts++ == ATTEMPTS_MAX) {
        if (transfer->code == MPI_SUCCESS)
            transfer->code = failure(transfer);
        return;
    }
    transfer->access.flags &= ~COLLECTIVE;
    if (!is_write(transfer))
        transfer->code = clip(transfer);
    if (transfer->code == MPI_SUCCESS)
        transfer->code = launch(transfer);
}

int transfer_has_ended(transfer_t *transfer)
{
    int ended = 1;
    while (transfer->op) {
        if (unisono_op_test(transfer->op, &ended))
            ended = 1;
        if (!ended)
            return 0;
        take_result(transfer);
    }
    return 1;
}

unisono_op_t *transfer_operation(const transfer_t *transfer)
{
    return transfer->op;
}

static void finish(transfer_t *transfer)
{
    while (transfer->op)
        take_result(transfer);
    if (transfer->lock && unisono_unlock(transfer->lock) && transfer->code == MPI_SUCCESS)
        transfer->code = failure(transfer);
    transfer->lock = NULL;
}

int transfer_end(transfer_t *transfer, uint64_t *bytes)
{
    *bytes = 0;
    if (!transfer)
        return MPI_ERR_NO_MEM;
    finish(transfer);
    int code = transfer->code;
    uint64_t copied = transfer->packed ? transfer->moved : 0;
    if (code == MPI_SUCCESS) {
        *bytes = is_write(transfer) ? transfer->access.memory_bytes : transfer->moved;
        if (transfer->packed && !is_write(transfer))
            code = unpack(transfer, bytes);
    }
    report_bytes(transfer->file, transfer->access.call, transfer->moved, copied);
    layout_release(transfer->layout);
    layout_release(transfer->access.memory);
    free(transfer->packed);
    free(transfer);
    return code;
}

void status_set(MPI_Status *status, uint64_t bytes)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
    PMPI_Status_set_cancelled(status, 0);
}
