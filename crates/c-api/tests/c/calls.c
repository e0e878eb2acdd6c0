/* Proves: each call of the header does what its comment says, with the data where it belongs. */
#include "check.h"

static void connections(void)
{
    unsigned major, minor, patch;
    CHECK(sscanf(unisono_version(), "%u.%u.%u", &major, &minor, &patch) == 3);
    CHECK(unisono_version_number() == (major << 16 | minor << 8 | patch));
    CHECK(!strcmp(unisono_version(), UNISONO_VERSION));
    CHECK(major == UNISONO_VERSION_MAJOR && minor == UNISONO_VERSION_MINOR);
    CHECK(patch == UNISONO_VERSION_PATCH && !unisono_last_error());
    unisono_t *u = NULL;
    unisono_options_t options = {.size = sizeof options, .pool_bytes = 1 << 20, .timeout_ms = 9000};
    OK(unisono_connect(getenv("UNISONO_INSTANCE"), &options, &u));
    unisono_t *second = NULL;
    OK(unisono_connect(NULL, &options, &second));
    CHECK(unisono_instance_number(u) && unisono_instance_number(u) == unisono_instance_number(second));
    CHECK(unisono_instance_number(NULL) == 0 && unisono_last_error()->kind == UNISONO_ERR_USAGE);
    OK(unisono_disconnect(second));
    OK(unisono_disconnect(u));
    FAILS(unisono_connect("/nowhere/at/all", NULL, &u), ENXIO, UNISONO_ERR_NO_INSTANCE);
    CHECK(!u && strstr(unisono_last_error()->text, "/nowhere/at/all"));
}

struct seen {
    int entries;
    uint64_t bytes;
    char names[200];
};

static int see(const char *name, const unisono_stat_t *stat, void *context)
{
    struct seen *seen = context;
    CHECK(stat->size == sizeof *stat);
    strcat(strcat(seen->names, name), stat->kind == UNISONO_DIRECTORY ? "/ " : " ");
    seen->bytes += stat->bytes;
    return ++seen->entries == 3;
}

/* Every spelling of a name opens the same file. */
static void spellings(unisono_t *u)
{
    static const char *const words[] = {"spelt/f",          "/spelt//f/",       "./spelt/./f",
                                        "spelt/none/../f",  "../spelt/f",       "unisono:spelt/f",
                                        "unisono://spelt/f", "unisono://./spelt/f"};
    char name[16], start[4];
    unisono_file_t *f;
    OK(unisono_mkdir(u, "unisono://spelt", 0));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        unsigned char found = 0;
        CHECK(unisono_name(words[i], name, sizeof name) == 7 && !strcmp(name, "spelt/f"));
        OK(unisono_open(u, words[i], i ? 0 : UNISONO_CREATE | UNISONO_EXCL, NULL, &f));
        CHECK(!i || (unisono_pread(f, &found, 1, 0) == 1 && found == i));
        CHECK(unisono_pwrite(f, &(unsigned char){(unsigned char)(i + 1)}, 1, 0) == 1);
        OK(unisono_close(f));
    }
    CHECK(unisono_name("a/..", name, sizeof name) == 0 && !*name);
    CHECK(unisono_name("abcdef", start, sizeof start) == 6 && !strcmp(start, "abc"));
    CHECK(unisono_name("abcdef", NULL, 0) == 6);
    CHECK(unisono_mounted("/tmp/none", start, sizeof start, name, sizeof name) == 0);
    FAILS(unisono_open(u, "unisono://..", UNISONO_CREATE, NULL, &f), EISDIR,
          UNISONO_ERR_IS_A_DIRECTORY);
    OK(unisono_remove(u, "spelt/../spelt/f"));
    OK(unisono_remove(u, "unisono:///spelt/"));
}

