#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Random words from the system, many for one call to it: a call costs as much as the rest of an identifier.
struct RandomReserve {
    /// The most bytes that `getentropy` gives at once.
    private static let bytesPerCall = 256

    private var words: [UInt64] = []

    mutating func next() -> UInt64 {
        if let word = self.words.popLast() { return word }
        self.words = Array(repeating: 0, count: Self.bytesPerCall / 8)
        // The call fills the array it is handed and keeps no reference to it.
        let status = unsafe getentropy(&self.words, Self.bytesPerCall)
        precondition(status == 0, "getentropy answered \(status)")
        return self.words.removeLast()
    }
}
