#ifndef FCM_GATEWAY_HTTP2_H
#define FCM_GATEWAY_HTTP2_H

#include <nghttp2/nghttp2.h>

#include <stdint.h>
#include <string.h>

/// The most fields of a request, pseudo-header fields included.
#define FCMGW_HTTP2_MAX_FIELDS 64

/// Submits a request. It is written in C because Swift handles arrays of structures with pointers badly.
///
/// libnghttp2 copies the fields. It asks for the body through `read`, which gets the session's user data.
///
/// \param bytes the names and values of all fields but `content-length`, one behind another.
/// \param ends where each name and each value ends in `bytes`.
/// \param count the number of fields, at most FCMGW_HTTP2_MAX_FIELDS - 1.
/// \param length the length to state; -1 to state none. A request with length 0 or -1 has no body.
/// \returns the stream's number, or an error of libnghttp2.
static inline int32_t fcmgw_http2_submit(nghttp2_session *session, const uint8_t *bytes, const uint32_t *ends,
                                         size_t count, int64_t length, nghttp2_data_source_read_callback read) {
    nghttp2_nv fields[FCMGW_HTTP2_MAX_FIELDS];
    if (count >= FCMGW_HTTP2_MAX_FIELDS) return NGHTTP2_ERR_INVALID_ARGUMENT;
    size_t start = 0;
    for (size_t index = 0; index < count; index++) {
        const size_t middle = ends[2 * index], end = ends[2 * index + 1];
        // The library does not write to a field, but its type lacks `const`.
        fields[index] = (nghttp2_nv){
            .name = (uint8_t *)bytes + start,
            .value = (uint8_t *)bytes + middle,
            .namelen = middle - start,
            .valuelen = end - middle,
            .flags = NGHTTP2_NV_FLAG_NONE,
        };
        start = end;
    }
    uint8_t digits[20];
    if (length >= 0) {
        size_t digit = sizeof digits;
        int64_t rest = length;
        do {
            digits[--digit] = (uint8_t)('0' + rest % 10);
            rest /= 10;
        } while (rest > 0);
        fields[count++] = (nghttp2_nv){
            .name = (uint8_t *)"content-length",
            .value = digits + digit,
            .namelen = strlen("content-length"),
            .valuelen = sizeof digits - digit,
            // Lengths vary, and would displace more useful fields from the peer's table.
            .flags = NGHTTP2_NV_FLAG_NO_INDEX | NGHTTP2_NV_FLAG_NO_COPY_NAME,
        };
    }
    const nghttp2_data_provider body = {.source = {.ptr = NULL}, .read_callback = read};
    return nghttp2_submit_request(session, NULL, fields, count, length > 0 ? &body : NULL, NULL);
}

#endif
