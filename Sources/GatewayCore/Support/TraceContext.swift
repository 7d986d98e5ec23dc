import FCMModel

/// A header field that carries a trace.
package struct TraceField: Sendable, Hashable {
    /// The fields' names, as W3C Trace Context writes them.
    package enum Name: String, Sendable, Hashable {
        case parent = "traceparent"
        case state = "tracestate"
    }

    package let name: Name
    package let value: String

    package init(_ name: Name, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A caller's place in a distributed trace: the field `traceparent` (W3C Trace Context, section 3.2).
package struct TraceParent: Sendable, Hashable {
    /// The trace's id: 32 hexadecimal digits in lower case, not all of them zero.
    package let traceID: String
    /// The id of the caller's span: 16 hexadecimal digits in lower case, not all of them zero.
    package let spanID: String
    /// Two hexadecimal digits.
    package let flags: String

    /// Reads `version-traceid-parentid-flags`; `nil` for text of another form or an id of zeros.
    ///
    /// Parts and flags of later versions than 00 are ignored (section 4.3).
    package init?(_ text: String) {
        let parts = text.split(separator: "-", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].utf8.count == 2, parts[0] != "ff", parts[1].utf8.count == 32,
            parts[2].utf8.count == 16, parts[3].utf8.count == 2, parts[0] != "00" || parts.count == 4,
            parts[..<4].allSatisfy({ $0.utf8.allSatisfy(Self.isLowerHex) }),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" })
        else { return nil }
        self.traceID = String(parts[1])
        self.spanID = String(parts[2])
        self.flags = parts[0] == "00" ? String(parts[3]) : Self.isSampled(parts[3]) ? "01" : "00"
    }

    /// True if the service that began the trace records it.
    package var isSampled: Bool { Self.isSampled(self.flags[...]) }

    /// The field's value, of version 00.
    package var text: String { "00-\(self.traceID)-\(self.spanID)-\(self.flags)" }

    private static func isSampled(_ flags: Substring) -> Bool {
        (UInt8(flags, radix: 16) ?? 0) & 1 == 1
    }

    private static func isLowerHex(_ byte: UInt8) -> Bool { byte.isLowerAlphanumeric && byte.hexValue != nil }
}

/// The tracing systems' own data on a trace: the field `tracestate` (W3C Trace Context, section 3.3).
package struct TraceState: Sendable, Hashable {
    /// The standard requires at most this many bytes to be propagated.
    package static let maxBytes = 512
    package static let maxMembers = 32
    private static let maxPartBytes = 256

    package let text: String

    /// Reads a list of members `key=value`; `nil` for one that is malformed, too long, or names a key twice.
    ///
    /// A list is propagated whole or not at all.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.maxBytes else { return nil }
        var keys: Set<String> = []
        var members: [String] = []
        for part in text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            let member = Self.trimmed(part)
            // A list may have members of nothing, which mean nothing.
            guard !member.isEmpty else { continue }
            guard let key = Self.key(of: member), keys.insert(key).inserted, keys.count <= Self.maxMembers
            else { return nil }
            members.append(String(Substring(member)))
        }
        guard !members.isEmpty else { return nil }
        self.text = members.joined(separator: ",")
    }

    private typealias Bytes = Substring.UTF8View

    private static func trimmed(_ bytes: Bytes) -> Bytes {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = bytes.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return start.prefix(0) }
        return start[...last]
    }

    private static func key(of member: Bytes) -> String? {
        guard let sign = member.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        let (key, value) = (member[..<sign], member[member.index(after: sign)...])
        guard let first = key.first, first.isLowerAlphanumeric, key.count <= Self.maxPartBytes,
            key.allSatisfy(Self.mayStandInKey), !value.isEmpty, value.count <= Self.maxPartBytes,
            value.allSatisfy(Self.mayStandInValue)
        else { return nil }
        return String(Substring(key))
    }

    private static func mayStandInKey(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"), UInt8(ascii: "@"): true
        default: byte.isLowerAlphanumeric
        }
    }

    /// Printable ASCII but for the comma and the equals sign.
    private static func mayStandInValue(_ byte: UInt8) -> Bool {
        (0x20...0x7E).contains(byte) && byte != UInt8(ascii: ",") && byte != UInt8(ascii: "=")
    }
}
