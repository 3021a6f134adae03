/* Two endpoints in one process: over TCP, shared memory or a verbs device, and each to itself.
 *
 *     endpoint [tcp | shm | model | verbs | card]
 *
 * Who matches is software, but with `model`, the model of a device in software, and with `card`, a verbs device that can.
 *
 * Each step is run to its end before the next begins, so that what must hold can be said behind it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tagmatch.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s does not hold: %s\n", __FILE__, __LINE__, #what, tm_last_error()); \
            exit(1); \
        } \
    } while (0)

enum { ENDPOINTS = 2, LONG = 1 << 20 };

static struct {
    tm_endpoint *endpoint;
    tm_completion said[16];
    size_t said_count;
} side[ENDPOINTS];

static void progress(void)
{
    for (int i = 0; i < ENDPOINTS; i++) {
        CHECK(tm_endpoint_progress(side[i].endpoint) >= 0);
        int room = 16 - (int)side[i].said_count;
        int count = tm_endpoint_poll(side[i].endpoint, side[i].said + side[i].said_count, (size_t)room);
        CHECK(count >= 0);
        side[i].said_count += (size_t)count;
    }
}

/* The completion of this context, once it has come. */
static tm_completion ended(int at, uint64_t context)
{
    for (;;) {
        for (size_t i = 0; i < side[at].said_count; i++) {
            tm_completion found = side[at].said[i];
            if (found.context == context) {
                side[at].said[i] = side[at].said[--side[at].said_count];
                return found;
            }
        }
        progress();
    }
}

static int is_sent(int at, const tm_send *send)
{
    int result;
    while ((result = tm_endpoint_send(side[at].endpoint, send)) == -EAGAIN)
        progress();
    return result;
}

static tm_send message(uint64_t to, uint64_t tag, void *payload, size_t length, uint64_t context)
{
    return (tm_send){ .to = to, .tag = tag, .payload = { .address = payload, .length = length }, .context = context };
}

static void receive(int at, uint64_t source, uint64_t tag, void *into, size_t length, uint64_t context, uint32_t flags)
{
    tm_receive receive = { .source = source, .tag = tag, .buffer = { .address = into, .length = length },
                           .context = context, .least = 64, .flags = flags };
    CHECK(tm_endpoint_receive(side[at].endpoint, &receive) == 0);
}

/* Look until there is something: messages take their time. */
static tm_completion look(int at, uint64_t tag, uint32_t action, uint64_t context)
{
    tm_peek peek = { .source = TM_ANY_SOURCE, .tag = tag, .context = context, .action = action };
    for (;;) {
        CHECK(tm_endpoint_peek(side[at].endpoint, &peek) == 0);
        tm_completion found = ended(at, context);
        CHECK(found.what == TM_COMPLETED_PEEKED && (found.status == 0 || found.status == -ENOMSG));
        if (found.status == 0)
            return found;
        progress();
    }
}

