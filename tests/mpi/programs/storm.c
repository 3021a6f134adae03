/* Everyone to everyone at once, oneself too, sizes and tags by chance: each message arrives once and whole.
 * Arguments: count (from each rank to each), bytes (the largest), window, seed. */
#include "check.h"

enum { TAGS = 4 };

struct head {
    int source, number, tag, bytes;
};

static struct head head_of(int source, int to, int number, int bytes_max, uint64_t seed) {
    uint64_t state = seed_of(source, to, number) + seed;
    int most = chance(&state) % 20 ? 2000 : bytes_max;
    struct head head = {source, number, (int)(chance(&state) % TAGS), 0};
    head.bytes = (int)sizeof head + (int)(chance(&state) % (unsigned)(most + 1));
    return head;
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 1);
    int count = (int)argument("count", 300), bytes_max = (int)argument("bytes", 200000);
    int window = (int)argument("window", 16), total = count * ranks, posted = 0, sent = 0, done = 0;
    uint64_t seed = (uint64_t)argument("seed", 1);
    size_t room = sizeof(struct head) + bytes_max;
    unsigned char *out = memory(window * room), *in = memory(window * room);
    MPI_Request *requests = memory(2 * window * sizeof *requests);
    char *seen = calloc((size_t)ranks * count, 1);
    for (int i = 0; i < 2 * window; i++) requests[i] = MPI_REQUEST_NULL;
    /* The first half of the requests receives, the second sends. A receive of one source or tag might wait for what is
     * behind the window of its sender. */
    while (done < total || sent < total) {
        int index;
        MPI_Status status;
        for (int i = 0; i < window && posted < total; i++)
            if (requests[i] == MPI_REQUEST_NULL && posted - done < window) {
                MPI_Irecv(in + i * room, (int)room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
                posted++;
            }
        for (int i = 0; i < window && sent < total; i++)
            if (requests[window + i] == MPI_REQUEST_NULL) {
                int to = (rank + sent) % ranks;
                struct head head = head_of(rank, to, sent / ranks, bytes_max, seed);
                unsigned char *area = out + i * room;
                memcpy(area, &head, sizeof head);
                fill(area + sizeof head, head.bytes - sizeof head, seed_of(rank, to, head.number));
                MPI_Isend(area, head.bytes, MPI_BYTE, to, head.tag, MPI_COMM_WORLD, &requests[window + i]);
                sent++;
            }
        MPI_Waitany(2 * window, requests, &index, &status);
        if (index == MPI_UNDEFINED || index >= window) continue;
        struct head head, right;
        memcpy(&head, in + index * room, sizeof head);
        REQUIRE(head.source == status.MPI_SOURCE, "a message of rank %d came as one of rank %d", head.source,
                status.MPI_SOURCE);
        right = head_of(head.source, rank, head.number, bytes_max, seed);
        check_status(&status, right.source, right.tag, right.bytes, "a message of the storm");
        check_contents(in + index * room + sizeof head, right.bytes - sizeof head,
                       seed_of(head.source, rank, head.number), "a message of the storm");
        REQUIRE(head.number >= 0 && head.number < count, "message %d of rank %d", head.number, head.source);
        REQUIRE(!seen[head.source * count + head.number]++, "message %d of rank %d came twice", head.number, head.source);
        done++;
    }
    MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
    free(out);
    free(in);
    free(requests);
    free(seen);
    return end();
}
