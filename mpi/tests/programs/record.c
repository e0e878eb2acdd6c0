/* record.c - makes every kind of call that the recorder takes, and writes to EXPECTED.RANK one line for
 * each event that the trace must have: record FILE EXPECTED. Run with 4 ranks. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *expected;
static int rank, size;

/* Numbers of communicators and of begun operations, in the order in which they are made. */
static int communicators = 1, begun;

__attribute__((format(printf, 1, 2))) static void expect(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(expected, format, values);
    va_end(values);
    fputc('\n', expected);
}

/* Writes an event with equal pieces of a file. */
static void expect_pieces(const char *what, int first, int bytes, int count, int distance)
{
    fprintf(expected, "%s", what);
    for (int i = 0; i < count; i++)
        fprintf(expected, " %d+%d", first + i * distance, bytes);
    fputc('\n', expected);
}

/* ---- Messages ------------------------------------------------------------------------------ */

/* Messages between neighbours of pairs: 0 and 1, 2 and 3. */
static void blocking(void)
{
    int peer = rank ^ 1, data[10] = {0};
    static char buffer[4096];
    int (*const sends[3])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = {
        MPI_Send, MPI_Ssend, PMPI_Send};
    for (int i = 0; i < 3; i++) {
        if (rank % 2) {
            MPI_Recv(data, 10, MPI_INT, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect("receive 0 %d %d %d", peer, i, 4 * (i + 1));
        } else {
            sends[i](data, i + 1, MPI_INT, peer, i, MPI_COMM_WORLD);
            expect("send 0 %d %d %d%s", peer, i, 4 * (i + 1), i == 1 ? " sync" : "");
        }
    }
    MPI_Barrier(MPI_COMM_SELF);
    expect("collective barrier %d %d 0", communicators++, 0);
    if (rank % 2) {
        MPI_Recv(data, 10, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("receive 0 %d 77 12 timing", peer);
        return;
    }
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Bsend(data, 3, MPI_INT, peer, 77, MPI_COMM_WORLD);
    expect("send 0 %d 77 12 begins %d", peer, begun++);
    void *detached;
    int bytes;
    MPI_Buffer_detach(&detached, &bytes);
}

static void exchanges(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out[4] = {0}, in[8];
    MPI_Sendrecv(out, 4, MPI_INT, right, 5, in, 8, MPI_INT, left, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect("send 0 %d 5 16 begins %d", right, begun);
    expect("receive 0 %d 5 16", left);
    expect("wait %d", begun++);
    MPI_Sendrecv_replace(out, 2, MPI_INT, left, 6, right, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("send 0 %d 6 8 begins %d", left, begun);
    expect("receive 0 %d 6 8", right);
    expect("wait %d", begun++);
    /* Only one of both directions. */
    int to = rank % 2 ? MPI_PROC_NULL : rank + 1, from = rank % 2 ? rank - 1 : MPI_PROC_NULL;
    MPI_Sendrecv(out, 1, MPI_INT, to, 7, in, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank % 2) {
        expect("receive 0 %d 7 4", from);
    } else {
        expect("send 0 %d 7 4 begins %d", to, begun);
        expect("wait %d", begun++);
    }
    MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 8, MPI_COMM_WORLD);
    MPI_Recv(out, 1, MPI_INT, MPI_PROC_NULL, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Many small sends, for which MPI libraries use one handle. */
static void nonblocking(void)
{
    enum { COUNT = 20 };
    MPI_Request requests[COUNT];
    int peer = rank ^ 1, data[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) {
        int is_send = (rank % 2) == (i % 2);
        if (is_send) {
            MPI_Isend(&data[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[i]);
            expect("send 0 %d %d 4 begins %d", peer, i, begun + i);
        } else {
            MPI_Irecv(&data[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[i]);
            expect("receive 0 %d %d 4 begins %d", peer, i, begun + i);
        }
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    fprintf(expected, "wait");
    for (int i = 0; i < COUNT; i++)
        fprintf(expected, " %d", begun++);
    expect("%s", "");
    /* A wildcard that matches the message of the other one. */
    MPI_Irecv(data, COUNT, MPI_INT, MPI_ANY_SOURCE, 30, MPI_COMM_WORLD, &requests[0]);
    expect("receive 0 %d 30 8 begins %d timing", peer, begun);
    MPI_Issend(data, 2, MPI_INT, peer, 30, MPI_COMM_WORLD, &requests[1]);
    expect("send 0 %d 30 8 sync begins %d", peer, begun + 1);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    expect("wait %d", begun++);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    expect("wait %d", begun++);
    /* Requests of no operation. */
    MPI_Isend(data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    requests[0] = requests[1] = MPI_REQUEST_NULL;
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Calls that end some of several requests. The receiver posts both, and the messages come in order:
 * the second is sent after an answer. */
static void some(void)
{
    MPI_Request requests[2];
    int peer = rank ^ 1, data[2] = {0}, index, flag = 0, ended, indices[2];
    for (int way = 0; way < 4; way++) {
        if (rank % 2) {
            int first = begun;
            for (int i = 0; i < 2; i++) {
                MPI_Irecv(&data[i], 1, MPI_INT, peer, 40 + i, MPI_COMM_WORLD, &requests[i]);
                expect("receive 0 %d %d 4 begins %d", peer, 40 + i, begun++);
            }
            for (int i = 0; i < 2; i++) {
                if (way == 0)
                    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
                else if (way == 1)
                    do {
                        MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
                    } while (!flag);
                else if (way == 2)
                    MPI_Waitsome(2, requests, &ended, indices, MPI_STATUSES_IGNORE);
                else
                    do {
                        MPI_Testsome(2, requests, &ended, indices, MPI_STATUSES_IGNORE);
                    } while (!ended);
                expect("wait %d timing", first + i);
                MPI_Send(data, 0, MPI_INT, peer, 50, MPI_COMM_WORLD);
                expect("send 0 %d 50 0", peer);
            }
        } else {
            for (int i = 0; i < 2; i++) {
                usleep(2000);
                MPI_Send(data, 1, MPI_INT, peer, 40 + i, MPI_COMM_WORLD);
                expect("send 0 %d %d 4", peer, 40 + i);
                MPI_Recv(data, 1, MPI_INT, peer, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                expect("receive 0 %d 50 0", peer);
            }
        }
    }
}

static void tests(void)
{
    MPI_Request requests[2];
    int peer = rank ^ 1, data[2] = {0}, flag = 0;
    if (rank % 2) {
        MPI_Irecv(data, 1, MPI_INT, peer, 60, MPI_COMM_WORLD, &requests[0]);
        expect("receive 0 %d 60 4 begins %d", peer, begun);
        while (!flag)
            MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        expect("wait %d timing", begun++);
        for (int i = 0; i < 2; i++) {
            MPI_Irecv(&data[i], 1, MPI_INT, peer, 61, MPI_COMM_WORLD, &requests[i]);
            expect("receive 0 %d 61 4 begins %d", peer, begun + i);
        }
        do {
            MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        } while (!flag);
        expect("wait %d %d timing", begun, begun + 1);
        begun += 2;
        do {
            MPI_Iprobe(peer, 62, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        } while (!flag);
        MPI_Recv(data, 1, MPI_INT, peer, 62, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("receive 0 %d 62 4 timing", peer);
        MPI_Probe(peer, 63, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(data, 1, MPI_INT, peer, 63, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("receive 0 %d 63 4", peer);
        return;
    }
    usleep(20000);
    const int tags[5] = {60, 61, 61, 62, 63};
    for (int i = 0; i < 5; i++) {
        MPI_Send(data, 1, MPI_INT, peer, tags[i], MPI_COMM_WORLD);
        expect("send 0 %d %d 4", peer, tags[i]);
    }
}

static void persistent(void)
{
    MPI_Request requests[2];
    int peer = rank ^ 1, out[6] = {0}, in[6];
    MPI_Send_init(out, 6, MPI_INT, peer, 70, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, 6, MPI_INT, peer, 70, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            MPI_Startall(2, requests);
        else
            for (int k = 0; k < 2; k++)
                MPI_Start(&requests[k]);
        expect("send 0 %d 70 24 begins %d", peer, begun);
        expect("receive 0 %d 70 24 begins %d", peer, begun + 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect("wait %d %d", begun, begun + 1);
        begun += 2;
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void matched(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int peer = rank ^ 1, data[8] = {0}, flag = 0;
    if (rank % 2) {
        MPI_Mprobe(MPI_ANY_SOURCE, 80, MPI_COMM_WORLD, &message, &status);
        expect("receive 0 %d 80 20 begins %d timing", peer, begun);
        MPI_Mrecv(data, 8, MPI_INT, &message, MPI_STATUS_IGNORE);
        expect("wait %d", begun++);
        while (!flag)
            MPI_Improbe(peer, 81, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        expect("receive 0 %d 81 24 begins %d timing", peer, begun);
        MPI_Imrecv(data, 8, MPI_INT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect("wait %d", begun++);
    } else {
        MPI_Send(data, 5, MPI_INT, peer, 80, MPI_COMM_WORLD);
        MPI_Send(data, 6, MPI_INT, peer, 81, MPI_COMM_WORLD);
        expect("send 0 %d 80 20", peer);
        expect("send 0 %d 81 24", peer);
    }
}

/* ---- Collective operations ----------------------------------------------------------------- */

static int in[64], out[64], counts[4] = {1, 2, 3, 4}, places[4] = {0, 4, 8, 12};

#define ONE(kind, root, bytes, call)                                                               \
    do {                                                                                           \
        call;                                                                                      \
        expect("collective %s 0 %d %d", kind, root, bytes);                                        \
    } while (0)
/* Operations that begin; they are waited for later. */
#define BEGIN(kind, root, bytes, call)                                                             \
    do {                                                                                           \
        MPI_Request *request = &requests[started++];                                               \
        call;                                                                                      \
        expect("collective %s 0 %d %d begins %d", kind, root, bytes, begun + started - 1);         \
    } while (0)

static void collectives(void)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    const MPI_Datatype type = MPI_INT;
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    int mine = 4 * counts[rank], byte_places[4] = {0, 16, 32, 48};
    int same[4] = {2, 2, 2, 2};
    ONE("barrier", 0, 0, MPI_Barrier(world));
    ONE("broadcast", 2, 28, MPI_Bcast(in, 7, type, 2, world));
    ONE("reduce", 1, 12, MPI_Reduce(in, out, 3, type, MPI_SUM, 1, world));
    ONE("all-reduce", 0, 20, MPI_Allreduce(MPI_IN_PLACE, out, 5, type, MPI_SUM, world));
    ONE("scan", 0, 4, MPI_Scan(in, out, 1, type, MPI_SUM, world));
    ONE("scan", 0, 8, MPI_Exscan(in, out, 2, type, MPI_SUM, world));
    ONE("gather", 3, 8, MPI_Gather(in, 2, type, out, 2, type, 3, world));
    ONE("gather", 0, 8, MPI_Gather(rank ? in : MPI_IN_PLACE, 2, type, out, 2, type, 0, world));
    ONE("gather", 0, mine, MPI_Gatherv(in, counts[rank], type, out, counts, places, type, 0, world));
    ONE("scatter", 2, 12, MPI_Scatter(out, 3, type, in, 3, type, 2, world));
    ONE("scatter", 0, mine,
        MPI_Scatterv(out, counts, places, type, in, counts[rank], type, 0, world));
    ONE("all-gather", 0, 8, MPI_Allgather(in, 2, type, out, 2, type, world));
    ONE("all-gather", 0, 8, MPI_Allgather(MPI_IN_PLACE, 0, type, out, 2, type, world));
    ONE("all-gather", 0, mine,
        MPI_Allgatherv(MPI_IN_PLACE, 0, type, out, counts, places, type, world));
    ONE("all-to-all", 0, 32, MPI_Alltoall(in, 2, type, out, 2, type, world));
    ONE("all-to-all", 0, 32, MPI_Alltoallv(in, same, places, type, out, same, places, type, world));
    ONE("all-to-all", 0, 32,
        MPI_Alltoallw(in, same, byte_places, types, out, same, byte_places, types, world));
    ONE("reduce-scatter", 0, 40, MPI_Reduce_scatter(in, out, counts, type, MPI_SUM, world));
    ONE("reduce-scatter", 0, 32, MPI_Reduce_scatter_block(in, out, 2, type, MPI_SUM, world));

    MPI_Request requests[16];
    static int sources[16][64], targets[16][64];
    int started = 0;
#define FROM sources[started]
#define TO targets[started]
    BEGIN("barrier", 0, 0, MPI_Ibarrier(world, request));
    BEGIN("broadcast", 1, 8, MPI_Ibcast(FROM, 2, type, 1, world, request));
    BEGIN("reduce", 0, 4, MPI_Ireduce(FROM, TO, 1, type, MPI_MAX, 0, world, request));
    BEGIN("all-reduce", 0, 4, MPI_Iallreduce(FROM, TO, 1, type, MPI_MAX, world, request));
    BEGIN("scan", 0, 4, MPI_Iscan(FROM, TO, 1, type, MPI_MAX, world, request));
    BEGIN("gather", 0, 4, MPI_Igather(FROM, 1, type, TO, 1, type, 0, world, request));
    BEGIN("scatter", 0, 4, MPI_Iscatter(FROM, 1, type, TO, 1, type, 0, world, request));
    BEGIN("all-gather", 0, 4, MPI_Iallgather(FROM, 1, type, TO, 1, type, world, request));
    BEGIN("all-gather", 0, mine,
          MPI_Iallgatherv(FROM, counts[rank], type, TO, counts, places, type, world, request));
    BEGIN("all-to-all", 0, 16, MPI_Ialltoall(FROM, 1, type, TO, 1, type, world, request));
    BEGIN("all-to-all", 0, 32,
          MPI_Ialltoallw(FROM, same, byte_places, types, TO, same, byte_places, types, world,
                         request));
    BEGIN("reduce-scatter", 0, 16,
          MPI_Ireduce_scatter_block(FROM, TO, 1, type, MPI_SUM, world, request));
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    fprintf(expected, "wait");
    for (int i = 0; i < started; i++)
        fprintf(expected, " %d", begun++);
    expect("%s", "");
}

static void constructors(void)
{
    MPI_Comm made, half, grid;
    MPI_Group world, pair;
    MPI_Request request;
    int data = 0, sizes[2] = {2, 2}, periods[2] = {0, 0}, remains[2] = {1, 0}, number;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    expect("collective barrier 0 0 0");
    number = communicators++;
    MPI_Bcast(&data, 1, MPI_INT, 3, made);
    expect("collective broadcast %d 3 4", number);
    MPI_Comm_free(&made);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &half);
    expect("collective all-gather 0 0 8");
    number = communicators++;
    /* The greater rank comes first. */
    MPI_Bcast(&data, 1, MPI_INT, 0, half);
    expect("collective broadcast %d %d 4", number, rank | 1);
    if (rank % 2) {
        MPI_Send(&data, 1, MPI_INT, 1, 9, half);
        expect("send %d %d 9 4", number, rank - 1);
    } else {
        MPI_Recv(&data, 1, MPI_INT, 0, 9, half, MPI_STATUS_IGNORE);
        expect("receive %d %d 9 4", number, rank + 1);
    }
    MPI_Comm_free(&half);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, (int[2]){1, 3}, &pair);
    MPI_Comm_create(MPI_COMM_WORLD, pair, &made);
    expect("collective barrier 0 0 0");
    if (made != MPI_COMM_NULL) {
        number = communicators++;
        MPI_Barrier(made);
        expect("collective barrier %d 0 0", number);
        MPI_Comm_free(&made);
        MPI_Comm_create_group(MPI_COMM_WORLD, pair, 1, &made);
        expect("collective barrier %d 0 0", communicators++);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&pair);
    MPI_Group_free(&world);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
    expect("collective barrier 0 0 0");
    number = communicators++;
    MPI_Cart_sub(grid, remains, &made);
    expect("collective barrier %d 0 0", number);
    communicators++;
    MPI_Comm_free(&made);
    MPI_Comm_free(&grid);
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    expect("collective barrier 0 0 0 begins %d", begun);
    number = communicators++;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("wait %d", begun++);
    MPI_Barrier(made);
    expect("collective barrier %d 0 0", number);
    MPI_Comm_free(&made);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    expect("collective all-gather 0 0 8");
    communicators++;
    MPI_Comm_free(&made);
}

/* ---- Files --------------------------------------------------------------------------------- */

enum { BYTES = 4096 };

static char data[BYTES];
static int files;

/* Opens a file; the trace has one more communicator for it. */
static MPI_File open_file(const char *name, const char *shown, int mode, const char *how, int *comm)
{
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    expect("open %d 0 %s %s", files, shown, how);
    *comm = communicators++;
    return file;
}

static void set_view(MPI_File file, MPI_Offset start, MPI_Datatype etype, MPI_Datatype type, int comm)
{
    MPI_File_set_view(file, start, etype, type, "native", MPI_INFO_NULL);
    expect("collective agree %d 0 48", comm);
}

static void wait_for(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    expect("wait %d", begun++);
}

static void positions(MPI_File file)
{
    MPI_Request request;
    MPI_Status status;
    int n = files, from = BYTES * rank;
    MPI_File_write_at(file, from, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    expect("write %d %d+%d", n, from, BYTES);
    MPI_File_write_at_all(file, from, data, BYTES / 4, MPI_INT, &status);
    expect("write %d all %d+%d", n, from, BYTES);
    MPI_File_iwrite_at(file, from + 8, data, 8, MPI_BYTE, &request);
    expect("write %d %d+8 begins %d", n, from + 8, begun);
    wait_for(&request);
    MPI_File_iread_at_all(file, from, data, 16, MPI_BYTE, &request);
    expect("read %d all %d+16 begins %d", n, from, begun);
    wait_for(&request);
    MPI_File_seek(file, from, MPI_SEEK_SET);
    MPI_File_read(file, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    expect("read %d %d+100", n, from);
    MPI_File_read_all(file, data, 50, MPI_BYTE, MPI_STATUS_IGNORE);
    expect("read %d all %d+50", n, from + 100);
    MPI_File_iread(file, data, 10, MPI_BYTE, &request);
    expect("read %d %d+10 begins %d", n, from + 150, begun);
    wait_for(&request);
    MPI_File_read(file, data, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    expect("read %d %d+1", n, from + 160);
    /* Beyond the end of the file, and nothing. */
    MPI_File_read_at(file, (MPI_Offset)size * BYTES - 30, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    expect("read %d %d+30", n, size * BYTES - 30);
    MPI_File_read_at_all(file, 0, data, rank ? 0 : 9, MPI_BYTE, MPI_STATUS_IGNORE);
    expect("read %d all %s", n, rank ? "-" : "0+9");
}

static void split_calls(MPI_File file)
{
    int n = files, from = BYTES * rank;
    MPI_File_write_at_all_begin(file, from, data, 64, MPI_BYTE);
    expect("write %d all %d+64 begins %d", n, from, begun);
    MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE);
    expect("wait %d", begun++);
    MPI_File_seek(file, from, MPI_SEEK_SET);
    MPI_File_read_all_begin(file, data, 32, MPI_BYTE);
    expect("read %d all %d+32 begins %d", n, from, begun);
    MPI_File_read_all_end(file, data, MPI_STATUS_IGNORE);
    expect("wait %d", begun++);
}

/* Rows and blocks of an array of 16 x 16 integers, of which each rank has a quarter. */
static void views(MPI_File file, int comm)
{
    MPI_Datatype type;
    int n = files, sizes[2] = {16, 16}, parts[2] = {8, 8};
    int starts[2] = {8 * (rank / 2), 8 * (rank % 2)}, at = 4 * (16 * starts[0] + starts[1]);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    set_view(file, 128, MPI_INT, type, comm);
    MPI_File_write_all(file, data, 64, MPI_INT, MPI_STATUS_IGNORE);
    expect_pieces("write 0 all", 128 + at, 32, 8, 64);
    MPI_File_read_at(file, 8, data, 12, MPI_INT, MPI_STATUS_IGNORE);
    expect("read %d %d+32 %d+16", n, 128 + at + 64, 128 + at + 128);
    MPI_Type_free(&type);
    int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    int arguments[2] = {1, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 2};
    MPI_Type_create_darray(size, rank, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT,
                           &type);
    MPI_Type_commit(&type);
    set_view(file, 0, MPI_INT, type, comm);
    MPI_File_write_all(file, data, 64, MPI_INT, MPI_STATUS_IGNORE);
    expect_pieces("write 0 all", 64 * (rank / 2) + 32 * (rank % 2), 32, 8, 128);
    MPI_Type_free(&type);
    set_view(file, 0, MPI_BYTE, MPI_BYTE, comm);
}

static void shared_pointer(MPI_File file, int comm)
{
    int n = files, from = 0;
    MPI_File_seek_shared(file, 1000, MPI_SEEK_SET);
    expect("collective agree %d 0 8", comm);
    for (int i = 0; i < rank; i++)
        from += 10 * (i + 1);
    MPI_File_write_ordered(file, data, 10 * (rank + 1), MPI_BYTE, MPI_STATUS_IGNORE);
    expect("write %d all %d+%d", n, 1000 + from, 10 * (rank + 1));
    MPI_File_read_ordered_begin(file, data, 5, MPI_BYTE);
    expect("read %d all %d+5 begins %d", n, 1100 + 5 * rank, begun);
    MPI_File_read_ordered_end(file, data, MPI_STATUS_IGNORE);
    expect("wait %d", begun++);
    MPI_Barrier(MPI_COMM_WORLD);
    expect("collective barrier 0 0 0");
    if (!rank) {
        MPI_File_write_shared(file, data, 7, MPI_BYTE, MPI_STATUS_IGNORE);
        expect("write %d 1120+7 timing", n);
    }
}

static void file_calls(const char *name, const char *shown)
{
    MPI_Offset bytes;
    int comm;
    if (!rank && !MPI_File_delete(name, MPI_INFO_NULL))
        expect("delete %s", shown);
    MPI_Barrier(MPI_COMM_WORLD);
    expect("collective barrier 0 0 0");
    int mode = MPI_MODE_RDWR | MPI_MODE_CREATE;
    MPI_File file = open_file(name, shown, mode, "creates fresh 0", &comm);
    MPI_File_set_size(file, 100);
    expect("size %d 100", files);
    MPI_File_preallocate(file, 200);
    expect("grow %d 200", files);
    MPI_File_get_size(file, &bytes);
    expect("get size %d", files);
    MPI_File_sync(file);
    expect("sync %d", files);
    positions(file);
    split_calls(file);
    views(file, comm);
    shared_pointer(file, comm);
    MPI_File_set_atomicity(file, 0);
    expect("collective agree %d 0 8", comm);
    MPI_File_close(&file);
    expect("close %d", files++);
    char end[32];
    snprintf(end, sizeof end, "%d", BYTES * size);
    file = open_file(name, shown, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, end, &comm);
    MPI_File_close(&file);
    expect("close %d", files++);
    if (!rank)
        expect("delete %s", shown);
}

/* Name of a file in the trace. */
static const char *shown_name(const char *name)
{
    const char *prefix = "unisono://";
    return strncmp(name, prefix, strlen(prefix)) ? name : name + strlen(prefix);
}

int main(int count, char **words)
{
    char path[4096];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count != 3 || size != 4)
        MPI_Abort(MPI_COMM_WORLD, 1);
    snprintf(path, sizeof path, "%s.%d", words[2], rank);
    expected = fopen(path, "w");
    if (!expected)
        MPI_Abort(MPI_COMM_WORLD, 1);
    expect("begin");
    blocking();
    exchanges();
    nonblocking();
    some();
    tests();
    persistent();
    matched();
    collectives();
    constructors();
    file_calls(words[1], shown_name(words[1]));
    if (rank % 2 == 0)
        expect("wait 0"); /* the buffered send */
    expect("end");
    if (fclose(expected))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
