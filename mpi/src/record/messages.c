/* messages.c - messages between two ranks: sends, receives, and the calls that look for messages.
 *
 * A call that sends and receives is written as a send that begins, a receive, and a wait. A message
 * that MPI_Mprobe has found is a receive that begins, for which MPI_Mrecv waits. */
#include "recording.h"

#include <stdlib.h>

/* Send modes. A ready send counts as a standard one. */
enum { STANDARD, SYNCHRONOUS, BUFFERED };

/* Messages that were found and are not received yet. */
static handle_table_t found_messages;

uint64_t data_bytes(MPI_Count count, MPI_Datatype type)
{
    MPI_Count bytes = 0;
    if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &bytes) || bytes < 0)
        return 0;
    return (uint64_t)count * (uint64_t)bytes;
}

uint64_t status_bytes(const MPI_Status *status, uint64_t otherwise)
{
    MPI_Count bytes = 0;
    int code = PMPI_Get_elements_x((MPI_Status *)status, MPI_BYTE, &bytes);
    return code || bytes < 0 ? otherwise : (uint64_t)bytes;
}

/* ---- Events -------------------------------------------------------------------------------- */

static void write_send(const communicator_t *communicator, envelope_t to, uint64_t bytes,
                       int is_synchronous, uint32_t number)
{
    WRITE_EVENT(send, clock_times(), communicator->number, world_rank(communicator, to.peer), to.tag,
          bytes, is_synchronous, number);
}

/* Writes a receive that begins, whatever its source and tag. Most messages have the greatest length that
 * is allowed, so that no other length has to be written at the end. */
static void write_receive_begin(const request_t *request)
{
    const communicator_t *communicator = request->communicator;
    envelope_t from = request->envelope;
    int is_any_peer = from.peer == MPI_ANY_SOURCE, is_any_tag = from.tag == MPI_ANY_TAG;
    if (is_any_peer || is_any_tag)
        clock_depends();
    WRITE_EVENT(receive, clock_times(), communicator->number,
          is_any_peer ? UINT32_MAX : world_rank(communicator, from.peer),
          is_any_tag ? UNISONO_TRACE_NO_MESSAGE_TAG : from.tag, request->bytes, request->number);
}

/* 1 when a status has a source: not after an error, nor for MPI_PROC_NULL. */
static int has_source(const communicator_t *communicator, const MPI_Status *status)
{
    return status->MPI_SOURCE >= 0 && status->MPI_SOURCE < communicator->size;
}

void received(const request_t *request, const MPI_Status *status)
{
    if (!has_source(request->communicator, status))
        return;
    WRITE_EVENT(received, request->number, world_rank(request->communicator, status->MPI_SOURCE),
          status->MPI_TAG, status_bytes(status, request->bytes));
}

static void note_wildcards(envelope_t from)
{
    if (from.peer == MPI_ANY_SOURCE || from.tag == MPI_ANY_TAG)
        clock_depends();
}

/* Writes a receive that has ended. */
static void write_receive(const communicator_t *communicator, envelope_t from, uint64_t bytes_max,
                          const MPI_Status *status)
{
    if (!has_source(communicator, status))
        return;
    note_wildcards(from);
    WRITE_EVENT(receive, clock_times(), communicator->number,
          world_rank(communicator, status->MPI_SOURCE), status->MPI_TAG,
          status_bytes(status, bytes_max), UNISONO_TRACE_NO_REQUEST);
}

/* ---- Sends --------------------------------------------------------------------------------- */

static int sent(int code, int mode, uint64_t bytes, envelope_t to, MPI_Comm comm)
{
    communicator_t *communicator;
    if (code || to.peer == MPI_PROC_NULL || !(communicator = communicator_of(comm)))
        return code;
    uint32_t number = UNISONO_TRACE_NO_REQUEST;
    if (mode == BUFFERED) {
        /* The call does not wait for the receiver, even for a long message. */
        number = number_take();
        number_abandon(number);
    }
    write_send(communicator, to, bytes, mode == SYNCHRONOUS, number);
    return code;
}

