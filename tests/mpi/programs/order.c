/* Receives of any source and of one, of any tag and of one, mixed by chance: each message goes to the receive that was
 * posted first among those that fit, and each receive takes the message that was sent first among those that fit.
 * Arguments: rounds, receives (of one round), seed, bytes (of each message). */
#include "check.h"

enum { TAGS = 3, ORDER = 11, DONE = 12 };

struct receive {
    int source, tag;
    /* The message it must get: its number, or -1. */
    int message;
};

struct message {
    int source, tag;
};

static int fits(const struct receive *receive, const struct message *message) {
    return (receive->source == MPI_ANY_SOURCE || receive->source == message->source) &&
           (receive->tag == MPI_ANY_TAG || receive->tag == message->tag);
}

static struct receive receive_by(uint64_t *state) {
    struct receive receive = {1 + (int)(chance(state) % (ranks - 1)), 100 + (int)(chance(state) % TAGS), -1};
    uint64_t kind = chance(state) % 4;
    if (kind & 1) receive.source = MPI_ANY_SOURCE;
    if (kind & 2) receive.tag = MPI_ANY_TAG;
    return receive;
}

/* Receives first. The messages are sent one after the other and synchronously: one is matched before the next is sent,
 * so that who gets what is certain though they come from several ranks. The world as rank 0 sees it. */
static void receives_first(int count, int bytes, uint64_t *state, MPI_Comm control) {
    struct receive *receives = memory(count * sizeof *receives);
    MPI_Request *requests = memory(count * sizeof *requests);
    unsigned char *areas = memory((size_t)count * bytes);
    for (int i = 0; i < count; i++) {
        receives[i] = receive_by(state);
        MPI_Irecv(areas + (size_t)i * bytes, bytes, MPI_BYTE, receives[i].source, receives[i].tag, MPI_COMM_WORLD,
                  &requests[i]);
    }
    for (int number = 0; number < count; number++) {
        struct message message;
        int first = 0, other;
        /* A message that some receive fits. */
        do {
            message = (struct message){1 + (int)(chance(state) % (ranks - 1)), 100 + (int)(chance(state) % TAGS)};
            for (first = 0; first < count; first++)
                if (receives[first].message < 0 && fits(&receives[first], &message)) break;
            for (other = 0; other < count && receives[other].message >= 0; other++) {}
            if (first == count && receives[other].source != MPI_ANY_SOURCE) message.source = receives[other].source;
            if (first == count && receives[other].tag != MPI_ANY_TAG) message.tag = receives[other].tag;
            for (first = 0; first < count; first++)
                if (receives[first].message < 0 && fits(&receives[first], &message)) break;
        } while (first == count);
        receives[first].message = number;
        int command[3] = {ORDER, message.tag, number};
        MPI_Send(command, 3, MPI_INT, message.source, 0, control);
        MPI_Recv(command, 1, MPI_INT, message.source, 0, control, MPI_STATUS_IGNORE);
        MPI_Status status;
        MPI_Wait(&requests[first], &status);
        char what[120];
        snprintf(what, sizeof what, "receive %d of %d (source %d, tag %d), message %d", first, count,
                 receives[first].source, receives[first].tag, number);
        check_status(&status, message.source, message.tag, bytes, what);
        check_contents(areas + (size_t)first * bytes, bytes, seed_of(message.source, message.tag, number), what);
    }
    free(receives);
    free(requests);
    free(areas);
}

/* Messages first, from all ranks at once; then receives, one at a time. Which rank's message an any-source receive gets
 * is open, but it must be the first of that rank that fits. */
static void messages_first(int count, int bytes, uint64_t *state, MPI_Comm control) {
    struct message *messages = memory((size_t)count * ranks * sizeof *messages);
    char *taken = calloc((size_t)count * ranks, 1);
    unsigned char *area = memory(bytes);
    for (int source = 1; source < ranks; source++) {
        for (int number = 0; number < count; number++) {
            struct message message = {source, 100 + (int)(chance(state) % TAGS)};
            int command[3] = {ORDER + 10, message.tag, number};
            messages[source * count + number] = message;
            MPI_Send(command, 3, MPI_INT, source, 0, control);
        }
        int command[3] = {DONE + 10, 0, 0};
        MPI_Send(command, 3, MPI_INT, source, 0, control);
    }
    for (int left = count * (ranks - 1); left > 0; left--) {
        struct receive receive;
        int any = 0;
        do {
            receive = receive_by(state);
            for (int i = count; i < count * ranks && !any; i++) any = !taken[i] && fits(&receive, &messages[i]);
        } while (!any);
        MPI_Status status;
        MPI_Recv(area, bytes, MPI_BYTE, receive.source, receive.tag, MPI_COMM_WORLD, &status);
        int source = status.MPI_SOURCE, first = 0;
        REQUIRE(source >= 1 && source < ranks, "unexpected messages: the source is %d", source);
        for (first = 0; first < count; first++)
            if (!taken[source * count + first] && fits(&receive, &messages[source * count + first])) break;
        REQUIRE(first < count, "a receive took a message of rank %d that does not fit", source);
        taken[source * count + first] = 1;
        char what[120];
        snprintf(what, sizeof what, "unexpected message %d of rank %d (receive: source %d, tag %d)", first, source,
                 receive.source, receive.tag);
        check_status(&status, source, messages[source * count + first].tag, bytes, what);
        check_contents(area, bytes, seed_of(source, status.MPI_TAG, first), what);
    }
    free(messages);
    free(taken);
    free(area);
}

/* A sender does what rank 0 says. */
static void obey(int bytes, int count, MPI_Comm control) {
    unsigned char *areas = memory((size_t)count * bytes);
    MPI_Request *requests = memory(count * sizeof *requests);
    int pending = 0;
    for (;;) {
        int command[3];
        MPI_Recv(command, 3, MPI_INT, 0, 0, control, MPI_STATUS_IGNORE);
        if (command[0] == DONE) break;
        if (command[0] == DONE + 10) {
            MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
            pending = 0;
            continue;
        }
        unsigned char *area = areas + (size_t)pending * bytes;
        fill(area, bytes, seed_of(rank, command[1], command[2]));
        if (command[0] == ORDER) {
            MPI_Ssend(area, bytes, MPI_BYTE, 0, command[1], MPI_COMM_WORLD);
            MPI_Send(command, 1, MPI_INT, 0, 0, control);
        } else {
            MPI_Isend(area, bytes, MPI_BYTE, 0, command[1], MPI_COMM_WORLD, &requests[pending++]);
        }
    }
    free(areas);
    free(requests);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int rounds = (int)argument("rounds", 20), count = (int)argument("receives", 40);
    int bytes = (int)argument("bytes", 24);
    uint64_t state = (uint64_t)argument("seed", 1);
    MPI_Comm control;
    MPI_Comm_dup(MPI_COMM_WORLD, &control);
    if (rank == 0) {
        for (int round = 0; round < rounds; round++) {
            receives_first(count, bytes, &state, control);
            messages_first(count, bytes, &state, control);
        }
        for (int i = 1; i < ranks; i++) MPI_Send((int[3]){DONE, 0, 0}, 3, MPI_INT, i, 0, control);
    } else {
        obey(bytes, count, control);
    }
    MPI_Comm_free(&control);
    return end();
}