static uint64_t counter(int at, const char *name)
{
    tm_counter counters[128];
    int count = tm_endpoint_statistics(side[at].endpoint, counters, 128);
    CHECK(count > 0 && count <= 128);
    for (int i = 0; i < count; i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    fprintf(stderr, "there is no counter %s\n", name);
    exit(1);
}

static void open_both(const char *how)
{
    static const char key[] = "sixteen bytes or more";
    tm_endpoint_config config = { .size = sizeof config, .listen = "127.0.0.1:0", .job_key = key,
                                  .job_key_length = sizeof key, .inject_size = 4096 };
    if (strcmp(how, "shm") == 0)
        config.flags = TM_ENDPOINT_SHM;
    if (strcmp(how, "model") == 0)
        config.matching = TM_MATCHING_MODEL;
    if (strcmp(how, "verbs") == 0 || strcmp(how, "card") == 0)
        config.network = TM_NETWORK_VERBS;
    if (strcmp(how, "card") == 0)
        config.matching = TM_MATCHING_DEVICE;
    for (int i = 0; i < ENDPOINTS; i++) {
        int result = tm_endpoint_open(&config, &side[i].endpoint);
        if (result < 0) {
            fprintf(stderr, "endpoint: %s: %s (%s)\n", how, tm_strerror(result), tm_last_error());
            exit(1);
        }
    }
    /* Peers have the same numbers everywhere: 0 and 1. */
    for (int i = 0; i < ENDPOINTS; i++) {
        unsigned char name[TM_NAME_MAX];
        size_t length = sizeof name;
        CHECK(tm_endpoint_name(side[i].endpoint, name, &length) == 0);
        for (int at = 0; at < ENDPOINTS; at++)
            CHECK(tm_endpoint_set_peer(side[at].endpoint, (uint64_t)i, name, length) == 0);
    }
}

static void with_and_without_tags(char *out, char *in)
{
    for (int to = 0; to < ENDPOINTS; to++) {
        tm_send tagged = message(to, 5, out, 100, 1), untagged = message(to, 0, out + 1, 100, 2);
        tagged.cq_data = 77, tagged.flags = TM_CQ_DATA;
        untagged.flags = TM_UNTAGGED;
        receive(to, TM_ANY_SOURCE, 0, in + 200, 100, 4, TM_UNTAGGED);
        receive(to, TM_ANY_SOURCE, 5, in, 200, 3, 0); /* its source is in no tag, so that a device may have it */
        CHECK(is_sent(0, &tagged) == 0 && is_sent(0, &untagged) == 0);
        CHECK(ended(0, 1).what == TM_COMPLETED_SENT && ended(0, 2).status == 0);
        tm_completion got = ended(to, 3);
        CHECK(got.what == TM_COMPLETED_RECEIVED && got.status == 0 && got.tag == 5 && got.source == 0);
        CHECK(got.length == 100 && got.placed == 100 && got.address == in && memcmp(in, out, 100) == 0);
        CHECK(got.flags == TM_CQ_DATA && got.cq_data == 77);
        CHECK(ended(to, 4).flags == TM_UNTAGGED && memcmp(in + 200, out + 1, 100) == 0);
    }
}

static void long_cut_and_in_pieces(char *out, char *in)
{
    tm_send whole = message(1, 6, out, LONG, 1);
    receive(1, 0, 6, in, LONG, 2, 0);
    CHECK(is_sent(0, &whole) == 0);
    CHECK(ended(1, 2).placed == LONG && ended(0, 1).status == 0 && memcmp(in, out, LONG) == 0);

    memset(in, 0, LONG);
    receive(1, 0, 6, in, 1000, 2, 0);
    CHECK(is_sent(0, &whole) == 0);
    tm_completion got = ended(1, 2);
    CHECK(got.status == -EMSGSIZE && got.length == LONG && got.placed == 1000 && in[1000] == 0);
    CHECK(ended(0, 1).status == 0);

    tm_segment pieces[2] = { { .address = out + 10, .length = 5 }, { .address = out, .length = 3 } };
    tm_send gathered = message(1, 6, pieces, 8, 1);
    gathered.payload.segments = 2;
    receive(1, 0, 6, in, 100, 2, 0);
    CHECK(is_sent(0, &gathered) == 0 && ended(1, 2).length == 8 && ended(0, 1).status == 0);
    CHECK(memcmp(in, out + 10, 5) == 0 && memcmp(in + 5, out, 3) == 0);

    receive(1, TM_ANY_SOURCE, 6, in, 256, 2, TM_RECEIVE_SEVERAL);
    for (int i = 0; i < 2; i++) {
        tm_send part = message(1, 6, out, 100, 1);
        CHECK(is_sent(0, &part) == 0 && ended(0, 1).status == 0);
        got = ended(1, 2);
        CHECK(got.address == in + 100 * i);
    }
    CHECK(got.flags == TM_RELEASED); /* 56 bytes are left, and 64 is the least */
}

static void inject_and_synchronous(char *in)
{
    char gone[] = "free when the call returns";
    tm_send inject = message(1, 7, gone, sizeof gone, 1), synchronous = message(1, 8, NULL, 0, 2);
    inject.flags = TM_SEND_INJECT | TM_SEND_MORE;
    synchronous.level = TM_LEVEL_MATCH;
    CHECK(is_sent(0, &inject) == 0);
    memset(gone, 'x', sizeof gone);
    CHECK(ended(0, 1).what == TM_COMPLETED_SENT);
    CHECK(is_sent(0, &synchronous) == 0 && tm_endpoint_flush(side[0].endpoint) == 0);
    look(1, 8, TM_PEEK_LOOK, 9); /* it is there, and was not taken */
    CHECK(side[0].said_count == 0);
    receive(1, 0, 8, NULL, 0, 3, 0);
    CHECK(ended(0, 2).status == 0 && ended(1, 3).status == 0);
    receive(1, 0, 7, in, 100, 4, 0);
    CHECK(ended(1, 4).status == 0 && strcmp(in, "free when the call returns") == 0);
    tm_send too_long = message(1, 7, in, 4097, 1);
    too_long.flags = TM_SEND_INJECT;
    CHECK(tm_endpoint_send(side[0].endpoint, &too_long) == -EMSGSIZE);
}

static void looked_at_claimed_cancelled(char *out, char *in)
{
    tm_buffer buffer = { .address = in, .length = 100 };
    for (uint64_t tag = 20; tag < 23; tag++) {
        tm_send unexpected = message(1, tag, out, 10 + tag, 1);
        CHECK(is_sent(0, &unexpected) == 0 && ended(0, 1).status == 0);
    }
    CHECK(look(1, 22, TM_PEEK_LOOK, 1).length == 32 && look(1, 20, TM_PEEK_CLAIM, 2).length == 30);
    CHECK(look(1, 21, TM_PEEK_CLAIM, 3).source == 0 && look(1, 22, TM_PEEK_DISCARD, 4).tag == 22);
    CHECK(counter(1, "unexpected_tagged_now") == 0); /* out of everyone else's sight */
    CHECK(tm_endpoint_discard_claimed(side[1].endpoint, 3) == 0 && ended(1, 3).what == TM_COMPLETED_PEEKED);
    CHECK(tm_endpoint_receive_claimed(side[1].endpoint, 2, &buffer) == 0);
    CHECK(ended(1, 2).placed == 30 && memcmp(in, out, 30) == 0);
    CHECK(tm_endpoint_receive_claimed(side[1].endpoint, 2, &buffer) == -ENOENT);

    receive(1, TM_ANY_SOURCE, 30, in, 100, 5, 0);
    CHECK(tm_endpoint_cancel(side[1].endpoint, 5) == 0);
    CHECK(ended(1, 5).status == -ECANCELED && tm_endpoint_cancel(side[1].endpoint, 5) == -ENOENT);
}

static void waiting(char *in)
{
    int descriptors[8], timeout, count = tm_endpoint_descriptors(side[1].endpoint, descriptors, 8);
    tm_send send = message(1, 40, in, 10, 1);
    CHECK(count > 0 && count <= 8);
    receive(1, 0, 40, in + 100, 10, 2, 0);
    CHECK(is_sent(0, &send) == 0);
    while (tm_endpoint_poll(side[1].endpoint, side[1].said, 1) == 0) {
        CHECK(tm_endpoint_progress(side[0].endpoint) >= 0 && tm_endpoint_progress(side[1].endpoint) >= 0);
        if (tm_endpoint_may_wait(side[1].endpoint, &timeout) == 0)
            CHECK(timeout == 0);
        CHECK(tm_endpoint_wait(side[1].endpoint, 1) == 0);
    }
    CHECK(side[1].said[0].context == 2 && ended(0, 1).status == 0);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "tcp";
    char *out = malloc(LONG), *in = calloc(1, LONG);
    CHECK(out && in);
    for (int i = 0; i < LONG; i++)
        out[i] = (char)(i * 7 + i / 251);
    open_both(how);
    with_and_without_tags(out, in);
    long_cut_and_in_pieces(out, in);
    inject_and_synchronous(in);
    looked_at_claimed_cancelled(out, in);
    waiting(in);
    printf("endpoint: over %s, %" PRIu64 " messages received, %" PRIu64 " matched by a device, all right\n", how,
           counter(1, "received"), counter(1, "matched_by_device"));
    for (int i = 0; i < ENDPOINTS; i++)
        CHECK(tm_endpoint_remove_peer(side[i].endpoint, 1) == 0 && tm_endpoint_shutdown(side[i].endpoint) >= 0);
    for (int i = 0; i < ENDPOINTS; i++)
        CHECK(tm_endpoint_close(side[i].endpoint) == 0);
    free(out), free(in);
    return 0;
}
