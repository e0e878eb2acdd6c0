/* Proves: arguments that are NULL or make no sense are refused, with an error in three parts, and
 * leave NULL where a handle would be. */
#include "check.h"

#define REFUSED(call) FAILS(call, EINVAL, UNISONO_ERR_USAGE)

static int each(const char *name, const unisono_stat_t *stat, void *context)
{
    (void)name, (void)stat, (void)context;
    return 0;
}

static void names(unisono_t *u)
{
    unisono_file_t *f = (unisono_file_t *)&f;
    unisono_layout_t layout = {.size = sizeof layout};
    struct {
        unisono_layout_t known;
        uint64_t unknown;
    } newer = {{.size = sizeof newer}, 0};
    unisono_stat_t stat = {.size = 0};
    REFUSED(unisono_open(NULL, "a", 0, NULL, &f));
    CHECK(!f);
    REFUSED(unisono_open(u, NULL, 0, NULL, &f));
    REFUSED(unisono_open(u, "a\xff", UNISONO_CREATE, NULL, &f));
    CHECK(strstr(unisono_last_error()->cause, "UTF-8"));
    REFUSED(unisono_open(u, "a", 16, NULL, &f));
    REFUSED(unisono_open(u, "a", UNISONO_EXCL, NULL, &f));
    REFUSED(unisono_open(u, "a", UNISONO_CREATE, NULL, NULL));
    REFUSED(unisono_open(u, "a", UNISONO_CREATE, NULL, (unisono_file_t **)((char *)&f + 1)));
    layout.block_bytes = UINT64_MAX;
    REFUSED(unisono_open(u, "a", UNISONO_CREATE, &layout, &f));
    layout = (unisono_layout_t){.size = 3};
    REFUSED(unisono_open(u, "a", UNISONO_CREATE, &layout, &f));
    layout.size = (size_t)-1;
    REFUSED(unisono_open(u, "a", UNISONO_CREATE, &layout, &f));
    newer.unknown = 1;
    REFUSED(unisono_open(u, "a", UNISONO_CREATE, &newer.known, &f));
    newer.unknown = 0;
    OK(unisono_open(u, "a", UNISONO_CREATE, &newer.known, &f));
    OK(unisono_close(f));
    CHECK(unisono_open(u, "", UNISONO_CREATE, NULL, &f) < 0 && !f);
    CHECK(unisono_open(u, "a/b", UNISONO_CREATE, NULL, &f) < 0 && !f);
    REFUSED(unisono_stat(u, "a", NULL));
    REFUSED(unisono_stat(u, "a", &stat));
    REFUSED(unisono_list(u, "", NULL, NULL));
    REFUSED(unisono_list(u, NULL, each, NULL));
    CHECK(unisono_list(u, "a", each, NULL) < 0);
    REFUSED(unisono_mkdir(u, NULL, 1));
    REFUSED(unisono_rename(u, "a", NULL, 0));
    REFUSED(unisono_remove(NULL, "a"));
    char name[8];
    REFUSED(unisono_name(NULL, name, sizeof name));
    REFUSED(unisono_name("a", NULL, 1));
    REFUSED(unisono_mounted(NULL, name, sizeof name, name, sizeof name));
    CHECK(unisono_remove(u, "/") < 0);
}

