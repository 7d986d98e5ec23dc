#ifndef FCM_GATEWAY_LIBPQ_H
#define FCM_GATEWAY_LIBPQ_H

// Debian installs the header in a folder of its own, which is not on the search path.
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#include <libpq-fe.h>
#endif

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/// Loads libpq. Call it once, before any other function.
///
/// \returns NULL, or why it can't be opened.
const char *fcmgw_pq_load(void);

/// The most parameters of a statement. The protocol sets a bound; ours have a dozen.
#define FCMGW_PQ_MAX_PARAMETERS 1024

/// Discards a server's notices, which libpq prints otherwise.
static inline void fcmgw_pq_ignore(void *context, const PGresult *notice) {
    (void)context;
    (void)notice;
}

/// Connects and waits: libpq tries the next host after `connect_timeout` only in this blocking form.
///
/// Values before `dbname` are defaults that the URL may replace; an empty text counts as none. Only this call blocks.
/// It is written in C because Swift handles arrays of C strings badly.
///
/// \param attributes the kind of server to accept, unless the URL says.
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
    // Earlier releases don't know the first option, and refuse unknown ones.
    const int first = PQlibVersion() >= 160000 ? 0 : 1;
    PGconn *connection = PQconnectdbParams(keywords + first, values + first, 1);
    if (connection == NULL) return NULL;
    PQsetNoticeReceiver(connection, fcmgw_pq_ignore, NULL);
    PQsetnonblocking(connection, 1);
    return connection;
}

/// Asks a server that can't be used if it answers at all.
static inline PGPing fcmgw_pq_ping(const char *url) {
    const char *const keywords[] = {"connect_timeout", "gssencmode", "dbname", NULL};
    const char *const values[] = {"5", "disable", url, NULL};
    return PQpingParams(keywords, values, 1);
}

/// Returns 1 if an address sets an option, 0 if not, -1 if libpq does not understand the address.
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

/// Returns 1 if several hosts are configured, by the address, a service file or `PGHOST`, and `target_session_attrs` is
/// `any`.
static inline int fcmgw_pq_has_several_hosts(const char *url) {
    // Only a connection knows the options after service files and variables are read. libpq rejects this invalid
    // sslmode before it looks up the first host. With a password given, it reads no file for one.
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

/// Copies an option's value after service files and variables are read. The text is empty if the option is not set.
static inline void fcmgw_pq_effective(const char *url, const char *keyword, char *text, size_t size) {
    // As above, libpq rejects these invalid attributes before it looks up the first host.
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

/// Sends a prepared statement. Its parameters are stored one after the other in `bytes`.
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

/// The SQLSTATE of a failure, or NULL. Swift does not import character constants.
static inline const char *fcmgw_pq_state(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}

/// The server's message without its details, which contain values, or NULL.
static inline const char *fcmgw_pq_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}

/// An integer of 1, 2, 4 or 8 bytes in binary form.
static inline int64_t fcmgw_pq_integer(const PGresult *result, int row, int column) {
    const uint8_t *bytes = (const uint8_t *)PQgetvalue(result, row, column);
    int length = PQgetlength(result, row, column);
    uint64_t value = length > 0 && (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (int index = 0; index < length; index++) value = value << 8 | bytes[index];
    return (int64_t)value;
}

/// A floating-point number of 8 bytes in binary form.
static inline double fcmgw_pq_double(const PGresult *result, int row, int column) {
    int64_t bits = fcmgw_pq_integer(result, row, column);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/// The number of rows that a statement changed.
static inline int64_t fcmgw_pq_changes(PGresult *result) {
    return strtoll(PQcmdTuples(result), NULL, 10);
}

/// Frees the notifications that have arrived, and returns their number.
static inline int fcmgw_pq_take_notifications(PGconn *connection) {
    int count = 0;
    for (PGnotify *notification; (notification = PQnotifies(connection)) != NULL; count++) PQfreemem(notification);
    return count;
}

/// Returns 1 if a statement ended as this command. An aborted transaction answers COMMIT with ROLLBACK.
static inline int fcmgw_pq_is_command(PGresult *result, const char *name) {
    return strcmp(PQcmdStatus(result), name) == 0;
}

#endif
