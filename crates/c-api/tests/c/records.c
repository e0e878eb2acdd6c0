/* Proves: records are found by conditions that are made in every way, alone and by a group; numbers
 * are computed; types, conditions and memories that do not fit are errors. */
#include "check.h"

enum { COUNT = 5000, BLOCK = 4096 };

struct event {
    uint32_t id;
    float energy;
    double at[3];
};

static const char TYPE[] = "id:u4, energy:f4, at:3f8";

static void make(struct event *events)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t id = i * 7919u % COUNT;
        events[i] = (struct event){id, (float)(id % 100) / 10, {id, -(double)id, 0.5}};
    }
}

/* Checks that the records found are those for which `wanted` is true, in the order of the file. */
static void check_found(unisono_records_t *records, const struct event *events,
                        int (*wanted)(const struct event *))
{
    uint64_t count = 0, at = 0;
    OK(unisono_records_count(records, &count));
    struct event *found = malloc((count + 1) * sizeof *found);
    CHECK(unisono_records_read(records, found, count * sizeof *found) == (int64_t)count);
    for (uint32_t i = 0; i < COUNT; i++)
        if (wanted(&events[i]))
            CHECK(at < count && !memcmp(&found[at++], &events[i], sizeof *events));
    CHECK(at == count);
    free(found);
    OK(unisono_records_free(records));
}

static int is_high(const struct event *event)
{
    return event->energy > 9.5f || event->id == 3 || event->id == 7;
}

static int is_low(const struct event *event)
{
    return !is_high(event) && event->at[1] <= -4000;
}

