/* A check of a test program: says where it failed, and what the library said. */
#include <stdio.h>
#include <stdlib.h>

static char* err = NULL;

#define CHECK(good)                                                                       \
    if (!(good)) {                                                                        \
        fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #good, err ? err : "no error"); \
        exit(1);                                                                          \
    }
