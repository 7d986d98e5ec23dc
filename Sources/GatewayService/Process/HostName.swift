#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The machine's name, by which operators recognise a replica.
enum HostName {
    /// Returns the system's own name for the machine, without a query to a name server.
    static var current: String {
        // POSIX allows 255 bytes and a zero.
        var name = [CChar](repeating: 0, count: 256)
        // Unsafe: the call fills the array within its bounds, and keeps no reference to it.
        let status = unsafe gethostname(&name, 255)
        guard status == 0 else { return "gateway" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
