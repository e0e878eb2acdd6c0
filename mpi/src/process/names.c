/* names.c - file names of programs: which of them name files of the instance, and which files. */
#define _GNU_SOURCE /* fopen with "e" */
#include "names.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Greatest number of links that are followed in one name, as in Linux. */
enum { LINKS_MAX = 40 };

const char *name_bare(const char *name)
{
    /* fstype_prefix of ROMIO's ad_fstype.c. Other words before a colon are part of the name. */
    static const char *const prefixes[] = {"ufs:",    "nfs:",   "xfs:",  "pvfs2:",  "gpfs:", "panfs:",
                                           "lustre:", "daos:", "testfs:", "ime:", "quobyte:"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t bytes = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], bytes) == 0)
            return name + bytes;
    }
    return name;
}

int name_has_scheme(const char *bare)
{
    return strncmp(bare, "unisono:", 8) == 0;
}

/* 1 when one of the patterns matches the text. `is_wide`: patterns with a slash do not count. */
static int matches_some(const char *patterns, const char *text, int is_wide)
{
    char *list = strdup(patterns), *rest = list, *pattern;
    int found = 0;
    while (list && !found && (pattern = strsep(&rest, ",")))
        found = *pattern && !(is_wide && strchr(pattern, '/')) && fnmatch(pattern, text, 0) == 0;
    free(list);
    return found;
}

static int matches(const char *patterns, const char *text)
{
    return matches_some(patterns, text, 0);
}

/* Stores the path of a relative name below PWD, in which the shell keeps links. Returns 0 or -1. */
static int shell_path(const char *bare, char path[PATH_BYTES])
{
    struct stat shell, here;
    const char *directory = getenv("PWD");
    if (!directory || *directory != '/' || stat(directory, &shell) || stat(".", &here)
        || shell.st_dev != here.st_dev || shell.st_ino != here.st_ino)
        return -1;
    return snprintf(path, PATH_BYTES, "%s/%s", directory, bare) < PATH_BYTES ? 0 : -1;
}

/* 1 when one of the patterns of an environment variable matches a bare name, as it is given or a path. */
static int is_matched(const char *variable, const char *name)
{
    char path[PATH_BYTES];
    const char *patterns = getenv(variable), *bare = name_bare(name);
    if (!patterns || !*patterns || !*bare)
        return 0;
    return matches(patterns, name) || matches(patterns, bare)
           || (*bare != '/' && shell_path(bare, path) == 0 && matches(patterns, path))
           || (name_resolve(bare, path) == 0 && matches(patterns, path));
}

/* A type of file systems, by its name in patterns and its f_type (linux/magic.h, and the headers of Lustre,
 * GPFS, BeeGFS and PanFS). */
typedef struct file_system {
    const char *name;
    uint32_t type;
} file_system_t;

static const file_system_t file_systems[] = {
    {"beegfs", 0x19830326},   {"btrfs", 0x9123683e},   {"ceph", 0x00c36400},  {"ext4", 0xef53},
    {"fuse", 0x65735546},     {"gpfs", 0x47504653},    {"lustre", 0x0bd00bd0}, {"nfs", 0x6969},
    {"orangefs", 0x20030528}, {"overlay", 0x794c7630}, {"panfs", 0xaad7aaea}, {"tmpfs", 0x01021994},
    {"xfs", 0x58465342},
};

/* Finds the file system of a bare name; of a file that does not exist, that of its directory. Returns 0
 * or -1. */
static int file_system_of(const char *bare, struct statfs *found)
{
    char path[PATH_BYTES];
    if (statfs(bare, found) == 0)
        return 0;
    if (errno != ENOENT || name_resolve(bare, path))
        return -1;
    char *slash = strrchr(path, '/');
    slash[slash == path] = 0;
    return statfs(path, found);
}

/* 1 when a pattern is "type:" and the name of a type. */
static int is_of_type(const char *pattern, uint32_t type)
{
    if (strncmp(pattern, "type:", 5) != 0)
        return 0;
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if (file_systems[i].type == type && strcmp(file_systems[i].name, pattern + 5) == 0)
            return 1;
    return 0;
}

/* 1 when one of the patterns of an environment variable is the type of the file system of a name. */
static int has_type(const char *variable, const char *name)
{
    struct statfs system;
    const char *patterns = getenv(variable), *bare = name_bare(name);
    if (!patterns || !strstr(patterns, "type:") || !*bare || file_system_of(bare, &system))
        return 0;
    char *list = strdup(patterns), *rest = list, *pattern;
    int found = 0;
    while (list && !found && (pattern = strsep(&rest, ",")))
        found = is_of_type(pattern, (uint32_t)system.f_type);
    free(list);
    return found;
}

int name_is_in_place(const char *name)
{
    return name && !name_has_scheme(name_bare(name))
           && (is_matched("UNISONO_IN_PLACE", name) || has_type("UNISONO_IN_PLACE", name));
}

/* 1 when a path without links matches a pattern of which the directory before the first wildcard is resolved,
 * too: /scratch may be a link itself, and a pattern relative. */
