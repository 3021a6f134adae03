/* Any source and any tag, in every combination, with the status naming what came; and no message of one communicator
 * in a receive of another. Arguments: count (messages from each rank). */
#include "check.h"

enum { TAGS = 5 };

struct message {
    int source, tag, number;
};

/* What one rank sends to rank 0: tags by chance. */
static int tag_of(int source, int number) {
    uint64_t state = seed_of(source, 3, number);
    return (int)(chance(&state) % TAGS);
}

static void send_all(int count, MPI_Comm comm) {
    for (int number = 0; number < count; number++) {
        struct message message = {rank, tag_of(rank, number), number};
        MPI_Send(&message, sizeof message, MPI_BYTE, 0, message.tag, comm);
    }
}

/* One message of a known source and a known tag after the other must be the next of these. */
static void check_next(const struct message *message, const MPI_Status *status, int *next, const char *what) {
    int *expected = &next[message->source * TAGS + message->tag];
    check_status(status, message->source, message->tag, sizeof *message, what);
    while (tag_of(message->source, *expected) != message->tag) ++*expected;
    REQUIRE(message->number == *expected, "%s: message %d of rank %d with tag %d came, and %d should", what,
            message->number, message->source, message->tag, *expected);
    ++*expected;
}

static void receive_one(int source, int tag, int *next, MPI_Comm comm, const char *what) {
    struct message message = {-1, -1, -1};
    MPI_Status status;
    MPI_Recv(&message, sizeof message, MPI_BYTE, source, tag, comm, &status);
    REQUIRE(source == MPI_ANY_SOURCE || message.source == source, "%s: from rank %d", what, message.source);
    REQUIRE(tag == MPI_ANY_TAG || message.tag == tag, "%s: with tag %d", what, message.tag);
    check_next(&message, &status, next, what);
}

/* Receive all of them with one kind of receive, posted one at a time. */
static void kind(int count, int any_source, int any_tag, MPI_Comm comm, const char *what) {
    int *next = calloc((size_t)ranks * TAGS, sizeof *next);
    if (any_source && any_tag)
        for (int i = 0; i < count * (ranks - 1); i++) receive_one(MPI_ANY_SOURCE, MPI_ANY_TAG, next, comm, what);
    else if (any_source)
        for (int tag = TAGS - 1; tag >= 0; tag--)
            for (int source = 1; source < ranks; source++)
                for (int i = 0; i < count; i++)
                    if (tag_of(source, i) == tag) receive_one(MPI_ANY_SOURCE, tag, next, comm, what);
    if (!any_source)
        for (int source = ranks - 1; source >= 1; source--) {
            if (any_tag)
                for (int i = 0; i < count; i++) receive_one(source, MPI_ANY_TAG, next, comm, what);
            else
                for (int tag = TAGS - 1; tag >= 0; tag--)
                    for (int i = 0; i < count; i++)
                        if (tag_of(source, i) == tag) receive_one(source, tag, next, comm, what);
        }
    free(next);
}

/* The same with all receives posted before anything is sent. */
static void posted(int count, int any_tag, MPI_Comm comm, const char *what) {
    int total = count * (ranks - 1), posted = 0;
    int *next = calloc((size_t)ranks * TAGS, sizeof *next);
    struct message *messages = memory(total * sizeof *messages);
    MPI_Request *requests = memory(total * sizeof *requests);
    for (int tag = 0; tag < (any_tag ? 1 : TAGS); tag++)
        for (int source = 1; source < ranks; source++)
            for (int i = 0; i < count; i++)
                if (any_tag || tag_of(source, i) == tag) {
                    MPI_Irecv(&messages[posted], sizeof *messages, MPI_BYTE, MPI_ANY_SOURCE, any_tag ? MPI_ANY_TAG : tag,
                              comm, &requests[posted]);
                    posted++;
                }
    MPI_Barrier(comm);
    /* In the order of posting, which is the order of matching. */
    for (int i = 0; i < total; i++) {
        MPI_Status status;
        MPI_Wait(&requests[i], &status);
        check_next(&messages[i], &status, next, what);
    }
    free(next);
    free(messages);
    free(requests);
}

/* A receive of a communicator that nobody sends in stays unmatched by anything sent in another. */
static void apart(MPI_Comm quiet) {
    int never = -1, flag, value = rank;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        MPI_Irecv(&never, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, quiet, &request);
        for (int i = 1; i < ranks; i++) MPI_Recv(&value, 1, MPI_INT, i, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Test(&request, &flag, &status);
        REQUIRE(!flag && never == -1, "a receive took a message of another communicator");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        check_status(&status, 1, 3, sizeof never, "the receive of a quiet communicator");
        REQUIRE(never == 77, "the receive of a quiet communicator has %d", never);
    } else {
        MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        value = 77;
        if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 3, quiet);
    }
}

int main(int argc, char **argv) {
    static const char *const names[] = {"this source, this tag", "this source, any tag", "any source, this tag",
                                        "any source, any tag"};
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int count = (int)argument("count", 50);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int round = 0; round < 8; round++) {
        MPI_Comm comm = round % 2 ? other : MPI_COMM_WORLD;
        if (rank != 0) send_all(count, comm);
        else kind(count, round / 4, round / 2 % 2, comm, names[round / 2]);
        MPI_Barrier(comm);
    }
    for (int any_tag = 0; any_tag < 2; any_tag++) {
        if (rank != 0) {
            MPI_Barrier(other);
            send_all(count, other);
        } else {
            posted(count, any_tag, other, any_tag ? "posted, any source, any tag" : "posted, any source, this tag");
        }
        MPI_Barrier(other);
    }
    apart(other);
    MPI_Comm_free(&other);
    return end();
}