static void names(unisono_t *u)
{
    unisono_file_t *f = NULL;
    FAILS(unisono_open(u, "names/a", 0, NULL, &f), ENOENT, UNISONO_ERR_NOT_FOUND);
    CHECK(!strcmp(unisono_last_error()->file, "names/a") && unisono_last_error()->server == -1);
    OK(unisono_mkdir(u, "names/deep", 1));
    FAILS(unisono_mkdir(u, "names/deep", 0), EEXIST, UNISONO_ERR_ALREADY_EXISTS);
    unisono_layout_t layout = {.size = sizeof layout, .block_bytes = 4096};
    OK(unisono_open(u, "/names/a/", UNISONO_CREATE | UNISONO_EXCL, &layout, &f));
    CHECK(unisono_pwrite(f, "abcdefghij", 10, 4090) == 10);
    OK(unisono_close(f));
    FAILS(unisono_open(u, "names/a", UNISONO_CREATE | UNISONO_EXCL, NULL, &f), EEXIST,
          UNISONO_ERR_ALREADY_EXISTS);
    FAILS(unisono_open(u, "names/deep", UNISONO_CREATE, NULL, &f), EISDIR,
          UNISONO_ERR_IS_A_DIRECTORY);
    unisono_stat_t stat = {.size = sizeof stat};
    OK(unisono_stat(u, "unisono://names/a", &stat));
    CHECK(stat.kind == UNISONO_FILE && stat.bytes == 4100 && stat.block_bytes == 4096);
    CHECK(stat.servers == 2 && stat.made_at_s > 1600000000);
    CHECK(stat.modified_ns / 1000000000 + 60 > stat.made_at_s);
    /* A caller of an older release knows fewer fields; the others are left alone. */
    unisono_stat_t small = {.size = offsetof(unisono_stat_t, block_bytes), .block_bytes = 77};
    OK(unisono_stat(u, "names/a", &small));
    CHECK(small.bytes == 4100 && small.block_bytes == 77);
    OK(unisono_open(u, "names/b", UNISONO_CREATE, NULL, &f));
    OK(unisono_close(f));
    struct seen seen = {0, 0, ""};
    OK(unisono_list(u, "names", see, &seen));
    CHECK(!strcmp(seen.names, "names/a names/b names/deep/ ") && seen.bytes == 4100);
    FAILS(unisono_rename(u, "names/a", "names/b", 0), EEXIST, UNISONO_ERR_ALREADY_EXISTS);
    OK(unisono_rename(u, "names/a", "names/b", 1));
    FAILS(unisono_remove(u, "names"), ENOTEMPTY, UNISONO_ERR_DIRECTORY_NOT_EMPTY);
    OK(unisono_open(u, "names/b", UNISONO_TRUNC, NULL, &f));
    uint64_t bytes = 1;
    OK(unisono_size(f, &bytes));
    CHECK(bytes == 0);
    OK(unisono_close(f));
    OK(unisono_remove(u, "names/b"));
    OK(unisono_remove(u, "names/deep"));
    OK(unisono_remove(u, "names"));
    FAILS(unisono_stat(u, "names", &stat), ENOENT, UNISONO_ERR_NOT_FOUND);
}

static unisono_file_t *files(unisono_t *u)
{
    unisono_file_t *f = NULL;
    unisono_layout_t layout = {.size = sizeof layout, .block_bytes = 64 << 10};
    OK(unisono_open(u, "f", UNISONO_CREATE, &layout, &f));
    uint64_t size = 3 << 20, bytes = 0;
    unsigned char *model = data(1, size), *read = malloc(size);
    CHECK(unisono_pwrite(f, model, size, 0) == (int64_t)size);
    OK(unisono_flush(f));
    OK(unisono_fsync(f));
    int is_unsynced = 2;
    OK(unisono_has_unsynced(f, &is_unsynced));
    CHECK(!is_unsynced);
    OK(unisono_confirm_fsync(f));
    CHECK(unisono_pread(f, read, size, 0) == (int64_t)size && !memcmp(read, model, size));
    CHECK(unisono_pread(f, read, size, size - 10) == 10 && !memcmp(read, model + size - 10, 10));
    CHECK(unisono_pread(f, read, 1, UINT64_MAX) == 0 && unisono_pread(f, NULL, 0, 5) == 0);
    struct iovec into[3] = {{read, 100}, {read + 200, 0}, {read + 300, 70000}};
    CHECK(unisono_preadv(f, into, 3, 5) == 70100);
    CHECK(!memcmp(read, model + 5, 100) && !memcmp(read + 300, model + 105, 70000));
    CHECK(unisono_preadv(f, into, 3, size - 150) == 150 && unisono_preadv(f, NULL, 0, 0) == 0);
    struct iovec from[2] = {{model, 3}, {model + 9, 100000}};
    CHECK(unisono_pwritev(f, from, 2, size) == 100003);
    CHECK(unisono_pread(f, read, size, size) == 100003);
    CHECK(!memcmp(read, model, 3) && !memcmp(read + 3, model + 9, 100000));
    OK(unisono_truncate(f, size));
    OK(unisono_size(f, &bytes));
    CHECK(bytes == size);
    FAILS(unisono_truncate(f, UINT64_MAX), EINVAL, UNISONO_ERR_USAGE);
    free(model);
    free(read);
    return f;
}

