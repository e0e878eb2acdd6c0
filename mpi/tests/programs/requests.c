/* requests.c - proves: requests of files behave as requests of messages do, in arrays with these and
 * null ones, under every call that waits or tests; several collective calls may be under way. */
#include "check.h"

test_t test;

enum { PIECES = 6, PIECE_INTS = 1000, MIX = 3 * PIECES, LARGE_INTS = 1 << 20 };

static MPI_File file;

/* Requests of a file, of messages to a neighbour, and null ones, in turn. */
typedef struct mix {
    MPI_Request requests[MIX];
    int data[PIECES][PIECE_INTS], sent[PIECES], received[PIECES];
    int is_write;
    int left;
} mix_t;

static int number_at(int round, int piece, int i)
{
    return ((round * 16 + piece) * 64 + test.rank) * 2048 + i;
}

static MPI_Offset offset_of(int piece)
{
    return ((MPI_Offset)piece * test.size + test.rank) * PIECE_INTS;
}

static void fill(mix_t *mix, int round)
{
    for (int piece = 0; piece < PIECES; piece++)
        for (int i = 0; i < PIECE_INTS; i++)
            mix->data[piece][i] = number_at(round, piece, i);
}

/* Begins all transfers. Writes have the numbers of `round`. */
static void start(mix_t *mix, int is_write, int round)
{
    int next = (test.rank + 1) % test.size, last = (test.rank + test.size - 1) % test.size;
    mix->is_write = is_write;
    mix->left = 2 * PIECES; /* null requests: those at index 3 i + 2 stay so in the first half */
    if (is_write)
        fill(mix, round);
    else
        memset(mix->data, 0, sizeof mix->data);
    for (int i = 0; i < PIECES; i++) {
        MPI_Request *at = &mix->requests[3 * i];
        MPI_Offset offset = offset_of(i);
        mix->sent[i] = round * 100 + i;
        int is_all = i % 2;
        if (is_write && is_all)
            OK(MPI_File_iwrite_at_all(file, offset, mix->data[i], PIECE_INTS, MPI_INT, at));
        else if (is_write)
            OK(MPI_File_iwrite_at(file, offset, mix->data[i], PIECE_INTS, MPI_INT, at));
        else if (is_all)
            OK(MPI_File_iread_at_all(file, offset, mix->data[i], PIECE_INTS, MPI_INT, at));
        else
            OK(MPI_File_iread_at(file, offset, mix->data[i], PIECE_INTS, MPI_INT, at));
        OK(MPI_Irecv(&mix->received[i], 1, MPI_INT, last, i, MPI_COMM_WORLD, at + 1));
        at[2] = MPI_REQUEST_NULL;
    }
    for (int i = 0; i < PIECES; i++)
        OK(MPI_Send(&mix->sent[i], 1, MPI_INT, next, i, MPI_COMM_WORLD));
}

static void check_status(const MPI_Status *status, int index)
{
    int count = -1;
    OK(MPI_Get_count(status, MPI_INT, &count));
    EQUAL(count, index % 3 == 0 ? PIECE_INTS : index % 3 == 1 ? 1 : 0);
    if (index % 3 == 1)
        EQUAL(status->MPI_TAG, index / 3);
}

static void finish(const mix_t *mix, int round)
{
    for (int i = 0; i < MIX; i++)
        CHECK(mix->requests[i] == MPI_REQUEST_NULL);
    for (int i = 0; i < PIECES; i++)
        EQUAL(mix->received[i], round * 100 + i);
    for (int piece = 0; piece < PIECES; piece++)
        for (int i = 0; i < PIECE_INTS; i++)
            EQUAL(mix->data[piece][i], number_at(round, piece, i));
}

/* ---- Ways to end all requests of a mix ------------------------------------------------------ */

static void by_wait(mix_t *mix)
{
    for (int i = MIX - 1; i >= 0; i--) {
        MPI_Status status;
        int is_null = mix->requests[i] == MPI_REQUEST_NULL;
        OK(MPI_Wait(&mix->requests[i], &status));
        if (!is_null)
            check_status(&status, i);
    }
}

