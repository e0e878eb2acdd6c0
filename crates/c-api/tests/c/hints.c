/* Proves: hints of the environment and of the program are in force or rejected with a reason, and
 * reach the options of other calls; arguments that make no sense are refused. */
#include "check.h"

#define REFUSED(call) FAILS(call, EINVAL, UNISONO_ERR_USAGE)

/* Value of a key; NULL when it is not there. */
static const char *value_of(const unisono_hints_t *hints, const char *wanted)
{
    for (size_t i = 0; i < unisono_hints_count(hints); i++) {
        const char *key = NULL, *value = NULL;
        OK(unisono_hints_get(hints, i, &key, &value));
        if (!strcmp(key, wanted))
            return value;
    }
    return NULL;
}

static void check_value(const unisono_hints_t *hints, const char *key, const char *expected)
{
    const char *value = value_of(hints, key);
    if (!value || strcmp(value, expected)) {
        fprintf(stderr, "%s is %s, not %s\n", key, value ? value : "missing", expected);
        CHECK(!"value");
    }
}

static void defaults(unisono_t *u)
{
    unisono_hints_t *hints = NULL;
    OK(unisono_hints_new(u, "unisono://a", &hints));
    check_value(hints, "unisono_method", "auto");
    check_value(hints, "striping_factor", "2");
    CHECK(!value_of(hints, "striping_unit") && !value_of(hints, "unisono_hints_rejected"));
    unisono_collective_options_t options = {.size = sizeof options, .outstanding_per_disk = 3};
    unisono_layout_t layout = {.size = sizeof layout, .block_bytes = 4096};
    int is_independent = 7;
    OK(unisono_hints_apply(hints, &options, &layout, &is_independent));
    CHECK(options.strategy == UNISONO_DISK_DIRECTED && options.order == UNISONO_SORTED);
    CHECK(!options.sync && options.outstanding_per_disk == 3);
    CHECK(layout.block_bytes == 4096 && is_independent == 0);
    OK(unisono_hints_apply(hints, NULL, NULL, NULL));

    OK(unisono_hints_set(hints, "unisono_method", "independent"));
    OK(unisono_hints_set(hints, "unisono_disk_order", "staggered"));
    OK(unisono_hints_set(hints, "unisono_sync", "true"));
    OK(unisono_hints_set(hints, "striping_unit", "64KiB"));
    OK(unisono_hints_set(hints, "unisono_protection", "mirror"));
    OK(unisono_hints_set(hints, "cb_node", "4"));
    OK(unisono_hints_set(hints, "cb_buffer_size", "banana"));
    check_value(hints, "unisono_block_size", "65536");
    check_value(hints, "unisono_hints_rejected",
                "cb_node(unknown; did you mean cb_nodes?) cb_buffer_size=banana(not a size)");
    OK(unisono_hints_apply(hints, &options, &layout, &is_independent));
    CHECK(options.strategy == UNISONO_NONCOLLECTIVE && options.order == UNISONO_STAGGERED);
    CHECK(options.sync && options.outstanding_per_disk == 3);
    CHECK(options.size == sizeof options && layout.size == sizeof layout);
    CHECK(layout.block_bytes == 65536 && is_independent == 1 && options.node_group_size == 0);
    CHECK(layout.protection == UNISONO_PROTECTION_MIRROR);
    unisono_file_t *file = NULL;
    OK(unisono_open(u, "mirrored", UNISONO_CREATE | UNISONO_EXCL, &layout, &file));
    OK(unisono_close(file));
    OK(unisono_hints_set(hints, "unisono_protection", "parity"));
    OK(unisono_hints_apply(hints, &options, &layout, &is_independent));
    CHECK(layout.protection == UNISONO_PROTECTION_PARITY);
    OK(unisono_open(u, "with parity", UNISONO_CREATE | UNISONO_EXCL, &layout, &file));
    OK(unisono_close(file));
    OK(unisono_hints_set(hints, "unisono_protection", "parity:1"));
    OK(unisono_hints_apply(hints, &options, &layout, &is_independent));
    CHECK(layout.protection == UNISONO_PROTECTION_ROWS + 1);
    OK(unisono_open(u, "with rows", UNISONO_CREATE | UNISONO_EXCL, &layout, &file));
    OK(unisono_close(file));
    layout.protection = 9;
    REFUSED(unisono_open(u, "strange", UNISONO_CREATE | UNISONO_EXCL, &layout, &file));
    OK(unisono_hints_set(hints, "unisono_method", "node-grouping"));
    OK(unisono_hints_set(hints, "unisono_node_group_size", "3"));
    OK(unisono_hints_apply(hints, &options, NULL, &is_independent));
    CHECK(options.strategy == UNISONO_NODE_GROUPING && options.node_group_size == 3);
    CHECK(is_independent == 0);
    unisono_hints_free(hints);
}

static void environment(unisono_t *u)
{
    unisono_hints_t *hints = NULL;
    setenv("UNISONO_HINTS", "*.h5:unisono_method=two-phase:unisono_sync=1,*.dat:cb_nodes=2", 1);
    OK(unisono_hints_new(u, "runs/7/x.h5", &hints));
    check_value(hints, "unisono_method", "two-phase");
    check_value(hints, "unisono_sync", "true");
    CHECK(!value_of(hints, "unisono_hints_rejected"));
    unisono_hints_free(hints);
    setenv("UNISONO_METHOD", "ddio", 1);
    OK(unisono_hints_new(u, "x.h5", &hints));
    check_value(hints, "unisono_method", "disk-directed");
    unisono_hints_free(hints);
    setenv("UNISONO_STRICT", "1", 1);
    REFUSED(unisono_hints_new(u, "x.dat", &hints));
    CHECK(!hints && strstr(unisono_last_error()->error, "cb_nodes=2"));
    OK(unisono_hints_new(u, "x.h5", &hints));
    REFUSED(unisono_hints_set(hints, "unisono_method", "fast"));
    CHECK(strstr(unisono_last_error()->cause, "two-phase"));
    check_value(hints, "unisono_method", "disk-directed");
    unisono_hints_free(hints);
    unsetenv("UNISONO_STRICT");
}

static void nonsense(unisono_t *u)
{
    unisono_hints_t *hints = (unisono_hints_t *)&hints;
    const char *text = NULL;
    REFUSED(unisono_hints_new(NULL, "a", &hints));
    CHECK(!hints);
    REFUSED(unisono_hints_new(u, NULL, &hints));
    REFUSED(unisono_hints_new(u, "a", NULL));
    OK(unisono_hints_new(u, "a", &hints));
    REFUSED(unisono_hints_set(hints, NULL, "1"));
    REFUSED(unisono_hints_set(hints, "a", NULL));
    REFUSED(unisono_hints_set(NULL, "a", "1"));
    REFUSED(unisono_hints_get(hints, 1000, &text, &text));
    REFUSED(unisono_hints_get(hints, 0, NULL, &text));
    unisono_layout_t layout = {.size = 3};
    REFUSED(unisono_hints_apply(hints, NULL, &layout, NULL));
    REFUSED(unisono_hints_apply(NULL, NULL, NULL, NULL));
    CHECK(unisono_hints_count(NULL) == 0);
    unisono_hints_free(hints);
    unisono_hints_free(NULL);
}

int main(void)
{
    unisono_t *u = connected();
    defaults(u);
    nonsense(u);
    environment(u);
    OK(unisono_disconnect(u));
    return 0;
}
