#ifndef CFILES_H
#define CFILES_H

#include <stddef.h>

// Files that the program serves, byte by byte, as they were when it was built. They live as long as the process.

/// The bytes of a file.
struct embedded_file {
    const unsigned char *bytes;
    size_t length;
};

/// openapi/gateway.yaml
struct embedded_file embedded_gateway_description(void);

/// openapi/admin.yaml
struct embedded_file embedded_admin_description(void);

/// console/style.css
struct embedded_file embedded_console_style(void);

/// console/script.js
struct embedded_file embedded_console_script(void);

/// console/icon.svg
struct embedded_file embedded_console_icon(void);

#endif
