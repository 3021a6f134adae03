/* Data that does not lie in one piece: vectors, indexed blocks and structures, on either side or on both.
 * Arguments: count (blocks). */
#include "check.h"
#include <stddef.h>

struct pair {
    char letter;
    double number;
};

/* Every second block of three numbers of one side; all of the other. */
static void vectors(int count, int is_expected) {
    int *whole = memory(sizeof(int) * 6 * count), *packed = memory(sizeof(int) * 3 * count);
    int peer = rank ^ 1;
    MPI_Datatype blocks;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Type_vector(count, 3, 6, MPI_INT, &blocks);
    MPI_Type_commit(&blocks);
    for (int i = 0; i < 6 * count; i++) whole[i] = rank * 1000000 + i;
    memset(packed, 0xEE, sizeof(int) * 3 * count);
    if (is_expected) MPI_Irecv(packed, 3 * count, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(whole, 1, blocks, peer, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_expected) MPI_Irecv(packed, 3 * count, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Waitall(2, requests, statuses);
    for (int i = 0; i < 3 * count; i++) {
        int right = peer * 1000000 + i / 3 * 6 + i % 3;
        REQUIRE(packed[i] == right, "number %d of a vector is %d and not %d", i, packed[i], right);
    }
    /* And back into blocks: what is between them stays. */
    memset(whole, 0xEE, sizeof(int) * 6 * count);
    if (is_expected) MPI_Irecv(whole, 1, blocks, peer, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(packed, 3 * count, MPI_INT, peer, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_expected) MPI_Irecv(whole, 1, blocks, peer, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Waitall(2, requests, statuses);
    for (int i = 0; i < 6 * count; i++) {
        int right = i % 6 < 3 ? rank * 1000000 + i : (int)0xEEEEEEEEu;
        REQUIRE(whole[i] == right, "place %d of the blocks is %d and not %d", i, whole[i], right);
    }
    MPI_Type_free(&blocks);
    free(whole);
    free(packed);
}

static void structures(int count) {
    int peer = rank ^ 1;
    struct pair *out = memory(count * sizeof *out), *in = memory(count * sizeof *in);
    MPI_Datatype fields, type, of[2] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Aint places[2] = {offsetof(struct pair, letter), offsetof(struct pair, number)};
    MPI_Type_create_struct(2, (int[2]){1, 1}, places, of, &fields);
    MPI_Type_create_resized(fields, 0, sizeof(struct pair), &type);
    MPI_Type_commit(&type);
    memset(in, 0xEE, count * sizeof *in);
    for (int i = 0; i < count; i++) out[i] = (struct pair){(char)(i % 100), rank + i * 0.5};
    MPI_Sendrecv(out, count, type, peer, 3, in, count, type, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        REQUIRE(in[i].letter == (char)(i % 100), "letter %d is %d", i, in[i].letter);
        REQUIRE(in[i].number == peer + i * 0.5, "number %d is %g", i, in[i].number);
        REQUIRE(((unsigned char *)&in[i])[1] == 0xEE, "what is between the fields of structure %d was written", i);
    }
    MPI_Type_free(&fields);
    MPI_Type_free(&type);
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    if (ranks % 2) wrong("an even number of ranks is needed");
    int count = (int)argument("count", 20000);
    for (int blocks = 1; blocks <= count; blocks *= 10)
        for (int expected = 0; expected < 2; expected++) vectors(blocks, expected);
    structures(1);
    structures(count);
    return end();
}
