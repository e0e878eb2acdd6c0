/* large.c - functions with large counts for libraries that lack them. Each calls the function without
 * large counts, with copies of its arrays. */
#include "large.h"

#include "recorder_border.h"
#include "../process/words.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 12 };

static void refuse(void)
{
    give_up("the MPI library of this program has no functions with large counts",
            "a count or a displacement does not fit in 32 bits",
            "use an MPI library that supports MPI 4");
}

/* Numbers of an array in 32 bits, to be freed; NULL for none. */
static int *narrowed(const int64_t *values, int count)
{
    if (!values)
        return NULL;
    int *narrow = malloc((size_t)count * sizeof *narrow + 1);
    if (!narrow)
        give_up("cannot convert the arguments of a call", "not enough memory", "free memory");
    for (int i = 0; i < count; i++) {
        if (values[i] < INT_MIN || values[i] > INT_MAX)
            refuse();
        narrow[i] = (int)values[i];
    }
    return narrow;
}

/* Number of members, or the rank, of a communicator. */
static int ask(const char *name, long comm)
{
    int answer = 0;
    ((int (*)(long, int *))library_function(name))(comm, &answer);
    return answer;
}

/* True when the arrays of an argument are read. If there is a root, only the root reads them. The first of
 * two arrays is not read when the data is in place: MPI_IN_PLACE is 1 or -1. */
static int has_arrays(const char *letters, const long *words, size_t argument)
{
    const char *root = strchr(letters, 'r'), *comm = strchr(letters, 'm');
    int has_two = letters[1] == 'c' && letters[4] == 'c';
    if (argument < 4 && has_two && (words[0] == 1 || words[0] == -1))
        return 0;
    return !root || (int)words[root - letters] == ask("PMPI_Comm_rank", words[comm - letters]);
}

static int call_words(size_t count, function_t *target, const long *words)
{
    long a = words[0], b = words[1], c = words[2], d = words[3], e = words[4], f = words[5];
    long g = words[6], h = words[7], i = words[8], j = words[9], k = words[10], l = words[11];
    switch (count) {
    case 4:
        return THROUGH(4, target);
    case 5:
        return THROUGH(5, target);
    case 6:
        return THROUGH(6, target);
    case 7:
        return THROUGH(7, target);
    case 8:
        return THROUGH(8, target);
    case 9:
        return THROUGH(9, target);
    case 10:
        return THROUGH(10, target);
    default:
        return THROUGH(12, target);
    }
}

/* Calls the function without large counts. The arrays of nonblocking operations are never freed: MPI reads
 * them until the operation has ended, and the recorder does not know when. */
static int call_small(const char *name, const char *letters, long *words)
{
    size_t count = strlen(letters);
    int begins = strncmp(name, "MPI_I", 5) == 0;
    int *arrays[ARGUMENTS_MAX] = {NULL};
    const char *comm = strchr(letters, 'm');
    for (size_t at = 0; at < count; at++) {
        if (letters[at] == 'n' && (words[at] < INT_MIN || words[at] > INT_MAX))
            refuse();
        if ((letters[at] == 'c' || letters[at] == 'd') && has_arrays(letters, words, at)) {
            int members = ask("PMPI_Comm_size", words[comm - letters]);
            arrays[at] = narrowed((const int64_t *)words[at], members);
            words[at] = (long)arrays[at];
        }
    }
    int code = call_words(count, must_have(next_function(name), name), words);
    for (size_t at = 0; at < count && !begins; at++)
        free(arrays[at]);
    return code;
}

#define CALL(n, name)
#define NOTED_CALL(n, name)
#define LARGE_CALL(n, name, letters)                                                               \
    static int small_##name(TAKE_##n)                                                              \
    {                                                                                              \
        long words[ARGUMENTS_MAX] = {GIVE_##n};                                                    \
        return call_small("MPI_" #name, letters, words);                                           \
    }
#define NOTED_LARGE_CALL LARGE_CALL
#include "recorded_functions.def"
#undef LARGE_CALL
#undef NOTED_LARGE_CALL

static function_t *const substitutes[CALL_COUNT] = {
#define LARGE_CALL(n, name, letters) [CALL_##name##_c] = (function_t *)small_##name,
#define NOTED_LARGE_CALL LARGE_CALL
#include "recorded_functions.def"
};

function_t *large_substitute(int call)
{
    return substitutes[call];
}
