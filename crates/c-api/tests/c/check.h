/* What the test programs share: checks that end the program, and data that can be recognised. */
#ifndef CHECK_H
#define CHECK_H

#include "unisono.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition))                                                                         \
            check_failed(__FILE__, __LINE__, #condition);                                         \
    } while (0)

/* The call returns 0. */
#define OK(call) CHECK((call) == 0)

/* The call fails with an errno, and leaves an error of a kind that has three parts. */
#define FAILS(call, number, error_kind)                                                           \
    do {                                                                                          \
        CHECK((call) == -(number));                                                               \
        check_error(__FILE__, __LINE__, number, error_kind);                                      \
    } while (0)

static inline void check_failed(const char *file, int line, const char *condition)
{
    const unisono_error_t *error = unisono_last_error();
    fprintf(stderr, "%s:%d: %s\nlast error: %s\n", file, line, condition,
            error ? error->text : "none");
    _Exit(1);
}

static inline void check_error(const char *file, int line, int number, uint32_t kind)
{
    const unisono_error_t *error = unisono_last_error();
    if (!error || error->errno_value != number || error->kind != kind || !error->error[0]
        || !error->cause[0] || !error->help[0] || strncmp(error->text, "error: ", 7))
        check_failed(file, line, "the error is the expected one");
}

/* Byte `at` of the data that is called `seed`. */
static inline unsigned char byte_of(unsigned seed, uint64_t at)
{
    uint64_t mixed = (at + 1) * 0x9e3779b97f4a7c15u + seed * 0x632be59bd9b4e019u;
    return (unsigned char)(mixed >> 56);
}

static inline unsigned char *data(unsigned seed, uint64_t bytes)
{
    unsigned char *all = malloc(bytes ? bytes : 1);
    CHECK(all);
    for (uint64_t i = 0; i < bytes; i++)
        all[i] = byte_of(seed, i);
    return all;
}

/* The instance that the test has started. */
static inline unisono_t *connected(void)
{
    unisono_t *u = NULL;
    OK(unisono_connect(NULL, NULL, &u));
    CHECK(u);
    return u;
}

#endif
