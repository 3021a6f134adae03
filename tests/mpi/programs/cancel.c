/* Receives are cancelled: unmatched ones vanish and take nothing later, matched ones complete, and where both can
 * happen exactly one does. Arguments: count, rounds. */
#include "check.h"

enum { TAG = 20, GO = 21 };

static MPI_Comm world;

static int is_cancelled(MPI_Request *request, MPI_Status *status) {
    int flag;
    MPI_Cancel(request);
    MPI_Wait(request, status);
    MPI_Test_cancelled(status, &flag);
    return flag;
}

/* Every third receive of a long list is cancelled; the others get the messages in order. */
static void unmatched(int count) {
    int *values = memory(count * sizeof *values);
    MPI_Request *requests = memory(count * sizeof *requests);
    MPI_Status status;
    if (rank == 0) {
        for (int i = 0; i < count; i++) {
            values[i] = -1;
            MPI_Irecv(&values[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1, i % 5 ? TAG : MPI_ANY_TAG, world, &requests[i]);
        }
        for (int i = count - 1; i >= 0; i--)
            if (i % 3 == 0) REQUIRE(is_cancelled(&requests[i], &status), "unmatched receive %d was not cancelled", i);
        MPI_Send(&count, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
        int next = 0;
        for (int i = 0; i < count; i++) {
            if (i % 3 == 0) {
                REQUIRE(values[i] == -1, "cancelled receive %d was written to", i);
                continue;
            }
            MPI_Wait(&requests[i], &status);
            REQUIRE(values[i] == next, "receive %d got message %d and not %d", i, values[i], next);
            check_status(&status, 1, TAG, sizeof(int), "a receive beside cancelled ones");
            next++;
        }
        for (int i = 0; i < count; i++) REQUIRE(i % 3 || values[i] == -1, "cancelled receive %d was written to", i);
    } else if (rank == 1) {
        MPI_Recv(&count, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int next = 0;
        for (int i = 0; i < count; i++)
            if (i % 3) {
                MPI_Send(&next, 1, MPI_INT, 0, TAG, world);
                next++;
            }
    }
    free(values);
    free(requests);
}

/* A receive whose message was matched for certain (its synchronous send has ended) is not cancelled. */
static void matched(int bytes, int number) {
    unsigned char *area = memory(bytes);
    MPI_Request request;
    MPI_Status status;
    int value = 0;
    if (rank == 0) {
        MPI_Irecv(area, bytes, MPI_BYTE, number % 2 ? MPI_ANY_SOURCE : 1, TAG, world, &request);
        MPI_Send(&value, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        REQUIRE(!is_cancelled(&request, &status), "a matched receive of %d bytes was cancelled", bytes);
        check_status(&status, 1, TAG, bytes, "a matched receive");
        check_contents(area, bytes, seed_of(1, TAG, number), "a matched receive");
    } else if (rank == 1) {
        fill(area, bytes, seed_of(1, TAG, number));
        MPI_Recv(&value, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ssend(area, bytes, MPI_BYTE, 0, TAG, world);
        MPI_Send(&value, 1, MPI_INT, 0, GO, MPI_COMM_WORLD);
    }
    free(area);
}

/* The message is under way while the receive is cancelled: one of both gets it, and nothing is lost. */
static void racing(int bytes, int number) {
    unsigned char *area = memory(bytes);
    MPI_Request request;
    MPI_Status status;
    int value = 0;
    if (rank == 0) {
        memset(area, 0xEE, bytes);
        MPI_Irecv(area, bytes, MPI_BYTE, 1, TAG, world, &request);
        MPI_Send(&value, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
        int flag = 0;
        for (int i = 0; i < number % 50 && !flag; i++) MPI_Iprobe(1, TAG + 5, world, &flag, &status);
        if (is_cancelled(&request, &status)) {
            for (int i = 0; i < bytes; i++) REQUIRE(area[i] == 0xEE, "a cancelled receive was written to at %d", i);
            MPI_Recv(area, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, world, &status);
        }
        check_status(&status, 1, TAG, bytes, "a message that raced a cancel");
        check_contents(area, bytes, seed_of(1, TAG, number), "a message that raced a cancel");
    } else if (rank == 1) {
        fill(area, bytes, seed_of(1, TAG, number));
        MPI_Recv(&value, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(area, bytes, MPI_BYTE, 0, TAG, world);
    }
    free(area);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int rounds = (int)argument("rounds", 200);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    unmatched((int)argument("count", 500));
    const int sizes[] = {0, 8, 3000, 100000, 1 << 20};
    for (int round = 0; round < 10; round++) matched(sizes[round % 5], round);
    for (int round = 0; round < rounds; round++) racing(sizes[round % 4], round);
    MPI_Comm_free(&world);
    return end();
}