static void files(unisono_t *u)
{
    unisono_file_t *f = NULL;
    char byte = 1;
    OK(unisono_open(u, "a", UNISONO_CREATE, NULL, &f));
    REFUSED(unisono_pread(NULL, &byte, 1, 0));
    REFUSED(unisono_pread(f, NULL, 1, 0));
    REFUSED(unisono_pread(f, &byte, UINT64_MAX, 0));
    REFUSED(unisono_pwrite(f, NULL, 1, 0));
    REFUSED(unisono_pwrite(f, &byte, 1, UINT64_MAX));
    REFUSED(unisono_pwrite(f, &byte, 1, (uint64_t)1 << 62));
    struct iovec entries[2] = {{&byte, 1}, {NULL, 1}};
    REFUSED(unisono_preadv(f, entries, 2, 0));
    REFUSED(unisono_pwritev(f, entries, 2, 0));
    REFUSED(unisono_preadv(f, entries, 1025, 0));
    REFUSED(unisono_pwritev(f, NULL, 1, 0));
    REFUSED(unisono_size(f, NULL));
    REFUSED(unisono_truncate(f, (uint64_t)1 << 63));
    REFUSED(unisono_flush(NULL));
    REFUSED(unisono_fsync(NULL));
    REFUSED(unisono_has_unsynced(f, NULL));
    REFUSED(unisono_confirm_fsync(NULL));
    OK(unisono_close(NULL));
    unisono_page_t *page = NULL;
    uint64_t bytes = 0;
    const void *data = NULL;
    REFUSED(unisono_page_bytes(NULL, &bytes));
    REFUSED(unisono_page_pin(NULL, 0, &page));
    REFUSED(unisono_page_data(NULL, &data, &bytes));
    CHECK(unisono_page_pin(f, UINT64_MAX, &page) < 0 && !page);
    unisono_page_release(NULL);
    unisono_op_t *op = NULL;
    int ended = 0;
    size_t index = 0;
    REFUSED(unisono_start_pread(f, NULL, 1, 0, &op));
    REFUSED(unisono_start_pwrite(f, &byte, 1, 0, NULL));
    REFUSED(unisono_start_read_part(f, NULL, &byte, 1, &op));
    REFUSED(unisono_start_write_part(f, NULL, &byte, 1, 0, &op));
    REFUSED(unisono_op_test(NULL, &ended));
    REFUSED(unisono_op_wait_for(NULL, 1, &ended));
    REFUSED(unisono_op_wait_any(NULL, 1, &index));
    REFUSED(unisono_op_wait_any(&op, (size_t)-1, &index));
    CHECK(!op);
    OK(unisono_close(f));
}

