// Sends messages at a fixed rate, whether or not earlier ones were answered, and says what became of them as JSON.
//
//     openloop PORT PATH KEY CONNECTIONS RATE WARM_UP_S SECONDS BODY
//
// Connections are kept open and carry one request at a time. A request that falls due while all of them wait for an answer
// is not sent and counts as unsent: the latencies are those of requests that were. With a rate of 0 each connection goes on
// as soon as it has its answer. `%07d` in the body is replaced by a number that differs from request to request.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { maxInputBytes = 8192, maxRequestBytes = 8192, maxStatus = 600, maxEvents = 512, maxBurst = 256 };
// Latencies are counted in buckets, 64 to each doubling, from 1 µs on.
enum { perOctave = 64, firstOctave = 10, bucketCount = 64 * 40 };

struct connection {
    int fd;
    int isOpen;
    uint32_t have;
    // 0 while it carries no request.
    int64_t sentAt;
    char input[maxInputBytes];
};

static struct connection *connections;
static int *idle, idleCount, isMeasuring, poller;
static struct sockaddr_in address;
static char head[2048];
static const char *body;
static uint64_t number, unsent, lost, statuses[maxStatus], latencies[2][bucketCount];

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int bucketOf(int64_t nanoseconds) {
    if (nanoseconds < 1 << firstOctave) nanoseconds = 1 << firstOctave;
    int octave = 63 - __builtin_clzll((uint64_t)nanoseconds);
    int bucket = (octave - firstOctave) * perOctave + (int)((nanoseconds >> (octave - 6)) & (perOctave - 1));
    return bucket < bucketCount ? bucket : bucketCount - 1;
}

static double milliseconds(int bucket) {
    int octave = bucket / perOctave + firstOctave;
    return (double)((1ll << octave) + ((int64_t)(bucket % perOctave) << (octave - 6))) / 1e6;
}

static double percentile(const uint64_t *counts, double part) {
    uint64_t total = 0, seen = 0;
    for (int i = 0; i < bucketCount; i++) total += counts[i];
    for (int i = 0; i < bucketCount; i++) {
        seen += counts[i];
        if (total > 0 && (double)seen >= part * (double)total) return milliseconds(i);
    }
    return 0;
}

static void dial(struct connection *one) {
    one->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int yes = 1;
    setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (one->fd < 0 || (connect(one->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)) {
        perror("openloop: connect");
        exit(1);
    }
    one->isOpen = 0;
    one->have = 0;
    one->sentAt = 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = one};
    epoll_ctl(poller, EPOLL_CTL_ADD, one->fd, &event);
}

static void send_one(void) {
    if (idleCount == 0) {
        unsent += isMeasuring;
        return;
    }
    struct connection *one = &connections[idle[--idleCount]];
    char text[maxRequestBytes / 2], request[maxRequestBytes];
    int length = snprintf(text, sizeof text, body, (int)(number++ % 10000000));
    int size = snprintf(request, sizeof request, "%sContent-Length: %d\r\n\r\n%s", head, length, text);
    one->sentAt = now();
    // What can't be written shows as a lost connection.
    if (write(one->fd, request, (size_t)size) < 0 && errno == EAGAIN) shutdown(one->fd, SHUT_RDWR);
}

static void receive(struct connection *one) {
    for (;;) {
        ssize_t count = read(one->fd, one->input + one->have, maxInputBytes - 1 - one->have);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) {
            int place = (int)(one - connections), at = 0;
            while (at < idleCount && idle[at] != place) at++;
            if (at < idleCount) idle[at] = idle[--idleCount];
            else lost += isMeasuring;
            close(one->fd);
            dial(one);
            return;
        }
        // A server refuses and closes a connection that has carried no request for too long.
        if (one->sentAt == 0) continue;
        one->have += (uint32_t)count;
        one->input[one->have] = 0;
        char *end = strstr(one->input, "\r\n\r\n");
        if (!end) continue;
        char *field = strcasestr(one->input, "\r\ncontent-length:");
        if (one->have < (uint32_t)(end + 4 - one->input) + (field ? (uint32_t)atoi(field + 17) : 0)) continue;
        int status = atoi(one->input + 9);
        if (isMeasuring && status > 0 && status < maxStatus) {
            statuses[status]++;
            latencies[status != 200][bucketOf(now() - one->sentAt)]++;
        }
        one->have = 0;
        one->sentAt = 0;
        idle[idleCount++] = (int)(one - connections);
    }
}

static void report(double seconds) {
    printf("{\"ok_per_s\": %.0f, \"refused_per_s\": %.0f, \"unsent_per_s\": %.0f, \"lost\": %llu, ",
           (double)statuses[200] / seconds, (double)statuses[503] / seconds, (double)unsent / seconds,
           (unsigned long long)lost);
    printf("\"ok_p50_ms\": %.3f, \"ok_p99_ms\": %.3f, \"refused_p99_ms\": %.3f, \"statuses\": {",
           percentile(latencies[0], 0.5), percentile(latencies[0], 0.99), percentile(latencies[1], 0.99));
    const char *comma = "";
    for (int status = 0; status < maxStatus; status++) {
        if (statuses[status] == 0) continue;
        printf("%s\"%d\": %llu", comma, status, (unsigned long long)statuses[status]);
        comma = ", ";
    }
    printf("}}\n");
}

int main(int argc, char **argv) {
    if (argc != 9) {
        fprintf(stderr, "usage: openloop PORT PATH KEY CONNECTIONS RATE WARM_UP_S SECONDS BODY\n");
        return 64;
    }
    int count = atoi(argv[4]);
    double rate = atof(argv[5]), warmUp = atof(argv[6]), seconds = atof(argv[7]);
    body = argv[8];
    poller = epoll_create1(EPOLL_CLOEXEC);
    address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n",
             argv[2], argv[3]);
    connections = calloc((size_t)count, sizeof *connections);
    idle = calloc((size_t)count, sizeof *idle);
    number = (uint64_t)getpid() * 7919;
    for (int i = 0; i < count; i++) dial(&connections[i]);

    int64_t start = now(), measured = start + (int64_t)(warmUp * 1e9), end = measured + (int64_t)(seconds * 1e9);
    uint64_t fired = 0;
    struct epoll_event events[maxEvents];
    for (;;) {
        int64_t time = now();
        if (time >= end) break;
        isMeasuring = time >= measured;
        int isBehind = 0;
        if (rate > 0) {
            uint64_t due = (uint64_t)((double)(time - start) / 1e9 * rate);
            for (int burst = 0; fired < due && burst < maxBurst; burst++, fired++) send_one();
            isBehind = fired < due;
        } else {
            while (idleCount > 0) send_one();
        }
        int ready = epoll_wait(poller, events, maxEvents, isBehind ? 0 : 1);
        for (int i = 0; i < ready; i++) {
            struct connection *one = events[i].data.ptr;
            if (!one->isOpen && (events[i].events & EPOLLOUT)) {
                one->isOpen = 1;
                idle[idleCount++] = (int)(one - connections);
            }
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(one);
        }
    }
    report(seconds);
    return 0;
}
