/* Proves: four processes write an array in one distribution and read it in another, by every
 * strategy, blocking and begun, in groups formed by name and by an all-gather of their own; one
 * call moves several arrays. */
#include "check.h"

#include <stdatomic.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMBERS = 4, ROWS = 120, COLUMNS = 200, RECORD = 8, BYTES = ROWS * COLUMNS * RECORD };

/* An all-gather through memory that the processes share. */
struct meeting {
    atomic_int arrived;
    unsigned char bytes[MEMBERS * 8];
};

struct member {
    struct meeting *meeting;
    uint32_t rank;
};

static int all_gather(const void *mine, void *all, size_t bytes, void *context)
{
    struct member *member = context;
    if (bytes != 8)
        return 1;
    memcpy(member->meeting->bytes + 8 * member->rank, mine, bytes);
    atomic_fetch_add(&member->meeting->arrived, 1);
    while (atomic_load(&member->meeting->arrived) < MEMBERS)
        sched_yield();
    memcpy(all, member->meeting->bytes, MEMBERS * bytes);
    return 0;
}

static const unisono_dimension_t WRITTEN[2] = {
    {ROWS, 0, UNISONO_BLOCK, 2}, {COLUMNS, 0, UNISONO_BLOCK, 2}};
static const unisono_dimension_t READ[2] = {
    {ROWS, 7, UNISONO_CYCLIC, 4}, {COLUMNS, 0, UNISONO_WHOLE, 1}};

static unsigned char *written(uint32_t rank, unsigned seed)
{
    unsigned char *memory = malloc(BYTES / MEMBERS);
    uint64_t at = 0;
    for (uint64_t row = rank / 2 * ROWS / 2; row < (rank / 2 + 1) * ROWS / 2; row++)
        for (uint64_t i = 0; i < COLUMNS / 2 * RECORD; i++, at++)
            memory[at] = byte_of(seed, (row * COLUMNS + rank % 2 * COLUMNS / 2) * RECORD + i);
    return memory;
}

static void check_read(uint32_t rank, unsigned seed, const unsigned char *memory, uint64_t bytes)
{
    uint64_t at = 0;
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint64_t i = 0; row / 7 % 4 == rank && i < COLUMNS * RECORD; i++, at++)
            CHECK(memory[at] == byte_of(seed, row * COLUMNS * RECORD + i));
    CHECK(at == bytes);
}

/* One call reads an array and writes two others, of which one has a file of its own. */
static void several_files(unisono_t *u, unisono_group_t *group, unisono_file_t *f, uint32_t rank,
                          const unisono_part_t *out, const unisono_part_t *in,
                          unsigned char *memory, uint64_t bytes)
{
    unisono_file_t *other = NULL;
    unisono_part_t *behind = NULL;
    unisono_op_t *op = NULL;
    unsigned char *first = written(rank, 20), *second = written(rank, 21);
    OK(unisono_open(u, "other array", UNISONO_CREATE, NULL, &other));
    OK(unisono_part_distribution(WRITTEN, 2, RECORD, MEMBERS, rank, 5 * BYTES, &behind));
    const unisono_transfer_t transfers[3] = {
        {UNISONO_READ, f, in, memory, bytes},
        {UNISONO_WRITE, other, out, first, BYTES / MEMBERS},
        {UNISONO_WRITE, f, behind, second, BYTES / MEMBERS}};
    memset(memory, 0, bytes);
    CHECK(unisono_transfer_all(group, transfers, 3, NULL) == (int64_t)bytes + 2 * BYTES / MEMBERS);
    check_read(rank, 10, memory, bytes);
    OK(unisono_barrier(group));
    const unisono_transfer_t read = {UNISONO_READ, other, in, memory, bytes};
    OK(unisono_start_transfer_all(group, &read, 1, NULL, &op));
    CHECK(unisono_op_wait(op) == (int64_t)bytes);
    check_read(rank, 20, memory, bytes);
    /* No files at all, and a direction that is none. */
    CHECK(unisono_transfer_all(group, NULL, 0, NULL) == 0);
    const unisono_transfer_t wrong = {7, other, in, memory, bytes};
    FAILS(unisono_transfer_all(group, &wrong, 1, NULL), EINVAL, UNISONO_ERR_USAGE);
    unisono_part_free(behind);
    OK(unisono_close(other));
    free(first);
    free(second);
}

