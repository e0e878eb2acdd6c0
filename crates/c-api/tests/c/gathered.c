/* Proves: small writes that a process has gathered are there when it exits without closing its file,
 * when it was killed half a second later, after a flush, and when another process reads them while
 * it goes on. A process that is killed at once delays nobody, and loses only what it had gathered. */
#include "check.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITES = 1000, PIECE = 40, SECTION = WRITES * PIECE };

/* How a writer ends. */
enum end { EXITS, DIES_LATER, FLUSHES, GOES_ON, DIES_AT_ONCE, ENDS };

static void fill(unsigned char *piece, int number, int end)
{
    for (int i = 0; i < PIECE; i++) {
        piece[i] = (unsigned char)(1 + (number * 7 + i + end * 31) % 250);
    }
}

/* Writes all pieces, each in a call of its own, and ends. */
static void write_and_end(enum end end, int ready, int go)
{
    unisono_t *u = connected();
    unisono_file_t *f = NULL;
    unsigned char piece[PIECE];
    OK(unisono_open(u, "gathered", 0, NULL, &f));
    for (int number = 0; number < WRITES; number++) {
        fill(piece, number, end);
        uint64_t offset = (uint64_t)end * SECTION + (uint64_t)number * PIECE;
        CHECK(unisono_pwrite(f, piece, PIECE, offset) == PIECE);
    }
    if (end == DIES_LATER) {
        struct timespec later = {2, 0};
        nanosleep(&later, NULL);
    } else if (end == FLUSHES) {
        OK(unisono_flush(f));
    }
    CHECK(write(ready, "r", 1) == 1);
    if (end == EXITS) {
        /* The file is open, and the connection too. */
        exit(0);
    }
    char goes;
    CHECK(end != GOES_ON || read(go, &goes, 1) == 1);
    _exit(0);
}

int main(void)
{
    static unsigned char found[SECTION];
    unsigned char piece[PIECE];
    for (int end = 0; end < ENDS; end++) {
        int ready[2], go[2];
        if (end == 0) {
            unisono_t *u = connected();
            unisono_file_t *f = NULL;
            OK(unisono_open(u, "gathered", UNISONO_CREATE, NULL, &f));
            OK(unisono_close(f));
            OK(unisono_disconnect(u));
        }
        CHECK(pipe(ready) == 0 && pipe(go) == 0);
        pid_t writer = fork();
        CHECK(writer >= 0);
        if (writer == 0) {
            write_and_end((enum end)end, ready[1], go[0]);
        }
        char told;
        CHECK(read(ready[0], &told, 1) == 1);
        if (end != GOES_ON) {
            CHECK(waitpid(writer, NULL, 0) == writer);
        }
        unisono_t *u = connected();
        unisono_file_t *f = NULL;
        OK(unisono_open(u, "gathered", 0, NULL, &f));
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        int64_t bytes = unisono_pread(f, found, sizeof found, (uint64_t)end * SECTION);
        clock_gettime(CLOCK_MONOTONIC, &after);
        CHECK(after.tv_sec - before.tv_sec < 20);
        CHECK(bytes == SECTION || (end == DIES_AT_ONCE && bytes >= 0));
        for (int number = 0; (number + 1) * PIECE <= bytes; number++) {
            fill(piece, number, end);
            const unsigned char *own = found + number * PIECE;
            static const unsigned char zero[PIECE];
            int is_lost = end == DIES_AT_ONCE && memcmp(own, zero, PIECE) == 0;
            CHECK(is_lost || memcmp(own, piece, PIECE) == 0);
        }
        if (end == GOES_ON) {
            CHECK(write(go[1], "g", 1) == 1);
            CHECK(waitpid(writer, NULL, 0) == writer);
        }
        OK(unisono_close(f));
        OK(unisono_disconnect(u));
    }
    return 0;
}
