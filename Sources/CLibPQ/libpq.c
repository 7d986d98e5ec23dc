#include "libpq.h"

#include <dlfcn.h>

// libpq and its dependencies are some twenty libraries, which a gateway with a store in a file does not need. So the
// program is not linked with them. Each function that it calls is defined here under its own name and forwards its
// arguments.

#ifdef __APPLE__
#define LIBRARY "libpq.5.dylib"
#else
#define LIBRARY "libpq.so.5"
#endif

#define KEYWORDS (const char *const *keywords, const char *const *values, int expand)
#define PARAMETERS                                                                                                  \
    (PGconn * connection, const char *name, int count, const char *const *values, const int *lengths,               \
     const int *formats, int format)

/// The functions called: result, name, parameters, arguments. The newest are from release 14.
#define FUNCTIONS(FUNCTION)                                                                                         \
    FUNCTION(void, PQclear, (PGresult * result), (result))                                                          \
    FUNCTION(char *, PQcmdStatus, (PGresult * result), (result))                                                    \
    FUNCTION(char *, PQcmdTuples, (PGresult * result), (result))                                                    \
    FUNCTION(PGconn *, PQconnectdbParams, KEYWORDS, (keywords, values, expand))                                     \
    FUNCTION(PQconninfoOption *, PQconninfo, (PGconn * connection), (connection))                                   \
    FUNCTION(void, PQconninfoFree, (PQconninfoOption * options), (options))                                         \
    FUNCTION(PQconninfoOption *, PQconninfoParse, (const char *url, char **message), (url, message))                \
    FUNCTION(int, PQconsumeInput, (PGconn * connection), (connection))                                              \
    FUNCTION(int, PQenterPipelineMode, (PGconn * connection), (connection))                                         \
    FUNCTION(char *, PQerrorMessage, (const PGconn *connection), (connection))                                      \
    FUNCTION(int, PQexitPipelineMode, (PGconn * connection), (connection))                                          \
    FUNCTION(void, PQfinish, (PGconn * connection), (connection))                                                   \
    FUNCTION(int, PQflush, (PGconn * connection), (connection))                                                     \
    FUNCTION(char *, PQfname, (const PGresult *result, int column), (result, column))                               \
    FUNCTION(void, PQfreemem, (void *memory), (memory))                                                             \
    FUNCTION(Oid, PQftype, (const PGresult *result, int column), (result, column))                                  \
    FUNCTION(PGresult *, PQgetResult, (PGconn * connection), (connection))                                          \
    FUNCTION(int, PQgetisnull, (const PGresult *result, int row, int column), (result, row, column))                \
    FUNCTION(int, PQgetlength, (const PGresult *result, int row, int column), (result, row, column))                \
    FUNCTION(char *, PQgetvalue, (const PGresult *result, int row, int column), (result, row, column))              \
    FUNCTION(int, PQisBusy, (PGconn * connection), (connection))                                                    \
    FUNCTION(int, PQlibVersion, (void), ())                                                                         \
    FUNCTION(int, PQnfields, (const PGresult *result), (result))                                                    \
    FUNCTION(PGnotify *, PQnotifies, (PGconn * connection), (connection))                                           \
    FUNCTION(int, PQntuples, (const PGresult *result), (result))                                                    \
    FUNCTION(PGPing, PQpingParams, KEYWORDS, (keywords, values, expand))                                            \
    FUNCTION(int, PQpipelineSync, (PGconn * connection), (connection))                                              \
    FUNCTION(char *, PQresultErrorField, (const PGresult *result, int field), (result, field))                      \
    FUNCTION(ExecStatusType, PQresultStatus, (const PGresult *result), (result))                                    \
    FUNCTION(int, PQsendPrepare,                                                                                    \
             (PGconn * connection, const char *name, const char *sql, int count, const Oid *types),                 \
             (connection, name, sql, count, types))                                                                 \
    FUNCTION(int, PQsendQuery, (PGconn * connection, const char *sql), (connection, sql))                           \
    FUNCTION(int, PQsendQueryPrepared, PARAMETERS, (connection, name, count, values, lengths, formats, format))     \
    FUNCTION(int, PQserverVersion, (const PGconn *connection), (connection))                                        \
    FUNCTION(PQnoticeReceiver, PQsetNoticeReceiver, (PGconn * connection, PQnoticeReceiver receiver, void *context), \
             (connection, receiver, context))                                                                       \
    FUNCTION(int, PQsetSingleRowMode, (PGconn * connection), (connection))                                          \
    FUNCTION(int, PQsetnonblocking, (PGconn * connection, int isNonblocking), (connection, isNonblocking))          \
    FUNCTION(int, PQsocket, (const PGconn *connection), (connection))                                               \
    FUNCTION(ConnStatusType, PQstatus, (const PGconn *connection), (connection))                                    \
    FUNCTION(PGTransactionStatusType, PQtransactionStatus, (const PGconn *connection), (connection))

// Hidden, so that libpq's own calls do not resolve to these.
#define DEFINE(RESULT, NAME, WITH, ARGUMENTS)                                                                       \
    static __typeof__(NAME) *library_##NAME;                                                                        \
    __attribute__((visibility("hidden"))) RESULT NAME WITH { return library_##NAME ARGUMENTS; }
FUNCTIONS(DEFINE)

const char *fcmgw_pq_load(void) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return dlerror();
#define FIND(RESULT, NAME, WITH, ARGUMENTS)                                                                         \
    if ((library_##NAME = (__typeof__(NAME) *)dlsym(library, #NAME)) == NULL) return dlerror();
    FUNCTIONS(FIND)
    return NULL;
}
