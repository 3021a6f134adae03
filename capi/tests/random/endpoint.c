/* Random calls of two endpoints: every function, with what may be and what may not.
 *
 *     endpoint tcp | shm | model SEED CALLS
 *
 * Each buffer is memory of its own, so that a checker of memory sees what is written beside it. A message says which it is by
 * its bytes. Every operation ends once at the most; what a receive says was written is what the message had. */
#include "calls.h"

enum { ENDPOINTS = 2, SLOTS = 64, LENGTH_MAX = 20000 };

enum use { FREE, SENT, RECEIVED, SEVERAL, PEEKED };

static struct {
    tm_endpoint *endpoint;
    struct {
        enum use use;
        unsigned char *memory;
        uint64_t length;
    } slots[SLOTS];
    uint64_t claimed[SLOTS];
    unsigned claims;
} side[ENDPOINTS];
static unsigned char names[ENDPOINTS][TM_NAME_MAX];
static size_t lengths[ENDPOINTS];
static uint64_t ended;

static int place(int at, enum use use, uint64_t length)
{
    int slot = (int)below(SLOTS);
    if (side[at].slots[slot].use != FREE)
        return -1;
    side[at].slots[slot].use = use;
    side[at].slots[slot].length = length;
    side[at].slots[slot].memory = malloc(length ? length : 1);
    return slot;
}

static void give_back(int at, uint64_t slot)
{
    free(side[at].slots[slot].memory);
    side[at].slots[slot].use = FREE;
    side[at].slots[slot].memory = NULL;
}

/* The bytes of a message are those of its tag. Messages without one have 0xee. */
static unsigned char byte_of(uint64_t tag, int is_tagged)
{
    return is_tagged ? (unsigned char)(1 + tag % 200) : 0xee;
}

static void hear(int at, const tm_completion *said)
{
    CHECK(said->context < SLOTS && side[at].slots[said->context].use != FREE);
    enum use use = side[at].slots[said->context].use;
    ended++;
    switch (said->what) {
    case TM_COMPLETED_SENT:
        CHECK(use == SENT);
        break;
    case TM_COMPLETED_RECEIVED: {
        CHECK(use == RECEIVED || use == SEVERAL);
        const unsigned char *memory = side[at].slots[said->context].memory, *from = said->address;
        CHECK(said->placed <= said->length && from >= memory);
        CHECK(from + said->placed <= memory + side[at].slots[said->context].length);
        for (uint64_t i = 0; i < said->placed; i++)
            CHECK(from[i] == byte_of(said->tag, !(said->flags & TM_UNTAGGED)));
        if (use == SEVERAL && !(said->flags & TM_RELEASED))
            return;
        break;
    }
    case TM_COMPLETED_RELEASED:
        CHECK(use == SEVERAL);
        break;
    case TM_COMPLETED_PEEKED:
        CHECK(use == PEEKED || use == RECEIVED);
        break;
    case TM_COMPLETED_CANCELLED:
        CHECK((use == RECEIVED || use == SEVERAL) && said->status == -ECANCELED);
        break;
    default:
        CHECK(said->what == TM_COMPLETED_FAILED && said->status < 0);
    }
    /* A peek that found something to claim keeps its context: that is the claim's name. */
    if (use == PEEKED && said->what == TM_COMPLETED_PEEKED && said->status == 0 && side[at].slots[said->context].length == 1) {
        side[at].claimed[side[at].claims++] = said->context;
        return;
    }
    give_back(at, said->context);
}

static void turn(int at)
{
    tm_completion said[8];
    answered(tm_endpoint_progress(side[at].endpoint));
    int count = answered(tm_endpoint_poll(side[at].endpoint, said, below(9)));
    for (int i = 0; i < count; i++)
        hear(at, &said[i]);
}

static uint64_t peer(void)
{
    return one_in(32) ? edge() : below(3);
}

static uint32_t flags(uint32_t known)
{
    return one_in(64) ? (uint32_t)draw() : (uint32_t)draw() & known;
}

static uint64_t length(void)
{
    return one_in(8) ? below(LENGTH_MAX) : below(200);
}

static void send(int at)
{
    int slot = place(at, SENT, length());
    if (slot < 0)
        return;
    tm_send it = { .to = peer(), .tag = below(8), .context = (uint64_t)slot, .cq_data = 5,
                   .level = (uint32_t)below(one_in(32) ? 6 : 4), .reserved = one_in(64),
                   .flags = flags(TM_UNTAGGED | TM_CQ_DATA | TM_SEND_INJECT | TM_SEND_MORE),
                   .payload = { side[at].slots[slot].memory, side[at].slots[slot].length, 0, (uint32_t)below(2) } };
    memset(side[at].slots[slot].memory, byte_of(it.tag, !(it.flags & TM_UNTAGGED)), it.payload.length);
    if (!(it.flags & TM_CQ_DATA) && one_in(2))
        it.cq_data = 0;
    if (answered(tm_endpoint_send(side[at].endpoint, &it)) < 0)
        give_back(at, (uint64_t)slot);
}

static void receive(int at)
{
    int is_several = one_in(8);
    int slot = place(at, is_several ? SEVERAL : RECEIVED, is_several ? 4096 : length());
    if (slot < 0)
        return;
    static const uint64_t ignores[] = { 0, 0, 1, UINT64_MAX };
    tm_receive it = { .source = one_in(2) ? TM_ANY_SOURCE : peer(), .tag = below(8), .ignore = ignores[below(4)],
                      .context = (uint64_t)slot, .least = is_several ? 256 : 0, .reserved = one_in(64),
                      .flags = flags(TM_UNTAGGED) | (is_several ? TM_RECEIVE_SEVERAL : 0),
                      .buffer = { side[at].slots[slot].memory, side[at].slots[slot].length, 0, (uint32_t)below(2) } };
    /* What is drawn may say the other kind. */
    side[at].slots[slot].use = it.flags & TM_RECEIVE_SEVERAL ? SEVERAL : RECEIVED;
    if (answered(tm_endpoint_receive(side[at].endpoint, &it)) < 0)
        give_back(at, (uint64_t)slot);
}

