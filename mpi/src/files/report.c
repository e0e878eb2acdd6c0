/* report.c - counts of the calls of a process on its files, for the report of `unisono run`.
 *
 * UNISONO_REPORT names a directory in the instance. Without it nothing is counted. When MPI ends, each
 * process writes one file of JSON lines there. */
#include "../errors/errors.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Calls of one kind. */
typedef struct counts {
    uint64_t calls, bytes, copied;
    double seconds, first_at, last_at, waited;
} counts_t;

/* Forms of access. NOT_COLLECTIVE: a collective call that was carried out as an independent one. */
enum form { COLLECTIVE_FORM, INDEPENDENT, SHARED, ORDERED, NOT_COLLECTIVE, FORM_COUNT };

/* Directions of calls. */
enum operation { READING, WRITING, SYNCING, OPERATION_COUNT };

/* Greatest number of collective calls whose beginnings are compared, for each open file. */
enum { STARTS_MAX = 4096 };

struct file_report {
    char *name;
    const char *method;
    char *hints; /* members of a JSON object */
    char *rejected;
    uint64_t opens;
    counts_t counts[OPERATION_COUNT][FORM_COUNT];
    file_report_t *next;
};

static file_report_t *reports;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double begun_at;

/* Rank and size of this process in the largest communicator of a file, for a program without
 * MPI_COMM_WORLD. */
static int place, places;

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- Text ---------------------------------------------------------------------------------- */

/* Text that grows. */
typedef struct text {
    char *start;
    size_t bytes, room;
} text_t;

static void add(text_t *text, const char *piece, size_t bytes)
{
    if (text->bytes + bytes + 1 > text->room) {
        size_t room = 2 * (text->bytes + bytes) + 256;
        char *larger = realloc(text->start, room);
        if (!larger)
            return;
        text->start = larger;
        text->room = room;
    }
    memcpy(text->start + text->bytes, piece, bytes);
    text->bytes += bytes;
    text->start[text->bytes] = 0;
}

static void add_string(text_t *text, const char *string)
{
    add(text, string, strlen(string));
}

/* Adds a string of JSON, quoted. */
static void add_quoted(text_t *text, const char *string)
{
    add_string(text, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        char escaped[8];
        if (*c == '"' || *c == '\\' || *c < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", *c);
        else
            snprintf(escaped, sizeof escaped, "%c", *c);
        add_string(text, escaped);
    }
    add_string(text, "\"");
}

/* ---- Counting ------------------------------------------------------------------------------ */

static const char *method_of(const open_file_t *file)
{
    if (file->is_independent)
        return "independent";
    switch (file->options.strategy) {
    case UNISONO_TWO_PHASE:
        return "two-phase";
    case UNISONO_CACHING:
    case UNISONO_NONCOLLECTIVE:
        return "independent";
    case UNISONO_GLOBAL_BARRIER:
        return "global-barrier";
    case UNISONO_NODE_GROUPING:
        return "node-grouping";
    default:
        return "disk-directed";
    }
}

/* Keeps the hints of a file that are in effect. */
static void note_hints(const open_file_t *file, file_report_t *report)
{
    text_t hints = {0};
    size_t count = unisono_hints_count(file->hints);
    free(report->rejected);
    report->rejected = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *key, *value;
        if (unisono_hints_get(file->hints, i, &key, &value))
            continue;
        if (strcmp(key, "unisono_hints_rejected") == 0) {
            report->rejected = strdup(value);
            continue;
        }
        add_string(&hints, hints.bytes ? "," : "");
        add_quoted(&hints, key);
        add_string(&hints, ":");
        add_quoted(&hints, value);
    }
    free(report->hints);
    report->hints = hints.start;
}

void report_open(open_file_t *file)
{
    if (!getenv("UNISONO_REPORT"))
        return;
    pthread_mutex_lock(&lock);
    if (!reports)
        begun_at = now_s();
    if (file->size > places) {
        place = file->rank;
        places = file->size;
    }
    file_report_t *report = reports;
    while (report && strcmp(report->name, file->name) != 0)
        report = report->next;
    if (!report && (report = calloc(1, sizeof *report))) {
        report->name = strdup(file->name);
        report->next = reports;
        if (report->name)
            reports = report;
        else
            free(report), report = NULL;
    }
    if (report) {
        report->opens++;
        report->method = method_of(file);
        note_hints(file, report);
    }
    file->report = report;
    pthread_mutex_unlock(&lock);
}

static enum operation operation_of(const char *name)
{
    return strstr(name, "write") ? WRITING : strstr(name, "read") ? READING : SYNCING;
}

static enum form form_of(const open_file_t *file, const char *name)
{
    if (strstr(name, "shared"))
        return SHARED;
    if (strstr(name, "ordered"))
        return ORDERED;
    if (!strstr(name, "_all") && !strstr(name, "sync"))
        return INDEPENDENT;
    return file->is_independent || file->is_atomic ? NOT_COLLECTIVE : COLLECTIVE_FORM;
}

static counts_t *counts_of(const open_file_t *file, int call)
{
    const char *name = call_name(call);
    return &file->report->counts[operation_of(name)][form_of(file, name)];
}

void report_bytes(const open_file_t *file, int call, uint64_t moved, uint64_t copied)
{
    if (!file->report)
        return;
    pthread_mutex_lock(&lock);
    counts_t *counts = counts_of(file, call);
    counts->calls++;
    counts->bytes += moved;
    counts->copied += copied;
    pthread_mutex_unlock(&lock);
}

