/* names.h - file names of programs: which of them name files of the instance, and which files. */
#ifndef UNISONO_MPI_NAMES_H
#define UNISONO_MPI_NAMES_H

/* Bytes of the longest path, with the zero byte at its end. */
enum { PATH_BYTES = 4096 };

/* The name without a prefix by which ROMIO chooses a file system, such as "ufs:". */
const char *name_bare(const char *name);

/* 1 for a bare name that begins with "unisono:". */
int name_has_scheme(const char *bare);

/* 1 for the name of a file of the instance: unisono:..., or a name that UNISONO_MATCH redirects.
 * UNISONO_MATCH is a list of patterns, separated by commas. A pattern may match the name as given, its
 * absolute path with links followed, or its absolute path by the PWD of the shell. */
int name_is_taken(const char *name);

/* Stores the absolute path of a bare name of a local file, without ".", ".." and links, so that all names
 * of a file have one path. Parts that do not exist stay as they are. Returns 0, or -1 with errno. */
int name_resolve(const char *bare, char path[PATH_BYTES]);

/* Name in the instance of a file that the program names, to be freed (meaning.c). NULL with errno, which
 * is 0 after a failure of the library. */
char *name_meaning(const char *name);

#endif
