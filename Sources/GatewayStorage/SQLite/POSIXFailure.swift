#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The error number that a system call left.
struct POSIXFailure: Error, Hashable, CustomStringConvertible {
    let number: Int32

    /// The number of the call that failed just now on this thread.
    init() {
        self.number = errno
    }

    /// The number and what the system says of it.
    var description: String {
        // The text belongs to the system and is copied at once.
        unsafe "errno \(self.number): \(String(cString: strerror(self.number)))"
    }
}