/* Enters the request of a send or a receive. A persistent one begins later. */
static request_t *enter(MPI_Request handle, enum request_kind kind, envelope_t envelope,
                        uint64_t bytes, MPI_Comm comm, int is_persistent)
{
    communicator_t *communicator;
    if (envelope.peer == MPI_PROC_NULL || !(communicator = communicator_of(comm)))
        return NULL;
    request_t *request = request_add(handle, kind, communicator);
    if (request) {
        request->envelope = envelope;
        request->bytes = bytes;
        request->is_persistent = is_persistent;
        request->is_active = !is_persistent;
    }
    return request;
}

static void begin_send(MPI_Request handle, int mode, uint64_t bytes, envelope_t to, MPI_Comm comm,
                       int is_persistent)
{
    request_t *request = enter(handle, SENDS, to, bytes, comm, is_persistent);
    if (!request)
        return;
    request->is_synchronous = mode == SYNCHRONOUS;
    if (!is_persistent)
        write_send(request->communicator, to, bytes, request->is_synchronous, request->number);
}

static void begin_receive(MPI_Request handle, uint64_t bytes, envelope_t from, MPI_Comm comm,
                          int is_persistent)
{
    request_t *request = enter(handle, RECEIVES, from, bytes, comm, is_persistent);
    if (request && !is_persistent)
        write_receive_begin(request);
}

#define MESSAGE(count_type, which)                                                                 \
    const void *buffer, count_type count, MPI_Datatype type, int which, int tag, MPI_Comm comm
#define MESSAGE_GIVEN(which) buffer, count, type, which, tag, comm
#define TO ((envelope_t){to, tag})
#define FROM ((envelope_t){from, tag})

#define SEND(name, mode, count_type)                                                             \
    static int call_##name(MESSAGE(count_type, to))                                                \
    {                                                                                              \
        int code = RUN(name, MESSAGE_GIVEN(to));                                                   \
        return sent(code, mode, data_bytes(count, type), TO, comm);                              \
    }
#define SEND_BEGIN(name, mode, count_type, is_persistent)                                        \
    static int call_##name(MESSAGE(count_type, to), MPI_Request *request)                          \
    {                                                                                              \
        int code = RUN(name, MESSAGE_GIVEN(to), request);                                          \
        if (!code)                                                                                 \
            begin_send(*request, mode, data_bytes(count, type), TO, comm, is_persistent);        \
        return code;                                                                               \
    }
#define RECEIVE_BEGIN(name, count_type, is_persistent)                                             \
    static int call_##name(MESSAGE(count_type, from), MPI_Request *request)                        \
    {                                                                                              \
        int code = RUN(name, MESSAGE_GIVEN(from), request);                                        \
        if (!code)                                                                                 \
            begin_receive(*request, data_bytes(count, type), FROM, comm, is_persistent);           \
        return code;                                                                               \
    }
#define RECEIVE(name, count_type)                                                                  \
    static int call_##name(MESSAGE(count_type, from), MPI_Status *status)                          \
    {                                                                                              \
        MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;                       \
        communicator_t *communicator;                                                              \
        int code = RUN(name, MESSAGE_GIVEN(from), used);                                           \
        if (!code && (communicator = communicator_of(comm)))                              \
            write_receive(communicator, FROM, data_bytes(count, type), used);                      \
        return code;                                                                               \
    }

/* Writes a call that sends and receives. */
static void exchanged(uint64_t sent_bytes, envelope_t to, uint64_t bytes_max, envelope_t from,
                      MPI_Comm comm, const MPI_Status *status)
{
    communicator_t *communicator = communicator_of(comm);
    if (!communicator)
        return;
    int has_send = to.peer != MPI_PROC_NULL;
    uint32_t number = has_send ? number_take() : 0;
    note_wildcards(from);
    if (has_send)
        write_send(communicator, to, sent_bytes, 0, number);
    write_receive(communicator, from, bytes_max, status);
    if (has_send)
        WRITE_EVENT(wait, clock_times(), &number, 1);
    if (has_send)
        number_return(number);
}