static void by_test(mix_t *mix)
{
    for (int i = 0; i < MIX; i++) {
        MPI_Status status;
        int flag = 0, is_null = mix->requests[i] == MPI_REQUEST_NULL;
        while (!flag)
            OK(MPI_Test(&mix->requests[i], &flag, &status));
        if (!is_null)
            check_status(&status, i);
    }
}

static void by_wait_all(mix_t *mix)
{
    MPI_Status statuses[MIX];
    OK(MPI_Waitall(MIX, mix->requests, statuses));
    for (int i = 0; i < MIX; i++)
        check_status(&statuses[i], i);
}

static void by_wait_all_ignoring(mix_t *mix)
{
    OK(MPI_Waitall(MIX, mix->requests, MPI_STATUSES_IGNORE));
}

static void by_test_all(mix_t *mix)
{
    MPI_Status statuses[MIX];
    int flag = 0;
    while (!flag)
        OK(MPI_Testall(MIX, mix->requests, &flag, statuses));
    for (int i = 0; i < MIX; i++)
        check_status(&statuses[i], i);
}

static void by_wait_any(mix_t *mix)
{
    for (;;) {
        MPI_Status status;
        int index = -1;
        OK(MPI_Waitany(MIX, mix->requests, &index, &status));
        if (index == MPI_UNDEFINED)
            break;
        CHECK(mix->requests[index] == MPI_REQUEST_NULL);
        check_status(&status, index);
        mix->left--;
    }
    EQUAL(mix->left, 0);
}

static void by_test_any(mix_t *mix)
{
    for (;;) {
        MPI_Status status;
        int index = -1, flag = 0;
        OK(MPI_Testany(MIX, mix->requests, &index, &flag, &status));
        if (flag && index == MPI_UNDEFINED)
            break;
        if (!flag)
            continue;
        check_status(&status, index);
        mix->left--;
    }
    EQUAL(mix->left, 0);
}

static void by_some(mix_t *mix, int waits)
{
    for (;;) {
        MPI_Status statuses[MIX];
        int indices[MIX], count = -1;
        if (waits)
            OK(MPI_Waitsome(MIX, mix->requests, &count, indices, statuses));
        else
            OK(MPI_Testsome(MIX, mix->requests, &count, indices, statuses));
        if (count == MPI_UNDEFINED)
            break;
        CHECK(!waits || count > 0);
        for (int i = 0; i < count; i++)
            check_status(&statuses[i], indices[i]);
        mix->left -= count;
    }
    EQUAL(mix->left, 0);
}

static void by_wait_some(mix_t *mix)
{
    by_some(mix, 1);
}

static void by_test_some(mix_t *mix)
{
    by_some(mix, 0);
}

static void by_get_status(mix_t *mix)
{
    for (int i = 0; i < MIX; i++) {
        MPI_Status status;
        int flag = 0, is_null = mix->requests[i] == MPI_REQUEST_NULL;
        while (!flag)
            OK(MPI_Request_get_status(mix->requests[i], &flag, &status));
        if (is_null)
            continue;
        check_status(&status, i);
        CHECK(mix->requests[i] != MPI_REQUEST_NULL);
        OK(MPI_Wait(&mix->requests[i], &status));
        check_status(&status, i);
    }
}

static void check_mixes(void)
{
    static const struct {
        const char *name;
        void (*end)(mix_t *);
    } ways[] = {{"Wait", by_wait},
                {"Test", by_test},
                {"Waitall", by_wait_all},
                {"Waitall, ignoring", by_wait_all_ignoring},
                {"Testall", by_test_all},
                {"Waitany", by_wait_any},
                {"Testany", by_test_any},
                {"Waitsome", by_wait_some},
                {"Testsome", by_test_some},
                {"Request_get_status", by_get_status}};
    static mix_t mix;
    int count = sizeof ways / sizeof *ways;
    for (int round = 0; round < count; round++) {
        CONTEXT("%s", ways[round].name);
        start(&mix, 1, round);
        ways[round].end(&mix);
        finish(&mix, round);
        start(&mix, 0, round);
        ways[round].end(&mix);
        finish(&mix, round);
    }
}

