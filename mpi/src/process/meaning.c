/* meaning.c - the name in an instance of a file that a program names. */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <unisono.h>

int name_mounted(const char *name, mounted_name_t *found)
{
    if (!name_may_be_mounted(name))
        return 0;
    int64_t bytes = unisono_mounted(name_bare(name), found->instance, sizeof found->instance,
                                    found->name, sizeof found->name);
    return bytes < 0 ? -1 : bytes > 0;
}

char *name_meaning(const char *name)
{
    char path[PATH_BYTES];
    const char *word = name_bare(name);
    if (!name_has_scheme(word)) {
        if (name_resolve(word, path))
            return NULL;
        word = path;
    }
    errno = 0;
    int64_t bytes = unisono_name(word, NULL, 0);
    char *meant = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
    if (meant)
        unisono_name(word, meant, (size_t)bytes + 1);
    return meant;
}
