/* kernels.c - small programs of MPI-IO as they are common in practice, for `make accuracy`.
 *
 *   kernels FILE vector DIRECTION MODE RECORD TRANSFERS [sync]   one array of 64 MiB, dealt in records
 *   kernels FILE ior LAYOUT MODE TRANSFER_BYTES SEGMENTS         written, then read by the next rank
 *   kernels FILE btio MODE DUMPS COMPUTED_US                     diagonal multi-partition of a cube
 *   kernels FILE transpose MODE SIDE                             rows are written, columns read
 *   kernels FILE matmul SIDE PANELS                              product of matrices out of core
 *   kernels FILE checkpoint BYTES STEPS COMPUTED_US [sync]       computation, then a dump of all ranks
 *
 * MODE is collective or independent. The last line that is printed has the seconds from the end of
 * MPI_Init to before MPI_Finalize, of the slowest rank. */
#define PROGRAM "kernels"
#include "../call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static MPI_File file;
static int is_collective;

static void usage(void)
{
    if (rank == 0)
        fprintf(stderr, PROGRAM ": unknown arguments: see the head of kernels.c\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void *memory(size_t bytes)
{
    char *memory = malloc(bytes);
    if (memory == NULL) {
        fprintf(stderr, PROGRAM ": rank %d: no memory for %zu bytes\n", rank, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(memory, rank + 1, bytes);
    return memory;
}

/* Uses the processor, not the clock: other ranks may take it meanwhile. */
static void compute(long us)
{
    volatile double value = 1.0;
    for (long step = 0; step < us * 200; step++)
        value = value * 1.0000001 + 1e-9;
}

static void open_file(const char *name, int mode)
{
    CALL(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
}

/* Moves `count` bytes at an offset of the view. */
static void move(int writes, MPI_Offset offset, void *data, int count)
{
    MPI_Status status;
    if (writes && is_collective)
        CALL(MPI_File_write_at_all(file, offset, data, count, MPI_BYTE, &status));
    else if (writes)
        CALL(MPI_File_write_at(file, offset, data, count, MPI_BYTE, &status));
    else if (is_collective)
        CALL(MPI_File_read_at_all(file, offset, data, count, MPI_BYTE, &status));
    else
        CALL(MPI_File_read_at(file, offset, data, count, MPI_BYTE, &status));
}

/* The view of bytes in blocks that all ranks take in turn, beginning with this rank. */
static void deal(int block_bytes)
{
    MPI_Datatype block, dealt;
    CALL(MPI_Type_contiguous(block_bytes, MPI_BYTE, &block));
    CALL(MPI_Type_create_resized(block, 0, (MPI_Aint)block_bytes * size, &dealt));
    CALL(MPI_Type_commit(&dealt));
    CALL(MPI_File_set_view(file, (MPI_Offset)rank * block_bytes, MPI_BYTE, dealt, "native",
                           MPI_INFO_NULL));
    CALL(MPI_Type_free(&block));
    CALL(MPI_Type_free(&dealt));
}

static void vector(const char *name, int writes, int record, int transfers, int syncs)
{
    int bytes = (64 << 20) / size;
    char *data = memory((size_t)bytes);
    open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    deal(record);
    if (is_collective) {
        for (int i = 0; i < transfers + !writes; i++) {
            move(writes || i == 0, 0, data, bytes);
            if (syncs)
                CALL(MPI_File_sync(file));
        }
    } else {
        /* Whole records, so that the view makes each a piece of its own. */
        int is_first = !writes;
        for (int i = 0; i < transfers + !writes; i++, is_first = 0) {
            for (int offset = 0; offset < bytes; offset += record)
                move(writes || is_first, offset, data + offset, record);
            CALL(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    CALL(MPI_File_close(&file));
    free(data);
}

static void ior(const char *name, int is_strided, int bytes, int segments)
{
    char *data = memory((size_t)bytes);
    open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (int writes = 1; writes >= 0; writes--) {
        /* The data that is read was written by another rank. */
        int place = writes ? rank : (rank + 1) % size;
        for (int segment = 0; segment < segments; segment++) {
            MPI_Offset turn = is_strided ? (MPI_Offset)segment * size + place
                                         : (MPI_Offset)place * segments + segment;
            move(writes, turn * bytes, data, bytes);
        }
        CALL(MPI_Barrier(MPI_COMM_WORLD));
    }
    CALL(MPI_File_close(&file));
    free(data);
}

/* Solution of NAS BT-IO: five doubles for each cell of a cube, q * q ranks with q cells each on a
 * diagonal, so that all ranks work on each plane. */
static void btio(const char *name, int dumps, long computed_us)
{
    enum { SIDE = 64, FIELDS = 5 };
    int q = (int)(sqrt((double)size) + 0.5);
    if (q * q != size || SIDE % q != 0)
        usage();
    int edge = SIDE / q, extents[4] = { SIDE, SIDE, SIDE, FIELDS };
    int shape[4] = { edge, edge, edge, FIELDS };
    size_t cell_bytes = (size_t)edge * edge * edge * FIELDS * sizeof(double);
    MPI_Offset dump_bytes = (MPI_Offset)SIDE * SIDE * SIDE * FIELDS * (MPI_Offset)sizeof(double);
    char *data = memory(cell_bytes * (size_t)q);
    int row = rank / q, column = rank % q;
    MPI_Datatype types[64];
    int lengths[64], starts[64][4];
    MPI_Aint places[64];
    for (int cell = 0; cell < q; cell++) {
        int *start = starts[cell];
        start[0] = cell * edge;
        start[1] = (row + cell) % q * edge;
        start[2] = (column + cell) % q * edge;
        start[3] = 0;
        CALL(MPI_Type_create_subarray(4, extents, shape, start, MPI_ORDER_C, MPI_DOUBLE,
                                      &types[cell]));
        lengths[cell] = 1;
        places[cell] = 0;
    }
    MPI_Datatype whole;
    CALL(MPI_Type_create_struct(q, lengths, places, types, &whole));
    CALL(MPI_Type_commit(&whole));
    open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (int dump = 0; dump < dumps; dump++) {
        compute(computed_us);
        if (is_collective) {
            CALL(MPI_File_set_view(file, dump * dump_bytes, MPI_DOUBLE, whole, "native",
                                   MPI_INFO_NULL));
            move(1, 0, data, (int)(cell_bytes * (size_t)q));
            continue;
        }
        size_t line = (size_t)edge * FIELDS * sizeof(double);
        char *from = data;
        for (int cell = 0; cell < q; cell++)
            for (int z = 0; z < edge; z++)
                for (int y = 0; y < edge; y++, from += line) {
                    MPI_Offset at = starts[cell][0] + z;
                    at = (at * SIDE + starts[cell][1] + y) * SIDE + starts[cell][2];
                    move(1, dump * dump_bytes + at * FIELDS * (MPI_Offset)sizeof(double), from,
                         (int)line);
                }
    }
    CALL(MPI_File_close(&file));
    for (int cell = 0; cell < q; cell++)
        CALL(MPI_Type_free(&types[cell]));
    CALL(MPI_Type_free(&whole));
    free(data);
}

static void transpose(const char *name, int side)
{
    int lines = side / size;
    size_t bytes = (size_t)lines * (size_t)side * sizeof(double);
    char *data = memory(bytes);
    MPI_Datatype columns;
    open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    move(1, (MPI_Offset)rank * (MPI_Offset)bytes, data, (int)bytes);
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    CALL(MPI_Type_vector(side, lines, side, MPI_DOUBLE, &columns));
    CALL(MPI_Type_commit(&columns));
    CALL(MPI_File_set_view(file, (MPI_Offset)rank * lines * (MPI_Offset)sizeof(double), MPI_DOUBLE,
                           columns, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < 8; turn++)
        move(0, 0, data, (int)bytes);
    CALL(MPI_File_close(&file));
    CALL(MPI_Type_free(&columns));
    free(data);
}

/* Each rank computes a band of rows of the product; panels of the second factor are read by all. */
static void matmul(const char *name, int side, int panels)
{
    int rows = side / size, wide = side / panels;
    size_t band = (size_t)rows * (size_t)side, panel = (size_t)wide * (size_t)side;
    double *a = memory(band * sizeof(double)), *b = memory(panel * sizeof(double));
    double *c = memory((size_t)rows * (size_t)wide * sizeof(double));
    MPI_Offset bytes = (MPI_Offset)side * side * (MPI_Offset)sizeof(double);
    open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    move(1, (MPI_Offset)rank * (MPI_Offset)(band * sizeof(double)), a, (int)(band * sizeof(double)));
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    for (int number = 0; number < panels; number++) {
        move(0, (MPI_Offset)number * (MPI_Offset)(panel * sizeof(double)), b,
             (int)(panel * sizeof(double)));
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < wide; j++) {
                double sum = 0.0;
                for (int k = 0; k < side; k++)
                    sum += a[(size_t)i * (size_t)side + (size_t)k]
                           * b[(size_t)j * (size_t)side + (size_t)k];
                c[(size_t)i * (size_t)wide + (size_t)j] = sum;
            }
        MPI_Offset place = (MPI_Offset)number * size + rank;
        int written = rows * wide * (int)sizeof(double);
        move(1, bytes + place * written, c, written);
    }
    CALL(MPI_File_close(&file));
    free(a);
    free(b);
    free(c);
}

static void checkpoint(const char *name, int bytes, int steps, long computed_us, int syncs)
{
    char *data = memory((size_t)bytes);
    double sum, own = rank;
    is_collective = 1;
    open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (int step = 0; step < steps; step++) {
        compute(computed_us);
        CALL(MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        move(1, (MPI_Offset)rank * bytes, data, bytes);
        if (syncs)
            CALL(MPI_File_sync(file));
    }
    CALL(MPI_File_close(&file));
    free(data);
}

int main(int count, char **words)
{
    CALL(MPI_Init(&count, &words));
    double begun = MPI_Wtime(), own, seconds;
    CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CALL(MPI_Comm_size(MPI_COMM_WORLD, &size));
    char *none[8] = { "", "", "", "", "", "", "", "" };
    for (int i = 0; i < 8 && i + 1 < count; i++)
        none[i] = words[i + 1];
    char **said = none, *kernel = said[1];
    for (int i = 2; i < 5; i++)
        is_collective |= strcmp(said[i], "collective") == 0;
    if (strcmp(kernel, "vector") == 0)
        vector(said[0], strcmp(said[2], "write") == 0, atoi(said[4]), atoi(said[5]),
               strcmp(said[6], "sync") == 0);
    else if (strcmp(kernel, "ior") == 0)
        ior(said[0], strcmp(said[2], "strided") == 0, atoi(said[4]), atoi(said[5]));
    else if (strcmp(kernel, "btio") == 0)
        btio(said[0], atoi(said[3]), atol(said[4]));
    else if (strcmp(kernel, "transpose") == 0)
        transpose(said[0], atoi(said[3]));
    else if (strcmp(kernel, "matmul") == 0)
        matmul(said[0], atoi(said[2]), atoi(said[3]));
    else if (strcmp(kernel, "checkpoint") == 0)
        checkpoint(said[0], atoi(said[2]), atoi(said[3]), atol(said[4]),
                   strcmp(said[5], "sync") == 0);
    else
        usage();
    own = MPI_Wtime() - begun;
    CALL(MPI_Reduce(&own, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank == 0)
        printf("seconds %.6f\n", seconds);
    CALL(MPI_Finalize());
    return 0;
}
