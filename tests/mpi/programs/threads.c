/* MPI_THREAD_MULTIPLE: several threads of each rank at once, each with its own tag, each with its own communicator, and
 * all on one tag; blocking and nonblocking, with probes. Arguments: threads, count, bytes (the largest). */
#include "check.h"
#include <pthread.h>

struct work {
    pthread_t thread;
    int index;
    MPI_Comm own;
    unsigned long checks;
};

static int threads, count, bytes_max;
static pthread_barrier_t barrier;

/* As REQUIRE, without the common counter. */
#define SURE(fact, ...)                                                                                                \
    do {                                                                                                               \
        work->checks++;                                                                                                \
        if (!(fact)) wrong(__VA_ARGS__);                                                                               \
    } while (0)

static int bytes_of(int number) {
    uint64_t state = (uint64_t)number;
    return number % 10 == 9 ? bytes_max : (int)(chance(&state) % 2000);
}

static void compare(struct work *work, const unsigned char *area, const MPI_Status *status, int from, int tag, int number) {
    int bytes = -1;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    SURE(status->MPI_SOURCE == from && status->MPI_TAG == tag, "thread %d: source %d, tag %d", work->index,
         status->MPI_SOURCE, status->MPI_TAG);
    SURE(bytes == bytes_of(number), "thread %d: %d bytes and not %d", work->index, bytes, bytes_of(number));
    long place = first_wrong(area, bytes, seed_of(from, tag, number));
    SURE(place < 0, "thread %d: byte %ld of message %d is wrong", work->index, place, number);
}

/* A ring of equal threads, with this tag in this communicator. */
static void ring(struct work *work, MPI_Comm comm, int tag) {
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    unsigned char *out = memory(bytes_max), *in = memory(bytes_max);
    for (int number = 0; number < count; number++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        int bytes = bytes_of(number);
        fill(out, bytes, seed_of(rank, tag, number));
        if (number % 3 == 0) {
            MPI_Irecv(in, bytes_max, MPI_BYTE, from, tag, comm, &requests[0]);
            MPI_Isend(out, bytes, MPI_BYTE, to, tag, comm, &requests[1]);
            MPI_Waitall(2, requests, statuses);
        } else if (number % 3 == 1) {
            MPI_Sendrecv(out, bytes, MPI_BYTE, to, tag, in, bytes_max, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, &statuses[0]);
        } else {
            MPI_Message message;
            MPI_Isend(out, bytes, MPI_BYTE, to, tag, comm, &requests[1]);
            MPI_Mprobe(from, tag, comm, &message, &statuses[0]);
            MPI_Mrecv(in, bytes_max, MPI_BYTE, &message, &statuses[0]);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        }
        compare(work, in, &statuses[0], from, tag, number);
    }
    free(out);
    free(in);
}

/* All threads send to and receive from one tag: every number comes exactly once, whichever thread gets it. */
static unsigned char *seen;

static void common(struct work *work) {
    int to = (rank + 1) % ranks, tag = 500;
    for (int number = 0; number < count; number++) {
        int out = work->index * count + number, in = -1;
        MPI_Request request;
        MPI_Isend(&out, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request);
        MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        SURE(in >= 0 && in < threads * count, "thread %d: the number %d", work->index, in);
        SURE(!__atomic_exchange_n(&seen[in], 1, __ATOMIC_SEQ_CST), "thread %d: %d came twice", work->index, in);
    }
}

static void *run(void *argument) {
    struct work *work = argument;
    pthread_barrier_wait(&barrier);
    ring(work, MPI_COMM_WORLD, 100 + work->index);
    pthread_barrier_wait(&barrier);
    ring(work, work->own, 7);
    for (int round = 0; round < 20; round++) {
        int sum = 0, value = rank + work->index;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, work->own);
        SURE(sum == ranks * (ranks - 1) / 2 + ranks * work->index, "thread %d: allreduce is %d", work->index, sum);
    }
    pthread_barrier_wait(&barrier);
    common(work);
    return NULL;
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE, 2);
    threads = (int)argument("threads", 4);
    count = (int)argument("count", 200);
    bytes_max = (int)argument("bytes", 100000);
    seen = calloc((size_t)threads * count, 1);
    struct work *works = calloc(threads, sizeof *works);
    pthread_barrier_init(&barrier, NULL, threads);
    for (int i = 0; i < threads; i++) MPI_Comm_dup(MPI_COMM_WORLD, &works[i].own);
    for (int i = 0; i < threads; i++) {
        works[i].index = i;
        if (pthread_create(&works[i].thread, NULL, run, &works[i])) wrong("a thread cannot be started");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(works[i].thread, NULL);
        checks += works[i].checks;
        MPI_Comm_free(&works[i].own);
    }
    for (int i = 0; i < threads * count; i++) REQUIRE(seen[i], "the number %d never came", i);
    free(works);
    free(seen);
    return end();
}