#define EXCHANGE(name, count_type)                                                                 \
    static int call_##name(const void *buffer, count_type count, MPI_Datatype type, int to,        \
                           int tag, void *target, count_type most, MPI_Datatype target_type,       \
                           int from, int from_tag, MPI_Comm comm, MPI_Status *status)              \
    {                                                                                              \
        MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;                       \
        int code = RUN(name, buffer, count, type, to, tag, target, most, target_type, from,        \
                       from_tag, comm, used);                                                      \
        if (!code)                                                                                 \
            exchanged(data_bytes(count, type), TO, data_bytes(most, target_type),                  \
                      (envelope_t){from, from_tag}, comm, used);                                   \
        return code;                                                                               \
    }
#define REPLACE(name, count_type)                                                                  \
    static int call_##name(void *buffer, count_type count, MPI_Datatype type, int to, int tag,     \
                           int from, int from_tag, MPI_Comm comm, MPI_Status *status)              \
    {                                                                                              \
        MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;                       \
        int code = RUN(name, buffer, count, type, to, tag, from, from_tag, comm, used);            \
        uint64_t bytes = data_bytes(count, type);                                                  \
        if (!code)                                                                                 \
            exchanged(bytes, TO, bytes, (envelope_t){from, from_tag}, comm, used);                 \
        return code;                                                                               \
    }

/* ---- Persistent requests ------------------------------------------------------------------- */

static void start(uint64_t word)
{
    request_t *request = request_of(word);
    if (!request)
        return;
    request->is_active = 1;
    if (request->kind == SENDS)
        write_send(request->communicator, request->envelope, request->bytes,
                   request->is_synchronous, request->number);
    else
        write_receive_begin(request);
}

static int call_Start(MPI_Request *request)
{
    int code = RUN(Start, request);
    if (!code)
        start(WORD(*request));
    return code;
}

static int call_Startall(int count, MPI_Request *requests)
{
    int code = RUN(Startall, count, requests);
    for (int i = 0; i < count && !code; i++)
        start(WORD(requests[i]));
    return code;
}

/* ---- Looking for messages ------------------------------------------------------------------ */

static int call_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    int code = RUN(Probe, from, tag, comm, status);
    note_wildcards(FROM);
    return code;
}

static int call_Iprobe(int from, int tag, MPI_Comm comm, int *is_there, MPI_Status *status)
{
    int code = RUN(Iprobe, from, tag, comm, is_there, status);
    if (!code && *is_there)
        clock_depends();
    else
        clock_polled();
    return code;
}

/* Begins the receive of a message that was found. */
static void message_found(MPI_Message message, envelope_t from, MPI_Comm comm,
                          const MPI_Status *status)
{
    communicator_t *communicator = communicator_of(comm);
    if (!communicator || !has_source(communicator, status))
        return;
    request_t *request = calloc(1, sizeof *request);
    if (!request) {
        stream_fail("not enough memory");
        return;
    }
    request->number = number_take();
    table_add(&found_messages, &request->entry, WORD(message));
    note_wildcards(from);
    WRITE_EVENT(receive, clock_times(), communicator->number,
          world_rank(communicator, status->MPI_SOURCE), status->MPI_TAG, status_bytes(status, 0),
          request->number);
}

static int call_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;
    int code = RUN(Mprobe, from, tag, comm, message, used);
    if (!code)
        message_found(*message, FROM, comm, used);
    return code;
}

static int call_Improbe(int from, int tag, MPI_Comm comm, int *is_there, MPI_Message *message,
                        MPI_Status *status)
{
    MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;
    int code = RUN(Improbe, from, tag, comm, is_there, message, used);
    if (code || !*is_there) {
        clock_polled();
        return code;
    }
    clock_depends();
    message_found(*message, FROM, comm, used);
    return code;
}

/* Number of the receive of a message, which is forgotten; UNISONO_TRACE_NO_REQUEST without one. */
static uint32_t message_take(uint64_t word)
{
    handle_entry_t *entry = table_find(&found_messages, word);
    if (!entry)
        return UNISONO_TRACE_NO_REQUEST;
    uint32_t number = ((request_t *)entry)->number;
    table_remove(&found_messages, entry);
    free(entry);
    return number;
}

#define MATCHED(count_type)                                                                        \
    void *buffer, count_type count, MPI_Datatype type, MPI_Message *message