void report_time(const open_file_t *file, int call, double started_at)
{
    if (!file->report)
        return;
    double now = now_s();
    pthread_mutex_lock(&lock);
    counts_t *counts = counts_of(file, call);
    if (!counts->first_at)
        counts->first_at = started_at;
    counts->last_at = now;
    counts->seconds += now - started_at;
    if (operation_of(call_name(call)) == SYNCING)
        counts->calls++;
    pthread_mutex_unlock(&lock);
}

void report_start(open_file_t *file, double started_at)
{
    if (!file->report || file->size == 1 || file->start_count == STARTS_MAX)
        return;
    if (!file->starts)
        file->starts = malloc(STARTS_MAX * sizeof *file->starts);
    if (file->starts)
        file->starts[file->start_count++] = started_at;
}

void report_waited(const open_file_t *file, double seconds)
{
    pthread_mutex_lock(&lock);
    /* All waits count for the first of reads and writes that was collective. */
    for (int operation = READING; operation <= WRITING; operation++)
        if (file->report->counts[operation][COLLECTIVE_FORM].calls) {
            file->report->counts[operation][COLLECTIVE_FORM].waited += seconds;
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void add_counts(text_t *text, const file_report_t *report, enum operation operation,
                       enum form form)
{
    static const char *const operations[] = {"read", "write", "sync"};
    static const char *const forms[] = {"collective", "independent", "shared", "ordered",
                                        "independent"};
    const counts_t *counts = &report->counts[operation][form];
    char line[400];
    if (!counts->calls)
        return;
    add_string(text, "{\"line\":\"calls\",\"file\":");
    add_quoted(text, report->name);
    snprintf(line, sizeof line,
             ",\"op\":\"%s\",\"form\":\"%s\",\"why\":\"%s\",\"calls\":%llu,\"bytes\":%llu,"
             "\"copied\":%llu,\"seconds\":%.6f,\"first_at\":%.6f,\"last_at\":%.6f,"
             "\"waited\":%.6f}\n",
             operations[operation], forms[form],
             form == INDEPENDENT      ? "the program makes independent calls"
             : form == NOT_COLLECTIVE ? "unisono_method=independent, or atomic mode"
                                      : "",
             (unsigned long long)counts->calls, (unsigned long long)counts->bytes,
             (unsigned long long)counts->copied, counts->seconds, counts->first_at,
             counts->last_at, counts->waited);
    add_string(text, line);
}

static void add_file(text_t *text, const file_report_t *report)
{
    char opens[64];
    add_string(text, "{\"line\":\"file\",\"name\":");
    add_quoted(text, report->name);
    snprintf(opens, sizeof opens, ",\"opens\":%llu,\"method\":", (unsigned long long)report->opens);
    add_string(text, opens);
    add_quoted(text, report->method);
    add_string(text, ",\"hints\":{");
    add_string(text, report->hints ? report->hints : "");
    add_string(text, "},\"rejected\":");
    add_quoted(text, report->rejected ? report->rejected : "");
    add_string(text, "}\n");
    for (int operation = 0; operation < OPERATION_COUNT; operation++)
        for (int form = 0; form < FORM_COUNT; form++)
            add_counts(text, report, (enum operation)operation, (enum form)form);
}

/* Shortens "MPICH Version:  4.0.2\nMPICH Release date..." to "MPICH 4.0.2", and "Open MPI v4.1.4,
 * package..." to "Open MPI 4.1.4". */
static void shorten_version(char *version)
{
    char *target = version, *word = strtok(version, " \t,\n");
    int is_complete = 0;
    while (word && !is_complete) {
        size_t length = strlen(word);
        is_complete = strpbrk(word, "0123456789") != NULL;
        if (is_complete && *word == 'v')
            word++, length--;
        if (strcmp(word, "Version:") != 0) {
            if (target != version)
                *target++ = ' ';
            memmove(target, word, length);
            target += length;
        }
        word = strtok(NULL, " \t,\n");
    }
    *target = 0;
}

static void add_process(text_t *text, const char *host)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", line[128];
    int rank = place, size = places, length;
    if (has_world()) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        PMPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    PMPI_Get_library_version(version, &length);
    shorten_version(version);
    snprintf(line, sizeof line, "{\"line\":\"process\",\"rank\":%d,\"size\":%d,\"host\":", rank,
             size);
    add_string(text, line);
    add_quoted(text, host);
    snprintf(line, sizeof line, ",\"pid\":%ld,\"mpi\":", (long)getpid());
    add_string(text, line);
    add_quoted(text, version);
    snprintf(line, sizeof line, ",\"seconds\":%.6f}\n", now_s() - begun_at);
    add_string(text, line);
}

void report_write(unisono_t *unisono)
{
    const char *folder = getenv("UNISONO_REPORT");
    char host[256] = "host", name[700];
    text_t text = {0};
    unisono_file_t *file = NULL;
    if (!folder || !*folder || !reports)
        return;
    gethostname(host, sizeof host - 1);
    add_process(&text, host);
    for (const file_report_t *report = reports; report; report = report->next)
        add_file(&text, report);
    snprintf(name, sizeof name, "%s/%s-%ld.jsonl", folder, host, (long)getpid());
    if (!unisono || unisono_mkdir(unisono, folder, 1)
        || unisono_open(unisono, name, UNISONO_CREATE | UNISONO_TRUNC, NULL, &file)
        || unisono_pwrite(file, text.start, text.bytes, 0) < 0 || unisono_close(file)) {
        const unisono_error_t *error = unisono_last_error();
        explain("cannot write the report of a process", error ? error->cause : "unknown",
                "the data of the program is not affected");
    }
    free(text.start);
}
