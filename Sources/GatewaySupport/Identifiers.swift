import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Makes time-ordered identifiers: UUID version 7 (RFC 9562, 5.7).
package enum UUIDv7 {
    /// The position of each byte's first digit.
    private static let positions = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]

    package static func generate(at time: Timestamp) -> String {
        let milliseconds = UInt64(truncatingIfNeeded: time.milliseconds)
        let random = RandomReserve.pair()
        let high = milliseconds << 16 | 0x7000 | random.0 & 0x0FFF
        let low = 0x8000_0000_0000_0000 | random.1 & 0x3FFF_FFFF_FFFF_FFFF

        // Unsafe: writes each of the string's own 36 bytes once.
        return unsafe String(unsafeUninitializedCapacity: 36) { text in
            for hyphen in [8, 13, 18, 23] { unsafe text[hyphen] = UInt8(ascii: "-") }
            for index in 0..<16 {
                let word = index < 8 ? high : low
                let byte = UInt8(truncatingIfNeeded: word >> UInt64(56 - index % 8 * 8))
                let position = Self.positions[index]
                unsafe text[position] = Hex.digits[Int(byte >> 4)]
                unsafe text[position + 1] = Hex.digits[Int(byte & 0xF)]
            }
            return 36
        }
    }
}

/// Random words from the system, many in one call: a call costs as much as the rest of an identifier. Each word is
/// given out once.
package struct RandomReserve {
    private static let bytesPerCall = 256
    private static let shared = Mutex(RandomReserve())

    private var words: [UInt64] = []

    package init() {}

    /// Two words of the process's common reserve.
    package static func pair() -> (UInt64, UInt64) {
        self.shared.withLock { ($0.next(), $0.next()) }
    }

    package mutating func next() -> UInt64 {
        if let word = self.words.popLast() { return word }
        self.words = Array(repeating: 0, count: Self.bytesPerCall / 8)
        // The call fills the array and keeps no reference to it.
        let status = unsafe getentropy(&self.words, Self.bytesPerCall)
        precondition(status == 0, "getentropy answered \(status)")
        return self.words.removeLast()
    }
}

/// Text of `0-9 A-Z a-z`, safe in headers, shells and double clicks.
package enum Base62 {
    package static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    /// A number in base 62, padded with leading zeros. Digits beyond the width are dropped.
    package static func text(_ number: UInt32, width: Int) -> String {
        var digits = [UInt8](repeating: Self.alphabet[0], count: width)
        var rest = number
        for position in digits.indices.reversed() {
            digits[position] = Self.alphabet[Int(rest % 62)]
            rest /= 62
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// The number of at most ten digits in base 62; `nil` if one is invalid.
    package static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A") + 10
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 36
            default: return nil
            }
            number = number * 62 + UInt64(value)
        }
        return number
    }
}

/// The CRC-32 of zip and Ethernet (reflected polynomial 0xEDB88320).
package enum CRC32 {
    private static let table: [UInt32] = (0..<256)
        .map { index in
            (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
        }

    /// Takes a slice, and not any sequence: other targets' calls of a generic function are not specialised, and every request
    /// checks its key.
    package static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes {
            crc = crc >> 8 ^ Self.table[Int((crc ^ UInt32(byte)) & 0xFF)]
        }
        return ~crc
    }
}

/// Bytes as lower-case hexadecimal text.
package enum Hex {
    package static let digits = Array("0123456789abcdef".utf8)

    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            text.append(Self.digits[Int(byte >> 4)])
            text.append(Self.digits[Int(byte & 0xF)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text of lower-case digits; `nil` for any other.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = self.value(digits[index]), let low = self.value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

extension [UInt8] {
    /// Appends a string's bytes. `append(contentsOf:)` takes twice as long for a few dozen bytes.
    package mutating func append(utf8 text: String) {
        // Unsafe: the bytes are copied while the pointer lives.
        let isCopied: Void? = unsafe text.utf8.withContiguousStorageIfAvailable { bytes in
            // One copy is faster for more than a few bytes.
            guard bytes.count < 24 else { return unsafe self.append(contentsOf: bytes) }
            self.append(addingCapacity: bytes.count) { room in
                for index in bytes.indices { room.append(unsafe bytes[index]) }
            }
        }
        if isCopied == nil { self.append(contentsOf: text.utf8) }
    }

    /// Appends a number, highest byte first.
    package mutating func append(bigEndian number: UInt64) {
        self.append(addingCapacity: 8) { room in
            for place in 0..<8 { room.append(UInt8(truncatingIfNeeded: number >> (56 - 8 * place))) }
        }
    }

    /// Appends a number, highest byte first.
    package mutating func append(bigEndian number: UInt32) {
        self.append(addingCapacity: 4) { room in
            for place in 0..<4 { room.append(UInt8(truncatingIfNeeded: number >> (24 - 8 * place))) }
        }
    }

    /// Appends a number in 16 hexadecimal digits.
    package mutating func append(hexadecimal number: UInt64) {
        self.append(addingCapacity: 16) { room in
            for place in 0..<16 { room.append(Hex.digits[Int(number >> (60 - 4 * place) & 0xF)]) }
        }
    }

    /// Appends a number in decimal digits, without an intermediate string.
    package mutating func append(decimal number: Int) {
        guard number >= 0 else {
            self.append(utf8: String(number))
            return
        }
        // From the last digit on.
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var start = digits.count
        var rest = number
        repeat {
            start &-= 1
            digits[start] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        } while rest > 0
        self.append(addingCapacity: digits.count - start) { room in
            for index in start..<digits.count { room.append(digits[index]) }
        }
    }
}
