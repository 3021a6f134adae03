/* Probes of all four kinds: they tell source, tag and size of the message that a receive would get, leave it where it
 * is (probe, iprobe) or take it out of everyone's sight (mprobe, improbe) until its own receive.
 * Arguments: bytes (the largest message), count, synchronous (1: messages that are taken out may be sent
 * synchronously). */
#include "check.h"

static MPI_Comm world;
static int may_be_synchronous;

/* Wait for a message to be seen, by a probe that may say no. */
static void iprobe_until(int source, int tag, MPI_Status *status) {
    int flag = 0;
    while (!flag) MPI_Iprobe(source, tag, world, &flag, status);
}

static void improbe_until(int source, int tag, MPI_Message *message, MPI_Status *status) {
    int flag = 0;
    while (!flag) MPI_Improbe(source, tag, world, &flag, message, status);
}

/* All combinations of wildcards, kinds of probe and sizes. */
static void sizes(int bytes_max) {
    const int sizes[] = {0, 1, 63, 4096, 20000, 70000, bytes_max};
    for (int kind = 0; kind < 4; kind++)
        for (int wild = 0; wild < 4; wild++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                int bytes = sizes[i], tag = 10 + (int)i, number = kind * 4 + wild;
                if (bytes > bytes_max) continue;
                unsigned char *area = memory(bytes);
                if (rank == 1) {
                    fill(area, bytes, seed_of(1, tag, number));
                    if (number % 2 && (kind < 2 || may_be_synchronous)) MPI_Ssend(area, bytes, MPI_BYTE, 0, tag, world);
                    else MPI_Send(area, bytes, MPI_BYTE, 0, tag, world);
                } else if (rank == 0) {
                    int source = wild & 1 ? MPI_ANY_SOURCE : 1, wanted = wild & 2 ? MPI_ANY_TAG : tag;
                    MPI_Status seen, status;
                    MPI_Message message = MPI_MESSAGE_NULL;
                    MPI_Request request;
                    if (kind == 0) MPI_Probe(source, wanted, world, &seen);
                    if (kind == 1) iprobe_until(source, wanted, &seen);
                    if (kind == 2) MPI_Mprobe(source, wanted, world, &message, &seen);
                    if (kind == 3) improbe_until(source, wanted, &message, &seen);
                    check_status(&seen, 1, tag, bytes, "a probe");
                    memset(area, 0xEE, bytes);
                    if (kind < 2) {
                        MPI_Recv(area, bytes, MPI_BYTE, seen.MPI_SOURCE, seen.MPI_TAG, world, &status);
                    } else if (number % 2) {
                        MPI_Mrecv(area, bytes, MPI_BYTE, &message, &status);
                    } else {
                        MPI_Imrecv(area, bytes, MPI_BYTE, &message, &request);
                        MPI_Wait(&request, &status);
                    }
                    REQUIRE(message == MPI_MESSAGE_NULL, "a received message is not null");
                    check_status(&status, 1, tag, bytes, "the receive after a probe");
                    check_contents(area, bytes, seed_of(1, tag, number), "the receive after a probe");
                }
                free(area);
            }
}

/* A probe says no where nothing fits, though other things wait. */
static void says_no(void) {
    int value = rank, flag = 1;
    MPI_Message message;
    if (rank == 1) {
        MPI_Send(&value, 1, MPI_INT, 0, 31, world);
        MPI_Send(&value, 1, MPI_INT, 0, 32, world);
    } else if (rank == 0) {
        MPI_Probe(1, 32, world, MPI_STATUS_IGNORE);
        MPI_Iprobe(1, 33, world, &flag, MPI_STATUS_IGNORE);
        REQUIRE(!flag, "a probe saw a tag that nobody sent");
        MPI_Iprobe(0, 31, world, &flag, MPI_STATUS_IGNORE);
        REQUIRE(!flag, "a probe saw a message of a rank that sent none");
        MPI_Improbe(1, 33, world, &flag, &message, MPI_STATUS_IGNORE);
        REQUIRE(!flag, "a matching probe saw a tag that nobody sent");
        MPI_Recv(&value, 1, MPI_INT, 1, 31, world, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 32, world, MPI_STATUS_IGNORE);
    }
}

/* Messages taken out of the middle: others are received around them, in their order. */
static void out_of_sight(int count) {
    int tag = 40;
    MPI_Message *taken = memory(count * sizeof *taken);
    for (int number = 0; rank == 1 && number < count; number++) MPI_Send(&number, 1, MPI_INT, 0, tag, world);
    if (rank == 0) {
        MPI_Status status;
        for (int number = 0; number < count; number++) {
            int value = -1;
            if (number % 3 == 1) {
                MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, world, &status);
                REQUIRE(value == number, "after messages were taken out, %d came and not %d", value, number);
            } else {
                MPI_Mprobe(number % 2 ? 1 : MPI_ANY_SOURCE, tag, world, &taken[number], &status);
            }
        }
        /* Last taken, first received. */
        for (int number = count - 1; number >= 0; number--) {
            int value = -1;
            if (number % 3 == 1) continue;
            MPI_Mrecv(&value, 1, MPI_INT, &taken[number], &status);
            REQUIRE(value == number, "the message that was taken out as number %d is %d", number, value);
            check_status(&status, 1, tag, sizeof value, "a message taken out");
        }
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &flag, &status);
        REQUIRE(!flag, "something is left over");
    }
    free(taken);
}

/* Ranks that are no rank. */
static void nobody(void) {
    MPI_Message message;
    MPI_Status status;
    int flag = 0;
    MPI_Probe(MPI_PROC_NULL, 5, world, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "a probe of nobody");
    MPI_Improbe(MPI_PROC_NULL, 5, world, &flag, &message, &status);
    REQUIRE(flag && message == MPI_MESSAGE_NO_PROC, "a matching probe of nobody has no message of nobody");
    MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "a receive from nobody");
}

/* What one has sent to oneself is seen as well. */
static void oneself(void) {
    int value = 5;
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;
    MPI_Isend(&value, 1, MPI_INT, rank, 50, world, &request);
    MPI_Probe(rank, 50, world, &status);
    check_status(&status, rank, 50, sizeof value, "a probe of oneself");
    MPI_Mprobe(MPI_ANY_SOURCE, 50, world, &message, &status);
    int got = 0;
    MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
    REQUIRE(got == 5, "from oneself came %d", got);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    may_be_synchronous = (int)argument("synchronous", 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    sizes((int)argument("bytes", 1 << 20));
    MPI_Barrier(world);
    says_no();
    MPI_Barrier(world);
    out_of_sight((int)argument("count", 100));
    MPI_Barrier(world);
    nobody();
    oneself();
    MPI_Comm_free(&world);
    return end();
}