static void parts(unisono_file_t *f)
{
    unisono_part_t *part = NULL;
    uint64_t bytes = 0, memory_bytes = 0;
    unsigned char memory[64], model[64];
    /* Two records of each of three rows, whose places in memory are the other way round. */
    unisono_level_t levels[2] = {{2, 10, 12}, {3, 100, 4}};
    OK(unisono_part_nested(7, 1, 4, levels, 2, &part));
    OK(unisono_part_add(part, 1000, 30, 2, NULL, 0));
    OK(unisono_part_bytes(part, &bytes));
    OK(unisono_part_memory_bytes(part, &memory_bytes));
    CHECK(bytes == 26 && memory_bytes == 32);
    memset(memory, 9, sizeof memory);
    memset(model, 9, sizeof model);
    for (int row = 0; row < 3; row++)
        for (int record = 0; record < 2; record++)
            for (int i = 0; i < 4; i++)
                model[1 + row * 4 + record * 12 + i] = byte_of(1, 7 + row * 100 + record * 10 + i);
    model[30] = byte_of(1, 1000), model[31] = byte_of(1, 1001);
    CHECK(unisono_read_part(f, part, memory, memory_bytes) == 26);
    CHECK(!memcmp(memory, model, sizeof memory));
    FAILS(unisono_read_part(f, part, memory, memory_bytes - 1), EINVAL, UNISONO_ERR_BAD_ACCESS);
    CHECK(unisono_write_part(f, part, memory, sizeof memory, 1) == 26);
    unisono_part_free(part);
    unisono_piece_t pieces[2] = {{5, 10, 3}, {3 << 20, 0, 2}};
    OK(unisono_part_list(pieces, 2, &part));
    FAILS(unisono_read_part(f, part, memory, 64), ENODATA, UNISONO_ERR_PAST_END);
    CHECK(unisono_write_part(f, part, memory, 64, 0) == 5);
    CHECK(unisono_pread(f, model, 3, 5) == 3 && !memcmp(model, memory + 10, 3));
    FAILS(unisono_part_add(part, 0, 0, 1, NULL, 0), EINVAL, UNISONO_ERR_USAGE);
    unisono_part_free(part);
    OK(unisono_part_contiguous(3, 0, &part));
    CHECK(unisono_read_part(f, part, NULL, 0) == 0);
    unisono_part_free(part);
}

static void pages(unisono_file_t *f)
{
    uint64_t bytes = 0;
    const void *first = NULL;
    unisono_page_t *page = NULL;
    unsigned char read[1000];
    OK(unisono_page_bytes(f, &bytes));
    CHECK(bytes == 64 << 10);
    OK(unisono_page_pin(f, 1, &page));
    OK(unisono_page_data(page, &first, &bytes));
    CHECK(bytes == 64 << 10 && unisono_pread(f, read, 1000, bytes) == 1000);
    CHECK(!memcmp(first, read, 1000));
    unisono_page_release(page);
    FAILS(unisono_page_pin(f, 1 << 20, &page), ENODATA, UNISONO_ERR_PAST_END);
    CHECK(!page);
}

static int gather_one(const void *mine, void *all, size_t bytes, void *context)
{
    memcpy(all, mine, bytes);
    return *(int *)context;
}

static void groups(unisono_t *u, unisono_file_t *f)
{
    unisono_group_t *group = NULL;
    int code = 0;
    uint32_t rank = 9, size = 9;
    OK(unisono_group_form_with(u, 0, 1, gather_one, &code, &group));
    OK(unisono_group_rank(group, &rank));
    OK(unisono_group_size(group, &size));
    CHECK(rank == 0 && size == 1);
    OK(unisono_barrier(group));
    unisono_dimension_t rows[2] = {{50, 0, UNISONO_BLOCK, 1}, {60, 0, UNISONO_WHOLE, 1}};
    unisono_part_t *part = NULL;
    OK(unisono_part_distribution(rows, 2, 8, 1, 0, 100, &part));
    unsigned char *model = data(4, 24000), *read = malloc(24000);
    for (unsigned strategy = 0; strategy < 6; strategy++) {
        unisono_collective_options_t options = {
            .size = sizeof options, .strategy = strategy, .order = strategy % 3, .sync = 1};
        model[0] = (unsigned char)strategy;
        CHECK(unisono_write_all(group, f, part, model, 24000, &options) == 24000);
        memset(read, 0, 24000);
        CHECK(unisono_read_all(group, f, part, read, 24000, &options) == 24000);
        CHECK(!memcmp(read, model, 24000));
    }
    OK(unisono_truncate(f, 20000));
    FAILS(unisono_read_all(group, f, part, read, 24000, NULL), ENODATA, UNISONO_ERR_PAST_END);
    CHECK(unisono_write_all(group, f, part, model, 24000, NULL) == 24000);
    unisono_part_free(part);
    OK(unisono_group_free(group));
    code = 5;
    FAILS(unisono_group_form_with(u, 0, 1, gather_one, &code, &group), EIO, UNISONO_ERR_OTHER);
    free(model);
    free(read);
}