/* ---- Arrays without active requests --------------------------------------------------------- */

/* The calls while a request of a file is under way that the arrays do not have. */
static void check_empty(void)
{
    int number = 5, index, flag, count, indices[3], value = 0;
    MPI_Request own, none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    CONTEXT("empty arrays");
    OK(MPI_File_iwrite_at(file, test.rank, &number, 1, MPI_INT, &own));
    /* An inactive persistent request counts as a null one. */
    OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 99, MPI_COMM_SELF, &none[1]));
    for (int length = 0; length <= 3; length += 3) {
        OK(MPI_Waitall(length, none, statuses));
        index = 7;
        OK(MPI_Waitany(length, none, &index, &status));
        EQUAL(index, MPI_UNDEFINED);
        OK(MPI_Waitsome(length, none, &count, indices, statuses));
        EQUAL(count, MPI_UNDEFINED);
        OK(MPI_Testsome(length, none, &count, indices, statuses));
        EQUAL(count, MPI_UNDEFINED);
        flag = 0;
        OK(MPI_Testall(length, none, &flag, statuses));
        EQUAL(flag, 1);
        flag = 0;
        OK(MPI_Testany(length, none, &index, &flag, &status));
        EQUAL(flag, 1);
        EQUAL(index, MPI_UNDEFINED);
    }
    flag = 0;
    OK(MPI_Request_get_status(none[0], &flag, &status));
    EQUAL(flag, 1);
    OK(MPI_Request_free(&none[1]));
    OK(MPI_Wait(&none[0], &status));
    OK(MPI_Wait(&own, &status));
    CHECK(own == MPI_REQUEST_NULL);
}

