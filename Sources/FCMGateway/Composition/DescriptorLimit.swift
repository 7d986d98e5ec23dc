#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// How many file descriptors the process may have open, and what is left of them for connections.
enum DescriptorLimit {
    /// As many connections as are wanted, and as descriptors allow.
    static func connections(wanted: Int) -> Int {
        Self.connections(wanted: wanted, limit: Self.current)
    }

    /// The same for a limit; `nil` is none.
    ///
    /// A quarter of the descriptors, but no more than 512, is left for everything that is no caller's connection: the
    /// store, calls to FCM, the loops themselves.
    static func connections(wanted: Int, limit: Int?) -> Int {
        guard let limit else { return wanted }
        return max(1, min(wanted, limit - min(512, limit / 4)))
    }

    /// The process's own limit; `nil` where it can't be asked for.
    static var current: Int? {
        var limits = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        // The call fills the structure it is handed and keeps no reference to it.
        guard unsafe getrlimit(resource, &limits) == 0 else { return nil }
        return Int(clamping: limits.rlim_cur)
    }
}
