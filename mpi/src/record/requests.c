/* requests.c - requests of the program by their handles, and the numbers of begun operations. */
#include "recording.h"

#include <stdlib.h>

/* Greatest number of operations in one of the last waits. */
enum { FINISHED_AT_A_TIME = 4096 };

/* Array of numbers, which grows. */
typedef struct numbers {
    uint32_t *values;
    size_t count, room;
} numbers_t;

static handle_table_t table;
static numbers_t unused, abandoned;
static uint32_t next_number;

static void push(numbers_t *numbers, uint32_t number)
{
    if (numbers->count == numbers->room) {
        size_t room = numbers->room ? 2 * numbers->room : 64;
        uint32_t *values = realloc(numbers->values, room * sizeof *values);
        if (!values)
            return; /* the number is not used again */
        numbers->values = values;
        numbers->room = room;
    }
    numbers->values[numbers->count++] = number;
}

uint32_t number_take(void)
{
    return unused.count ? unused.values[--unused.count] : next_number++;
}

void number_return(uint32_t number)
{
    push(&unused, number);
}

void number_abandon(uint32_t number)
{
    push(&abandoned, number);
}

request_t *request_add_numbered(MPI_Request handle, uint32_t number)
{
    request_t *request = calloc(1, sizeof *request);
    if (!request) {
        stream_fail("not enough memory");
        return NULL;
    }
    request->number = number;
    request->kind = OTHER;
    request->is_active = 1;
    table_add(&table, &request->entry, WORD(handle));
    return request;
}

request_t *request_add(MPI_Request handle, enum request_kind kind, communicator_t *communicator)
{
    request_t *request = request_add_numbered(handle, number_take());
    if (request) {
        request->kind = kind;
        request->communicator = communicator ? communicator_keep(communicator) : NULL;
    }
    return request;
}

request_t *request_of(uint64_t word)
{
    return (request_t *)table_find(&table, word);
}

/* Removes a request, whose number may be used again or not. */
static void drop(request_t *request)
{
    table_remove(&table, &request->entry);
    communicator_release(request->communicator);
    free(request);
}

void request_end(request_t *request)
{
    request->is_active = 0;
    if (request->is_persistent)
        return;
    number_return(request->number);
    drop(request);
}

void request_give_up(request_t *request)
{
    if (request->is_active)
        number_abandon(request->number);
    else
        number_return(request->number);
    drop(request);
}

void requests_finish(void)
{
    for (size_t i = 0; i < abandoned.count; i += FINISHED_AT_A_TIME) {
        size_t rest = abandoned.count - i;
        WRITE_EVENT(wait, clock_times(), abandoned.values + i,
              rest < FINISHED_AT_A_TIME ? rest : FINISHED_AT_A_TIME);
    }
    abandoned.count = 0;
}
