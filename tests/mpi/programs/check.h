/* What all programs here share: arguments, contents that can be checked, and one line on the first wrong thing.
 *
 * Every program is run by mpirun, takes its sizes as name=value, checks all that it receives, and ends with zero only
 * if all of it was right. Rank 0 then says how much was checked. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program = "?";
static int rank, ranks;
static int argument_count;
static char **arguments;
/* Of this rank; programs with threads add under a lock of theirs. */
static unsigned long checks;

/* The first wrong thing: say it in one line, and end all ranks. */
static inline void wrong(const char *format, ...) {
    char line[400];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(stderr, "%s: rank %d: %s\n", program, rank, line);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _Exit(1);
}

/* A fact that must hold. */
#define REQUIRE(fact, ...)                                                                                             \
    do {                                                                                                               \
        checks++;                                                                                                      \
        if (!(fact)) wrong(__VA_ARGS__);                                                                               \
    } while (0)

/* The value of name=value among the arguments. */
static inline long argument(const char *name, long otherwise) {
    size_t length = strlen(name);
    for (int i = 1; i < argument_count; i++)
        if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=')
            return strtol(arguments[i] + length + 1, NULL, 0);
    return otherwise;
}

/* Start MPI with a level of threads and at least so many ranks. */
static inline void begin(int argc, char **argv, int level, int ranks_min) {
    int provided;
    argument_count = argc;
    arguments = argv;
    const char *slash = strrchr(argv[0], '/');
    program = slash ? slash + 1 : argv[0];
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < ranks_min) wrong("%d ranks are needed, there are %d", ranks_min, ranks);
    if (provided < level) wrong("the level of threads is %d, and %d is needed", provided, level);
}

/* End MPI; rank 0 says that all was right. */
static inline int end(void) {
    unsigned long sum = 0;
    MPI_Reduce(&checks, &sum, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s: %d ranks, %lu checks, all right\n", program, ranks, sum);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

static inline void *memory(size_t bytes) {
    void *area = malloc(bytes ? bytes : 1);
    if (!area) wrong("there are no %zu bytes of memory", bytes);
    return area;
}

/* Chance that is the same in every run. */
static inline uint64_t chance(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The seed of the contents of one message. */
static inline uint64_t seed_of(int source, int tag, int number) {
    uint64_t state = ((uint64_t)source << 48) ^ ((uint64_t)(uint32_t)tag << 20) ^ (uint64_t)(uint32_t)number;
    return chance(&state);
}

static inline uint64_t word_at(uint64_t seed, size_t place) {
    return (seed + place) * 0x9E3779B97F4A7C15u ^ seed >> 7;
}

/* Contents that differ by seed and place. */
static inline void fill(void *area, size_t bytes, uint64_t seed) {
    unsigned char *to = area;
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t word = word_at(seed, i);
        memcpy(to + i, &word, 8);
    }
    uint64_t last = word_at(seed, i);
    memcpy(to + i, &last, bytes - i);
}

/* Whether the contents are those of the seed: the place of the first wrong byte, or -1. */
static inline long first_wrong(const void *area, size_t bytes, uint64_t seed) {
    const unsigned char *from = area;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = word_at(seed, i);
        size_t count = bytes - i < 8 ? bytes - i : 8;
        if (memcmp(from + i, &word, count) != 0)
            for (size_t k = 0; k < count; k++)
                if (from[i + k] != ((unsigned char *)&word)[k]) return (long)(i + k);
    }
    return -1;
}

/* The contents must be those of the seed. */
static inline void check_contents(const void *area, size_t bytes, uint64_t seed, const char *what) {
    long place = first_wrong(area, bytes, seed);
    REQUIRE(place < 0, "%s: byte %ld of %zu is wrong", what, place, bytes);
}

/* The status must say this. */
static inline void check_status(const MPI_Status *status, int source, int tag, long bytes, const char *what) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    REQUIRE(status->MPI_SOURCE == source, "%s: the source is %d and not %d", what, status->MPI_SOURCE, source);
    REQUIRE(status->MPI_TAG == tag, "%s: the tag is %d and not %d", what, status->MPI_TAG, tag);
    REQUIRE(count == bytes, "%s: %d bytes and not %ld", what, count, bytes);
}

#endif
