/* generalized_requests.c - nonblocking transfers as generalized requests of MPI.
 *
 * Transfers make progress in the library. Their requests must be completed by MPI_Grequest_complete, during
 * a call of the program. So the calls that wait for and test requests come here while such requests
 * exist. They complete the requests of transfers that have ended, and leave the others to MPI. */
#include "../errors/errors.h"
#include "transfers.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>

int requests_pending;

/* Request of the program. */
typedef struct pending {
    MPI_Request request;
    open_file_t *file;
    transfer_t *transfer; /* NULL once the request is complete */
    int code;
    uint64_t bytes;
    int is_freed; /* by the program */
    struct pending *next;
} pending_t;

static pending_t *pendings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef int wait_t(MPI_Request *, MPI_Status *);
typedef int test_t(MPI_Request *, int *, MPI_Status *);
typedef int wait_all_t(int, MPI_Request *, MPI_Status *);
typedef int test_all_t(int, MPI_Request *, int *, MPI_Status *);
typedef int test_any_t(int, MPI_Request *, int *, int *, MPI_Status *);
typedef int test_some_t(int, MPI_Request *, int *, int *, MPI_Status *);
typedef int free_t(MPI_Request *);
typedef int get_status_t(MPI_Request, int *, MPI_Status *);

/* ---- One request --------------------------------------------------------------------------- */

static int query(void *state, MPI_Status *status)
{
    const pending_t *pending = state;
    status_set(status, pending->bytes);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    pthread_mutex_lock(&lock);
    for (pending_t **link = &pendings; *link; link = &(*link)->next)
        if (*link == state) {
            *link = (*link)->next;
            __atomic_sub_fetch(&requests_pending, 1, __ATOMIC_RELEASE);
            break;
        }
    pthread_mutex_unlock(&lock);
    free(state);
    return MPI_SUCCESS;
}

static int cancel(void *state, int is_complete)
{
    (void)state, (void)is_complete;
    return MPI_SUCCESS; /* transfers are not cancelled */
}

