/* Messages of 0 bytes to the largest, around every power of two: expected and unexpected, one way and both ways at once,
 * contents checked. Arguments: bytes (the largest), all (bytes up to which every power of two and its neighbours are
 * sent; above it every fourth). */
#include "check.h"

static void one(int bytes, int number, int is_expected) {
    unsigned char *out = memory(bytes), *in = memory(bytes);
    int peer = rank ^ 1, value = 0;
    char what[80];
    snprintf(what, sizeof what, "%d bytes (%s)", bytes, is_expected ? "expected" : "unexpected");
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    fill(out, bytes, seed_of(rank, 1, number));
    memset(in, 0xEE, bytes);
    if (is_expected) {
        MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Sendrecv(&value, 1, MPI_INT, peer, 2, &value, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
    } else {
        MPI_Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Sendrecv(&value, 1, MPI_INT, peer, 2, &value, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    }
    MPI_Waitall(2, requests, statuses);
    check_status(&statuses[0], peer, 1, bytes, what);
    check_contents(in, bytes, seed_of(peer, 1, number), what);
    free(out);
    free(in);
}

/* There and back, blocking. */
static void back_and_forth(int bytes, int number) {
    unsigned char *area = memory(bytes);
    int peer = rank ^ 1;
    MPI_Status status;
    if (rank % 2 == 0) {
        fill(area, bytes, seed_of(rank, 3, number));
        MPI_Send(area, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
        memset(area, 0xEE, bytes);
        MPI_Recv(area, bytes, MPI_BYTE, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status);
        check_status(&status, peer, 4, bytes, "there and back");
        check_contents(area, bytes, seed_of(rank, 3, number), "there and back");
    } else {
        MPI_Recv(area, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &status);
        check_status(&status, peer, 3, bytes, "there");
        MPI_Send(area, bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
    }
    free(area);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    if (ranks % 2) wrong("an even number of ranks is needed");
    long bytes_max = argument("bytes", 1 << 22), all = argument("all", 1 << 18);
    int number = 0;
    for (int power = -1; power < 31; power++)
        for (int off = -1; off <= 1; off++) {
            long bytes = power < 0 ? 0 : (1L << power) + off;
            if (bytes > bytes_max || (power < 0 && off) || bytes < 0) continue;
            if (bytes > all && (power % 2 || off) && bytes != bytes_max) continue;
            number++;
            one((int)bytes, number, 1);
            one((int)bytes, number, 0);
            back_and_forth((int)bytes, number);
        }
    return end();
}
