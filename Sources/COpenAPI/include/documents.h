#ifndef COPENAPI_DOCUMENTS_H
#define COPENAPI_DOCUMENTS_H

#include <stddef.h>

// The files below openapi/, byte by byte, as they were when the program was built. They live as long as the process.

/// The first byte of openapi/gateway.yaml.
const unsigned char *openapi_gateway_bytes(void);

/// The length of openapi/gateway.yaml in bytes.
size_t openapi_gateway_length(void);

/// The first byte of openapi/admin.yaml.
const unsigned char *openapi_admin_bytes(void);

/// The length of openapi/admin.yaml in bytes.
size_t openapi_admin_length(void);

#endif
