/* real_calls.c - the functions that come behind the recorder, and their names. */
#include "recording.h"

static const front_t *front;

void real_calls_set(const front_t *given)
{
    front = given;
}

function_t *real_function(int call)
{
    return front->real(call);
}

const char *call_name(int call)
{
    return front->names[call];
}
