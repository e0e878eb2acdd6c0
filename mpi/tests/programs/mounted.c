/* mounted.c - proves: a path below a mount of an instance is the file of that name in that instance, and
 * takes the way of the library; other paths are those of the local file system.
 * Called as `mounted MOUNT SECOND OUTSIDE`: mounts of the default and of another instance, and a local
 * directory. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

test_t test;

static char **directories; /* of the command line */

/* A path below a directory, behind a prefix; a few are valid at a time. */
static const char *below(const char *directory, const char *path)
{
    static char paths[8][2 * PATH_MAX];
    static int turn;
    char *next = paths[turn++ % 8];
    snprintf(next, sizeof paths[0], "%s/%s", directory, path);
    return next;
}

static const char *mounted(const char *path) { return below(directories[0], path); }
static const char *second(const char *path) { return below(directories[1], path); }
static const char *outside(const char *path) { return below(directories[2], path); }

static const char *with(const char *prefix, const char *path)
{
    static char text[3 * PATH_MAX];
    snprintf(text, sizeof text, "%s%s", prefix, path);
    return text;
}

/* 1 for a file of the library: the MPI library does not know its hints. */
static int is_of_instance(MPI_File file)
{
    MPI_Info info;
    char value[64];
    int found;
    OK(MPI_File_get_info(file, &info));
    MPI_Info_get(info, "unisono_method", 63, value, &found);
    MPI_Info_free(&info);
    return found;
}

static MPI_File open_by(const char *name, int mode)
{
    MPI_File file = MPI_FILE_NULL;
    CONTEXT("name %s", name);
    OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    return file;
}

