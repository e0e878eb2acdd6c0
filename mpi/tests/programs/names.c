/* names.c - proves: all spellings of a name are one file, and names that UNISONO_MATCH redirects mean
 * what they mean to the file system: relative ones by the working directory, without ROMIO's prefixes,
 * with links followed. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

test_t test;

static char top[PATH_MAX]; /* directory of this test, without links */

/* A path in the directory of this test, behind a prefix; a few are valid at a time. */
static const char *in_top(const char *prefix, const char *path)
{
    static char paths[4][2 * PATH_MAX];
    static int turn;
    char *next = paths[turn++ % 4];
    snprintf(next, sizeof paths[0], "%s%s/%s", prefix, top, path);
    return next;
}

/* Opens a name at all ranks, or at some; reads the number there, and writes another. */
static void exchange_by(MPI_Comm comm, const char *name, int expected, int next)
{
    MPI_File file;
    int found = -1, rank;
    CONTEXT("name %s", name);
    MPI_Comm_rank(comm, &rank);
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Status status;
    OK(MPI_File_read_at_all(file, 0, &found, 1, MPI_INT, &status));
    EQUAL(found, expected);
    MPI_Barrier(comm);
    if (!rank)
        OK(MPI_File_write_at(file, 0, &next, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
    OK(MPI_File_close(&file));
    MPI_Barrier(comm);
}

static void exchange(const char *name, int expected, int next)
{
    exchange_by(MPI_COMM_WORLD, name, expected, next);
}

static void is_missing(const char *name)
{
    MPI_File file;
    CONTEXT("name %s", name);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
          MPI_ERR_NO_SUCH_FILE);
}

static void go_to(const char *directory)
{
    CHECK(chdir(in_top("", directory)) == 0);
    setenv("PWD", in_top("", directory), 1);
}

static void make_tree(void)
{
    char made[] = "/tmp/unisono-names-XXXXXX";
    if (!test.rank) {
        CHECK(mkdtemp(made) && realpath(made, top));
        CHECK(!mkdir(in_top("", "one"), 0700) && !mkdir(in_top("", "two"), 0700));
        CHECK(!symlink("one", in_top("", "link")));
        CHECK(!symlink("../two/target.h5", in_top("", "one/alias.h5")));
        CHECK(!symlink("around", in_top("", "around")));
    }
    MPI_Bcast(top, sizeof top, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void remove_tree(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank) {
        CHECK(chdir("/") == 0);
        CHECK(!unlink(in_top("", "one/alias.h5")) && !unlink(in_top("", "link")));
        CHECK(!unlink(in_top("", "around")));
        /* Nothing else was made there. */
        CHECK(!rmdir(in_top("", "one")) && !rmdir(in_top("", "two")) && !rmdir(top));
    }
}

static void check_spellings(void)
{
    static const char *const words[] = {
        "unisono://a/b",      "unisono:a/b",       "unisono:/a/b",   "unisono:///a//b",
        "unisono://./a/./b/", "unisono://a/c/../b", "unisono:../a/b", "ufs:unisono://a/b"};
    enum { WORDS = sizeof words / sizeof *words };
    MPI_File file;
    exchange("unisono://top", -1, 0);
    exchange("unisono://./top", 0, 0);
    delete_file("unisono:top");
    is_missing("unisono://top");
    setenv("UNISONO_MATCH", "/a/*", 1); /* makes the directory */
    exchange("/a/b", -1, 0);
    unsetenv("UNISONO_MATCH");
    for (int i = 0; i < WORDS; i++)
        exchange(words[i], i, i + 1);
    /* Each rank may have a spelling of its own. */
    exchange(words[test.rank % WORDS], WORDS, 100);
    FAILS(MPI_File_open(MPI_COMM_WORLD, test.rank ? "unisono://a/b" : "unisono://a/c",
                        MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
          MPI_ERR_NOT_SAME);
    delete_file("unisono://a//x/../b");
    is_missing(words[0]);
    delete_file("unisono:a/c");
}

static void check_relative_names(void)
{
    setenv("UNISONO_MATCH", "*.h5", 1);
    go_to("one");
    exchange("out.h5", -1, 1);
    exchange("./out.h5", 1, 2);
    exchange(".//..//one/out.h5", 2, 3);
    exchange("../link/out.h5", 3, 4);
    exchange(in_top("", "one/out.h5"), 4, 5);
    exchange(in_top("", "none/../link//out.h5"), 5, 6);
    exchange("ufs:out.h5", 6, 7);
    exchange(in_top("lustre:", "link/out.h5"), 7, 8);
    exchange(in_top("unisono:", "one/out.h5"), 8, 9);
    exchange(in_top("unisono:/", "two/../one/out.h5"), 9, 10);
    /* Another word before a colon is part of the name. */
    exchange("other:out.h5", -1, 30);
    exchange("./other:out.h5", 30, 31);
    delete_file("other:out.h5");
    /* A link may lead to a file that is not there. */
    exchange("alias.h5", -1, 40);
    exchange("../two/target.h5", 40, 41);
    delete_file("alias.h5");
    /* The same name in another directory is another file. */
    go_to("two");
    is_missing("target.h5");
    is_missing("out.h5");
    exchange("out.h5", -1, 20);
    exchange("../one/out.h5", 10, 11);
    exchange("../two/out.h5", 20, 21);
    delete_file("out.h5");
    /* By a link the shell knows the directory by another name. */
    go_to("link");
    exchange("out.h5", 11, 12);
    MPI_File file;
    FAILS(MPI_File_open(MPI_COMM_WORLD, "../around/x.h5", MPI_MODE_CREATE | MPI_MODE_RDWR,
                        MPI_INFO_NULL, &file),
          MPI_ERR_BAD_FILE);
    delete_file("out.h5");
}

/* Where ranks work in different directories, that of rank 0 says what their name means. */
static void check_directories_of_ranks(void)
{
    go_to(test.rank ? "two" : "one");
    exchange("shared.h5", -1, 1);
    exchange(in_top("unisono:", "one/shared.h5"), 1, 2);
    /* Different names must mean one file. */
    exchange(test.rank ? "../one/shared.h5" : "shared.h5", 2, 3);
    delete_file("shared.h5");
}

static void check_patterns(void)
{
    go_to("link");
    /* As given, as an absolute path, and as the shell has it. */
    const char *const patterns[] = {"pl*", in_top("", "one/p*"), in_top("", "link/*")};
    for (int i = 0; i < 3; i++) {
        setenv("UNISONO_MATCH", patterns[i], 1);
        exchange("plain", i ? i : -1, i + 1);
    }
    exchange(in_top("unisono:", "one/plain"), 3, 4);
    unsetenv("UNISONO_MATCH");
    delete_file(in_top("unisono:", "one/plain"));
}

int main(int count, char **arguments)
{
    begin(count, arguments, "names");
    make_tree();
    check_spellings();
    check_relative_names();
    check_directories_of_ranks();
    check_patterns();
    remove_tree();
    return end();
}
