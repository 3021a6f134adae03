/* What the programs of random calls share: numbers by seed, and what every call keeps to. */
#ifndef CALLS_H
#define CALLS_H
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tagmatch.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__, #what, tm_last_error()); \
            abort(); \
        } \
    } while (0)

static uint64_t numbers;

static inline uint64_t draw(void)
{
    uint64_t mixed = numbers += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

static inline uint64_t below(uint64_t bound)
{
    return draw() % bound;
}

static inline int one_in(uint64_t many)
{
    return below(many) == 0;
}

/* A number at an edge. */
static inline uint64_t edge(void)
{
    static const uint64_t edges[] = { 0, 1, 2, 7, 33, 64, 127, 4096, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff,
                                      UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX };
    return edges[below(sizeof edges / sizeof *edges)];
}

static uint64_t calls, refusals;

/* A call that fails says so by an errno that has words, and says more. */
static inline int answered(int result)
{
    calls++;
    if (result < 0) {
        refusals++;
        /* -ENOTRECOVERABLE: something failed inside the library, which no call may bring about. */
        CHECK(result > -4096 && result != -ENOTRECOVERABLE && strlen(tm_strerror(result)) > 0);
        CHECK(strlen(tm_last_error()) > 0);
    }
    return result;
}
#endif