static int member(struct meeting *meeting, uint32_t rank)
{
    unisono_t *u = connected();
    unisono_group_t *named = NULL, *gathered = NULL;
    unisono_file_t *f = NULL;
    unisono_part_t *out = NULL, *in = NULL;
    uint64_t bytes = 0;
    struct member self = {meeting, rank};
    OK(unisono_group_form(u, "four", rank, MEMBERS, &named));
    OK(unisono_group_form_with(u, rank, MEMBERS, all_gather, &self, &gathered));
    unisono_layout_t layout = {.size = sizeof layout, .block_bytes = 16 << 10};
    OK(unisono_open(u, "array", UNISONO_CREATE, &layout, &f));
    OK(unisono_part_distribution(WRITTEN, 2, RECORD, MEMBERS, rank, 0, &out));
    OK(unisono_part_distribution(READ, 2, RECORD, MEMBERS, rank, 0, &in));
    OK(unisono_part_bytes(in, &bytes));
    unsigned char *memory = malloc(bytes);
    for (unsigned strategy = 0; strategy < 6; strategy++) {
        unisono_collective_options_t options = {.size = sizeof options, .strategy = strategy};
        unisono_group_t *group = strategy % 2 ? named : gathered;
        unsigned char *own = written(rank, strategy);
        CHECK(unisono_write_all(group, f, out, own, BYTES / MEMBERS, &options) == BYTES / MEMBERS);
        OK(unisono_barrier(group));
        memset(memory, 0, bytes);
        CHECK(unisono_read_all(group, f, in, memory, bytes, &options) == (int64_t)bytes);
        check_read(rank, strategy, memory, bytes);
        OK(unisono_barrier(group));
        free(own);
    }
    /* Arrays behind one another, all under way at once. */
    enum { ARRAYS = 5 };
    unisono_op_t *ops[ARRAYS];
    unsigned char *own[ARRAYS];
    for (unsigned i = 0; i < ARRAYS; i++) {
        unisono_part_t *part = NULL;
        own[i] = written(rank, 10 + i);
        OK(unisono_part_distribution(WRITTEN, 2, RECORD, MEMBERS, rank, i * BYTES, &part));
        OK(unisono_start_write_all(named, f, part, own[i], BYTES / MEMBERS, NULL, &ops[i]));
        unisono_part_free(part);
    }
    for (int left = ARRAYS; left > 0; left--) {
        size_t index = 0;
        OK(unisono_op_wait_any(ops, ARRAYS, &index));
        CHECK(index < ARRAYS && unisono_op_wait(ops[index]) == BYTES / MEMBERS);
        ops[index] = NULL;
        free(own[index]);
    }
    OK(unisono_barrier(named));
    for (unsigned i = 0; i < ARRAYS; i++) {
        unisono_part_t *part = NULL;
        OK(unisono_part_distribution(READ, 2, RECORD, MEMBERS, rank, i * BYTES, &part));
        OK(unisono_start_read_all(gathered, f, part, memory, bytes, NULL, &ops[0]));
        CHECK(unisono_op_wait(ops[0]) == (int64_t)bytes);
        check_read(rank, 10 + i, memory, bytes);
        unisono_part_free(part);
    }
    several_files(u, named, f, rank, out, in, memory, bytes);
    free(memory);
    unisono_part_free(in);
    unisono_part_free(out);
    OK(unisono_close(f));
    OK(unisono_group_free(named));
    OK(unisono_group_free(gathered));
    OK(unisono_disconnect(u));
    return 0;
}

int main(void)
{
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(meeting != MAP_FAILED);
    pid_t children[MEMBERS];
    for (uint32_t rank = 0; rank < MEMBERS; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] == 0)
            exit(member(meeting, rank));
    }
    for (uint32_t rank = 0; rank < MEMBERS; rank++) {
        int status = 1;
        CHECK(waitpid(children[rank], &status, 0) == children[rank] && status == 0);
    }
    return 0;
}