static void peek(int at)
{
    uint32_t action = (uint32_t)below(one_in(32) ? 5 : 3);
    /* Its length says whether it claims. */
    int slot = place(at, PEEKED, action == TM_PEEK_CLAIM);
    if (slot < 0)
        return;
    tm_peek it = { .source = TM_ANY_SOURCE, .tag = below(8), .ignore = one_in(2) ? 7 : 0, .context = (uint64_t)slot,
                   .action = action, .flags = flags(TM_UNTAGGED) };
    if (answered(tm_endpoint_peek(side[at].endpoint, &it)) < 0)
        give_back(at, (uint64_t)slot);
}

static void take(int at)
{
    if (side[at].claims == 0) {
        answered(tm_endpoint_discard_claimed(side[at].endpoint, SLOTS + draw() % SLOTS));
        return;
    }
    uint64_t slot = side[at].claimed[--side[at].claims];
    if (one_in(2)) {
        CHECK(answered(tm_endpoint_discard_claimed(side[at].endpoint, slot)) == 0);
        side[at].slots[slot].length = 0;
        return;
    }
    give_back(at, slot);
    side[at].slots[slot].use = RECEIVED;
    side[at].slots[slot].length = length();
    side[at].slots[slot].memory = malloc(side[at].slots[slot].length + 1);
    tm_buffer into = { side[at].slots[slot].memory, side[at].slots[slot].length, 0, 1 };
    CHECK(answered(tm_endpoint_receive_claimed(side[at].endpoint, slot, &into)) == 0);
}

static void set(int at)
{
    tm_endpoint *endpoint = side[at].endpoint;
    unsigned char name[TM_NAME_MAX];
    size_t room = below(sizeof name + 1);
    int descriptors[4], timeout = (int)below(100);
    tm_counter counters[8];
    uint64_t who = below(ENDPOINTS);
    switch (below(10)) {
    case 0: answered(tm_endpoint_name(endpoint, name, &room)); break;
    /* Numbers 2 and up are anything's; 0 and 1 are entered again, as they are. */
    case 1: answered(tm_endpoint_set_peer(endpoint, who, names[who], lengths[who])); break;
    case 2:
        memset(name, (int)below(256), sizeof name);
        answered(tm_endpoint_set_peer(endpoint, one_in(4) ? edge() + 2 : 2, name, below(sizeof name + 1)));
        break;
    case 3: answered(tm_endpoint_remove_peer(endpoint, one_in(64) ? who : 2)); break;
    case 4: answered(tm_endpoint_descriptors(endpoint, descriptors, below(5))); break;
    case 5: answered(tm_endpoint_may_wait(endpoint, one_in(16) ? NULL : &timeout)); break;
    case 6: answered(tm_endpoint_statistics(endpoint, counters, below(9))); break;
    case 7: answered(tm_endpoint_wait(endpoint, 0)); break;
    case 8: answered(tm_endpoint_cancel(endpoint, one_in(4) ? edge() : below(SLOTS))); break;
    default: answered(tm_endpoint_flush(endpoint));
    }
}

static void open_all(const char *how)
{
    static const char key[] = "sixteen bytes or more";
    tm_endpoint_config config = { .size = sizeof config, .listen = "127.0.0.1:0", .inject_size = 256,
                                  .close_timeout_ms = 200, .eager_limit = one_in(2) ? 1024 : 0,
                                  .credit_messages = one_in(2) ? 8 : 0 };
    if (one_in(2)) {
        config.job_key = key;
        config.job_key_length = sizeof key;
    }
    if (strcmp(how, "shm") == 0)
        config.flags = TM_ENDPOINT_SHM;
    if (strcmp(how, "model") == 0)
        config.matching = TM_MATCHING_MODEL;
    for (int at = 0; at < ENDPOINTS; at++) {
        CHECK(tm_endpoint_open(&config, &side[at].endpoint) == 0);
        lengths[at] = TM_NAME_MAX;
        CHECK(tm_endpoint_name(side[at].endpoint, names[at], &lengths[at]) == 0);
    }
    for (int at = 0; at < ENDPOINTS; at++)
        for (uint64_t who = 0; who < ENDPOINTS; who++)
            CHECK(tm_endpoint_set_peer(side[at].endpoint, who, names[who], lengths[who]) == 0);
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    numbers = strtoull(arguments[2], NULL, 10);
    uint64_t left = strtoull(arguments[3], NULL, 10);
    open_all(arguments[1]);
    while (calls < left) {
        int at = (int)below(ENDPOINTS);
        switch (below(16)) {
        case 0: case 1: case 2: send(at); break;
        case 3: case 4: case 5: receive(at); break;
        case 6: peek(at); break;
        case 7: take(at); break;
        case 8: set(at); break;
        default: turn(at);
        }
    }
    for (int at = 0; at < ENDPOINTS; at++)
        CHECK(tm_endpoint_shutdown(side[at].endpoint) == 0);
    for (int at = 0; at < ENDPOINTS; at++)
        CHECK(tm_endpoint_close(side[at].endpoint) == 0);
    for (int at = 0; at < ENDPOINTS; at++)
        for (uint64_t slot = 0; slot < SLOTS; slot++)
            give_back(at, slot);
    printf("endpoint: %" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64 " ended\n", calls, refusals, ended);
    return 0;
}
