/* Proves: in a forked child each handle of the parent is refused at once, also those of calls under
 * way, and may be freed; the child connects by itself, and the parent goes on undisturbed. With
 * UNISONO_AT_REST in the environment, nothing is under way when the process is forked. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#define FORKED(call) FAILS(call, EPERM, UNISONO_ERR_FORKED)

/* Time in which the I/O thread comes to rest, in microseconds. */
enum { BYTES = 8 << 20, AT_REST_US = 100000 };

static unisono_t *u;
static unisono_file_t *f;
static unisono_group_t *group;
static unisono_page_t *page;
static unisono_part_t *part;
static unisono_op_t *op, *ended;
static unsigned char memory[100];

static void child(int frees)
{
    unisono_file_t *other = NULL;
    unisono_op_t *begun = NULL;
    unisono_group_t *second = NULL;
    uint64_t bytes = 0;
    uint32_t rank = 0;
    int is_over = 0;
    size_t index = 0;
    const void *data = NULL;
    unisono_op_t *ops[2] = {NULL, op};
    FORKED(unisono_open(u, "f", 0, NULL, &other));
    FORKED(unisono_remove(u, "f"));
    FORKED(unisono_pread(f, memory, 10, 0));
    FORKED(unisono_size(f, &bytes));
    FORKED(unisono_read_part(f, part, memory, 100));
    FORKED(unisono_start_pread(f, memory, 10, 0, &begun));
    FORKED(unisono_group_form(u, "x", 0, 1, &second));
    FORKED(unisono_group_rank(group, &rank));
    FORKED(unisono_barrier(group));
    FORKED(unisono_read_all(group, f, part, memory, 100, NULL));
    FORKED(unisono_page_data(page, &data, &bytes));
    FORKED(unisono_op_test(op, &is_over));
    FORKED(unisono_op_wait_for(op, 1000, &is_over));
    FORKED(unisono_op_wait_any(ops, 2, &index));
    CHECK(!other && !begun && !second);
    if (frees) {
        FORKED(unisono_op_wait(op));
        FORKED(unisono_op_wait(ended));
        unisono_page_release(page);
        FORKED(unisono_group_free(group));
        FORKED(unisono_close(f));
        FORKED(unisono_disconnect(u));
    }
    /* Parts are data; they are the child's as well. */
    OK(unisono_part_bytes(part, &bytes));
    CHECK(bytes == 100);
    unisono_t *own = connected();
    OK(unisono_open(own, "f", 0, NULL, &other));
    CHECK(unisono_pread(other, memory, 100, 7) == 100 && memory[3] == byte_of(2, 10));
    CHECK(unisono_read_part(other, part, memory, 100) == 100);
    OK(unisono_close(other));
    OK(unisono_disconnect(own));
    unisono_part_free(part);
}

int main(void)
{
    unsigned char *model = data(2, BYTES);
    int is_over = 0;
    u = connected();
    OK(unisono_open(u, "f", UNISONO_CREATE, NULL, &f));
    CHECK(unisono_pwrite(f, model, BYTES, 0) == BYTES);
    OK(unisono_group_form(u, "alone", 0, 1, &group));
    OK(unisono_page_pin(f, 0, &page));
    OK(unisono_part_contiguous(7, 100, &part));
    OK(unisono_start_pread(f, memory, 100, 0, &ended));
    while (!is_over)
        OK(unisono_op_test(ended, &is_over));
    for (int frees = 0; frees < 2; frees++) {
        OK(unisono_start_pwrite(f, model, BYTES, 0, &op));
        if (getenv("UNISONO_AT_REST")) {
            for (is_over = 0; !is_over;)
                OK(unisono_op_test(op, &is_over));
            usleep(AT_REST_US);
        }
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            child(frees);
            exit(0);
        }
        int status = 1;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(unisono_op_wait(op) == BYTES);
        CHECK(unisono_pread(f, memory, 100, 1000) == 100 && memory[5] == byte_of(2, 1005));
        OK(unisono_barrier(group));
        CHECK(unisono_read_all(group, f, part, memory, 100, NULL) == 100);
    }
    CHECK(unisono_op_wait(ended) == 100);
    unisono_page_release(page);
    unisono_part_free(part);
    OK(unisono_group_free(group));
    OK(unisono_close(f));
    OK(unisono_disconnect(u));
    free(model);
    return 0;
}
