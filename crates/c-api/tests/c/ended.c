/* Proves: when the servers end, calls fail and say so, no signal ends the program, and everything
 * can still be freed. The environment has the command that ends them. */
#include "check.h"

#include <signal.h>

#define LEFT(call) FAILS(call, ENOTCONN, UNISONO_ERR_SERVER_LEFT)

int main(void)
{
    static unsigned char memory[1 << 20];
    unisono_t *u = connected(), *other = NULL;
    unisono_file_t *f = NULL;
    unisono_group_t *group = NULL;
    unisono_part_t *part = NULL;
    unisono_op_t *op = NULL;
    unisono_page_t *page = NULL;
    OK(unisono_open(u, "f", UNISONO_CREATE, NULL, &f));
    OK(unisono_group_form(u, "alone", 0, 1, &group));
    OK(unisono_part_contiguous(0, sizeof memory, &part));
    CHECK(unisono_pwrite(f, memory, sizeof memory, 0) == sizeof memory);
    OK(unisono_page_pin(f, 0, &page));
    signal(SIGPIPE, SIG_DFL);
    OK(system(getenv("UNISONO_END")));
    LEFT(unisono_pwrite(f, memory, sizeof memory, 0));
    CHECK(unisono_last_error()->server >= 0);
    LEFT(unisono_pread(f, memory, 10, 0));
    LEFT(unisono_fsync(f));
    CHECK(unisono_write_all(group, f, part, memory, sizeof memory, NULL) < 0);
    OK(unisono_start_write_part(f, part, memory, sizeof memory, 0, &op));
    LEFT(unisono_op_wait(op));
    CHECK(unisono_connect(NULL, NULL, &other) < 0 && !other);
    const void *seen = NULL;
    uint64_t bytes = 0;
    OK(unisono_page_data(page, &seen, &bytes));
    CHECK(bytes == sizeof memory && !memcmp(seen, memory, bytes));
    unisono_page_release(page);
    unisono_part_free(part);
    OK(unisono_group_free(group));
    CHECK(unisono_close(f) <= 0);
    OK(unisono_disconnect(u));
    return 0;
}