#define RECEIVE_FOUND(name, count_type)                                                            \
    static int call_##name(MATCHED(count_type), MPI_Status *status)                                \
    {                                                                                              \
        uint64_t word = WORD(*message);                                                            \
        int code = RUN(name, buffer, count, type, message, status);                                \
        uint32_t number = message_take(word);                                                      \
        if (number != UNISONO_TRACE_NO_REQUEST) {                                         \
            WRITE_EVENT(wait, clock_times(), &number, 1);                                                 \
            number_return(number);                                                                 \
        }                                                                                          \
        return code;                                                                               \
    }
#define BEGIN_FOUND(name, count_type)                                                              \
    static int call_##name(MATCHED(count_type), MPI_Request *request)                              \
    {                                                                                              \
        uint64_t word = WORD(*message);                                                            \
        int code = RUN(name, buffer, count, type, message, request);                               \
        uint32_t number = message_take(word);                                                      \
        if (!code && number != UNISONO_TRACE_NO_REQUEST)                                  \
            request_add_numbered(*request, number);                                                \
        return code;                                                                               \
    }

/* ---- All forms ----------------------------------------------------------------------------- */

#define FORMS(suffix, count_type)                                                                  \
    SEND(Send##suffix, STANDARD, count_type)                                                       \
    SEND(Rsend##suffix, STANDARD, count_type)                                                      \
    SEND(Ssend##suffix, SYNCHRONOUS, count_type)                                                   \
    SEND(Bsend##suffix, BUFFERED, count_type)                                                      \
    SEND_BEGIN(Isend##suffix, STANDARD, count_type, 0)                                             \
    SEND_BEGIN(Irsend##suffix, STANDARD, count_type, 0)                                            \
    SEND_BEGIN(Issend##suffix, SYNCHRONOUS, count_type, 0)                                         \
    SEND_BEGIN(Ibsend##suffix, BUFFERED, count_type, 0)                                            \
    SEND_BEGIN(Send_init##suffix, STANDARD, count_type, 1)                                         \
    SEND_BEGIN(Rsend_init##suffix, STANDARD, count_type, 1)                                        \
    SEND_BEGIN(Ssend_init##suffix, SYNCHRONOUS, count_type, 1)                                     \
    SEND_BEGIN(Bsend_init##suffix, BUFFERED, count_type, 1)                                        \
    RECEIVE(Recv##suffix, count_type)                                                              \
    RECEIVE_BEGIN(Irecv##suffix, count_type, 0)                                                    \
    RECEIVE_BEGIN(Recv_init##suffix, count_type, 1)                                                \
    EXCHANGE(Sendrecv##suffix, count_type)                                                         \
    REPLACE(Sendrecv_replace##suffix, count_type)                                                  \
    RECEIVE_FOUND(Mrecv##suffix, count_type)                                                       \
    BEGIN_FOUND(Imrecv##suffix, count_type)

FORMS(, int)
FORMS(_c, MPI_Count)

#define ENTER_FORMS(suffix)                                                                        \
    do {                                                                                           \
        ENTER(Send##suffix);                                                                       \
        ENTER(Rsend##suffix);                                                                      \
        ENTER(Ssend##suffix);                                                                      \
        ENTER(Bsend##suffix);                                                                      \
        ENTER(Isend##suffix);                                                                      \
        ENTER(Irsend##suffix);                                                                     \
        ENTER(Issend##suffix);                                                                     \
        ENTER(Ibsend##suffix);                                                                     \
        ENTER(Send_init##suffix);                                                                  \
        ENTER(Rsend_init##suffix);                                                                 \
        ENTER(Ssend_init##suffix);                                                                 \
        ENTER(Bsend_init##suffix);                                                                 \
        ENTER(Recv##suffix);                                                                       \
        ENTER(Irecv##suffix);                                                                      \
        ENTER(Recv_init##suffix);                                                                  \
        ENTER(Sendrecv##suffix);                                                                   \
        ENTER(Sendrecv_replace##suffix);                                                           \
        ENTER(Mrecv##suffix);                                                                      \
        ENTER(Imrecv##suffix);                                                                     \
    } while (0)

void messages_enter(function_t **functions)
{
    ENTER_FORMS();
    ENTER_FORMS(_c);
    ENTER(Start);
    ENTER(Startall);
    ENTER(Probe);
    ENTER(Iprobe);
    ENTER(Mprobe);
    ENTER(Improbe);
}
