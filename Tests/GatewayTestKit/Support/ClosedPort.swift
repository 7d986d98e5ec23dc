#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A port of 127.0.0.1 that refuses connections for as long as a test needs it.
///
/// It is bound without listening. If it were released, another test could get it.
package enum ClosedPort {
    package static func with<Result>(_ body: (Int) async throws -> Result) async throws -> Result {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard socket >= 0 else { throw SampleError(what: "socket") }
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        // Unsafe: the system reads and writes the address, which outlives both calls, through its size.
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(socket, generic, size) == 0 && getsockname(socket, generic, &size) == 0
            }
        }
        guard isBound else { throw SampleError(what: "free port") }
        return try await body(Int(UInt16(bigEndian: address.sin_port)))
    }
}