/* A message that never comes does not hold up a request of a file. */
static void check_pending_message(void)
{
    int number = 5, index = -1, flag, value, count, indices[2];
    MPI_Request both[2];
    CONTEXT("a message that does not come");
    OK(MPI_Irecv(&value, 1, MPI_INT, 0, 98, MPI_COMM_SELF, &both[0]));
    OK(MPI_File_iwrite_at(file, test.rank, &number, 1, MPI_INT, &both[1]));
    OK(MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE));
    EQUAL(index, 1);
    OK(MPI_File_iwrite_at(file, test.rank, &number, 1, MPI_INT, &both[1]));
    OK(MPI_Waitsome(2, both, &count, indices, MPI_STATUSES_IGNORE));
    EQUAL(count, 1);
    EQUAL(indices[0], 1);
    OK(MPI_File_iwrite_at(file, test.rank, &number, 1, MPI_INT, &both[1]));
    OK(MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE));
    EQUAL(flag, 0);
    CHECK(both[0] != MPI_REQUEST_NULL && both[1] != MPI_REQUEST_NULL);
    OK(MPI_Cancel(&both[0]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
}

/* ---- Single cases -------------------------------------------------------------------------- */

static void check_free_and_cancel(void)
{
    int numbers[3] = {11, 12, 13}, found = 0, cancelled = -1;
    MPI_Request request;
    MPI_Status status;
    CONTEXT("Request_free, Cancel");
    for (int i = 0; i < 2; i++) {
        OK(MPI_File_iwrite_at(file, 3 * test.rank + i, &numbers[i], 1, MPI_INT, &request));
        OK(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL);
    }
    OK(MPI_File_iwrite_at(file, 3 * test.rank + 2, &numbers[2], 1, MPI_INT, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    if (!cancelled) {
        OK(MPI_File_read_at(file, 3 * test.rank + 2, &found, 1, MPI_INT, &status));
        EQUAL(found, 13);
    }
    /* Freed requests have ended when the file is closed. */
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 2; i++) {
        OK(MPI_File_read_at(file, 3 * test.rank + i, &found, 1, MPI_INT, &status));
        EQUAL(found, numbers[i]);
    }
}

/* Many collective calls under way, ended in another order. */
static void check_collectives(void)
{
    enum { CALLS = 24 };
    static int data[CALLS][64];
    MPI_Request requests[CALLS];
    CONTEXT("several collective calls under way");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CALLS; i++) {
            MPI_Offset offset = (MPI_Offset)(i * test.size + test.rank) * 64;
            for (int k = 0; k < 64; k++)
                data[i][k] = round ? -1 : number_at(20, i % 16, k);
            if (round)
                OK(MPI_File_iread_at_all(file, offset, data[i], 64, MPI_INT, &requests[i]));
            else
                OK(MPI_File_iwrite_at_all(file, offset, data[i], 64, MPI_INT, &requests[i]));
        }
        for (int i = CALLS - 1; i >= 0; i -= 2)
            OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        OK(MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < CALLS; i++)
        for (int k = 0; k < 64; k++)
            EQUAL(data[i][k], number_at(20, i % 16, k));
}

/* A message under way ends while a process waits for a collective call, which another joins
 * only after the message. `waits_for_all`: the message is in the array that the process waits for. */
static void check_progress(int waits_for_all)
{
    static int message[LARGE_INTS];
    int number = test.rank;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    CONTEXT("progress of messages, %s", waits_for_all ? "Waitall" : "Wait");
    if (test.rank == 0 && test.size > 1)
        OK(MPI_Isend(message, LARGE_INTS, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[1]));
    if (test.rank == 1)
        OK(MPI_Recv(message, LARGE_INTS, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_File_iwrite_at_all(file, test.rank, &number, 1, MPI_INT, &requests[0]));
    if (!waits_for_all)
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void check_messages(void)
{
    check_progress(1);
    if (has("progress"))
        check_progress(0);
}

/* Errors of requests: at the call, or in the statuses. */
static void check_errors(void)
{
    MPI_File wrong;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    int number = 0;
    CONTEXT("errors of requests");
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_WRONLY, MPI_INFO_NULL, &wrong));
    OK(MPI_File_set_errhandler(wrong, MPI_ERRORS_RETURN));
    int code = MPI_File_iread_at(wrong, 0, &number, 1, MPI_INT, &requests[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&requests[0], &statuses[0]);
    FAILS(code, MPI_ERR_ACCESS);
    code = MPI_File_iread_at_all(wrong, 0, &number, 1, MPI_INT, &requests[0]);
    if (code == MPI_SUCCESS) {
        OK(MPI_File_iwrite_at(file, 4096 + test.rank, &number, 1, MPI_INT, &requests[1]));
        FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
        FAILS(statuses[0].MPI_ERROR, MPI_ERR_ACCESS);
        OK(statuses[1].MPI_ERROR);
    } else {
        FAILS(code, MPI_ERR_ACCESS);
    }
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    OK(MPI_File_close(&wrong));
}

/* A file that is closed although requests are under way: they end. */
static void check_close(void)
{
    MPI_File other;
    MPI_Request requests[3];
    int numbers[3] = {1, 2, 3}, count = -1;
    MPI_Status status;
    CONTEXT("requests of a closed file");
    if (!has("strict"))
        return;
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_RDWR, MPI_INFO_NULL, &other));
    OK(MPI_File_set_errhandler(other, MPI_ERRORS_RETURN));
    OK(MPI_File_iwrite_at(other, 4 * test.rank, &numbers[0], 1, MPI_INT, &requests[0]));
    OK(MPI_File_iwrite_at_all(other, 4 * test.rank, &numbers[1], 1, MPI_INT, &requests[1]));
    OK(MPI_File_iread_at_all(other, 4 * test.rank, &numbers[2], -1, MPI_INT, &requests[2]));
    OK(MPI_File_close(&other));
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EQUAL(count, 1);
    OK(MPI_Wait(&requests[1], &status));
    MPI_Wait(&requests[2], &status); /* its error may be forgotten, but not with a crash */
}

int main(int count, char **arguments)
{
    begin(count, arguments, "requests");
    remove_file(test.file);
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    void (*const checks[])(void) = {check_mixes,           check_empty,       check_pending_message,
                                    check_free_and_cancel, check_collectives, check_messages,
                                    check_errors,          check_close};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        checks[i]();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(MPI_File_close(&file));
    remove_file(test.file);
    return end();
}