/* Reads the number in a file, and writes another. */
static void exchange(const char *name, int expected, int next)
{
    int found = -1;
    MPI_File file = open_by(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    CHECK(is_of_instance(file));
    OK(MPI_File_read_at_all(file, 0, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(found, expected);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test.rank)
        OK(MPI_File_write_at(file, 0, &next, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fails(const char *name, int mode, int class)
{
    MPI_File file;
    CONTEXT("name %s", name);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), class);
}

static void is_missing(const char *name)
{
    fails(name, MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
}

/* Does something once, between barriers. */
#define ONCE(condition)                                                                            \
    do {                                                                                           \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
        if (!test.rank)                                                                            \
            CHECK(condition);                                                                      \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
    } while (0)

/* The number in a file as programs without MPI see it, or -1. */
static int number_in(const char *path)
{
    int found = -1, file = open(path, O_RDONLY);
    if (file < 0 || read(file, &found, sizeof found) != sizeof found)
        found = -1;
    if (file >= 0)
        close(file);
    return found;
}

static int write_number(const char *path, int number)
{
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    int is_written = file >= 0 && write(file, &number, sizeof number) == sizeof number;
    return file >= 0 && close(file) == 0 && is_written;
}

static void check_paths(void)
{
    exchange(mounted("new"), -1, 1);
    exchange("unisono://new", 1, 2);
    exchange(mounted(".//new"), 2, 3);
    exchange(with("ufs:", mounted("new")), 3, 4);
    exchange(with("lustre:", mounted("new")), 4, 5);
    exchange(test.rank % 2 ? mounted("new") : "unisono://new", 5, 6);
    /* Programs without MPI see the file, and write others. */
    struct stat found;
    ONCE(stat(mounted("new"), &found) == 0 && found.st_size == sizeof(int));
    ONCE(number_in(mounted("new")) == 6);
    ONCE(write_number(mounted("plain"), 7));
    exchange(mounted("plain"), 7, 8);
    ONCE(number_in(mounted("plain")) == 8);
    delete_file(mounted("plain"));
    ONCE(access(mounted("plain"), F_OK) != 0);
    is_missing(mounted("plain"));
    is_missing("unisono://plain");
    fails(mounted("new"), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_ERR_FILE_EXISTS);
    /* No directory is made. */
    fails(mounted("none/new"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE);
    ONCE(access(mounted("none"), F_OK) != 0);
    MPI_File file = open_by(mounted("passing"), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_close(&file));
    ONCE(access(mounted("passing"), F_OK) != 0);
}

/* A name that is as long as paths may be reaches every process whole. */
static void check_long_names(void)
{
    char path[3000] = "";
    for (int depth = 0; depth < 12; depth++) {
        size_t end = strlen(path);
        memset(path + end, 'n', 200);
        ONCE(mkdir(mounted(path), 0700) == 0);
        strcpy(path + end + 200, "/");
    }
    strcat(path, "long");
    exchange(mounted(path), -1, 1);
    exchange(with("unisono://", path), 1, 2);
    ONCE(number_in(mounted(path)) == 2);
}

static void check_relative_names(void)
{
    ONCE(mkdir(mounted("dir"), 0700) == 0);
    CHECK(chdir(mounted("dir")) == 0);
    exchange("out", -1, 1);
    exchange("./out", 1, 2);
    exchange("../dir/out", 2, 3);
    exchange("../new", 6, 7);
    exchange("unisono://dir/out", 3, 4);
    /* The directory of rank 0 says what a name means. */
    CHECK(chdir(test.rank ? directories[0] : mounted("dir")) == 0);
    exchange("out", 4, 5);
    CHECK(chdir("/") == 0);
}

static void check_links(void)
{
    ONCE(symlink(mounted("dir"), outside("link")) == 0);
    ONCE(symlink(mounted("dir/target"), outside("alias")) == 0);
    exchange(outside("link/out"), 5, 6);
    exchange(outside("alias"), -1, 1);
    exchange(mounted("dir/target"), 1, 2);
    exchange(outside("alias"), 2, 3);
    /* As unlink, this deletes the link. */
    delete_file(outside("alias"));
    ONCE(access(outside("alias"), F_OK) != 0);
    exchange(mounted("dir/target"), 3, 4);
    ONCE(unlink(outside("link")) == 0);
}

/* A pattern that matches a path below a mount does not make another file of it. */
static void check_patterns(void)
{
    setenv("UNISONO_MATCH", "*.h5", 1);
    exchange(mounted("dir/a.h5"), -1, 1);
    unsetenv("UNISONO_MATCH");
    exchange("unisono://dir/a.h5", 1, 2);
    is_missing(with("unisono:/", mounted("dir/a.h5")));
}

static void check_other_paths(void)
{
    int number = 5;
    MPI_File file = open_by(outside("local"), MPI_MODE_CREATE | MPI_MODE_RDWR);
    CHECK(!is_of_instance(file));
    if (!test.rank)
        OK(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    ONCE(number_in(outside("local")) == 5);
    is_missing("unisono://local");
    delete_file(outside("local"));
    ONCE(access(outside("local"), F_OK) != 0);
}

static void check_two_instances(void)
{
    MPI_File files[2];
    int numbers[2] = {10, 20};
    exchange(second("new"), -1, 30);
    exchange(mounted("new"), 7, 8);
    for (int i = 0; i < 2; i++)
        files[i] = open_by(i ? second("both") : mounted("both"), MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (int i = 0; i < 2; i++)
        OK(MPI_File_write_at_all(files[i], 0, &numbers[i], 1, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2; i++)
        OK(MPI_File_close(&files[i]));
    exchange("unisono://both", 10, 11);
    exchange(second("both"), 20, 21);
    fails(test.rank ? second("both") : mounted("both"), MPI_MODE_RDWR, MPI_ERR_NOT_SAME);
    fails(test.rank ? second("both") : "unisono://both", MPI_MODE_RDWR, MPI_ERR_NOT_SAME);
    delete_file(second("both"));
    is_missing(second("both"));
    exchange(mounted("both"), 11, 12);
    delete_file(mounted("both"));
}

int main(int count, char **arguments)
{
    begin(count, arguments, "mounted");
    CHECK(count == 4);
    directories = arguments + 1;
    check_paths();
    check_long_names();
    check_relative_names();
    check_links();
    check_patterns();
    check_other_paths();
    check_two_instances();
    return end();
}
