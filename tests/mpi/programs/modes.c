/* Every way to send, to every rank and to oneself: standard, synchronous, buffered and ready; blocking, nonblocking
 * and persistent; to receives that are posted and to those that are not yet.
 * Arguments: bytes (the largest message), rounds, synchronous (0: synchronous sends are left out). */
#include "check.h"

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static const char *const mode_names[MODES] = {"standard", "synchronous", "buffered", "ready"};
static const char *const form_names[FORMS] = {"blocking", "nonblocking", "persistent"};

static void start_send(enum mode mode, enum form form, const void *area, int bytes, int to, int tag, MPI_Request *request) {
    MPI_Comm world = MPI_COMM_WORLD;
    static int (*const blocking[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = {
        MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
    static int (*const nonblocking[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    static int (*const persistent[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
    *request = MPI_REQUEST_NULL;
    if (form == BLOCKING) {
        blocking[mode](area, bytes, MPI_BYTE, to, tag, world);
    } else if (form == NONBLOCKING) {
        nonblocking[mode](area, bytes, MPI_BYTE, to, tag, world, request);
    } else {
        persistent[mode](area, bytes, MPI_BYTE, to, tag, world, request);
        MPI_Start(request);
    }
}

static void finish_send(enum form form, MPI_Request *request) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (form == PERSISTENT) MPI_Request_free(request);
}

/* One message from each rank to the one so many places further. */
static void exchange(enum mode mode, enum form form, int is_posted_first, int distance, int bytes, int number) {
    int to = (rank + distance) % ranks, from = (rank + ranks - distance) % ranks, tag = 100 + number % 1000;
    unsigned char *out = memory(bytes), *in = memory(bytes);
    char what[120];
    MPI_Request send, receive = MPI_REQUEST_NULL;
    MPI_Status status;
    snprintf(what, sizeof what, "%s %s send of %d bytes from %d (%s)", form_names[form], mode_names[mode], bytes, from,
             is_posted_first ? "expected" : "unexpected");
    fill(out, bytes, seed_of(rank, tag, number));
    memset(in, 0xEE, bytes);
    if (is_posted_first) MPI_Irecv(in, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &receive);
    /* A ready send is right only if the receive is there. */
    if (mode == READY) MPI_Barrier(MPI_COMM_WORLD);
    start_send(mode, form, out, bytes, to, tag, &send);
    if (!is_posted_first) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(in, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &receive);
    }
    MPI_Wait(&receive, &status);
    finish_send(form, &send);
    check_status(&status, from, tag, bytes, what);
    check_contents(in, bytes, seed_of(from, tag, number), what);
    free(out);
    free(in);
}

/* Persistent requests of both sides, started again and again. */
static void restart(int rounds, int bytes) {
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    unsigned char *out = memory(bytes), *in = memory(bytes);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Recv_init(in, bytes, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, bytes, MPI_BYTE, to, 7, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < rounds; round++) {
        fill(out, bytes, seed_of(rank, 7, round));
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        check_status(&statuses[0], from, 7, bytes, "a persistent pair");
        check_contents(in, bytes, seed_of(from, 7, round), "a persistent pair");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 1);
    long bytes_max = argument("bytes", 1 << 20), rounds = argument("rounds", 1);
    const long sizes[] = {0, 1, 64, 4096, 65536, bytes_max};
    size_t room = bytes_max + 65536 + 16 * MPI_BSEND_OVERHEAD;
    void *buffer = memory(room);
    MPI_Buffer_attach(buffer, (int)room);
    int number = 0, has_synchronous = (int)argument("synchronous", 1);
    for (long round = 0; round < rounds; round++)
        for (int mode = 0; mode < MODES; mode++)
            for (int form = 0; form < FORMS; form++)
                for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
                    for (int distance = 0; distance < ranks; distance++)
                        for (int posted = 0; posted < 2; posted++) {
                            number++;
                            if (sizes[size] > bytes_max || (mode == SYNCHRONOUS && !has_synchronous)) continue;
                            /* Before its receive a ready send is wrong, and a blocking one may wait for it. */
                            if (!posted && (mode == READY || (form == BLOCKING && mode != BUFFERED))) continue;
                            exchange(mode, form, posted, distance, (int)sizes[size], number);
                            if (mode == BUFFERED) {
                                MPI_Buffer_detach(&buffer, &(int){0});
                                MPI_Buffer_attach(buffer, (int)room);
                            }
                        }
    restart(100, 100);
    restart(4, (int)bytes_max);
    MPI_Buffer_detach(&buffer, &(int){0});
    free(buffer);
    return end();
}
