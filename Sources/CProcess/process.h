#ifndef FCM_GATEWAY_PROCESS_H
#define FCM_GATEWAY_PROCESS_H

#ifdef __linux__
#include <sys/prctl.h>

/// Hides this process's memory from other processes of its user, and from core dumps.
///
/// It is written in C because `prctl` takes a variable number of arguments, which Swift can't call.
///
/// \returns 0, or -1 with `errno` set.
static inline int fcmgw_forbid_dumps(void) {
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
#endif

#endif
