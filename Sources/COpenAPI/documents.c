#include "documents.h"

// Swift has nothing like `#embed`, and compiles an array literal of this size for many seconds.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char gateway[] = {
#embed "../../openapi/gateway.yaml"
};

static const unsigned char admin[] = {
#embed "../../openapi/admin.yaml"
};

const unsigned char *openapi_gateway_bytes(void) { return gateway; }

size_t openapi_gateway_length(void) { return sizeof gateway; }

const unsigned char *openapi_admin_bytes(void) { return admin; }

size_t openapi_admin_length(void) { return sizeof admin; }