static void operations(unisono_t *u, unisono_file_t *f)
{
    enum { COUNT = 6, BYTES = 200000 };
    unisono_op_t *ops[COUNT];
    unsigned char *model = data(5, BYTES), *read = malloc(BYTES);
    unisono_part_t *part = NULL;
    size_t index = 9;
    int ended = 0;
    OK(unisono_start_pwrite(f, model, BYTES, 11, &ops[0]));
    while (!ended)
        OK(unisono_op_test(ops[0], &ended));
    CHECK(unisono_op_wait(ops[0]) == BYTES);
    OK(unisono_start_pread(f, read, BYTES, 11, &ops[0]));
    CHECK(unisono_op_wait(ops[0]) == BYTES && !memcmp(read, model, BYTES));
    unisono_level_t level = {COUNT, 1000, 1000};
    OK(unisono_part_nested(11, 0, 500, &level, 1, &part));
    OK(unisono_start_write_part(f, part, model, BYTES, 0, &ops[0]));
    CHECK(unisono_op_wait(ops[0]) == 500 * COUNT);
    memset(read, 0, BYTES);
    OK(unisono_start_read_part(f, part, read, BYTES, &ops[0]));
    unisono_part_free(part);
    CHECK(unisono_op_wait(ops[0]) == 500 * COUNT && !memcmp(read + 5000, model + 5000, 500));
    CHECK(read[500] == 0 && unisono_op_wait(NULL) == 0);
    /* Each of several is the one that has ended, once. */
    unisono_group_t *group = NULL;
    OK(unisono_group_form(u, "operations", 0, 1, &group));
    OK(unisono_part_contiguous(0, 1000, &part));
    memset(ops, 0, sizeof ops);
    OK(unisono_op_wait_any(ops, COUNT, &index));
    CHECK(index == COUNT);
    OK(unisono_start_read_all(group, f, part, read, 1000, NULL, &ops[1]));
    OK(unisono_start_pread(f, read + 1000, 1000, 0, &ops[3]));
    OK(unisono_start_read_all(group, f, part, read + 2000, 1000, NULL, &ops[5]));
    for (int left = 3; left > 0; left--) {
        OK(unisono_op_wait_any(ops, COUNT, &index));
        CHECK(index < COUNT && ops[index] && unisono_op_wait(ops[index]) == 1000);
        ops[index] = NULL;
    }
    CHECK(!memcmp(read, read + 1000, 1000) && !memcmp(read, read + 2000, 1000));
    OK(unisono_start_write_all(group, f, part, model, 1000, NULL, &ops[0]));
    ended = 0;
    while (!ended)
        OK(unisono_op_wait_for(ops[0], 1000, &ended));
    OK(unisono_op_wait_for(ops[0], 0, &ended));
    CHECK(ended == 1 && unisono_op_wait(ops[0]) == 1000);
    OK(unisono_group_free(group));
    unisono_part_free(part);
    free(model);
    free(read);
}

int main(void)
{
    connections();
    unisono_t *u = connected();
    names(u);
    spellings(u);
    unisono_file_t *f = files(u);
    parts(f);
    pages(f);
    groups(u, f);
    operations(u, f);
    /* What a file needs of its connection outlives the handle of that, also while it is closed. */
    unisono_op_t *closing = NULL;
    OK(unisono_disconnect(u));
    char byte;
    CHECK(unisono_pread(f, &byte, 1, 0) == 1);
    OK(unisono_start_close(f, &closing));
    OK(unisono_op_wait(closing));
    return 0;
}
