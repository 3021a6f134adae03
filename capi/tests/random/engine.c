/* Random calls of an engine: every function, with what may be and what may not, and devices that lie.
 *
 *     engine SEED CALLS
 *
 * The engine follows no address, so buffers are numbers here. Whatever is called, a receive for one message ends once at
 * the most. */
#include "calls.h"

enum { RECEIVES = 1 << 16, KEPT = 64 };

static tm_engine *engine;
static unsigned char ended[RECEIVES]; /* by context: 0 none, 1 for one message, 2 has ended, 3 for several */
static uint64_t posted, devices;
static uint64_t receives[KEPT], claims[KEPT], entries[KEPT], transfers[KEPT], tokens;
static unsigned held;

static uint64_t *one_of(uint64_t *list)
{
    return &list[below(KEPT)];
}

static void ends(const tm_engine_completion *completion)
{
    CHECK(completion->context < RECEIVES);
    CHECK(completion->end >= TM_END_RECEIVED && completion->end <= TM_END_RELEASED);
    unsigned char *is = &ended[completion->context];
    CHECK(*is == 1 || *is == 3);
    if (*is == 1)
        *is = 2;
}

static void complete(void *user, const tm_engine_completion *completion)
{
    CHECK(user == &engine);
    /* What calls back may not be called: it says so. */
    CHECK(tm_engine_progress(engine) == -EBUSY);
    ends(completion);
}

static void heed(const tm_command *command)
{
    if (command->kind == TM_COMMAND_ADD || command->kind == TM_COMMAND_DEL)
        *one_of(entries) = command->id;
    if (command->kind == TM_COMMAND_READ || command->kind == TM_COMMAND_COPY)
        *one_of(transfers) = command->id;
    if (command->kind == TM_COMMAND_ANSWER && command->answer.flags & TM_ANSWER_TRANSFER)
        *one_of(transfers) = command->answer.transfer;
}

static size_t submit(void *user, const tm_command *commands, size_t count)
{
    CHECK(user == &held);
    size_t taken = one_in(4) ? below(count + 1) : count;
    for (size_t i = 0; i < taken; i++)
        heed(&commands[i]);
    return taken;
}

static int place(void *user, uint64_t message, const tm_buffer *buffer)
{
    CHECK(user == &held && buffer != NULL);
    (void)message;
    return one_in(2);
}

static tm_buffer buffer(void)
{
    uint64_t length = one_in(8) ? edge() : below(4096);
    return (tm_buffer){ .address = (void *)(uintptr_t)(4096 * (1 + below(64))), .length = length,
                        .segments = (uint32_t)(one_in(16) ? edge() : below(2)) };
}

static uint32_t peer(void)
{
    return (uint32_t)(one_in(32) ? edge() : below(4));
}

/* Now and then one that is none. */
static uint32_t device(void)
{
    return (uint32_t)(one_in(32) ? edge() : below(devices + 1));
}

static uint64_t tag(void)
{
    return below(8) << (one_in(4) ? 32 : 0);
}

static tm_pattern pattern(void)
{
    static const uint64_t ignores[] = { 0, 0, 0, 1, 7, UINT64_MAX };
    return (tm_pattern){ .tag = tag(), .ignore = ignores[below(6)], .kind = (uint32_t)below(one_in(32) ? 5 : 3),
                         .source = peer() };
}

static tm_remote remote(void)
{
    return (tm_remote){ .address = edge(), .length = edge(), .key = (uint32_t)draw() };
}

static uint32_t flags(uint32_t known)
{
    return one_in(32) ? (uint32_t)draw() : (uint32_t)draw() & known;
}

static void add_device(void)
{
    int is_matching = !one_in(3);
    tm_device it = { .size = sizeof it, .tags = (uint32_t)(is_matching ? 1 + below(8) : 0), .command_slots = 8,
                     .completions = 64, .unexpected_buffers = is_matching ? 33 : 0, .eager_limit = below(2) * 1024,
                     .buffer_length_max = 1 << 20, .user = &held, .submit = one_in(2) ? submit : NULL,
                     .place = one_in(2) ? place : NULL };
    if (one_in(4)) /* Something that makes no sense. */
        ((uint32_t *)&it)[below(sizeof it / 8) / 4 * 4 % 8] ^= (uint32_t)edge();
    if (devices < 3 && answered(tm_engine_add_device(engine, one_in(16) ? NULL : &it)) >= 0)
        devices++;
}

