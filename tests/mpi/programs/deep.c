/* Long lists: many receives posted before anything comes, matched from the front, from the back and by chance; many
 * messages before any receive, likewise; then the pattern that hangs where a sender's messages are held back: many
 * unexpected messages and a barrier behind them. Arguments: count, bytes. */
#include "check.h"

enum { FRONT, BACK, CHANCE, ORDERS };

static const char *const order_names[ORDERS] = {"from the front", "from the back", "by chance"};

/* A permutation of 0..count. */
static int *order_of(int order, int count) {
    int *places = memory(count * sizeof *places);
    uint64_t state = 9;
    for (int i = 0; i < count; i++) places[i] = order == BACK ? count - 1 - i : i;
    for (int i = count - 1; order == CHANCE && i > 0; i--) {
        int other = (int)(chance(&state) % (unsigned)(i + 1)), place = places[i];
        places[i] = places[other];
        places[other] = place;
    }
    return places;
}

/* Each receive has its own tag. Rank 1 sends in the order. */
static void posted(int count, int bytes, int order, int source) {
    int *places = order_of(order, count);
    unsigned char *areas = memory((size_t)count * bytes);
    MPI_Request *requests = memory(count * sizeof *requests);
    char what[100];
    snprintf(what, sizeof what, "%d posted receives, matched %s", count, order_names[order]);
    if (rank == 0) {
        for (int i = 0; i < count; i++)
            MPI_Irecv(areas + (size_t)i * bytes, bytes, MPI_BYTE, source, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < count; i++) {
            int at = places[i];
            MPI_Status status;
            MPI_Wait(&requests[at], &status);
            check_status(&status, 1, at, bytes, what);
            check_contents(areas + (size_t)at * bytes, bytes, seed_of(1, at, order), what);
        }
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; rank == 1 && i < count; i++) {
            fill(areas, bytes, seed_of(1, places[i], order));
            MPI_Send(areas, bytes, MPI_BYTE, 0, places[i], MPI_COMM_WORLD);
        }
    }
    free(places);
    free(areas);
    free(requests);
}

/* Rank 1 sends all, then both meet, then they are received in the order. */
static void unexpected(int count, int bytes, int order, int source) {
    int *places = order_of(order, count);
    unsigned char *area = memory((size_t)count * bytes);
    MPI_Request *requests = memory(count * sizeof *requests);
    char what[100];
    snprintf(what, sizeof what, "%d unexpected messages, received %s", count, order_names[order]);
    for (int i = 0; rank == 1 && i < count; i++) {
        fill(area + (size_t)i * bytes, bytes, seed_of(1, i, order));
        MPI_Isend(area + (size_t)i * bytes, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < count; i++) {
        MPI_Status status;
        MPI_Recv(area, bytes, MPI_BYTE, source, places[i], MPI_COMM_WORLD, &status);
        check_status(&status, 1, places[i], bytes, what);
        check_contents(area, bytes, seed_of(1, places[i], order), what);
    }
    if (rank == 1) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(places);
    free(area);
    free(requests);
}

/* All the same tag: strictly in order, from the list of any tag and any source. */
static void same_tag(int count) {
    int *values = memory(count * sizeof *values);
    MPI_Request *requests = memory(count * sizeof *requests);
    if (rank == 0) {
        for (int i = 0; i < count; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1, i % 3 ? MPI_ANY_TAG : 5, MPI_COMM_WORLD,
                      &requests[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++) REQUIRE(values[i] == i, "receive %d of many alike got message %d", i, values[i]);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; rank == 1 && i < count; i++) MPI_Send(&i, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(values);
    free(requests);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int count = (int)argument("count", 10000), bytes = (int)argument("bytes", 16);
    for (int order = 0; order < ORDERS; order++) {
        posted(count, bytes, order, order == CHANCE ? MPI_ANY_SOURCE : 1);
        unexpected(count, bytes, order, order == BACK ? MPI_ANY_SOURCE : 1);
    }
    same_tag(count);
    return end();
}
