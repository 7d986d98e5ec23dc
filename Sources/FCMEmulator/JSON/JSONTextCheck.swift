import Foundation

/// Refuses JSON that Foundation's reader would accept: a byte order mark, trailing commas, repeated member names, more
/// than 16 levels (L-JSON, L-DUPKEY, L-DEPTH).
///
/// It checks the structure only. Foundation, which runs afterwards, checks the form of numbers and strings.
struct JSONTextCheck {
    private static let maxDepth = 16
    private let bytes: [UInt8]
    private var index = 0

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    static func run(_ bytes: [UInt8]) throws(JSONTextError) {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw JSONTextError(reason: "the body is not UTF-8")
        }
        var check = JSONTextCheck(bytes: bytes)
        try check.value(depth: 1)
        check.skipBlanks()
        guard check.index == bytes.count else { throw check.unexpected() }
    }

    private mutating func value(depth: Int) throws(JSONTextError) {
        self.skipBlanks()
        switch self.peek() {
        case UInt8(ascii: "{"):
            try self.object(depth: depth)
        case UInt8(ascii: "["):
            try self.array(depth: depth)
        case UInt8(ascii: "\""):
            _ = try self.string()
        default:
            try self.scalar()
        }
    }

    private mutating func object(depth: Int) throws(JSONTextError) {
        try self.open(depth: depth)
        // Swift compares strings by canonical equivalence, as Foundation's dictionary does. Names that differ only in
        // normalisation would later count as equal, so they are refused here instead of losing one.
        var names: Set<String> = []
        if self.close(UInt8(ascii: "}")) { return }
        while true {
            self.skipBlanks()
            guard self.peek() == UInt8(ascii: "\"") else { throw self.unexpected() }
            let name = try Self.text(of: self.string())
            guard names.insert(name).inserted else {
                throw JSONTextError(reason: "member \"\(name)\" occurs twice, before byte \(self.index)")
            }
            self.skipBlanks()
            guard self.take(UInt8(ascii: ":")) else { throw self.unexpected() }
            try self.value(depth: depth + 1)
            if self.close(UInt8(ascii: "}")) { return }
            guard self.take(UInt8(ascii: ",")) else { throw self.unexpected() }
        }
    }

    private mutating func array(depth: Int) throws(JSONTextError) {
        try self.open(depth: depth)
        if self.close(UInt8(ascii: "]")) { return }
        while true {
            try self.value(depth: depth + 1)
            if self.close(UInt8(ascii: "]")) { return }
            guard self.take(UInt8(ascii: ",")) else { throw self.unexpected() }
        }
    }

    /// Skips a string and returns its bytes, quotes included.
    private mutating func string() throws(JSONTextError) -> ArraySlice<UInt8> {
        let start = self.index
        self.index += 1
        while let byte = self.peek() {
            self.index += byte == UInt8(ascii: "\\") ? 2 : 1
            if byte == UInt8(ascii: "\"") { return self.bytes[start..<self.index] }
        }
        throw JSONTextError(reason: "the string at byte \(start) does not end")
    }

    private mutating func scalar() throws(JSONTextError) {
        let start = self.index
        while let byte = self.peek(), !Self.endsScalar(byte) {
            self.index += 1
        }
        guard self.index > start else { throw self.unexpected() }
    }

    private mutating func open(depth: Int) throws(JSONTextError) {
        guard depth <= Self.maxDepth else {
            throw JSONTextError(reason: "more than \(Self.maxDepth) levels at byte \(self.index)")
        }
        self.index += 1
    }

    private mutating func close(_ byte: UInt8) -> Bool {
        self.skipBlanks()
        return self.take(byte)
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard self.peek() == byte else { return false }
        self.index += 1
        return true
    }

    private mutating func skipBlanks() {
        while let byte = self.peek(), Self.isBlank(byte) {
            self.index += 1
        }
    }

    private func peek() -> UInt8? {
        self.index < self.bytes.count ? self.bytes[self.index] : nil
    }

    private func unexpected() -> JSONTextError {
        guard self.peek() != nil else {
            return JSONTextError(reason: "the text ends at byte \(self.bytes.count)")
        }
        return JSONTextError(reason: "unexpected character at byte \(self.index)")
    }

    private static func text(of quoted: ArraySlice<UInt8>) throws(JSONTextError) -> String {
        guard quoted.contains(UInt8(ascii: "\\")) else {
            return String(decoding: quoted.dropFirst().dropLast(), as: UTF8.self)
        }
        let name = try? JSONSerialization.jsonObject(with: Data(quoted), options: .fragmentsAllowed) as? String
        guard let name else {
            throw JSONTextError(reason: "broken escape in the name at byte \(quoted.startIndex)")
        }
        return name
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    private static func endsScalar(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: ":"), UInt8(ascii: "\""):
            return true
        default:
            return self.isBlank(byte)
        }
    }
}

/// The reason why a text is not acceptable JSON.
struct JSONTextError: Error, Equatable {
    let reason: String
}