static void parts(void)
{
    const uint64_t huge = UINT64_MAX, most = (uint64_t)1 << 62;
    unisono_part_t *part = (unisono_part_t *)&part;
    uint64_t bytes = 0;
    REFUSED(unisono_part_contiguous(huge, 1, &part));
    CHECK(!part);
    REFUSED(unisono_part_contiguous(1, most, &part));
    REFUSED(unisono_part_contiguous(0, 1, NULL));
    unisono_level_t levels[17] = {{huge, huge, huge}, {2, 1, 1}};
    REFUSED(unisono_part_nested(0, 0, 1, levels, 1, &part));
    REFUSED(unisono_part_nested(0, 0, 5, levels + 1, 1, &part));
    REFUSED(unisono_part_nested(0, 0, 1, levels, 17, &part));
    REFUSED(unisono_part_nested(0, 0, 1, NULL, 1, &part));
    REFUSED(unisono_part_nested(0, huge, 1, NULL, 0, &part));
    OK(unisono_part_contiguous(0, most / 2, &part));
    OK(unisono_part_add(part, 0, 0, most / 2, NULL, 0));
    REFUSED(unisono_part_add(part, 0, 0, 1, NULL, 0));
    REFUSED(unisono_part_add(NULL, 0, 0, 1, NULL, 0));
    OK(unisono_part_bytes(part, &bytes));
    CHECK(bytes == most);
    REFUSED(unisono_part_bytes(part, NULL));
    REFUSED(unisono_part_memory_bytes(NULL, &bytes));
    unisono_part_free(part);
    unisono_part_free(NULL);
    unisono_piece_t pieces[2] = {{5, 0, 2}, {6, 2, 2}};
    REFUSED(unisono_part_list(pieces, 2, &part));
    pieces[1] = (unisono_piece_t){7, 1, 2};
    REFUSED(unisono_part_list(pieces, 2, &part));
    pieces[1] = (unisono_piece_t){huge, 2, 2};
    REFUSED(unisono_part_list(pieces, 2, &part));
    pieces[1].bytes = 0;
    REFUSED(unisono_part_list(pieces, 2, &part));
    REFUSED(unisono_part_list(pieces, (size_t)-1, &part));
    REFUSED(unisono_part_list(NULL, 1, &part));
    unisono_dimension_t good = {10, 0, UNISONO_BLOCK, 2}, bad[] = {
        {0, 0, UNISONO_BLOCK, 2}, {10, 1, UNISONO_BLOCK, 2}, {10, 0, UNISONO_CYCLIC, 2},
        {10, 0, UNISONO_WHOLE, 2}, {10, 0, 3, 2}, {10, 0, UNISONO_BLOCK, 0},
        {10, 0, UNISONO_BLOCK, 3}, {huge, 0, UNISONO_BLOCK, 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(unisono_part_distribution(&bad[i], 1, 8, 2, 0, 0, &part));
    REFUSED(unisono_part_distribution(&good, 1, 8, 2, 2, 0, &part));
    REFUSED(unisono_part_distribution(&good, 1, 0, 2, 0, 0, &part));
    REFUSED(unisono_part_distribution(&good, 1, huge, 2, 0, 0, &part));
    REFUSED(unisono_part_distribution(&good, 1, 8, 2, 0, huge, &part));
    REFUSED(unisono_part_distribution(&good, 0, 8, 2, 0, 0, &part));
    REFUSED(unisono_part_distribution(&good, 17, 8, 2, 0, 0, &part));
    CHECK(!part);
}

static void groups(unisono_t *u)
{
    unisono_group_t *group = NULL;
    unisono_file_t *f = NULL;
    unisono_part_t *part = NULL;
    uint32_t rank = 0;
    char byte = 1;
    REFUSED(unisono_group_form(u, "g", 1, 1, &group));
    REFUSED(unisono_group_form(u, "g", 0, 0, &group));
    REFUSED(unisono_group_form(u, "g", 0, UINT32_MAX, &group));
    REFUSED(unisono_group_form(u, NULL, 0, 1, &group));
    REFUSED(unisono_group_form(NULL, "g", 0, 1, &group));
    REFUSED(unisono_group_form_with(u, 0, 1, NULL, NULL, &group));
    REFUSED(unisono_group_rank(NULL, &rank));
    REFUSED(unisono_barrier(NULL));
    OK(unisono_group_free(NULL));
    OK(unisono_group_form(u, "g", 0, 1, &group));
    OK(unisono_open(u, "a", UNISONO_CREATE, NULL, &f));
    OK(unisono_part_contiguous(0, 1, &part));
    unisono_collective_options_t options = {.size = sizeof options, .strategy = 6};
    REFUSED(unisono_write_all(group, f, part, &byte, 1, &options));
    options = (unisono_collective_options_t){.size = sizeof options, .order = 3};
    REFUSED(unisono_write_all(group, f, part, &byte, 1, &options));
    options = (unisono_collective_options_t){.size = sizeof options,
                                             .outstanding_per_disk = UINT32_MAX};
    REFUSED(unisono_write_all(group, f, part, &byte, 1, &options));
    options = (unisono_collective_options_t){.size = sizeof options,
                                             .node_group_size = 1ULL << 32};
    REFUSED(unisono_write_all(group, f, part, &byte, 1, &options));
    REFUSED(unisono_write_all(NULL, f, part, &byte, 1, NULL));
    REFUSED(unisono_write_all(group, NULL, part, &byte, 1, NULL));
    REFUSED(unisono_read_all(group, f, NULL, &byte, 1, NULL));
    REFUSED(unisono_read_all(group, f, part, NULL, 1, NULL));
    /* A part that does not fit the memory is an error of the call, which all members get. */
    FAILS(unisono_write_all(group, f, part, NULL, 0, NULL), EINVAL, UNISONO_ERR_BAD_ACCESS);
    CHECK(unisono_write_all(group, f, part, &byte, 1, NULL) == 1);
    unisono_part_free(part);
    OK(unisono_close(f));
    OK(unisono_group_free(group));
}

int main(void)
{
    unisono_t *u = (unisono_t *)&u;
    unisono_options_t options = {.size = sizeof options, .pool_bytes = (uint64_t)1 << 41};
    REFUSED(unisono_connect(NULL, NULL, NULL));
    REFUSED(unisono_connect("\xc0", NULL, &u));
    CHECK(!u);
    REFUSED(unisono_connect(NULL, &options, &u));
    options = (unisono_options_t){.size = 0};
    REFUSED(unisono_connect(NULL, &options, &u));
    OK(unisono_disconnect(NULL));
    REFUSED(unisono_kind(0, &(unisono_kind_t){0}));
    REFUSED(unisono_kind(1, NULL));
    u = connected();
    names(u);
    files(u);
    parts();
    groups(u);
    OK(unisono_disconnect(u));
    return 0;
}
