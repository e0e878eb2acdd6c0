/* front_end.c - the front end of the interposer, as a back end sees it. */
#include "front_end.h"

static const front_t *front;

void front_end_set(const front_t *given)
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
