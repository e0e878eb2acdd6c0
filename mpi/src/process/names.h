/* names.h - file names of programs: which of them name files of the instance, and which files. */
#ifndef UNISONO_MPI_NAMES_H
#define UNISONO_MPI_NAMES_H

/* Bytes of the longest path, and of the longest name in an instance, with the zero byte at its end. */
enum { PATH_BYTES = 4096, NAME_BYTES = 4104 };

/* The name without a prefix by which ROMIO chooses a file system, such as "ufs:". */
const char *name_bare(const char *name);

/* 1 for a bare name that begins with "unisono:". */
int name_has_scheme(const char *bare);

/* 1 for the name of a file of the instance: unisono:..., or a name that UNISONO_MATCH redirects.
 * UNISONO_MATCH is a list of patterns, separated by commas. A pattern may match the name as given, its
 * absolute path with links followed, or its absolute path by the PWD of the shell. */
int name_is_taken(const char *name);

/* 1 for the name of an ordinary file on which the servers work at its path: UNISONO_IN_PLACE has patterns
 * as UNISONO_MATCH has, and "type:" with the type of a file system, such as "type:lustre". It counts before
 * UNISONO_MATCH, and such a name is taken. */
int name_is_in_place(const char *name);

/* 1 for a name in place that is, or leads through, a link out of what UNISONO_IN_PLACE confines: only
 * patterns with a slash match it as it is given, and none matches the path with links followed, which is
 * stored, also when links are followed in the directory before its first wildcard. */
int name_leaves_place(const char *name, char path[PATH_BYTES]);

/* 0 for a name that cannot be a path below a mount of an instance (unisono mount). For others the library
 * must be asked: name_mounted. Costs one statfs for a path on another file system. */
int name_may_be_mounted(const char *name);

/* Stores the absolute path of a bare name of a local file, without ".", ".." and links, so that all names
 * of a file have one path. Parts that do not exist stay as they are. Returns 0, or -1 with errno. */
int name_resolve(const char *bare, char path[PATH_BYTES]);

/* ---- With the library (meaning.c) ----------------------------------------------------------- */

/* File below a mount of an instance. */
typedef struct mounted_name {
    char instance[PATH_BYTES]; /* directory of the instance */
    char name[NAME_BYTES];     /* in the instance */
} mounted_name_t;

/* Finds the file that a path below a mount means. Returns 1; 0 for a name that is no such path; or -1 after
 * a failure of the library. */
int name_mounted(const char *name, mounted_name_t *found);

/* Name in the default instance of a file that the program names, to be freed. NULL with errno, which is 0
 * after a failure of the library. */
char *name_meaning(const char *name);

#endif
