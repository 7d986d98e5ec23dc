#include "CFiles.h"

// Swift has nothing like `#embed`, and compiles an array literal of this size for many seconds.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char gateway[] = {
#embed "../../openapi/gateway.yaml"
};

static const unsigned char admin[] = {
#embed "../../openapi/admin.yaml"
};

static const unsigned char style[] = {
#embed "../../console/style.css"
};

static const unsigned char script[] = {
#embed "../../console/script.js"
};

static const unsigned char icon[] = {
#embed "../../console/icon.svg"
};

struct embedded_file embedded_gateway_description(void) { return (struct embedded_file){gateway, sizeof gateway}; }

struct embedded_file embedded_admin_description(void) { return (struct embedded_file){admin, sizeof admin}; }

struct embedded_file embedded_console_style(void) { return (struct embedded_file){style, sizeof style}; }

struct embedded_file embedded_console_script(void) { return (struct embedded_file){script, sizeof script}; }

struct embedded_file embedded_console_icon(void) { return (struct embedded_file){icon, sizeof icon}; }
