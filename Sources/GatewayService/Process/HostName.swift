#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The machine's name, by which operators know a replica.
enum HostName {
    /// As the system has it; no name server is asked.
    static var current: String {
        // POSIX allows 255 bytes and a zero.
        var name = [CChar](repeating: 0, count: 256)
        // Unsafe: the call fills the array it is handed, within its bounds, and keeps no reference to it.
        let status = unsafe gethostname(&name, 255)
        guard status == 0 else { return "gateway" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