static void post(void)
{
    if (posted + 2 >= RECEIVES)
        return;
    tm_posting said;
    int is_multi = one_in(8);
    tm_engine_receive it = { .pattern = pattern(), .buffer = buffer(), .context = ++posted, .least = below(64),
                             .flags = is_multi ? TM_RECEIVE_MULTI : 0, .reserved = one_in(64) };
    if (one_in(64))
        it.flags |= (uint32_t)draw();
    ended[posted] = it.flags & TM_RECEIVE_MULTI ? 3 : 1;
    int result = answered(tm_engine_post(engine, &it, &said));
    if (result < 0)
        ended[posted] = 0;
    else if (result == TM_POST_QUEUED)
        *one_of(receives) = said.receive;
    else if (result == TM_POST_PLACED && ended[posted] == 1)
        ended[posted] = 2;
}

static void look(void)
{
    tm_pattern it = pattern();
    tm_peeked found;
    uint64_t claim;
    switch (below(5)) {
    case 0:
        answered(tm_engine_peek(engine, &it, one_in(16) ? NULL : &found));
        break;
    case 1:
        answered(tm_engine_discard(engine, &it, one_in(16) ? NULL : &found));
        break;
    case 2:
        if (answered(tm_engine_claim(engine, &it, &found, &claim)) > 0)
            *one_of(claims) = claim;
        break;
    case 3:
        answered(tm_engine_discard_claimed(engine, one_in(8) ? draw() : *one_of(claims)));
        break;
    default:
        if (posted + 2 < RECEIVES) {
            tm_buffer into = buffer();
            ended[++posted] = 1;
            if (answered(tm_engine_receive_claimed(engine, one_in(8) ? draw() : *one_of(claims), &into, posted)) < 0)
                ended[posted] = 0;
        }
    }
}

static void set(void)
{
    tm_buffer bounce = buffer();
    switch (below(7)) {
    case 0: answered(tm_engine_name_peer(engine, peer(), one_in(4) ? edge() : below(16) << 4)); break;
    case 1: answered(tm_engine_set_path(engine, peer(), device())); break;
    case 2: answered(tm_engine_set_group(engine, peer(), one_in(2) ? TM_NO_GROUP : (uint32_t)below(3))); break;
    case 3: answered(tm_engine_resolve(engine, peer(), peer())); break;
    case 4: answered(tm_engine_declare(engine, edge(), (uint32_t)below(5))); break;
    case 5: answered(tm_engine_set_offload(engine, device(), one_in(2))); break;
    default: answered(tm_engine_add_bounce_buffer(engine, device(), &bounce));
    }
}

static void arrive(void)
{
    tm_answer answer;
    tm_arrival it = { .message = one_in(16) ? tokens : ++tokens, .tag = tag(), .length = one_in(8) ? edge() : below(4096),
                      .source = peer(), .app_ctx = (uint32_t)draw(), .flags = flags(TM_MESSAGE_IMMEDIATE |
                      TM_ARRIVAL_IN_HAND | TM_ARRIVAL_COUNTED | (one_in(4) ? TM_ARRIVAL_RENDEZVOUS : 0)),
                      .remote = remote() };
    if (answered(tm_engine_handle_arrival(engine, device(), &it, &answer)) >= 0 && answer.flags & TM_ANSWER_TRANSFER)
        *one_of(transfers) = answer.transfer;
}

