/* names.h - which files of a program are those of the instance, and what their names mean. */
#ifndef UNISONO_MPI_NAMES_H
#define UNISONO_MPI_NAMES_H

/* Bytes of the longest path, with the zero byte at its end. */
enum { PATH_BYTES = 4096 };

/* The name without a prefix by which ROMIO chooses a file system, such as "ufs:". */
const char *name_bare(const char *name);

/* 1 for a bare name that begins with "unisono:". */
int name_has_scheme(const char *bare);

/* 1 for a name whose file is one of the instance: unisono:..., or one that UNISONO_MATCH redirects.
 * UNISONO_MATCH is a list of patterns with commas between them. A pattern may match the name as it is
 * given, or its absolute path, with the links of the file system followed or as the shell has it. */
int name_is_taken(const char *name);

/* Stores the absolute path of a bare name of a local file: without "." and "..", and without links,
 * so that all names of a file have one path. What does not exist is taken as it is written. Returns 0,
 * or -1 with errno. */
int name_resolve(const char *bare, char path[PATH_BYTES]);

/* Name in the instance that a name of a program means in this process, to be freed (meaning.c). NULL
 * with errno, which is 0 when the library says what is wrong. */
char *name_meaning(const char *name);

#endif
