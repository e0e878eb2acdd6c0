/* causes.c - proves: MPI_Error_string has the cause of a failure at every rank, behind the text of
 * its class, and nothing of it for failures of others. */
#include "check.h"

test_t test;

/* Text of a code, which must have the length that MPI says. */
static const char *text_of(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int length = -1;
    OK(MPI_Error_string(code, text, &length));
    EQUAL(length, (long long)strlen(text));
    snprintf(test.context, sizeof test.context, "text \"%.200s\"", text);
    return text;
}

/* Checks that the text of a code begins with that of its class. */
static void check_begin(const char *text, int class)
{
    char begin[MPI_MAX_ERROR_STRING], whole[MPI_MAX_ERROR_STRING];
    int length;
    memcpy(whole, text, sizeof whole);
    OK(MPI_Error_string(class, begin, &length));
    CHECK(strncmp(begin, whole, strcspn(whole, ":")) == 0);
}

static void check_missing_file(void)
{
    MPI_File file;
    const char *name = "unisono://no/such/file";
    int code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    FAILS(code, MPI_ERR_NO_SUCH_FILE);
    CHECK(strstr(text_of(code), "MPI_File_open failed: ") && strstr(text_of(code), "no/such/file"));
    check_begin(text_of(code), MPI_ERR_NO_SUCH_FILE);
    if (!test.rank)
        CHECK(!strstr(text_of(code), "at rank"));
    /* Other codes have no cause. */
    CHECK(!strstr(text_of(MPI_ERR_ACCESS), "failed: "));
    CHECK(!strstr(text_of(MPI_SUCCESS), "failed: "));
    /* A call of a file of the MPI library may fail with the same code. */
    code = MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    FAILS(code, MPI_ERR_NO_SUCH_FILE);
    CHECK(!strstr(text_of(code), "MPI_File_open failed: "));
}

static void check_views_and_sizes(void)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &file));
    int code = MPI_File_set_view(file, -1, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    CHECK(code != MPI_SUCCESS);
    CHECK(strstr(text_of(code), "displacement"));
    /* One rank is wrong: all know why. */
    const int wrong = test.size - 1;
    code = MPI_File_set_size(file, test.rank == wrong ? -1 : 0);
    FAILS(code, MPI_ERR_ARG);
    CHECK(strstr(text_of(code), "the size is negative"));
    char rank[32];
    snprintf(rank, sizeof rank, "at rank %d, ", wrong);
    CHECK(!strstr(text_of(code), rank) == (test.rank == wrong));
    OK(MPI_File_close(&file));
}

/* A text that does not fit ends between two letters. */
static void check_long_texts(void)
{
    char name[1000] = "unisono://";
    MPI_File file;
    for (int i = 0; i < 240; i++)
        strcat(name, i % 60 ? "\xC3\xBC" : "/");
    strcat(name, "x");
    int code = MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    FAILS(code, MPI_ERR_NO_SUCH_FILE);
    const char *text = text_of(code);
    size_t length = strlen(text);
    CHECK(length < MPI_MAX_ERROR_STRING && length > MPI_MAX_ERROR_STRING / 2);
    CHECK((unsigned char)text[length - 1] != 0xC3);
}

int main(int count, char **arguments)
{
    begin(count, arguments, "causes");
    check_missing_file();
    check_views_and_sizes();
    check_long_texts();
    remove_file(test.file);
    return end();
}