static int matches_resolved(const char *pattern, const char *path)
{
    char directory[PATH_BYTES], resolved[PATH_BYTES], whole[2 * PATH_BYTES];
    const char *bare = name_bare(pattern), *slash = bare + strcspn(bare, "*?[\\");
    while (slash > bare && *slash != '/')
        slash--;
    const size_t bytes = (size_t)(slash - bare);
    if (*slash != '/' || bytes >= sizeof directory)
        return 0;
    memcpy(directory, bare, bytes);
    directory[bytes] = 0;
    if (name_resolve(bytes ? directory : "/", resolved))
        return 0;
    snprintf(whole, sizeof whole, "%s%s", resolved[1] ? resolved : "", slash);
    return fnmatch(whole, path, 0) == 0;
}

int name_leaves_place(const char *name, char path[PATH_BYTES])
{
    const char *patterns = getenv("UNISONO_IN_PLACE"), *bare = name_bare(name);
    if (!patterns || has_type("UNISONO_IN_PLACE", name) || matches_some(patterns, name, 1)
        || matches_some(patterns, bare, 1) || name_resolve(bare, path) || matches(patterns, path))
        return 0;
    char *list = strdup(patterns), *rest = list, *pattern;
    int stays = 0;
    while (list && !stays && (pattern = strsep(&rest, ",")))
        stays = matches_resolved(pattern, path);
    free(list);
    return !stays;
}

int name_is_taken(const char *name)
{
    return name
           && (name_has_scheme(name_bare(name)) || name_is_in_place(name)
               || is_matched("UNISONO_MATCH", name));
}

/* 1 when this process sees a mount of an instance. */
static int has_mounts(void)
{
    char *line = NULL;
    size_t bytes = 0;
    int found = 0;
    FILE *table = fopen("/proc/self/mountinfo", "re");
    while (table && !found && getline(&line, &bytes, table) > 0)
        found = strstr(line, " - fuse.unisono unisono:") || strstr(line, " - fuse unisono:");
    free(line);
    if (table)
        fclose(table);
    return found;
}

/* f_type of FUSE (FUSE_SUPER_MAGIC of linux/magic.h). */
enum { FUSE = 0x65735546 };

int name_may_be_mounted(const char *name)
{
    struct statfs found;
    char directory[PATH_BYTES], link;
    const char *bare = name ? name_bare(name) : "", *slash = strrchr(bare, '/');
    if (!*bare || name_has_scheme(bare))
        return 0;
    if (statfs(bare, &found) == 0)
        return found.f_type == FUSE && has_mounts();
    /* A file that does not exist lies where its directory does, unless its name is a link. */
    size_t bytes = slash ? (size_t)(slash - bare) + 1 : 0;
    if (errno == ENOENT && bytes < sizeof directory && readlink(bare, &link, 1) < 0) {
        snprintf(directory, sizeof directory, "%.*s", bytes ? (int)bytes : 1, bytes ? bare : ".");
        if (statfs(directory, &found) == 0 && found.f_type != FUSE)
            return 0;
    }
    return has_mounts();
}

/* Rest of a path that is still to be resolved, and the path that is resolved. */
typedef struct walk {
    char rest[PATH_BYTES], *path;
    size_t length; /* of the path */
    int links;     /* that were followed */
} walk_t;

/* Replaces the link at the end of the path: puts its target before the rest. */
static int follow(walk_t *walk, const char *rest, size_t before)
{
    char target[PATH_BYTES], joined[PATH_BYTES];
    ssize_t bytes = readlink(walk->path, target, sizeof target - 1);
    if (bytes < 0)
        return -1;
    target[bytes] = 0;
    errno = ELOOP;
    if (++walk->links > LINKS_MAX)
        return -1;
    errno = ENAMETOOLONG;
    if (snprintf(joined, sizeof joined, "%s/%s", target, rest) >= (int)sizeof joined)
        return -1;
    strcpy(walk->rest, joined);
    walk->length = *target == '/' ? 0 : before;
    walk->path[walk->length] = 0;
    return 0;
}

/* Resolves the first part of the rest. */
static int step(walk_t *walk)
{
    struct stat found;
    const char *part = walk->rest + strspn(walk->rest, "/");
    const size_t bytes = strcspn(part, "/"), before = walk->length;
    const char *rest = part + bytes;
    if (bytes == 2 && part[0] == '.' && part[1] == '.') {
        const char *slash = strrchr(walk->path, '/');
        walk->length = slash ? (size_t)(slash - walk->path) : 0;
    } else if (bytes && !(bytes == 1 && *part == '.')) {
        errno = ENAMETOOLONG;
        if (before + 1 + bytes >= PATH_BYTES)
            return -1;
        walk->path[before] = '/';
        memcpy(walk->path + before + 1, part, bytes);
        walk->length = before + 1 + bytes;
    }
    walk->path[walk->length] = 0;
    if (walk->length > before && lstat(walk->path, &found) == 0 && S_ISLNK(found.st_mode))
        return follow(walk, rest, before);
    memmove(walk->rest, rest, strlen(rest) + 1);
    return 0;
}

int name_resolve(const char *bare, char path[PATH_BYTES])
{
    char here[PATH_BYTES] = "";
    walk_t walk = {.path = path};
    *path = 0;
    if (*bare != '/' && !getcwd(here, sizeof here))
        return -1;
    errno = ENAMETOOLONG;
    if (snprintf(walk.rest, sizeof walk.rest, "%s/%s", here, bare) >= (int)sizeof walk.rest)
        return -1;
    while (*walk.rest)
        if (step(&walk))
            return -1;
    if (!walk.length)
        strcpy(path, "/");
    return 0;
}
