package import Crypto

/// Writes the gateway's own storage format: numbers of four bytes, highest byte first, and texts after their lengths.
package struct ByteWriter {
    package private(set) var bytes: [UInt8] = []

    package init(reservingCapacity capacity: Int = 0) {
        self.bytes.reserveCapacity(capacity)
    }

    /// Writes a number. One that does not fit is clamped.
    package mutating func write(number: Int) {
        let number = UInt32(clamping: number)
        for shift in [24, 16, 8, 0] as [UInt32] { self.bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    package mutating func write(text: String?) {
        guard let text else { return self.write(number: ByteReader.absent) }
        self.write(number: text.utf8.count)
        self.bytes.append(contentsOf: text.utf8)
    }

    /// Writes the remaining bytes, without their length.
    package mutating func write(rest: some Sequence<UInt8>) {
        self.bytes.append(contentsOf: rest)
    }
}

/// Reads the format of ``ByteWriter``; `nil` if the bytes are not in it.
package struct ByteReader {
    /// The length that represents an absent text.
    package static let absent = Int(UInt32.max)

    package private(set) var rest: ArraySlice<UInt8>

    package init(_ bytes: [UInt8]) {
        self.rest = bytes[...]
    }

    package mutating func number() -> Int? {
        guard self.rest.count >= 4 else { return nil }
        defer { self.rest = self.rest.dropFirst(4) }
        return self.rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    }

    /// A text that may be absent. The outer `nil` is for bytes without a valid one.
    package mutating func optionalText() -> String?? {
        guard let length = self.number() else { return nil }
        if length == Self.absent { return .some(nil) }
        guard length <= self.rest.count else { return nil }
        defer { self.rest = self.rest.dropFirst(length) }
        guard let text = String(validating: self.rest.prefix(length), as: UTF8.self) else { return nil }
        return text
    }

    package mutating func text() -> String? {
        self.optionalText() ?? nil
    }
}

extension SymmetricKey {
    /// Seals bytes with AES-256-GCM. They open only with this key and for the same purpose. Throws `storeUnavailable`
    /// if the cryptographic library fails, which it does not for keys of 256 bits.
    package func seal(_ bytes: [UInt8], for purpose: String) throws(GatewayError) -> [UInt8] {
        let sealed = try? AES.GCM.seal(bytes, using: self, nonce: Self.nonce(), authenticating: Array(purpose.utf8))
        guard let combined = sealed?.combined else {
            throw GatewayError(.storeUnavailable, "The data can't be sealed")
        }
        return [UInt8](combined)
    }

    /// Twelve random bytes. The library's own nonces cost two system calls each.
    private static func nonce() throws -> AES.GCM.Nonce {
        let (low, high) = RandomReserve.pair()
        return try AES.GCM.Nonce(
            data: (0..<12).map { UInt8(truncatingIfNeeded: ($0 < 8 ? low : high) >> UInt64($0 % 8 * 8)) }
        )
    }

    /// Returns the sealed bytes; `nil` if they were changed, or sealed with another key or for another purpose.
    package func open(_ sealed: [UInt8], for purpose: String) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let bytes = try? AES.GCM.open(box, using: self, authenticating: Array(purpose.utf8))
        else { return nil }
        return [UInt8](bytes)
    }
}

extension SHA256Digest {
    package var bytes: [UInt8] {
        // The pointer does not outlive the closure.
        unsafe self.withUnsafeBytes { unsafe Array($0) }
    }
}
