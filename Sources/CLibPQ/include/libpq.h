#ifndef FCM_GATEWAY_LIBPQ_H
#define FCM_GATEWAY_LIBPQ_H

// Debian has a folder for it, which no search path names.
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#include <libpq-fe.h>
#endif

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/// Opens libpq, once and before anything else of it is called.
///
/// \returns NULL, or why it can't be opened.
const char *fcmgw_pq_load(void);

/// The most parameters of a statement, which the protocol bounds; ours have a dozen.
#define FCMGW_PQ_MAX_PARAMETERS 1024

/// Takes a server's notices, which libpq prints otherwise.
static inline void fcmgw_pq_ignore(void *context, const PGresult *notice) {
    (void)context;
    (void)notice;
}

/// Connects, and waits for it: libpq goes on to the next host when `connect_timeout` has passed only here.
///
/// What stands before `dbname` are defaults that the URL may replace; an empty text counts as none. Afterwards no call
/// blocks but this one. Here because arrays of texts are no fun in Swift.
///
/// \param attributes which servers are good, unless the URL says.
/// \param authentication how a server may ask for the password, unless the URL says.
static inline PGconn *fcmgw_pq_connect(const char *url, const char *password, const char *attributes,
                                       const char *authentication) {
    const char *const keywords[] = {
        "require_auth", "connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "gssencmode", "fallback_application_name", "target_session_attrs", "dbname",
        "client_encoding", "password", NULL,
    };
    const char *const values[] = {
        authentication, "5", "10000", "30", "10", "3", "disable", "fcm-gateway", attributes, url, "UTF8", password,
        NULL,
    };
    // Earlier releases don't know the first, and refuse what they don't know.
    const int first = PQlibVersion() >= 160000 ? 0 : 1;
    PGconn *connection = PQconnectdbParams(keywords + first, values + first, 1);
    if (connection == NULL) return NULL;
    PQsetNoticeReceiver(connection, fcmgw_pq_ignore, NULL);
    PQsetnonblocking(connection, 1);
    return connection;
}

/// Whether a server that could not be used answers at all.
static inline PGPing fcmgw_pq_ping(const char *url) {
    const char *const keywords[] = {"connect_timeout", "gssencmode", "dbname", NULL};
    const char *const values[] = {"5", "disable", url, NULL};
    return PQpingParams(keywords, values, 1);
}

/// Whether an address has an option.
///
/// \returns 1 or 0, or -1 where it does not understand the address.
static inline int fcmgw_pq_has_option(const char *url, const char *keyword) {
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    if (options == NULL) return -1;
    int found = 0;
    for (PQconninfoOption *option = options; option->keyword != NULL; option++) {
        if (strcmp(option->keyword, keyword) == 0 && option->val != NULL && option->val[0] != '\0') {
            found = 1;
        }
    }
    PQconninfoFree(options);
    return found;
}

/// Whether several hosts are given, by the address, a service file or `PGHOST`, and no other servers are asked for than any.
static inline int fcmgw_pq_has_several_hosts(const char *url) {
    // Only a connection knows what holds after service files and variables. There is no such sslmode, by which libpq stops
    // before it looks for the first host; with a password it looks into no file for one.
    const char *const keywords[] = {"dbname", "password", "sslmode", NULL};
    const char *const values[] = {url, "none", "none", NULL};
    PGconn *connection = PQconnectdbParams(keywords, values, 1);
    PQconninfoOption *options = PQconninfo(connection);
    int isSeveral = 0, isAny = 1;
    for (PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++) {
        if (option->val == NULL) continue;
        int isHost = strcmp(option->keyword, "host") == 0 || strcmp(option->keyword, "hostaddr") == 0;
        if (isHost && strchr(option->val, ',') != NULL) isSeveral = 1;
        if (strcmp(option->keyword, "target_session_attrs") == 0) isAny = strcmp(option->val, "any") == 0;
    }
    PQconninfoFree(options);
    PQfinish(connection);
    return isSeveral && isAny;
}

/// Copies what an option is once service files and variables are read; the empty text where it is not set.
static inline void fcmgw_pq_effective(const char *url, const char *keyword, char *text, size_t size) {
    // There are no such attributes, by which libpq stops before it looks for the first host, as above.
    const char *const keywords[] = {"dbname", "password", "target_session_attrs", NULL};
    const char *const values[] = {url, "none", "none", NULL};
    PGconn *connection = PQconnectdbParams(keywords, values, 1);
    PQconninfoOption *options = PQconninfo(connection);
    text[0] = '\0';
    for (PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++) {
        if (strcmp(option->keyword, keyword) != 0 || option->val == NULL) continue;
        strncpy(text, option->val, size - 1);
        text[size - 1] = '\0';
    }
    PQconninfoFree(options);
    PQfinish(connection);
}

/// Sends a prepared statement; its parameters lie one behind the other in `bytes`.
///
/// \param lengths a length for each parameter, -1 for NULL.
/// \param formats 0 for text, which a zero byte must end, 1 for binary.
static inline int fcmgw_pq_send(PGconn *connection, const char *name, int count, const uint8_t *bytes,
                                const int32_t *lengths, const int32_t *formats) {
    const char *values[FCMGW_PQ_MAX_PARAMETERS];
    size_t offset = 0;
    if (count > FCMGW_PQ_MAX_PARAMETERS) return 0;
    for (int index = 0; index < count; index++) {
        values[index] = lengths[index] < 0 ? NULL : (const char *)bytes + offset;
        if (lengths[index] >= 0) offset += (size_t)lengths[index] + (formats[index] == 0 ? 1 : 0);
    }
    return PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1);
}

/// The SQLSTATE of a failure, or NULL; Swift has no constants that are characters.
static inline const char *fcmgw_pq_state(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}

/// What the server says of a failure, without its details, which hold values; or NULL.
static inline const char *fcmgw_pq_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}

/// A whole number of 1, 2, 4 or 8 bytes in binary form.
static inline int64_t fcmgw_pq_integer(const PGresult *result, int row, int column) {
    const uint8_t *bytes = (const uint8_t *)PQgetvalue(result, row, column);
    int length = PQgetlength(result, row, column);
    uint64_t value = length > 0 && (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (int index = 0; index < length; index++) value = value << 8 | bytes[index];
    return (int64_t)value;
}

/// A number of 8 bytes in binary form.
static inline double fcmgw_pq_double(const PGresult *result, int row, int column) {
    int64_t bits = fcmgw_pq_integer(result, row, column);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/// How many rows a statement changed.
static inline int64_t fcmgw_pq_changes(PGresult *result) {
    return strtoll(PQcmdTuples(result), NULL, 10);
}

/// Takes the notifications that have come; how many.
static inline int fcmgw_pq_take_notifications(PGconn *connection) {
    int count = 0;
    for (PGnotify *notification; (notification = PQnotifies(connection)) != NULL; count++) PQfreemem(notification);
    return count;
}

/// Whether a statement ended as this command; an aborted transaction answers a COMMIT by ROLLBACK.
static inline int fcmgw_pq_is_command(PGresult *result, const char *name) {
    return strcmp(PQcmdStatus(result), name) == 0;
}

#endif