static void tell(void)
{
    uint64_t entry = one_in(8) ? draw() : *one_of(entries);
    uint64_t ids[] = { tokens - below(4), entry, *one_of(transfers), draw() };
    uint32_t target = (uint32_t)below(4);
    tm_data data = { .id = ids[target], .length = edge(), .target = target, .status = one_in(3) ? -EIO : 0,
                     .flags = flags(TM_MESSAGE_IMMEDIATE) };
    tm_match match = { .entry = entry, .tag = tag(), .length = edge(), .source = peer(), .stage = (uint32_t)below(4),
                       .flags = flags(TM_MESSAGE_IMMEDIATE | TM_MATCH_RELEASED), .remote = remote() };
    tm_operation operation = { .entry = entry, .operation = (uint32_t)below(5), .phase = (uint32_t)edge(),
                               .flags = flags(TM_OPERATION_SUCCESS | TM_OPERATION_SYNC_REQUESTED) };
    switch (below(8)) {
    case 0: answered(tm_engine_handle_data(engine, device(), &data)); break;
    case 1: answered(tm_engine_handle_match(engine, device(), &match)); break;
    case 2: answered(tm_engine_handle_operation(engine, device(), &operation)); break;
    case 3: answered(tm_engine_handle_released(engine, device(), entry)); break;
    case 4: answered(tm_engine_handle_untagged(engine, device(), peer(), one_in(2))); break;
    case 5: answered(tm_engine_handle_set_aside(engine, device(), entry, one_in(2))); break;
    case 6: answered(tm_engine_handle_path_lost(engine, device(), peer())); break;
    default:
        if (one_in(64))
            answered(tm_engine_handle_device_failed(engine, device(), one_in(2) ? NULL : "it is \xff gone"));
    }
}

static void turn(void)
{
    tm_command commands[4];
    tm_engine_completion said[4];
    uint32_t of = device();
    int count = answered(tm_engine_poll_commands(engine, of, commands, below(5)));
    for (int i = 0; i < count; i++)
        heed(&commands[i]);
    answered(tm_engine_handle_submitted(engine, of, one_in(16) ? edge() : (size_t)(count > 0 ? count : 0)));
    answered(tm_engine_progress(engine));
    count = answered(tm_engine_poll(engine, said, below(5)));
    for (int i = 0; i < count; i++)
        ends(&said[i]);
    char text[40];
    memset(text, 'x', sizeof text);
    if (answered(tm_engine_poll_fault(engine, text, below(sizeof text + 1))) > 0)
        CHECK(memchr(text, 0, sizeof text) != NULL || text[0] == 'x');
    tm_counter counters[8];
    uint64_t depths[2];
    answered(tm_engine_statistics(engine, counters, below(9)));
    answered(tm_engine_depths(engine, &depths[0], one_in(16) ? NULL : &depths[1]));
}

static void nothing(void)
{
    tm_answer answer;
    CHECK(answered(tm_engine_post(NULL, NULL, NULL)) == -EFAULT);
    CHECK(answered(tm_engine_post(engine, NULL, NULL)) == -EFAULT);
    CHECK(answered(tm_engine_peek(engine, NULL, NULL)) == -EFAULT);
    if (devices == 0)
        return;
    CHECK(answered(tm_engine_handle_arrival(engine, 0, NULL, &answer)) == -EFAULT);
    CHECK(answered(tm_engine_handle_data(engine, 0, NULL)) == -EFAULT);
    CHECK(answered(tm_engine_handle_match(engine, 0, NULL)) == -EFAULT);
    CHECK(answered(tm_engine_handle_operation(engine, 0, NULL)) == -EFAULT);
}

int main(int count, char **arguments)
{
    numbers = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    uint64_t left = count > 2 ? strtoull(arguments[2], NULL, 10) : 10000;
    tm_engine_config config = { .size = sizeof config, .hash_seed = draw(), .source_bits = one_in(2) ? 0xf0 : 0,
                                .user = &engine, .complete = one_in(2) ? complete : NULL };
    CHECK(tm_engine_open(&config, &engine) == 0);
    while (calls < left) {
        switch (below(16)) {
        case 0: add_device(); break;
        case 1: case 2: case 3: post(); break;
        case 4: answered(tm_engine_cancel(engine, one_in(8) ? draw() : *one_of(receives))); break;
        case 5: look(); break;
        case 6: set(); break;
        case 7: case 8: turn(); break;
        case 9: one_in(32) ? nothing() : arrive(); break;
        case 10: case 11: arrive(); break;
        default: tell();
        }
    }
    CHECK(tm_engine_close(engine) == 0);
    printf("engine: %" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64 " receives\n", calls, refusals, posted);
    return 0;
}
