package import NIOCore

/// Bytes that are appended piece by piece, by one owner.
///
/// An array or a `ByteBuffer` checks at each append that it is not shared. For pieces of a few bytes, which JSON and log
/// lines consist of, that costs several times as much as the append. This value can't be copied, so it is never shared.
@safe
package struct UniqueBytes: ~Copyable {
    private var storage: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    package private(set) var count = 0

    package init(reservingCapacity capacity: Int = 64) {
        unsafe self.storage = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit {
        unsafe self.storage.deallocate()
    }

    package mutating func append(_ byte: UInt8) {
        self.reserve(1)
        // Unsafe: the line above made room.
        unsafe self.storage[self.count] = byte
        self.count &+= 1
    }

    package mutating func append(_ bytes: Span<UInt8>) {
        self.reserve(bytes.count)
        // Unsafe: the bytes are copied while the span lives, into room for as many.
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe (self.storage + self.count).update(from: start, count: bytes.count)
        }
        self.count &+= bytes.count
    }

    package mutating func append(utf8 text: String) {
        text.withUTF8Span { self.append($0) }
    }

    package mutating func append(_ literal: StaticString) {
        self.reserve(literal.utf8CodeUnitCount)
        // Unsafe: the bytes of a literal live for ever, and there is room for as many.
        unsafe (self.storage + self.count).update(from: literal.utf8Start, count: literal.utf8CodeUnitCount)
        self.count &+= literal.utf8CodeUnitCount
    }

    /// Appends `,"name":` as one piece. The name must need no escape.
    package mutating func append(nextName name: StaticString) {
        let length = name.utf8CodeUnitCount
        self.reserve(length + 4)
        // Unsafe: there is room for the name and the four bytes around it, and a literal lives for ever.
        let start = unsafe self.storage + self.count
        unsafe start[0] = UInt8(ascii: ",")
        unsafe start[1] = UInt8(ascii: "\"")
        unsafe (start + 2).update(from: name.utf8Start, count: length)
        unsafe start[length &+ 2] = UInt8(ascii: "\"")
        unsafe start[length &+ 3] = UInt8(ascii: ":")
        self.count &+= length &+ 4
    }

    package mutating func append(decimal number: Int) {
        guard number >= 0 else {
            self.append(utf8: String(number))
            return
        }
        var digits = 1
        var rest = number / 10
        while rest > 0 {
            digits &+= 1
            rest /= 10
        }
        self.reserve(digits)
        self.count &+= digits
        rest = number
        for place in 1...digits {
            // Unsafe: there is room for all digits. The last one comes first.
            unsafe self.storage[self.count &- place] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
    }

    package func withBytes<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        // Unsafe: the first `count` bytes are set, and live until this call ends.
        body(unsafe Span(_unsafeStart: self.storage, count: self.count))
    }

    /// A copy of the bytes.
    package var buffer: ByteBuffer {
        self.withBytes { bytes in
            var buffer = ByteBuffer()
            unsafe buffer.writeBytes(bytes.bytes)
            return buffer
        }
    }

    private mutating func reserve(_ byteCount: Int) {
        if self.capacity &- self.count < byteCount { self.grow(toHold: byteCount) }
    }

    /// Makes room for more bytes, and at least doubles the capacity.
    @inline(never)  // Nearly every append has room.
    private mutating func grow(toHold byteCount: Int) {
        let capacity = max(2 * self.capacity, self.count + byteCount)
        // Unsafe: the old bytes are copied before they are freed, into more room than they need.
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        unsafe larger.update(from: self.storage, count: self.count)
        unsafe self.storage.deallocate()
        unsafe (self.storage, self.capacity) = (larger, capacity)
    }
}

extension String {
    /// Calls a closure with the string's UTF-8. `utf8.span` is slower: it calls into the library and retains the string.
    ///
    /// Without a result, because a generic function is not specialised for other targets.
    @inline(__always)
    package func withUTF8Span(_ body: (Span<UInt8>) -> Void) {
        // Unsafe: the span does not outlive the closure. Every string of Swift's own is contiguous.
        let isDone: Void? = unsafe self.utf8.withContiguousStorageIfAvailable { unsafe body(Span(_unsafeElements: $0)) }
        if isDone == nil { body(Array(self.utf8).span) }
    }
}
