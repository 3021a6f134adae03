/* All ranks send to one, without waiting for it: messages of all sizes, received by any source (posted before, or not),
 * each rank's in its order. Arguments: count (messages of each rank), bytes (the largest), window. */
#include "check.h"

struct head {
    int source, number, bytes;
};

static int bytes_of(int source, int number, int bytes_max) {
    uint64_t state = seed_of(source, 60, number);
    /* Mostly small ones. */
    int most = chance(&state) % 16 ? 512 : bytes_max;
    return (int)sizeof(struct head) + (int)(chance(&state) % (unsigned)(most + 1));
}

static void send_all(int count, int bytes_max, int window) {
    size_t room = sizeof(struct head) + bytes_max;
    unsigned char *areas = memory(window * room);
    MPI_Request *requests = memory(window * sizeof *requests);
    for (int i = 0; i < window; i++) requests[i] = MPI_REQUEST_NULL;
    for (int number = 0; number < count; number++) {
        int slot = number % window, bytes = bytes_of(rank, number, bytes_max);
        struct head head = {rank, number, bytes};
        unsigned char *area = areas + slot * room;
        MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
        memcpy(area, &head, sizeof head);
        fill(area + sizeof head, bytes - sizeof head, seed_of(rank, 61, number));
        MPI_Isend(area, bytes, MPI_BYTE, 0, rank % 3, MPI_COMM_WORLD, &requests[slot]);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    free(areas);
    free(requests);
}

static void check_one(const unsigned char *area, const MPI_Status *status, int *next, int bytes_max) {
    struct head head;
    memcpy(&head, area, sizeof head);
    int source = status->MPI_SOURCE;
    REQUIRE(source == head.source, "a message of rank %d came as one of rank %d", head.source, source);
    REQUIRE(head.number == next[source], "message %d of rank %d came, and %d should", head.number, source, next[source]);
    check_status(status, source, source % 3, bytes_of(source, head.number, bytes_max), "one of many");
    check_contents(area + sizeof head, head.bytes - sizeof head, seed_of(source, 61, head.number), "one of many");
    next[source]++;
}

static void receive_all(int count, int bytes_max, int window) {
    size_t room = sizeof(struct head) + bytes_max;
    int total = count * (ranks - 1), posted = 0;
    int *next = calloc(ranks, sizeof *next);
    unsigned char *areas = memory(window * room);
    MPI_Request *requests = memory(window * sizeof *requests);
    for (; posted < window && posted < total; posted++)
        MPI_Irecv(areas + posted * room, (int)room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[posted]);
    for (int done = 0; done < total; done++) {
        int slot = done % window;
        MPI_Status status;
        MPI_Wait(&requests[slot], &status);
        check_one(areas + slot * room, &status, next, bytes_max);
        if (posted < total) {
            MPI_Irecv(areas + slot * room, (int)room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &requests[slot]);
            posted++;
        }
    }
    free(next);
    free(areas);
    free(requests);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int count = (int)argument("count", 1000), bytes_max = (int)argument("bytes", 100000);
    int window = (int)argument("window", 32);
    /* One receive at a time; the same to a rank that looks only once messages wait; a window of posted receives. */
    for (int round = 0; round < 3; round++) {
        if (rank == 0) {
            if (round == 1) MPI_Recv(NULL, 0, MPI_BYTE, ranks - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            receive_all(count, bytes_max, round == 2 ? window : 1);
        } else {
            if (round == 1 && rank == ranks - 1) MPI_Send(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD);
            send_all(count, bytes_max, window);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return end();
}