int request_make(open_file_t *file, transfer_t *transfer, MPI_Request *request)
{
    uint64_t bytes;
    pending_t *pending = calloc(1, sizeof *pending);
    if (!pending) {
        transfer_end(transfer, &bytes);
        return MPI_ERR_NO_MEM;
    }
    pending->file = file;
    pending->transfer = transfer;
    int code = PMPI_Grequest_start(query, release, cancel, pending, request);
    if (code != MPI_SUCCESS) {
        transfer_end(transfer, &bytes);
        free(pending);
        return code;
    }
    pending->request = *request;
    pthread_mutex_lock(&lock);
    pending->next = pendings;
    pendings = pending;
    __atomic_add_fetch(&requests_pending, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

static pending_t *find(MPI_Request request)
{
    pending_t *found = NULL;
    if (request == MPI_REQUEST_NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    for (pending_t *one = pendings; one && !found; one = one->next)
        if (one->request == request && !one->is_freed)
            found = one;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Waits for the transfer, and completes its request. */
static void complete(pending_t *pending)
{
    if (!pending->transfer)
        return;
    pending->code = transfer_end(pending->transfer, &pending->bytes);
    pending->transfer = NULL;
    PMPI_Grequest_complete(pending->request);
}

static void complete_if_ended(pending_t *pending)
{
    if (pending->transfer && transfer_has_ended(pending->transfer))
        complete(pending);
}

void requests_end(open_file_t *file)
{
    for (;;) {
        pending_t *found = NULL;
        pthread_mutex_lock(&lock);
        for (pending_t *one = pendings; one && !found; one = one->next)
            if (one->file == file && (one->transfer || one->is_freed))
                found = one;
        pthread_mutex_unlock(&lock);
        if (!found)
            break;
        MPI_Request request = found->request;
        int is_freed = found->is_freed;
        complete(found);
        if (is_freed)
            REAL(Wait, wait_t)(&request, MPI_STATUS_IGNORE);
    }
    /* Programs may still wait for the other requests, without the error handler of the file. */
    pthread_mutex_lock(&lock);
    for (pending_t *one = pendings; one; one = one->next)
        if (one->file == file)
            one->file = NULL;
    pthread_mutex_unlock(&lock);
}

/* ---- Several requests ---------------------------------------------------------------------- */

/* Requests of an array, before MPI frees some of them. */
typedef struct batch {
    int count, ours, others; /* requests of transfers, and other requests that are not null */
    int has_collective;      /* 1 when one of the transfers waits for other members */
    struct entry {
        pending_t *pending; /* NULL for other requests */
        open_file_t *file;
    } *entries;
} batch_t;

static int batch_begin(batch_t *batch, int count, const MPI_Request *requests)
{
    *batch = (batch_t){.count = count};
    if (count > 0 && !(batch->entries = calloc((size_t)count, sizeof *batch->entries)))
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < count; i++) {
        pending_t *pending = find(requests[i]);
        batch->entries[i].pending = pending;
        batch->entries[i].file = pending ? pending->file : NULL;
        batch->ours += pending != NULL;
        batch->has_collective |= pending && pending->transfer
                                 && transfer_waits_for_members(pending->transfer);
        batch->others += !pending && requests[i] != MPI_REQUEST_NULL;
    }
    return MPI_SUCCESS;
}

static void batch_complete_ended(batch_t *batch)
{
    for (int i = 0; i < batch->count; i++)
        if (batch->entries[i].pending)
            complete_if_ended(batch->entries[i].pending);
}

/* Codes of our requests, before MPI frees these. */
static int *batch_codes(const batch_t *batch)
{
    int *codes = calloc((size_t)batch->count + 1, sizeof *codes);
    for (int i = 0; codes && i < batch->count; i++)
        if (batch->entries[i].pending)
            codes[i] = batch->entries[i].pending->code;
    return codes;
}

/* Waits a little: for one of our transfers when nothing depends on messages. */
static void pause_for(const batch_t *batch, unsigned *turns)
{
    unisono_op_t **operations = NULL;
    if (!batch->others && !batch->has_collective)
        operations = calloc((size_t)batch->count, sizeof *operations);
    if (operations) {
        size_t index;
        for (int i = 0; i < batch->count; i++) {
            const pending_t *pending = batch->entries[i].pending;
            operations[i] = pending && pending->transfer ? transfer_operation(pending->transfer)
                                                         : NULL;
        }
        unisono_op_wait_any(operations, (size_t)batch->count, &index);
        free(operations);
        return;
    }
    /* Messages make progress only during calls of MPI. */
    if (++*turns > 16) {
        long ns = *turns < 64 ? 20000 : 200000;
        nanosleep(&(struct timespec){0, ns}, NULL);
    }
}

/* Code of a request that has ended. Calls the error handler of its file. */
static int result(const batch_t *batch, const int *codes, int index)
{
    return fail(batch->entries[index].file, codes[index]);
}

/* Enters the codes of transfers into the statuses of a call for several requests. `index_of`: requests of
 * the statuses; NULL for all in order. */
static int results(const batch_t *batch, const int *codes, int count, const int *index_of,
                   MPI_Status *statuses, int code)
{
    int has_failed = 0;
    for (int i = 0; i < count; i++) {
        int index = index_of ? index_of[i] : i;
        has_failed |= codes[index] != MPI_SUCCESS;
    }
    if (!has_failed)
        return code;
    for (int i = 0; i < count; i++) {
        int index = index_of ? index_of[i] : i;
        if (codes[index] != MPI_SUCCESS)
            result(batch, codes, index);
        if (statuses != MPI_STATUSES_IGNORE
            && (code != MPI_ERR_IN_STATUS || codes[index] != MPI_SUCCESS))
            statuses[i].MPI_ERROR = codes[index];
    }
    return MPI_ERR_IN_STATUS;
}

/* ---- Calls --------------------------------------------------------------------------------- */

static int call_wait(MPI_Request *request, MPI_Status *status)
{
    pending_t *pending = find(*request);
    if (!pending)
        return REAL(Wait, wait_t)(request, status);
    open_file_t *file = pending->file;
    complete(pending);
    int own = pending->code;
    int code = REAL(Wait, wait_t)(request, status);
    return code == MPI_SUCCESS ? fail(file, own) : code;
}

static int call_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    pending_t *pending = find(*request);
    if (!pending)
        return REAL(Test, test_t)(request, flag, status);
    open_file_t *file = pending->file;
    complete_if_ended(pending);
    int own = pending->code;
    int code = REAL(Test, test_t)(request, flag, status);
    return code == MPI_SUCCESS && *flag ? fail(file, own) : code;
}

static int test_all(int count, MPI_Request *requests, int *flag, MPI_Status *statuses, int waits)
{
    batch_t batch;
    unsigned turns = 0;
    int code = batch_begin(&batch, count, requests);
    if (code != MPI_SUCCESS)
        return code;
    for (;;) {
        batch_complete_ended(&batch);
        int *codes = batch_codes(&batch);
        if (!codes) {
            code = MPI_ERR_NO_MEM;
            break;
        }
        code = REAL(Testall, test_all_t)(count, requests, flag, statuses);
        if (*flag)
            code = results(&batch, codes, count, NULL, statuses, code);
        free(codes);
        if (*flag || !waits || code != MPI_SUCCESS)
            break;
        pause_for(&batch, &turns);
    }
    free(batch.entries);
    return code;
}

static int call_wait_all(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int flag = 0;
    return test_all(count, requests, &flag, statuses, 1);
}

static int call_test_all(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    return test_all(count, requests, flag, statuses, 0);
}

static int test_any(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status,
                    int waits)
{
    batch_t batch;
    unsigned turns = 0;
    int code = batch_begin(&batch, count, requests);
    if (code != MPI_SUCCESS)
        return code;
    for (;;) {
        batch_complete_ended(&batch);
        int *codes = batch_codes(&batch);
        if (!codes) {
            code = MPI_ERR_NO_MEM;
            break;
        }
        code = REAL(Testany, test_any_t)(count, requests, index, flag, status);
        if (*flag && *index != MPI_UNDEFINED && code == MPI_SUCCESS)
            code = result(&batch, codes, *index);
        free(codes);
        if (*flag || !waits || code != MPI_SUCCESS)
            break;
        pause_for(&batch, &turns);
    }
    free(batch.entries);
    return code;
}

static int call_wait_any(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    int flag = 0;
    return test_any(count, requests, index, &flag, status, 1);
}

static int call_test_any(int count, MPI_Request *requests, int *index, int *flag,
                         MPI_Status *status)
{
    return test_any(count, requests, index, flag, status, 0);
}

static int test_some(int count, MPI_Request *requests, int *ended, int *indices,
                     MPI_Status *statuses, int waits)
{
    batch_t batch;
    unsigned turns = 0;
    int code = batch_begin(&batch, count, requests);
    if (code != MPI_SUCCESS)
        return code;
    for (;;) {
        batch_complete_ended(&batch);
        int *codes = batch_codes(&batch);
        if (!codes) {
            code = MPI_ERR_NO_MEM;
            break;
        }
        code = REAL(Testsome, test_some_t)(count, requests, ended, indices, statuses);
        if (*ended != MPI_UNDEFINED)
            code = results(&batch, codes, *ended, indices, statuses, code);
        free(codes);
        if (*ended || !waits || code != MPI_SUCCESS)
            break;
        pause_for(&batch, &turns);
    }
    free(batch.entries);
    return code;
}

static int call_wait_some(int count, MPI_Request *requests, int *ended, int *indices,
                          MPI_Status *statuses)
{
    return test_some(count, requests, ended, indices, statuses, 1);
}

static int call_test_some(int count, MPI_Request *requests, int *ended, int *indices,
                          MPI_Status *statuses)
{
    return test_some(count, requests, ended, indices, statuses, 0);
}

static int call_request_free(MPI_Request *request)
{
    pending_t *pending = find(*request);
    if (!pending)
        return REAL(Request_free, free_t)(request);
    /* MPI would free the request before the transfer completes it. Closing the file frees it. */
    pending->is_freed = 1;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

static int call_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    pending_t *pending = find(request);
    if (pending)
        complete_if_ended(pending);
    return REAL(Request_get_status, get_status_t)(request, flag, status);
}

static int call_cancel(MPI_Request *request)
{
    return find(*request) ? MPI_SUCCESS : REAL(Cancel, free_t)(request);
}

void requests_enter(function_t **functions)
{
    ENTER(Wait, call_wait);
    ENTER(Test, call_test);
    ENTER(Waitall, call_wait_all);
    ENTER(Testall, call_test_all);
    ENTER(Waitany, call_wait_any);
    ENTER(Testany, call_test_any);
    ENTER(Waitsome, call_wait_some);
    ENTER(Testsome, call_test_some);
    ENTER(Request_free, call_request_free);
    ENTER(Request_get_status, call_get_status);
    ENTER(Cancel, call_cancel);
}