int main(void)
{
    unisono_t *u = connected();
    unisono_file_t *f = NULL;
    unisono_layout_t layout = {.size = sizeof layout, .block_bytes = BLOCK};
    struct event *events = malloc(COUNT * sizeof *events);
    make(events);
    OK(unisono_open(u, "events", UNISONO_CREATE, &layout, &f));
    CHECK(unisono_pwrite(f, "ignored", 7, 0) == 7);
    CHECK(unisono_pwrite(f, events, COUNT * sizeof *events, 7) == COUNT * sizeof *events);
    unisono_records_options_t options = {.size = sizeof options, .offset = 7};

    unisono_condition_t *high = NULL, *some = NULL, *either = NULL;
    unisono_condition_t *low = NULL, *left = NULL, *both = NULL;
    const int64_t set[] = {3, 7};
    OK(unisono_condition_compare("energy", UNISONO_GREATER, 9.5, &high));
    OK(unisono_condition_in("id", set, 2, &some));
    OK(unisono_condition_or(high, some, &either));
    OK(unisono_condition_not(either, &left));
    OK(unisono_condition_compare_integer("at[1]", UNISONO_LESS_OR_EQUAL, -4000, &low));
    OK(unisono_condition_and(left, low, &both));

    unisono_records_t *records = NULL;
    OK(unisono_find_records(f, NULL, TYPE, either, NULL, &options, &records));
    check_found(records, events, is_high);
    unisono_group_t *group = NULL;
    OK(unisono_group_form(u, "alone", 0, 1, &group));
    OK(unisono_find_records(f, group, TYPE, both, NULL, &options, &records));
    check_found(records, events, is_low);
    unisono_condition_t *text = NULL;
    OK(unisono_condition_text("energy > 9.5 or id in {3, 7}", &text));
    options.share = UNISONO_SHARE_PART;
    OK(unisono_find_records(f, group, TYPE, text, NULL, &options, &records));
    check_found(records, events, is_high);
    OK(unisono_find_records(f, group, TYPE, text, "id % 1", &options, &records));
    check_found(records, events, is_high);

    CHECK(unisono_count_records(f, NULL, TYPE, NULL, &options) == COUNT);
    double result = 0;
    int64_t integer = 0;
    OK(unisono_reduce_records(f, group, TYPE, NULL, &options, UNISONO_SUM, "id", &result,
                              &integer));
    CHECK(integer == (int64_t)COUNT * (COUNT - 1) / 2 && result == (double)integer);
    OK(unisono_reduce_records(f, NULL, TYPE, both, &options, UNISONO_MAXIMUM, "at[1]", &result,
                              NULL));
    CHECK(result == -4000);
    OK(unisono_reduce_records(f, NULL, TYPE, NULL, &options, UNISONO_MINIMUM, "energy",
                              &result, NULL));
    CHECK(result == 0);
    const double edges[] = {0, 10, 100.5, COUNT};
    uint64_t counts[3] = {0};
    OK(unisono_histogram_records(f, NULL, TYPE, NULL, &options, "id", edges, 4, counts));
    CHECK(counts[0] == 10 && counts[1] == 91 && counts[2] == COUNT - 101);

    /* Bounds change no result, also when they are old. */
    OK(unisono_summarise_records(f, NULL, TYPE, &options, "id; at[1]"));
    OK(unisono_find_records(f, NULL, TYPE, either, NULL, &options, &records));
    check_found(records, events, is_high);
    events[COUNT - 1].id = 3;
    CHECK(unisono_pwrite(f, events, COUNT * sizeof *events, 7) == COUNT * sizeof *events);
    OK(unisono_find_records(f, NULL, TYPE, either, NULL, &options, &records));
    check_found(records, events, is_high);
    FAILS(unisono_summarise_records(f, NULL, TYPE, &options, "id; tag"), EINVAL,
          UNISONO_ERR_USAGE);

    /* A module that selects all records, with 5 as their numbers. */
    const uint8_t module[] = {
        0, 'a', 's', 'm', 1, 0, 0, 0, 1, 9, 1, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, /* type */
        3, 2, 1, 0, 5, 3, 1, 0, 1, /* a function of it, a memory of a page */
        7, 19, 2, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0, 6, 's', 'e', 'l', 'e', 'c', 't', 0, 0,
        10, 37, 1, 35, 0, 3, 0x40, /* loop */
        0x20, 1, 4, 0x40, /* if there is a record left */
        0x20, 3, 0x42, 5, 0x37, 3, 0, /* its answer is 5 */
        0x20, 3, 0x41, 8, 0x6a, 0x21, 3, 0x20, 1, 0x41, 1, 0x6b, 0x21, 1, 0x0c, 1, /* next */
        0x0b, 0x0b, 0x41, 0, 0x0b};
    unisono_condition_t *by_module = NULL, *not_possible = NULL, *with_text = NULL;
    OK(unisono_condition_module(module, sizeof module, &by_module));
    OK(unisono_condition_and(either, by_module, &with_text));
    OK(unisono_find_records(f, NULL, TYPE, with_text, NULL, &options, &records));
    check_found(records, events, is_high);
    OK(unisono_find_records(f, group, TYPE, with_text, "answer() % 5", &options, &records));
    check_found(records, events, is_high);
    OK(unisono_reduce_records(f, NULL, TYPE, by_module, &options, UNISONO_SUM, "answer()", NULL,
                              &integer));
    CHECK(integer == 5 * COUNT);
    FAILS(unisono_find_records(f, NULL, TYPE, by_module, "answer()", &options, &records), EINVAL,
          UNISONO_ERR_BAD_ACCESS);
    FAILS(unisono_condition_or(high, by_module, &not_possible), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_condition_not(by_module, &not_possible), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_condition_and(by_module, by_module, &not_possible), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_condition_module((const uint8_t *)"(module)", 8, &not_possible), EINVAL,
          UNISONO_ERR_USAGE);
    OK(unisono_condition_free(by_module));
    OK(unisono_condition_free(with_text));
    OK(unisono_condition_module(module, sizeof module - 1, &by_module));
    FAILS(unisono_find_records(f, NULL, TYPE, by_module, NULL, &options, &records), EINVAL,
          UNISONO_ERR_BAD_ACCESS);
    OK(unisono_condition_free(by_module));
    OK(unisono_condition_operator("peak", &by_module));
    FAILS(unisono_find_records(f, NULL, TYPE, by_module, NULL, &options, &records), EINVAL,
          UNISONO_ERR_BAD_ACCESS);
    CHECK(strstr(unisono_last_error()->cause, "no operator \"peak\""));
    OK(unisono_condition_free(by_module));

    /* What does not fit. */
    FAILS(unisono_find_records(f, NULL, "all:28u1", NULL, NULL, &options, &records), EINVAL,
          UNISONO_ERR_USAGE);
    FAILS(unisono_find_records(f, NULL, NULL, NULL, NULL, NULL, &records), EINVAL,
          UNISONO_ERR_USAGE);
    FAILS(unisono_find_records(f, NULL, "id:q9", NULL, NULL, &options, &records), EINVAL,
          UNISONO_ERR_USAGE);
    FAILS(unisono_find_records(f, NULL, TYPE, NULL, "energy", &options, &records), EINVAL,
          UNISONO_ERR_USAGE);
    FAILS(unisono_find_records(f, NULL, TYPE, NULL, "id", &options, &records), EINVAL,
          UNISONO_ERR_BAD_ACCESS);
    options.share = 9;
    FAILS(unisono_find_records(f, NULL, TYPE, NULL, NULL, &options, &records), EINVAL,
          UNISONO_ERR_USAGE);
    options.share = 0;
    options.count = COUNT + 1;
    FAILS(unisono_find_records(f, NULL, TYPE, NULL, NULL, &options, &records), EINVAL,
          UNISONO_ERR_BAD_ACCESS);
    options.count = 0;
    unisono_condition_t *wrong = NULL;
    OK(unisono_condition_text("enrgy > 5", &wrong));
    FAILS(unisono_find_records(f, NULL, TYPE, wrong, NULL, &options, &records), EINVAL,
          UNISONO_ERR_USAGE);
    CHECK(strstr(unisono_last_error()->cause, "did you mean \"energy\""));
    OK(unisono_condition_free(wrong));
    FAILS(unisono_condition_text(NULL, &wrong), EINVAL,
          UNISONO_ERR_USAGE);
    CHECK(!wrong);
    FAILS(unisono_condition_compare("id", 6, 0, &wrong), EINVAL,
          UNISONO_ERR_USAGE);
    FAILS(unisono_condition_in("id", set, 1025, &wrong), EINVAL,
          UNISONO_ERR_USAGE);
    FAILS(unisono_reduce_records(f, NULL, TYPE, NULL, &options, UNISONO_SUM, "energy", NULL,
                                 &integer),
          EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_reduce_records(f, NULL, TYPE, NULL, &options, 3, "energy", &result, NULL), EINVAL,
          UNISONO_ERR_USAGE);
    const double descending[] = {1, 0};
    FAILS(unisono_histogram_records(f, NULL, TYPE, NULL, &options, "id", descending, 2, counts),
          EINVAL, UNISONO_ERR_BAD_ACCESS);
    unsigned char small[sizeof(struct event)];
    OK(unisono_find_records(f, NULL, TYPE, some, NULL, &options, &records));
    FAILS(unisono_records_read(records, small, sizeof small), EINVAL,
          UNISONO_ERR_BAD_ACCESS);
    OK(unisono_records_free(records));
    OK(unisono_records_free(NULL));

    unisono_condition_t *all[] = {high, some, either, left, low, both, text};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        OK(unisono_condition_free(all[i]));
    OK(unisono_group_free(group));
    OK(unisono_close(f));
    OK(unisono_disconnect(u));
    free(events);
    return 0;
}
