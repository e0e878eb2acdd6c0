/* check.h - checks of the test programs, which are ordinary MPI programs.
 *
 * Every program is called as `PROGRAM FILE [-s SEED] [-n ROUNDS] [-x FEATURE]...`. It prints one
 * line at its end, or the place, the values and the seed of the first check that fails. Features
 * that can be left out:
 * - counters (shared file pointers), locks (atomic mode), hints, external32 (and internal)
 * - large (a file of 2 GiB is written), progress (of messages during collective calls)
 * - uncommitted (datatypes are refused), strict (what the standard leaves open or libraries get
 *   wrong)
 *
 * Exclude external32, progress, uncommitted and strict to run a program with another MPI-IO. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXCLUDED_MAX = 8 };

typedef struct test {
    const char *name; /* of the program */
    const char *file; /* name of the file to work on */
    unsigned long seed;
    int rounds; /* 0: as the program likes */
    int rank, size;
    long checks;
    const char *excluded[EXCLUDED_MAX];
    int excluded_count;
    char context[256]; /* said when a check fails */
} test_t;

extern test_t test; /* defined by the file that has main */

static inline void failed(const char *file, int line, const char *text)
{
    fprintf(stderr, "%s:%d: rank %d of %d, seed %lu: %s [%s]\n", file, line, test.rank, test.size,
            test.seed, text, test.context);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static inline void check_true(int is_true, const char *text, const char *file, int line)
{
    test.checks++;
    if (!is_true)
        failed(file, line, text);
}

static inline void check_equal(long long found, long long expected, const char *text,
                               const char *file, int line)
{
    char message[400];
    test.checks++;
    if (found == expected)
        return;
    snprintf(message, sizeof message, "%s is %lld, not %lld", text, found, expected);
    failed(file, line, message);
}

static inline void check_code(int code, int expected, const char *text, const char *file, int line)
{
    char message[MPI_MAX_ERROR_STRING * 2 + 400], found[MPI_MAX_ERROR_STRING] = "";
    int class = code, length;
    test.checks++;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (class == expected)
        return;
    MPI_Error_string(code, found, &length);
    snprintf(message, sizeof message, "%s gives class %d (%s), not %d", text, class, found,
             expected);
    failed(file, line, message);
}

#define CHECK(condition) check_true(!!(condition), #condition, __FILE__, __LINE__)
#define EQUAL(found, expected) check_equal((found), (expected), #found, __FILE__, __LINE__)
#define OK(call) check_code((call), MPI_SUCCESS, #call, __FILE__, __LINE__)
#define FAILS(call, class) check_code((call), (class), #call, __FILE__, __LINE__)

/* What is under test, for the message of a failure. */
#define CONTEXT(...) snprintf(test.context, sizeof test.context, __VA_ARGS__)

static inline int has(const char *feature)
{
    for (int i = 0; i < test.excluded_count; i++)
        if (strcmp(test.excluded[i], feature) == 0)
            return 0;
    return 1;
}

static inline void begin(int count, char **arguments, const char *name)
{
    test.name = name;
    test.seed = 1;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test.size);
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        if (arguments[i][0] != '-') {
            test.file = arguments[i];
            continue;
        }
        if (arguments[i][1] == 's')
            test.seed = strtoul(value, NULL, 10);
        else if (arguments[i][1] == 'n')
            test.rounds = atoi(value);
        else if (arguments[i][1] == 'x' && test.excluded_count < EXCLUDED_MAX)
            test.excluded[test.excluded_count++] = value;
        i++;
    }
    if (!test.file)
        failed(name, 0, "give a file name");
}

static inline int end(void)
{
    long sum = 0;
    MPI_Reduce(&test.checks, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (!test.rank)
        printf("%s: %ld checks passed\n", test.name, sum);
    return 0;
}

/* Random numbers: the same at every call with the same state. */
static inline unsigned long next_random(unsigned long *state)
{
    unsigned long x = *state += 0x9E3779B97F4A7C15UL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9UL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBUL;
    return x ^ (x >> 31);
}

/* A number from `low` to `high`. */
static inline long between(unsigned long *state, long low, long high)
{
    return low + (long)(next_random(state) % (unsigned long)(high - low + 1));
}

/* Removes the file, which may not exist, before a test. */
static inline void remove_file(const char *name)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        MPI_File_delete(name, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Deletes a file, which must exist. */
static inline void delete_file(const char *name)
{
    CONTEXT("name %s", name);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Makes what all have written visible to all, as the standard demands. */
static inline void publish(MPI_File file)
{
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
}

#endif
