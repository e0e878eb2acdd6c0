/* Proves: eight threads use one connection and one file at the same time, each with its own last
 * error; handles are freed by other threads than made them. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 40, BYTES = 100000 };

static unisono_t *u;
static unisono_file_t *shared;

struct work {
    pthread_t thread;
    unsigned number;
    unisono_file_t *own;
    unisono_op_t *op;
    unsigned char *read;
};

static void *work(void *argument)
{
    struct work *self = argument;
    char name[20];
    snprintf(name, sizeof name, "none-%u", self->number);
    unsigned char *model = data(self->number, BYTES), *read = malloc(BYTES);
    uint64_t begin = (uint64_t)self->number * BYTES;
    CHECK(!unisono_last_error());
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t at = round * 997 % BYTES, bytes = (round * 7919 + 1) % (BYTES - at) + 1;
        bytes = bytes > BYTES - at ? BYTES - at : bytes;
        CHECK(unisono_pwrite(shared, model + at, bytes, begin + at) == (int64_t)bytes);
        CHECK(unisono_pread(shared, read, bytes, begin + at) == (int64_t)bytes);
        CHECK(!memcmp(read, model + at, bytes));
        unisono_file_t *none = NULL;
        FAILS(unisono_open(u, name, 0, NULL, &none), ENOENT, UNISONO_ERR_NOT_FOUND);
        CHECK(!strcmp(unisono_last_error()->file, name));
    }
    CHECK(unisono_pwrite(shared, model, BYTES, begin) == BYTES);
    snprintf(name, sizeof name, "own-%u", self->number);
    OK(unisono_open(u, name, UNISONO_CREATE, NULL, &self->own));
    CHECK(unisono_pwrite(self->own, model, BYTES, 0) == BYTES);
    self->read = read;
    OK(unisono_start_pread(self->own, read, BYTES, 0, &self->op));
    free(model);
    return NULL;
}

int main(void)
{
    struct work all[THREADS];
    u = connected();
    OK(unisono_open(u, "shared", UNISONO_CREATE, NULL, &shared));
    for (unsigned i = 0; i < THREADS; i++) {
        all[i].number = i;
        OK(pthread_create(&all[i].thread, NULL, work, &all[i]));
    }
    unsigned char *read = malloc(BYTES);
    for (unsigned i = 0; i < THREADS; i++) {
        OK(pthread_join(all[i].thread, NULL));
        CHECK(unisono_op_wait(all[i].op) == BYTES);
        CHECK(unisono_pread(shared, read, BYTES, (uint64_t)i * BYTES) == BYTES);
        CHECK(!memcmp(read, all[i].read, BYTES) && read[77] == byte_of(i, 77));
        free(all[i].read);
        OK(unisono_close(all[i].own));
    }
    free(read);
    CHECK(!unisono_last_error());
    OK(unisono_close(shared));
    OK(unisono_disconnect(u));
    return 0;
}
